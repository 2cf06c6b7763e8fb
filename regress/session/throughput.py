"""Work a second: what benchmarks declare of a call's bytes and operations, over its time, and as a share of the ceilings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from regress.measure.wire import Ceilings
from regress.model import Benchmark, Case, Metric, Round, Summary, Throughput

DTYPES = {
    "float32": "float32",
    "fp32": "float32",
    "float16": "float16",
    "fp16": "float16",
    "half": "float16",
    "bfloat16": "bfloat16",
    "bf16": "bfloat16",
}
"""Names of the dtypes whose matrix product has a ceiling, as authors write them: 'float16', torch.float16, fp16."""

DEVICE_TIME = "gpu_time"
TIMES = (DEVICE_TIME, "cpu_time", "wall_time")
"""Metrics that work can be divided by: the one that a case is about, or the first of these that it has. Wall time holds the
host's part too, so it has no share of what the device can do."""


@dataclass(frozen=True)
class Work:
    """What one call does, as its benchmark declares it."""

    bytes: float | None
    flops: float | None
    product: str = ""
    """The matrix product to hold the operations against; empty if unknown."""
    time: str = DEVICE_TIME
    """The metric that says how long it took."""
    between: bool = False
    """Whether several ranks move the bytes between their devices: a copy within one is no ceiling of that."""


@dataclass(frozen=True)
class Rates:
    """Turns times of one side into work a second."""

    works: Mapping[Case, Work]
    ceilings: Ceilings

    @classmethod
    def of(cls, rounds: Iterable[Round], benchmarks: Mapping[str, Benchmark], ceilings: Ceilings) -> Rates:
        """The rates of the cases that declare work, by what their first good round says of it."""
        works: dict[Case, Work] = {}
        for round in rounds:
            case = Case.of(round)
            own = (round.protocol.metric,) if round.protocol is not None and round.protocol.metric in TIMES else ()
            time = next((name for name in (*own, *TIMES) if name in round.values), "")
            if time and case not in works and declares_work(round.facts):
                works[case] = work_of(case, benchmarks.get(case.name), round.facts, time)
        return cls(works, ceilings)

    def of_time(self, case: Case, metric: Metric, summary: Summary | None) -> Throughput | None:
        """The throughput behind the case's time; None where the case declares no work, or the metric is not that time."""
        work = self.works.get(case)
        if work is None or summary is None or metric.name != work.time:
            return None
        ceilings = self.ceilings if work.time == DEVICE_TIME else Ceilings()
        return throughput(summary.center, work, ceilings)


def throughput(seconds: float, work: Work, ceilings: Ceilings) -> Throughput | None:
    """The work over the time, and over the ceilings; None for a time that is none."""
    if not 0 < seconds < math.inf:
        return None
    moved = None if work.bytes is None else work.bytes / seconds
    computed = None if work.flops is None else work.flops / seconds
    return Throughput(
        bytes_per_s=moved,
        flops_per_s=computed,
        share_of_copy=_share(moved, ceilings.peer_bytes_s if work.between else ceilings.copy_bytes_s),
        share_of_matmul=_share(computed, ceilings.matmul_flops_s.get(work.product, 0.0)),
    )


def product_of(case: Case, benchmark: Benchmark | None, precision: object) -> str:
    """The matrix product that a case's operations are compared with: "float32", "tf32", "bfloat16", "float16".

    By the `dtype` that the benchmark declares, else by the one dtype that its parameters name; float32 is "tf32" where that
    was allowed. Empty if unknown: no dtype, two of them, or no word on TF32.
    """
    declared = benchmark.declared.get("dtype") if benchmark is not None else None
    texts = [declared] if isinstance(declared, str) else list(case.params)
    named = {DTYPES[word] for text in texts for word in re.findall(r"[a-z]+\d*", text.lower()) if word in DTYPES}
    if len(named) != 1:
        return ""
    (dtype,) = named
    if dtype != "float32":
        return dtype
    tf32 = precision.get("tf32_matmul") if isinstance(precision, Mapping) else None
    return {True: "tf32", False: "float32"}.get(tf32, "") if isinstance(tf32, bool) else ""


def work_of(case: Case, benchmark: Benchmark | None, facts: Mapping[str, Any], time: str = DEVICE_TIME) -> Work:
    """What a round's facts say of a call's work, to be compared with that time."""
    product = product_of(case, benchmark, facts.get("precision"))
    return Work(_amount(facts, "bytes"), _amount(facts, "flops"), product, time, moves_between(facts))


def moves_between(facts: Mapping[str, Any]) -> bool:
    """Whether the bytes of a round were moved between ranks."""
    ranks = facts.get("ranks", 1)
    return isinstance(ranks, int) and ranks > 1


def declares_work(facts: Mapping[str, Any]) -> bool:
    """Whether a round's facts say what work a call does."""
    return _amount(facts, "bytes") is not None or _amount(facts, "flops") is not None


def _amount(facts: Mapping[str, Any], fact: str) -> float | None:
    value = facts.get(fact)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 < value < math.inf else None


def _share(rate: float | None, ceiling: float) -> float | None:
    return rate / ceiling if rate is not None and ceiling > 0 else None
