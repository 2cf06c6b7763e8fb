"""What the pages say of histories that are made for one thing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from regress.model import NEGATIVE
from regress.report.html import write_folder
from tests.pages.made import QUIET, Made, Values, noisy
from tests.report.html.conftest import until

if TYPE_CHECKING:
    from playwright.sync_api import Page

    Visit = Callable[..., Page]

pytestmark = pytest.mark.usefixtures("visit")


def pages_of(made: Made) -> Path:
    return write_folder(made.site(), made.root / "report", QUIET).page


def test_what_changed_in_no_known_direction_has_a_tone_of_its_own(visit: Visit, tmp_path: Path) -> None:
    made = Made(tmp_path / "p", 24).record({"x.track_score": noisy((12, 1.0), (12, 25.0))}, unit="score")
    page = visit(path=pages_of(made))
    assert page.inner_text("h1") == "Nothing is known to be worse; 1 changed, direction not declared."
    assert "1 changed" in page.inner_text(".lede")
    (bar,) = page.locator(".timeline i.parts").all()
    assert [element.get_attribute("class") for element in bar.locator("b").all()] == ["moved"]
    assert page.locator("tbody .tag.moved").inner_text() == "◆ changed"
    assert page.locator(".worse, .better").count() == 0


@pytest.mark.parametrize(
    ("values", "title"),
    [
        (
            {"x.time_f": [1e-3], "x.time_g": [2e-3]},
            "Nothing can be judged yet: it takes at least 3 more commits with results.",
        ),
        ({"x.time_f": noisy((4, 1e-3))}, "Nothing is worse than before."),
        (
            {"x.time_f": noisy((4, 1e-3)), "x.time_g": [None, None, 1e-3, 1e-3]},
            "Nothing is known to be worse; 1 of 2 cases cannot be judged yet: it takes at least 2 more commits with results.",
        ),
        (
            {"x.time_f": noisy((8, 1e-3)), "x.time_g": noisy((8, 1e-3), noise=0.3)},
            "Nothing is known to be worse; 1 of 2 cases is undecided.",
        ),
        ({"x.time_g": noisy((8, 1e-3), noise=0.3)}, "Nothing can be judged: every measured case is undecided."),
        ({"x.time_f": [float("nan")] * 4}, "Nothing gives a number."),
        (
            {"x.time_f": noisy((8, 1e-3)), "x.time_g": noisy((8, 1e-3), (1, 1.3e-3))[1:]},
            "Nothing is known to be worse; 1 benchmark may be: measure again.",
        ),
    ],
)
def test_the_first_sentence_says_no_more_than_can_be_told(
    visit: Visit, tmp_path: Path, values: Mapping[str, Values], title: str
) -> None:
    n = len(next(iter(values.values())))
    page = visit(path=pages_of(Made(tmp_path / "p", n).record(values)))
    assert page.inner_text("h1") == title


def test_of_a_history_that_is_too_short_nothing_is_claimed_anywhere(visit: Visit, tmp_path: Path) -> None:
    path = pages_of(Made(tmp_path / "p", 2).record({"x.time_f": [1e-3, 1e-3]}))
    assert "1 series (a case and a metric in one place): 1 undecided." in visit("#/compare", path=path).inner_text(
        "main"
    )
    assert "No change is found in this history." in visit("#/regressions", path=path).inner_text("main")
    assert "cannot be judged" not in visit("#/machines", path=path).inner_text("main")


def test_what_is_skipped_is_counted_once_among_failures(visit: Visit, tmp_path: Path) -> None:
    nan = float("nan")
    values = {"x.time_f": [1e-3, 1e-3, nan], "x.time_g": [1e-3, 1e-3, nan], "x.time_h": [1e-3] * 3}
    page = visit("#/failures", path=pages_of(Made(tmp_path / "p", 3).record(values)))
    assert page.inner_text("h1") == "2 cases that had a value are skipped."
    assert {element.inner_text() for element in page.locator("tbody .tag").all()} == {"– skipped"}
    page.fill("#search", "nowhere")
    until(page, "document.querySelector('.empty')?.textContent === 'Nothing matches.'")


def test_comparing_shows_what_was_measured(visit: Visit, tmp_path: Path) -> None:
    """Of values that are far off their level it says so, and claims nothing; ratio and values agree."""
    values = {"x.time_f": [277e-6, 276e-6, *noisy((20, 998e-6)), 275e-6], "x.time_g": [3.6e-3, *noisy((22, 1e-3))]}
    page = visit(
        "#/compare?status=undecided,improved,unchanged", path=pages_of(Made(tmp_path / "p", 23).record(values))
    )
    cells = [[element.inner_text() for element in row.locator("td").all()] for row in page.locator("tbody tr").all()]
    assert [row[1:] for row in cells] == [
        ["3.60 ms", "1.00 ms", "▼ -72.2 %", "? undecided"],
        ["277 us", "275 us", "▼ -0.7 %", "unchanged"],
    ]
    title = page.locator(".tag", has_text="undecided").last.get_attribute("title") or ""
    assert title.endswith("was measured +260 % off its level")
    assert "Geometric mean: -0.7 % over 1 time" in page.inner_text(".lede >> nth=1")


def test_a_release_of_a_branch_of_its_own_is_told_with_what_was_measured(visit: Visit, tmp_path: Path) -> None:
    made = Made(tmp_path / "p", 24).record({"x.time_f": noisy((24, 1e-3))})
    made.git("checkout", "-q", "-b", "maintenance", made.shas[12])
    made.git("commit", "-q", "--allow-empty", "-m", "prepare")
    made.git("tag", "v1.0")
    made.git("checkout", "-q", "main")
    page = visit(path=pages_of(made))
    where = f"since v1.0 ({made.shas[12][:8]}, the newest measured commit before its branch left main)"
    assert where in page.inner_text(".lede")
    page = visit("#/compare?a=v1.0", path=pages_of(made))
    assert made.shas[12][:8] in page.inner_text(".pins")


def test_what_has_one_cause_is_one_card(visit: Visit, tmp_path: Path) -> None:
    """Thirteen benchmarks that one commit made slower, and one that another did: two cards, the largest change first."""
    slow = {f"x.time_{at:02}": noisy((12, 1e-3), (12, 1e-3 * (1.1 + at / 100))) for at in range(13)}
    made = Made(tmp_path / "p", 24).record({**slow, "a.time_other": noisy((18, 1e-3), (6, 1.15e-3))})
    first, second = visit(path=pages_of(made)).locator(".events").first.locator(".event").all()
    assert first.inner_text().startswith("x.time_12")
    assert "and 12 more changes in the same commits" in first.inner_text()
    assert first.locator("details.also li").count() == 12
    assert second.inner_text().startswith("a.time_other")


def test_tables_begin_with_what_is_worst_and_not_with_a_name(visit: Visit, tmp_path: Path) -> None:
    """On the overview, in Compare and among changes: regressions before improvements, the largest first; a row a cause."""
    values = {
        "a.time_better": noisy((12, 1e-3), (12, 0.5e-3)),
        "b.time_little": noisy((12, 1e-3), (12, 1.1e-3)),
        "c.time_much": noisy((18, 1e-3), (6, 1.5e-3)),
        "d.time_same": noisy((24, 1e-3)),
    }
    worst_first = ["c.time_much", "b.time_little", "a.time_better"]
    path = pages_of(Made(tmp_path / "p", 24).record(values))
    names = "tbody th a"
    assert [element.inner_text() for element in visit(path=path).locator(names).all()] == [*worst_first, "d.time_same"]
    assert [
        element.inner_text() for element in visit("#/compare?a=first", path=path).locator(names).all()
    ] == worst_first
    page = visit("#/regressions", path=path)
    assert [element.inner_text() for element in page.locator(".event > div > a.name").all()] == worst_first


def test_the_list_of_changes_has_a_row_a_cause(visit: Visit, tmp_path: Path) -> None:
    slow = {f"x.time_{at:02}": noisy((12, 1e-3), (12, 1e-3 * (1.1 + at / 100))) for at in range(5)}
    page = visit("#/regressions?state=open", path=pages_of(Made(tmp_path / "p", 24).record(slow)))
    assert page.locator(".event").count() == 1
    assert page.locator(".filters .right").inner_text() == "5 of 5 in 1 row"


def test_many_places_have_a_legend_and_machines_that_come_and_go_are_told(visit: Visit, tmp_path: Path) -> None:
    made = Made(tmp_path / "p", 24)
    for at in range(12):
        made.record(
            {"x.time_f": [None] * 2 * at + [1e-3 * (at + 1)] * 2 + [None] * (22 - 2 * at)},
            machine=f"runner-{at}",
            facts={"cpu": f"CPU {at % 2}"},
        )
    path = pages_of(made)
    page = visit("#/b/x.time_f?at=all", path=path)
    page.wait_for_selector(".legend button")
    buttons = page.locator(".legend button")
    colours = [element.get_attribute("style") for element in page.locator(".legend .dot").all()]
    assert (buttons.count(), len(set(colours))) == (12, 12)
    assert page.evaluate("regress.live.chart.frame.lines.length") == 12
    buttons.nth(3).click()
    assert page.evaluate("regress.live.chart.frame.lines.length") == 11
    assert buttons.nth(3).get_attribute("aria-pressed") == "false"
    page = visit("#/machines", path=path)
    assert "12 of 12 places cannot be judged. They have fewer than 4 results each, in 24 commits." in page.inner_text(
        "main"
    )
    facts = page.locator("table").nth(1)
    assert [element.inner_text() for element in facts.locator("thead th").all()] == ["Machine", "cpu"]
    assert facts.locator("tbody tr").count() == 12


def test_zooming_fits_the_axis_to_what_is_seen(visit: Visit, tmp_path: Path) -> None:
    made = Made(tmp_path / "p", 40).record({"x.time_f": noisy((20, 1e-3), (20, 50e-3))})
    page = visit(f"#/b/x.time_f?z={made.shas[2]}..{made.shas[15]}", path=pages_of(made))
    page.wait_for_selector(".plot .u-over")
    assert page.evaluate("regress.live.chart.u.scales.y.max") < 2e-3


def test_the_header_searches_from_any_page(visit: Visit, tmp_path: Path) -> None:
    made = Made(tmp_path / "p", 8).record({"x.time_f": noisy((8, 1e-3)), "y.time_g": noisy((8, 1e-3))})
    page = visit("#/machines", path=pages_of(made))
    page.fill("#find input", "time_g")
    page.keyboard.press("Enter")
    page.wait_for_selector("main[data-page=overview]")
    assert [element.inner_text() for element in page.locator("tbody th a").all()] == ["y.time_g"]


def test_all_rows_come_in_one_scroll(visit: Visit, tmp_path: Path) -> None:
    values = noisy((8, 1e-3))
    made = Made(tmp_path / "p", 8).record({f"x.time_{at:03}": values for at in range(300)})
    page = visit(path=pages_of(made))
    assert page.locator("tbody tr").count() < 100
    page.keyboard.press("End")
    until(page, "document.querySelectorAll('tbody tr').length === 300")


def test_what_moved_at_once_is_one_card_that_asks_for_the_machine(visit: Visit, tmp_path: Path) -> None:
    names = [f"{module}.time_{word}" for module in ("io", "nn", "ops") for word in "ab"]
    steady, step = noisy((40, 1e-3)), noisy((25, 1e-3), (15, 1.2e-3))
    made = Made(tmp_path / "p", 40).record(dict.fromkeys(names, steady) | {"io.time_z": step}, machine="one")
    made.record(dict.fromkeys((*names, "io.time_z"), step), machine="two")
    path = pages_of(made)
    page = visit(path=path)
    assert page.inner_text("h1") == "One benchmark is worse than before. Six moved at once: was it the machine?"
    (alone, shift) = sorted((element.inner_text() for element in page.locator(".event").all()), key=len)
    assert "io.time_z" in alone
    assert "6 benchmarks moved at once on two" in shift
    assert "6 of them were measured on other machines too and did not move there: was it the machine?" in shift
    assert "and 5 more changes in the same commits" in shift
    assert "Ada" not in shift, "nobody is blamed"
    page = visit("#/b/nn.time_a?at=two||py3.12", path=path)
    assert "6 benchmarks moved at once on two" in page.inner_text("#change")
    page = visit("#/regressions", path=path)
    assert page.locator(".event").count() == 2


def test_of_what_moved_at_once_the_first_sentence_counts_what_is_still_worse(visit: Visit, tmp_path: Path) -> None:
    names = [f"{module}.time_{word}" for module in ("io", "nn", "ops") for word in "ab"]
    steady, step = noisy((40, 1e-3)), noisy((20, 1e-3), (20, 1.2e-3))
    back = noisy((20, 1e-3), (10, 1.2e-3), (10, 1e-3))
    made = Made(tmp_path / "p", 40).record(dict.fromkeys(names, steady), machine="one")
    made.record({**dict.fromkeys(names, step), "io.time_a": back, "nn.time_b": back}, machine="two")
    page = visit(path=pages_of(made))
    assert page.inner_text("h1") == "Four moved together with others: was it the machine?"


def test_without_a_repository_what_nobody_knows_leaves_no_gap(visit: Visit, tmp_path: Path) -> None:
    """Neither the subject of a commit nor its author."""
    made = Made(tmp_path / "p", 24).record({"x.time_f": noisy((12, 1e-3), (12, 1.2e-3))})
    config = made.root / "asv.conf.json"
    config.write_text(config.read_text().replace('"repo": "."', '"repo": "nowhere"'))
    path = pages_of(made)
    for route in ("#/", "#/compare", "#/b/x.time_f"):
        told = " ".join(visit(route, path=path).inner_text("main").split())
        assert ", ," not in told
        assert not [line for line in visit(route, path=path).inner_text("main").split("\n") if line.startswith("· ")]


def test_a_history_of_failures_alone_says_so_in_whole_sentences(visit: Visit, tmp_path: Path) -> None:
    nan = float("nan")
    path = pages_of(Made(tmp_path / "p", 3).record({"x.time_f": [nan] * 3, "x.time_g": [nan] * 3}))
    page = visit(path=path)
    assert page.inner_text(".lede").strip() == "2 benchmarks have no value at any commit."
    assert page.inner_text(".empty") == "No benchmark has a value."
    assert visit("#/regressions", path=path).inner_text(".lede") == "No change is found in this history."


def test_two_modes_are_no_regression_in_compare(visit: Visit, tmp_path: Path) -> None:
    values = [1e-3 if at * 7 % 5 < 3 else 1.5e-3 for at in range(100)]
    page = visit("#/compare?a=first&b=last", path=pages_of(Made(tmp_path / "p", 100).record({"x.time_f": values})))
    assert "+50.0 %" in page.inner_text("tbody tr")
    assert page.locator("tbody .tag").inner_text() == "? undecided"
    assert page.locator(".worse").count() == 0


def test_a_negative_value_is_shown_and_not_compared(visit: Visit, tmp_path: Path) -> None:
    lines = {"x.track_f": noisy((12, 2.0), (12, -5.0))}
    page = visit("#/compare?a=first&b=last", path=pages_of(Made(tmp_path / "p", 24).record(lines, unit="score")))
    row = page.inner_text("tbody tr")
    assert all(words in row for words in ("incomparable", "2.00 score", "-5.00 score"))
    assert "%" not in row
    assert page.locator("tbody .tag").get_attribute("title") == NEGATIVE


def test_an_improvement_counts_from_where_it_is_one(visit: Visit, tmp_path: Path) -> None:
    made = Made(tmp_path / "p", 24).record({"x.time_f": noisy((12, 1e-3), (12, 0.8e-3))})
    card = visit("#/regressions", path=pages_of(made)).locator(".event")
    assert "counts from -4.8 %" in card.inner_text()


def test_links_of_reports_that_named_a_card_open_its_place(visit: Visit, tmp_path: Path) -> None:
    made = Made(tmp_path / "p", 8).record({"x.time_f": noisy((8, 1e-3))}, machine="one")
    path = pages_of(made.record({"x.time_f": noisy((8, 2e-3))}, machine="two"))
    page = visit("#/b/x.time_f?at=two|GPU-0b1f7c2e|py3.12", path=path)
    assert page.get_attribute("[data-chip='two||py3.12']", "aria-pressed") == "true"
    page = visit("#/b/x.time_f?at=three|GPU-0b1f7c2e|py3.12", path=path)
    assert page.get_attribute("[data-chip='one||py3.12']", "aria-pressed") == "true", "what it would be without"


def test_what_is_not_claimed_is_not_called_small(visit: Visit, tmp_path: Path) -> None:
    values = [1e-3 if at * 7 % 5 < 3 else 1.5e-3 for at in range(60)] + [1.5e-3] * 12
    page = visit("#/b/x.time_f", path=pages_of(Made(tmp_path / "p", 72).record({"x.time_f": values})))
    state = page.locator("tbody tr", has_text="bimodal").or_(page.locator("tbody tr", has_text="alternating")).first
    assert "not claimed" in state.inner_text()
    assert "below the threshold" not in state.inner_text()
