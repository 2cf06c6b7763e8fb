from __future__ import annotations

from dataclasses import replace

import pytest

from regress.compare import changes_of, drift, with_anchors
from regress.model import Anchor, ChangePoint, Verdict, metric_of

from .rounds import QUIET, scaled
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


def test_drift_adds_up_what_no_single_step_showed() -> None:
    creeping = series(*((20, 1e-3 * 1.022**step) for step in range(10)), rounds=5)
    assert [change.large for change in changes_of(creeping, SETTINGS)] == [False] * 9
    found = drift(creeping, anchor(1e-3, commit=0, beside=199), SETTINGS)
    assert found.verdict is Verdict.REGRESSED
    assert found.ratio == pytest.approx(1.022**9, rel=0.01)
    assert found.low is not None
    assert found.low > 1.05


def test_drift_is_not_fooled_by_a_machine_that_moved() -> None:
    slower_machine = series((20, 1e-3), (20, 1.2e-3), rounds=5)
    assert drift(slower_machine, anchor(1.2e-3, commit=0), SETTINGS).verdict is Verdict.UNCHANGED


def test_drift_of_exact_values_needs_no_test() -> None:
    memory = series((3, 2e6), (3, 3e6), noise=0.0, metric=metric_of("peak_memory"))
    found = drift(memory, Anchor(memory.commits[0], memory.commits[-1], (2e6,), (2e6, 2e6)), SETTINGS)
    assert (found.verdict, found.exact, found.ratio, found.low, found.p) == (Verdict.REGRESSED, True, 1.5, 1.5, None)


def test_drift_from_zero_has_no_ratio() -> None:
    launches = series((3, 0.0), (3, 7.0), noise=0.0, metric=metric_of("launches"))
    found = drift(launches, Anchor(launches.commits[0], launches.commits[-1], (0.0,), (0.0,)), SETTINGS)
    assert (found.verdict, found.ratio, found.reasons) == (Verdict.REGRESSED, None, ("from zero",))


def test_drift_on_one_round_is_undecided() -> None:
    one = series((10, 1e-3), rounds=1)
    found = drift(one, anchor(1e-3, beside=9, rounds=1), SETTINGS)
    assert (found.verdict, found.reasons) == (Verdict.UNDECIDED, ("n = 1",))


def test_drift_honours_thresholds() -> None:
    each = replace(series((20, 1e-3), (20, 1.1e-3), rounds=len(QUIET)), threshold=0.3)
    assert drift(each, anchor(1e-3), SETTINGS).verdict is Verdict.UNCHANGED


def test_drift_needs_results_of_both() -> None:
    with pytest.raises(ValueError, match="no results"):
        drift(series((5, 1e-3), (1, None)), anchor(1e-3, commit=0, beside=5), SETTINGS)
