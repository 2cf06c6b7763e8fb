from __future__ import annotations

from dataclasses import replace

import pytest

from regress.traces.timeline import ApiCall, MarkedRange, Timeline, between, is_sync, plain_api_name
from tests.traces.samples import US, launch


def marked() -> Timeline:
    """Two marked calls with a warm-up before and a wait behind; the second call's kernel runs after its mark has ended."""
    return Timeline(
        0.0,
        100 * US,
        launches=(
            launch("warm", 5, 3, correlation=1),
            launch("first", 25, 5, correlation=2),
            launch("late", 60, 10, correlation=3),
            launch("unknown", 42, 1),
        ),
        api_calls=(
            ApiCall("cudaLaunchKernel", 2 * US, 1 * US, correlation=1),
            ApiCall("cudaLaunchKernel", 22 * US, 1 * US, correlation=2),
            ApiCall("cudaLaunchKernel", 41 * US, 1 * US, correlation=3),
            ApiCall("cudaDeviceSynchronize", 70 * US, 20 * US),
        ),
        ranges=(
            MarkedRange("call", 20 * US, 10 * US),
            MarkedRange("call", 40 * US, 10 * US),
            MarkedRange("other", 0.0, 90 * US),
        ),
    )


def test_work_belongs_to_the_call_that_asked_for_it() -> None:
    timeline = between(marked(), "call")
    assert [work.name for work in timeline.launches] == ["first", "late", "unknown"]
    assert [call.name for call in timeline.api_calls] == ["cudaLaunchKernel", "cudaLaunchKernel"]
    assert timeline.calls == 2


def test_a_range_of_calls_ends_when_the_device_is_done() -> None:
    timeline = between(marked(), "call")
    assert (timeline.start_s, timeline.end_s) == pytest.approx((20 * US, 70 * US))


def test_the_first_calls_can_be_left_out_and_the_device_must_be_done_with_them() -> None:
    busy = replace(marked(), launches=(launch("first", 25, 30, correlation=2), launch("late", 60, 10, correlation=3)))
    timeline = between(busy, "call", skip=1)
    assert (timeline.calls, [work.name for work in timeline.launches]) == (1, ["late"])
    assert timeline.start_s == pytest.approx(55 * US)  # not at 40, when the device was still at the first call
    assert between(marked(), "call", skip=1).start_s == 40 * US
    with pytest.raises(KeyError):
        between(marked(), "call", skip=2)


def test_what_runs_beside_the_calls_since_before_does_not_delay_them() -> None:
    beside = replace(marked(), launches=(launch("long", 25, 75, correlation=2), launch("late", 60, 10, correlation=3)))
    timeline = between(beside, "call", skip=1)
    assert (timeline.start_s, timeline.end_s) == pytest.approx((60 * US, 70 * US))


def test_a_mark_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError, match="calll"):
        between(marked(), "calll")


def test_no_timeline_is_of_no_call() -> None:
    with pytest.raises(ValueError, match="at least one call"):
        Timeline(0.0, 1.0, calls=0)


@pytest.mark.parametrize("name", ["cudaStreamSynchronize", "cudaDeviceSynchronize", "cuEventSynchronize", "cudaMemcpy"])
def test_what_waits_for_the_device(name: str) -> None:
    assert is_sync(name)
    assert not is_sync(f"{name}Async")


def test_versions_of_the_api_have_one_name() -> None:
    assert plain_api_name("cudaLaunchKernel_v7000") == "cudaLaunchKernel"
    assert plain_api_name("cudaStreamSynchronize_ptsz") == "cudaStreamSynchronize"
    assert plain_api_name("cuLaunchKernelEx") == "cuLaunchKernelEx"
