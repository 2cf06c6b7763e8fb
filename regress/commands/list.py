"""`regress list`: the cases of the suite, as the working tree has them."""

from __future__ import annotations

import statistics

from regress.errors import exits
from regress.history import Store
from regress.model import Benchmark, Case, Listed, Report, Side, declared_words
from regress.run.execute import Watcher, discover
from regress.run.needs import gpus_of, ranks_of
from regress.run.plan import select
from regress.run.problems import apart, nothing_selected
from regress.run.unmatched import unmatched
from regress.session import Request, Session


def list_cases(request: Request, watcher: Watcher) -> Report:
    """Discover the suite with the code of the working tree, and list the cases that match."""
    session = Session(request)
    side = session.tree_side("head")
    prepared = session.prepare(side, watcher)
    job = session.job((prepared,), 1)
    suite = discover(job, prepared, watcher)
    benchmarks = {benchmark.name: benchmark for benchmark in suite.benchmarks}
    cases = select(suite.benchmarks, job.selection)
    problems, told = apart(suite.problems, job.selection, suite.benchmarks, job.suite)
    fatal = any(problem.fatal for problem in problems)
    if not cases and (job.selection.words or not fatal):
        raise nothing_selected(job, suite.problems, suite.benchmarks)
    costs = _costs(session, side)
    return Report(
        command="list",
        exit_codes=exits(failed=fatal),
        head=side,
        listed=tuple(_listed(case, benchmarks[case.name], costs.get(case)) for case in cases),
        cases=len(cases),
        problems=tuple(problems),
        warnings=(*session.config.warnings, *told, *unmatched(suite.benchmarks, job.selection, job.settings)),
    )


def _costs(session: Session, side: Side) -> dict[Case, float]:
    """Seconds of a round of each case: the median of those recorded at this commit, here or in the cache."""
    seconds: dict[Case, list[float]] = {}
    for root in (session.config.results_dir, session.cache / "history"):
        for recorded in Store(root).load(side.commit.sha, session.machine.name).recorded:
            for round in recorded.rounds:
                if round.duration_s and round.values:
                    seconds.setdefault(Case.of(round), []).append(round.duration_s)
    return {case: statistics.median(values) for case, values in seconds.items()}


def _listed(case: Case, benchmark: Benchmark, cost_s: float | None) -> Listed:
    (gpus, _), (ranks, _) = gpus_of(benchmark), ranks_of(benchmark)
    tags = declared_words(benchmark, "tags")
    return Listed(case, benchmark.metric, benchmark.needs_device, tags, cost_s, gpus, ranks)
