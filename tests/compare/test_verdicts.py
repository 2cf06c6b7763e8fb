from __future__ import annotations

from dataclasses import replace

import pytest

from regress.compare import compare, finer, overall
from regress.model import Case, Comparison, Verdict

from .rounds import MIB, NOISY, SETTINGS, by_metric, one, rounds, scaled

# -- the rule ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "verdict"),
    [
        (scaled(100e-6), Verdict.UNCHANGED),
        (scaled(103e-6), Verdict.UNCHANGED),
        (scaled(107e-6), Verdict.REGRESSED),
        (scaled(93e-6), Verdict.IMPROVED),
        (scaled(104.95e-6), Verdict.UNDECIDED),
        (scaled(112e-6, NOISY), Verdict.UNDECIDED),
    ],
)
def test_time(head: list[float], verdict: Verdict) -> None:
    comparison = one(rounds(gpu_time=scaled(100e-6)), rounds(gpu_time=head))
    assert comparison.verdict is verdict
    assert comparison.gates
    assert comparison.threshold == 0.05


def test_a_comparison_carries_its_evidence() -> None:
    comparison = one(rounds(gpu_time=scaled(100e-6)), rounds(gpu_time=scaled(110e-6)))
    assert comparison.case == Case("ops.cudatime_add")
    assert comparison.base is not None
    assert comparison.head is not None
    assert (comparison.base.n, comparison.head.n) == (5, 5)
    assert comparison.base.center == pytest.approx(100e-6, rel=1e-4)
    assert comparison.ratio == pytest.approx(1.1)
    assert comparison.low is not None
    assert comparison.high is not None
    assert comparison.low < 1.1 < comparison.high
    assert comparison.p == comparison.p_adjusted
    assert comparison.noise is not None
    assert 0.001 < comparison.noise < 0.01
    assert comparison.min_detectable is not None
    assert 1.05 < comparison.min_detectable < 1.06
    assert comparison.reasons == ()


def test_that_each_sample_was_set_up_is_said_once() -> None:
    base, head = (rounds(gpu_time=scaled(seconds), protocol={"setup_each": True}) for seconds in (100e-6, 110e-6))
    assert one(base, head).reasons == ("set up before each sample",)


def test_undecided_says_why_with_the_spread() -> None:
    noisy = one(rounds(gpu_time=scaled(100e-6)), rounds(gpu_time=scaled(112e-6, NOISY)))
    assert noisy.reasons == ("large, but not significant (spread 14 %)",)
    close = one(rounds(gpu_time=scaled(100e-6)), rounds(gpu_time=scaled(104.95e-6)))
    assert close.reasons == ("significant, but the interval includes changes beyond 5 % (spread 0.16 %)",)
    neither = one(rounds(gpu_time=scaled(100e-6, NOISY)), rounds(gpu_time=scaled(100e-6)))
    assert neither.reasons == ("the interval includes changes beyond 5 % (spread 14 %)",)


def test_too_few_rounds_are_told_where_more_of_them_would_show_it() -> None:
    """Two rounds a side that agree within 0.8 %, of eighteen cases: what forbids the claim is how few they are."""
    base, head = [], []
    for at in range(18):
        base += rounds(f"ops.cudatime_{at:02}", gpu_time=scaled(100e-6, (1.0, 1.008)))
        head += rounds(f"ops.cudatime_{at:02}", gpu_time=scaled(108e-6 if not at else 100e-6, (1.0, 1.006)))
    first, *_ = comparisons = compare(base, head, None, SETTINGS)
    assert (first.verdict, first.reasons) == (Verdict.UNDECIDED, ("2+2 rounds: too few to claim among 18 cases",))
    told = finer(comparisons, SETTINGS)
    assert told is not None
    rounds_a_side, least = told
    summed = overall(comparisons, SETTINGS)
    assert summed.min_detectable is not None
    assert rounds_a_side == 5
    assert 0.05 < least < 0.06 < summed.min_detectable
    assert finer([one(rounds(gpu_time=scaled(100e-6)), rounds(gpu_time=scaled(101e-6)))], SETTINGS) is None


def test_p_is_adjusted_over_the_tests_that_gate() -> None:
    """A change that is significant alone is not, as one of thirty; the noisy others and a host time do not gate it away."""
    base_rounds, head_rounds = (
        rounds(gpu_time=scaled(100e-6, (1.0, 1.04, 0.96, 1.02, 0.98))),
        rounds(gpu_time=scaled(108e-6, (1.0, 1.04, 0.96, 1.02, 0.98)), host_time=scaled(5e-6)),
    )
    alone = one(base_rounds, [replace(round, values={"gpu_time": round.values["gpu_time"]}) for round in head_rounds])
    assert alone.verdict is Verdict.REGRESSED
    others = [round for index in range(29) for round in rounds(f"ops.other_{index}", gpu_time=scaled(50e-6))]
    together = compare([*base_rounds, *others], [*head_rounds, *others], None, SETTINGS)
    comparison = next(one_of_many for one_of_many in together if one_of_many.case.name == "ops.cudatime_add")
    assert comparison.verdict is Verdict.UNDECIDED
    assert comparison.p is not None
    assert comparison.p_adjusted == pytest.approx(30 * comparison.p)
    assert comparison.noise is not None
    assert alone.noise is not None
    assert comparison.noise > alone.noise


def test_each_metric_that_only_shows_is_adjusted_by_itself() -> None:
    base = rounds(gpu_time=scaled(100e-6), host_time=scaled(50e-6), wall_time=scaled(150e-6))
    head = rounds(gpu_time=scaled(101e-6), host_time=scaled(51e-6), wall_time=scaled(151e-6))
    comparisons = by_metric(compare(base, head, None, SETTINGS))
    assert comparisons["gpu_time"].p is not None
    for comparison in comparisons.values():
        assert comparison.p_adjusted == comparison.p, "one case: the other metrics cost it nothing"
    assert not comparisons["host_time"].gates
    assert not comparisons["wall_time"].gates


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        (2.00e-6, 2.12e-6, Verdict.UNCHANGED),
        (2.00e-6, 2.25e-6, Verdict.REGRESSED),
        (2.12e-6, 2.00e-6, Verdict.UNCHANGED),
        (2.00e-6, 2.02e-6, Verdict.UNCHANGED),
    ],
)
def test_a_difference_under_the_floor_is_listed_and_never_claimed(base: float, head: float, verdict: Verdict) -> None:
    comparison = one(rounds(gpu_time=scaled(base)), rounds(gpu_time=scaled(head)))
    assert comparison.verdict is verdict
    under_the_floor = {base, head} == {2.00e-6, 2.12e-6}
    assert comparison.reasons == (("difference under the floor of 200 ns",) if under_the_floor else ())


def test_a_wide_interval_under_the_floor_says_why_it_is_unchanged() -> None:
    comparison = one(rounds(gpu_time=scaled(0.5e-6, NOISY)), rounds(gpu_time=scaled(0.5e-6, NOISY)))
    assert (comparison.verdict, comparison.reasons) == (Verdict.UNCHANGED, ("difference under the floor of 200 ns",))


def test_a_difference_that_may_reach_the_floor_is_undecided() -> None:
    comparison = one(rounds(gpu_time=scaled(2e-6, NOISY)), rounds(gpu_time=scaled(2.15e-6, NOISY)))
    assert comparison.verdict is Verdict.UNDECIDED
    near = one(rounds(gpu_time=scaled(2e-6)), rounds(gpu_time=scaled(2.197e-6, (1.0, 1.01, 0.99, 1.005, 0.995))))
    assert near.verdict is Verdict.UNDECIDED
    assert near.reasons[0].startswith("difference under the floor, 200 ns (spread")


def test_the_smallest_detectable_regression_of_a_short_case_is_the_floor() -> None:
    comparison = one(rounds(gpu_time=scaled(2e-6)), rounds(gpu_time=scaled(2e-6)))
    assert comparison.min_detectable is not None
    assert comparison.min_detectable > 1.1


def test_host_time_has_a_threshold_and_a_floor_of_its_own_and_gates_nothing() -> None:
    def host(base: float, head: float) -> Comparison:
        sides = [rounds(gpu_time=scaled(100e-6), host_time=scaled(seconds)) for seconds in (base, head)]
        return by_metric(compare(sides[0], sides[1], None, SETTINGS))["host_time"]

    assert host(50e-6, 55e-6).verdict is Verdict.UNCHANGED
    assert host(50e-6, 65e-6).verdict is Verdict.REGRESSED
    assert host(5e-6, 6.5e-6).reasons == ("difference under the floor of 2 us",)
    assert not host(50e-6, 65e-6).gates


# -- exact values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        (10 * MIB, 10 * MIB, Verdict.UNCHANGED),
        (10 * MIB, 10.9 * MIB, Verdict.UNCHANGED),
        (10 * MIB, 11.5 * MIB, Verdict.REGRESSED),
        (11.5 * MIB, 10 * MIB, Verdict.IMPROVED),
        (512.0, 1024.0, Verdict.UNCHANGED),
        (0.0, 0.0, Verdict.UNCHANGED),
        (0.0, 5 * MIB, Verdict.REGRESSED),
        (5 * MIB, 0.0, Verdict.IMPROVED),
        (0.0, 512.0, Verdict.UNCHANGED),
    ],
)
def test_exact_memory_is_compared_without_a_test(base: float, head: float, verdict: Verdict) -> None:
    sides = [rounds(gpu_time=scaled(1e-3), peak_memory=[value] * 2, exact={"peak_memory"}) for value in (base, head)]
    comparison = by_metric(compare(sides[0], sides[1], None, SETTINGS))["peak_memory"]
    assert comparison.verdict is verdict
    assert comparison.exact
    assert comparison.gates
    assert (comparison.p, comparison.p_adjusted, comparison.noise) == (None, None, None)
    if base and head:
        assert comparison.ratio == comparison.low == comparison.high == pytest.approx(head / base)
    else:
        assert comparison.ratio is None
    assert (comparison.reasons == ("from zero",)) == (base == 0 and verdict is Verdict.REGRESSED)
    assert ("floor of 64 KiB" in " ".join(comparison.reasons)) == (0 < max(base, head) <= 1024)


def test_exact_values_that_differ_between_rounds_are_tested_and_it_is_said() -> None:
    base = rounds(gpu_time=scaled(1e-3), peak_memory=[10 * MIB] * 3, exact={"peak_memory"})
    head = rounds(gpu_time=scaled(1e-3), peak_memory=[12 * MIB, 12.1 * MIB, 12 * MIB], exact={"peak_memory"})
    comparison = by_metric(compare(base, head, None, SETTINGS))["peak_memory"]
    assert comparison.verdict is Verdict.REGRESSED
    assert not comparison.exact
    assert comparison.p is not None
    assert comparison.reasons == ("exact values differ between rounds of head, so they were tested",)


def test_what_is_exact_on_one_side_only_is_tested_and_it_is_said() -> None:
    base = rounds(gpu_time=scaled(1e-3), peak_memory=[10 * MIB] * 3, exact={"peak_memory"})
    head = rounds(gpu_time=scaled(1e-3), peak_memory=[12 * MIB] * 3)
    partly = [*head[:1], *rounds(gpu_time=scaled(1e-3), peak_memory=[12 * MIB] * 3, exact={"peak_memory"})[1:]]
    for side in (head, partly):
        comparison = by_metric(compare(base, side, None, SETTINGS))["peak_memory"]
        assert (comparison.verdict, comparison.exact) == (Verdict.REGRESSED, False)
        assert "exact only on the base, so it was tested" in comparison.reasons


def test_counters_are_exact_and_gate_nothing() -> None:
    sides = [rounds(gpu_time=scaled(1e-3), launches=[n], exact={"launches"}) for n in (3.0, 4.0)]
    comparison = by_metric(compare(sides[0], sides[1], None, SETTINGS))["launches"]
    assert (comparison.verdict, comparison.gates, comparison.exact) == (Verdict.REGRESSED, False, True)
