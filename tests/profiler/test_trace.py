"""A trace in the times of events: sums, ties that do not hold, and what is missing."""

from __future__ import annotations

import pytest

from regress.measure.backend import MARKER, Activity, Tracer
from regress.profiler.timeline import EVENT_S, SPIN_S, SpinTime
from regress.profiler.trace import DeviceTrace

US = 1e-6
EPOCH_S, RATE = 1000.0, 1.00005


class Told(Tracer):
    def __init__(self) -> None:
        super().__init__()
        self.told: list[Activity] = []

    def collect(self, flush: bool = False) -> list[Activity]:
        told, self.told = self.told, []
        return told


class Case:
    """A trace with anchors at these times; everything else in the times of events."""

    def __init__(self) -> None:
        self.tracer = Told()
        self.trace = DeviceTrace(self.tracer)
        self.timed: list[SpinTime] = []

    def on_trace(self, time_s: float) -> float:
        return EPOCH_S + RATE * time_s

    def saw(self, kind: str, start_s: float, seconds: float, nbytes: int = 0, name: str = "k") -> None:
        start_at, end_at = self.on_trace(start_s), self.on_trace(start_s + seconds)
        self.tracer.told.append(Activity(kind, name, start_at, end_at, nbytes))

    def anchor(self, time_s: float, prompt: bool = True, marker: bool = True) -> None:
        if marker:
            self.saw("kernel", time_s - EVENT_S - SPIN_S, SPIN_S, name=MARKER)
        self.timed.append(SpinTime(time_s, prompt))

    def collect(self) -> bool:
        return self.trace.collect(self.timed)


@pytest.fixture
def case() -> Case:
    return Case()


def test_sums_between_two_moments(case: Case) -> None:
    case.anchor(1.0)
    case.saw("kernel", 1.001, 100 * US)
    case.saw("kernel", 1.00105, 100 * US, name="other")  # beside the first for 50 us
    case.saw("copy", 1.0011, 150 * US, 1500)  # 50 us of it beside a kernel
    case.saw("fill", 1.002, 10 * US, 64)
    case.anchor(1.1)
    assert case.collect()
    done, kernels = case.trace.between(1.0005, 1.0015, None)
    assert done.busy_s == pytest.approx(150 * US, rel=1e-3)
    assert done.transfer_s == pytest.approx(100 * US, rel=1e-3)
    assert done.copied_bytes == pytest.approx(1500, rel=1e-3)
    assert {name: (calls, round(seconds * 1e6)) for name, (calls, seconds) in kernels.items()} == {
        "k": (1, 100),
        "other": (1, 100),
    }
    half, _ = case.trace.between(1.00102, 1.00104, None)
    assert half.busy_s == pytest.approx(20 * US, rel=1e-2)
    after, _ = case.trace.between(1.0016, 1.05, None)
    assert after.busy_s == pytest.approx(10 * US, rel=1e-3)


def test_nothing_is_known_beyond_the_last_anchor(case: Case) -> None:
    case.anchor(1.0)
    case.anchor(2.0, marker=False)  # not delivered yet
    assert case.collect()
    assert not case.trace.covers(1.5)
    case.saw("kernel", 2.0 - EVENT_S - SPIN_S, SPIN_S, name=MARKER)
    assert case.collect()
    assert case.trace.covers(1.5)


def test_an_event_that_came_late_ties_nothing(case: Case) -> None:
    case.anchor(1.0)
    case.anchor(2.0, prompt=False)
    case.anchor(3.0)
    case.saw("kernel", 2.5, 100 * US)
    assert case.collect()
    done, _ = case.trace.between(2.4999, 2.5002, None)
    assert done.busy_s == pytest.approx(100 * US, rel=1e-3)
    assert len(case.trace._ties) == 2


@pytest.mark.parametrize("lost", ["marker", "anchor"])
def test_what_has_lost_its_other_is_left_out(case: Case, lost: str) -> None:
    case.anchor(1.0)
    if lost == "marker":
        case.anchor(2.0, marker=False)
    else:
        case.saw("kernel", 2.0 - EVENT_S - SPIN_S, SPIN_S, name=MARKER)
    case.anchor(3.0)
    case.saw("kernel", 2.5, 100 * US)
    assert case.collect()
    done, _ = case.trace.between(2.4, 2.6, None)
    assert done.busy_s == pytest.approx(100 * US, rel=1e-3)
    assert len(case.trace._ties) == 2


def test_what_is_missing_is_not_taken_for_idle(case: Case) -> None:
    case.anchor(1.0)
    case.collect()
    assert case.trace.knows(0.5)
    case.tracer.overrun = True
    case.collect()
    assert not case.trace.knows(1.5)
    case.anchor(2.0)
    case.collect()
    assert not case.trace.knows(1.5)
    assert case.trace.knows(2.1)
    assert not case.tracer.overrun


def test_what_is_forgotten_leaves_the_rest_as_it_was(case: Case) -> None:
    case.anchor(0.0)
    for number in range(100):
        case.saw("kernel", 0.01 * number + 0.001, 1e-3)
        if number % 25 == 24:
            case.anchor(0.01 * number + 0.005)
    case.collect()
    noted = case.trace.level(0.1)
    whole, _ = case.trace.between(0.1, 0.9, None)
    case.trace.forget(0.5)
    late, kernels = case.trace.between(0.6, 0.9, None)
    assert late.busy_s == pytest.approx(30e-3, rel=1e-3)
    assert kernels["k"][0] == 30
    again, kernels = case.trace.between(0.1, 0.9, noted)
    assert again.busy_s == pytest.approx(whole.busy_s)
    assert kernels == {}
    assert len(case.trace._times) < 120


def test_what_was_lost_before_it_starts_anew_is_not_taken_for_what_comes(case: Case) -> None:
    case.anchor(1.0, marker=False)
    assert not case.collect()
    assert case.trace.again() == ""
    case.anchor(2.0)
    case.saw("kernel", 2.01, 100 * US)
    case.anchor(2.1)
    assert case.collect()
    assert case.trace.knows(2.001)
    assert case.trace.between(2.001, 2.09, None)[0].busy_s == pytest.approx(100 * US, rel=0.01)


def test_a_trace_that_started_anew_is_known_from_its_first_spin_prompt_or_not(case: Case) -> None:
    """The first launch of a trace is slow, so that its anchor's event comes late; the spin was told all the same."""
    case.anchor(1.0)
    case.collect()
    case.trace.again()
    case.anchor(2.0, prompt=False)
    case.saw("kernel", 2.00105, 100 * US)
    case.anchor(2.0015)
    assert case.collect()
    assert case.trace.knows(2.001)
    assert not case.trace.knows(1.9)
    assert case.trace.between(2.001, 2.0014, None)[0].busy_s == pytest.approx(100 * US, rel=0.01)
