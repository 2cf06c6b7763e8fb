"""The command that runs a case in a plain process, without a driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from regress.measure.wire import ONCE, Once, Task, encode
from regress.model import Benchmark, Case, Failure
from regress.run import needs
from regress.run.environments import Prepared
from regress.run.job import Job


@dataclass(frozen=True)
class Plain:
    """A program to be run instead of this one: its words, and its whole environment."""

    words: tuple[str, ...]
    variables: Mapping[str, str]


def plain(prepared: Prepared, job: Job, benchmark: Benchmark, case: Case, calls: int) -> Plain | Failure:
    """What runs this many calls of the case with the side's code, or why it cannot be run here."""
    failure = needs.refusal_by_itself(benchmark, len(job.gpus))
    if failure is not None:
        return failure
    starter = job.starter(job.gpus)
    try:
        opening, variables = starter.opening(prepared), starter.variables(prepared)
    finally:
        starter.close()
    task = Task(case.name, list(case.params), prepared.side.name)
    asked = Once(task, calls, benchmark.setup_cache_key is not None)
    messages = (encode(message).decode() for message in (opening, asked))
    return Plain((prepared.python, "-X", "faulthandler", str(job.start_file), ONCE, *messages), variables)
