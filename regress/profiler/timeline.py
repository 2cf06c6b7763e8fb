"""Where entries stand in the device's time: events around each of them, and anchors that tie the events to a trace.

An event tells only how long before or after another event it passed. So each entry belongs to an *anchor*, an event recorded
shortly before it, and an anchor's own time is known from the anchor before it. Where the device is traced, a short spin
stands before the anchor's event: the end of that spin in the trace, and the event, are one moment on two clocks. Between two
anchors the clocks are taken to drift evenly. A new anchor is made ever so often, because the difference of two events has 24
bits.

Once its events have passed an entry has its times, and they are used again; the trace may follow later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from regress.measure.backend import DeviceBackend

ANCHOR_S, ANCHOR_ENTRIES = 0.25, 500
"""A new anchor after so long, or after this many entries."""
SPIN_S = 40e-6
"""Long enough for the anchor's event to be enqueued while it still runs: then the event passes right after it. Whether it was,
the host's clock tells: the device cannot begin before it is told to."""
CLOSING_SPIN_S, CLOSING_TRIES = 200e-6, 3
"""Of the anchor behind everything, on which all that is left depends."""
EVENT_S = 0.6e-6
"""From the end of work to the event behind it: half of an empty window of events on an H100."""


class SpinTime(NamedTuple):
    """An anchor with a spin, once it has a time; `prompt` is whether its event was enqueued before the spin can have ended."""

    time_s: float
    prompt: bool


class TimedAnchor:
    """An event with a time on the profile's clock, once it has passed. `spun`: there is a spin before it."""

    __slots__ = ("event", "made_s", "prompt", "spun", "time_s", "users")

    def __init__(self, event: int, spun: bool, prompt: bool, made_s: float) -> None:
        self.event, self.spun, self.prompt, self.made_s = event, spun, prompt, made_s
        self.time_s: float | None = None
        self.users = 0


class EntryEvents:
    """The events of one entry. `span_s` is None as long as they have not passed."""

    __slots__ = ("anchor", "end", "span_s", "start", "start_s", "stream", "traced")

    def __init__(self, anchor: TimedAnchor, start: int, stream: int) -> None:
        self.anchor, self.start, self.end, self.stream = anchor, start, -1, stream
        self.traced = anchor.spun
        self.start_s: float | None = None
        self.span_s: float | None = None


@dataclass
class EventClock:
    """The caller holds a lock around every call, and has made the device the current one."""

    backend: DeviceBackend
    now: Callable[[], float]
    """The host's clock."""
    traced: bool = False
    """Whether anchors have a spin before them."""

    def __post_init__(self) -> None:
        self._free: list[int] = []
        self.events = 0
        """How many there are, in use or free."""
        self.framework = ""
        """Whose current stream the events go into."""
        self._read = self.backend.stream_reader()
        self._anchor: TimedAnchor | None = None
        self._last: TimedAnchor | None = None
        """The newest anchor that has a time."""
        self._untimed: deque[TimedAnchor] = deque()
        self._since = 0
        self._stream = 0
        self.timed: list[SpinTime] = []
        """Anchors with a spin that have a time by now; emptied by who ties them to the trace."""

    def begin(self, now_s: float) -> EntryEvents | None:
        """Put the first event of an entry into the current stream; None if the stream is being captured as a graph."""
        if not self._hold():
            return None
        if self._anchor is None or self._since >= ANCHOR_ENTRIES or now_s - self._anchor.made_s >= ANCHOR_S:
            self.anchor(now_s)
        assert self._anchor is not None
        self._since += 1
        self._anchor.users += 1
        mark = EntryEvents(self._anchor, self._event(), self._stream)
        self.backend.record(mark.start)
        return mark

    def end(self, mark: EntryEvents) -> bool:
        """Put the last event of an entry into the stream of the first; whether that could be done."""
        self.backend.hold_stream(mark.stream)
        if self.backend.capturing():
            self._release(mark)
            return False
        mark.end = self._event()
        self.backend.record(mark.end)
        return True

    def anchor(self, now_s: float, spin_s: float = SPIN_S) -> TimedAnchor:
        """A new anchor in the stream that is held."""
        event = self._event()  # it is there by now: nothing may come between the spin and the event behind it
        begun_s = self.now()
        if self.traced:
            self.backend.spin(spin_s)
        self.backend.record(event)
        prompt = self.now() - begun_s < spin_s
        anchor = TimedAnchor(event, self.traced, prompt, now_s)
        anchor.users = 2  # the newest one is kept, and so is one until the next has a time
        self._untimed.append(anchor)
        if self._anchor is not None:
            self._leave(self._anchor)
        self._anchor, self._since = anchor, 0 if prompt or not self.traced else ANCHOR_ENTRIES
        return anchor

    def renew(self) -> None:
        """Let the next entry have an anchor of its own."""
        self._since = ANCHOR_ENTRIES

    def closing_anchor(self, now_s: float) -> TimedAnchor | None:
        """An anchor behind all entries; None if the current stream takes none."""
        if not self._hold():
            return None
        for _ in range(CLOSING_TRIES):
            anchor = self.anchor(now_s, CLOSING_SPIN_S)
            if anchor.prompt:
                break
        return anchor

    def begun(self, mark: EntryEvents) -> bool:
        """Whether the device has reached the entry's beginning; `start_s` is there then."""
        if mark.start_s is None:
            if not self.has_time(mark.anchor) or not self.backend.passed(mark.start):
                return False
            assert mark.anchor.time_s is not None
            mark.start_s = mark.anchor.time_s + self.backend.elapsed(mark.anchor.event, mark.start)
        return True

    def reached(self, mark: EntryEvents) -> bool:
        """Whether the device has reached the entry's end; then it has reached all that ended before on that stream."""
        return self.backend.passed(mark.end)

    def read(self, mark: EntryEvents) -> bool:
        """Read the times of an entry whose end the device has reached, and free its events; whether that could be done."""
        if mark.start_s is None:
            if not self.has_time(mark.anchor):
                return False
            assert mark.anchor.time_s is not None
            mark.start_s = mark.anchor.time_s + self.backend.elapsed(mark.anchor.event, mark.start)
        span_s = self.backend.elapsed(mark.start, mark.end)
        mark.span_s = span_s if span_s > 0 else 0.0
        self._release(mark)
        return True

    def has_time(self, anchor: TimedAnchor) -> bool:
        """Whether the anchor has a time by now."""
        while anchor.time_s is None:
            first, last = self._untimed[0], self._last
            if not self.backend.passed(first.event):
                return False
            if last is None or last.time_s is None:
                first.time_s = first.made_s
            else:
                first.time_s = last.time_s + self.backend.elapsed(last.event, first.event)
                self._leave(last)
            self._untimed.popleft()
            self._last = first
            if first.spun:
                self.timed.append(SpinTime(first.time_s, first.prompt))
        return True

    def _release(self, mark: EntryEvents) -> None:
        self._free.append(mark.start)
        if mark.end >= 0:
            self._free.append(mark.end)
        self._leave(mark.anchor)

    def _leave(self, anchor: TimedAnchor) -> None:
        anchor.users -= 1
        if anchor.users == 0:
            self._free.append(anchor.event)

    def _event(self) -> int:
        if not self._free:
            self._free = list(range(self.events, self.events + 8))
            self.events += 8
            self.backend.use_events(self.events)
        return self._free.pop()

    def _hold(self) -> bool:
        """Let events go into this thread's current stream; False if it takes none."""
        if not self.framework:  # perhaps none was in use when it was looked for
            self.framework = next(iter(self.backend.frameworks()), "")
            self._read = self.backend.stream_reader()
        self._stream = self._read()
        self.backend.hold_stream(self._stream)
        return not self.backend.capturing()
