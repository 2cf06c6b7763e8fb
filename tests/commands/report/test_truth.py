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


def test_what_is_said_to_have_changed_since_is_what_was_measured(tmp_path: Path) -> None:
    """277, 276 | 998 ... 998 | 275: nothing is 72 % less than it was."""
    values = [277e-6, 276e-6, *noisy((20, 998e-6)), 275e-6]
    index = Made(tmp_path / "p", len(values)).record({"x.time_f": values}).index()
    (row,) = index.rows
    assert row.since == pytest.approx(275 / 277, rel=1e-4)
    assert (row.doubt, row.off, row.status) == ("", (), "tentative")
    assert [(each.first, each.last) for each in row.levels] == [(0, 1), (2, 21), (22, 22)]


def test_a_value_far_off_its_level_claims_nothing(tmp_path: Path) -> None:
    values = [3.6e-3, *noisy((20, 1e-3))]
    index = Made(tmp_path / "p", len(values)).record({"x.time_f": values, "x.time_g": noisy((21, 1e-3))}).index()
    stray, steady = index.rows
    assert stray.since == pytest.approx(1 / 3.6, rel=0.01)
    assert (stray.doubt, stray.off) == ("the value then lies +260 % off the level around it", (0,))
    assert steady.doubt == ""
    (overall,) = index.overall
    assert (overall.n, overall.ratio) == (1, steady.since)


def test_a_history_that_jumps_between_two_levels_is_undecided(tmp_path: Path) -> None:
    slow = [at % 5 < (1 if at < 40 else 4) for at in range(80)]
    values = [value * (27 if up else 1) for value, up in zip(noisy((80, 3.5e-3)), slow, strict=True)]
    (row,) = Made(tmp_path / "p", 80).record({"x.time_f": values}).index().rows
    assert row.status == "undecided"
    assert row.why.startswith("bimodal: two levels")
