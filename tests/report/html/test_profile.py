"""The page of a profile: what a reader sees, other exports dropped onto it, and broken ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from regress.commands.profile.exports import profile_exports
from regress.profiles import read
from regress.report.html import write_profile
from regress.report.html.page import HERE, PROFILE_SCRIPTS
from regress.session import Request
from tests.report.html.conftest import until
from tests.report.html.test_looks import axe
from tests.report.html.test_views import texts
from tests.traces.exports import HOSTILE, export

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

Visit = Callable[..., "Page"]
DROP = """
([name, text]) => {
  const dropped = new DataTransfer();
  dropped.items.add(new File([text], name, {type: "application/json"}));
  for (const kind of ["dragover", "drop"])
    window.dispatchEvent(new DragEvent(kind, {dataTransfer: dropped, bubbles: true, cancelable: true}));
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Exports of two sides, a page of one export and one of both sides."""
    made = tmp_path_factory.mktemp("profile")
    old = [str(export(made / f"old-{seed}.json", seed)) for seed in range(4)]
    new = [str(export(made / f"new-{seed}.json", seed + 10, slower=1.2)) for seed in range(4)]
    write_profile(profile_exports(Request(made), old[:1], ()), made / "one.html")
    write_profile(profile_exports(Request(made), new, old), made / "both.html")
    return made


@pytest.fixture
def one(visit: Visit, folder: Path) -> Callable[..., Page]:
    return lambda **options: visit("", path=folder / "one.html", **options)


@pytest.fixture
def both(visit: Visit, folder: Path) -> Callable[..., Page]:
    return lambda **options: visit("", path=folder / "both.html", **options)


def sections(page: Page) -> list[str]:
    return page.locator("main h2").all_inner_texts()


def test_the_first_screen_says_what_takes_the_time_and_what_binds_it(one: Callable[..., Page]) -> None:
    page = one()
    assert page.inner_text("h1").startswith("attention takes ")
    assert page.inner_text("h1").endswith(" of the time, compute-bound.")
    (first, *_) = texts(page.locator(".bottlenecks > li"))
    assert "attention" in first
    assert "such as flash_fwd_kernel" in first
    assert "let tensor cores do it" in first
    (time, busy, operations, memory) = texts(page.locator(".totals > div"))
    assert time.startswith("time of operations ")
    assert busy.startswith("device busy ")
    assert operations == "operations 6 210 calls"
    assert memory == "peak memory 3.00 MiB of the device"
    assert "The device is scripted" in page.inner_text(".banner")


def test_every_part_is_there(one: Callable[..., Page]) -> None:
    page = one()
    assert sections(page) == [
        "Bottlenecks",
        "Share of time",
        "Mean time and calls",
        "Where the span goes",
        "Memory over time",
        "Timeline",
        "Operations",
    ]
    assert page.locator(".bottlenecks > li").count() == 5
    shares, means, parts = (texts(page.locator(".bars").nth(at).locator("li")) for at in range(3))
    assert shares[0].startswith("attention ")
    assert any(mean.startswith("step ") and mean.endswith(" × 30") for mean in means)
    assert any(part.startswith("to_device copies 9") for part in parts)
    assert any(part.startswith("load CPU") for part in parts)
    assert page.locator(".plot canvas").count() == 1


def test_the_table_sorts_and_is_exported_in_base_units(one: Callable[..., Page]) -> None:
    page = one()
    table = page.locator("section:has(> h2:text-is('Operations'))")
    assert len(texts(table.locator("tbody tr"))) == 6
    table.locator("th button:text-is('calls')").click()
    calls = [int(text.split(" ")[-13]) for text in texts(table.locator("tbody tr")) if text.split(" ")[-13].isdigit()]
    assert calls == sorted(calls, reverse=True)
    with page.expect_download() as download:
        table.locator("button:text-is('JSON')").click()
    rows = json.loads(Path(download.value.path()).read_text())
    assert {row["operation"] for row in rows} == {"step", "load", "to_device", "attention", HOSTILE, "optimizer"}
    assert all(0 < row["mean_s"] < 1 for row in rows)


def test_the_timeline_is_walked_with_keys(one: Callable[..., Page]) -> None:
    page = one()
    chart = page.locator(".lanechart")
    assert "210 entries in" in (chart.get_attribute("aria-label") or "")
    assert page.inner_text(".said").startswith("210 entries over ")
    chart.focus()
    said = []
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        said.append(page.inner_text(".said"))
    assert len(set(said)) == 3
    assert any(text.startswith("step: ") and "batch=32" in text for text in said)
    whole = page.evaluate("regress.live.charts[1].view()")
    page.keyboard.press("+")
    near = page.evaluate("regress.live.charts[1].view()")
    assert near[1] - near[0] == pytest.approx((whole[1] - whole[0]) / 2)
    page.keyboard.press("Escape")
    assert page.evaluate("regress.live.charts[1].view()") == whole
    assert page.inner_text(".said").startswith("210 entries over ")


def test_the_timeline_is_looked_at_closer_by_dragging(one: Callable[..., Page]) -> None:
    page = one()
    page.locator(".lanechart canvas").scroll_into_view_if_needed()
    box = page.locator(".lanechart canvas").bounding_box()
    assert box is not None
    from_s, to_s = page.evaluate("regress.live.charts[1].view()")
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 30)
    page.mouse.up()
    near = page.evaluate("regress.live.charts[1].view()")
    assert near[0] == pytest.approx(from_s + 0.25 * (to_s - from_s), abs=0.01 * (to_s - from_s))
    assert near[1] == pytest.approx(from_s + 0.5 * (to_s - from_s), abs=0.01 * (to_s - from_s))
    page.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + 26)
    assert page.inner_text(".said").startswith("step: ")


def test_entries_stand_one_by_one(one: Callable[..., Page]) -> None:
    page = one()
    page.click("summary:has-text('210 entries one by one')")
    page.wait_for_selector(".entries tbody tr")
    rows = texts(page.locator(".entries tbody tr"))
    assert any(row.startswith("step ") and "batch=32" in row for row in rows[:2])


def test_two_sides_have_verdicts(both: Callable[..., Page]) -> None:
    page = both()
    assert page.inner_text("h1").startswith("3 operations regressed: attention(") or page.inner_text("h1").startswith(
        "2 operations regressed: attention("
    )
    rows = texts(page.locator("#comparison > .scroll tbody tr"))
    regressed = [row for row in rows if "▲ regressed" in row]
    assert any(row.startswith("attention(size=1024) gpu time") for row in regressed)
    assert all("+1" in row or "+2" in row for row in regressed if not row.startswith("step"))
    assert all("+9" in row for row in regressed if row.startswith("step"))
    page.click("#comparison summary")
    assert any(row.startswith("to_device") for row in texts(page.locator("#comparison details tbody tr")))


# -- other exports -------------------------------------------------------------------------------------------------------


def test_another_export_is_dropped_onto_it(one: Callable[..., Page], folder: Path) -> None:
    page = one()
    page.evaluate(DROP, ["new-1.json", (folder / "new-1.json").read_text()])
    until(page, "regress.live.data.document.operations[0].mean_s > 0 && !regress.live.data.plan")
    until(page, "document.getElementById('said').textContent === 'new-1.json is shown'")
    wanted = read(folder / "new-1.json")
    assert page.evaluate("regress.live.data.document.started_at") == wanted.started_at


def test_another_export_is_opened_by_keyboard_too(both: Callable[..., Page], folder: Path) -> None:
    page = both()
    page.set_input_files("#file", folder / "old-2.json")
    until(page, "document.getElementById('said').textContent === 'old-2.json is shown'")
    assert page.locator("#comparison").count() == 0


def spoiled(folder: Path, **changes: Any) -> str:
    return json.dumps({**asdict(read(folder / "old-0.json")), **changes})


def test_a_broken_export_is_answered_with_a_message(one: Callable[..., Page], folder: Path) -> None:
    page = one()
    operation = asdict(read(folder / "old-0.json").operations[0])
    wrong = {
        "{": "it is not JSON",
        "[]": "it is no object",
        "{}": 'its "schema" is null',
        '{"schema": "regress.profile/9"}': "it is of another version, regress.profile/9",
        spoiled(folder, entries=3): 'the profile: "entries" is not what it should be',
        spoiled(folder, operations=[{**operation, "mean_s": "x"}]): 'operation 1: "mean_s" is not what it should be',
        spoiled(folder, bottlenecks=[{}]): 'bottleneck 1: "operation" is missing',
    }
    before = page.inner_text("h1")
    for text, words in wrong.items():
        page.evaluate(DROP, ["x.json", text])
        until(page, "words => document.querySelector('.banner.bad')?.textContent.includes(words)", words)
        assert page.locator("[role=alert]").count() == 1
        assert page.inner_text(".banner.bad").startswith("x.json cannot be shown: ")
        assert page.inner_text("h1") == before


def test_an_export_without_entries_can_be_shown(one: Callable[..., Page], folder: Path) -> None:
    page = one()
    empty = replace(
        read(folder / "old-0.json"), entries=(), operations=(), bottlenecks=(), variants=(), entries_total=0
    )
    page.evaluate(DROP, ["empty.json", json.dumps(asdict(empty))])
    until(page, "document.querySelector('h1').textContent === 'Nothing was profiled.'")


# -- every reader --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_stands_in_the_way_of_a_reader(one: Any, both: Any, theme: str) -> None:
    for open_page in (one, both):
        page = open_page(color_scheme=theme)
        for summary in page.locator("summary").all():
            if summary.is_visible() and not summary.locator("xpath=..").get_attribute("open"):
                summary.click()
        page.add_script_tag(content=axe())
        faults = page.evaluate("axe.run({resultTypes: ['violations']}).then(told => told.violations)")
        assert [(row["id"], row["nodes"][0]["html"][:200], row["nodes"][0]["failureSummary"]) for row in faults] == []


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(one: Any, both: Any, width: int) -> None:
    for open_page in (one, both):
        page = open_page(viewport={"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_charts_follow_the_theme(one: Callable[..., Page]) -> None:
    page = one(color_scheme="light")
    picture = "document.querySelector('.lanechart canvas').toDataURL()"
    before = page.evaluate(picture)
    page.click("#theme")
    assert page.evaluate(picture) != before


def test_names_are_nothing_but_text(one: Callable[..., Page]) -> None:
    page = one()
    assert page.locator("main script").count() == 0
    assert HOSTILE in page.inner_text("main").replace("\n", "")


def test_every_script_of_the_page_is_there() -> None:
    assert all((HERE / "js" / f"{name}.js").is_file() for name in PROFILE_SCRIPTS)
    assert {path.stem for path in (HERE / "js" / "profile").iterdir()} == {
        name.partition("/")[2] for name in PROFILE_SCRIPTS if "/" in name
    }
