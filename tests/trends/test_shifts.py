"""Many benchmarks that moved at one commit: one place alone, or back to a level of before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from regress.measure.wire import Measured, Protocol, Round
from regress.model import Settings
from regress.trends import changes_of
from regress.trends.manner import differences
from regress.trends.shifts import Moved, Shifted, Where, reasons, shifts_of, stood
from tests.trends.test_changes import HERE, series

NAMES = [f"{module}.time_{word}" for module in ("io", "ops", "nn") for word in "abc"]


BOX, TWIN, OTHER, NEWER = ("a", "", "py3.11"), ("a", "", "py3.12"), ("b", "", "py3.11"), ("b", "", "py3.12")


def moved(name: str, at: int = 10, **changes: object) -> Moved:
    change = Moved(name, BOX, (at - 1, at), frozenset({BOX}), frozenset({OTHER}), undoes=None)
    return change._replace(**changes)  # type: ignore[arg-type]


def test_what_moved_in_one_place_alone_is_one_shift() -> None:
    late = moved("io.time_a", 20)
    (shift,) = shifts_of([*(moved(name) for name in NAMES), late])
    assert shift == Shifted(tuple(range(9)), (9, 10), "machine", stood=9, undoes=None)
    assert reasons(shift, "", [[]] * 9) == (
        "9 of them were measured on other machines too and did not move there: was it the machine?",
    )


@pytest.mark.parametrize(
    "every",
    [
        [moved(name) for name in NAMES[:4]],
        [moved(f"io.time_{at}") for at in range(9)],
        [moved(name, stood=frozenset()) for name in NAMES],
        [moved(name, moved=frozenset({BOX, NEWER} if at > 5 else {BOX})) for at, name in enumerate(NAMES)],
        [moved(name, 10 + 5 * at) for at, name in enumerate(NAMES)],
    ],
    ids=["few", "one module", "nothing to hold it against", "a third of it elsewhere too", "one after the other"],
)
def test_what_the_commit_may_as_well_have_done_is_no_shift(every: list[Moved]) -> None:
    assert shifts_of(every) == []


@pytest.mark.parametrize(
    ("where", "still", "suspect"),
    [
        ({BOX}, {OTHER, NEWER}, "machine"),
        ({BOX, TWIN}, {OTHER}, "machine"),
        ({BOX, OTHER}, {TWIN, NEWER}, "environment"),
        ({BOX}, {TWIN}, "environment"),
        ({BOX, TWIN, OTHER}, {NEWER}, None),
        ({BOX, NEWER}, {OTHER, TWIN}, None),
    ],
)
def test_it_may_have_been_what_the_places_have_in_common(
    where: set[Where], still: set[Where], suspect: str | None
) -> None:
    shifts = shifts_of([moved(name, moved=frozenset(where), stood=frozenset(still)) for name in NAMES])
    assert [shift.suspect for shift in shifts] == ([] if suspect is None else [suspect])


def test_ranges_that_overlap_may_have_one_commit_in_common() -> None:
    every = [moved(name, range=(9 - at % 3, 10 + at % 2)) for at, name in enumerate(NAMES)]
    (shift,) = shifts_of(every)
    assert (len(shift.members), shift.range) == (9, (9, 10))


def test_what_is_back_where_it_was_is_a_shift_wherever_it_was_measured() -> None:
    every = [moved(name, 30, stood=frozenset(), undoes=(9, 10 + at % 2)) for at, name in enumerate(NAMES)]
    (shift,) = shifts_of([*every, moved("io.time_z", 30, stood=frozenset())])
    assert shift == Shifted(tuple(range(9)), (29, 30), "", stood=0, undoes=(9, 10))
    assert reasons(shift, "3f2c1ab0", [["measured differently: number 1 → 10"]] * 9) == (
        "they are back at the level of 3f2c1ab0",
        "measured differently: number 1 → 10",
    )
    apart = [commit._replace(undoes=(at, at + 1)) for at, commit in enumerate(every)]
    assert shifts_of(apart) == [], "they were moved one after the other"


def test_a_series_stood_where_it_was_measured_on_both_sides_and_shows_no_change() -> None:
    def of(value: object, good: int, last: int) -> bool:
        assert isinstance(value, type(series((1, 1.0))))
        return stood(value, changes_of(value, Settings()), value.commits[good], value.commits[last])

    quiet, step = series((30, 1e-3)), series((10, 1e-3), (20, 1.2e-3))
    assert of(quiet, 9, 10)
    assert not of(step, 9, 10)
    assert of(step, 19, 20)
    assert not of(quiet, 9, 28), "two results since"
    other = (("version", "2"),)
    assert not of(replace(quiet, ways=(HERE,) * 10 + (other,) * 20), 9, 10), "they are not comparable"


def test_a_change_that_took_another_back_says_which() -> None:
    there = changes_of(series((15, 1e-3), (15, 1.3e-3), (15, 1e-3)), Settings())
    assert [kept.undoes for kept in there] == ["", there[0].first]
    lost = changes_of(series((15, 1.3e-3), (15, 1e-3), (15, 1.3e-3)), Settings())
    assert [(str(point.moved), point.undoes) for point in lost] == [("improved", ""), ("regressed", lost[0].first)]
    further = changes_of(series((15, 1.3e-3), (15, 1e-3), (15, 2e-3)), Settings())
    assert [point.undoes for point in further] == ["", ""]


def test_how_a_case_was_measured_is_told_where_it_is_another_way() -> None:
    def taken(value: float, samples: int = 1, **protocol: object) -> Round:
        own = {"wall_time": Measured(value, [value] * samples)}
        return Round("x.time_f", [], "", 0, protocol=Protocol("wall_time", **protocol), values=own)  # type: ignore[arg-type]

    def told(before: Round, after: Round) -> list[str]:
        return differences(before, after, "wall_time")

    assert told(taken(1e-3, calls=100), taken(1e-3, calls=1)) == ["number 100 → 1"]
    assert told(taken(1e-3, calls=100), taken(2e-3, calls=50)) == [], "a sample lasts as long as before"
    assert told(taken(1e-3, 10), taken(1e-3, 4)) == ["repeat 10 → 4"]
    assert told(taken(1e-3, window_budget_s=0.1), taken(1e-3, window_budget_s=0.5)) == ["window_budget_s 0.1 → 0.5"]
    faster = replace(taken(1e-3), facts={"driver": "580"})
    assert told(replace(taken(1e-3), facts={"driver": "570"}), faster) == ["driver 570 → 580"]
    assert told(taken(1e-3), taken(1e-3, cache="cold")) == ["cache hot → cold"]
