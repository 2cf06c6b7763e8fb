"""`regress profile`: exports of GPUProfiler, shown, compared, and recorded as results of a commit."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from regress.commands.check import with_verdicts
from regress.commands.documents import settings_of
from regress.compare import compare, overall
from regress.errors import RegressError
from regress.history import Store
from regress.model import Machine, Report
from regress.profiles import Profile, read
from regress.session import Request, Session
from regress.session.recorder import DEVICE_FACTS
from regress.session.remarks import SCRIPTED, device_line
from regress.text.wording import counted, first_of
from regress.traces.rounds import benchmarks_of, rounds_of

ENVIRONMENT = "profiled"
"""Under which results of exports stand: they were not measured by the protocol of any other environment."""
PREFIX = "profiled."
"""Of the names of recorded operations, which are no benchmarks of the suite."""


def profile_exports(
    request: Request, words: Sequence[str], against: Sequence[str], record: str | None = None
) -> Report:
    """What the export says; with `against` its operations judged against those of the other exports, where each export is a
    round. `record` names a commit that the exports are recorded as results of.

    Raises RegressError for a word that names no export.
    """
    paths = [_export(word) for word in words]
    heads, bases = [read(path) for path in paths], [read(_export(word)) for word in against]
    if bases:
        return _compared(request, heads, bases, words, against)
    recorded = _record(request, heads, record) if record is not None else ""
    if len(heads) > 1 and not recorded:
        raise RegressError(
            f"{counted(len(heads), 'export')} and nothing to compare them with",
            why="several exports are the rounds of one side",
            fix="name the other side: --against EXPORT, or show one of them",
        )
    shown = heads[-1]
    rounds = rounds_of("head", heads)
    return Report(
        command="profile",
        machine=Machine(shown.machine),
        device=device_line(shown.facts, rounds),
        profile=shown,
        cases=len(shown.operations),
        remark=_remark(shown),
        warnings=tuple(_warnings([shown])),
        recorded=recorded,
        duration_s=0.0,
    )


def _export(word: str) -> Path:
    path = Path(word)
    if path.is_file():
        return path
    raise RegressError(
        f"{word} is not an export of GPUProfiler",
        why="it is a folder" if path.is_dir() else "there is no such file",
        fix="write one in the program: regress.profiler.get_profiler().export_json('profile.json')",
    )


def _remark(shown: Profile) -> str:
    kept = "" if shown.entries_kept == shown.entries_total else f", the last {shown.entries_kept} of them one by one"
    return f"{counted(len(shown.operations), 'operation')}, {counted(shown.entries_total, 'entry')}{kept}"


def _warnings(exports: Sequence[Profile]) -> list[str]:
    warnings = []
    for export in exports:
        if export.no_breakdown and any(operation.device != "cpu" for operation in export.operations):
            warnings.append(f"busy, transfers and idle are unknown: {export.no_breakdown}")
        if export.lost:
            warnings.append(f"{export.lost} entries have no device time; their host time counts")
        if export.pending:
            warnings.append(f"{export.pending} entries were not done when the export was written")
        if export.facts.get("scripted"):
            warnings.append(SCRIPTED)
    return list(dict.fromkeys(warnings))


# -- two sides -----------------------------------------------------------------------------------------------------------


def _compared(
    request: Request, heads: Sequence[Profile], bases: Sequence[Profile], words: Sequence[str], against: Sequence[str]
) -> Report:
    settings = settings_of(request)
    base_rounds, head_rounds = rounds_of("base", bases), rounds_of("head", heads)
    base_defined, head_defined = benchmarks_of(bases), benchmarks_of(heads)
    comparisons = compare(base_rounds, head_rounds, head_defined, settings, base_defined)
    summed = overall(comparisons, settings, strict=request.strict)
    warnings = _warnings([*bases, *heads])
    few = [f"{len(side)} on the {name}" for name, side in (("base", bases), ("head", heads)) if len(side) < 2]
    if few:
        warnings.append(
            f"an export is one round, and there is {' and '.join(few)}: a change is visible, but cannot be told from noise; "
            "export more runs of each side"
        )
    report = Report(
        command="compare",
        machine=Machine(heads[0].machine),
        device=device_line(heads[0].facts, head_rounds),
        plan=f"{first_of(against)} (base) against {first_of(words)} (head)",
        profile=heads[-1],
        warnings=tuple(warnings),
    )
    return with_verdicts(report, comparisons, summed, settings, request.strict)


# -- the history ---------------------------------------------------------------------------------------------------------


def _record(request: Request, exports: Sequence[Profile], revision: str) -> str:
    """Put the exports into results_dir, as rounds of that commit. Where it is kept is returned."""
    session = Session(request)
    side = session.revision_side("head", revision)
    elsewhere = {export.machine for export in exports} - {platform.node()}
    if elsewhere and not session.config.settings.machine:
        raise RegressError(
            f"the export is of another machine: {', '.join(sorted(elsewhere))}",
            why=f"its values are not results of {session.machine.name}",
            fix="--machine NAME, the name of that machine in the history",
        )
    store, facts = Store(session.config.results_dir), exports[-1].facts
    told = {key: str(facts[key]) for key in DEVICE_FACTS if facts.get(key)}
    machine = replace(session.machine, facts={**session.machine.facts, **told})
    benchmarks = {
        PREFIX + name: replace(benchmark, name=PREFIX + name) for name, benchmark in benchmarks_of(exports).items()
    }
    for round in rounds_of("head", exports):
        # An export is of a process of its own, and a session however often it is recorded.
        name, run = PREFIX + round.name, f"{round.started_at:.6f}-{round.process}"
        store.append(side, machine, ENVIRONMENT, replace(round, name=name, run=run), round.facts, benchmarks[name])
    python = str(facts.get("python", "unknown"))
    store.finish(side, machine, ENVIRONMENT, python=python, benchmarks=benchmarks)
    return str(session.config.results_dir)
