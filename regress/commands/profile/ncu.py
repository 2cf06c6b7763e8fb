"""`regress profile CASE --ncu`: the kernels of cases one by one, under Nsight Compute."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from regress.commands.profile.case import FOLDER, ProfiledCases, case_after_case, choose, only, report_on
from regress.errors import NothingMeasured, ProfileError, RegressError
from regress.model import Case, Failure, Metered, Report
from regress.run import plan
from regress.run.execute import Watcher
from regress.run.plain import Plain, plain
from regress.run.profiled import trace_name
from regress.run.watched import Ended, watched
from regress.session import Request, Session
from regress.text.wording import counted, reason
from regress.traces import ncu
from regress.traces.metered import devices, metered

CALLS = 1
MOST_LAUNCHES = 1000
"""Of a case. Each is run some ten times over, with all the memory that it writes put back in between."""
LONGER = 20
"""Times the timeout of a case, that it may take under ncu."""
LEAST_TIMEOUT_S = 600.0
SHOW_TIMEOUT_S = 300.0
SKIPPED = 5
"""With this code a case ends that cannot be run here."""
DETAIL = 40
"""Lines of what was printed, that are kept of a failure."""

_CODE = re.compile(r"^==ERROR== The application returned an error code \((-?\d+)\)", re.MULTILINE)

Tell = Callable[[str], None]
"""Takes the kernel that is being measured."""


def meter_cases(
    request: Request, revisions: Sequence[str], watcher: Watcher, calls: int | None = None, environment: str = ""
) -> Report:
    """Run the cases that match under Nsight Compute, each in a process of its own, with the code of one revision (none: the
    working tree).

    Raises NothingMeasured if there is no GPU, no ncu, or it may not or cannot read the counters.
    """
    start = time.monotonic()
    revision, calls = only(revisions), calls or CALLS
    _refuse_files(request.patterns)
    session = Session(request)
    session.devices.require_gpu("whose kernels ncu could measure")
    tool = _tool()
    chosen = choose(session, revision, watcher, environment)
    meter = _Meter(chosen, tool, calls, watcher)
    with session.devices.held(watcher) as locked:
        results, interrupted = case_after_case(chosen, watcher, "under Nsight Compute", meter.outcomes)
    of_each = f"{counted(calls, 'call')} of each under Nsight Compute"
    return replace(
        report_on("metered", chosen, results, interrupted, start),
        device=devices(results),
        plan=", ".join(filter(None, [counted(len(chosen.cases), "case"), of_each, locked])),
        metered=tuple(results),
    )


def _refuse_files(words: Sequence[str]) -> None:
    for word in words:
        if Path(word).is_file():
            raise RegressError(
                f"--ncu measures a case, and {word} is a file",
                why="in a whole program, every launch would run about ten times",
                fix="regress profile CASE --ncu, or run ncu yourself, and: regress profile FILE.csv",
            )


def _tool() -> str:
    try:
        return ncu.find()
    except ProfileError as error:
        raise _nothing(error) from None


def _nothing(error: ProfileError) -> NothingMeasured:
    """The same as what it is here: not a file that cannot be read, but a tool that cannot run."""
    return NothingMeasured(error.what, why=error.why, fix=error.fix)


@dataclass(frozen=True)
class _Meter:
    """How cases are run under the tool, and where what it finds is kept."""

    chosen: ProfiledCases
    tool: str
    calls: int
    watcher: Watcher

    def outcomes(self, case: Case) -> Iterator[Metered]:
        """What the tool has found of the case, or why nothing. Ctrl-C ends the tool, which may have found something by then."""
        result, interrupted = self._metered(case)
        if result.kernels or not interrupted:
            yield result
        if interrupted:
            raise KeyboardInterrupt

    def _metered(self, case: Case) -> tuple[Metered, bool]:
        job, benchmark = self.chosen.job, self.chosen.benchmarks[case.name]
        (prepared,) = job.sides
        program = plain(prepared, job, benchmark, case, self.calls)
        if isinstance(program, Failure):
            return Metered(case, failure=program), False
        folder = self.chosen.session.cache / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        name = trace_name(case, prepared).removesuffix(".json.gz")
        report, table, log = (folder / f"{name}.{ending}" for ending in ("ncu-rep", "ncu.csv", "ncu.log"))
        for left in (report, table):
            left.unlink(missing_ok=True)
        timeout_s = max(LEAST_TIMEOUT_S, LONGER * plan.timeout_of(benchmark, job.default_timeout_s))
        ended = self._recorded(
            program, report, log, timeout_s, lambda kernel: self.watcher.advance(f"{case}: {kernel}", 0)
        )
        failure = _failure(case, ended, timeout_s)
        try:
            result = self._read(case, report, table, ended)
        except ProfileError as error:
            if failure is None and not ended.interrupted:
                if ncu.is_of_the_machine(ended.output) or len(self.chosen.cases) == 1:
                    raise _nothing(error) from None
                failure = Failure("error", error.cause, detail=_end_of(ended))
            return Metered(case, self.calls, failure=failure), ended.interrupted
        return replace(result, report=str(report), failure=failure), ended.interrupted

    def _recorded(self, program: Plain, report: Path, log: Path, timeout_s: float, tell: Tell) -> Ended:
        words = ncu.record(program.words, report, ncu=self.tool, launch_count=MOST_LAUNCHES)

        def seen(line: str) -> None:
            kernel = ncu.kernel_of(line)
            if kernel is not None:
                tell(kernel)

        try:
            return watched(words, program.variables, log, timeout_s, seen)
        except OSError as error:
            why = reason(error)
            raise NothingMeasured(f"{self.tool} cannot be started", why=why, fix=f"{self.tool} --version") from None

    def _read(self, case: Case, report: Path, table: Path, ended: Ended) -> Metered:
        """The kernels in the report, printed into the table. Raises ProfileError if there are none."""
        if not report.exists():
            raise ncu.failure(ended.output)
        shown = ncu.show(report, ncu=self.tool)
        try:
            done = subprocess.run(shown, capture_output=True, timeout=SHOW_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise ProfileError(f"ncu did not print {report} in {SHOW_TIMEOUT_S:.0f} s", fix=" ".join(shown)) from None
        text = done.stdout.decode("utf-8", "replace")
        launches = ncu.read(text + done.stderr.decode("utf-8", "replace"), f"what ncu prints of {report}")
        temporary = table.with_name(f".{table.name}.{secrets.token_hex(4)}.tmp")
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, table)
        result = metered(case, launches, self.calls)
        flags = []
        if len(launches) >= MOST_LAUNCHES:
            flags.append(f"stopped after {MOST_LAUNCHES} launches: later ones are not included")
        return replace(result, table=str(table), flags=tuple(flags))


def _failure(case: Case, ended: Ended, timeout_s: float) -> Failure | None:
    """Why the case is to blame; None where it is not."""
    if ended.interrupted or ncu.is_of_the_machine(ended.output):
        return None
    if ended.timed_out:
        why = "every kernel is run several times over; a larger `timeout` of the benchmark gives it more time"
        return Failure("timeout", f"not done under ncu after {timeout_s:.0f} s: {why}", detail=_end_of(ended))
    said = [line.removeprefix("regress: ") for line in ended.output.splitlines() if line.startswith("regress: ")]
    code = _CODE.search(ended.output)
    if said and said[-1].startswith(f"{case}: "):
        kind = "skipped" if SKIPPED in (ended.code, int(code[1]) if code else 0) else "error"
        return Failure(kind, said[-1].removeprefix(f"{case}: "), detail=_end_of(ended))
    if not said and code:
        return Failure("error", f"its process ended with code {code[1]} under ncu", detail=_end_of(ended))
    return None


def _end_of(ended: Ended) -> str:
    return "\n".join(ended.output.splitlines()[-DETAIL:])
