"""`regress merge`: shards that were measured apart become the history that one run would have left."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from regress.commands.sweep.marks import Reported, Untold
from regress.history import Store, sidecar
from regress.history.disk import replace_file
from regress.model import Machine, Report
from regress.report.json import schema
from regress.session import Request, Session
from tests.conftest import Project, Result, inside, regress
from tests.history.samples import BOX, ENV, SHA, benchmark, side, taken

CODE = "import regress_scripted as d\ndef work(): d.kernel('k', {seconds})\n"
SUITE = "import proj\n" + "".join(f"def cudatime_{name}(): proj.work()\n" for name in ("add", "mul", "sum"))
SHARDS = ("b.cudatime_add", "b.cudatime_mul", "b.cudatime_sum")


def measured_apart(p: Project, root: Path) -> None:
    """One run a benchmark, of both commits, each with a results_dir of its own."""
    config = json.loads((p.root / "asv.conf.json").read_text())
    for number, name in enumerate(SHARDS):
        file = p.root / f"shard{number}.json"
        file.write_text(json.dumps({**config, "results_dir": str(root / str(number) / "history")}))
        done = p.regress("check", "HEAD~1", "HEAD", "--record", "-b", name, "--rounds", "3", "--config", file.name)
        assert done.code == 1, done.err


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the one project of this module is measured, by the first test that wants it."""
    return tmp_path_factory.mktemp("merge")


@pytest.fixture
def parted(made: Path, tmp_path: Path) -> tuple[Project, list[Path]]:
    """Copies of a project and of the folders in which its shards have left their results."""
    if not (made / "project").exists():
        p = Project(made / "project", {"machine": "box"})
        p.commit({"proj/__init__.py": CODE.format(seconds=40e-6), "benchmarks/b.py": SUITE})
        p.commit({"proj/__init__.py": CODE.format(seconds=60e-6)})
        measured_apart(p, made / "shards")
    copy: Project = Project.__new__(Project)
    copy.root = Path(shutil.copytree(made / "project", tmp_path / "project"))
    shards = Path(shutil.copytree(made / "shards", tmp_path / "shards"))
    return copy, [shards / str(number) / "history" for number in range(len(SHARDS))]


def merged(p: Project, *folders: Path) -> Result:
    return p.regress("merge", *map(str, folders))


def test_shards_are_compared_as_one_run_and_asv_shows_them(parted: tuple[Project, list[Path]]) -> None:
    p, folders = parted
    assert p.regress("compare", "HEAD~1", "HEAD").code == 5
    done = merged(p, *folders)
    assert done.code == 0, done.err
    assert "3 folders: 18 rounds added" in done.out
    assert "18 already present" in merged(p, *folders).out
    compared = json.loads(p.regress("compare", "HEAD~1", "HEAD", "--format", "json").out)
    assert [(row["name"], row["verdict"]) for row in compared["benchmarks"] if row["metric"] == "gpu_time"] == [
        (name, "regressed") for name in SHARDS
    ]
    head = p.git("rev-parse", "HEAD")
    shown = subprocess.run(
        [sys.executable, "-m", "asv", "show", "--machine", "box", head],
        cwd=p.root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    for name in SHARDS:
        assert f"{name} [box/" in shown.stdout
        assert f"{name}.host_time [box/" in shown.stdout


def test_what_cannot_be_read_is_exit_code_3_and_what_may_not_be_mixed_2(parted: tuple[Project, list[Path]]) -> None:
    p, folders = parted
    broken = next((folders[0] / "box").glob("*.rounds.jsonl")).with_name("00000000-elsewhere.json")
    broken.write_text("{")
    done = p.regress("merge", "--format", "json", *map(str, folders))
    assert done.code == 3
    document = json.loads(done.out)
    jsonschema.Draft202012Validator(schema()).validate(document)
    assert [folder["added"] for folder in document["folders"]] == [6, 6, 6]
    assert any(str(broken) in warning for warning in document["warnings"])

    facts = folders[1] / "box" / "machine.json"
    facts.write_text(json.dumps({**json.loads(facts.read_text()), "cpu": "Another"}))
    done = merged(p, *folders)
    assert done.code == 2
    assert [line.split(":")[0] for line in done.err.splitlines()] == ["error", "why", "fix"]

    done = merged(p, folders[0].parents[1])
    assert done.code == 2
    assert f"regress merge {folders[0]}" in done.err


def test_any_folder_may_be_merged_into(parted: tuple[Project, list[Path]], tmp_path: Path) -> None:
    p, folders = parted
    nowhere = tmp_path / "no-repository"
    nowhere.mkdir()
    done = regress(nowhere, "merge", "-q", "--into", "shared", *map(str, folders))
    assert (done.code, done.err) == (0, "")
    assert "18 rounds added" in done.out
    assert "1 folder: 18 rounds added" in merged(p, nowhere / "shared").out


@pytest.fixture
def shard(project: Callable[..., Project], tmp_path: Path) -> tuple[Project, Path]:
    """A project, and a folder of results of its ten commits, the later half slower."""
    p, store = project(), Store(tmp_path / "shard")
    for at in range(10):
        about, seconds = (side(p.commit({"NEWS": str(at)}), date=1e9 + at), 1e-3 * (1.0 if at < 5 else 1.2))
        for order in range(2):
            values = taken(
                benchmark().name, order=order, started_at=10.0 * at + order, gpu_time=seconds + 1e-7 * (at % 3)
            )
            store.append(about, BOX, ENV, values, {}, benchmark())
        store.finish(about, BOX, ENV, python="3.12", benchmarks={benchmark().name: benchmark()})
    return p, store.root


def told(p: Project, folder: Path) -> tuple[int, int]:
    """The exit code of a merge, and how many changes it reports as new."""
    done = inside(p, "merge", str(folder), "--format", "json")
    document = json.loads(done.out)
    return done.code, sum(change["new"] for change in document.get("changes", ()))


def test_what_was_new_in_a_merge_that_did_not_report_is_new_in_the_next_one_and_only_there(
    shard: tuple[Project, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("regress.commands.merge._summed_up", lambda _: 1 / 0)  # all is taken by then
        assert inside(shard[0], "merge", str(shard[1])).code == 5
    assert [told(*shard) for _ in range(2)] == [(1, 1), (0, 0)]


@pytest.mark.parametrize(
    ("stops", "whole", "code"),
    [(KeyboardInterrupt(), 0, 130), (OSError(errno.ENOSPC, "No space left on device"), 7, 2)],
)
def test_what_a_merge_that_was_stopped_has_not_taken_is_new_in_the_next_one(
    shard: tuple[Project, Path], monkeypatch: pytest.MonkeyPatch, stops: BaseException, whole: int, code: int
) -> None:
    left = iter(range(whole))

    def replace(path: Path, data: bytes) -> None:
        if path.name.endswith(sidecar.ENDING) and next(left, None) is None:
            raise stops
        replace_file(path, data)

    with monkeypatch.context() as patched:
        patched.setattr("regress.history.disk.replace_file", replace)
        assert told(*shard) == (code, 0)
    assert [told(*shard) for _ in range(2)] == [(1, 1), (0, 0)]


def test_a_second_merge_begins_once_people_have_the_report_of_the_first(project: Callable[..., Project]) -> None:
    untold, order, waits = Untold(Session(Request(project().root)), "merge"), list[str](), threading.Event()

    def note(text: str) -> None:
        order.append(text)
        waits.set()

    def command() -> Reported:
        order.append("begins")
        return Report("merge"), lambda: order.append("told")

    def again() -> None:
        untold.alone(note, command)[1]()

    _, first = untold.alone(note, command)
    second = threading.Thread(target=again)
    second.start()
    waits.wait()
    first()
    second.join()
    said = "the same command is under way in another process; waiting until it ends"
    assert order == ["begins", said, "told", "begins", "told"]


def test_what_another_process_has_forgotten_meanwhile_is_forgotten(
    project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are no locks, both may be at it."""
    untold = Untold(Session(Request(project().root)), "merge")
    monkeypatch.setattr(Path, "exists", lambda path: True)
    untold.forget()
    assert untold.read() is None


def test_where_the_cache_cannot_be_written_a_merge_says_what_a_kill_would_lose(
    shard: tuple[Project, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    p, folder = shard
    (p.root / "file").touch()
    monkeypatch.setenv("REGRESS_CACHE_DIR", str(p.root / "file"))
    done = inside(p, "merge", str(folder), "--format", "json")
    assert done.code == 1, done.err
    (warning,) = [text for text in json.loads(done.out)["warnings"] if "if this merge is killed" in text]
    assert (done.code, warning.startswith("cannot write ")) == (1, True)


def test_two_machines_publish_as_the_docs_show(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "nightly.md").read_text()
    (script,) = re.findall(r"^```sh\n(#!/bin/sh\n# /srv/bench/publish\.sh:.*?)^```$", page, re.MULTILINE | re.DOTALL)
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "shared.git")
    machines = [tmp_path / "gpu-1", tmp_path / "gpu-2"]
    for number, place in enumerate(machines):
        git(tmp_path, "clone", "-q", "shared.git", str(place / "mylib-results"))
        if not number:
            git(place / "mylib-results", "commit", "-q", "--allow-empty", "-m", "start")
            git(place / "mylib-results", "push", "-q", "origin", "HEAD:main")
        store, machine = Store(place / "mylib" / "history"), Machine(place.name, BOX.facts)
        for order in range(3):
            store.append(side(), machine, ENV, taken(f"ops.cudatime_{place.name[-1]}", order=order, gpu_time=1.0))
        suite = {f"ops.cudatime_{place.name[-1]}": benchmark(f"ops.cudatime_{place.name[-1]}")}
        store.finish(side(), machine, ENV, python="3.11", benchmarks=suite)
        shim = place / "bin" / "regress"
        shim.parent.mkdir()
        shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m regress "$@"\n')
        shim.chmod(0o755)
        (place / "publish.sh").write_text(script.replace("/srv/bench", str(place)))
    environments = [
        {
            **os.environ,
            "PATH": f"{place / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }
        for place in machines
    ]
    started = [
        subprocess.Popen(["sh", str(place / "publish.sh")], env=environment)
        for place, environment in zip(machines, environments, strict=True)
    ]
    assert [process.wait(timeout=120) for process in started] == [0, 0]
    git(tmp_path, "clone", "-q", "shared.git", "seen")
    recorded = Store(tmp_path / "seen").load(SHA).recorded
    assert [(result.machine.name, len(result.rounds)) for result in recorded] == [("gpu-1", 3), ("gpu-2", 3)]
    entries = json.loads((tmp_path / "seen" / "benchmarks.json").read_text())
    assert {"ops.cudatime_1", "ops.cudatime_2"} <= set(entries)


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)
