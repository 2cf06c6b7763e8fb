from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.traces.timeline import Allocation, ApiCall, MarkedRange, Operator, Sync, Timeline, between
from regress.traces.totals import (
    bottleneck,
    by_api_call,
    by_copy,
    by_kernel,
    by_operator,
    by_range,
    gaps,
    host_busy,
    memory,
    totals,
)
from tests.traces.samples import US, copy, launch, near, timeline, timelines


def test_busy_idle_and_overlap_of_two_calls() -> None:
    whole = timeline(
        [launch("a", 10, 20), launch("b", 20, 20)],  # side by side for 10
        [copy("Memset (Device)", 60, 10, 64, "memset")],
        [Sync("cudaStreamSynchronize", 50 * US, 30 * US)],
        api_calls=[ApiCall("cudaLaunchKernel", 5 * US, 15 * US), ApiCall("cudaStreamSynchronize", 50 * US, 30 * US)],
        span_us=100,
        calls=2,
    )
    all_of_it = totals(whole)
    assert all_of_it.span_s == pytest.approx(50 * US)
    assert all_of_it.device_busy_s == pytest.approx(20 * US)
    assert all_of_it.idle_s == pytest.approx(30 * US)
    assert all_of_it.kernels_s == pytest.approx(20 * US)
    assert all_of_it.copies_s == pytest.approx(5 * US)
    assert all_of_it.host_busy_s == pytest.approx(7.5 * US)
    assert all_of_it.waiting_s == pytest.approx(15 * US)
    assert all_of_it.overlap_s == pytest.approx(5 * US)  # from 10 to 20
    assert (all_of_it.launches, all_of_it.copies, all_of_it.synchronizations) == (1, 0.5, 0.5)


def test_waiting_is_not_being_busy() -> None:
    whole = timeline(syncs=[Sync("s", 2 * US, 3 * US)], api_calls=[ApiCall("s", 2 * US, 3 * US)], span_us=10)
    assert host_busy(whole) == []


@given(timelines())
def test_busy_and_idle_make_up_the_span(whole: Timeline) -> None:
    all_of_it = totals(whole)
    assert all_of_it.device_busy_s + all_of_it.idle_s == pytest.approx(all_of_it.span_s)
    assert -1e-12 <= all_of_it.idle_s <= all_of_it.span_s + 1e-12
    assert all_of_it.device_busy_s <= all_of_it.kernels_s + all_of_it.copies_s + 1e-12
    assert all_of_it.overlap_s <= min(all_of_it.host_busy_s, all_of_it.device_busy_s) + 1e-12


@given(timelines())
def test_kernels_and_copies_add_up(whole: Timeline) -> None:
    all_of_it = totals(whole)
    assert sum(use.seconds for use in by_kernel(whole)) == pytest.approx(all_of_it.kernels_s)
    assert sum(use.launches for use in by_kernel(whole)) == pytest.approx(all_of_it.launches)
    assert sum(use.seconds for use in by_copy(whole)) == pytest.approx(all_of_it.copies_s)


@given(timelines())
def test_gaps_make_up_the_idle_time(whole: Timeline) -> None:
    idle_s = totals(whole).idle_s * whole.calls
    assert sum(gap.duration_s for gap in gaps(whole, most=1000)) == pytest.approx(idle_s, abs=1e-12)


def test_a_kernel_is_described_by_its_longest_launch() -> None:
    kernels = [
        launch("k", 0, 5, "aten::mm", "[1]", registers=32, correlation=1),
        launch("k", 10, 9, "aten::mm", "[2]", registers=64, grid=(2, 1, 1), correlation=1),
        launch("j", 30, 20),
    ]
    uses = by_kernel(timeline(kernels, api_calls=[ApiCall("cudaGraphLaunch", 0.0, 4 * US, correlation=1)], calls=2))
    assert [use.name for use in uses] == ["j", "k"]
    assert (uses[1].launches, uses[1].seconds) == pytest.approx((1, 7 * US))
    assert (uses[1].registers, uses[1].grid, uses[1].operators, uses[1].shapes) == (
        64,
        (2, 1, 1),
        ("aten::mm",),
        "[1]",
    )
    assert uses[1].host_s == pytest.approx(2 * US)


def test_operators_have_their_own_time_and_that_of_what_is_inside() -> None:
    whole = replace(
        timeline([launch("k", 12, 30, "linear/addmm"), launch("j", 50, 5, "linear")], span_us=60),
        operators=(
            Operator("linear", 0.0, 20 * US, path=("linear",)),
            Operator("addmm", 5 * US, 10 * US, path=("linear", "addmm")),
            Operator("addmm", 6 * US, 2 * US, path=("linear", "addmm", "addmm")),
            Operator("empty", 16 * US, 1 * US, path=("linear", "empty")),
        ),
    )
    operators = {use.name: use for use in by_operator(whole)}
    assert list(operators) == ["addmm", "linear", "empty"]
    assert (operators["linear"].host_s, operators["linear"].own_host_s) == pytest.approx((20 * US, 9 * US))
    assert (operators["addmm"].calls, operators["addmm"].host_s) == pytest.approx((2, 10 * US))
    assert operators["addmm"].own_host_s == pytest.approx(10 * US)
    assert (operators["linear"].device_s, operators["linear"].own_device_s) == pytest.approx((35 * US, 5 * US))
    assert (operators["linear"].launches, operators["addmm"].launches) == (2, 1)


def test_a_gap_says_what_was_around_it_and_what_the_host_did() -> None:
    whole = timeline(
        [launch("a", 0, 10), launch("b", 50, 10)], syncs=[Sync("cudaStreamSynchronize", 12 * US, 36 * US)], span_us=65
    )
    first, second = gaps(whole)
    assert (first.after, first.before, first.host) == ("a", "b", "cudaStreamSynchronize")
    assert first.duration_s == pytest.approx(40 * US)
    assert (second.after, second.before, second.host) == ("b", "", "")
    assert gaps(whole, least_s=10 * US) == (first,)
    assert gaps(whole, most=0) == ()


def test_memory_is_what_the_device_has() -> None:
    books = (
        Allocation(0.0, 512, 1512, 4096),
        Allocation(1.0, 999, 999, on_device=False),
        Allocation(2.0, 1024, 2536, 4096),
        Allocation(3.0, -1024, 1512, 4096),
    )
    use = memory(replace(timeline(), allocations=books))
    assert use is not None
    assert (use.peak_bytes, use.allocated_bytes, use.left_bytes) == (2536, 1536, 512)
    assert memory(timeline()) is None


@pytest.mark.parametrize(
    ("whole", "kind", "name", "share"),
    [
        (timeline([launch("a", 0, 60), launch("b", 60, 20)], span_us=100), "kernel", "a", 0.6),
        (timeline([launch("a", 0, 10)], span_us=100), "idle", "the device waits for the host", 0.9),
        (timeline([launch("a", 0, 10)], [copy("Memcpy HtoD", 10, 80, 4)], span_us=100), "copies", "Memcpy HtoD", 0.8),
    ],
)
def test_the_bottleneck_takes_the_largest_share(whole: Timeline, kind: str, name: str, share: float) -> None:
    largest = bottleneck(whole)
    assert largest is not None
    assert (largest.kind, largest.name) == (kind, name)
    assert largest.share == pytest.approx(share)


def test_without_a_device_the_bottleneck_is_an_operator() -> None:
    operators = (
        Operator("linear", 0.0, 60 * US, path=("linear",)),
        Operator("addmm", 0.0, 50 * US, path=("linear", "addmm")),
        Operator("gelu", 60 * US, 20 * US, path=("gelu",)),
    )
    largest = bottleneck(replace(timeline(span_us=100), operators=operators))
    assert largest is not None
    assert (largest.kind, largest.name, largest.share) == ("operator", "addmm", near(0.5))
    assert bottleneck(timeline(span_us=10)) is None


MARKS = st.lists(
    st.builds(
        lambda name, start, length: MarkedRange(name, start * US, length * US),
        st.sampled_from(("forward", "backward", "step")),
        st.integers(0, 200),
        st.integers(1, 60),
    ),
    max_size=8,
)


@given(timelines(), MARKS)
def test_a_part_is_what_its_ranges_cover_of_the_timeline(whole: Timeline, marks: list[MarkedRange]) -> None:
    whole = replace(whole, ranges=tuple(sorted(marks, key=lambda span: span.start_s)))
    parts = by_range(whole, leave_out="step")
    assert {part.name for part in parts} == {span.name for span in marks} - {"step"}
    for part in parts:
        own = between(whole, part.name)
        assert part.device_s == near(sum(work.duration_s for work in own.work) / whole.calls)
        assert part.launches == near(len(own.launches) / whole.calls)
        assert part.uses == near(own.calls / whole.calls)


def test_functions_of_cuda_the_longest_first() -> None:
    calls = [
        ApiCall("cudaLaunchKernel", 0, 4 * US),
        ApiCall("cudaFree", 1, 10 * US),
        ApiCall("cudaLaunchKernel", 2, 2 * US),
    ]
    uses = by_api_call(timeline([launch("a", 0, 5)], api_calls=calls, calls=2))
    assert [(call.name, call.calls, call.seconds) for call in uses] == [
        ("cudaFree", 0.5, near(5 * US)),
        ("cudaLaunchKernel", 1, near(3 * US)),
    ]
