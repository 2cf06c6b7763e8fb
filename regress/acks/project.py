"""The acknowledgement file of a project, for the commands that judge."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterable, Iterator, Sequence

from regress.acks.file import read
from regress.acks.review import Ancestry, Review
from regress.config import acks_file
from regress.errors import StoreError
from regress.history import last_verdicts, remember_verdicts
from regress.history.loading import read_benchmarks
from regress.model import METRICS, Breakage, Case, Comparison, Metric, Reviewed, Side
from regress.project import Project
from regress.text.wording import quoted

REVERSALS = 3
"""Verdicts taken back on a case after which it is better kept apart."""
REASON = '--reason "…"'


def review(project: Project, head: Side, ancestry: Ancestry | None = None) -> Review:
    """The entries of the project's file as they stand for that head; `ancestry` None is the repository. Raises ConfigError."""
    path = acks_file(project.config)
    entries = read(path)
    known = recorded_cases(project) if entries else ()
    settings, ancestry = project.config.settings, ancestry or project.repository
    shared = settings.cluster.shared_kinds
    return Review(entries, path, ancestry, head, time.time(), known, settings.machine, shared)


def recorded_cases(project: Project) -> tuple[Case, ...]:
    """All cases that are known here without importing the suite: of results, and of checks on this machine."""
    cases: dict[Case, None] = {}
    for root in (project.config.results_dir, project.cache / "history"):
        entries = read_benchmarks(root, [])
        for name, entry in entries.items():
            benchmark, _, last = name.rpartition(".")
            if last in METRICS and benchmark in entries:
                continue  # a further metric, which has an entry of its own in asv's list
            params = entry.get("params")
            columns = params if isinstance(params, list) and all(isinstance(param, list) for param in params) else []
            cases |= dict.fromkeys(Case(name, tuple(map(str, params))) for params in itertools.product(*columns))
    return tuple(cases)


def is_whole(project: Project) -> bool:
    """Whether all benchmarks were asked for."""
    request = project.request
    return not (request.patterns or request.tags or request.affected or request.quick)


def complaints(project: Project, told: Iterable[Reviewed]) -> list[str]:
    """What a reader of any report should know of entries that do not act."""
    name = acks_file(project.config).name
    return [
        f"{name}{f':{reviewed.entry.line}' if reviewed.entry.line else ''}: {reviewed.entry.pattern}, {reviewed.entry.kind}, "
        f"{'has expired' if reviewed.state == 'expired' else 'is unused'}: {reviewed.why}; fix: {reviewed.fix}"
        for reviewed in told
        if reviewed.state != "active"
    ]


def unsteady(project: Project, base: Side, head: Side, comparisons: Sequence[Comparison]) -> list[str]:
    """Remember the verdicts; warnings about cases whose verdicts were taken back REVERSALS times, each with the way out."""
    with contextlib.suppress(StoreError):
        remember_verdicts(project.cache, project.machine.name, base, head, comparisons)
    last = last_verdicts(project.cache, project.machine.name)
    return list(_unsteady(comparisons, {key for key, verdict in last.items() if verdict.reversed >= REVERSALS}))


def _unsteady(comparisons: Sequence[Comparison], reversed_: set[tuple[str, str]]) -> Iterator[str]:
    for comparison in comparisons:
        known = comparison.acknowledged is not None and comparison.acknowledged.kind != "accepted"
        if comparison.gates and not known and (str(comparison.case), comparison.metric.name) in reversed_:
            yield (
                f"{comparison.case}: {REVERSALS} or more verdicts on its {comparison.metric.name} were contradicted "
                f"by the next check of the same commits; "
                f"fix: {quoted('regress', 'ack', str(comparison.case), '--kind', 'quarantine')} {REASON}"
            )


def accept_failing(broken: Sequence[Breakage]) -> list[tuple[str, str]]:
    """The suggestion to acknowledge that the first of these stopped giving numbers."""
    return [("accept", f"{quoted('regress', 'ack', str(broken[0].case))} {REASON}")] if broken else []


def accept(regressed: Sequence[tuple[Case, Metric]]) -> list[tuple[str, str]]:
    """The suggestion to acknowledge the first of what has regressed, with all cases of its benchmark that have in its metric:
    what was shown, and no more."""
    if not regressed:
        return []
    first, metric = regressed[0]
    own = {case for case, other in regressed if (case.name, other.name) == (first.name, metric.name)}
    name = str(first) if len(own) == 1 else first.name
    return [("accept", f"{quoted('regress', 'ack', name, '--metric', metric.name)} {REASON}")]
