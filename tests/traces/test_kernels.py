from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from regress.model import KernelDiff
from regress.traces.kernels import copy_diffs, explain, kernel_diffs
from regress.traces.timeline import Sync, Timeline
from tests.traces.samples import US, copy, in_turn, launch, near, timeline, timelines

THRESHOLD = 0.05


def told(diffs: tuple[KernelDiff, ...]) -> set[tuple[str | None, str | None, str, str]]:
    return {
        (
            kernel.base.name if kernel.base else None,
            kernel.head.name if kernel.head else None,
            kernel.matched,
            kernel.kind,
        )
        for kernel in diffs
    }


def kernels(base: Timeline, head: Timeline) -> set[tuple[str | None, str | None, str, str]]:
    return told(kernel_diffs(base, head, THRESHOLD))


# -- matching ------------------------------------------------------------------------------------------------------------


def test_by_name() -> None:
    base = in_turn(launch("a", 0, 10), launch("b", 0, 10), launch("c", 0, 10), launch("d", 0, 10))
    head = in_turn(launch("a", 0, 10.4), launch("b", 0, 11), launch("c", 0, 9), launch("d", 0, 5), launch("d", 0, 5))
    assert kernels(base, head) == {
        ("a", "a", "name", "same"),
        ("b", "b", "name", "slower"),
        ("c", "c", "name", "faster"),
        ("d", "d", "name", "more launches"),
    }


def test_by_name_without_template_arguments_for_one_operator() -> None:
    base = in_turn(launch("void f<4>(int)", 0, 10, "aten::gelu"), launch("void g<float>(int)", 0, 10, "aten::add"))
    head = in_turn(launch("void f<8>(int)", 0, 20, "aten::gelu"), launch("void g<half>(int)", 0, 10, "aten::mul"))
    assert kernels(base, head) >= {("void f<4>(int)", "void f<8>(int)", "template", "slower")}
    assert ("void g<float>(int)", "void g<half>(int)", "template", "same") not in kernels(base, head)


def test_by_the_operator_and_the_shapes() -> None:
    base = in_turn(launch("flash", 0, 10, "attention", "[8, 64]"), launch("flash2", 0, 10, "attention", "[8, 128]"))
    head = in_turn(launch("cutlass2", 0, 10, "attention", "[8, 128]"), launch("cutlass", 0, 30, "attention", "[8, 64]"))
    assert kernels(base, head) == {
        ("flash", "cutlass", "operator", "replaced"),
        ("flash2", "cutlass2", "operator", "replaced"),
    }


def test_one_kernel_that_became_several_of_an_operator_is_gone() -> None:
    base = in_turn(launch("flash", 0, 10, "attention"))
    head = in_turn(*(launch(name, 0, 10, "attention") for name in ("bmm", "softmax", "bmm2")))
    assert kernels(base, head) == {
        ("flash", None, "nothing", "gone"),
        (None, "bmm", "nothing", "new"),
        (None, "softmax", "nothing", "new"),
        (None, "bmm2", "nothing", "new"),
    }


def test_by_the_place_between_others_that_match() -> None:
    base = in_turn(launch("a", 0, 1), launch("x", 0, 1), launch("b", 0, 1), launch("p", 0, 1))
    head = in_turn(launch("a", 0, 1), launch("y", 0, 1), launch("b", 0, 1), launch("q", 0, 1), launch("r", 0, 1))
    assert kernels(base, head) >= {
        ("x", "y", "position", "replaced"),
        ("p", None, "nothing", "gone"),
        (None, "q", "nothing", "new"),
        (None, "r", "nothing", "new"),
    }


def test_copies_match_by_name_alone() -> None:
    base = timeline(copies=[copy("Memcpy HtoD (Pinned -> Device)", 0, 10, 64)])
    head = timeline(copies=[copy("Memcpy HtoD (Pageable -> Device)", 0, 30, 64)])
    assert told(copy_diffs(base, head, THRESHOLD)) == {
        ("Memcpy HtoD (Pinned -> Device)", None, "nothing", "gone"),
        (None, "Memcpy HtoD (Pageable -> Device)", "nothing", "new"),
    }


def test_the_largest_difference_comes_first_whichever_way_it_goes() -> None:
    base = in_turn(launch("a", 0, 50), launch("b", 0, 10), launch("c", 0, 10))
    head = in_turn(launch("a", 0, 10), launch("b", 0, 11), launch("c", 0, 30))
    assert [kernel.head.name for kernel in kernel_diffs(base, head, THRESHOLD) if kernel.head] == ["a", "c", "b"]


# -- where the difference went -------------------------------------------------------------------------------------------


def test_the_parts_of_a_difference() -> None:
    base = timeline([launch("a", 0, 10)], [copy("Memset (Device)", 10, 2, 8)], span_us=20, calls=2)
    head = timeline(
        [launch("a", 0, 20), launch("b", 5, 10)],  # b runs beside a
        [copy("Memset (Device)", 30, 4, 8)],
        [Sync("cudaStreamSynchronize", 0.0, 1e-6)],
        span_us=60,
        calls=2,
    )
    explanation = explain(base, head, THRESHOLD)
    assert (explanation.base_s, explanation.head_s) == (near(10 * US), near(30 * US))
    assert (explanation.kernels_s, explanation.copies_s, explanation.idle_s) == (
        near(10 * US),
        near(1 * US),
        near(14 * US),
    )
    assert explanation.unexplained_s == near(-5 * US)  # what ran side by side is in the span once
    assert explanation.syncs == (0, 0.5)


def test_what_a_record_lacks_is_said() -> None:
    base = replace(timeline([launch("a", 0, 10)]), device="H100", gaps_in_record=("no operators were recorded",))
    explanation = explain(base, replace(base, device="H200", gaps_in_record=()), THRESHOLD)
    assert explanation.warnings == (
        "base: no operators were recorded",
        "base ran on H100 and head on H200: their times do not compare",
    )


# -- laws ----------------------------------------------------------------------------------------------------------------


@given(timelines(), timelines())
def test_the_parts_add_up(base: Timeline, head: Timeline) -> None:
    explanation = explain(base, head, THRESHOLD)
    parts = explanation.kernels_s + explanation.copies_s + explanation.idle_s + explanation.unexplained_s
    assert parts == pytest.approx(explanation.difference_s, abs=1e-15)
    assert sum(kernel.difference_s for kernel in explanation.kernels) == pytest.approx(explanation.kernels_s, abs=1e-12)
    assert sum(kernel.difference_s for kernel in explanation.copies) == pytest.approx(explanation.copies_s, abs=1e-12)


@given(timelines(), timelines())
def test_each_kernel_is_in_one_row(base: Timeline, head: Timeline) -> None:
    diffs = kernel_diffs(base, head, THRESHOLD)
    for whole, uses in ((base, [kernel.base for kernel in diffs]), (head, [kernel.head for kernel in diffs])):
        names = [use.name for use in uses if use is not None]
        assert sorted(names) == sorted({work.name for work in whole.launches})


@given(timelines())
def test_nothing_differs_from_itself(whole: Timeline) -> None:
    explanation = explain(whole, whole, THRESHOLD)
    assert {kernel.kind for kernel in (*explanation.kernels, *explanation.copies)} <= {"same"}
    assert {kernel.matched for kernel in (*explanation.kernels, *explanation.copies)} <= {"name"}
    assert (explanation.difference_s, explanation.kernels_s, explanation.copies_s, explanation.idle_s) == (0, 0, 0, 0)
    assert explanation.causes == ()


OPPOSITES = {
    "new": "gone",
    "gone": "new",
    "slower": "faster",
    "faster": "slower",
    "more launches": "fewer launches",
    "fewer launches": "more launches",
}


@given(timelines(), timelines())
def test_the_sides_in_each_others_place(base: Timeline, head: Timeline) -> None:
    there, back = explain(base, head, THRESHOLD), explain(head, base, THRESHOLD)
    for part in ("difference_s", "kernels_s", "copies_s", "idle_s", "unexplained_s"):
        assert getattr(back, part) == pytest.approx(-getattr(there, part), abs=1e-15)
    expected = {(head, base, matched, OPPOSITES.get(kind, kind)) for base, head, matched, kind in told(there.kernels)}
    assert told(back.kernels) == expected
    if there.difference_s and there.kernels_s + there.copies_s:
        assert [(cause.kind, cause.confidence) for cause in back.causes] == [
            (cause.kind, cause.confidence) for cause in there.causes
        ]
