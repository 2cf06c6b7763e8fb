"""What reaches the nodes of a cluster: the protocol, and the text of a job."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from regress.cluster.runs import Run
from regress.errors import ConfigError, NothingMeasured
from regress.model import Cluster, Kind

Place = tuple[str, int]
"""A kind and a task."""


JOB = "job.sh"
"""What a node is given to run, in the folder of its kind."""
SCRATCH = "/tmp/regress-$(id -u)"
"""Where a node has what it may lose, where the configuration says nothing."""


class Refused(NothingMeasured):
    """The cluster takes no such job."""


@dataclass(frozen=True)
class Queued:
    """A task that the engine has."""

    state: Literal["waiting", "running"]
    why: str = ""
    """Of one that waits: the engine's reason."""
    node: str = ""


@dataclass(frozen=True)
class Gone:
    """A task that the engine has no longer."""

    how: Literal["ended", "failed", "cancelled", "back", "unknown"]
    """back: the engine has it again by now."""
    why: str = ""
    """In words for people: "node7 went down"."""


class Attached(Protocol):
    """A job that we wait for."""

    def wait(self) -> int:
        """Its exit code, at its end."""

    def interrupt(self) -> None:
        """Pass Ctrl-C on."""

    def cancel(self) -> None:
        """End it."""


class Engine(Protocol):
    """How tasks get to nodes, and what is known of them there."""

    def submit(self, run: Run, kind: Kind, tasks: Sequence[int], exclude: Sequence[str] = ()) -> str | None:
        """Submit tasks, to none of the nodes in `exclude`: the name of the job, or None where the engine does not answer.
        Raises Refused."""

    def queued(self, run: Run) -> Mapping[Place, Queued] | None:
        """The tasks of the run that it has; None where it does not answer."""

    def gone(self, run: Run, kind: str, task: int, job: str) -> Gone:
        """What became of a task that it does not have any more."""

    def cancel(self, run: Run, places: Sequence[Place] | None = None) -> None:
        """End those tasks, or all."""

    def to_end(self, run: Run) -> str:
        """The command with which a person ends the run's tasks."""

    def attach(self, kind: Kind, text: str, name: str) -> Attached:
        """Have a node run that script, what it prints going where our own output goes."""


def placed(cluster: Cluster, cache: Path) -> Cluster:
    """The cluster with its folders: those of `local` are in the cache where none are named. Raises ConfigError where one
    lacks that nodes need."""
    if cluster.engine == "local":
        own = cache / "cluster"
        return replace(cluster, shared=cluster.shared or str(own), scratch=cluster.scratch or str(own / "node"))
    if not cluster.shared:
        raise ConfigError(
            '"cluster" has no "shared"',
            why="nodes read the project there, and write their results there",
            fix='name a folder that all nodes see under the same path: "shared": "/shared/bench"',
        )
    return cluster


def engine_of(cluster: Cluster) -> Engine:
    """The engine that the configuration names."""
    from regress.cluster.local import Local  # late: they import the protocol from here
    from regress.cluster.slurm import Slurm

    return Local(cluster) if cluster.engine == "local" else Slurm(cluster)


def prelude(cluster: Cluster, kind: Kind) -> list[str]:
    """The lines of shell that a job begins with."""
    return [
        "set -e",
        f'export REGRESS_SCRATCH="{cluster.scratch or SCRATCH}"',
        'export REGRESS_CACHE_DIR="$REGRESS_SCRATCH/cache"',
        f"export REGRESS_SHARED={shlex.quote(cluster.shared)}",
        *cluster.setup,
        *kind.setup,
    ]


def script(cluster: Cluster, kind: Kind, run: Run, *, job: str, task: str) -> str:
    """What a node is given to run; `job` and `task` are as its shell has them.

    The shell is replaced by the program, or else it would take the signals, and end while the program still writes.
    """
    program = [sys.executable, "-m", "regress", "shard", str(run.folder), kind.name]
    lines = [
        "#!/bin/bash",
        f'export REGRESS_JOB="{job}"',
        *prelude(cluster, kind),
        f'exec {shlex.join(program)} "{task}"',
    ]
    return "\n".join(lines) + "\n"
