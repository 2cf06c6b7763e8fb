"""A case or a script profiled in a process of its own: a Chrome trace, and what the calls of a case take otherwise."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regress.errors import NothingMeasured
from regress.files import scratch
from regress.measure.wire import SCRIPT, CaseRecorded, Record, Task
from regress.model import Benchmark, Case, Failure
from regress.run import needs, plan, questions
from regress.run.environments import Prepared
from regress.run.job import Job
from regress.text.wording import quoted

WITHOUT_TORCH = 90
HAS_TORCH = f"import importlib.util, sys; sys.exit({WITHOUT_TORCH} * (importlib.util.find_spec('torch') is None))"
CALLS = 20
STDERR = 2


@dataclass(frozen=True)
class Profiled:
    """Calls of a case under the profiler. `timeline.between(chrome.read(trace), CALL_MARK, CALLS_SKIPPED)` has them."""

    case: Case
    trace: Path | None
    """None if it failed."""
    calls: int = 0
    seconds: float = 0.0
    """A call without the profiler, in the same process, from its start until the device is done."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Of the process, and those of a round: `bytes`, `flops`, `precision`, `loaded`."""
    flags: tuple[str, ...] = ()
    failure: Failure | None = None


def require_profiler(sides: Iterable[Prepared], device: str) -> None:
    """Raise NothingMeasured where a side has no torch, whose profiler is used on every device but the scripted one. To ask
    costs no import of torch."""
    for side in sides if device != "fake" else ():
        asked = [side.python, "-c", HAS_TORCH]
        if (
            subprocess.run(asked, env=side.variables, cwd=side.tree, capture_output=True, check=False).returncode
            != WITHOUT_TORCH
        ):
            continue  # whatever else is wrong is told by who measures
        raise NothingMeasured(
            f"no profile can be taken on {side.side.name} {side.side.label}",
            why=f"{side.python} has no torch, whose profiler is used",
            fix=quoted(side.python, "-m", "pip", "install", "torch"),
        )


def profiled(
    prepared: Prepared, job: Job, benchmark: Benchmark, case: Case, folder: Path, calls: int = CALLS
) -> Profiled:
    """Profile at most this many calls of the case with the side's code, in a fresh process; the trace is written into `folder`.

    A case that fails, crashes or hangs has a failure and no trace. Raises NothingMeasured if no process can be started, or
    the project was imported from elsewhere.
    """
    failure = needs.refusal_by_itself(benchmark, len(job.gpus))
    if failure is not None:
        return Profiled(case, None, failure=failure)
    folder.mkdir(parents=True, exist_ok=True)
    trace = folder / trace_name(case, prepared)
    trace.unlink(missing_ok=True)
    processes = job.processes(job.gpus)
    try:
        with tempfile.TemporaryDirectory(prefix="caches-", dir=scratch(), ignore_cleanup_errors=True) as cache:
            if benchmark.setup_cache_key is not None:
                failure = questions.setup_cache(processes, prepared, benchmark, Path(cache), job.default_timeout_s)
            recorded = CaseRecorded(failure=failure)
            if failure is None:
                timeout_s = plan.timeout_of(benchmark, job.default_timeout_s)
                cached = cache if benchmark.setup_cache_key is not None else ""
                task = Task(case.name, list(case.params), prepared.side.name, cache_dir=cached, timeout_s=timeout_s)
                recorded = questions.record(processes, prepared, Record(task, calls, str(trace)))
        facts = {**processes.facts, **recorded.facts}
    finally:
        processes.close()
    return Profiled(
        case,
        trace if recorded.failure is None else None,
        calls=recorded.calls,
        seconds=recorded.seconds,
        facts=facts,
        flags=tuple(recorded.flags),
        failure=recorded.failure,
    )


def trace_name(case: Case, prepared: Prepared) -> str:
    """A file name that tells case and commit."""
    word = re.sub(r"[^\w.=-]+", "-", str(case)).strip("-")[:120]
    return f"{word}-{prepared.side.commit.short}{'-tree' if prepared.side.dirty else ''}.json.gz"


@dataclass(frozen=True)
class Scripted:
    """A script that has ended, and the trace of it; None if there is none."""

    trace: Path | None
    failure: Failure | None = None
    interrupted: bool = False


def scripted(python: str, start_file: Path, words: Sequence[str], trace: Path) -> Scripted:
    """Run the script with its arguments, from here, and wait for it. What it prints on stdout goes to stderr.

    Ctrl-C ends the script as it would without a profiler, and what was recorded until then is kept."""
    trace.parent.mkdir(parents=True, exist_ok=True)
    trace.unlink(missing_ok=True)
    interrupted = False
    process = subprocess.Popen([python, str(start_file), SCRIPT, str(trace), *words], stdout=STDERR)
    try:
        process.wait()
    except KeyboardInterrupt:  # it came to the script as well
        interrupted = True
        process.wait()
    code, kept = process.returncode, trace if trace.exists() else None
    failure = None
    if code and not interrupted:
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        failure = Failure("signal" if code < 0 else "error", f"the script ended with {how}")
    if kept is None and failure is None:
        failure = Failure("error", "the script ended before a trace was written")
    return Scripted(kept, failure, interrupted)
