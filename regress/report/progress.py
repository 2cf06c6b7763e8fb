"""How far the work is, on stderr: a bar on a terminal, one line a minute elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from regress.text.style import takes_escapes, visible
from regress.units import format_duration

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

LONG_S = 10.0


class Progress:
    """Progress of one phase after another, written to a text stream.

    A phase has a title and a number of steps (rounds of cases); `start` begins one and ends the one before. On a terminal
    it is a bar with the case, the steps and the time left. Elsewhere a line says that it started, one says every
    `interval_s` seconds how far it is, and one says how it ended. A phase of 0 steps, whose progress nobody can tell, is told
    of there once it has ended, if it took `LONG_S` or more. `quiet` writes nothing at all.

    Progress writes only when it is called, from the caller's thread: a bar that animates itself would wake up while
    something is being timed.
    """

    def __init__(
        self,
        stream: TextIO | None,
        *,
        quiet: bool = False,
        terminal: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
        interval_s: float = 60.0,
    ) -> None:
        """`terminal` None: ask the stream. A stream of None (Python's own when stderr is closed) is quiet."""
        self._stream = None if quiet else stream
        self._terminal = takes_escapes(stream) if terminal is None else terminal
        self._clock, self._interval_s = clock, interval_s
        self._bar: tuple[RichProgress, TaskID] | None = None
        self._title = ""
        self._done = self._total = 0
        self._started_at = self._told_at = 0.0
        self._running = False

    def start(self, total: int, title: str) -> None:
        """Begin a phase of `total` steps; 0: nobody can tell how far it is."""
        self.close()
        self._title, self._done, self._total = visible(title), 0, total
        self._started_at = self._told_at = self._clock()
        self._running = True
        if self._stream is not None and self._terminal:
            self._bar = _bar(self._stream, self._title, total, self._clock)
        elif total:
            self._write(f"{self._title}: 0 of {total}")

    def advance(self, text: str, steps: int = 1) -> None:
        """`steps` more are done; `text` says what is being worked on. The total grows if it turns out too small."""
        self._done += steps
        self._total = max(self._total, self._done)
        if self._bar is not None:
            bar, task = self._bar
            bar.update(task, completed=self._done, total=self._total, doing=visible(text), refresh=True)
            return
        now = self._clock()
        if self._running and now - self._told_at >= self._interval_s:
            self._told_at = now
            self._write(f"{self._title}: {self._done} of {self._total}, {visible(text)}, {self._time_left(now)}")

    def note(self, text: str) -> None:
        """A line of its own, above the bar if there is one."""
        if self._bar is not None:
            from rich.text import Text

            self._bar[0].console.print(Text(visible(text)), soft_wrap=True)
        else:
            self._write(visible(text))

    def close(self) -> None:
        """End the phase, if one is running: take the bar away, or say how far it came."""
        if not self._running:
            return
        self._running = False
        if self._bar is not None:
            bar, self._bar = self._bar[0], None
            bar.stop()
            return
        took_s = self._clock() - self._started_at
        if self._total:
            how = "done" if self._done >= self._total else "ended"
            self._write(f"{self._title}: {how}, {self._done} of {self._total} in {format_duration(took_s)}")
        elif took_s >= LONG_S:
            self._write(f"{self._title}: {format_duration(took_s)}")

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _time_left(self, now: float) -> str:
        """Elapsed time, and what is left at the pace so far."""
        elapsed = now - self._started_at
        if not self._done:
            return f"{format_duration(elapsed)} so far"
        left = elapsed / self._done * (self._total - self._done)
        return f"{format_duration(elapsed)} so far, about {format_duration(left, rough=True)} left"

    def _write(self, line: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # the reader went away: not a reason to lose a measurement
            self._stream = None


def _bar(stream: TextIO, title: str, total: int, clock: Callable[[], float]) -> tuple[RichProgress, TaskID]:
    """A bar that is drawn when it is updated, never by a thread of its own."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    bar = Bar(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        *((MofNCompleteColumn(), TimeRemainingColumn(compact=True)) if total else ()),
        TextColumn(
            "{task.fields[doing]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)
        ),
        console=Console(file=stream, force_terminal=True, highlight=False),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        get_time=clock,
        expand=True,
    )
    task = bar.add_task(title, total=total or None, doing="")
    bar.start()
    bar.refresh()
    return bar, task
