"""What a reader sees of each page, and what becomes of a click or a key."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from regress.pages import STATUSES
from tests.report.html import history as made
from tests.report.html.conftest import address, until

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

Visit = Callable[..., "Page"]


def benchmark(name: str, query: str = "") -> str:
    return f"#/b/{name}{query and '?' + query}"


def texts(element: Locator) -> list[str]:
    return [" ".join(text.split()) for text in element.all_inner_texts()]


def rows(page: Page) -> list[str]:
    return texts(page.locator("table.rows tbody tr"))


# -- the overview --------------------------------------------------------------------------------------------------------


def test_the_first_screen_says_what_is_worse_since_when_by_whom_and_how_sure(visit: Visit) -> None:
    page = visit()
    assert page.inner_text("h1") == "Two benchmarks are worse than before. One case stopped giving numbers."
    stopped = page.locator("h2:has-text('Stopped giving numbers') + p").inner_text()
    assert re.fullmatch(
        r"ops\.cudatime_oom on a100, h100 and l4 ✕ failed oom since \w+ change 2\d; last value at \w+: out of memory .*",
        stopped,
    )
    alloc, softmax = texts(page.locator(".events").nth(1).locator(".event"))
    assert "ops.Softmax.cudatime_fwd gpu time · 6 of 6 cases, +9." in softmax
    assert "on 2 of 3 machines (not l4)" in softmax
    assert "open for 6 measured commits" in softmax
    assert 'Zoë "Z" O\'Hara · 2026-01-20' in softmax
    assert "mem.cudatime_alloc peak memory · on 3 of 3 machines" in alloc
    assert "▲ +25.0 %" in alloc
    assert "512 MiB → 640 MiB" in alloc
    assert "one of 3 commits by" in alloc
    whisker = page.locator(".events").nth(1).locator(".event").nth(1).locator(".whisker")
    interval = whisker.get_attribute("aria-label") or ""
    assert interval.startswith("95 % interval +9.")
    assert interval.endswith("counts from +5 %")
    assert re.search(r"95 %: \+9\.\d … \+9\.\d %, counts from \+5 %", softmax)
    assert "counts from +10 %" in alloc
    assert "Measuring has stopped. 2 commits after" in page.inner_text(".banner")


def test_what_is_new_stands_first_tentative_or_not(visit: Visit) -> None:
    page = visit()
    assert texts(page.locator("h2"))[:3] == ["New since the night before", "Stopped giving numbers", "Open regressions"]
    (event,) = texts(page.locator(".events").first.locator(".event"))
    assert event.startswith("ops.cudatime_last gpu time · on 3 of 3 machines △ tentative")


def test_places_that_differ_stand_side_by_side(visit: Visit) -> None:
    page = visit("#/?q=softmax+4096+float32+-bfloat16&metric=gpu_time")
    (row,) = rows(page)
    assert row.endswith("▲ regressed 2/3 unchanged 1/3")


def test_a_machine_is_remembered(visit: Visit) -> None:
    page = visit()
    page.select_option("[data-filter=machine]", "l4")
    assert page.inner_text("h1").startswith("One benchmark is worse than before. ")
    assert "machine=l4" in address(page)
    page.goto(address(page).split("#")[0] + "#/regressions")
    page.reload()
    page.wait_for_selector("[data-page=regressions]")
    assert page.input_value("[data-filter=machine]") == "l4"


def test_the_search_knows_words_that_must_not_be_there(visit: Visit) -> None:
    page = visit("#/?metric=gpu_time")
    page.fill("#search", "softmax -float32 16384")
    (row,) = rows(page)
    assert row.startswith("ops.Softmax.cudatime_fwd(16384, 'bfloat16')")
    page.wait_for_url("**q=softmax+-float32+16384*")
    page.fill("#search", "no such thing")
    assert "Nothing matches" in page.inner_text(".empty")


def test_chips_choose_metric_and_status(visit: Visit) -> None:
    page = visit()
    page.click("[data-chip=undecided]")
    assert [row.split(" ")[0] for row in rows(page)] == [made.NOISY]
    assert "25.2 %" in rows(page)[0] or "?" in rows(page)[0]
    page.click("[data-chip=undecided]")
    page.click("[data-chip=host_time]")
    assert {row.split("host time")[0].split("(")[0].strip() for row in rows(page)} == {made.SOFTMAX, made.NORM}
    assert page.get_attribute("[data-chip=host_time]", "aria-pressed") == "true"


def test_numbers_are_sorted_as_numbers_with_what_is_missing_last(visit: Visit) -> None:
    page = visit("#/?metric=gpu_time,wall_time")
    page.click("th button:has-text('Latest')")
    assert page.get_attribute("th:has(button:has-text('Latest'))", "aria-sort") == "descending"
    values = page.evaluate("regress.index.rows.map(row => row.latest)")
    assert max(values) > 0
    assert rows(page)[0].startswith(made.OOM)  # 20 ms, before 3 ms and 740 us
    page.click("th button:has-text('Latest')")
    assert rows(page)[-1].startswith(made.OOM)
    page.click("th button:has-text('Change')")
    assert rows(page)[-1].split()[-2:] != []
    assert " none " in rows(page)[-1]


def test_a_row_opens_its_benchmark(visit: Visit) -> None:
    page = visit("#/?q=parse")
    page.click("table.rows a")
    page.wait_for_selector(".benchmark .uplot")
    assert page.inner_text("h1") == made.PARSE
    page.go_back()
    page.wait_for_selector("[data-page=overview]")
    assert page.input_value("#search") == "parse"


# -- a benchmark ---------------------------------------------------------------------------------------------------------


def chart(page: Page) -> Locator:
    page.wait_for_selector(".plot .u-over")
    return page.locator(".plot .u-over").first


def point(page: Page, at: int) -> tuple[float, float]:
    """Where the point of that number is on the screen."""
    x, y = page.evaluate(
        """at => {
          const {u, frame} = regress.live.chart, box = u.over.getBoundingClientRect();
          return [box.left + u.valToPos(frame.xs[at], "x"), box.top + u.valToPos(frame.lines[0].shown[at], "y")];
        }""",
        at,
    )
    return x, y


def test_the_chart_tells_what_the_pointer_is_at(visit: Visit) -> None:
    page = visit(benchmark(made.NORM, "at=h100|H100%2080GB|worktree-py3.12"))
    chart(page)
    page.mouse.move(*point(page, 8))
    told = " ".join(page.inner_text(".hover").split())
    assert "73." in told
    assert "us" in told
    assert "2 rounds" in told
    assert "to the one before" in told
    assert "change 8" in told
    assert "Ünal" in told


def test_change_points_stand_in_a_table_too(visit: Visit) -> None:
    page = visit(benchmark(made.NORM))
    chart(page)
    second, first = rows(page)
    assert "change 8" in first
    assert "▲ +12." in first
    assert "↩ recovered" in first
    assert "change 14" in second


def test_a_click_pins_a_second_one_compares_and_the_link_says_so(visit: Visit) -> None:
    page = visit(benchmark(made.SOFTMAX, "at=h100|H100%2080GB|worktree-py3.12"))
    chart(page)
    page.mouse.click(*point(page, 10))
    page.wait_for_selector(".pinned")
    assert page.locator(".strip circle").count() == 2
    page.mouse.click(*point(page, 22))
    told = " ".join(page.inner_text(".pinned").split())
    assert "B against A: ▲ +9." in told or "B against A: ▲ +8." in told
    assert "1 change point between them" in told
    assert "pin=" in address(page)
    assert "with=" in address(page)
    again = visit("#" + address(page).split("#", 1)[1])
    chart(again)
    assert " ".join(again.inner_text(".pinned").split()) == told
    again.keyboard.press("Escape")
    assert again.locator(".pinned").count() == 0
    assert "pin=" not in address(again)


def test_dragging_zooms_and_the_link_says_so(visit: Visit) -> None:
    page = visit(benchmark(made.SOFTMAX))
    chart(page)
    (left, y), (right, _) = point(page, 5), point(page, 12)
    page.mouse.move(left - 5, y)
    page.mouse.down()
    page.mouse.move(right + 5, y, steps=4)
    page.mouse.up()
    until(page, "regress.live.chart.u.scales.x.max < 13")
    zoomed = page.evaluate("[regress.live.chart.u.scales.x.min, regress.live.chart.u.scales.x.max]")
    assert zoomed == [4.5, 12.5]
    assert page.locator(".pinned").count() == 0  # a drag is no click
    again = visit("#" + address(page).split("#", 1)[1])
    chart(again)
    assert again.evaluate("[regress.live.chart.u.scales.x.min, regress.live.chart.u.scales.x.max]") == zoomed
    again.click("text=whole history")
    assert again.evaluate("regress.live.chart.u.scales.x.min") == -0.5


def test_gaps_are_gaps_and_commits_without_any_result_are_none(visit: Visit) -> None:
    page = visit(benchmark(made.OOM))
    chart(page)
    shown = page.evaluate("regress.live.chart.frame.lines[0].shown.map(each => each === null ? 'gap' : typeof each)")
    assert shown == ["number"] * 23 + ["gap"] * 3
    page.evaluate("regress.live.chart.u.setCursor({left: regress.live.chart.u.valToPos(25, 'x'), top: 5})")
    assert "failed oom" in page.inner_text(".hover")


def test_axes_by_date_logarithmic_and_relative(visit: Visit) -> None:
    page = visit(benchmark(made.NORM))
    chart(page)
    page.click("text=by date")
    page.click("text=log axis")
    page.click("text=relative to v1.1")
    assert "x=date" in address(page)
    scales = page.evaluate("(u => [u.scales.x.time, u.scales.y.distr, u.data[3][0].toFixed(2)])(regress.live.chart.u)")
    assert scales == [True, 3, "0.89"]  # v1.1 is in the slow stretch


def test_other_metrics_and_parameters_stand_beside_it(visit: Visit) -> None:
    page = visit(benchmark(made.SOFTMAX))
    chart(page)
    assert texts(page.locator(".beside button")) == ["host time", "peak memory"]
    figure = page.locator(".sizes svg").get_attribute("aria-label") or ""
    assert "float32" in figure
    assert "bfloat16" in figure
    assert texts(page.locator(".legend span"))[1:] == ["● bfloat16", "■ float32"]
    page.select_option("[data-param=size]", "16384")
    assert "(16384, 'bfloat16')" in page.inner_text("h1")
    page.click("[data-chip=peak_memory]")
    assert "peak memory" in texts(page.locator(".chip[aria-pressed=true]"))


def test_several_machines_in_one_chart(visit: Visit) -> None:
    page = visit(benchmark(made.SOFTMAX, "at=all"))
    chart(page)
    labels = page.evaluate("regress.live.chart.frame.lines.map(own => own.label)")
    assert labels == ["a100", "h100", "l4"]
    assert len(set(page.evaluate("regress.live.chart.frame.lines.map(own => own.color)"))) == 3


def test_a_change_of_driver_is_a_tick(visit: Visit) -> None:
    page = visit(benchmark(made.ADD, "at=h100|H100%2080GB|worktree-py3.12"))
    chart(page)
    assert page.evaluate("regress.live.chart.frame.lines[0].line.ticks") == [[10, "driver 570 → 580"]]
    assert len(page.evaluate("regress.live.chart.frame.lines[0].line.levels")) == 2


def test_the_chart_as_a_table(visit: Visit) -> None:
    page = visit(benchmark(made.PARSE))
    chart(page)
    page.click("text=The chart as a table")
    table = page.locator("details table.rows tbody tr")
    table.last.wait_for()
    assert table.count() == 26
    assert "change 27" in table.first.inner_text()


# -- the other pages -----------------------------------------------------------------------------------------------------


def test_comparing_two_commits(visit: Visit) -> None:
    page = visit("#/compare?a=v1.1&b=last")
    told = page.inner_text("main")
    verdicts = {row.split()[0].split("(")[0]: row.split()[-1] for row in rows(page)}
    assert verdicts == {
        made.SOFTMAX: "regressed",
        made.ALLOC: "regressed",
        made.LAST: "tentative",
        made.PARSE: "improved",
        made.NORM: "improved",
        made.OOM: "failed",
        made.NOISY: "undecided",
    }
    assert "regress compare" in told
    page.click("text=swap")
    assert {row.split()[-1] for row in rows(page) if made.PARSE in row} == {"regressed"}
    assert "a=last" in address(page)
    page.fill("#commit-a", "nonsense")
    page.press("#commit-a", "Enter")
    assert "No commit with results is called nonsense" in page.inner_text(".banner")


def test_levels_of_another_way_are_not_compared(visit: Visit) -> None:
    page = visit("#/compare?a=first&b=last&machine=h100&status=incomparable")
    (row,) = rows(page)
    assert row.startswith(made.ADD)
    assert row.endswith("- ≠ incomparable")


def test_every_change_is_one_row_with_its_commits(visit: Visit) -> None:
    page = visit("#/regressions?moved=regressed")
    events = texts(page.locator(".event"))
    assert [event.split()[0] for event in events] == [made.ALLOC, made.SOFTMAX, made.LAST, made.NORM]
    page.click("summary")
    assert len(texts(page.locator(".suspects li"))) == 3
    page.locator(".event").first.locator("text=bisect").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f"regress bisect {made.ALLOC} ")
    assert page.inner_text("#said").startswith("copied: regress bisect")


def test_machines_and_what_tells_them_apart(visit: Visit) -> None:
    page = visit("#/machines")
    assert [row.split()[0] for row in rows(page)[:5]] == ["a100", "cpu-box", "cpu-box", "h100", "l4"]
    facts = page.locator("table").nth(1)
    at = texts(facts.locator("thead th")).index("driver")
    rows_of = [texts(row.locator("th, td")) for row in facts.locator("tbody tr").all()]
    assert {row[0]: row[at] for row in rows_of} == {"a100": "580", "cpu-box": "-", "h100": "580", "l4": "570"}
    told = page.inner_text("main")
    assert "1 commit with results is not in this report: not on main, or before it begins." in told
    assert "history/h100/" in told
    assert "restore it with git checkout" in told


def test_failures_with_their_words(visit: Visit) -> None:
    page = visit("#/failures")
    assert page.inner_text("h1") == "3 cases fail."
    (row,) = rows(page)
    assert "a100, h100 and l4" in row, "what fails alike in several places is one row"
    page.locator("summary").first.click()
    assert "ops.py:7" in page.locator("pre").first.inner_text()


def test_an_unknown_page_and_an_unknown_benchmark(visit: Visit) -> None:
    assert visit("#/nowhere").inner_text("h1") == "There is no such page"
    assert visit(benchmark("no.such")).inner_text("h1") == "There is no benchmark of that name"


# -- keyboard and export -------------------------------------------------------------------------------------------------


def test_the_keyboard_finds_a_row_and_opens_it(visit: Visit) -> None:
    page = visit("#/?metric=wall_time")
    page.keyboard.press("/")
    page.keyboard.type("parse")
    assert len(rows(page)) == 1
    page.keyboard.press("Escape")
    for key in "jjjk":
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    page.wait_for_selector(".benchmark")
    page.keyboard.press("o")
    page.wait_for_selector("[data-page=overview]")


def test_the_keyboard_moves_along_a_chart(visit: Visit) -> None:
    page = visit(benchmark(made.NORM))
    chart(page)
    for key, at in (("n", 8), ("n", 14), ("p", 8), ("ArrowRight", 9), ("ArrowLeft", 8)):
        page.keyboard.press(key)
        assert page.evaluate("regress.live.chart.u.cursor.idx") == at, key
    page.keyboard.press("Enter")
    page.wait_for_selector(".pinned")
    page.keyboard.press("l")
    assert "log=1" in address(page)
    page.keyboard.press("c")
    assert page.evaluate("navigator.clipboard.readText()") == f"regress check HEAD~1 -b {made.NORM}"
    page.keyboard.press("?")
    assert "next, previous change" in page.inner_text("dialog")


@pytest.mark.parametrize("ending", ["csv", "json", "md"])
def test_the_table_in_view_is_exported(visit: Visit, ending: str, tmp_path: Path) -> None:
    page = visit("#/?q=time_parse&metric=wall_time")
    label = {"csv": "CSV", "json": "JSON", "md": "Markdown"}[ending]
    with page.expect_download() as download:
        page.click(f".exports button:text-is('{label}')")
    assert download.value.suggested_filename == f"benchmarks.{ending}"
    download.value.save_as(tmp_path / "out")
    text = (tmp_path / "out").read_bytes().decode()
    latest = page.evaluate(f"regress.index.rows.find(row => row.name === '{made.PARSE}').latest")
    if ending == "json":
        (row,) = json.loads(text)
        assert (row["benchmark"], row["status"], row["latest"]) == (made.PARSE, "improved", latest)
    elif ending == "csv":
        head, row, _ = text.split("\r\n")
        assert head == "benchmark,metric,latest,since,change,noise,status,places"
        assert row.split(",")[:3] == [made.PARSE, "wall_time", str(latest)]
    else:
        assert text.splitlines()[1] == "| --- | --- | --- | --- | --- | --- | --- | --- |"
        assert text.splitlines()[2].startswith("| cpu.time\\_parse |")


def test_a_chart_is_saved_as_a_picture(visit: Visit, tmp_path: Path) -> None:
    """With a name for each line, in the colours of the page: what is drawn over several places is wider than nothing."""
    page = visit(f"#/b/{made.NORM}?at=all", color_scheme="dark")
    page.wait_for_selector(".plot .u-over")
    with page.expect_download() as download:
        page.click("button:text-is('save as PNG')")
    assert download.value.suggested_filename == f"{made.NORM} gpu_time.png"
    download.value.save_as(tmp_path / "out.png")
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG\r\n")
    colours = """() => {
      const {chart} = regress.live, canvas = regress.picture(chart, "title", "about"), {width, height} = canvas;
      const seen = canvas.getContext("2d").getImageData(0, 0, width, height).data, found = new Set();
      for (let at = 0; at < seen.length; at += 4)
        found.add("#" + [0, 1, 2].map(k => seen[at + k].toString(16).padStart(2, "0")).join(""));
      const wanted = [regress.color("--bg"), regress.color("--ink"), ...chart.frame.lines.map(each => each.color)];
      return [width > chart.u.width, height > chart.u.height, wanted.filter(each => !found.has(each))];
    }"""
    assert page.evaluate(colours) == [True, True, []]


def test_what_is_new_since_the_last_visit(visit: Visit) -> None:
    page = visit()
    assert "your last visit" not in page.inner_text(".lede")
    remembered = page.evaluate("localStorage.getItem('regress seen tensors')")
    assert remembered.count("\n") == 3, "three changes, and a case that stopped giving numbers"
    page.evaluate("text => localStorage.setItem('regress seen tensors', text)", remembered.split("\n")[0])
    page.reload()
    page.wait_for_selector("main[data-page]")
    assert "1 new since your last visit" in page.inner_text(".lede")
    assert texts(page.locator("h2"))[:2] == ["New since your last visit", "Open regressions"]
    alloc, last = texts(page.locator(".events").first.locator(".event"))
    assert alloc.startswith("mem.cudatime_alloc")
    assert last.startswith("ops.cudatime_last")
    page.reload()
    page.wait_for_selector("main[data-page]")
    assert texts(page.locator("h2"))[:3] == ["Stopped giving numbers", "Open regressions", "Measure again"]


def test_counts_are_the_same_on_every_page(visit: Visit) -> None:
    """What fails or is worse is counted by the case in its place, wherever it is counted."""
    lede = visit().inner_text(".lede")
    page = visit("#/machines")
    heads = [element.inner_text() for element in page.locator("table").first.locator("thead th").all()]
    sums = [0] * len(heads)
    for row in page.locator("table").first.locator("tbody tr").all():
        for at, cell in enumerate(row.locator("th, td").all()):
            digits = (
                re.sub(r"\D", "", cell.inner_text())
                if heads[at] in ("Cases", "Regressed", "Failed", "Undecided")
                else ""
            )
            sums[at] += int(digits or 0)
    total = dict(zip(heads, sums, strict=True))
    assert f"{total['Cases']} cases in 5 places" in lede
    for word in ("Regressed", "Failed", "Undecided"):
        assert f"{total[word]} {word.lower()}" in lede
    assert visit("#/failures").inner_text("h1") == f"{total['Failed']} cases fail."


def words_counted(text: str) -> dict[str, int]:
    return {word: int(n) for n, word in re.findall(r"(\d+) ([a-z]+)", text) if word in STATUSES}


def test_what_a_page_counts_is_what_it_lists(visit: Visit) -> None:
    page = visit()
    shown, _ = re.findall(r"\d+", page.inner_text(".filters .right"))
    page.keyboard.press("End")
    until(page, f"document.querySelectorAll('table.rows tbody tr').length === {shown}")
    worst: dict[str, str] = page.evaluate(
        "Object.fromEntries([...regress.index.rows].filter(row => row.gates)"
        ".sort((a, b) => regress.severity(b.status) - regress.severity(a.status))"
        ".map(row => [`${row.name} ${row.params} ${row.place}`, row.status]))"
    )
    assert words_counted(page.inner_text(".lede").partition(" cases")[2]) == Counter(worst.values())
    page = visit("#/regressions")
    assert page.inner_text(".filters .right") == f"{page.locator('.event').count()} of 6"
    page = visit(f"#/compare?a=first&b=last&status={','.join(STATUSES)}")
    counted = words_counted(page.locator(".lede").last.inner_text())
    page.keyboard.press("End")
    until(page, f"document.querySelectorAll('tbody tr').length === {sum(counted.values())}")
    assert Counter(text.split()[-1] for text in page.locator("tbody .tag").all_inner_texts()) == counted


def test_a_change_is_opened_on_the_page_of_its_benchmark(visit: Visit) -> None:
    """Who may be to blame, and the commands: of what is open, or of the change that is clicked."""
    page = visit(benchmark(made.ALLOC, "metric=peak_memory"))
    (card,) = page.locator("#change .event").all()
    assert "The 3 commits" in card.inner_text()
    buttons = [element.inner_text() for element in card.locator(".actions button").all()]
    assert buttons == ["bisect", "explain", "check", "ack"]
    assert "to be run on " in (card.locator(".actions button").nth(1).get_attribute("title") or "")
    page = visit(benchmark(made.NORM, "at=h100|H100%2080GB|worktree-py3.12"))
    assert page.locator("#change").count() == 0
    chart(page)
    page.mouse.click(*point(page, 8))
    card = page.locator("#change .event")
    assert "recovered" in card.inner_text()
    assert "bisect" not in card.locator(".actions").inner_text(), "one commit is no range"
