"""How far a run is, in words for people who wait for it."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from regress.cluster.engine import Place
from regress.cluster.runs import End
from regress.cluster.states import TRIES, TaskState
from regress.run.execute import Watcher
from regress.text.wording import counted
from regress.units import format_duration

TELL_S = 60.0
"""How often people are told how far it is, and that the engine does not answer."""


class RunNotes:
    """What people were told of a run."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._told: dict[str, tuple[float, str]] = {}
        self._deaths: Counter[Place] = Counter()

    def tell(self, kinds: Iterable[str], states: Sequence[TaskState], ends: Mapping[str, End]) -> None:
        """How far each kind is."""
        for kind in kinds:
            done = [end for name, end in ends.items() if name.startswith(f"{kind}/")]
            self._say(kind, _line(kind, [task for task in states if task.kind == kind], done))

    def note_silence(self, silent_s: float) -> None:
        """That the engine has not answered for so long."""
        if silent_s >= TELL_S:
            self._say("", f"no answer for {format_duration(silent_s)}; running tasks continue")

    def _say(self, about: str, text: str) -> None:
        """Say it, but not the same again, and not more often than every TELL_S."""
        now = time.monotonic()
        told_s, before = self._told.get(about, (-TELL_S, ""))
        if now - told_s >= TELL_S and text != before:
            self._told[about] = now, text
            self._watcher.note(text)

    def note_deaths(self, states: Sequence[TaskState], first: bool) -> None:
        """Which attempts have died since; at the `first` look only what is given up by that."""
        for state in states:
            if state.deaths <= self._deaths[state.place]:
                continue
            self._deaths[state.place] = state.deaths
            what = f"{state.kind} {state.task}: {state.why}"
            if state.state == "given up":
                self._watcher.note(f"{what}; given up after {counted(state.deaths, 'attempt')}")
            elif not first:
                self._watcher.note(f"{what}; begun again ({state.deaths + 1} of {TRIES})")


def _line(kind: str, states: Sequence[TaskState], done: Sequence[End]) -> str:
    """ "h100: 40 wait (Resources), 3 run, 17 of 60 in; about 2 h"."""
    waiting = [task for task in states if task.state == "waiting"]
    running = [task for task in states if task.state == "running"]
    reasons = ", ".join(sorted({task.why for task in waiting if task.why}))
    words = [f"{len(waiting)} wait" + (f" ({reasons})" if reasons else "")] if waiting else []
    words += [f"{len(running)} run"] if running else []
    line = f"{kind}: {', '.join([*words, f'{len(done)} of {len(states)} in'])}"
    if done and running:
        each_s = statistics.median(end.took_s for end in done)
        left_s = each_s * -(-(len(waiting) + len(running)) // len(running))
        line += f"; about {format_duration(left_s, rough=True)}"
    return line
