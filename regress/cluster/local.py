"""Processes of this host in the place of a cluster's nodes: for one that has many cards, and to try things out."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from regress.children import send_signal, start
from regress.cluster.engine import JOB, Gone, Place, Queued, script
from regress.cluster.runs import Run, started
from regress.history.disk import replace_file
from regress.history.kept import read, write
from regress.model import Cluster, Kind


class Local:
    """The engine of one host. It starts at most `at_most` processes of a kind at once, each with a number of its own from 0
    ($REGRESS_SLOT) by which its set-up may choose a card; what waits is known to this object alone, and lost with it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._waiting: list[tuple[Kind, int, str]] = []
        self._children: list[int] = []

    def submit(self, run: Run, kind: Kind, tasks: Sequence[int], exclude: Sequence[str] = ()) -> str:
        job = f"local-{time.time_ns()}"
        text = script(self._cluster, kind, run, job="$REGRESS_JOB", task="$1")
        replace_file(run.folder / kind.name / JOB, text.encode())  # a shell may be reading the old one
        self._waiting += [(kind, task, job) for task in tasks]
        self._fill(run)
        return job

    def queued(self, run: Run) -> Mapping[Place, Queued] | None:
        self._fill(run)
        running = {place: Queued("running", node="this host") for place in _alive(run)}
        return running | {(kind.name, task): Queued("waiting", "slots") for kind, task, _ in self._waiting}

    def gone(self, run: Run, kind: str, task: int, job: str) -> Gone:
        begun = read(_file(run, kind, task), _Begun)
        return Gone("failed", "its process ended") if begun is not None and begun.job == job else Gone("unknown")

    def cancel(self, run: Run, places: Sequence[Place] | None = None) -> None:
        self._waiting = [
            waiting for waiting in self._waiting if places is not None and (waiting[0].name, waiting[1]) not in places
        ]
        for place, begun in _alive(run).items():
            if places is None or place in places:
                with suppress(ProcessLookupError):
                    os.killpg(begun.pid, signal.SIGTERM)

    def to_end(self, run: Run) -> str:
        pids = sorted(begun.pid for begun in _alive(run).values())
        return f"kill {' '.join(map(str, pids))}" if pids else "nothing runs"

    def attach(self, kind: Kind, text: str, name: str) -> _Process:
        return _Process(text)

    def _fill(self, run: Run) -> None:
        """Start what waits, as far as there are slots."""
        # A dead one that nobody has asked for still has its number.
        self._children = [pid for pid in self._children if _is_child(pid)]
        for waiting in list(self._waiting):
            kind, task, job = waiting
            taken = {begun.slot for (name, _), begun in _alive(run).items() if name == kind.name}
            free = sorted(set(range(kind.at_most)) - taken)
            if not free:
                continue
            self._waiting.remove(waiting)
            variables = {**os.environ, "REGRESS_JOB": job, "REGRESS_SLOT": str(free[0])}
            pid = _spawn(run.folder, run.folder / kind.name / JOB, str(task), variables, run.log(kind.name, task))
            self._children.append(pid)
            write(_file(run, kind.name, task), _Begun(job, pid, started(pid), free[0]))


class _Process:
    """A process that we wait for; it has a group of its own, or Ctrl-C would reach it twice."""

    def __init__(self, text: str) -> None:
        words = ["/bin/bash", "-c", text]
        self._process = start(words, stdin=subprocess.DEVNULL)

    def wait(self) -> int:
        code = self._process.wait()
        return code if code >= 0 else 128 - code

    def interrupt(self) -> None:
        send_signal(self._process, signal.SIGINT)

    def cancel(self) -> None:
        send_signal(self._process, signal.SIGKILL)


def _spawn(folder: Path, job: Path, task: str, variables: Mapping[str, str], log: Path) -> int:
    """Start the job's script in that folder: the number of its process.

    Not subprocess.Popen: that is an object which must outlive the process, and the process may outlive this driver. A session
    of its own, since Ctrl-C is for the driver; signals as a shell expects them, where Python ignores some."""
    words = ["/bin/bash", "-c", 'cd "$0" && exec /bin/bash "$@"', str(folder), str(job), task]
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    ignored = [signal.SIGPIPE, signal.SIGXFSZ]
    return os.posix_spawn(words[0], words, variables, file_actions=files, setsid=True, setsigdef=ignored)


@dataclass(frozen=True)
class _Begun:
    """The process of a task, as a later driver finds it."""

    job: str
    pid: int
    started: str
    slot: int


def _is_child(pid: int) -> bool:
    """Whether that child of ours is alive. A driver that was started with SIGCHLD ignored never hears of their ends."""
    try:
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        return False


def _file(run: Run, kind: str, task: int) -> Path:
    return run.folder / kind / f"{task}.process.json"


def _alive(run: Run) -> Mapping[Place, _Begun]:
    """The tasks whose processes are alive."""
    places = [(kind, task.number) for kind, tasks in run.plan.tasks.items() for task in tasks]
    begun = ((place, read(_file(run, *place), _Begun)) for place in places)
    return {place: it for place, it in begun if it is not None and it.started and started(it.pid) == it.started}
