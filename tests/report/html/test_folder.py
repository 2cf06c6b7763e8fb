"""The folder of a report: what is written, what is left alone, and what is refused."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import multiprocessing
import os
import re
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from regress import sharing
from regress.errors import RegressError
from regress.pages import PageSite
from regress.report.html import folder as folder_module
from regress.report.html import write_file, write_folder
from regress.report.html.folder import write_alone
from regress.report.html.page import HERE, SCRIPTS, page, script_of
from regress.report.progress import Progress
from tests.report.html.conftest import QUIET, site_of

pytestmark = pytest.mark.xdist_group("browser")  # where the history is there already

UPLOT = "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"
"""SHA-256 of dist/uPlot.iife.min.js of the package uplot 1.6.32."""


@pytest.fixture(scope="module")
def site(history: Path) -> PageSite:
    return site_of(history)


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Name, inode and content of every file: a file that was written again has another inode."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): (path.stat().st_ino, path.read_bytes()) for path in paths}


def data_of(script: str) -> Any:
    return json.loads(re.fullmatch(r"regress\.take\(\.\.\.(.*)\);\n", script, re.DOTALL)[1])  # type: ignore[index]


def test_what_has_not_changed_is_not_written(site: PageSite, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    first = write_folder(site, folder, QUIET)
    assert (first.benchmarks, first.made, first.changed) == (9, 9, 9)
    before = files(folder)
    assert len([name for name in before if name.startswith("data/b/")]) == 9
    touched = replace(site.leaves[2], seen="another", stamp=lambda: "another")
    second = write_folder(replace(site, leaves=(*site.leaves[:2], touched, *site.leaves[3:])), folder, QUIET)
    assert (second.made, second.changed) == (1, 0)
    after = files(folder)
    assert {name for name in after if after[name][0] != before[name][0]} <= {"data/index.js", "manifest.json"}
    assert {name: entry[1] for name, entry in after.items() if "data/b" in name} == {
        name: entry[1] for name, entry in before.items() if "data/b" in name
    }


def test_files_that_are_new_and_say_what_they_said_are_read_once(site: PageSite, tmp_path: Path) -> None:
    def never() -> Any:
        raise AssertionError("it is known")

    write_folder(site, tmp_path / "report", QUIET)
    copied = tuple(replace(leaf, seen=f"copied {leaf.seen}", make=never) for leaf in site.leaves)
    assert write_folder(replace(site, leaves=copied), tmp_path / "report", QUIET).made == 0
    known = tuple(replace(leaf, stamp=never) for leaf in copied)
    assert write_folder(replace(site, leaves=known), tmp_path / "report", QUIET).made == 0


def test_a_benchmark_that_is_gone_leaves_no_file(site: PageSite, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    write_folder(site, folder, QUIET)
    second = write_folder(replace(site, leaves=site.leaves[1:]), folder, QUIET)
    assert (second.benchmarks, second.made) == (8, 0)
    assert {path.name for path in (folder / "data" / "b").iterdir()} == {leaf.file for leaf in site.leaves[1:]}


def test_a_shard_that_was_lost_is_made_again(site: PageSite, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    write_folder(site, folder, QUIET)
    (folder / "data" / "b" / site.leaves[0].file).unlink()
    assert write_folder(site, folder, QUIET).made == 1
    (folder / "manifest.json").write_text('{"format": 0}')
    assert write_folder(site, folder, QUIET).made == 9


def test_a_folder_that_is_not_ours_is_left_alone(site: PageSite, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RegressError) as refused:
        write_folder(site, tmp_path, QUIET)
    assert "is not a folder of a report" in str(refused.value)
    assert "report_dir" in refused.value.fix
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(RegressError):
        write_folder(site, tmp_path / "thesis.tex", QUIET)


def test_a_place_that_cannot_be_written_says_so(site: PageSite, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RegressError) as refused:
        write_file(site, tmp_path / "file" / "report.html", QUIET)
    assert refused.value.what.startswith("cannot write")


def test_a_first_report_that_met_a_full_disk_can_be_written_again(
    site: PageSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(RegressError):
            write_folder(site, tmp_path / "report", QUIET)
    assert write_folder(site, tmp_path / "report", QUIET).made == 9


def test_an_interrupted_report_is_the_old_one(site: PageSite, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    write_folder(site, folder, QUIET)
    before = files(folder)

    def interrupted() -> Any:
        raise KeyboardInterrupt

    leaves = tuple(replace(leaf, seen="x", stamp=lambda: "x", make=interrupted) for leaf in site.leaves)
    with pytest.raises(KeyboardInterrupt):
        write_folder(replace(site, leaves=leaves), folder, QUIET)
    assert files(folder) == before
    assert write_folder(site, folder, QUIET).made == 0


def test_a_first_report_that_was_interrupted_goes_on_from_there(
    site: PageSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "helpers", lambda items, item_s: 0)  # others would have made more on a slow machine

    def interrupted() -> Any:
        raise KeyboardInterrupt

    broken = replace(site, leaves=(site.leaves[0], replace(site.leaves[1], make=interrupted), *site.leaves[2:]))
    with pytest.raises(KeyboardInterrupt):
        write_folder(broken, tmp_path / "report", QUIET)
    assert write_folder(site, tmp_path / "report", QUIET).made == 8


def test_a_report_that_was_killed_goes_on_from_there(
    site: PageSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "SAVE_S", 0.0)
    monkeypatch.setattr(sharing, "helpers", lambda items, item_s: 0)

    def killed() -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    leaves = (*site.leaves[:5], replace(site.leaves[5], make=killed), *site.leaves[6:])
    child = multiprocessing.get_context("fork").Process(
        target=write_folder, args=(replace(site, leaves=leaves), tmp_path / "report", QUIET)
    )
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL
    assert write_folder(site, tmp_path / "report", QUIET).made == 4


class Waits(Progress):
    """Tells when a process waits for another one."""

    def __init__(self) -> None:
        super().__init__(None)
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_of_two_first_reports_at_once_one_waits_for_the_other(
    site: PageSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, waits, written = tmp_path / "report", Waits(), list[int]()
    second = threading.Thread(target=lambda: written.append(write_folder(site, folder, waits).made))
    replaced = os.replace

    def meet(*names: Any) -> None:
        """The second one begins while the first is about to give a file its name."""
        if second.ident is None:
            second.start()
            while second.is_alive() and not waits.notes:
                time.sleep(0.01)
        replaced(*names)

    monkeypatch.setattr(os, "replace", meet)
    first = write_folder(site, folder, QUIET)
    second.join()
    assert (first.made, written) == (9, [0]), "the second finds what the first has made"
    assert waits.notes == [f"another process writes {folder}; waiting until it has"]


def test_two_processes_may_write_one_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, replaced = tmp_path / "report.html", os.replace

    def beaten(*names: Any) -> None:
        monkeypatch.setattr(os, "replace", replaced)
        write_alone(page, "--single-file", "the other")
        replaced(*names)

    monkeypatch.setattr(os, "replace", beaten)
    write_alone(page, "--single-file", "this one")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"report.html": "this one"}


def test_the_index_is_small_and_says_everything_but_values(site: PageSite, tmp_path: Path) -> None:
    written = write_folder(site, tmp_path / "report", QUIET)
    index = data_of((tmp_path / "report" / "data" / "index.js").read_text())[2]
    assert index["project"] == "tensors"
    assert len(index["commits"]) == len(written.index.commits) == 26
    assert "rounds" not in json.dumps(index["rows"])


@pytest.mark.parametrize(
    "text", ["</script>", "<!--", "-->", "]]>", "\u2028 \u2029", '"\\', "'", "&amp;", "🚀", "\udc80", "\0"]
)
def test_data_cannot_end_its_script(text: str) -> None:
    script = script_of("shard", text, {"name": text, text: 1, "number": math.nan})
    assert not set(script) & set("<>&\u2028\u2029")
    assert data_of(script) == ["shard", text, {"name": text, text: 1, "number": None}]


def test_a_title_is_text() -> None:
    assert "<title>&lt;/title&gt;&lt;script&gt;x · regress</title>" in page("</title><script>x")


def test_no_script_of_ours_ends_early_or_puts_markup_on_a_page() -> None:
    of_other_pages = ("profile", "explained")
    there = {
        path.relative_to(HERE / "js").with_suffix("").as_posix(): path.read_text()
        for path in (HERE / "js").rglob("*.js")
        if path.parent.name not in of_other_pages
    }
    assert {"start", *SCRIPTS} == set(there)
    for name, text in there.items():
        assert "</" not in text, name
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|fetch\(|XMLHttp|https?://(?!www\.w3\.org)",
            text,
        ), name
        assert len(text.splitlines()) < 300, name


def test_the_library_is_the_one_that_was_published() -> None:
    assert hashlib.sha256((HERE / "vendor" / "uPlot.iife.min.js").read_bytes()).hexdigest() == UPLOT
    licence = (HERE / "vendor" / "uPlot.LICENSE").read_text()
    assert licence.startswith("The MIT License")
    assert licence.split("\n")[2] in page("x")


def test_a_report_that_processes_share_is_the_one_that_one_process_makes(
    history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def contents(path: Path) -> dict[str, bytes]:
        return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}

    monkeypatch.setattr(time, "time", lambda: 1_700_000_000.0)
    monkeypatch.setattr(sharing, "helpers", lambda items, item_s: 0)
    site = site_of(history)
    alone = write_folder(site, tmp_path / "alone", QUIET)
    write_file(site, tmp_path / "alone.html", QUIET)
    monkeypatch.setattr(sharing, "helpers", lambda items, item_s: 2)
    beside = write_folder(site, tmp_path / "shared", QUIET)
    write_file(site, tmp_path / "shared.html", QUIET)
    assert contents(tmp_path / "shared") == contents(tmp_path / "alone")
    assert (tmp_path / "shared.html").read_bytes() == (tmp_path / "alone.html").read_bytes()
    assert (beside.made, beside.changed) == (alone.made, alone.changed) == (9, 9)
