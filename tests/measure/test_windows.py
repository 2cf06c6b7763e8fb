"""What other threads have part in: their seconds, and the windows in which none of them was kept waiting."""

from __future__ import annotations

import math
import os
import threading
import time
import weakref

import pytest

from regress.measure.backend.fake import FakeBackend
from regress.measure.windows import (
    FEWEST_UNDISTURBED,
    LONG_CALL_S,
    HostWindows,
    cpu_calls,
    least_disturbed,
    others_s,
    undisturbed,
)


class Cycle:
    """What refers to itself, so that only a collection frees it."""

    own: object = None


def test_each_thread_is_asked_for_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel brings the time of a thread that runs up to date when it is asked for, and not when the process's is."""
    over, ask, asked = threading.Event(), time.clock_gettime, list[int]()

    def clock_gettime(clock: int) -> float:
        asked.append(clock)
        return ask(clock)

    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        monkeypatch.setattr(time, "clock_gettime", clock_gettime)
        seconds = others_s()
        assert thread.ident is not None
        assert time.pthread_getcpuclockid(thread.ident) in asked
    finally:
        over.set()
        thread.join()
    assert seconds >= 0


def test_of_windows_of_several_threads_the_undisturbed_ones_count() -> None:
    wall_s = [float(second) for second in range(1, 41)]
    none_s = [math.nan] * len(wall_s)
    few_s = [2.0] * (FEWEST_UNDISTURBED - 1)
    assert least_disturbed(wall_s, [*none_s, *few_s, 2.0]) == [*few_s, 2.0]
    assert least_disturbed(wall_s, [*none_s, *few_s]) == wall_s[:10], "else the fastest quarter"
    assert least_disturbed([3.0, 1.0, math.nan], none_s) == [1.0, 3.0]


def test_a_long_call_is_not_called_once_more_to_confirm_its_count() -> None:
    device, called = FakeBackend(), list[float]()

    def taking(seconds: float) -> int:
        called.clear()

        def call() -> None:
            called.append(seconds)
            device.host(seconds)

        assert cpu_calls(call, device, 1e-3) == 1
        return len(called)

    assert taking(LONG_CALL_S * 2) == 2
    assert taking(LONG_CALL_S / 10) == 3


def test_what_calls_leave_in_cycles_does_not_pile_up_over_windows() -> None:
    alive = weakref.WeakSet[Cycle]()

    def call() -> None:
        node = Cycle()
        node.own = node
        alive.add(node)

    with undisturbed(pinned=False), HostWindows(call, FakeBackend(), calls=10, warm_calls=3) as windows:
        for _ in range(20):
            windows.take()
            assert len(alive) <= 13, "those of one window"


def test_where_the_system_does_not_tell_of_preemption_windows_count_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def not_there(path: str, *_: object) -> int:
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "open", not_there)
    device = FakeBackend()
    monkeypatch.setattr(device, "real_clock", True, raising=False)
    with HostWindows(lambda: device.host(1e-4), device, calls=3) as windows:
        window = windows.take()
        assert not windows.knows_preemption
        windows.rest()
    assert window.net_s == window.wall_s >= 1e-4
