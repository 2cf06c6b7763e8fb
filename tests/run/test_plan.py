from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from regress.measure.wire import Benchmark, Failure, Proposal, Protocol
from regress.model import SYNCHRONIZES, Batch, Case
from regress.run import needs, plan
from regress.run.job import JobResult
from regress.run.plan import Selection


def benchmark(name: str, *params: list[str]) -> Benchmark:
    return Benchmark(name, "time", "seconds", list(params), [], "v", "wall_time", False)


SUITE = [benchmark("a.Soft.time_x", ["1", "2"], ["'f'"]), benchmark("a.Soft.time_xx"), benchmark("b.time_y")]


@pytest.mark.parametrize(
    ("patterns", "cases"),
    [
        ((), ["a.Soft.time_x(1, 'f')", "a.Soft.time_x(2, 'f')", "a.Soft.time_xx", "b.time_y"]),
        (("a.Soft.time_x",), ["a.Soft.time_x(1, 'f')", "a.Soft.time_x(2, 'f')"]),
        (("a.Soft.time_x(2, 'f')",), ["a.Soft.time_x(2, 'f')"]),
        (("Soft",), ["a.Soft.time_x(1, 'f')", "a.Soft.time_x(2, 'f')", "a.Soft.time_xx"]),
        (("time_y$", r"x\(1"), ["a.Soft.time_x(1, 'f')", "b.time_y"]),
        (("nothing",), []),
    ],
)
def test_an_exact_name_selects_itself_and_anything_else_is_searched(
    patterns: tuple[str, ...], cases: list[str]
) -> None:
    assert [str(case) for case in plan.select(SUITE, Selection(patterns))] == cases


def test_a_pattern_that_is_neither_is_an_error() -> None:
    with pytest.raises(re.error):
        plan.select(SUITE, Selection(("(",)))


def declaring(name: str, file: str = "benchmarks/a.py", **declared: Any) -> Benchmark:
    return replace(benchmark(name), file=file, declared=declared)


def names(selection: Selection, *benchmarks: Benchmark) -> list[str]:
    return [case.name for case in plan.select(benchmarks, selection)]


TAGGED = (
    declaring("one", tags="core"),
    declaring("two", tags=["slow", "core"]),
    declaring("none"),
    declaring("odd", tags=7),
)


@pytest.mark.parametrize(
    ("tags", "selected"),
    [((), ["one", "two", "none", "odd"]), (("core",), ["one", "two"]), (("slow", "x"), ["two"]), (("cor",), [])],
)
def test_a_case_has_any_of_the_tags(tags: tuple[str, ...], selected: list[str]) -> None:
    assert names(Selection(tags=tags), *TAGGED) == selected


def test_names_and_tags_both_have_to_match() -> None:
    assert names(Selection(("one", "none"), ("core",)), *TAGGED) == ["one"]
    # "one" is the name of a benchmark, tagged or not: it does not become an expression that others match.
    others = declaring("one", tags="slow"), declaring("one_more", tags="core")
    assert names(Selection(("one",), ("core",)), *others) == []


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        (Selection(), ""),
        (Selection(changed=("a",)), ""),
        (Selection(("a", "b")), "'a' or 'b'"),
        (Selection(tags=("core",)), "the tag 'core'"),
        (Selection(("a",), ("x", "y")), "'a' and the tag 'x' or 'y'"),
    ],
)
def test_a_selection_in_words(selection: Selection, words: str) -> None:
    assert selection.words == words


@pytest.mark.parametrize(
    ("pattern", "file", "covered"),
    [
        ("src/ops.py", "src/ops.py", True),
        ("./src/ops.py", "src/ops.py", True),
        ("src/ops.py", "lib/src/ops.py", False),
        ("src/", "src/a/b.py", True),
        ("src/**", "src/a/b.py", True),
        ("src", "src/a.py", True),
        ("src", "srcs/a.py", False),
        ("src/", "srcs/a.py", False),
        ("src/*.cu", "src/deep/k.cu", True),
        ("src/*.cu", "src/k.cuh", False),
        ("SRC/", "src/a.py", False),
    ],
)
def test_what_a_pattern_covers(pattern: str, file: str, covered: bool) -> None:
    assert plan.covers(pattern, file) is covered


def test_affected_is_what_covers_a_changed_file_or_stands_in_one() -> None:
    suite = (
        declaring("softmax", covers=["lib/softmax/", "lib/common.py"]),
        declaring("matmul", covers="lib/matmul/**"),
        declaring("silent"),
        declaring("elsewhere", file="benchmarks/b.py"),
    )
    selected = {
        ("lib/softmax/k.cu",): ["softmax"],
        ("lib/common.py", "lib/matmul/k.cu"): ["softmax", "matmul"],
        ("README",): [],
        (): [],
        ("sub/benchmarks/a.py",): ["softmax", "matmul", "silent"],
        ("benchmarks/a.py",): [],  # the suite is in sub/
    }
    for changed, expected in selected.items():
        assert names(Selection(changed=changed, suite_parent="sub"), *suite) == expected, changed
    assert names(Selection(changed=("benchmarks/b.py",), suite_parent="."), *suite) == ["elsewhere"]
    assert names(Selection(("mat",), changed=("lib/common.py",)), *suite) == []


@pytest.mark.parametrize("value", ["two", -1, True, 1.5, [2]])
def test_a_number_of_gpus_that_is_none_is_said_and_measured(value: Any) -> None:
    odd = declaring("odd", gpus=value)
    assert needs.refusal(odd) is None
    (said,) = plan.complaints([odd, declaring("good", gpus=1)], Selection())
    assert said == f"odd: the declared gpus {value!r} is not a number of GPUs, so it is measured with one"
    assert plan.complaints([odd], Selection(("other",))) == [], "only what is asked for"


def test_more_than_one_gpu_is_refused() -> None:
    assert needs.refusal(declaring("two", gpus=2)) == Failure(
        "skipped", "needs 2 GPUs: one is used; name more with --gpus"
    )
    assert needs.refusal(declaring("one")) is None


def test_benchmarks_that_declare_no_covers_are_counted_where_it_matters() -> None:
    suite = [declaring("a", covers="lib/"), declaring("b"), declaring("b"), declaring("c", tags="x")]
    assert plan.complaints(suite, Selection()) == []
    (said,) = plan.complaints(suite, Selection(changed=("lib/a.py",)))
    assert said.startswith("2 of 3 benchmarks declare no `covers`")
    assert plan.complaints(suite, Selection(("a",), changed=())) == []


def offer(side: str, calls: int, *flags: str, failure: Failure | None = None) -> Proposal:
    protocol = None if failure else Protocol("gpu_time", calls=calls)
    return Proposal("b", [], side, protocol, failure, flags=list(flags))


def test_the_base_decides_how_both_are_measured() -> None:
    settled = plan.settle({"base": offer("base", 40), "head": offer("head", 1)})
    assert settled == Protocol("gpu_time", calls=40)


def test_a_base_that_synchronizes_leaves_it_to_the_head() -> None:
    settled = plan.settle({"base": offer("base", 1, SYNCHRONIZES), "head": offer("head", 40)})
    assert settled == Protocol("gpu_time", calls=40)
    both = {side: offer(side, 1, SYNCHRONIZES) for side in ("base", "head")}
    assert plan.settle(both) == Protocol("gpu_time", calls=1)


def test_both_sides_are_set_up_each_time_where_one_has_to_be() -> None:
    proposal = Proposal("n", [], "head", Protocol("wall_time", setup_each=True))
    assert plan.settle({"base": offer("base", 40), "head": proposal}) == proposal.protocol


def test_a_side_that_fails_has_no_say() -> None:
    broken = Failure("error", "no")
    assert plan.settle({"base": offer("base", 40, failure=broken), "head": offer("head", 3)}) == Protocol(
        "gpu_time", calls=3
    )
    assert plan.settle({"base": offer("base", 40, failure=broken)}) is None


def test_a_case_is_given_up_when_it_can_no_longer_have_enough_good_rounds() -> None:
    assert not plan.hopeless(1, planned=5, good_share=0.8)
    assert plan.hopeless(2, planned=5, good_share=0.8)
    assert plan.hopeless(1, planned=1, good_share=0.8)


def test_a_timeout_is_the_benchmarks_own_or_the_suites() -> None:
    assert plan.timeout_of(SUITE[0], 60.0) == 60.0
    assert plan.timeout_of(Benchmark("b", "time", "s", [], [], "v", "wall_time", False, timeout_s=5.0), 60.0) == 5.0


def test_a_case_is_named_as_asv_names_it() -> None:
    assert str(Case("a.b", ("1", "'x'"))) == "a.b(1, 'x')"
    assert str(Case("a.b")) == "a.b"


def test_fixed_rounds_within_a_budget_cover_the_suite_from_its_front() -> None:
    """Ten cases of 1 s a visit, and as much a round: visits take two fifths of 20 s, and what fits then is measured."""
    every = [Case(f"case_{number}") for number in range(10)]
    job_result, now = JobResult(cases={"head": every}), [0.0]
    steps, measured = plan.FixedRounds(2, 20.0, lambda: now[0]), list[Case]()
    while (batch := steps.next(job_result)) is not None:
        began = now[0]
        for case, rounds in batch.rounds.items():
            if rounds:
                measured.append(case)
                now[0] += rounds
            elif now[0] - began < batch.visits_s:
                job_result.costs[case] = 1.0
                now[0] += 1.0
    assert measured == every[:6]
    assert now[0] <= 20.0


def test_fixed_rounds_without_a_bound_are_one_batch() -> None:
    job_result, steps = JobResult(cases={"base": [Case("a")], "head": [Case("a"), Case("b")]}), plan.FixedRounds(3)
    assert steps.next(job_result) == Batch({Case("a"): 3, Case("b"): 3})
    assert steps.next(job_result) is None
