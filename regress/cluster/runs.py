"""The folder of a run: all that its driver and its tasks share.

    SHARED/repository.git         the project, which tasks read
    SHARED/runs/RUN/plan.json     written once
                    driver.json   who follows it
                    jobs.json     what was submitted, a job each
                    taken.json    which attempt of a task counts, and whether it is merged
                    over          empty; nothing is left to follow
                    KIND/job.sh   what a node is given to run
                    KIND/N.log    what the attempts of task N have printed
                    KIND/N.A/     attempt A: began.json, results/, and at its end end.json

Each file is written by one process and appears whole, so nothing rests on locks, which many network drives do not have.
"""

from __future__ import annotations

import os
import secrets
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from regress.cluster.plan import Costs, Plan, Task
from regress.errors import StoreError
from regress.history.disk import explained
from regress.history.kept import read, write
from regress.history.memory import Claim
from regress.model import Kind

STALE_S = 120.0
"""A driver on another host that has not written for that long is taken for dead."""


@dataclass(frozen=True)
class Began:
    """Who makes an attempt."""

    node: str
    job: str
    """The engine's name of the job, without the task."""
    pid: int = 0
    at: float = 0.0


@dataclass(frozen=True)
class End:
    """How an attempt ended: written last, so what it names is there."""

    code: int
    """0: measured; 3: some commits failed; 130: it was told to end; others: nothing could be measured there."""
    card: str = ""
    measured: int = 0
    """Commits, the anchor among them."""
    cases: int = 0
    failed: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    """By full hash: what, why and fix."""
    tried: Mapping[str, Mapping[str, tuple[int, str] | str]] = field(default_factory=dict)
    """By full hash: what did not build, and which cases it does not have, as sweep.json says it."""
    confirmed: Mapping[str, Mapping[str, list[Claim]]] = field(default_factory=dict)
    """Of a pair: what was found in turn, as confirmed.json says it."""
    error: tuple[str, str, str] | None = None
    looked_s: float = 0.0
    """From its start to its first round."""
    took_s: float = 0.0
    left: int = 0
    """Commits that its time was too short for."""

    @property
    def is_whole(self) -> bool:
        """Whether its results count."""
        return self.code in (0, 3)


@dataclass(frozen=True)
class Attempt:
    """One attempt at a task."""

    number: int
    folder: Path
    began: Began | None
    end: End | None

    @property
    def results(self) -> Path:
        return self.folder / "results"


@dataclass(frozen=True)
class Submitted:
    """A job that was submitted, with its tasks."""

    kind: str
    job: str
    tasks: tuple[int, ...]


@dataclass(frozen=True)
class Taken:
    """The attempt whose results count."""

    attempt: int
    merged: bool = False


@dataclass(frozen=True)
class Driver:
    """Who follows a run."""

    host: str
    pid: int
    started: str = ""
    """When its process began, as the kernel of its host counts."""

    @property
    def words(self) -> str:
        return f"{self.pid} on {self.host}"


class Run:
    """One run, in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name
        plan = read(folder / "plan.json", Plan)
        if plan is None:
            raise StoreError(f"there is no run in {folder}", why="it has no plan.json", fix=f"ls {folder.parent}")
        self.plan = plan

    def log(self, kind: str, task: int) -> Path:
        return self.folder / kind / f"{task}.log"

    def task(self, kind: str, number: int) -> Task:
        return next(task for task in self.plan.tasks[kind] if task.number == number)

    # -- attempts --------------------------------------------------------------------------------------------------------

    def begin(self, kind: str, task: int, job: str) -> Attempt:
        """A new attempt, which nobody else makes."""
        number = 0
        with explained(self.folder):
            while True:
                folder = self.folder / kind / f"{task}.{number}"
                try:
                    folder.mkdir(parents=True)
                    break
                except FileExistsError:
                    number += 1
        node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
        began = Began(node, job, os.getpid(), time.time())
        write(folder / "began.json", began)
        return Attempt(number, folder, began, None)

    def attempts(self, kind: str, task: int) -> list[Attempt]:
        """What was tried, the first attempt first."""
        attempts: list[Attempt] = []
        while (folder := self.folder / kind / f"{task}.{len(attempts)}").is_dir():
            attempts.append(
                Attempt(len(attempts), folder, read(folder / "began.json", Began), read(folder / "end.json", End))
            )
        return attempts

    # -- what the driver keeps -------------------------------------------------------------------------------------------

    @property
    def submitted(self) -> tuple[Submitted, ...]:
        return read(self.folder / "jobs.json", tuple[Submitted, ...]) or ()

    def add(self, job: Submitted) -> None:
        write(self.folder / "jobs.json", (*self.submitted, job))

    @property
    def taken(self) -> dict[str, Taken]:
        """By kind and task ("h100/3")."""
        return read(self.folder / "taken.json", dict[str, Taken]) or {}

    def take(self, taken: Mapping[str, Taken]) -> None:
        write(self.folder / "taken.json", {**self.taken, **taken})

    @property
    def is_over(self) -> bool:
        return (self.folder / "over").exists()

    def close(self) -> None:
        with explained(self.folder):
            (self.folder / "over").touch()

    # -- who follows it --------------------------------------------------------------------------------------------------

    def lead(self) -> Driver | None:
        """Follow it: None from then on, or who does that already. To be called again and again, as a sign of life: another one
        is there also where we were silent for so long that it took the run over."""
        path, own = self.folder / "driver.json", _this_driver()
        other = read(path, Driver)
        if other is not None and other != own and _lives(other, path):
            return other
        write(path, own)
        now = read(path, Driver)  # of two that come at once both see who was last
        return None if now == own else now

    def leave(self) -> None:
        """Follow it no longer."""
        path = self.folder / "driver.json"
        if read(path, Driver) == _this_driver():
            path.unlink(missing_ok=True)


def create(shared: Path, plan: Plan, beside: Mapping[str, object] | None = None) -> Run:
    """A new run of that plan, with what is kept `beside` it by name of file: without any of this there is no run."""
    folder = shared / "runs" / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    with explained(folder):
        for kind in plan.tasks:
            (folder / kind).mkdir(parents=True)
    for name, value in {**(beside or {}), "plan.json": plan}.items():
        write(folder / name, value)
    return Run(folder)


def find(shared: Path, key: str) -> Run | None:
    """The newest run of that request that is not over."""
    return next((run for run in _newest_first(shared) if run.plan.key == key and not run.is_over), None)


def costs_of(shared: Path, kind: Kind) -> Costs | None:
    """What tasks of the kind take, as those of the newest run with any have shown; None where there is none."""
    for run in _newest_first(shared):
        ends = [
            attempt.end
            for task in run.plan.tasks.get(kind.name, ())
            for attempt in run.attempts(kind.name, task.number)
            if attempt.end is not None and attempt.end.is_whole and attempt.end.measured and attempt.end.cases
        ]
        if ends:
            case_s = median((end.took_s - end.looked_s) / end.measured / end.cases for end in ends)
            return Costs(median(end.looked_s for end in ends), case_s, kind.time_s)
    return None


def _newest_first(shared: Path) -> Iterator[Run]:
    for folder in sorted((shared / "runs").glob("*-*"), reverse=True):
        with suppress(StoreError):  # its maker was killed
            yield Run(folder)


def started(pid: int) -> str:
    """When the process of that number began, as the kernel counts; empty if there is none, or a dead one. Numbers are used
    again."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in ("Z", "X") else rest[18]


def _this_driver() -> Driver:
    return Driver(socket.gethostname(), os.getpid(), started(os.getpid()))


def _lives(driver: Driver, path: Path) -> bool:
    if driver.host == socket.gethostname():
        began = started(driver.pid)
        return began == driver.started if began else _is_hidden(driver.pid)
    try:
        return _clock_of(path.parent) - path.stat().st_mtime < STALE_S
    except FileNotFoundError:  # it has left
        return False


def _is_hidden(pid: int) -> bool:
    """Whether there is a process of that number of which nothing is shown, as it is another user's (hidepid)."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        pass
    return False


def _clock_of(folder: Path) -> float:
    """The time by the clock that files in the folder are dated by: that of a network drive is another than ours."""
    with explained(folder), tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"now")
        file.flush()
        os.fsync(file.fileno())
        return os.fstat(file.fileno()).st_mtime
