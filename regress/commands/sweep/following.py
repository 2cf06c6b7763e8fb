"""A run that is followed: what lacks is submitted, what has ended is merged, and people are told how far it is."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from regress.cluster.engine import Engine, Place, Queued, Refused
from regress.cluster.runs import Run, Submitted
from regress.cluster.states import DEATHS_OF_A_NODE, TaskState, state_of
from regress.commands.sweep.arrivals import Arrivals
from regress.commands.sweep.marks import Mark
from regress.commands.sweep.progress import RunNotes
from regress.model import Kind
from regress.run.execute import Watcher
from regress.session import Session
from regress.text.wording import counted

POLL_S = (0.5, 30.0)
"""The shortest and longest time between two looks."""
PAUSE = 0.1
"""Where nothing happens the next look comes after this share of the time since something did: so much of a card's time is lost
at most where the engine begins a task only when it is looked at, as `local` does."""
LATE_S = 60.0
"""So long a file that another node has written may take to be seen here."""
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
        self._arrivals, self._progress = Arrivals(run, session, watcher), RunNotes(watcher)
        self._refused: dict[str, Refused] = {}
        self._missing_since: dict[Place, float] = {}
        self._inherited: set[Place] = set()
        """Tasks that were cancelled before this driver came: these are submitted again."""
        self._silent_since = 0.0
        self._states: list[TaskState] = []
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
                self._progress.tell(self._kinds, self._states, self._arrivals.ends)
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
            self._arrivals.take(self._states)
            answered = self._submit(end_s)
        now = time.monotonic()
        self._silent_since = 0.0 if answered else self._silent_since or now
        if not answered:
            self._progress.note_silence(now - self._silent_since)
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
        self._progress.note_deaths(states, first)
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

    # -- in the end ------------------------------------------------------------------------------------------------------

    def sum_up(self) -> None:
        """Put what came of it into `followed`, and move the marks of what is measured whole."""
        followed, plan, arrivals = self.followed, self._run.plan, self._arrivals
        for name, end in arrivals.ends.items():
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
        followed.given_up += len(arrivals.refused)
        followed.warnings += arrivals.warnings()
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
                if head and whole and not followed.failed and not arrivals.refused:
                    Mark(self._session.of(kind), plan.environment).write(head)


def last_error(log: Path) -> str:
    """The last line of a log that begins with "error:", or the last one; empty where nothing is known."""
    try:
        lines = log.read_text(errors="replace").splitlines()[-ERROR_LINES:]
    except OSError:
        return ""
    said = [line.strip() for line in lines if line.strip()]
    errors = [line.removeprefix("error:").strip() for line in said if line.startswith("error:")]
    return (errors or said or [""])[-1]
