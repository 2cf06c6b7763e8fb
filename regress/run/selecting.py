"""Which cases of the suites a job measures, and what the reader should know about those suites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from regress.measure.wire import Suite
from regress.model import Benchmark, Case, Failure, SuiteProblem
from regress.run import plan
from regress.run.job import Job, JobResult
from regress.run.problems import apart, nothing_selected, problems_of, refuse_unbuilt
from regress.run.unmatched import unmatched

Unimportable = dict[tuple[str, str], Failure]
"""By side and name: benchmarks that worked before, and cannot be imported there."""


def selected(job: Job, suites: Mapping[str, Suite], measured: JobResult) -> tuple[Mapping[str, Suite], Unimportable]:
    """Note the cases that are wanted, by side, and problems and warnings. Returns the suites with what cannot be imported.

    Raises NothingMeasured if no case is wanted, or the code of a side is not built.
    """
    problems: dict[str, Sequence[SuiteProblem]] = {}
    for side in job.sides:
        name = side.side.name
        own = job.own_suites.get(name, job.suite)
        count, told = apart(suites[name].problems, job.selection, suites[name].benchmarks, own)
        refuse_unbuilt(side, count, job.settings.build)
        problems[name] = count
        measured.warnings += [warning for warning in told if warning not in measured.warnings]
    suites, unimportable = _with_unimportable(job, suites)
    for name, suite in suites.items():
        cases = plan.select(suite.benchmarks, job.selection)
        if name in job.only:
            cases = [case for case in cases if case in job.only[name]]
        names = {case.name for case in cases}
        benchmarks = {benchmark.name: benchmark for benchmark in suite.benchmarks if benchmark.name in names}
        measured.benchmarks[name] = benchmarks
        measured.cases[name] = _in_order(job, benchmarks, cases)
    measured.problems = problems_of(problems)
    asked = [benchmark for suite in suites.values() for benchmark in suite.benchmarks]
    measured.warnings += plan.complaints(asked, job.selection)
    measured.warnings += unmatched(
        list({benchmark.name: benchmark for benchmark in asked}.values()), job.selection, job.settings
    )
    if not any(measured.cases.values()):
        measured.unaffected = bool(plan.select(asked, replace(job.selection, changed=None)))
        if not measured.unaffected:
            every = problems_of({name: suite.problems for name, suite in suites.items()})
            raise nothing_selected(job, every, asked)
    return suites, unimportable


def _in_order(job: Job, benchmarks: Mapping[str, Benchmark], cases: Sequence[Case]) -> list[Case]:
    return sorted(cases, key=lambda case: job.rank(case, benchmarks[case.name]))


def _with_unimportable(job: Job, suites: Mapping[str, Suite]) -> tuple[dict[str, Suite], Unimportable]:
    """The suites, each with what worked before, in the history or on a side before it, and cannot be imported there."""
    done, failures, before = dict[str, Suite](), Unimportable(), dict[str, Benchmark]()
    for name, suite in suites.items():
        broken = any(problem.fatal for problem in suite.problems)
        lost = plan.unimportable(suite, {**job.had(name), **before}) if broken else {}
        failures.update({(name, lost_name): failure for lost_name, (_, failure) in lost.items()})
        done[name] = replace(suite, benchmarks=[*suite.benchmarks, *(benchmark for benchmark, _ in lost.values())])
        before.update({benchmark.name: benchmark for benchmark in suite.benchmarks})
    return done, failures
