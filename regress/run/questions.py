"""What processes are asked beside visits to cases: the suite, a setup_cache, what the device does at most, a profile."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regress.errors import NothingMeasured, RegressError
from regress.measure.wire import (
    Broken,
    CacheReady,
    CaseRecorded,
    Ceilings,
    MeasureCeilings,
    Record,
    SetupCache,
    Suite,
    WrongCode,
)
from regress.model import Benchmark, Failure
from regress.run.deadline import ENDLESS, Deadline
from regress.run.environments import Prepared
from regress.run.processes import Processes
from regress.run.replies import wrong_code
from regress.run.servers import Died, Server, TimedOut, discovered
from regress.text.wording import quoted

CEILINGS_TIMEOUT_S = 60.0
RECORD_GRACE_S = 120.0
"""Added to a case's timeout when it is profiled: it is called several times as often, and the trace is written."""


def suites(
    processes: Processes, sides: Sequence[Prepared], meanwhile: Callable[[], object] = lambda: None
) -> dict[str, Suite]:
    """By side: the suite as it is found with the side's code. All of them import it at once, and `meanwhile` is called.

    Raises NothingMeasured if it cannot be imported at all. The process that imports it stays, to fork the workers, unless the
    settings want fresh ones.
    """
    with contextlib.ExitStack() as ending:
        servers = [processes.importing(side, ending) for side in sides]
        meanwhile()
        return {side.side.name: _suite(processes, side, server) for side, server in zip(sides, servers, strict=True)}


def _suite(processes: Processes, side: Prepared, server: Server) -> Suite:
    starter, where = processes.starter, f"{side.side.name} {side.side.label}"
    timeout_s = starter.settings.discover_timeout_s
    try:
        reply = discovered(server, timeout_s)
    except TimedOut as late:
        what = f"the import of {late.importing}" if late.importing else "the import of the suite"
        raise NothingMeasured(
            f"{what} did not end within {timeout_s:.0f} s on {where}",
            why="it hangs, or it is slow",
            fix='fix the import, or raise "discover_timeout_s" under "regress" in asv.conf.json',
        ) from None
    except Died as died:
        module = died.importing or starter.suite.name
        raise NothingMeasured(
            f"the process that imports the suite died on {where}, in {module}: {died.reason}",
            why=died.last_line or "it printed nothing",
            fix=f"{side.starts_python} -c {quoted(f'import {module}')}",
        ) from None
    if isinstance(reply, Broken):
        raise RegressError("the suite could not be read", why=reply.failure.message, fix="see --debug")
    return reply


def setup_cache(
    processes: Processes,
    side: Prepared,
    benchmark: Benchmark,
    directory: Path,
    default_timeout_s: float,
    deadline: Deadline = ENDLESS,
) -> Failure | None:
    """Run the benchmark's setup_cache in the directory; None when it worked. Raises TimeIsOver at the deadline."""
    declared_s = benchmark.setup_cache_timeout_s
    limit_s = default_timeout_s if declared_s is None else declared_s
    answer = _answer(processes, side, SetupCache(benchmark.name, str(directory)), limit_s, deadline)
    failure = answer.failure if isinstance(answer, (CacheReady, Broken)) else None
    if failure is None:
        return None
    what = "setup_cache" if failure.kind == "timeout" else "setup_cache:"
    return replace(failure, message=f"{what} {failure.message}")


def ceilings(processes: Processes, side: Prepared, peer: bool = False) -> Ceilings:
    """What the device does at most, measured in a process of its own; with `peer` also in copies to the next device. What could
    not be measured is missing, with the reason."""
    answer = _answer(processes, side, MeasureCeilings(peer), CEILINGS_TIMEOUT_S)
    return answer if isinstance(answer, Ceilings) else Ceilings(failure=answer.failure)


def record(processes: Processes, side: Prepared, record: Record) -> CaseRecorded:
    """What came of profiling a case in a process of its own."""
    answer = _answer(processes, side, record, record.task.timeout_s + RECORD_GRACE_S, alone=True)
    if isinstance(answer, WrongCode):
        raise wrong_code(side, answer)
    return answer if isinstance(answer, CaseRecorded) else CaseRecorded(failure=answer.failure)


def _answer(
    processes: Processes,
    side: Prepared,
    message: Any,
    limit_s: float,
    deadline: Deadline = ENDLESS,
    *,
    alone: bool = False,
) -> Any:
    """The answer of a process that is started for this question alone; Broken if it ends, or takes too long."""
    try:
        with processes.get(side, alone=alone) as server:
            server.send(message)
            return server.receive(deadline.within(limit_s))
    except TimedOut:
        deadline.check()
        return Broken(Failure("timeout", f"took longer than {limit_s:g} s"))
    except Died as died:
        return Broken(died.failure)
