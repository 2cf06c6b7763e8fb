"""A check in steps: what is measured how often, and what is claimed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from regress.compare.confirming import BESIDE, FEWEST, LOOKS, confirming_rounds
from regress.compare.overall import spreads_of
from regress.compare.steps import CONFIRMING, QUIET_LOOK, CheckSteps
from regress.model import (
    Against,
    Batch,
    Benchmark,
    Case,
    Comparison,
    Failure,
    Measured,
    Protocol,
    Round,
    Settings,
    Spread,
    Verdict,
)
from tests.compare.rounds import SETTINGS, benchmark, known
from tests.simulator import Check, Machine, Noise, looked_at, rates

QUIET = Noise(round_sd=0.004)
ADD, MUL = Case("ops.cudatime_add"), Case("ops.cudatime_mul")


def checked(ratio: float, noise: Noise = QUIET, **settings: Any) -> tuple[Check, Comparison]:
    check = Check({ADD: ratio}, Machine(7, noise), replace(SETTINGS, **settings))
    (comparison,) = check.in_steps()
    return check, comparison


def rounds_of(check: Check, case: Case, side: str = "head") -> list[int]:
    return [round.order for round in check.rounds if round.name == case.name and round.side == side]


def test_what_is_unchanged_drops_out_at_the_first_look() -> None:
    check, comparison = checked(1.0)
    assert rounds_of(check, ADD) == list(range(LOOKS[0]))
    assert (comparison.verdict, comparison.reasons) == (Verdict.UNCHANGED, ())
    assert comparison.min_detectable is not None
    assert 1.05 < comparison.min_detectable < 1.07


@pytest.mark.parametrize(
    ("remembered", "first"),
    [
        (Spread(0.004, 6), QUIET_LOOK),
        (Spread(0.006, 60), LOOKS[0]),
        (Spread(0.004, 5), LOOKS[0]),
    ],
    ids=["quiet", "not so quiet", "hardly known"],
)
def test_a_case_that_is_remembered_as_quiet_is_looked_at_sooner(remembered: Spread, first: int) -> None:
    check = Check({ADD: 1.0, MUL: 1.0}, Machine(7, Noise(round_sd=0.002)), SETTINGS, remembered={str(ADD): remembered})
    assert [comparison.verdict for comparison in check.in_steps()] == [Verdict.UNCHANGED] * 2
    assert len(rounds_of(check, ADD)) == first
    assert len(rounds_of(check, MUL)) == LOOKS[0], "nothing is remembered of it"


def test_a_wrong_memory_costs_a_look_and_no_verdict() -> None:
    """The rounds themselves say how noisy a case is; after three it goes on to where it would have been looked at first."""
    known = {str(ADD): Spread(0.0, 60)}
    check = Check({ADD: 1.0}, Machine(7, Noise(round_sd=0.05)), SETTINGS, remembered=known)
    check.costs = {ADD: 0.2}
    steps = CheckSteps(check.settings, lambda: 0.0, known)
    looks: list[tuple[int, int, str]] = []
    while (batch := steps.next(check)) is not None and len(looks) < 2:
        looks.append((batch.first, batch.rounds[ADD], batch.title))
        for order in range(batch.first, batch.first + batch.rounds[ADD]):
            check.measure(ADD, "base", order)
            check.measure(ADD, "head", order)
    assert looks == [(0, 3, "measuring"), (3, 1, "look 1 of 5, 1 undecided")]


def test_what_a_check_saw_is_remembered_by_the_metric_that_scatters_most() -> None:
    _, comparison = checked(1.0)
    assert spreads_of([comparison]) == {str(ADD): Spread(comparison.spread, 2 * LOOKS[0] - 2)}
    assert comparison.base is not None
    steadier = replace(comparison, base=replace(comparison.base, spread=0.0), head=comparison.base)
    assert spreads_of([steadier, comparison, steadier]) == spreads_of([comparison])
    assert spreads_of([replace(comparison, gates=False), replace(comparison, p=None)]) == {}


@pytest.mark.parametrize(("ratio", "verdict"), [(1.09, Verdict.REGRESSED), (0.9, Verdict.IMPROVED)])
def test_a_change_is_claimed_on_fresh_rounds_alone(ratio: float, verdict: Verdict) -> None:
    check, comparison = checked(ratio)
    assert rounds_of(check, ADD) == [*range(LOOKS[0]), *range(CONFIRMING, CONFIRMING + FEWEST)]
    assert (comparison.verdict, comparison.reasons) == (verdict, ("confirmed",))
    assert comparison.base is not None
    assert comparison.base.n == FEWEST
    assert comparison.p_adjusted == comparison.p, "one case is confirmed"


def test_a_fluke_of_the_screening_is_not_confirmed() -> None:
    check = Check({ADD: 1.0}, Machine(7, QUIET), costs={ADD: 0.2})
    steps = CheckSteps(check.settings, lambda: 0.0)
    for order in range(steps.next(check).rounds[ADD]):  # type: ignore[union-attr]
        check.measure(ADD, "base", order)
        check.measure(ADD, "head", order)
    check.rounds = [shifted(round, 1.2) if round.side == "head" else round for round in check.rounds]
    batch = steps.next(check)
    assert batch == Batch({ADD: FEWEST}, CONFIRMING, "confirming 1 case", afresh=True)
    for order in range(CONFIRMING, CONFIRMING + FEWEST):
        check.measure(ADD, "head", order)
        check.measure(ADD, "base", order)
    assert steps.next(check) is None
    (comparison,) = steps.verdicts(check)
    assert comparison.verdict is Verdict.UNCHANGED


def shifted(round: Round, factor: float) -> Round:
    return replace(
        round, values={name: replace(value, value=value.value * factor) for name, value in round.values.items()}
    )


def test_a_noisy_case_is_measured_to_the_last_look() -> None:
    check, comparison = checked(1.0, Noise(round_sd=0.12))
    claimed = comparison.reasons[:1] == ("confirmed",)
    assert not claimed
    assert comparison.verdict is Verdict.UNDECIDED
    assert max(rounds_of(check, ADD)) >= LOOKS[1]


def test_an_undecided_case_says_how_many_rounds_would_decide() -> None:
    """With so many more it is decided."""
    check = Check({ADD: 1.0}, Machine(5, Noise(round_sd=0.04)), replace(SETTINGS, budget_s=1.0))
    (comparison,) = check.in_steps()
    assert comparison.verdict is Verdict.UNDECIDED
    _, number, *words = comparison.reasons[-1].split()
    assert words == ["rounds", "a", "side", "would", "decide"]
    assert 2 * LOOKS[0] < int(number) < 100
    (after,) = Check({ADD: 1.0}, Machine(6, Noise(round_sd=0.04))).fixed(int(number))
    assert after.verdict is Verdict.UNCHANGED


def test_the_spread_says_how_many_rounds_confirm() -> None:
    _, quiet = checked(1.09)
    assert confirming_rounds(quiet) == FEWEST
    check, _ = checked(1.09, Noise(round_sd=0.03))
    assert len([order for order in rounds_of(check, ADD) if order >= CONFIRMING]) > FEWEST


def test_without_time_a_large_change_is_not_claimed() -> None:
    check, comparison = checked(1.09, budget_s=1.2)  # visits and four rounds of two sides take 1.0 s
    assert len(rounds_of(check, ADD)) == LOOKS[0]
    assert (comparison.verdict, comparison.reasons[0]) == (
        Verdict.UNDECIDED,
        "large, but not confirmed before measuring ended",
    )
    assert (comparison.unconfirmed, comparison.exit_code()) == (True, 4)
    assert (faster := checked(0.9, budget_s=1.2)[1]).verdict is Verdict.UNDECIDED
    assert (faster.unconfirmed, faster.exit_code()) == (False, 0)


def test_critical_cases_come_first_and_what_is_not_reached_says_so() -> None:
    check = Check({MUL: 1.0, ADD: 1.0}, Machine(7, QUIET), replace(SETTINGS, budget_s=1.5), critical={MUL.name})
    comparisons = {comparison.case: comparison for comparison in check.in_steps()}
    assert (rounds_of(check, ADD), len(rounds_of(check, MUL))) == ([], LOOKS[0])
    assert comparisons[MUL].verdict is Verdict.UNCHANGED
    not_begun = "not started: its rounds take longer than the time left"
    assert (comparisons[ADD].verdict, comparisons[ADD].reasons) == (Verdict.UNDECIDED, (not_begun,))
    assert (comparisons[ADD].metric.name, comparisons[ADD].unreached, comparisons[ADD].critical) == (
        "gpu_time",
        True,
        False,
    )


def test_a_critical_case_that_is_not_reached_has_not_passed() -> None:
    check = Check(
        {ADD: 1.0, MUL: 1.0}, Machine(7, QUIET), replace(SETTINGS, budget_s=1.5), critical={ADD.name, MUL.name}
    )
    comparisons = {comparison.case: comparison for comparison in check.in_steps()}
    assert [comparisons[case].exit_code() for case in (ADD, MUL)] == [0, 4]


def test_with_two_gpus_as_much_again_fits_into_the_budget() -> None:
    settings = replace(SETTINGS, budget_s=1.5)  # visits and four rounds of two sides take 1.0 s
    for gpus, measured in ((1, [LOOKS[0], 0]), (2, [LOOKS[0]] * 2)):
        check = Check({ADD: 1.0, MUL: 1.0}, Machine(7, QUIET), settings, gpus=gpus)
        check.in_steps()
        assert [len(rounds_of(check, case)) for case in (ADD, MUL)] == measured


def test_what_is_longer_than_the_time_that_is_left_is_not_begun() -> None:
    check, comparison = checked(1.0, budget_s=0.3)
    assert check.rounds == []
    assert comparison.reasons == ("not started: its rounds take longer than the time left",)


def test_a_case_that_is_too_long_leaves_the_time_to_those_after_it() -> None:
    long = {ADD: 4.0}
    check = Check({ADD: 1.0, MUL: 1.0}, Machine(7, QUIET), replace(SETTINGS, budget_s=14.0), longer=long)
    verdicts = {comparison.case: comparison.verdict for comparison in check.in_steps()}
    assert (verdicts, check.now_s <= 14.0) == ({ADD: Verdict.UNDECIDED, MUL: Verdict.UNCHANGED}, True)


@pytest.mark.parametrize(("budget_s", "reached"), [(20.0, 12), (40.0, 28), (200.0, 100)])
def test_a_budget_that_is_too_short_for_the_visits_covers_the_front_of_the_suite(budget_s: float, reached: int) -> None:
    """A hundred cases of 0.2 s a visit and of 0.8 s a look."""
    cases = {Case(f"ops.cudatime_{number:03}"): 1.0 for number in range(100)}
    check = Check(cases, Machine(7, QUIET), replace(SETTINGS, budget_s=budget_s))
    comparisons = check.in_steps()
    assert check.now_s <= budget_s + 1e-9
    done = [comparison.case for comparison in comparisons if not comparison.unreached]
    assert done == list(cases)[: len(done)]
    assert len(done) >= reached


def test_a_suite_that_is_slow_to_visit_is_measured_by_what_its_rounds_take() -> None:
    """It compiles for ten seconds, once."""
    cases = {Case(f"ops.cudatime_{number}"): 1.0 for number in range(5)}
    check = Check(cases, Machine(7, QUIET), replace(SETTINGS, budget_s=120.0), visit_s=10.0)
    assert not any(comparison.unreached for comparison in check.in_steps())


def test_what_is_farthest_from_unchanged_is_confirmed_first() -> None:
    """In the order of the suite MUL would come first; there is time to confirm one."""
    check = Check({MUL: 1.15, ADD: 20.0}, Machine(7, QUIET), replace(SETTINGS, budget_s=3.6))
    comparisons = {comparison.case: comparison for comparison in check.in_steps()}
    assert (comparisons[ADD].verdict, comparisons[MUL].verdict) == (Verdict.REGRESSED, Verdict.UNDECIDED)
    assert comparisons[MUL].unconfirmed


def test_it_says_how_long_the_whole_would_take() -> None:
    cases = {Case(f"ops.cudatime_{number:03}"): 1.2 if number < 3 else 1.0 for number in range(40)}
    check = Check(cases, Machine(7, QUIET), replace(SETTINGS, budget_s=15.0))
    steps = CheckSteps(check.settings, lambda: check.now_s)
    short = steps.short(check, check.in_steps(steps))
    assert short is not None
    assert (short.cases, 0 < short.unreached < 40) == (40, True)
    assert short.whole_s is not None
    again = Check(cases, Machine(8, QUIET), replace(SETTINGS, budget_s=short.whole_s))
    steps = CheckSteps(again.settings, lambda: again.now_s)
    assert steps.short(again, again.in_steps(steps)) is None


def test_the_time_that_confirming_takes_is_kept_back() -> None:
    """MUL would need more rounds, but there is time for the confirmation of ADD only."""
    noise = {ADD: QUIET, MUL: Noise(round_sd=0.1)}
    check = Check({ADD: 1.09, MUL: 1.0}, Machine(7, QUIET), replace(SETTINGS, budget_s=3.4), noise=noise)
    comparisons = {comparison.case: comparison for comparison in check.in_steps()}
    assert comparisons[ADD].verdict is Verdict.REGRESSED
    assert len(rounds_of(check, MUL)) == LOOKS[0]
    assert comparisons[MUL].verdict is Verdict.UNDECIDED


@dataclass
class SoFar:
    """What was measured, put together by hand."""

    benchmarks: dict[str, dict[str, Benchmark]]
    cases: dict[str, list[Case]]
    rounds: list[Round] = field(default_factory=list)

    @property
    def costs(self) -> dict[Case, float]:
        """All are visited, in no time."""
        return {case: 0.0 for cases in self.cases.values() for case in cases}


def one_round(name: str, side: str, order: int, **values: Measured) -> Round:
    return Round(name, [], side, order, protocol=Protocol("gpu_time"), values=values)


def timed(seconds: float) -> Measured:
    return Measured(seconds, [seconds], unit="s")


def exact(value: float, unit: str) -> Measured:
    return Measured(value, [value], unit=unit, exact=True)


def test_bytes_need_no_confirmation_and_counters_explain_a_confirmed_time() -> None:
    own = known(benchmark(ADD.name))
    so_far = SoFar({"base": own, "head": own}, {"base": [ADD], "head": [ADD]})
    steps = CheckSteps(Settings(), lambda: 0.0)
    while (batch := steps.next(so_far)) is not None:
        for index in range(batch.rounds[ADD]):
            for side, factor in (("base", 1.0), ("head", 1.1)):
                order = batch.first + index
                values = {"gpu_time": timed(1e-3 * factor * WIGGLE[index % 6])}
                if order < 2:
                    values["peak_memory"] = exact(2.0**24 * (1 if side == "base" else 1.2), "B")
                if order == 0:
                    values["launches"] = exact(3 if side == "base" else 5, "count")
                so_far.rounds.append(one_round(ADD.name, side, order, **values))
    by_metric = {comparison.metric.name: comparison for comparison in steps.verdicts(so_far)}
    assert by_metric["gpu_time"].reasons == ("confirmed", "kernel launches 3 -> 5 a call")
    memory = by_metric["peak_memory"]
    assert (memory.verdict, memory.exact, memory.reasons) == (Verdict.REGRESSED, True, ())


WIGGLE = (1.0, 1.002, 0.998, 1.001, 0.999, 1.0005)


@pytest.mark.parametrize(
    ("again", "verdict", "reasons"),
    [(1.5, Verdict.REGRESSED, ("confirmed",)), (1.0, Verdict.UNCHANGED, ())],
    ids=["a change", "a slow process"],
)
def test_what_gates_nothing_is_claimed_on_fresh_rounds_too(
    again: float, verdict: Verdict, reasons: tuple[str, ...]
) -> None:
    own = known(benchmark(ADD.name))
    so_far = SoFar({"base": own, "head": own}, {"base": [ADD], "head": [ADD]})
    steps = CheckSteps(Settings(), lambda: 0.0)
    batches = []
    while (batch := steps.next(so_far)) is not None:
        batches.append(batch)
        for order in range(batch.first, batch.first + batch.rounds[ADD]):
            wiggle = WIGGLE[order % 6]
            for side, factor in (("base", 1.0), ("head", again if batch.afresh else 1.5)):
                values = {"gpu_time": timed(1e-3 * wiggle), "host_time": timed(1e-4 * factor * wiggle)}
                so_far.rounds.append(one_round(ADD.name, side, order, **values))
    assert batches[1:] == [Batch({ADD: FEWEST}, CONFIRMING, "confirming 1 case", afresh=True)]
    by_metric = {comparison.metric.name: comparison for comparison in steps.verdicts(so_far)}
    assert by_metric["gpu_time"].verdict is Verdict.UNCHANGED
    assert (by_metric["host_time"].verdict, by_metric["host_time"].reasons) == (verdict, reasons)


def test_what_gates_nothing_is_not_claimed_where_there_is_no_time_to_confirm_it() -> None:
    own = known(benchmark(ADD.name))
    so_far = SoFar({"base": own, "head": own}, {"base": [ADD], "head": [ADD]})
    for order, wiggle in enumerate(WIGGLE[: LOOKS[0]]):
        for side, factor in (("base", 1.0), ("head", 1.5)):
            values = {"gpu_time": timed(1e-3 * wiggle), "host_time": timed(1e-4 * factor * wiggle)}
            so_far.rounds.append(one_round(ADD.name, side, order, **values))
    by_metric = {
        comparison.metric.name: comparison for comparison in CheckSteps(Settings(), lambda: 0.0).verdicts(so_far)
    }
    assert by_metric["host_time"].verdict is Verdict.UNDECIDED
    assert by_metric["host_time"].reasons == ("large, but not confirmed before measuring ended",)


def test_a_case_that_has_failed_before_is_tried_on_the_other_side() -> None:
    own = known(benchmark(ADD.name))
    failed = Round(ADD.name, [], "head", 0, failure=Failure("error", "ValueError: no"))
    so_far = SoFar({"base": own, "head": own}, {"base": [ADD], "head": [ADD]}, [failed])
    steps = CheckSteps(Settings(), lambda: 0.0)
    assert steps.next(so_far) == Batch({ADD: LOOKS[0]})
    so_far.rounds.append(one_round(ADD.name, "base", 0, gpu_time=timed(1e-3)))
    assert steps.next(so_far) is None
    (comparison,) = steps.verdicts(so_far)
    assert (comparison.verdict, comparison.base_failure) == (Verdict.FAILED, None)


def test_a_renamed_benchmark_is_one_case_under_two_names() -> None:
    old, new = benchmark("ops.cudatime_old"), benchmark("ops.cudatime_new", declared={"was": "ops.cudatime_old"})
    cases = {"base": [Case(old.name)], "head": [Case(new.name)]}
    so_far = SoFar({"base": known(old), "head": known(new)}, cases)
    steps = CheckSteps(Settings(), lambda: 0.0)
    batch = steps.next(so_far)
    assert batch is not None
    assert set(batch.rounds) == {Case(old.name), Case(new.name)}
    for order in range(LOOKS[0]):
        for side, name in (("base", old.name), ("head", new.name)):
            so_far.rounds.append(one_round(name, side, order, gpu_time=timed(1e-3 * (1 + order / 1000))))
    assert steps.next(so_far) is None
    (comparison,) = steps.verdicts(so_far)
    assert (comparison.case, comparison.verdict) == (Case(new.name), Verdict.UNCHANGED)


@pytest.mark.parametrize(
    ("change", "verdict", "least"), [(0.0, "unchanged", 1.0), (0.03, "regressed", 0.0), (0.10, "regressed", 1.0)]
)
def test_error_rates(change: float, verdict: str, least: float) -> None:
    """A small seeded part of `python -m tests.simulator`, which prints the whole table."""
    counts, rounds = rates(1 + change, 60, Noise(), seed=3)
    assert counts[verdict] / 60 >= least
    if change == 0.03:
        assert counts["regressed"] <= 2
    if change == 0.0:
        assert rounds <= 5


def test_what_is_extreme_is_confirmed_by_few_rounds_and_what_scatters_is_not_taken_for_it() -> None:
    """A small seeded part of `python -m tests.simulator --extreme`."""
    assert all(look.few and look.claimed for look in looked_at(2.0, 10, Noise(), seed=3))
    assert not any(look.few for look in looked_at(1.0, 30, Noise(0.3), seed=3))
    assert not any(look.few for look in looked_at(1.5, 10, Noise(), seed=3)), "large, and not extreme"


@pytest.mark.parametrize(
    ("pair_sd", "pairs"),
    [(0.005, LOOKS[0]), (0.03, BESIDE), (0.2, LOOKS[0])],
    ids=["decided", "soon decided", "not to be decided"],
)
def test_what_gates_nothing_gets_a_few_pairs_more_where_they_decide(pair_sd: float, pairs: int) -> None:
    own = known(benchmark(ADD.name))
    so_far = SoFar({"base": own, "head": own}, {"base": [ADD], "head": [ADD]})
    steps = CheckSteps(Settings(), lambda: 0.0)
    while (batch := steps.next(so_far)) is not None:
        assert not batch.afresh
        for order in range(batch.first, batch.first + batch.rounds[ADD]):
            log_ratio = pair_sd * (-1) ** (order // 2 + order)
            values = {"gpu_time": timed(1e-3), "host_time": timed(1e-4)}
            base, head = (one_round(ADD.name, side, order, **values) for side in ("base", "head"))
            beside = Against("host_time", "base", "", log_ratio, 0.001, 40, f"zygote {order % 2}")
            so_far.rounds += [base, replace(head, against=[beside])]
    assert len(so_far.rounds) == 2 * pairs
