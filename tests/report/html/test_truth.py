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
