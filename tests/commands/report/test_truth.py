"""What a report says is so: histories that are made for it, with the right words and numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from .made import Made, noisy


@pytest.mark.parametrize("better, status", [({}, "changed"), ({"^x\\.": "lower"}, "regressed")])
def test_a_direction_that_nothing_declares_is_neither_worse_nor_better(
    tmp_path: Path, better: dict[str, str], status: str
) -> None:
    """25 times as much of something: a regression only where somebody said that less is better."""
    made = Made(tmp_path / "p", 24, {"better": better})
    index = made.record({"x.track_score": noisy((12, 1.0), (12, 25.0))}, unit="score").index()
    (row,), (event,) = index.rows, index.events
    assert (row.status, event.moved, event.large) == (status, status, True)
    assert (event.state == "open") == (status == "regressed")
