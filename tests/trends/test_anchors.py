from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from regress.history import confirmed_in, keep_confirmed
from regress.model import METRICS, Anchor, AnchorCheck, Case, ChangePoint, Commit, Confirmation, Verdict
from regress.trends import Anchors, anchor_check, changes_of, with_anchors
from regress.trends.outcomes import with_confirmations
from tests.compare.rounds import scaled

from .test_changes import SETTINGS, series

STEP = series((20, 1e-3), (20, 1.1e-3))


def anchor(now: float, commit: int = 10, beside: int = 39, then: float = 1e-3, rounds: int = 5) -> Anchor:
    return Anchor(f"{commit:040x}", f"{beside:040x}", tuple(scaled(then)[:rounds]), tuple(scaled(now)[:rounds]))


def judged(*anchors: Anchor) -> ChangePoint:
    (change,) = with_anchors(changes_of(STEP, SETTINGS), STEP, anchors, SETTINGS)
    return change


def test_an_anchor_that_stayed_leaves_the_change_to_the_code() -> None:
    assert judged(anchor(1.001e-3)) == changes_of(STEP, SETTINGS)[0]


def test_an_anchor_that_moved_as_much_says_that_the_machine_moved() -> None:
    change = judged(anchor(1.1e-3))
    assert not change.large
    assert change.reasons == ("00000000, measured again beside 00000000, moved by +10.0 % itself: the machine moved",)


def test_what_is_left_after_the_machine_may_still_be_large() -> None:
    change = judged(anchor(1.03e-3))
    assert change.large
    assert "+3.0 %" in change.reasons[0]


@pytest.mark.parametrize(
    "unfit",
    [
        anchor(1.1e-3, commit=25),  # newer than the change
        anchor(1.1e-3, beside=15),  # measured again before the change
        anchor(0.9e-3),  # moved the other way
        anchor(1.01e-3),  # by less than is listed
        anchor(1.1e-3, rounds=1),
        anchor(1.1e-3, rounds=0),
        anchor(1.1e-3, then=0.0),
        replace(anchor(1.1e-3), commit="elsewhere"),
        replace(anchor(1.1e-3), beside="elsewhere"),
    ],
)
def test_an_anchor_that_cannot_tell_is_no_reason(unfit: Anchor) -> None:
    assert judged(unfit).reasons == ()


def test_of_several_anchors_the_newest_speaks() -> None:
    assert "+4.0 %" in judged(anchor(1.04e-3, commit=18), anchor(1.09e-3, commit=3)).reasons[0]


# -- all values of an anchor -----------------------------------------------------------------------------------------------

THEN, NOW = (Commit(letter * 40, "subject", "Ada", 0.0) for letter in "ab")


def checked(*now: float, rounds: int = 2, primary: bool = True, noise: float = 1.0) -> AnchorCheck:
    """The check of an anchor whose cases took 1 ms each when it was recorded."""
    anchored = [
        (replace(STEP, case=Case(f"b.case_{at}"), primary=primary), anchor(value * 1e-3, rounds=rounds))
        for at, value in enumerate(now)
    ]
    if noise != 1.0:
        anchored = [(one, replace(moved, now=(moved.now[0] * noise, *moved.now[1:]))) for one, moved in anchored]
    return anchor_check(THEN, NOW, "v1", 12.0, anchored, SETTINGS)


def test_a_machine_that_stayed_is_within_noise() -> None:
    check = checked(1.002, 0.997, 1.001, 1.003, 0.999, 1.0)
    assert (check.cases, check.moved, check.together, check.drifted) == (6, (), None, False)
    assert check.within is not None
    assert 0.002 < check.within < 0.01
    assert (check.commit, check.beside, check.label, check.recorded_at) == (THEN, NOW, "v1", 12.0)


def test_a_case_that_moved_beyond_chance_is_a_drift() -> None:
    check = checked(1.001, 1.1, 0.999, rounds=5)
    assert [(move.case, round(move.ratio, 2)) for move in check.moved] == [(Case("b.case_1"), 1.1)]
    assert check.drifted
    assert check.together is None


def test_one_of_many_that_may_be_chance_is_none() -> None:
    few, many = checked(1.0, 1.022), checked(*[1.0] * 59, 1.022)
    assert [move.case for move in few.moved] == [Case("b.case_1")]
    assert [move.case for move in many.moved] == [Case("b.case_59")]
    assert (few.drifted, many.drifted) == (True, False)
    assert many.within == pytest.approx(0.022)


def test_what_no_case_proves_all_of_them_may() -> None:
    """Two rounds, one of them noisy: no single case is significant."""
    check = checked(1.024, 1.03, 1.027, 1.022, 1.033, noise=1.02)
    assert check.moved == ()
    assert check.together is not None
    ratio, low, high, over = check.together
    assert (over, round(ratio, 2)) == (5, 1.04)
    assert 1 < low < ratio < high
    assert check.drifted


@pytest.mark.parametrize(
    "check",
    [
        checked(1.024, 1.03, 1.027, 1.022, noise=1.02),  # too few
        checked(1.004, 1.006, 1.005, 1.005, 1.005),  # by less than is listed
        checked(1.2, 0.85, 1.1, 0.9, 1.0, noise=1.4),  # this way and that
        checked(1.024, 1.03, 1.027, 1.022, 1.033, noise=1.02, primary=False),
    ],
)
def test_what_is_no_drift_of_all_of_them(check: AnchorCheck) -> None:
    assert check.together is None


def test_what_cannot_be_compared_says_nothing() -> None:
    nothing = anchor_check(
        THEN, NOW, "", None, [(STEP, anchor(1e-3, then=0.0)), (STEP, anchor(1e-3, rounds=0))], SETTINGS
    )
    assert (nothing.cases, nothing.within, nothing.drifted) == (0, None, False)


# -- what was confirmed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "head", "verdict", "state"),
    [
        (29, 30, Verdict.REGRESSED, "confirmed"),
        (20, 30, Verdict.REGRESSED, "confirmed"),
        (29, 30, Verdict.IMPROVED, "tentative"),
        (30, 29, Verdict.REGRESSED, "tentative"),
        (10, 20, Verdict.REGRESSED, "tentative"),
    ],
)
def test_what_was_confirmed_for_the_same_pair_is_no_longer_tentative(
    base: int, head: int, verdict: Verdict, state: str
) -> None:
    values = [1e-3 * (1 + 0.002 * (-1) ** at) for at in range(30)]
    given = series((31, 1e-3))
    given = replace(given, rounds=tuple((value,) for value in (*values, 1.3e-3)))
    said = Confirmation(given.commits[base], given.commits[head], verdict, 1.3, "check", 1.75e9)
    anchors = Anchors([], SETTINGS, {("box", str(given.case), "gpu_time"): [said]})
    (change,) = anchors.changes_of(given)
    assert (change.state, change.is_open) == (state, state == "confirmed")
    words = f"confirmed by check {given.commits[base][:8]} {given.commits[head][:8]} on 2025-06-15, +30.0 %"
    assert change.reasons == ((words,) if state == "confirmed" else ())


@pytest.mark.parametrize(
    ("base", "head", "ratio", "blamed"),
    [
        (21, 22, 1.1, [22]),
        (16, 19, 1.08, [17, 18, 19]),
        (21, 22, 1.01, range(16, 25)),  # a small part of it only
        (14, 25, 1.1, range(16, 25)),  # on both sides of the range, which is known
        (15, 24, 1.1, range(16, 25)),
        (22, 27, 1.1, range(16, 25)),  # which of both ranges is right, nobody knows
    ],
)
def test_what_was_confirmed_within_the_range_leaves_what_lies_between_to_blame(
    base: int, head: int, ratio: float, blamed: Sequence[int]
) -> None:
    (change,) = changes_of(STEP, SETTINGS)
    wide = replace(change, good=STEP.commits[15], blamed=STEP.commits[16:25])
    said = Confirmation(STEP.commits[base], STEP.commits[head], Verdict.REGRESSED, ratio, "bisect", 1.75e9)
    (point,) = with_confirmations([wide], STEP, [said])
    assert [STEP.commits.index(sha) for sha in point.blamed] == list(blamed)
    assert (point.first in point.blamed, point.good) == (True, STEP.commits[blamed[0] - 1])
    assert bool(point.reasons) == (len(blamed) < 9)


def test_the_narrowest_of_what_was_confirmed_counts_and_then_the_newest() -> None:
    (change,) = changes_of(STEP, SETTINGS)
    wide = replace(change, good=STEP.commits[15], blamed=STEP.commits[16:25])
    pairs = [(19, 20), (20, 21), (16, 24)]
    known = [
        Confirmation(STEP.commits[base], STEP.commits[head], Verdict.REGRESSED, 1.1, "check", 1.75e9 + at)
        for at, (base, head) in enumerate(pairs)
    ]
    (point,) = with_confirmations([wide], STEP, known)
    assert point.blamed == (STEP.commits[21],)


def test_a_confirmation_counts_for_its_machine_case_and_metric_alone(tmp_path: Path) -> None:
    case, metric = Case("x.f", ("1",)), METRICS["gpu_time"]
    for ratio in (1.2, 1.3):
        keep_confirmed(tmp_path, "box", "bisect", "a" * 40, "b" * 40, [(case, metric, Verdict.REGRESSED, ratio)])
    keep_confirmed(tmp_path, "box", "check", "a" * 40, "b" * 40, [(case, METRICS["wall_time"], Verdict.UNCHANGED, 1.0)])
    ((key, (one,)),) = confirmed_in(tmp_path).items()
    assert key == ("box", "x.f(1)", "gpu_time")
    assert (one.base, one.head, one.verdict, one.ratio, one.command) == (
        "a" * 40,
        "b" * 40,
        Verdict.REGRESSED,
        1.3,
        "bisect",
    )
    (tmp_path / "confirmed.json").write_text(
        '{"format": 1, "machines": {"box": {"x": {"gpu_time": [["torn"], 7]}, "y": 7}}}'
    )
    assert confirmed_in(tmp_path) == {}, "what cannot be read counts as not there"
