"""How many processes and GPUs a benchmark needs, as it declares, and whether they are here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol as Interface

from regress.model import Benchmark, Case, Failure

ALONE = {"peak_rss", "cold_time"}
"""Metrics that need a process of their own: everything else in the process would count, or would have warmed it up."""

OF_RANKS = {"gpu_time", "wall_time", "value", "peak_rss"}
"""Metrics of benchmarks that several processes may visit together."""


class HasCases(Interface):
    """What says which cases there are."""

    @property
    def cases(self) -> Mapping[str, Sequence[Case]]:
        """By side, as that side names them."""


def ranks_of(benchmark: Benchmark) -> tuple[int, str]:
    """How many processes visit the benchmark together (`ranks`), and what is wrong with a value that is no such number."""
    value = benchmark.declared.get("ranks", 1)
    if type(value) is not int or value < 1:  # exactly: True is an int too
        return 1, f"{benchmark.name}: the declared ranks {value!r} is not a number of processes, so one measures it"
    if value > 1 and (benchmark.metric not in OF_RANKS or benchmark.type == "timeraw"):
        types = "cudatime_*, time_*, track_* and peakmem_*"
        return 1, f"{benchmark.name}: ranks are for {types}, so one process measures it"
    return value, ""


def gpus_of(benchmark: Benchmark) -> tuple[int, str]:
    """How many GPUs a benchmark needs, and what is wrong with a value that is no such number: what it declares (`gpus`), or one
    for each rank where it works on a device."""
    ranks = ranks_of(benchmark)[0] if benchmark.needs_device else 1
    value = benchmark.declared.get("gpus", ranks)
    if type(value) is int and value >= 0:
        return value, ""
    measured_with = f"it is measured with {'one' if ranks == 1 else ranks}"
    return ranks, f"{benchmark.name}: the declared gpus {value!r} is not a number of GPUs, so {measured_with}"


def needing_several(measured: HasCases, benchmarks: Mapping[str, Mapping[str, Benchmark]]) -> list[str]:
    """What cases need more than one process or GPU, in words: "4 of them with 2 ranks on 2 GPUs". `benchmarks` are those of
    each side."""
    needs = {
        case: (ranks_of(benchmark)[0], gpus_of(benchmark)[0])
        for side, cases in measured.cases.items()
        for case in cases
        if (benchmark := benchmarks[side].get(case.name)) is not None
    }
    several = Counter((ranks, gpus) for ranks, gpus in needs.values() if ranks > 1 or gpus > 1)
    return [
        " ".join(filter(None, (f"{count} of them", _counted("with", ranks, "rank"), _counted("on", gpus, "GPU"))))
        for (ranks, gpus), count in sorted(several.items())
    ]


def _counted(word: str, number: int, what: str) -> str:
    return f"{word} {number} {what}s" if number > 1 else ""


def refusal(benchmark: Benchmark, named: int = 1) -> Failure | None:
    """Why a benchmark cannot be measured here at all, on this many GPUs; None if it can."""
    gpus, _ = gpus_of(benchmark)
    if gpus <= max(named, 1):
        return None
    given = f"--gpus names {named}" if named > 1 else "one is used; name more with --gpus"
    return Failure("skipped", f"needs {gpus} GPUs: {given}")


def refusal_by_itself(benchmark: Benchmark, named: int = 1) -> Failure | None:
    """Why a benchmark cannot run in a single process; None if it can."""
    ranks, _ = ranks_of(benchmark)
    if benchmark.program:
        return Failure("skipped", "a separate program measures it, and runs as a whole")
    if ranks > 1:
        return Failure("skipped", f"it has {ranks} ranks, and this runs one process")
    return refusal(benchmark, named)


def has_process_of_its_own(benchmark: Benchmark) -> bool:
    """Whether each of its cases is visited by processes that visit no other."""
    return benchmark.metric in ALONE or ranks_of(benchmark)[0] > 1
