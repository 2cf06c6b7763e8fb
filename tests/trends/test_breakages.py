"""Which cases gave numbers and give none any more."""

from __future__ import annotations

from dataclasses import replace

from regress.model import METRICS, Case, Commit, Series
from regress.trends import breakages_of, numberless

COMMITS = tuple(Commit(f"{at:040x}", f"change {at}", "Ada", 1e9 + at) for at in range(6))


def series(*points: float | str | None, metric: str = "gpu_time", primary: bool = True) -> Series:
    """A number is a value, a text the kind of a failure, None a commit without a result."""
    at = tuple(place for place, point in enumerate(points) if point is not None)
    own = [point for point in points if point is not None]
    return Series(
        Case("b.f"), METRICS[metric], "box", "GPU-1", "env", tuple(commit.sha for commit in COMMITS), at,
        tuple((value,) if isinstance(value, float) else () for value in own), ((),) * len(at), (None,) * len(at),
        tuple(value if isinstance(value, str) else "" for value in own), primary,
    )  # fmt: skip


def told(*every: Series) -> list[tuple[str, int, list[int]]]:
    """Kind, place of the newest commit with a number, and of those that may be to blame."""
    place = {commit.sha: at for at, commit in enumerate(COMMITS)}
    return [
        (breakage.failure.kind, place[breakage.good], [place[one.sha] for one in breakage.blamed])
        for breakage in breakages_of(every, COMMITS)
    ]


def test_what_worked_and_fails_now_is_one_and_whoever_lies_between_may_be_to_blame() -> None:
    assert told(series(1.0, 1.0, "error", "timeout")) == [("error", 1, [2])]
    assert told(series(1.0, None, None, "signal", None, "signal")) == [("signal", 0, [1, 2, 3])]
    assert told(series(1.0, "skipped")) == [("skipped", 0, [1])], "a skip where there was a number"


def test_what_never_worked_or_works_again_is_none() -> None:
    assert told(series("error", "error")) == []
    assert told(series(1.0, "error", 1.0, None)) == []
    assert told(series(1.0, "error", 1.0, "oom")) == [("oom", 2, [3])], "the newest time only"


def test_a_case_is_one_whatever_it_measures() -> None:
    time, memory = series(1.0, "error"), series(1.0, 1.0, metric="peak_memory", primary=False)
    assert told(time, memory) == [("error", 0, [1])], "its memory is no number of what it is about"
    wall = series(1.0, 1.0, 1.0, "error", metric="wall_time", primary=False)
    assert told(series(1.0, None, None, "error"), wall) == [("error", 2, [3])], (
        "it waits for the device since 1, and worked"
    )


def test_a_case_without_what_it_is_about_fails_where_nothing_was_measured() -> None:
    wall, memory = (
        series(1.0, *points, metric=name, primary=False)
        for name, points in (("wall_time", ("error", 1.0, "error")), ("peak_memory", (1.0, 1.0, "error")))
    )
    assert told(wall, memory) == [("error", 2, [3])]


def test_what_has_never_given_a_number_and_fails_is_told_apart() -> None:
    assert numberless([series("error", None, "timeout")]) == {Case("b.f")}
    assert numberless([series("error", 1.0, "error")]) == set(), "it has stopped"
    assert numberless([series("error", "skipped")]) == numberless([series("skipped")]) == set()
    elsewhere = replace(series(1.0), machine="other")
    assert numberless([series("error"), elsewhere]) == set(), "it works on another machine"


def test_places_are_apart() -> None:
    broken, fine = series(1.0, "error"), replace(series(1.0, 1.0), machine="other")
    assert [breakage.machine for breakage in breakages_of((broken, fine), COMMITS)] == ["box"]
