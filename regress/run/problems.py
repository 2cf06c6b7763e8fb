"""Which problems of the suite count: those of the head that can touch what was selected. Where nothing is left: why."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from regress.errors import NothingMeasured
from regress.model import Benchmark, SuiteProblem
from regress.run.environments import Prepared
from regress.run.environments.tree import unbuilt
from regress.run.job import Job
from regress.run.plan import Selection, cases_of
from regress.run.unmatched import nothing_matches
from regress.text.wording import first_of, quoted

NAMED = 3
"""Files with problems that count for nothing."""
_DEFINED = re.compile(r"^[ \t]*(?:async[ \t]+)?(def|class)[ \t]+(\w+)", re.MULTILINE)


def problems_of(by_side: Mapping[str, Sequence[SuiteProblem]]) -> list[SuiteProblem]:
    """The problems of the last side (the head), and those that only another side has.

    The suite is usually the head's: a file of it that an older base cannot import holds new benchmarks and fails nothing.
    Neither does a file of the base's own suite.
    """
    *others, head = by_side
    problems = list(by_side[head])
    known = {(problem.where, problem.message) for problem in problems}
    for side in others:
        for problem in by_side[side]:
            if (problem.where, problem.message) not in known:
                problems.append(replace(problem, message=f"on the {side} only: {problem.message}", fatal=False))
    return problems


def apart(
    problems: Iterable[SuiteProblem], selection: Selection, benchmarks: Sequence[Benchmark], suite: Path
) -> tuple[list[SuiteProblem], list[str]]:
    """The problems that can touch what is selected, and a line about the others. `benchmarks` are those that were found in the
    folder `suite`."""
    problems = list(problems)
    count = [problem for problem in problems if not problem.fatal or _touches(problem, selection, benchmarks, suite)]
    others = list(dict.fromkeys(problem.name for problem in problems if problem not in count))
    if not others or selection.known:
        return count, []
    return count, [f"not selected, and cannot be imported: {first_of(others, NAMED)}; regress list says why"]


def _touches(problem: SuiteProblem, selection: Selection, benchmarks: Sequence[Benchmark], suite: Path) -> bool:
    """Whether what cannot be imported may hold a wanted case, judged by what its file defines. If the file cannot be read, or a
    pattern matches nothing that was found, it may."""
    text = _text(problem.name, suite)
    if text is None:
        return True
    if selection.tags and not any(tag in text for tag in selection.tags):
        return False
    if not selection.patterns:
        return True
    names = list(_names(problem.name, text, benchmarks))
    known = [name for benchmark in benchmarks for case in cases_of(benchmark) for name in (case.name, str(case))]
    return any(_may_match(pattern, names, known) for pattern in selection.patterns)


def _may_match(pattern: str, names: Sequence[str], known: Sequence[str]) -> bool:
    if pattern in known:
        return False
    with contextlib.suppress(re.error):  # parameters are not known: what comes before them decides
        search = re.compile(pattern.partition(r"\(")[0])
        return any(map(search.search, names)) or not any(map(re.compile(pattern).search, known))
    return True


def _text(name: str, suite: Path) -> str | None:
    """The text of the file that has the module or class of that name in it."""
    words = name.split(".") if name else []
    for count in range(len(words), 0, -1):
        stem = suite.joinpath(*words[:count])
        for path in (stem.with_name(stem.name + ".py"), stem / "__init__.py"):
            if path.is_file():
                return path.read_text(encoding="utf-8", errors="replace")
    return None


def _names(name: str, text: str, benchmarks: Iterable[Benchmark]) -> Iterator[str]:
    """What benchmarks of the file may be called. A class may have the methods of one that is named there."""
    defined = _DEFINED.findall(text)
    functions = [word for kind, word in defined if kind == "def"]
    known = (benchmark.name.split(".") for benchmark in benchmarks)
    inherited = {function for *_, owner, function in known if owner in text}
    classes = [word for kind, word in defined if kind == "class"]
    yield f"{name}."
    yield from (f"{name}.{function}" for function in functions)
    yield from (f"{name}.{owner}.{function}" for owner in classes for function in {*functions, *inherited})


# -- where nothing can be measured --------------------------------------------------------------------------------------


def refuse_unbuilt(side: Prepared, problems: Iterable[SuiteProblem], build: tuple[str, ...]) -> None:
    """Raise NothingMeasured where the side's code is not built: what cannot be imported would pass as new on the other side."""
    for problem in problems:
        missing = unbuilt(side, problem.message) if problem.fatal else ""
        if missing:
            raise NothingMeasured(
                f"{side.side.name} {side.side.label} has no built extension: {missing}",
                why=f"{problem.message}; your checkout has the file, but git does not",
                fix='set the command that builds it: "build" under "regress" in asv.conf.json'
                if not build
                else f'correct "build" under "regress" in asv.conf.json, it does not make the file: {"; ".join(build)}',
            )


def nothing_selected(job: Job, problems: Iterable[SuiteProblem], benchmarks: Iterable[Benchmark]) -> NothingMeasured:
    """The error where the suite, which has these benchmarks, has no case that is wanted."""
    fatal = [problem for problem in problems if problem.fatal]
    if job.selection.words:
        return nothing_matches(
            job.selection, where_searched(job.suite, fatal), (benchmark.name for benchmark in benchmarks)
        )
    if fatal and fatal[0].program:
        return NothingMeasured(
            f"no benchmark in {job.suite} could be run",
            why=f"{fatal[0].where}: {fatal[0].message}",
            fix='fix that program, or its build: "build" under "regress" in asv.conf.json',
        )
    if fatal:
        return NothingMeasured(
            f"no benchmark in {job.suite} could be imported",
            why=f"{fatal[0].where}: {fatal[0].message}",
            fix=_to_import(job, fatal[0].message),
        )
    return NothingMeasured(
        f"there is no benchmark in {job.suite}",
        why="no function or method there is named time_*, cudatime_*, cudacold_*, track_*, mem_*, peakmem_* or timeraw_*",
        fix='set "benchmark_dir" in asv.conf.json, or write one',
    )


def _to_import(job: Job, message: str) -> str:
    """What to do about an import that failed: what is not there may be the project's own and not built, or may be installed
    for the interpreter, or there for another."""
    side, missing = job.sides[-1], re.search(r"No module named '([\w.]+)'", message)
    if missing is None or side.environment.installs:
        return "fix that import"
    top = missing[1].partition(".")[0]
    if any((root / top).is_dir() for root in side.import_roots):
        commands = " && ".join(job.settings.build)
        return f"build it in place too: {commands}" if commands else 'build it in place, or set "build" under "regress"'
    install = quoted(side.python, "-m", "pip", "install", top)
    return f'{install}, or name an interpreter that has it: "python" under "regress" in asv.conf.json'


def where_searched(suite: Path, problems: Iterable[SuiteProblem]) -> str:
    """Where benchmarks were looked for, and what of it could not be looked at."""
    fatal = [problem for problem in problems if problem.fatal]
    if not fatal:
        return f"searched in {suite}"
    return f"searched in {suite} without {first_of(problem.where for problem in fatal)}: {fatal[0].message}"
