"""The real machinery, for the parts: workers, rounds and commands of this checkout on the machine's device."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from regress.measure.wire import Suite
from regress.model import Benchmark, Case, Commit, Round, Settings, Side
from regress.run.environments import Prepared
from regress.run.execute import Job, JobResult, discover, execute
from regress.run.plan import Selection
from regress.run.ship import ship

ROOT = Path(__file__).parents[2]
DEVICE = "cuda"


class Silent:
    """A watcher that says nothing."""

    def start(self, total: int, title: str) -> None: ...
    def advance(self, text: str, steps: int = 1) -> None: ...
    def note(self, text: str) -> None: ...


def environment(**more: str) -> dict[str, str]:
    """This process's environment, with this checkout first on the path of its children."""
    inherited = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), inherited))), **more}


def suite_of(scratch: Path, folder: Path) -> list[Benchmark]:
    """The benchmarks of a suite. Raises RuntimeError where a file of it cannot be imported."""
    job = _job(scratch, folder, (), 1, Settings(device=DEVICE))
    suite: Suite = discover(job, job.sides[0], Silent())
    fatal = [f"{problem.where}: {problem.message}" for problem in suite.problems if problem.fatal]
    if fatal:
        raise RuntimeError("; ".join(fatal))
    return suite.benchmarks


def measured(
    scratch: Path, folder: Path, names: Sequence[str], rounds: int, *, quick: bool = False, memory_rounds: int = 0
) -> JobResult:
    """So many rounds of these benchmarks of the suite, a fresh process each."""
    settings = Settings(device=DEVICE, memory_rounds=memory_rounds)
    job = _job(scratch, folder, tuple(names), rounds, settings, quick)
    return execute(job, lambda round, facts, benchmark: None, Silent())


def _job(
    scratch: Path, folder: Path, names: tuple[str, ...], rounds: int, settings: Settings, quick: bool = False
) -> Job:
    side = Side("head", Commit("0" * 40, "", "", 0.0), "this checkout")
    prepared = Prepared(side, ROOT, sys.executable, (ROOT,), environment())
    return Job((prepared,), folder, ship(scratch), settings, rounds, Selection(names), quick)


def values(rounds: Sequence[Round], metric: str) -> dict[Case, list[float]]:
    """The values of a metric by case, one a round that has it."""
    by_case: dict[Case, list[float]] = {}
    for round in rounds:
        if metric in round.values:
            by_case.setdefault(Case(round.name, tuple(round.params)), []).append(round.values[metric].value)
    return by_case


def failures(rounds: Sequence[Round]) -> tuple[str, ...]:
    """A line for each case that failed or was skipped."""
    failed = {Case(round.name, tuple(round.params)): round.failure for round in rounds if round.failure is not None}
    return tuple(f"{failure.kind}: {case}: {failure.message}" for case, failure in failed.items())


def run(words: Sequence[str], folder: Path, timeout_s: float, allowed: Sequence[int] = (0,), **more: str) -> str:
    """What a command prints. Raises RuntimeError with its errors where its exit code is not an allowed one."""
    done = subprocess.run(
        words, cwd=folder, env=environment(**more), capture_output=True, text=True, timeout=timeout_s, check=False
    )
    if done.returncode not in allowed:
        raise RuntimeError(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout
