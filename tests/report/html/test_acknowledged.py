"""What is acknowledged, in Chromium: no longer open, with its reason, its end and a link; and the command that acknowledges."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from regress.acks import added
from regress.cli import regress as program
from regress.model import Acknowledgement
from regress.pages import PageSite
from regress.report.html import write_folder

from . import history as made
from .conftest import QUIET, site_of

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
Visit = Callable[..., "Page"]
FILE = "regress-acks.toml"
SOFTMAX = Acknowledgement(
    made.SOFTMAX, "accepted", "exact </script><b>now</b>", "gpu_time", 1.1, until="v9", link="https://example.org/412"
)
LAST = Acknowledgement(made.LAST, "noise", "a shared disk", until="lifted", link="javascript:hacked()")


def events(page: Page) -> list[str]:
    return [" ".join(text.split()) for text in page.locator(".event").all_inner_texts()]


def with_entries(history: Path, folder: Path, *entries: Acknowledgement) -> PageSite:
    """The report of a copy of the repository in which these are acknowledged."""
    if not folder.exists():
        shutil.copytree(history, folder)
    text = ""
    for entry in entries:
        text = added(text, entry, FILE)
    (folder / FILE).write_text(text)
    return site_of(folder)


@pytest.fixture(scope="module")
def acknowledged(history: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("acknowledged")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGRESS_CACHE_DIR", str(folder / "cache"))
        return write_folder(with_entries(history, folder / "tensors", SOFTMAX, LAST), folder / "report", QUIET).page


def test_the_overview_counts_what_is_open_only(visit: Visit, acknowledged: Path) -> None:
    page = visit(path=acknowledged)
    assert page.inner_text("h1").startswith("One benchmark is worse than before. ")
    assert "1 open regression: " in page.inner_text(".lede")
    assert "acknowledged" in page.inner_text(".lede")
    (alloc,) = events(page)  # nothing is to be measured again either
    assert alloc.startswith(made.ALLOC)
    page.click("text=✓ acknowledged >> nth=0")
    names = page.locator("table.rows tbody tr").all_inner_texts()
    assert names
    assert all(made.SOFTMAX in name or made.LAST in name for name in names)


def test_the_row_of_a_change_has_reason_end_and_link(visit: Visit, acknowledged: Path) -> None:
    page = visit("#/regressions?state=acknowledged", path=acknowledged)
    softmax, last = sorted(events(page), key=lambda text: not text.startswith(made.SOFTMAX))
    assert "✓ acknowledged" in softmax
    assert "accepted until v9: exact </script><b>now</b> example.org/412" in softmax
    assert page.locator(".event a", has_text="example.org").get_attribute("href") == SOFTMAX.link
    assert "noise until it is lifted: a shared disk" in last
    assert last.count("javascript") == 0  # no address of the web is no link
    assert not page.locator(".event .copy", has_text="ack").count()


def test_the_page_of_a_benchmark_says_that_it_is_acknowledged(visit: Visit, acknowledged: Path) -> None:
    page = visit(f"#/b/{made.SOFTMAX}?metric=gpu_time", path=acknowledged)
    page.wait_for_selector(".lede")
    assert "✓ acknowledged accepted until v9: exact" in " ".join(page.inner_text(".lede").split())


def test_what_is_open_has_the_command_that_acknowledges_it(visit: Visit) -> None:
    page = visit("#/regressions?state=open")
    alloc, softmax = page.locator(".event").all()
    softmax.get_by_role("button", name="Copy the command: ack").click()
    words = shlex.split(page.evaluate("navigator.clipboard.readText()"))
    assert words[:5] == ["regress", "ack", made.SOFTMAX, "--metric", "gpu_time"]
    assert words[5] == "--since"
    assert words[7:] == ["--reason", "…"]
    parameters = program.commands["ack"].make_context("ack", words[2:]).params
    assert (parameters["case"], parameters["kind"]) == (made.SOFTMAX, "accepted")
    alloc.get_by_role("button", name="Copy the command: ack").click()
    assert shlex.split(page.evaluate("navigator.clipboard.readText()"))[2:5] == [made.ALLOC, "--metric", "peak_memory"]


def test_an_entry_makes_only_its_benchmark_anew(history: Path, tmp_path: Path) -> None:
    def stamps(*entries: Acknowledgement) -> dict[str, str]:
        return {leaf.name: leaf.stamp() for leaf in with_entries(history, tmp_path / "tensors", *entries).leaves}

    without, one = stamps(), stamps(SOFTMAX)
    assert {name for name in without if without[name] != one[name]} == {made.SOFTMAX}
    expired = Acknowledgement("ops", "noise", "long ago", until="2020-01-01")
    assert stamps(expired, SOFTMAX) == one  # what does not act changes nothing, nor does where an entry stands
