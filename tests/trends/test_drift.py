from __future__ import annotations

from dataclasses import replace

import pytest

from regress.model import Anchor, Comparison, Series, Verdict, metric_of
from regress.trends import changes_of, drift, drifts
from regress.trends.anchors import Again, key_of
from tests.compare.rounds import QUIET, scaled

from .test_anchors import anchor
from .test_changes import SETTINGS, series


def test_drift_adds_up_what_no_single_step_showed() -> None:
    creeping = series(*((20, 1e-3 * 1.022**step) for step in range(10)), rounds=5)
    assert [change.large for change in changes_of(creeping, SETTINGS)] == [False] * 9
    comparison = drift(creeping, anchor(1e-3, commit=0, beside=199), SETTINGS)
    assert comparison.verdict is Verdict.REGRESSED
    assert comparison.ratio == pytest.approx(1.022**9, rel=0.01)
    assert comparison.low is not None
    assert comparison.low > 1.05


def test_drift_is_not_fooled_by_a_machine_that_moved() -> None:
    slower_machine = series((20, 1e-3), (20, 1.2e-3), rounds=5)
    assert drift(slower_machine, anchor(1.2e-3, commit=0), SETTINGS).verdict is Verdict.UNCHANGED


def test_drift_of_exact_values_needs_no_test() -> None:
    memory = series((3, 2e6), (3, 3e6), noise=0.0, metric=metric_of("peak_memory"))
    comparison = drift(memory, Anchor(memory.commits[0], memory.commits[-1], (2e6,), (2e6, 2e6)), SETTINGS)
    assert (comparison.verdict, comparison.exact, comparison.ratio, comparison.low, comparison.p) == (
        Verdict.REGRESSED,
        True,
        1.5,
        1.5,
        None,
    )


def test_drift_from_zero_has_no_ratio() -> None:
    launches = series((3, 0.0), (3, 7.0), noise=0.0, metric=metric_of("launches"))
    comparison = drift(launches, Anchor(launches.commits[0], launches.commits[-1], (0.0,), (0.0,)), SETTINGS)
    assert (comparison.verdict, comparison.ratio, comparison.reasons) == (Verdict.REGRESSED, None, ("from zero",))


def test_drift_on_one_round_is_undecided() -> None:
    one = series((10, 1e-3), rounds=1)
    comparison = drift(one, anchor(1e-3, beside=9, rounds=1), SETTINGS)
    assert (comparison.verdict, comparison.reasons) == (Verdict.UNDECIDED, ("n = 1",))


def test_drift_honours_thresholds() -> None:
    one_series = replace(series((20, 1e-3), (20, 1.1e-3), rounds=len(QUIET)), threshold=0.3)
    assert drift(one_series, anchor(1e-3), SETTINGS).verdict is Verdict.UNCHANGED


def test_drift_needs_results_of_both() -> None:
    with pytest.raises(ValueError, match="no results"):
        drift(series((5, 1e-3), (1, None)), anchor(1e-3, commit=0, beside=5), SETTINGS)


CREEPING = series(*((1, 1e-3 * 1.02**step) for step in range(11)), rounds=2)


def only(one_series: Series, release: int, *again: Again) -> Comparison:
    (comparison,), unknown = drifts(
        [one_series], one_series.commits[release], {key_of(one_series): again} if again else {}, SETTINGS
    )
    assert unknown == 0
    return comparison


def unknown(one_series: Series, release: int, *again: Again) -> int:
    comparisons, many = drifts(
        [one_series], one_series.commits[release], {key_of(one_series): again} if again else {}, SETTINGS
    )
    assert comparisons == []
    return many


def test_what_was_recorded_adds_up_too() -> None:
    comparison = only(CREEPING, 0)
    assert (comparison.verdict, comparison.gates) == (Verdict.REGRESSED, True)
    assert comparison.ratio == pytest.approx(1.02**9, rel=0.01)  # three commits at the end stand for the newest one
    assert comparison.reasons[-1] == "as recorded of 1 commit and 3 commits"


def test_a_release_that_was_measured_again_speaks_before_what_was_recorded() -> None:
    release, head = CREEPING.commits[0], CREEPING.commits[-1]
    stale = Again(release, CREEPING.commits[5], tuple(scaled(2e-3)[:4]))
    comparison = only(CREEPING, 0, stale, Again(release, head, tuple(scaled(1.2e-3)[:4])))
    assert comparison.verdict is Verdict.UNCHANGED, "it is as slow tonight: the machine moved"
    assert comparison.reasons[-1] == f"measured again beside {head[:8]}"


def test_no_commit_from_beyond_a_step_stands_for_an_end() -> None:
    before = series((12, 2e-3), (2, 1e-3), (12, 1.2e-3), rounds=2)
    comparison = only(before, 13)
    assert comparison.ratio == pytest.approx(1.2, rel=0.01)
    assert comparison.reasons[-1] == "as recorded of 2 commits and 3 commits"


def test_drift_is_told_of_what_gates() -> None:
    host = series((5, 1e-6), (5, 2e-6), metric=metric_of("host_time"), primary=False)
    assert drifts([host], host.commits[0], {}, SETTINGS) == ([], 0)
    memory = series((5, 1e6), (5, 2e6), noise=0.0, metric=metric_of("peak_memory"), primary=False)
    assert only(memory, 0).gates


def test_nobody_can_tell_across_a_change_of_measuring_or_without_results() -> None:
    mixed = series((3, 1e-3), (3, 1.2e-3))
    driver = replace(mixed, ways=(*mixed.ways[:3], *[(("driver", "new"),)] * 3))
    assert unknown(driver, 0) == 1
    assert unknown(series((2, 1e-3), (1, None), (3, 1.2e-3)), 2) == 1, "the release was not measured"
    assert unknown(series((3, 1e-3), (1, None)), 2) == 1, "nothing newer was"
    assert only(driver, 0, Again(driver.commits[0], driver.commits[-1], tuple(scaled(1.2e-3)[:4]))).verdict is (
        Verdict.UNCHANGED
    ), "measured again, it can be told across that change"


def of_sessions(*sessions: tuple[str, float]) -> Series:
    """A commit for each: its session, and its level."""
    made = series(*((1, level * 1e-3) for _, level in sessions), rounds=4)
    return replace(made, runs={at: (run,) * 4 for at, (run, _) in enumerate(sessions)})


def test_rounds_of_sessions_apart_are_no_evidence_of_drift() -> None:
    """Each end of one session: what looks 26 % slower may be the hour, and is no pass either."""
    comparison = only(of_sessions(("a", 1.0), ("b", 1.26)), 0)
    assert (comparison.verdict, comparison.sessions, comparison.unconfirmed, comparison.exit_code()) == (
        Verdict.UNDECIDED,
        (1, 1),
        True,
        4,
    )
    assert (
        comparison.reasons[0]
        == "each side was measured in one session, not in the same: sessions may differ for other reasons"
    )
    assert only(of_sessions(("a", 1.26), ("b", 1.0)), 0).exit_code() == 0


def test_a_session_with_both_ends_tells_the_drift() -> None:
    assert only(of_sessions(("a", 1.0), ("a", 1.26)), 0).verdict is Verdict.REGRESSED


def test_each_session_is_one_value_of_the_drift() -> None:
    """Three nights at each end: nine rounds do not make of a spread of 10 % between nights a claim of 8 %."""
    nights = of_sessions(("a", 0.9), ("b", 1.1), ("c", 1.0), ("d", 1.18), ("e", 0.98), ("f", 1.08))
    comparison = only(nights, 2)
    assert (comparison.verdict, comparison.sessions) == (Verdict.UNDECIDED, (3, 3))
    assert comparison.base is not None
    assert comparison.base.n == 3
    apart = only(of_sessions(("a", 1.0), ("b", 1.001), ("c", 0.999), ("d", 1.26), ("e", 1.261), ("f", 1.259)), 2)
    assert apart.verdict is Verdict.REGRESSED


def test_what_was_measured_again_in_the_session_of_its_neighbour_tells_by_that_alone() -> None:
    """The newest commit has rounds of a slower session too, which the release has not."""
    both = series((1, 1e-3), (1, 1e-3), rounds=8)
    slow = tuple(value * (1.3 if at < 4 else 1) for at, value in enumerate(both.rounds[1]))
    both = replace(both, rounds=(both.rounds[0], slow), runs={0: ("a",) * 8, 1: ("b",) * 4 + ("c",) * 4})
    again = Again(both.commits[0], both.commits[1], tuple(scaled(1e-3)[:4]), ("c",) * 4)
    assert only(both, 0, again).verdict is Verdict.UNCHANGED


def test_an_end_beside_the_line_stands_for_itself() -> None:
    """The release was tagged on a branch that was merged later; the line beside it was another one."""
    made = series((4, 2e-3), (1, 1e-3), (3, 1e-3), rounds=4)
    comparison = only(replace(made, beside=frozenset({4})), 4)
    assert comparison.verdict is Verdict.UNCHANGED
    assert comparison.reasons[-1] == "as recorded of 1 commit and 3 commits"
    tip = replace(series((4, 1e-3), (1, 2e-3), rounds=4), beside=frozenset({4}))
    assert only(tip, 0).verdict is Verdict.UNCHANGED, "the newest result is beside the line that the head goes on"
