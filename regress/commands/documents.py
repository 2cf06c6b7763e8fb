"""`regress import` and `regress compare A.json B.json`: what other suites have written, as history and as sides."""

from __future__ import annotations

import glob
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from regress import config as configuration
from regress.commands.check import with_verdicts
from regress.compare import compare, finer, overall
from regress.errors import RegressError, exits
from regress.history import Store
from regress.importers import Document, benchmarks_of, read, rounds_of
from regress.model import Benchmark, Comparison, Machine, Merged, Report, Round, Samples, Settings, Verdict
from regress.run.plan import Selection, select
from regress.run.unmatched import names_unmatched, nothing_matches
from regress.session import Request, Session
from regress.text.wording import counted
from regress.units import format_pair

WILD = "*?["


class Recording(NamedTuple):
    """Where documents are to be recorded, as the user said it."""

    commit: str
    machine: str = ""
    """Empty: this one."""
    environment: str = ""
    """Empty: called after the format."""
    prefix: str | None = None
    """What names begin with, instead of the program's name."""


# -- into the history ----------------------------------------------------------------------------------------------------


def import_documents(request: Request, kind: str, files: Sequence[Path], to: Recording) -> Report:
    """Record documents of that format as results of a commit, each as a run of its own. What of them is recorded already is
    not recorded again.

    Raises DocumentError, with nothing written, where one of them cannot be read.
    """
    start = time.monotonic()
    session = Session(request)
    side = session.revision_side("head", to.commit)
    documents = {file: _dated(read(file, kind), file) for file in dict.fromkeys(files)}
    benchmarks = benchmarks_of(documents.values(), to.prefix)
    machine = _machine(session, to.machine, list(documents.values()))
    environment = to.environment or kind
    store = Store(session.config.results_dir)
    known = store.known(side, machine, environment)
    taken = []
    for file, document in documents.items():
        run = f"{int(document.started_at * 1e9):x}-{document.digest}"
        rounds = [replace(round, run=run) for round in rounds_of(document, benchmarks, "head", prefix=to.prefix)]
        new = [round for round in rounds if (round.run, round.name, tuple(round.params)) not in known]
        known |= {(round.run, round.name, tuple(round.params)) for round in new}
        for round in new:
            store.append(side, machine, environment, round, document.facts, benchmarks[round.name])
        taken.append(Merged(str(file), (machine.name,), 1, len(new), len(rounds) - len(new)))
    python = next((str(document.facts["python"]) for document in documents.values() if "python" in document.facts), "")
    store.finish(side, machine, environment, python=python, benchmarks=benchmarks)
    added, there = (sum(getattr(merged, name) for merged in taken) for name in ("added", "known"))
    return Report(
        command="import",
        exit_codes=exits(),
        state=exits()[0].word,
        head=replace(side, environment=environment),
        machine=machine,
        merged=tuple(taken),
        remark=f"{counted(len(taken), 'file')}: {counted(added, 'round')} added"
        + (f", {there} already present" if there else ""),
        warnings=(*session.config.warnings, *_flags(documents.values())),
        recorded=str(session.config.results_dir),
        duration_s=time.monotonic() - start,
    )


def _dated(document: Document, file: Path) -> Document:
    """With the time of the file where the document does not say when it was written: the order of sessions hangs on it."""
    return document if document.started_at else replace(document, started_at=float(int(file.stat().st_mtime)))


def _machine(session: Session, name: str, documents: Sequence[Document]) -> Machine:
    """The machine that is named, of which nothing more is known than the documents say; or this one."""
    machine = Machine(name) if name and name != session.machine.name else session.machine
    gpus = {str(document.facts["gpu"]) for document in documents if "gpu" in document.facts}
    return replace(machine, facts={**machine.facts, "gpu": min(gpus)}) if len(gpus) == 1 else machine


def _flags(documents: Iterable[Document]) -> list[str]:
    return list(dict.fromkeys(flag for document in documents for flag in document.flags))


# -- as sides ------------------------------------------------------------------------------------------------------------


def are_documents(*words: str) -> bool:
    """Whether the sides are files, and not revisions: each is one that is there, a folder with a slash at its end, or a
    pattern."""
    return all(Path(word).is_file() or word.endswith("/") or any(wild in word for wild in WILD) for word in words)


def compare_documents(request: Request, base: str, head: str, places: Sequence[str] = ()) -> Report:
    """Judge the documents of one side against those of the other, each document a round. With one a side nothing is claimed:
    the samples of a run do not tell how far runs are apart. `places` are the options by which recorded results were chosen.

    Raises DocumentError where one of them cannot be read, NothingMeasured where no benchmark matches.
    """
    if places:
        raise RegressError(
            f"{base} and {head} are files",
            why=f"{', '.join(places)} chooses among recorded results",
            fix=f"leave {' and '.join(places)} out, or import the files first: regress import",
        )
    settings, selection = settings_of(request), Selection(request.patterns, request.tags)
    documents = [[read(file) for file in _files(word)] for word in (base, head)]
    # Two builds of one program may have two names: what they have in common is what they measure.
    prefix = "" if all(len({document.source for document in side}) == 1 for side in documents) else None
    benchmarks = [benchmarks_of(side, prefix) for side in documents]
    rounds = [
        [round for order, one in enumerate(side) for round in rounds_of(one, own, name, order, prefix)]
        for name, side, own in zip(("base", "head"), documents, benchmarks, strict=True)
    ]
    every = [*benchmarks[0].values(), *benchmarks[1].values()]
    before, after = (_selected(side, own, selection) for side, own in zip(rounds, benchmarks, strict=True))
    if selection.words and not (before or after):
        raise nothing_matches(selection, f"searched in {base} and {head}", [benchmark.name for benchmark in every])
    comparisons = compare(before, after, benchmarks[1], settings, benchmarks[0])
    comparisons = tuple(map(_with_samples, comparisons))
    summed = overall(comparisons, settings, strict=request.strict)
    runs = "+".join(str(len(side)) for side in documents)
    report = Report(
        command="compare",
        plan=f"{counted(summed.cases, 'case')}, {head} against {base}, {runs} runs",
        finer=finer(comparisons, settings),
        warnings=(*_flags(document for side in documents for document in side), *names_unmatched(every, selection)),
    )
    return with_verdicts(report, comparisons, summed, settings, request.strict)


def settings_of(request: Request) -> Settings:
    """The settings that files are judged by, which are compared anywhere: those of the configuration, if there is one."""
    if request.config_file is None and configuration.find(request.start) is None:
        return replace(Settings(), **request.overrides)
    return configuration.with_overrides(
        configuration.load(request.config_file, request.start), **request.overrides
    ).settings


def _files(word: str) -> list[Path]:
    """The files of a side. Raises RegressError if there are none."""
    if word.endswith("/"):
        paths = sorted(Path(word).glob("*.json"))
    else:
        paths = [Path(word)] if Path(word).is_file() else sorted(map(Path, glob.glob(word)))
    if not paths:
        raise RegressError(
            f"there is no file of a run in {word}", why="nothing there ends in .json, or matches", fix=f"ls {word}"
        )
    return paths


def _selected(rounds: Sequence[Round], benchmarks: Mapping[str, Benchmark], selection: Selection) -> list[Round]:
    wanted = {(case.name, *case.params) for case in select(benchmarks.values(), selection)}
    return [round for round in rounds if (round.name, *round.params) in wanted]


def _with_samples(comparison: Comparison) -> Comparison:
    """What the samples of a single run a side were, where nothing could be tested."""
    sides = comparison.base, comparison.head
    if comparison.verdict is not Verdict.UNDECIDED or any(side is None or side.n > 1 for side in sides):
        return comparison
    words = [
        _ends(name, samples)
        for name, samples in (("base", comparison.base_samples), ("head", comparison.head_samples))
        if samples
    ]
    why = "the spread between runs is unknown"
    return replace(comparison, reasons=(*comparison.reasons, why, *words))


def _ends(side: str, samples: Samples) -> str:
    low, high = format_pair(samples.low, samples.high, "s")
    return f"{samples.n} samples of the {side} {low} … {high}"
