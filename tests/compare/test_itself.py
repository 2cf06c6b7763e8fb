"""A side against itself: what counts as a false alarm, and how fine each case was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from regress.compare import fineness, overall, summed_up
from regress.model import METRICS, Case, Comparison, SelfCheck, Settings, Summary, Verdict
from tests.simulator import Check, Machine, Noise

QUIET, LOUD = Case("ops.cudatime_quiet"), Case("ops.cudatime_loud")


def told(*comparisons: Comparison) -> SelfCheck:
    return summed_up(comparisons, overall(comparisons, Settings()), "3f2c1ab0", 5.0)


def compared(name: str, verdict: Verdict, metric: str = "gpu_time", gates: bool = True) -> Comparison:
    return Comparison(Case(name), METRICS[metric], verdict, gates=gates)


@pytest.mark.parametrize("claim", [Verdict.REGRESSED, Verdict.IMPROVED, Verdict.CHANGED])
def test_every_claim_is_a_false_alarm(claim: Verdict) -> None:
    self_check = told(compared("a", claim), compared("b", Verdict.UNCHANGED), compared("c", Verdict.UNDECIDED))
    assert (self_check.false_alarms, self_check.undecided, self_check.unchanged) == (1, 1, 1)
    assert self_check.cases == ("a", "b", "c")
    assert (self_check.commit, self_check.date) == ("3f2c1ab0", 5.0)


def test_a_case_counts_once_and_an_alarm_outweighs_what_is_undecided() -> None:
    """Unlike in a check, where an improvement is the last thing that one has to look at."""
    self_check = told(compared("a", Verdict.IMPROVED), compared("a", Verdict.UNDECIDED, "peak_memory"))
    assert (self_check.false_alarms, self_check.undecided, self_check.unchanged) == (1, 0, 0)


def test_what_does_not_gate_raises_no_alarm() -> None:
    self_check = told(compared("a", Verdict.UNCHANGED), compared("a", Verdict.REGRESSED, "host_time", gates=False))
    assert (self_check.false_alarms, self_check.unchanged) == (0, 1)


def test_the_noisiest_case_comes_first_with_the_rounds_it_took() -> None:
    check = Check({QUIET: 1.0, LOUD: 1.0}, Machine(3, Noise(0.003)), noise={LOUD: Noise(0.025)})
    comparisons = check.in_steps()
    loud, quiet = fineness(comparisons, check.rounds)
    assert (loud.case, quiet.case) == (LOUD, QUIET)
    assert loud.rounds == sum(round.name == LOUD.name and round.side == "base" for round in check.rounds)
    assert quiet.rounds == 4
    assert loud.spread == pytest.approx(0.025, rel=0.5)
    assert loud.noise is not None
    assert quiet.noise is not None
    assert loud.noise > quiet.noise
    assert {noise.case: noise.min_detectable for noise in (loud, quiet)} == {
        comparison.case: pytest.approx(comparison.min_detectable - 1)
        for comparison in comparisons
        if comparison.min_detectable is not None
    }


def test_exact_values_have_a_row_only_where_nothing_was_tested() -> None:
    size = Summary(512.0, 512.0, 512.0, 0.95, 2, 0.0)
    exact = replace(compared("a", Verdict.UNCHANGED, "peak_memory"), exact=True, base=size, head=size)
    timed = replace(compared("a", Verdict.UNCHANGED), base=size, head=size, noise=0.01, min_detectable=1.06)
    (row,) = fineness([timed, exact], [])
    assert row.metric.name == "gpu_time"
    (row,) = fineness([exact, compared("b", Verdict.FAILED)], [])
    assert (row.metric.name, row.spread, row.noise) == ("peak_memory", None, None)
