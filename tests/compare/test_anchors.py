from __future__ import annotations

from dataclasses import replace

import pytest

from regress.compare import changes_of, with_anchors
from regress.model import Anchor, ChangePoint

from .rounds import scaled
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
