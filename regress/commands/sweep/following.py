"""A run that is followed: what lacks is submitted, what has ended is merged, and people are told how far it is."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from regress.cluster.engine import Engine, Place, Queued, Refused
from regress.cluster.runs import End, Run, Submitted, Taken
from regress.cluster.states import DEATHS_OF_A_NODE, TRIES, TaskState, state_of
from regress.commands.sweep.done import Done, Suite
from regress.commands.sweep.marks import Mark
from regress.errors import StoreError
from regress.history import Merging, add_confirmed
from regress.history.kept import read
from regress.model import Kind
from regress.run.execute import Watcher
from regress.session import Session
from regress.text.wording import counted, quoted
from regress.units import format_duration

POLL_S = (0.5, 30.0)
"""The shortest and longest time between two looks."""
PAUSE = 0.1
"""Where nothing happens the next look comes after this share of the time since something did: so much of a card's time is lost
at most where the engine begins a task only when it is looked at, as `local` does."""
LATE_S = 60.0
"""So long a file that another node has written may take to be seen here."""
TELL_S = 60.0
"""How often people are told how far it is, and that the engine does not answer."""
ERROR_LINES = 40
"""So much of the end of a log is looked through for its error."""


@dataclass
class Followed:
    """How far a run came."""

    came: Counter[str] = field(default_factory=Counter)
    """Tasks that are in, by kind."""
    failed: dict[str, str] = field(default_factory=dict)
    """Commits that could not be measured, by full hash, with what was seen."""
    given_up: int = 0
    cancelled: int = 0
    interrupted: bool = False
    settled: bool = False
    """Whether nothing is left that the same command would take up."""
    warnings: list[str] = field(default_factory=list)

    def add(self, other: Followed) -> None:
        """What came of another run, after this one."""
        self.came += other.came
        self.failed |= other.failed
        self.given_up += other.given_up
        self.cancelled += other.cancelled
        self.interrupted = self.interrupted or other.interrupted
        self.settled = other.settled
        self.warnings += other.warnings


@contextmanager
def alone(run: Run, watcher: Watcher) -> Iterator[None]:
    """While the block runs nobody else follows the run: two would merge at once, and report the same news."""
    told = False
    while (other := run.lead()) is not None:
        if not told:
            watcher.note(f"{run.name} is followed by {other.words}: waiting until it ends")
            told = True
        time.sleep(POLL_S[0])
    try:
        yield
    finally:
        run.leave()


def follow(
    run: Run,
    kinds: Sequence[Kind],
    engine: Engine,
    session: Session,
    watcher: Watcher,
    *,
    waits: bool = True,
    end_s: float = float("inf"),
) -> Followed:
    """Follow the run until nothing is left to wait for, the monotonic clock says `end_s`, or Ctrl-C, which ends no job; without
    `waits` look once. To be called while `alone`. Raises Refused where no kind of nodes takes a job."""
    following = _Following(run, {kind.name: kind for kind in kinds}, engine, session, watcher)
    try:
        following.go_on(waits, end_s)
    except KeyboardInterrupt:
        following.followed.interrupted = True
    following.sum_up()
    return following.followed


class _Following:
    """`followed` says how far it came."""

    def __init__(self, run: Run, kinds: Mapping[str, Kind], engine: Engine, session: Session, watcher: Watcher) -> None:
        self._run, self._kinds, self._engine, self._session, self._watcher = run, kinds, engine, session, watcher
        self.followed = Followed()
        self._refused: dict[str, Refused] = {}
        self._missing_since: dict[Place, float] = {}
        self._inherited: set[Place] = set()
        """Tasks that were cancelled before this driver came: these are submitted again."""
        self._silent_since = 0.0
        self._told: dict[str, tuple[float, str]] = {}
        self._deaths: Counter[Place] = Counter()
        self._states: list[TaskState] = []
        self._ends: dict[str, End] = {}
        """Of the tasks that are in."""
        self._unmerged: dict[str, StoreError] = {}
        """Why tasks that are in may not be mixed with the history."""
        self._over_budget = False

    def go_on(self, waits: bool, end_s: float) -> None:
        total = sum(map(len, self._run.plan.tasks.values()))
        self._watcher.start(total, f"tasks of {', '.join(self._run.plan.tasks)}")
        changed_s, first = time.monotonic(), True
        while True:
            if (other := self._run.lead()) is not None:  # we were silent for too long
                words = f"{self._run.name} is followed by {other.words} by now, which reports what comes of it"
                self.followed.warnings.append(words)
                self.followed.interrupted = True
                return
            before = self._states
            if self._step(first, end_s):
                first = False
                self._tell()
                if not waits or not any(task.state in ("new", "waiting", "running", "again") for task in self._open()):
                    return
                if time.monotonic() > end_s and not self._over_budget:
                    self._stop_waiting()
            elif not waits or time.monotonic() > end_s:
                self.followed.warnings.append("the cluster does not answer; the same command tries again")
                return
            now = time.monotonic()
            changed_s = changed_s if self._states == before else now
            time.sleep(min(max(POLL_S[0], PAUSE * (now - changed_s)), POLL_S[1]))

    def _step(self, first: bool, end_s: float) -> bool:
        """Look, merge and submit. False if the engine does not answer."""
        answered = self._look(first)
        if answered:
            self._merge()
            answered = self._submit(end_s)
        now = time.monotonic()
        self._silent_since = 0.0 if answered else self._silent_since or now
        silent_s = now - self._silent_since
        if not answered and silent_s >= TELL_S:
            self._tell_once("", f"no answer for {format_duration(silent_s)}; running tasks continue")
        return answered

    def _open(self) -> list[TaskState]:
        return [task for task in self._states if task.kind not in self._refused]

    # -- one look --------------------------------------------------------------------------------------------------------

    def _look(self, first: bool) -> bool:
        """Find out how all tasks stand. False if the engine does not answer."""
        queued = self._engine.queued(self._run)
        if queued is None:
            return False
        now = time.monotonic()
        jobs: dict[Place, list[Submitted]] = {}
        for job in self._run.submitted:
            for number in job.tasks:
                jobs.setdefault((job.kind, number), []).append(job)
        known = {state.place: state for state in self._states}
        states = []
        for kind, tasks in self._run.plan.tasks.items():
            for task in tasks:
                place = kind, task.number
                before = known.get(place)
                if before is not None and before.state in ("in", "given up"):
                    states.append(before)
                else:
                    states.append(self._state(place, jobs.get(place, []), queued.get(place), now, first))
        self._states = states
        for state in states:
            self._note_death(state, first)
        return True

    def _state(
        self, place: Place, jobs: Sequence[Submitted], queued: Queued | None, now: float, first: bool
    ) -> TaskState:
        kind, task = place
        attempts = self._run.attempts(kind, task)
        state = state_of(kind, task, attempts, jobs, queued, lambda job: self._engine.gone(self._run, kind, task, job))
        if first and state.state == "cancelled":
            self._inherited.add(place)  # also where that shows only once its end is surely not written
        if state.state not in ("again", "cancelled", "given up") or queued is not None:
            self._missing_since.pop(place, None)
            return state
        since = self._missing_since.setdefault(place, now)
        if state.late and now - since < LATE_S:
            return replace(state, state="running", why="its end is not seen yet")
        return state

    def _note_death(self, state: TaskState, first: bool) -> None:
        if state.deaths > self._deaths[state.place]:
            self._deaths[state.place] = state.deaths
            if state.state == "given up":
                self._watcher.note(f"{state.kind} {state.task}: {state.why}; given up after {state.deaths} attempts")
            elif not first:
                self._watcher.note(
                    f"{state.kind} {state.task}: {state.why}; begun again ({state.deaths + 1} of {TRIES})"
                )

    # -- merging ---------------------------------------------------------------------------------------------------------

    def _merge(self) -> None:
        """Take what has ended into the history, each task once: which attempt counts is written down before."""
        taken = self._run.taken
        new = {
            f"{task.kind}/{task.task}": Taken(task.attempt.number)
            for task in self._states
            if task.state == "in" and task.attempt is not None and f"{task.kind}/{task.task}" not in taken
        }
        if new:
            self._run.take(new)
        counts = {**taken, **new}
        due = {name: count for name, count in counts.items() if not count.merged and name not in self._unmerged}
        if due:
            self._take({name: self._run.folder / f"{name}.{taken.attempt}" / "results" for name, taken in due.items()})
            merged = {name: replace(taken, merged=True) for name, taken in due.items() if name not in self._unmerged}
            self._run.take(merged)
        arrived = [name for name in counts if name not in self._ends]
        for name in arrived:
            end = read(self._run.folder / f"{name}.{counts[name].attempt}" / "end.json", End)
            self._ends[name] = end or End(0)
            if name in due:
                self._note_tried(name.partition("/")[0], self._ends[name])
        if arrived:
            self._watcher.advance(f"{arrived[-1]} is in", len(arrived))

    def _take(self, folders: Mapping[str, Path]) -> None:
        """Merge them, at once where all may be; where one is refused one by one, so that the others get in."""
        there = {name: folder for name, folder in folders.items() if folder.is_dir()}
        if not there:
            return
        try:
            merging = Merging(self._session.config.results_dir, list(there.values()))
        except StoreError as error:
            for name, folder in there.items() if len(there) > 1 else ():
                self._take({name: folder})
            if len(there) == 1:
                self._unmerged.update(dict.fromkeys(there, error))
            return
        for result in merging.results:
            merging.take(*result)
            self._run.lead()  # a sign of life: it may be many
        merging.finish()
        for file in merging.skipped:
            self.followed.warnings.append(f"not merged: {file.path}: {file.why}; fix: {file.fix}")

    def _note_tried(self, kind: str, end: End) -> None:
        """Remember what was confirmed, and what did not build or commits do not have: that is not tried without end."""
        session = session_of(self._session, kind)
        if end.confirmed:
            add_confirmed(session.cache, kind, end.confirmed)
        if end.tried:
            Done(session, Suite(self._run.plan.recorded_in), retry=False).take(end.tried)

    # -- submitting ------------------------------------------------------------------------------------------------------

    def _submit(self, end_s: float) -> bool:
        """Submit what is new, what died and may be tried again, and what somebody cancelled before this driver came. False if
        the engine does not answer."""
        for name, kind in self._kinds.items():
            due = [
                task.task
                for task in self._states
                if task.kind == name
                and (task.state in ("new", "again") or (task.state == "cancelled" and task.place in self._inherited))
            ]
            if not due or name in self._refused or time.monotonic() + kind.time_s > end_s:
                continue
            nodes = Counter(node for task in self._states if task.kind == name for node in task.on)
            bad = sorted(node for node, deaths in nodes.items() if deaths >= DEATHS_OF_A_NODE)
            try:
                job = self._engine.submit(self._run, kind, due, bad)
            except Refused as error:
                self._refused[name] = error
                self._watcher.note(f"{name}: {error.what}: {error.why}; fix: {error.fix}")
                if len(self._refused) == len(self._kinds):
                    raise
                continue
            if job is None:
                return False
            self._run.add(Submitted(name, job, tuple(due)))
            self._inherited.difference_update((name, task) for task in due)
            self._states = [
                replace(task, state="waiting") if task.kind == name and task.task in due else task
                for task in self._states
            ]
        return True

    def _stop_waiting(self) -> None:
        """The budget is over: what runs is waited for, and nothing else begins."""
        self._over_budget = True
        self._engine.cancel(self._run, [task.place for task in self._states if task.state == "waiting"])

    # -- telling people --------------------------------------------------------------------------------------------------

    def _tell(self) -> None:
        for kind in self._kinds:
            self._tell_once(kind, self._line(kind))

    def _line(self, kind: str) -> str:
        """ "h100: 40 wait (Resources), 3 run, 17 of 60 in; about 2 h"."""
        own = [task for task in self._states if task.kind == kind]
        waiting = [task for task in own if task.state == "waiting"]
        running = [task for task in own if task.state == "running"]
        done = [end for name, end in self._ends.items() if name.startswith(f"{kind}/")]
        reasons = ", ".join(sorted({task.why for task in waiting if task.why}))
        words = [f"{len(waiting)} wait" + (f" ({reasons})" if reasons else "")] if waiting else []
        words += [f"{len(running)} run"] if running else []
        line = f"{kind}: {', '.join([*words, f'{len(done)} of {len(own)} in'])}"
        if done and running:
            each_s = statistics.median(end.took_s for end in done)
            left_s = each_s * -(-(len(waiting) + len(running)) // len(running))
            line += f"; about {format_duration(left_s, rough=True)}"
        return line

    def _tell_once(self, about: str, text: str) -> None:
        """Say it, but not the same again, and not more often than every TELL_S."""
        now = time.monotonic()
        told_s, before = self._told.get(about, (-TELL_S, ""))
        if now - told_s >= TELL_S and text != before:
            self._told[about] = now, text
            self._watcher.note(text)

    # -- in the end ------------------------------------------------------------------------------------------------------

    def sum_up(self) -> None:
        """Put what came of it into `found`, and move the marks of what is measured whole."""
        followed, plan = self.followed, self._run.plan
        for name, end in self._ends.items():
            kind, _, task = name.partition("/")
            followed.came[kind] += 1
            for sha, (what, why, _) in end.failed.items():
                if sha not in followed.failed:
                    followed.failed[sha] = what
                    log = self._run.log(kind, int(task))
                    followed.warnings.append(f"{kind}: {sha[:8]} was left out: {what}: {why}    # log: {log}")
            if end.left:
                words = f"{kind} {task}: its time was too short for {counted(end.left, 'commit')}"
                followed.warnings.append(f'{words}; fix: give the kind a longer "time"')
        for name, refusal in self._unmerged.items():
            followed.given_up += 1
            kind, _, task = name.partition("/")
            again = quoted("regress", "merge", self._run.folder / f"{name}.{self._run.taken[name].attempt}" / "results")
            words = f"{kind} {task} was not merged: {refusal.what}: {refusal.why}; fix: {refusal.fix}; then {again}"
            followed.warnings.append(words)
        for state in self._states:
            if state.state == "given up":
                followed.given_up += 1
                log = self._run.log(state.kind, state.task)
                said = last_error(log) or state.why
                followed.warnings.append(
                    f"{state.kind} {state.task} was given up after {state.deaths} attempts: {said}    # log: {log}"
                )
        cancelled = [task for task in self._states if task.state == "cancelled"]
        if cancelled and not self._over_budget:
            followed.cancelled = len(cancelled)
            were = "were" if len(cancelled) > 1 else "was"
            followed.warnings.append(
                f"{counted(len(cancelled), 'task')} {were} cancelled; the same command submits them again"
            )
        for name, error in self._refused.items():
            followed.warnings.append(f"{name}: {error.what}: {error.why}; fix: {error.fix}")
        followed.settled = bool(self._states) and all(task.state in ("in", "given up") for task in self._states)
        followed.settled = followed.settled and not followed.interrupted
        if followed.settled:
            for kind, head in plan.heads.items():
                whole = all(task.state == "in" for task in self._states if task.kind == kind)
                if head and whole and not followed.failed:
                    Mark(session_of(self._session, kind), plan.environment).write(head)


def session_of(session: Session, kind: str) -> Session:
    """The session of a kind of nodes, which is a machine of that name."""
    request = session.request
    return Session(replace(request, overrides={**request.overrides, "machine": kind}))


def last_error(log: Path) -> str:
    """The last line of a log that begins with "error:", or the last one; empty where nothing is known."""
    try:
        lines = log.read_text(errors="replace").splitlines()[-ERROR_LINES:]
    except OSError:
        return ""
    said = [line.strip() for line in lines if line.strip()]
    errors = [line.removeprefix("error:").strip() for line in said if line.startswith("error:")]
    return (errors or said or [""])[-1]
