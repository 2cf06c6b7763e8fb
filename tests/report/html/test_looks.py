"""For every reader: both themes, small screens, without a mouse, with a screen reader; and names that are nothing but text."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from regress.report.html import write_file
from tests.report.html import history as made
from tests.report.html.conftest import QUIET, site_of, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

Visit = Callable[..., "Page"]
ROUTES = {
    "overview": "#/",
    "benchmark": f"#/b/{made.SOFTMAX}?at=all",
    "pinned": f"#/b/{made.NORM}?pin=first&with=last",
    "compare": "#/compare?a=first&b=last",
    "changes": "#/regressions",
    "machines": "#/machines",
    "failures": "#/failures",
    "odd": f"#/b/{made.ODD}",
}


@functools.cache
def axe() -> str:
    spec = importlib.util.find_spec("axe_playwright_python")
    if spec is None or spec.origin is None:
        pytest.skip("axe is not installed: pip install .[test]")
    return (Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8")


def settled(page: Page) -> Page:
    if page.locator(".benchmark").count():
        page.wait_for_selector(".plot .u-over")
    return page


def each_page(page: Page) -> Iterator[tuple[str, Page]]:
    """The window at one page after the other, as a reader goes on."""
    for name, route in ROUTES.items():
        page.evaluate("route => { delete document.getElementById('main').dataset.page; location.hash = route; }", route)
        page.wait_for_selector("main[data-page]")
        yield name, settled(page)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_stands_in_the_way_of_a_reader(visit: Visit, theme: str) -> None:
    """Labels, headings, roles, focus and a contrast of 4.5, as axe sees them."""
    start = visit("#/machines", color_scheme=theme)
    start.add_script_tag(content=axe())
    for name, page in each_page(start):
        violations: list[dict[str, Any]] = page.evaluate(
            "axe.run({resultTypes: ['violations']}).then(told => told.violations)"
        )
        faults = [(row["id"], row["nodes"][0]["html"][:200], row["nodes"][0]["failureSummary"]) for row in violations]
        assert faults == [], name


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(visit: Visit, width: int) -> None:
    for name, page in each_page(visit("#/machines", viewport={"width": width, "height": 844})):
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        nav = page.locator(".top nav")
        assert nav.evaluate("each => each.scrollWidth <= each.clientWidth"), (
            f"the names of all pages are seen from {name}"
        )


def test_the_theme_is_the_systems_until_one_is_chosen(visit: Visit) -> None:
    page = visit(color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.click("#theme")
    light = page.evaluate(background)
    assert (dark, light) == ("rgb(19, 21, 24)", "rgb(252, 252, 250)")
    page.reload()
    page.wait_for_selector("main[data-page]")
    assert page.evaluate(background) == light


def test_a_chart_is_drawn_anew_in_another_theme(visit: Visit) -> None:
    page = settled(visit(ROUTES["benchmark"]))
    color = "regress.live.chart.frame.lines[0].color"
    before = page.evaluate(color)
    page.click("#theme")
    assert page.evaluate(color) != before


def test_the_tab_key_goes_from_top_to_bottom(visit: Visit) -> None:
    page = visit()
    reached = []
    for _ in range(18):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("(document.activeElement.textContent || document.activeElement.id).trim().slice(0, 20)")
        )
    assert reached[:7] == [
        "Skip to content",
        "regress tensors",
        "Overview",
        "Changes",
        "Compare",
        "Machines",
        "Failures",
    ]
    assert "mem.cudatime_alloc" in reached
    assert len(set(reached)) > 11


def test_what_is_chosen_keeps_the_focus(visit: Visit) -> None:
    page = settled(visit(ROUTES["benchmark"]))
    page.focus("[data-chip=host_time]")
    page.keyboard.press("Enter")
    until(page, "regress.live.chart.frame.lines[0].line.metric === 'host_time'")
    assert page.evaluate("document.activeElement.dataset.chip") == "host_time"


def test_text_is_text(visit: Visit) -> None:
    """`visit` fails where a name was run. Here: it can be read as it is, and no element came out of it."""
    for name, page in each_page(visit("#/machines")):
        assert page.locator("main img, main script").count() == 0, name
        if name in ("overview", "changes"):
            assert "Fuse </script><script>window.hacked=1</script> \"quoted\" 'it'" in page.inner_text("main")


def test_one_file_holds_everything(history: Path, tmp_path: Path, visit: Visit) -> None:
    written = write_file(site_of(history), tmp_path / "alone" / "history.html", QUIET)
    page = visit(ROUTES["benchmark"], path=written.page)
    settled(page)
    assert page.inner_text("h1").startswith(made.SOFTMAX)
    assert [path.name for path in written.page.parent.iterdir()] == ["history.html"]


def test_data_that_is_not_there_says_what_to_do(pages: Path, tmp_path: Path, chromium: Any) -> None:
    (tmp_path / "index.html").write_text(pages.read_text())
    page = chromium.new_page()
    page.goto((tmp_path / "index.html").as_uri())
    assert "Keep the folder data/ beside index.html" in page.inner_text("main")
    page.close()
