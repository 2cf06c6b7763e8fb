"""What the pages say of histories that are made for one thing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from regress.report.html import write_folder
from tests.commands.report.made import QUIET, Made, noisy

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
    assert [each.get_attribute("class") for each in bar.locator("b").all()] == ["moved"]
    assert page.locator("tbody .tag.moved").inner_text() == "◆ changed"
    assert page.locator(".worse, .better").count() == 0


def test_comparing_shows_what_was_measured(visit: Visit, tmp_path: Path) -> None:
    """Of values that are far off their level it says so, and claims nothing; ratio and values agree."""
    values = {"x.time_f": [277e-6, 276e-6, *noisy((20, 998e-6)), 275e-6], "x.time_g": [3.6e-3, *noisy((22, 1e-3))]}
    page = visit(
        "#/compare?status=undecided,improved,unchanged", path=pages_of(Made(tmp_path / "p", 23).record(values))
    )
    cells = [[each.inner_text() for each in row.locator("td").all()] for row in page.locator("tbody tr").all()]
    assert [row[1:] for row in cells] == [
        ["277 us", "275 us", "▼ -0.7 %", "unchanged"],
        ["3.60 ms", "1.00 ms", "▼ -72.2 %", "? undecided"],
    ]
    title = page.locator(".tag", has_text="undecided").last.get_attribute("title") or ""
    assert title.endswith("was measured +260 % off the level around it")
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
