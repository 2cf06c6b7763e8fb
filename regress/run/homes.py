"""Which of several GPUs a case is measured on, which may measure at the same time, and what counts of a round that was measured
while others were too. Pure functions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from regress.measure.wire import Proposal
from regress.model import (
    HOST_METRICS,
    SYNCHRONIZES,
    Benchmark,
    Case,
    Failure,
    Protocol,
    Round,
    declared_words,
    old_names,
)
from regress.run.gpus import Gpu, visible
from regress.run.needs import gpus_of

NO_DEVICE_TIME = "no device time; host times do not count while other GPUs measure"


def beside_others(round: Round, gpus: int) -> Round:
    """A round that was measured while this many GPUs were, its own among them: without what the host has a part in."""
    if gpus < 2:
        return round
    facts = {**round.facts, "beside": gpus}
    if round.values and "gpu_time" not in round.values:
        return replace(round, values={}, failure=Failure("error", NO_DEVICE_TIME), facts=facts)
    values = {name: value for name, value in round.values.items() if name not in HOST_METRICS}
    return replace(round, values=values, facts=facts)


def of_the_host(protocol: Protocol | None, proposals: Iterable[Proposal]) -> bool:
    """Whether what GPUs share has a part in the value of a case: the host, and the links to its memory. By the protocol and the
    unmeasured visits of all sides, which do not say whether a copy stays on the device."""
    if protocol is None:
        return False
    return protocol.metric != "gpu_time" or any(
        SYNCHRONIZES in proposal.flags or _copies(proposal) for proposal in proposals
    )


def _copies(proposal: Proposal) -> bool:
    return "copies" in proposal.values and proposal.values["copies"].value > 0


def gpus_for_all(definitions: Iterable[Benchmark]) -> int:
    """How many GPUs one benchmark needs, as all sides define it."""
    return max(1, *(gpus_of(definition)[0] for definition in definitions))


def blocks(gpus: Sequence[Gpu], size: int) -> list[tuple[Gpu, ...]]:
    """The GPUs that measure a case of several together, this many each. No GPU is in two blocks; the last may be in none."""
    return [tuple(gpus[first : first + size]) for first in range(0, len(gpus) - size + 1, size)]


def apart(one: Sequence[Gpu], other: Sequence[Gpu]) -> bool:
    """Whether cases on these GPUs must not be measured at the same time: they share a GPU, or both have several and so share
    the links between them."""
    return (len(one) > 1 and len(other) > 1) or not set(one).isdisjoint(other)


def roots(by_side: Mapping[str, Mapping[str, Benchmark]]) -> dict[str, str]:
    """What each benchmark was called at first, as far as its `was` tells: by that name it keeps its GPU when it is renamed.

    `by_side` are whole suites, whatever is selected of them. Of what a `was` may mean, a name that another side has comes
    first, then one with as many parts as the name of today.
    """
    before: dict[str, str] = {}
    for side, benchmarks in by_side.items():
        elsewhere = {name for other, own in by_side.items() if other != side for name in own}
        for name, benchmark in benchmarks.items():
            old = [
                old_name
                for old_name in old_names(benchmark.name, declared_words(benchmark, "was"))
                if old_name not in benchmarks
            ]
            likely = [old_name for old_name in old if old_name in elsewhere] or [
                old_name for old_name in old if _alike_deep(old_name, name)
            ]
            if likely:
                before[name] = likely[0]
    return {name: _first_of(name, before) for benchmarks in by_side.values() for name in benchmarks}


def _alike_deep(one: str, other: str) -> bool:
    return one.count(".") == other.count(".")


def _first_of(name: str, before: Mapping[str, str]) -> str:
    met = {name}
    while before.get(name, name) not in met:
        name = before[name]
        met.add(name)
    return name


def home(case: Case, root: str, places: Iterable[Sequence[Gpu]]) -> Sequence[Gpu]:
    """The GPU that a case is measured on, out of several, or the block of them: whichever draws the highest number for it.

    A draw depends on the case and the place alone, so the case stays where it is whatever else is selected, added or removed;
    with a place more or less only those cases move that go to it or were on it. To even out what the cases cost would be
    faster, and would move cases from GPU to GPU as costs change, which breaks their series: cards of one model differ by more
    than what is looked for.
    """
    key = f"{root}({', '.join(sorted(case.params))})"  # in any order: the sides may name the parameters in two
    return max(places, key=lambda place: hashlib.sha256(f"{visible(place)}/{key}".encode()).digest())
