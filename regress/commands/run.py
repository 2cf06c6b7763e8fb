"""`regress run`: one side, measured, printed and recorded."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from regress.compare import implementations
from regress.compare.circumstances import skewed
from regress.compare.evidence import Evidence
from regress.compare.pairing import place
from regress.compare.rule import better_of
from regress.errors import Exit, RevisionError, exits
from regress.model import Benchmark, Case, Durations, Failure, Measurement, Report, Round, Settings, Side, metric_of
from regress.run.execute import JobResult, Watcher, execute
from regress.run.needs import needing_several
from regress.session import Request, Session
from regress.session.recorder import Recorder
from regress.session.remarks import device_line, imported_by, remarks, require_values, throttled
from regress.session.throughput import Rates
from regress.stats.summary import summarize
from regress.text.wording import counted, quoted
from regress.trends import numbers_before, past_of


def run(
    request: Request, revision: str | None, watcher: Watcher, environment: str = "", durations: int | None = None
) -> Report:
    """Measure one revision (None: the working tree) in an environment (empty: the usual one), and record it in results_dir
    unless it has uncommitted changes. `durations` is how many of the slowest benchmarks are told of, 0 for all."""
    start = time.monotonic()
    if revision is not None and ".." in revision:
        raise RevisionError(
            f"{revision} is a range, and run measures one commit",
            why="a range may mean hours of measuring",
            fix=f"regress sweep {quoted(revision)}",
        )
    session = Session(request)
    side = session.one_side(revision, environment)
    prepared = (session.prepare(side, watcher),)
    job = replace(session.job(prepared, session.config.settings.run_rounds), had=lambda _: _had_before(session, side))
    recorder = Recorder(session, session.config.results_dir, prepared)
    with session.devices.held(watcher) as locked:
        measured = execute(job, recorder.take, watcher)
        ceilings = session.ceilings(job, measured)
    recorder.finish(measured)
    require_values(measured)
    benchmarks = measured.benchmarks.get("head", {})
    rates = Rates.of(measured.rounds, benchmarks, ceilings)
    rows = tuple(
        replace(row, throughput=rates.of_time(row.case, row.metric, row.summary))
        for row in measurements(measured.rounds, benchmarks, session.config.settings)
    )
    cases = {row.case for row in rows}
    codes = exit_codes(rows, measured)
    warnings = remarks(session.config, measured, job, ceilings)
    if side.dirty:
        warnings.append(f"the tree has uncommitted changes: the results are not recorded as {side.commit.short}")
    own = "with its own suite" if job.own_suites else ""
    gpus = f"on {len(job.gpus)} GPUs at once" if len(job.gpus) > 1 else ""
    several = needing_several(measured, measured.benchmarks)
    warnings += recorder.warnings()
    others = dict.fromkeys(words for round in measured.rounds for words in round.facts.get("foreign_processes", ()))
    if others:
        warnings.append(f"contaminated: other processes computed on the device: {'; '.join(others)}")
    warnings += throttled(measured)
    return Report(
        command="run",
        exit_codes=codes,
        state=codes[0].word,
        head=recorder.named(side),
        machine=recorder.machine,
        device=device_line(measured.facts.get("head", {}), measured.rounds),
        plan=", ".join(
            filter(None, [counted(len(cases), "case"), counted(job.rounds, "round"), own, gpus, *several, locked]),
        ),
        measurements=rows,
        durations=None if durations is None else _durations(measured, prepared[0].build_s, start, durations),
        implementations=implementations(measured.rounds, benchmarks, session.config.settings),
        cases=len(cases),
        counts=counts(rows),
        problems=tuple(measured.problems),
        warnings=tuple(warnings),
        overhead=measured.overhead,
        imported=imported_by(measured),
        quick=job.quick,
        options=(*(("--env", environment) if environment else ()), *session.again, *session.on_gpus),
        recorded=recorder.recorded,
        duration_s=time.monotonic() - start,
    )


def _durations(measured: JobResult, build_s: float, start: float, count: int) -> Durations:
    """Of the slowest benchmarks, 0 for all."""
    cases = Counter(case.name for own in measured.cases.values() for case in own)
    durations = [replace(duration, cases=cases[duration.name]) for duration in measured.durations.values()]
    durations.sort(key=lambda duration: -duration.seconds)
    beside_s = time.monotonic() - start - build_s - sum(duration.seconds for duration in durations)
    return Durations(tuple(durations[: count or None]), len(durations), build_s, max(0.0, beside_s))


def _had_before(session: Session, side: Side) -> dict[str, Benchmark]:
    """By name: the benchmarks that gave a number on this machine at a commit before that of the side."""
    config, before = session.config, session.repository.commits(side.commit.sha)[:-1]
    past = past_of(config.results_dir, session.cache, before, config.settings, session.machine.name)
    return {name: benchmark for name, (benchmark, _) in numbers_before(past, ()).items()}


def measurements(rounds: Iterable[Round], benchmarks: Mapping[str, Benchmark], settings: Settings) -> list[Measurement]:
    """A row for each case and metric, the case's own metric first; ordered by case, as those of a check are."""
    by_case: dict[Case, list[Round]] = {}
    for round in rounds:
        by_case.setdefault(Case.of(round), []).append(round)
    cases = sorted(by_case, key=lambda case: place(case, benchmarks.get(case.name)))
    return [row for case in cases for row in _rows(case, by_case[case], benchmarks.get(case.name), settings)]


def _rows(case: Case, rounds: list[Round], benchmark: Benchmark | None, settings: Settings) -> Iterable[Measurement]:
    evidence = Evidence.of("head", rounds, settings.good_rounds)
    flags = dict.fromkeys(flag for round in rounds for flag in round.flags)
    own = next(
        (round.protocol.metric for round in rounds if round.protocol is not None),
        benchmark.metric if benchmark else "value",
    )
    names = list(dict.fromkeys(name for round in evidence.good for name in round.values))
    if evidence.failure is not None or not names:
        yield Measurement(
            case, metric_of(own), None, evidence.failure or Failure("error", "gave no value"), tuple(flags)
        )
        return
    primary = own if own in names else "wall_time"
    better = better_of(case.name, benchmark, settings)
    for name in sorted(names, key=lambda name: name != primary):
        values = evidence.values_of(name, every_round=False)
        if values is None or (values.failure is not None and name != primary):
            continue
        # There is one side, so it need not be named.
        doubts = dict.fromkeys(note.replace(" on the head", "", 1) for note in (*evidence.notes, *values.notes))
        if values.failure is not None:
            yield Measurement(case, metric_of(name), None, values.failure, tuple(flags))
            return
        metric = metric_of(name, next(iter(sorted(values.units))), better, values.exact)
        summary = summarize(values.values, settings.confidence)
        late = skewed(evidence, name) if name == primary else ""
        said = (*doubts, *flags, *evidence.ways(), *filter(None, [late]))
        samples = evidence.samples_of(name)
        yield Measurement(case, metric, summary, None, said, primary=name == primary, samples=samples)


def counts(rows: Iterable[Measurement]) -> dict[str, int]:
    """Cases that were measured, failed, or were skipped."""
    numbers = Counter(
        "measured" if row.failure is None else "skipped" if row.failure.kind == "skipped" else "failed"
        for row in rows
        if row.primary
    )
    return dict(numbers)


def exit_codes(rows: Iterable[Measurement], measured: JobResult) -> tuple[Exit, ...]:
    own = [row for row in rows if row.primary]
    failed = any(row.failure is not None and row.failure.kind != "skipped" for row in own)
    return exits(
        interrupted=measured.interrupted,
        nothing=not any(row.summary is not None for row in own),
        failed=failed or any(problem.fatal for problem in measured.problems),
    )
