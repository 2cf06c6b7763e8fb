"""What the device did in between: a trace, added up so that any two moments give the work between them.

Kernels and fills make the device busy; where none runs and a copy does, it transfers; else it is idle. The sums are kept as
lines between the moments at which something began or ended. What lies before everything that may still be asked about is
forgotten, so that an entry as long as the program costs no memory: what was before its beginning is noted when the beginning
is known.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import deque
from typing import NamedTuple

from regress.measure.backend import MARKER, Activity, Tracer
from regress.profiler.timeline import EVENT_S, SpinTime

APART_S, APART = 2e-3, 2e-4
"""A spin further from where its anchor is expected, and by this share of the time since the last one, is another anchor's."""
SHORT_S = 0.01
Kernels = dict[str, list[float]]
"""By name: calls, seconds."""


class TraceSums(NamedTuple):
    """Sums from the beginning of the trace up to a moment."""

    busy_s: float
    transfer_s: float
    copied_bytes: float


class DeviceTrace:
    """The trace of one device, asked about in the times of a Timeline."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._markers: deque[Activity] = deque()
        self._anchors: deque[SpinTime] = deque()
        self._ties: list[tuple[float, float]] = []
        """One moment each, on the timeline's clock and on the trace's."""
        self._between_ties = math.inf, 0.0, -math.inf, 1.0
        """The two that were asked about last: where they are on the timeline, and a straight line between them."""
        self._arrived: list[Activity] = []
        self._times: list[float] = [-math.inf]
        self._levels: list[TraceSums] = [TraceSums(0.0, 0.0, 0.0)]
        self._kernels: list[Activity] = []
        """By their middle, for what begins or ends with an entry may seem to lie a little beside it."""
        self._middles: list[float] = []
        self._kernels_from = -math.inf
        self._known_from = -math.inf
        """Something before that is missing; infinite until the next tie."""
        self._afresh = False
        """Whether all is known from the next spin that is told; else what is missing may lie between ties that come at once."""

    def start(self) -> str:
        return self._tracer.start()

    def stop(self) -> None:
        self._tracer.stop()

    def again(self) -> str:
        """Start again if records have stopped arriving; what was done until then is missing. Returns why it cannot, or nothing.

        The spins of the anchors so far will never be told: what comes next must not be taken for them."""
        self._known_from, self._afresh = math.inf, True
        self._anchors.clear()
        self._markers.clear()
        return self._tracer.again()

    def collect(self, timed: list[SpinTime], flush: bool = False) -> bool:
        """Take in what was traced, and the anchors that have a time by now; whether more is known than before. The spins of a
        trace come in the order of their anchors."""
        for activity in self._tracer.collect(flush):
            if activity.kind == "kernel" and activity.name == MARKER:
                self._markers.append(activity)
            else:
                self._arrived.append(activity)
        self._anchors.extend(timed)
        timed.clear()
        if self._tracer.overrun:
            self._tracer.overrun, self._known_from, self._afresh = False, math.inf, False
        before = len(self._ties)
        while self._markers and self._anchors:
            self._tie()
        if len(self._ties) == before:
            return False
        if self._known_from == math.inf:
            self._known_from = self._ties[-1][0]
        self._add_up(self._ties[-1][1])
        return True

    def _tie(self) -> None:
        """Tie the next anchor to the next spin, if they belong together; else one of them, the earlier one, has lost its
        other."""
        anchor, spin = self._anchors[0], self._markers[0]
        if self._ties:
            last_s, last_at = self._ties[-1]
            since = anchor.time_s - last_s
            apart = spin.end_s - last_at - since
            if abs(apart) > APART_S + APART * abs(since):
                (self._markers if apart < 0 else self._anchors).popleft()
                return
        self._anchors.popleft()
        self._markers.popleft()
        if self._afresh:  # even where the two are not one moment: the first launch of a trace is slow
            self._known_from, self._afresh = anchor.time_s - EVENT_S, False
        if anchor.prompt:
            self._ties.append((anchor.time_s - EVENT_S, spin.end_s))

    def covers(self, time_s: float) -> bool:
        """Whether everything up to that time is known."""
        return bool(self._ties) and time_s <= self._ties[-1][0]

    def knows(self, start_s: float) -> bool:
        """Whether nothing is missing since that time."""
        return start_s >= self._known_from

    def level(self, time_s: float) -> TraceSums:
        """The sums up to a time that is covered."""
        return self._level(self._on_trace(time_s))

    def between(self, start_s: float, end_s: float, begin: TraceSums | None) -> tuple[TraceSums, Kernels]:
        """What was done between two covered times, with calls and seconds of the kernels whose middle lies between them.

        `begin` are the sums at the first time, where they were noted before it was forgotten; then no kernels are known.
        """
        end_at = self._on_trace(end_s)
        # The clocks drift by millionths, so that an entry is as long on one as on the other, if it is no longer than a tie.
        start_at = end_at - (end_s - start_s) if end_s - start_s < SHORT_S else self._on_trace(start_s)
        low, high = begin or self._level(start_at), self._level(end_at)
        done = TraceSums(high[0] - low[0], high[1] - low[1], high[2] - low[2])
        kernels: Kernels = {}
        if start_at >= self._kernels_from:
            first = bisect_left(self._middles, start_at)
            for kernel in self._kernels[first : bisect_left(self._middles, end_at, first)]:
                seconds = kernel.end_s - kernel.start_s
                if kernel.name in kernels:
                    sums = kernels[kernel.name]
                    sums[0] += 1
                    sums[1] += seconds
                else:
                    kernels[kernel.name] = [1, seconds]
        return done, kernels

    def _level(self, at_s: float) -> TraceSums:
        at = bisect_right(self._times, at_s)
        low = self._levels[at - 1]
        if at == len(self._times):
            return low
        high = self._levels[at]
        if high is low:
            return low
        share = (at_s - self._times[at - 1]) / (self._times[at] - self._times[at - 1])
        return TraceSums(
            low[0] + share * (high[0] - low[0]),
            low[1] + share * (high[1] - low[1]),
            low[2] + share * (high[2] - low[2]),
        )

    def forget(self, before_s: float) -> None:
        """Nobody will ask about what was before that time."""
        if not self._ties:
            return
        at_s = min(self._on_trace(before_s), self._ties[-1][1])
        at = max(0, bisect_right(self._times, at_s) - 1)
        del self._times[:at], self._levels[:at]
        first = bisect_left(self._middles, at_s)
        del self._kernels[:first], self._middles[:first]
        self._kernels_from = max(self._kernels_from, at_s)
        at = max(0, bisect_right(self._ties, (before_s, math.inf)) - 2)  # two are needed to tell how the clocks drift
        del self._ties[: min(at, max(0, len(self._ties) - 2))]

    def _on_trace(self, time_s: float) -> float:
        """A time of the timeline on the clock of the trace."""
        x0, y0, x1, rate = self._between_ties
        if not x0 <= time_s < x1:
            if len(self._ties) == 1:
                return self._ties[0][1] + time_s - self._ties[0][0]
            at = min(max(1, bisect_right(self._ties, (time_s, math.inf))), len(self._ties) - 1)
            (x0, y0), (x1, y1) = self._ties[at - 1], self._ties[at]
            rate = (y1 - y0) / (x1 - x0) if x1 > x0 else 1.0
            self._between_ties = x0, y0, x1, rate
        return y0 + (time_s - x0) * rate

    def _add_up(self, until_s: float) -> None:
        """Everything that ends before has arrived: add it to the sums. What ran across the end of the sums counts from
        there."""
        done = [activity for activity in self._arrived if activity.end_s <= until_s]
        self._arrived = [activity for activity in self._arrived if activity.end_s > until_s]
        from_s = self._times[-1]
        steps: list[tuple[float, int, int, float]] = []
        for activity in done:
            start_s = max(activity.start_s, from_s)
            if activity.end_s <= start_s:
                continue
            copies = activity.kind == "copy"
            rate = activity.nbytes / (activity.end_s - activity.start_s) if copies else 0.0
            steps.append((start_s, not copies, copies, rate))
            steps.append((activity.end_s, -(not copies), -copies, -rate))
        steps.sort(key=lambda step: step[0])
        busy = copying = 0
        rate, level, last_s = 0.0, self._levels[-1], from_s
        for time_s, more_busy, more_copying, more_rate in steps:
            width = time_s - last_s
            if width > 0:
                if busy or copying:
                    moved = rate * width if copying else 0.0
                    level = TraceSums(
                        level.busy_s + (width if busy else 0.0),
                        level.transfer_s + (0.0 if busy else width),
                        level.copied_bytes + moved,
                    )
                self._times.append(time_s)
                self._levels.append(level)
                last_s = time_s
            busy, copying, rate = busy + more_busy, copying + more_copying, rate + more_rate
        self._times.append(max(until_s, last_s))
        self._levels.append(level)
        self._kernels += [activity for activity in done if activity.kind != "copy"]
        self._kernels.sort(key=_middle)
        self._middles = [_middle(kernel) for kernel in self._kernels]


def _middle(activity: Activity) -> float:
    return (activity.start_s + activity.end_s) / 2
