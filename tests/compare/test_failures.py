from __future__ import annotations

from dataclasses import replace

from regress.compare import compare
from regress.model import Failure, Verdict

from .rounds import SETTINGS, benchmark, broken, known, one, rounds, scaled


def test_a_failure_on_head_only() -> None:
    comparison = one(rounds(gpu_time=scaled(1e-3)), broken())
    assert comparison.verdict is Verdict.FAILED
    assert comparison.head_failure == Failure("error", "ValueError: no such kernel", "ops.py:12")
    assert comparison.base_failure is None
    assert comparison.base is not None
    assert (comparison.head, comparison.ratio, comparison.gates) == (None, None, True)


def test_a_failure_on_base_only_worked_on_head() -> None:
    comparison = one(broken(), rounds(gpu_time=scaled(1e-3)))
    assert comparison.verdict is Verdict.FAILED
    assert comparison.base_failure is not None
    assert comparison.head_failure is None


def test_a_failure_on_both_sides() -> None:
    comparison = one(broken("oom"), broken("timeout"))
    assert comparison.verdict is Verdict.FAILED
    assert comparison.base_failure is not None
    assert comparison.head_failure is not None
    assert (comparison.base_failure.kind, comparison.head_failure.kind) == ("oom", "timeout")


def test_a_skip_is_no_failure() -> None:
    assert one(broken("skipped"), broken("skipped")).verdict is Verdict.SKIPPED
    assert one(rounds(gpu_time=scaled(1e-3)), broken("skipped")).verdict is Verdict.SKIPPED
    assert one(broken("skipped"), broken("error")).verdict is Verdict.FAILED


def test_a_round_that_broke_says_more_than_one_that_was_skipped() -> None:
    head = [*broken("skipped", count=3), *broken("timeout", count=2)]
    comparison = one(rounds(gpu_time=scaled(1e-3)), head)
    assert comparison.verdict is Verdict.FAILED
    assert comparison.head_failure is not None
    assert comparison.head_failure.kind == "timeout"


def test_one_failed_round_in_five_is_left_out_and_said_two_are_too_many() -> None:
    base, good = rounds(gpu_time=scaled(1e-3)), rounds(gpu_time=scaled(1e-3))
    comparison = one(base, [*good[:4], *broken(count=1)])
    assert comparison.verdict is Verdict.UNCHANGED
    assert comparison.head is not None
    assert comparison.head.n == 4
    assert comparison.reasons == ("error in 1 of 5 rounds on the head: ValueError: no such kernel",)
    assert one(base, [*good[:3], *broken(count=2)]).verdict is Verdict.FAILED
    lenient = replace(SETTINGS, good_rounds=0.5)
    assert one(base, [*good[:3], *broken(count=2)], settings=lenient).verdict is Verdict.UNCHANGED


def test_a_skip_in_one_of_three_parameters_keeps_the_others_in_place() -> None:
    defined = benchmark(params=[["64", "256", "1024"]], param_names=["n"])
    side = [
        *rounds(params=["1024"], gpu_time=scaled(1e-3)),
        *broken("skipped", params=["256"]),
        *rounds(params=["64"], gpu_time=scaled(1e-3)),
    ]
    comparisons = compare(side, side, known(defined), SETTINGS)
    assert [(str(comparison.case), comparison.verdict) for comparison in comparisons] == [
        ("ops.cudatime_add(64)", Verdict.UNCHANGED),
        ("ops.cudatime_add(256)", Verdict.SKIPPED),
        ("ops.cudatime_add(1024)", Verdict.UNCHANGED),
    ]


def test_doubts_of_the_rounds_are_reasons() -> None:
    head = rounds(gpu_time=scaled(1e-3))
    doubted = [replace(head[0], flags=["unstable warm-up"]), *head[1:]]
    assert one(head, doubted).reasons == ("unstable warm-up (1 of 5 rounds on the head)",)


def test_what_failed_rounds_have_to_say_is_said() -> None:
    left = "changes $LEFT and does not restore it; regress did"
    comparison = one(broken(count=2), [replace(round, flags=[left]) for round in broken(count=2)])
    assert comparison.verdict is Verdict.FAILED
    assert f"{left} (2 of 2 rounds on the head)" in comparison.reasons
