"""Implementations side by side: who is called the fastest, who is not, and where along the size that changes."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from regress.compare import implementations
from regress.compare.implementations import number_of, size_of, stretches_of, words
from regress.model import Benchmark, Case, Contender, Implementations, Round, Standing, Stretch, Summary
from regress.stats.ttests import welch

from .rounds import NOISY, QUIET, SETTINGS, benchmark, broken, known, rounds, scaled

NAME = "ops.cudatime_add"


def defined(ways: Sequence[str], *axes: tuple[str, Sequence[str]], **changes: Any) -> Benchmark:
    names = ["implementation", *(name for name, _ in axes)]
    params = [[repr(way) for way in ways], *(list(values) for _, values in axes)]
    return benchmark(NAME, params=params, param_names=names, **changes)


def taken(way: str, *params: str, at: float, factors: Sequence[float] = QUIET, **more: Any) -> list[Round]:
    return rounds(NAME, [repr(way), *params], gpu_time=scaled(at, factors), **more)


def only(every: Sequence[Round], suite: Benchmark) -> Implementations:
    (one,) = implementations(every, known(suite), SETTINGS)
    return one


def outcomes(operation: Implementations) -> list[tuple[tuple[str, ...], str, tuple[str, ...]]]:
    return [(standing.params, standing.outcome, standing.leaders) for standing in operation.standings]


def test_the_smallest_time_is_the_fastest_where_it_is_apart_and_the_crossover_is_named() -> None:
    suite = defined(["torch", "triton", "cupy"], ("n", ["256", "1024", "4096"]))
    times = {"torch": (20e-6, 21e-6, 30e-6), "triton": (10e-6, 21.01e-6, 60e-6), "cupy": (40e-6, 80e-6, 90e-6)}
    operation = only(
        [
            round
            for way, every in times.items()
            for n, at in zip(("256", "1024", "4096"), every, strict=True)
            for round in taken(way, n, at=at)
        ],
        suite,
    )
    assert (operation.name, operation.metric.name, operation.names) == (NAME, "gpu_time", ("torch", "triton", "cupy"))
    assert (operation.param_names, operation.size, operation.rest_names) == (("n",), "n", ())
    assert outcomes(operation) == [
        (("256",), "fastest", ("triton",)),
        (("1024",), "no difference shown", ("torch", "triton")),
        (("4096",), "fastest", ("torch",)),
    ]
    (crossover,) = operation.crossovers
    assert crossover.words == "triton up to 256, no difference shown between torch and triton at 1024, torch from 4096"
    first = operation.standings[0]
    assert first.next is not None
    assert first.next.name == "torch"
    assert first.next.ratio == pytest.approx(2.0)
    assert first.next.p_adjusted is not None
    assert first.next.p_adjusted < 0.05


def test_values_that_overlap_show_no_difference() -> None:
    suite = defined(["torch", "triton"])
    operation = only([*taken("torch", at=10e-6, factors=NOISY), *taken("triton", at=11e-6, factors=NOISY)], suite)
    assert outcomes(operation) == [((), "no difference shown", ("torch", "triton"))]
    assert (operation.size, operation.crossovers) == ("", ())


def test_what_is_apart_from_the_next_but_not_from_a_third_is_not_called_the_fastest() -> None:
    """The third is so noisy that it may be as fast."""
    suite = defined(["torch", "triton", "cupy"])
    operation = only(
        [
            *taken("torch", at=10e-6),
            *taken("triton", at=12e-6),
            *taken("cupy", at=14e-6, factors=(1, 2, 0.5, 1.5, 0.7)),
        ],
        suite,
    )
    assert outcomes(operation) == [((), "no difference shown", ("torch", "cupy"))]


def test_many_tests_are_adjusted_together() -> None:
    """What one test alone would call a difference is none among a hundred like it."""
    sizes = [str(n) for n in range(1, 101)]
    suite = defined(["torch", "triton"], ("n", sizes))
    factors = (1.0, 1.02, 0.98, 1.01, 0.99), (1.0, 1.02, 0.98, 1.01, 0.99)
    alone = welch(scaled(10e-6, factors[0]), scaled(10.3e-6, factors[1])).p
    assert alone is not None
    assert alone < 0.05 < 100 * alone
    one = [*taken("torch", "1", at=10e-6, factors=factors[0]), *taken("triton", "1", at=10.3e-6, factors=factors[1])]
    assert outcomes(only(one, suite))[0][1] == "fastest"
    every = [
        round
        for n in sizes
        for round in (
            *taken("torch", n, at=10e-6, factors=factors[0]),
            *taken("triton", n, at=10.3e-6, factors=factors[1]),
        )
    ]
    assert {standing.outcome for standing in only(every, suite).standings} == {"no difference shown"}


@pytest.mark.parametrize("ways", [2, 3])
def test_where_nothing_differs_a_fastest_is_seldom_named(ways: int) -> None:
    """At alpha for two, more seldom for more: however many there are, one has to be apart from all."""
    names = [f"way{k}" for k in range(ways)]
    suite, dice, claimed = defined(names, ("n", ["256", "1024"])), random.Random(7), 0
    for _ in range(300):
        operation = only(
            [
                round
                for name in names
                for n in ("256", "1024")
                for round in taken(name, n, at=1e-4, factors=[math.exp(0.01 * dice.gauss(0, 1)) for _ in range(5)])
            ],
            suite,
        )
        claimed += any(standing.fastest for standing in operation.standings)
    assert claimed / 300 < (
        SETTINGS.alpha + 0.03 if ways == 2 else SETTINGS.alpha / 2
    )  # 0.03: by chance in one of a hundred


# -- what is missing -----------------------------------------------------------------------------------------------------


def test_what_is_skipped_or_failed_takes_no_part_and_is_named() -> None:
    suite = defined(["torch", "triton", "cupy"], ("n", ["256", "1024", "4096"]))
    operation = only(
        [
            *taken("torch", "256", at=10e-6),
            *taken("triton", "256", at=20e-6),
            *taken("triton", "1024", at=20e-6),
            *broken("skipped", name=NAME, params=["'cupy'", "256"]),
            *broken("oom", name=NAME, params=["'torch'", "1024"]),
            *broken("oom", name=NAME, params=["'torch'", "4096"]),
            *broken("oom", name=NAME, params=["'triton'", "4096"]),
        ],
        suite,
    )
    assert outcomes(operation) == [
        (("256",), "fastest", ("torch",)),
        (("1024",), "alone", ("triton",)),
        (("4096",), "nothing measured", ()),
    ]
    kinds = [
        [contender.failure.kind if contender.failure else "" for contender in one.contenders]
        for one in operation.standings
    ]
    assert kinds == [["", "", "skipped"], ["oom", ""], ["oom", "oom"]]
    assert operation.crossovers[0].words == "torch up to 256, only triton at 1024, nothing measured from 4096"


def test_one_implementation_alone_is_no_comparison() -> None:
    suite = defined(["torch", "cupy"])
    alone = [*taken("torch", at=1e-5), *broken("skipped", name=NAME, params=["'cupy'"])]
    assert implementations(alone, known(suite), SETTINGS) == ()


def test_a_benchmark_without_the_parameter_or_about_no_time_has_none() -> None:
    suite = defined(["torch", "cupy"])
    both = [*taken("torch", at=1e-5), *taken("cupy", at=2e-5)]
    assert implementations(both, known(replace(suite, param_names=["library"])), SETTINGS) == ()
    assert implementations(both, {}, SETTINGS) == ()
    bytes_ = [
        round
        for way in ("torch", "cupy")
        for round in rounds(NAME, [repr(way)], metric="peak_rss", peak_rss=[1e6, 1e6, 1e6])
    ]
    assert implementations(bytes_, known(replace(suite, metric="peak_rss")), SETTINGS) == ()


def test_wall_time_stands_in_where_more_have_it() -> None:
    suite = defined(["torch", "jax"])
    operation = only(
        [
            *rounds(NAME, ["'torch'"], gpu_time=scaled(5e-6), wall_time=scaled(30e-6)),
            *rounds(NAME, ["'jax'"], wall_time=scaled(20e-6)),
        ],
        suite,
    )
    assert operation.metric.name == "wall_time"
    assert outcomes(operation) == [((), "fastest", ("jax",))]


# -- what casts doubt ----------------------------------------------------------------------------------------------------


def with_facts(every: Sequence[Round], **facts: Any) -> list[Round]:
    return [replace(round, facts=facts) for round in every]


DOUBTS: list[tuple[Mapping[str, Any], Mapping[str, Any], float, str]] = [
    ({}, {"throttled": ["thermal"]}, 2.0, "triton: throttled (thermal) in 5 of 5 rounds on the side of triton"),
    (
        {"gpu_uuid": "A"},
        {"gpu_uuid": "B"},
        2.0,
        "triton: different device: A on the side of torch, B on the side of triton",
    ),
    ({}, {"foreign_processes": ["4711, python"]}, 2.0, "triton: another process computed on the device: 4711, python"),
    (
        {"sm_clock_hz": 1.98e9},
        {"sm_clock_hz": 1.8e9},
        1.05,
        "triton: SM clock 1980 MHz on the side of torch, 1800 MHz on the side of triton (9.5 % apart)",
    ),
]


@pytest.mark.parametrize(("torch", "triton", "ratio", "reason"), DOUBTS)
def test_what_keeps_sides_from_being_told_apart_does_so_here(
    torch: Mapping[str, Any], triton: Mapping[str, Any], ratio: float, reason: str
) -> None:
    suite = defined(["torch", "triton"])
    pair = [
        *with_facts(taken("torch", at=1e-4), **torch),
        *with_facts(taken("triton", at=ratio * 1e-4), **triton),
    ]
    (standing,) = only(pair, suite).standings
    assert (standing.outcome, standing.reasons) == ("no difference shown", (reason,))


def test_clocks_speak_only_against_a_difference_that_they_could_make() -> None:
    suite = defined(["torch", "triton"])
    pair = [
        *with_facts(taken("torch", at=1e-4), sm_clock_hz=1.98e9),
        *with_facts(taken("triton", at=2e-4), sm_clock_hz=1.8e9),
    ]
    assert outcomes(only(pair, suite))[0][1] == "fastest"


def test_one_round_shows_no_difference() -> None:
    suite = defined(["torch", "triton"])
    (standing,) = only([*taken("torch", at=1e-5, factors=[1]), *taken("triton", at=2e-5, factors=[1])], suite).standings
    assert (standing.outcome, standing.reasons) == ("no difference shown", ("triton: one round only",))


@pytest.mark.parametrize(
    ("slower", "calls", "outcome"),
    [(0.5e-6, 1, "no difference shown"), (1.5e-6, 1, "fastest"), (0.5e-6, 9, "fastest")],
)
def test_unlike_windows_are_told_apart_by_what_is_more_than_theirs(slower: float, calls: int, outcome: str) -> None:
    suite = defined(["torch", "triton"])
    pair = [
        *taken("torch", at=20e-6, factors=(1, 1.0002, 0.9998), protocol={"calls": 10}),
        *taken("triton", at=20e-6 + slower, factors=(1, 1.0002, 0.9998), protocol={"calls": calls}),
    ]
    assert outcomes(only(pair, suite))[0][1] == outcome


def test_the_clock_tells_two_of_its_steps_apart() -> None:
    suite = defined(["torch", "triton"])
    pair = [
        *with_facts(taken("torch", at=10e-6, factors=[1] * 9), clock_step_s=0.5e-6),
        *with_facts(taken("triton", at=10.9e-6, factors=[1] * 9), clock_step_s=0.5e-6),
    ]
    (standing,) = only(pair, suite).standings
    assert standing.reasons == ("triton: the difference is under two steps of the clock",)


# -- sizes and crossovers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("param", "number"),
    [("4096", 4096), ("'64k'", 64_000), ("'4Ki'", 4096), ("(1024, 512)", 1024), ("-1", -1), ("1e-3", 1e-3), ("0.5", 0.5),
     ("1_000", 1000), ("'3d'", None), ("'float32'", None), ("None", None), ("True", None), ("''", None), ("'1.5M'", 1.5e6)],
)  # fmt: skip
def test_numbers_of_parameters(param: str, number: float | None) -> None:
    assert number_of(param) == number


def test_the_size_is_the_parameter_of_numbers_with_the_most_values() -> None:
    every = list(itertools.product(["'f32'", "'f16'"], ["1", "2"], ["8", "16", "32"]))
    assert size_of(["dtype", "heads", "n"], every) == "n"
    assert size_of(["dtype"], [("'f32'",), ("'f16'",)]) == ""
    assert size_of(["n"], [("64",)]) == ""
    assert size_of(["n"], [("64",), ("'64'",)]) == ""  # one number twice has no order


def test_each_combination_of_the_rest_has_its_crossover() -> None:
    suite = defined(["torch", "triton"], ("dtype", ["'f32'", "'f16'"]), ("n", ["4096", "256"]))
    fast, slow = 1e-5, 2e-5
    operation = only(
        [
            round
            for dtype, n, torch, triton in (
                ("'f32'", "256", slow, fast),
                ("'f32'", "4096", fast, slow),
                ("'f16'", "256", slow, fast),
                ("'f16'", "4096", slow, fast),
            )
            for round in (*taken("torch", dtype, n, at=torch), *taken("triton", dtype, n, at=triton))
        ],
        suite,
    )
    assert operation.rest_names == ("dtype",)
    assert [(crossover.params, crossover.words) for crossover in operation.crossovers] == [
        (("'f32'",), "triton up to 256, torch from 4096"),
        (("'f16'",), "triton at every n"),
    ]


def test_words_of_crossovers() -> None:
    def told(*stretches: tuple[str, str, str, str]) -> str:
        return words([Stretch(stretch[0], tuple(stretch[1].split()), *stretch[2:]) for stretch in stretches], "n")  # type: ignore[arg-type]

    assert told(("no difference shown", "a b c", "1", "9")) == "no difference shown between a, b and c at any n"
    assert told(("nothing measured", "", "1", "9")) == "nothing measured at any n"
    assert told(("fastest", "a", "1", "1")) == "a at 1"
    assert told(("fastest", "a", "'1k'", "'2k'"), ("fastest", "b", "'4k'", "'8k'")) == "a up to 2k, b from 4k"
    three = (("fastest", "a", "1", "1"), ("fastest", "b", "2", "4"), ("alone", "a", "8", "8"))
    assert told(*three) == "a up to 1, b from 2 to 4, only a from 8"


# -- laws ----------------------------------------------------------------------------------------------------------------

WAYS = ["torch", "triton", "cupy"]
SIZES = ["64", "128", "256", "512", "1024"]
times = some.floats(1e-6, 1e-3)
tables = some.dictionaries(
    some.tuples(some.sampled_from(WAYS), some.sampled_from(SIZES)),
    some.tuples(times, some.floats(0.0, 0.3)),
    min_size=1,
    max_size=15,
)


def measured(table: Mapping[tuple[str, str], tuple[float, float]], factor: float = 1.0) -> list[Round]:
    dice = random.Random(0)
    return [
        round
        for (way, n), (at, noise) in table.items()
        for round in taken(way, n, at=at * factor, factors=[math.exp(noise * dice.gauss(0, 1)) for _ in range(4)])
    ]


@settings(deadline=None, max_examples=60)
@given(tables)
def test_the_fastest_is_the_smallest_and_apart_from_every_other(
    table: Mapping[tuple[str, str], tuple[float, float]],
) -> None:
    for implementation in implementations(measured(table), known(defined(WAYS, ("n", SIZES))), SETTINGS):
        for standing in implementation.standings:
            timed = {contender.name: contender for contender in standing.contenders if contender.summary is not None}
            centers = {
                name: contender.summary.center for name, contender in timed.items() if contender.summary is not None
            }
            assert standing.leaders[0] == min(centers, key=lambda name: centers[name])
            assert set(standing.leaders) <= set(timed)
            for name, contender in timed.items():
                if name not in standing.leaders:
                    assert contender.low is not None
                    assert contender.low > 1
                    assert contender.p_adjusted is not None
                    assert contender.p_adjusted < SETTINGS.alpha
            if standing.fastest:
                assert len(timed) > 1
                assert standing.leaders == (standing.fastest,)


@settings(deadline=None, max_examples=40)
@given(tables, some.randoms(use_true_random=False), some.sampled_from([0.5, 4.0]))
def test_neither_the_order_nor_the_unit_changes_who_leads(
    table: Mapping[tuple[str, str], tuple[float, float]], dice: random.Random, factor: float
) -> None:
    suite = known(defined(WAYS, ("n", SIZES)))
    before = measured(table)
    shuffled = dice.sample(before, len(before))
    assert implementations(shuffled, suite, SETTINGS) == implementations(before, suite, SETTINGS)
    scaled_ = implementations(measured(table, factor), suite, SETTINGS)
    for one, other in zip(implementations(before, suite, SETTINGS), scaled_, strict=True):
        assert outcomes(one) == outcomes(other)


standings = some.lists(
    some.tuples(some.integers(1, 10_000), some.lists(some.sampled_from(WAYS), max_size=3, unique=True)),
    max_size=12,
    unique_by=lambda stretch: stretch[0],
)


@given(standings)
def test_stretches_partition_the_sizes(fastest: list[tuple[int, list[str]]]) -> None:
    contenders = tuple(Contender(way, Case(NAME, (way,)), Summary(1.0, 1.0, 1.0, 0.95, 5)) for way in WAYS)
    every = [Standing((str(n),), contenders, tuple(leaders)) for n, leaders in fastest]
    stretches = stretches_of(every, 0)
    sizes = sorted(n for n, _ in fastest)
    covered = [[n for n in sizes if int(stretch.first) <= n <= int(stretch.last)] for stretch in stretches]
    assert [n for group in covered for n in group] == sizes
    assert all(covered)
    by_size = {int(standing.params[0]): standing for standing in every}
    for stretch, group in zip(stretches, covered, strict=True):
        assert {(by_size[n].outcome, frozenset(by_size[n].leaders)) for n in group} == {
            (stretch.outcome, frozenset(stretch.names))
        }
    for one, other in itertools.pairwise(stretches):
        assert (one.outcome, one.names) != (other.outcome, other.names)
