"""Implementations side by side on the page of their benchmark: at which commit, which is the fastest where, and by keyboard."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from regress.report.html import write_folder
from tests.report.html import sides as made
from tests.report.html.conftest import QUIET, address, site_of, until
from tests.report.html.test_looks import axe
from tests.report.html.test_views import texts

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

Visit = Callable[..., "Page"]


@pytest.fixture(scope="session")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a history of implementations."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
        patch.setenv("REGRESS_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        root = made.create(tmp_path_factory.mktemp("sides") / "tensors")
        return write_folder(site_of(root), tmp_path_factory.mktemp("pages") / "report", QUIET).page


@pytest.fixture
def show(visit: Visit, beside: Path) -> Visit:
    def go(name: str = made.NORM, query: str = "", **options: Any) -> Page:
        page = visit(f"#/b/{name}{query and '?' + query}", path=beside, **options)
        page.wait_for_selector(".plot .u-over")
        return page

    return go


def table(page: Page) -> list[str]:
    return texts(page.locator(".sides table.rows tbody tr"))


def test_the_fastest_is_named_at_each_size_and_where_it_changes(show: Visit) -> None:
    page = show()
    assert page.inner_text(".sides h2") == "Implementations by n"
    assert texts(page.locator(".sides figcaption")) == ["dtype float32", "dtype bfloat16"]
    told = texts(page.locator(".crossover"))
    assert told[0] == "Fastest: no difference shown between triton and compiled up to 1024, torch from 4096"
    assert told[1].endswith("torch from 16384")
    assert page.locator(".sides-plot canvas").count() == 2
    shown = table(page)
    assert len(shown) == 10
    assert shown[0].startswith("float32 256 no difference shown: ")
    assert shown[0].endswith("skipped")
    assert shown[4].startswith("float32 65536 torch then triton +8")
    assert shown[4].endswith("oom skipped")


def test_every_release_can_be_chosen_and_the_link_says_so(show: Visit) -> None:
    page = show()
    choice = page.locator("[data-param=side]")
    (newest, *older) = choice.locator("option").all_inner_texts()
    assert newest.endswith(", the newest")
    assert [text.split()[0] for text in older] == ["v1.1", "v1.0"]
    choice.focus()
    choice.select_option(index=2)
    page.wait_for_selector(".sides table.rows")
    assert table(page)[0].startswith("float32 256 compiled then torch +")
    assert (
        texts(page.locator(".crossover"))[0]
        == "Fastest: compiled up to 1024, torch from 4096 to 16384, only torch from 65536"
    )
    assert "side=" in address(page)
    assert page.evaluate("document.activeElement.dataset.param") == "side"
    again = show(query=address(page).split("?", 1)[1])
    assert table(again)[0].startswith("float32 256 compiled then torch +")


def test_a_wide_span_of_sizes_is_logarithmic_and_every_time_is_drawn(show: Visit) -> None:
    page = show()
    drawn = page.evaluate(
        """async () => {
          const shard = regress.shards.get(regress.state.name);
          const panel = regress.sides.panelsOf(shard.sides[0])[0], node = document.createElement("div");
          document.querySelector(".sides").append(node);
          const chart = regress.sides.drawn(node, panel, shard.sides[0], () => {}), {u} = chart;
          await new Promise(requestAnimationFrame);
          const told = [u.scales.x.distr, u.scales.y.distr, u.data.map(column => [...column]), u.scales.y.min, u.scales.y.max];
          chart.destroy();
          return told;
        }"""
    )
    x, y, (sizes, torch, triton, compiled, cupy), low, high = drawn
    assert (x, y) == (3, 3)
    assert sizes == list(made.SIZES)
    assert compiled[-1] is None
    assert cupy == [None] * 5
    times = [row for row in (*torch, *triton, *compiled) if row is not None]
    assert len(times) == 14
    assert low < min(times) < max(times) < high


def test_the_strip_covers_every_size_once(show: Visit) -> None:
    faults = show().evaluate(
        """() => {
          const [sides] = regress.shards.get(regress.state.name).sides;
          return regress.sides.panelsOf(sides).map(panel => regress.sides.stretches(panel.combinations, sides.names));
        }"""
    )
    for stretches in faults:
        assert stretches[0]["first"] == 0
        assert stretches[-1]["last"] == len(made.SIZES) - 1
        for one, other in itertools.pairwise(stretches):
            assert other["first"] == one["last"] + 1
            assert other["labels"] != one["labels"]
    assert [row["name"] for row in faults[0]] == ["", "torch"]
    assert faults[0][0]["labels"][0] == "triton, compiled: no difference"


def test_the_pointer_is_told_the_times_and_a_click_shows_their_history(show: Visit) -> None:
    page = show()
    over = page.locator(".sides-plot .u-over").first
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] - 20, box["y"] + box["height"] / 2)
    told = " ".join(page.inner_text(".sides-plot .hover:visible").split())
    assert told.startswith("n 65536 · torch is the fastest ● torch ")
    assert "■ triton" in told
    assert "▲ compiled oom" in told
    page.mouse.click(box["x"] + box["width"] - 20, box["y"] + 2)
    until(page, "document.querySelector('h1').innerText.includes(\"('triton', 'float32', 65536)\")")


def test_the_table_leads_to_each_history_by_keyboard(show: Visit) -> None:
    page = show()
    region = page.locator(".sides .scroll")
    assert region.get_attribute("tabindex") == "0"
    region.focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.sides table') !== null")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('h1').innerText.includes(\"('torch', 'float32', 256)\")")
    page.wait_for_selector(".sides table.rows")


def test_without_a_size_there_is_a_table_alone(show: Visit) -> None:
    page = show(made.STEP)
    assert page.inner_text(".sides h2") == "Implementations"
    assert page.locator(".sides canvas").count() == 0
    (row,) = table(page)
    assert row.startswith("fused then foreach +")


def test_other_metrics_and_other_parameters_have_the_newest_values(show: Visit) -> None:
    page = show(query="metric=peak_memory")
    assert page.locator(".sides").count() == 0
    assert page.inner_text(".sizes h2") == "Newest values by n"
    page = show(made.PLAIN)
    assert page.locator(".sides").count() == 0
    assert page.inner_text(".sizes h2") == "Newest values by n"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_stands_in_the_way_of_a_reader(show: Visit, theme: str, width: int) -> None:
    page = show(color_scheme=theme, viewport={"width": width, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.add_script_tag(content=axe())
    faults: list[dict[str, Any]] = page.evaluate(
        "axe.run('.sides', {resultTypes: ['violations']}).then(told => told.violations)"
    )
    assert [(row["id"], row["nodes"][0]["html"][:200]) for row in faults] == []
    label = page.locator(".sides-plot").first.get_attribute("aria-label") or ""
    assert label.endswith("torch from 4096; the same data is in a table below")
