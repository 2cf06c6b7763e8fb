"""Programs that measure by themselves: each is run in the folder of a side, and what it writes is read as rounds of its cases.

Its cases are those that it lists, or that its first run reports; that run is the unmeasured visit too. From then on a case is
like any other, except that one run visits all cases of a program.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from regress.children import ended, start
from regress.choices import IMPORTED, MAPPED
from regress.errors import DocumentError
from regress.files import scratch
from regress.importers import Document, benchmarks_of, param, read, read_list, rounds_of
from regress.measure.wire import Program, Proposal, Suite, Task
from regress.model import PROGRAM, Benchmark, Failure, Protocol, Round, SuiteProblem
from regress.run import plan
from regress.run.deadline import Deadline
from regress.run.environments import Prepared
from regress.run.servers import LOG_TAIL_BYTES, Died
from regress.run.starting import Starter
from regress.text.wording import reason

OUTPUT, PYTHON = "{output}", "{python}"

Combination = tuple[str, ...]
"""Values of a program's own parameters, as words of its command."""


@dataclass(frozen=True)
class ProgramRun:
    """One run of a program: what it has written, and what went wrong."""

    document: Document | None
    failure: Failure | None = None
    """Why there is no document; or of one that is whole, how the program ended all the same."""
    seconds: float = 0.0
    started_at: float = 0.0
    process: int = 0


class Programs:
    """The programs of a suite, as the sides have them. Several threads may ask."""

    def __init__(self, default_timeout_s: float) -> None:
        self._default_timeout_s = default_timeout_s
        self._lock = threading.RLock()
        self._suites: dict[str, Suite] = {}
        """By side, with what was found of its programs."""
        self._known: dict[tuple[str, str], Program] = {}
        """By side and name."""
        self._benchmarks: dict[str, dict[str, Benchmark]] = {}
        """By side: those of its programs by name."""
        self._first: dict[tuple[str, str, Combination], ProgramRun] = {}
        """First runs, until the unmeasured visit has taken them."""

    # -- which cases there are -------------------------------------------------------------------------------------------

    def discovered(self, starter: Starter, side: Prepared, suite: Suite) -> Suite:
        """The suite with the benchmarks of its programs on that side; what a program could not say is a problem."""
        name = side.side.name
        with self._lock:
            if suite.programs and name not in self._suites:
                benchmarks: dict[str, Benchmark] = {}
                problems: list[SuiteProblem] = []
                for program in suite.programs:
                    self._known[name, program.name] = program
                    benchmarks.update(self._cases(starter, side, program, problems))
                self._benchmarks[name] = benchmarks
                self._suites[name] = replace(
                    suite,
                    benchmarks=[*suite.benchmarks, *benchmarks.values()],
                    problems=[*suite.problems, *problems],
                )
            return self._suites.get(name, suite)

    def _cases(
        self, starter: Starter, side: Prepared, program: Program, problems: list[SuiteProblem]
    ) -> dict[str, Benchmark]:
        limit_s = program.timeout_s or starter.settings.discover_timeout_s
        documents = []
        for combination in itertools.product(*program.params):
            ran = _run(starter, side, program, combination, limit_s, listing=bool(program.list_command))
            if ran.failure is not None:
                problems.append(_problem(program, ran.failure))
            if ran.document is not None:
                documents.append(_with_params(ran.document, program, combination))
            if not program.list_command:
                self._first[side.side.name, program.name, combination] = ran
        try:
            benchmarks = benchmarks_of(documents, program.name)
        except DocumentError as error:
            problems.append(_problem(program, Failure("error", error.cause)))
            return {}
        return {name: _declared(benchmark, program) for name, benchmark in benchmarks.items()}

    # -- visits ----------------------------------------------------------------------------------------------------------

    def apart(self, tasks: Sequence[Task], benchmarks: Mapping[str, Benchmark]) -> list[list[Task]]:
        """The tasks that one run of a program answers, for each run."""
        groups: dict[tuple[str, Combination], list[Task]] = {}
        for task in tasks:
            program = self._known[task.side, benchmarks[task.name].program]
            groups.setdefault((program.name, _combination(program, task)), []).append(task)
        return list(groups.values())

    def visit(
        self, starter: Starter, side: Prepared, tasks: Sequence[Task], deadline: Deadline
    ) -> Iterator[tuple[Task, Proposal | Round]]:
        """The replies to the tasks of one run. Raises TimeIsOver at the deadline."""
        benchmarks = self._benchmarks[side.side.name]
        program = self._known[side.side.name, benchmarks[tasks[0].name].program]
        combination = _combination(program, tasks[0])
        ran = None
        if tasks[0].protocol is None:
            ran = self._first.pop((side.side.name, program.name, combination), None)
        if ran is None:
            own = sum(
                1
                for benchmark in benchmarks.values()
                if benchmark.program == program.name
                for _ in plan.cases_of(benchmark)
            )
            limit_s = program.timeout_s or self._default_timeout_s * max(own, 1)
            ran = _run(starter, side, program, combination, deadline.within(limit_s))
            deadline.check()  # a run that the end of the time has cut off says nothing
        given = {}
        if ran.document is not None:
            document = _with_params(ran.document, program, combination)
            given = {
                (round.name, tuple(round.params)): round
                for round in rounds_of(document, benchmarks, side.side.name, tasks[0].order, program.name)
            }
        for task in tasks:
            yield task, _reply(task, benchmarks[task.name], ran, given.get((task.name, tuple(task.params))), len(tasks))


def _reply(task: Task, benchmark: Benchmark, ran: ProgramRun, round: Round | None, tasks: int) -> Proposal | Round:
    """What the run says of one of its cases, which has its part of the time."""
    protocol, seconds = Protocol(benchmark.metric, process=PROGRAM), ran.seconds / tasks
    failure = round.failure if round is not None else _missing(ran)
    if task.protocol is None:
        usable = protocol if failure is None else None
        return Proposal(task.name, task.params, task.side, usable, failure, seconds, flags=round.flags if round else [])
    if round is None:
        round = Round(task.name, task.params, task.side, task.order, failure=failure)
    return replace(
        round,
        process=ran.process,
        started_at=ran.started_at,
        duration_s=seconds,
        protocol=task.protocol,
    )


def _missing(ran: ProgramRun) -> Failure:
    """Why there is nothing of a case."""
    what = "the program did not report this case"
    if ran.failure is None:
        return Failure("error", what)
    if ran.document is None:
        return ran.failure
    return replace(ran.failure, message=f"{what}: {ran.failure.message}")


def _problem(program: Program, failure: Failure) -> SuiteProblem:
    return SuiteProblem(program.name, failure.message, failure.detail, name=program.name, program=True)


def _combination(program: Program, task: Task) -> Combination:
    """The program's own parameters, which come first, as words of its command."""
    texts = task.params[: len(program.params)]
    return tuple(
        next(value for value in axis if param(value) == text) for axis, text in zip(program.params, texts, strict=True)
    )


def _with_params(document: Document, program: Program, combination: Combination) -> Document:
    own = dict(zip(program.param_names, map(param, combination), strict=True))
    return replace(document, cases=tuple(replace(case, params={**own, **case.params}) for case in document.cases))


def _declared(benchmark: Benchmark, program: Program) -> Benchmark:
    """The benchmark as its class declares it."""
    return replace(
        benchmark,
        version=program.version,
        program=program.name,
        timeout_s=program.timeout_s,
        file=program.file,
        line=program.line,
        declared=dict(program.declared),
    )


# -- one run -------------------------------------------------------------------------------------------------------------


def _run(
    starter: Starter,
    side: Prepared,
    program: Program,
    combination: Combination,
    limit_s: float,
    listing: bool = False,
) -> ProgramRun:
    """Run the program, or have it list its cases. All that it has started is ended with it."""
    home = Path(tempfile.mkdtemp(prefix="program-", dir=scratch()))
    words = program.list_command if listing else program.command
    output = home / "output.json"
    named = {OUTPUT: str(output), PYTHON: side.python}
    named.update((f"{{{key}}}", value) for key, value in zip(program.param_names, combination, strict=True))
    command = [_filled(word, named) for word in words]
    printed = output if OUTPUT not in "".join(words) else home / "stdout"
    folder, began_s, started_at = side.tree / program.cwd, time.monotonic(), time.time()
    log = home / "log"
    try:
        with open(printed, "wb") as out, open(log, "wb") as errors:
            process = start(
                command,
                cwd=folder,
                env={**starter.variables(side), **program.env},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
            )
            with starter.watched(process.pid, home):
                code = ended(process, limit_s, starter.interrupt.check)
        said = _tail(log) or ("" if printed == output else _tail(printed))
        failure = None if code == 0 else _ended_badly(code, said)
        document, wrong = _read(output, program, listing)
        if document is None and failure is None:
            failure = replace(wrong, detail=said) if wrong is not None else None
        return ProgramRun(document, failure, time.monotonic() - began_s, started_at, process.pid)
    except subprocess.TimeoutExpired:
        late = Failure("timeout", f"took longer than {limit_s:g} s", detail=_tail(log))
        return ProgramRun(None, late, time.monotonic() - began_s, started_at)
    except OSError as error:
        return ProgramRun(None, Failure("error", _not_started(command[0], side, folder, error)))
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _filled(word: str, named: Mapping[str, str]) -> str:
    for key, value in named.items():
        word = word.replace(key, value)
    return word


def _ended_badly(code: int, said: str) -> Failure:
    died = Died(code, said)
    last = f": {died.last_line}" if died.last_line else ""
    if code < 0:
        return Failure("signal", died.reason + last, detail=said)
    return Failure("error", f"ended with exit code {code}{last}", detail=said)


def _not_started(program: str, side: Prepared, folder: Path, error: OSError) -> str:
    why = reason(error)
    there = "" if folder.is_dir() else f", because there is no folder {os.path.relpath(folder, side.tree)}"
    return f'{program} cannot be run on {side.side.label}: {why}{there}; set "build" in the configuration to build it'


def _read(output: Path, program: Program, listing: bool) -> tuple[Document | None, Failure | None]:
    """What it has written, or why that is no document. Some programs append endings to the name, a file for each kind."""
    if program.format not in (known := (*IMPORTED, *MAPPED)):
        return None, Failure("error", f"there is no format {program.format!r}; known are {', '.join(known)}")
    files = [output] if output.exists() else sorted(output.parent.glob(f"{output.name}.*"))
    if not files:
        return None, Failure("error", "it wrote nothing to {output}")
    try:
        documents = [
            read_list(file, program.format) if listing else read(file, program.format, program.mapping)
            for file in files
        ]
    except DocumentError as error:
        return None, Failure("error", f"its output is not a document of {program.format}: {error.why}")
    return replace(documents[0], cases=tuple(case for document in documents for case in document.cases)), None


def _tail(file: Path) -> str:
    with contextlib.suppress(OSError), open(file, "rb") as stream:
        stream.seek(max(0, file.stat().st_size - LOG_TAIL_BYTES))
        return stream.read().decode(errors="replace")
    return ""
