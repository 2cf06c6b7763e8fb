"""What a report says of what its changes come from: the sentence at the change, and the rest behind it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from regress.report.html import write_file
from tests.report.html import history as made
from tests.report.html.conftest import QUIET, address, site_of
from tests.report.html.test_looks import axe, settled
from tests.report.html.test_views import texts

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

Visit = Callable[..., "Page"]
CASE = f"#/b/{made.SOFTMAX}?c=4096,+'float32'&metric=gpu_time"
CHANGES = "#/regressions?state=open,recovered"


def sentences(page: Page) -> list[str]:
    return [text.split(" Where it went")[0] for text in texts(page.locator(".told"))]


def opened(page: Page, at: int = 0) -> Locator:
    """What stands behind a sentence."""
    details = page.locator(".told details").nth(at)
    details.locator("summary").click()
    details.locator("table").first.wait_for()
    return details


def test_a_change_says_why_how_sure_and_between_which_commits(visit: Visit) -> None:
    page = visit(CHANGES)
    softmax, norm = sentences(page)
    assert softmax.startswith("because a fusion was lost: Fuse </script><script>window.hacked=1</script>")
    assert "high confidence" in softmax
    pair = page.locator(".told > a").first
    assert pair.inner_text().count(" → ") == 1
    assert softmax.endswith(f"{pair.inner_text()} of (4096, 'float32'), on h100")
    assert norm.startswith("because softmax::rest was added: 2.00 us a call high confidence")
    assert norm.endswith(" over more commits, on laptop")
    assert page.locator(".event:has(.told) .mono.name").all_inner_texts() == [made.SOFTMAX, made.NORM]


def test_the_pair_is_pinned_where_it_leads_to(visit: Visit) -> None:
    page = visit(CHANGES)
    words = page.locator(".told > a").first.inner_text()
    page.locator(".told > a").first.click()
    page.wait_for_selector(".benchmark .pinned")
    assert page.inner_text("h1") == f"{made.SOFTMAX}(4096, 'float32')"
    names = page.evaluate("['pin', 'with'].map(regress.get).map(regress.short).join(' → ')")
    assert names == words


def test_the_rest_is_behind_it(visit: Visit) -> None:
    page = visit(CHANGES)
    assert page.evaluate("regress.shards.size") == 0
    details = opened(page)
    assert page.evaluate("regress.shards.size") == 1, "the data of the benchmark comes when it is asked for"
    assert "#/regressions" in address(page)
    told = " ".join(details.inner_text().split())
    assert "gpu time on h100, worktree-py3.12, explained 2025-12-29" in told
    assert "doubt: the profiler itself took 1.00 us" in told
    assert "Also: a memset of 4.00 KiB was added" in told
    parts = texts(details.locator(".parts tbody tr"))
    assert [part.split()[0] for part in parts[:3]] == ["kernels", "copies", "the"]
    assert parts[3].startswith("measured 24.6 us -> 26.9 us, +9.3 %")
    kernels = texts(details.locator("section:has(> h2:text-is('Kernels and copies that changed')) tbody tr"))
    assert [launch.split()[0] for launch in kernels] == [
        "softmax::rest",
        "softmax::narrow\x1b[2J",
        "scale",
        "Memset",
        "k",
    ]
    assert "</script><script>window.hacked=1</script>" in kernels[-1]


def test_the_page_of_the_benchmark_has_it_at_the_change(visit: Visit) -> None:
    page = settled(visit(CASE))
    (row,) = texts(page.locator("section:has(> h2:text-is('Change points')) tbody tr"))
    assert "because a fusion was lost: Fuse </script>" in row
    (sentence,) = sentences(page)
    assert sentence.startswith(f"{made.SOFTMAX}(4096, 'float32') is 9.3 % slower: a fusion was lost: ")
    assert opened(page).locator(".parts").count() == 1


def test_another_case_of_the_benchmark_has_none(visit: Visit) -> None:
    page = settled(visit(f"#/b/{made.SOFTMAX}?c=1024,+'float32'&metric=gpu_time"))
    assert page.locator(".told").count() == 0
    assert "because" not in page.inner_text("main")


def test_one_file_has_all_of_it(history: Path, tmp_path: Path, visit: Visit) -> None:
    page = visit(CHANGES, path=write_file(site_of(history), tmp_path / "all.html", QUIET).page)
    assert opened(page, 1).locator(".parts").count() == 1


def test_data_that_is_gone_says_what_to_do(pages: Path, tmp_path: Path, chromium: object) -> None:
    (tmp_path / "data").mkdir()
    for name in ("index.html", "data/index.js"):
        (tmp_path / name).write_text((pages.parent / name).read_text())
    page = chromium.new_page()  # type: ignore[attr-defined]
    page.goto(f"{(tmp_path / 'index.html').as_uri()}{CHANGES}")
    page.locator(".told summary").first.click()
    page.wait_for_selector(".told details p")
    assert "is not there. If the report was written again" in page.inner_text(".told details p")
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("route", [CHANGES, CASE], ids=["changes", "benchmark"])
def test_nothing_stands_in_the_way_of_a_reader(visit: Visit, route: str, theme: str) -> None:
    page = settled(visit(route, color_scheme=theme))
    opened(page)
    page.add_script_tag(content=axe())
    faults = page.evaluate("axe.run({resultTypes: ['violations']})")
    assert [
        (violation["id"], [node["html"] for node in violation["nodes"]]) for violation in faults["violations"]
    ] == []


@pytest.mark.parametrize("route", [CHANGES, CASE], ids=["changes", "benchmark"])
def test_nothing_is_wider_than_a_small_screen(visit: Visit, route: str) -> None:
    page = settled(visit(route, viewport={"width": 390, "height": 844}))
    opened(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
