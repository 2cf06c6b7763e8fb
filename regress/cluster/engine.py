"""What reaches the nodes of a cluster: the protocol, and the text of a job."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from regress.cluster.runs import Run
from regress.errors import NothingMeasured
from regress.model import Cluster, Kind

Place = tuple[str, int]
"""A kind and a task."""


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

    how: Literal["ended", "failed", "cancelled", "unknown"]
    why: str = ""
    """In words for people: "node7 went down"."""


class Engine(Protocol):
    """How tasks get to nodes, and what is known of them there."""

    def submit(self, run: Run, kind: Kind, tasks: Sequence[int], exclude: Sequence[str] = ()) -> str:
        """Hand tasks in, on none of the nodes in `exclude`; the name of the job. Raises Refused."""

    def queued(self, run: Run) -> Mapping[Place, Queued] | None:
        """What it has of the run; None where it does not answer."""

    def gone(self, run: Run, kind: str, task: int, job: str) -> Gone:
        """What became of a task that it does not have any more."""

    def cancel(self, run: Run, places: Sequence[Place] | None = None) -> None:
        """End those tasks, or all."""

    def to_end(self, run: Run) -> str:
        """The command with which a person ends the run's tasks."""


def script(cluster: Cluster, kind: Kind, run: Run, *, job: str, task: str) -> str:
    """What a node is given to run; `job` and `task` are as its shell has them.

    The shell is replaced by the program, or else it would take the signals, and end while the program still writes.
    """
    lines = [
        "#!/bin/bash",
        "set -e",
        f'export REGRESS_SCRATCH="{cluster.scratch or "/tmp/regress-$(id -u)"}"',
        f'export REGRESS_JOB="{job}"',
        *cluster.setup,
        *kind.setup,
        f'exec {shlex.quote(sys.executable)} -m regress shard {shlex.quote(str(run.folder))} {kind.name} "{task}"',
    ]
    return "\n".join(lines) + "\n"
