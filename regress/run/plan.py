"""Which cases are visited, when, and by which protocol. No process and no files: pure functions, but for the time left."""

from __future__ import annotations

import fnmatch
import itertools
import math
import posixpath
import random
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol as Interface

from regress.measure.wire import Proposal, Suite, Task
from regress.model import (
    PROGRAM,
    SYNCHRONIZES,
    VISITING,
    Batch,
    Benchmark,
    Case,
    Failure,
    Protocol,
    Round,
    declared_words,
)
from regress.run.needs import ALONE, HasCases, gpus_of, ranks_of

HOST_SHARE, DEVICE_SHARE = 0.6, 0.9
"""Of the memory of host and device, what the sides may take that are set up at once."""


class HasCosts(HasCases, Interface):
    """What says which cases were visited, too."""

    @property
    def costs(self) -> Mapping[Case, float]:
        """Seconds that the unmeasured visits to a case have taken, all sides together; only of what was visited."""


@dataclass(frozen=True)
class Selection:
    """Which cases are wanted: those that pass every kind of selection that is given, and within a kind any of its entries."""

    patterns: tuple[str, ...] = ()
    """Exact names, or regular expressions."""
    tags: tuple[str, ...] = ()
    changed: tuple[str, ...] | None = None
    """Changed files, relative to the repository: only benchmarks that cover one of them. None: whatever they cover."""
    suite_parent: str = ""
    """Folder that holds the suite, relative to the repository; the file of a benchmark is named from there."""
    files: frozenset[str] | None = None
    """With `changed`: all files of the sides, to tell a pattern of `covers` that matches none."""
    known: bool = False
    """The patterns are cases that the program has found, and not what somebody wrote."""

    @property
    def words(self) -> str:
        """What a case has to match by name and tag; empty where neither is asked for."""
        names, tags = (" or ".join(map(repr, kind)) for kind in (self.patterns, self.tags))
        return " and ".join(filter(None, (names, tags and f"the tag {tags}")))


def cases_of(benchmark: Benchmark) -> Iterator[Case]:
    """The benchmark's cases in asv's order."""
    absent = {tuple(params) for params in benchmark.lacks}
    for combination in itertools.product(*benchmark.params):
        if combination not in absent:
            yield Case(benchmark.name, combination)


def select(benchmarks: Iterable[Benchmark], selection: Selection) -> list[Case]:
    """The cases that are wanted; all of them where nothing is asked for.

    A pattern that is the exact name of a benchmark or case selects that; any other is a regular expression that is searched in
    `name(params)`, as in asv. Raises re.error for a pattern that is neither.
    """
    benchmarks = list(benchmarks)
    if selection.changed is not None and _helper_changed(benchmarks, selection):
        selection = replace(selection, changed=None)
    by_benchmark = [(benchmark, list(cases_of(benchmark))) for benchmark in benchmarks]
    cases = [case for benchmark, own in by_benchmark if _wanted(benchmark, selection) for case in own]
    if not selection.patterns:
        return cases
    exact = {name for _, own in by_benchmark for case in own for name in (case.name, str(case))}
    wanted = [(pattern, None if pattern in exact else re.compile(pattern)) for pattern in selection.patterns]
    return [case for case in cases if any(_matches(case, pattern, search) for pattern, search in wanted)]


def _helper_changed(benchmarks: Sequence[Benchmark], selection: Selection) -> bool:
    """Whether a file of the suite has changed that no benchmark stands in: any of them may use it."""
    own = {own_file(benchmark, selection.suite_parent) for benchmark in benchmarks}
    suites = {posixpath.join(selection.suite_parent, benchmark.file.partition("/")[0]) for benchmark in benchmarks}
    folders = tuple(posixpath.normpath(suite) + "/" for suite in suites)
    return any(
        file.startswith(folders) and file.endswith(".py") and file not in own for file in selection.changed or ()
    )


def _wanted(benchmark: Benchmark, selection: Selection) -> bool:
    tagged = not selection.tags or not set(selection.tags).isdisjoint(declared_words(benchmark, "tags"))
    if not tagged or selection.changed is None:
        return tagged
    return affected(benchmark, selection.changed, selection.suite_parent, selection.files)


def affected(
    benchmark: Benchmark, changed: Iterable[str], suite_parent: str = "", files: Collection[str] | None = None
) -> bool:
    """Whether one of the changed files is what the benchmark covers, or the file that it stands in itself; or it covers what is
    no file among `files`, so that nobody knows."""
    own = own_file(benchmark, suite_parent)
    patterns = declared_words(benchmark, "covers")
    if any(file == own or any(covers(pattern, file) for pattern in patterns) for file in changed):
        return True
    return files is not None and not all(any(covers(pattern, file) for file in files) for pattern in patterns)


def own_file(benchmark: Benchmark, suite_parent: str) -> str:
    """The file the benchmark stands in, relative to the repository; empty if unknown."""
    return posixpath.normpath(posixpath.join(suite_parent, benchmark.file)) if benchmark.file else ""


def covers(pattern: str, file: str) -> bool:
    """Whether a declared pattern covers a file: `*` matches across folders; `dir`, `dir/`, `dir/**` are all below it."""
    pattern = pattern.removeprefix("./").removesuffix("/")
    return fnmatch.fnmatchcase(file, pattern) or file.startswith(f"{pattern}/")


def _matches(case: Case, pattern: str, search: re.Pattern[str] | None) -> bool:
    if search is None:
        return pattern in (case.name, str(case))
    return bool(search.search(str(case)))


def shuffled(tasks: Iterable[Task], seed: int) -> list[Task]:
    """The tasks of a round in an order of their own: what a case does to those behind it in the process must not hit the same
    ones in every round. Both sides of a round have the same order."""
    return sorted(tasks, key=lambda task: random.Random(f"{seed}/{task.order}/{task.name}/{task.params}").random())


def settle(proposals: Mapping[str, Proposal], process: str = "fresh") -> Protocol | None:
    """One protocol for both sides from what each side's unmeasured visit proposes; None if no side works.

    The first side (the base) decides wherever it can: a head that got slower must not change how it is measured. A side whose
    function synchronizes proposes no calls, so the other one is asked; and where one side has to be set up before each sample,
    both are. `process` says how the processes of rounds begin, where
    the metric leaves a choice.
    """
    working = [
        proposal for proposal in proposals.values() if proposal.protocol is not None and proposal.failure is None
    ]
    if not working:
        return None
    free = [proposal for proposal in working if SYNCHRONIZES not in proposal.flags]
    protocols = [proposal.protocol for proposal in free or working if proposal.protocol is not None]
    settled = next((protocol for protocol in protocols if protocol.setup_each), protocols[0])
    return replace(
        settled,
        lanes=min(protocol.lanes for protocol in protocols),
        pinned=all(protocol.pinned for protocol in protocols),
        process=PROGRAM if settled.process == PROGRAM else "fresh" if settled.metric in ALONE else process,
    )


def parted(proposals: Iterable[Proposal], free_bytes: float) -> str:
    """Why sides cannot be set up at once, to take windows in turn; empty if they can. `free_bytes` is the host's memory."""
    proposals = list(proposals)
    host_bytes = sum(proposal.host_bytes for proposal in proposals)
    if host_bytes > HOST_SHARE * free_bytes:
        needed = f"{host_bytes / 2**30:.1f} of {free_bytes / 2**30:.1f} GiB"
        return f"both sides at once might not fit the memory of the host ({needed})"
    if sum(proposal.device_share for proposal in proposals) > DEVICE_SHARE:
        return "both sides at once might not fit the memory of the device"
    return ""


def free_memory() -> float:
    """Bytes of the host's memory that can be had; infinite where the system does not tell."""
    try:
        with open("/proc/meminfo") as file:
            fields = dict(line.split(":", 1) for line in file)
        return float(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return math.inf


def unimportable(suite: Suite, had: Mapping[str, Benchmark]) -> dict[str, tuple[Benchmark, Failure]]:
    """By name: those of the benchmarks that worked before and are not in this suite because their module or class cannot be
    imported, and the failure that is."""
    there = {benchmark.name for benchmark in suite.benchmarks}
    lost: dict[str, tuple[Benchmark, Failure]] = {}
    for problem in (candidate for candidate in suite.problems if candidate.fatal):
        inside = f"{problem.name}." if problem.name else ""
        what = problem.message if problem.program else f"cannot be imported: {problem.message}"
        failure = Failure("error", what, problem.where, problem.detail)
        for name, benchmark in had.items():
            if name.startswith(inside) and name not in there:
                lost.setdefault(name, (benchmark, failure))
    return lost


def nothing_imported(lanes: Sequence[Mapping[str, bool]], labels: Mapping[str, str]) -> list[str]:
    """The warning where code of the repository was imported on no side, or on some of them only, by what each lane says of its
    sides. `labels` are those of the sides that have to import it: an environment of asv's has nothing else installed."""
    asked = [name for name in labels if any(name in own for own in lanes)]
    without = [name for name in asked if not any(own.get(name, False) for own in lanes)]
    if not without:
        return []
    only = "" if without == asked else f"on {' and '.join(labels[name] for name in without)} "
    return [f"{only}the suite imports nothing of this repository: it measures installed packages only"]


def failed_round(
    name: str, params: Sequence[str], side: str, failure: Failure, order: int = 0, proposal: Proposal | None = None
) -> Round:
    """The record of a visit that gave no value; `proposal` is what it has to say all the same."""
    facts = {"leaves": proposal.leaves} if proposal is not None and proposal.leaves else {}
    return Round(
        name,
        list(params),
        side,
        order,
        failure=failure,
        facts=facts,
        flags=proposal.flags if proposal is not None else [],
    )


def unanswered(task: Task, failure: Failure) -> Proposal | Round:
    """The reply to a task that no process has answered."""
    if task.protocol is None:
        return Proposal(task.name, task.params, task.side, failure=failure)
    return failed_round(task.name, task.params, task.side, failure, task.order)


def complaints(benchmarks: Iterable[Benchmark], selection: Selection) -> list[str]:
    """What the reader should know about declarations that decide what is measured; each once."""
    by_name = {benchmark.name: benchmark for benchmark in benchmarks}
    names = dict.fromkeys(case.name for case in select(by_name.values(), replace(selection, changed=None)))
    wanted = [by_name[name] for name in names]
    said = [
        complaint for benchmark in wanted for _, complaint in (ranks_of(benchmark), gpus_of(benchmark)) if complaint
    ]
    silent = sum(not declared_words(benchmark, "covers") for benchmark in wanted)
    if selection.changed is not None and silent:
        left = f"{silent} of {len(wanted)} benchmarks declare no `covers`"
        said.append(f"{left}: only changes of their own file select them")
    return said


class FixedRounds:
    """The same number of rounds for every case, as far as there is time until `end_s` of the monotonic clock.

    Where time is bounded, unmeasured visits get a part of what is left, then as many of the visited cases their rounds as
    there is time for, then others are visited: a suite that is too long is covered from its front."""

    def __init__(self, rounds: int, end_s: float = math.inf, clock: Callable[[], float] = time.monotonic) -> None:
        self.rounds, self.end_s, self._clock = rounds, end_s, clock
        self._asked: set[Case] = set()
        self._visited = -1
        """How many were visited when visits were asked for last."""

    def next(self, measured: HasCosts) -> Batch | None:
        """All rounds of each case, once."""
        left_s = self.end_s - self._clock()
        cases = dict.fromkeys(case for side in measured.cases.values() for case in side)
        left = [case for case in cases if case not in self._asked]
        if left_s == math.inf:
            return self._measured(left)
        ready = [case for case in left if case in measured.costs]
        if left_s <= 0:
            return None
        if ready:
            cost_s = itertools.accumulate(self.rounds * measured.costs[case] for case in ready)
            return self._measured(
                [case for case, until_s in zip(ready, cost_s, strict=True) if until_s <= left_s] or ready[:1]
            )
        if len(measured.costs) == self._visited:  # what gets no visit any more gets no rounds
            return None
        self._visited = len(measured.costs)
        return Batch(dict.fromkeys(left, 0), visits_s=VISITING * left_s) if left else None

    def _measured(self, cases: Sequence[Case]) -> Batch | None:
        self._asked.update(cases)
        return Batch(dict.fromkeys(cases, self.rounds)) if cases else None


def hopeless(failures: int, planned: int, good_share: float) -> bool:
    """Whether too many rounds of a case have failed for the planned number to give enough good ones."""
    return failures > planned - good_share * planned


def timeout_of(benchmark: Benchmark | None, default_s: float) -> float:
    """Wall-clock seconds that one visit to a case of the benchmark may take."""
    return benchmark.timeout_s if benchmark is not None and benchmark.timeout_s is not None else default_s
