"""Documents -> the benchmarks that they are of, and their rounds: one run of a suite is a round of each of its cases."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from regress.errors import DocumentError
from regress.importers.document import Document, Given
from regress.model import METRICS, PROGRAM, Benchmark, Protocol, Round

MOST_CASES = 100_000
"""Of a benchmark, with those that its parameters would have and the document has not."""
ABSENT = "None"
"""The text of a parameter that a case does not have, and others of its name have."""


def benchmarks_of(documents: Iterable[Document], prefix: str | None = None) -> dict[str, Benchmark]:
    """By name: the benchmarks of the documents, each with all parameters that any of them has. `prefix` goes before the names,
    instead of the program's own.

    Raises DocumentError where parameters multiply to more cases than can be held.
    """
    groups: dict[str, list[tuple[Given, Document]]] = {}
    for document in documents:
        for case in document.cases:
            groups.setdefault(_name(document, case, prefix), []).append((case, document))
    return {name: _benchmark(name, group) for name, group in groups.items()}


def _name(document: Document, given: Given, prefix: str | None) -> str:
    return ".".join(filter(None, (document.source if prefix is None else prefix, given.name)))


def _benchmark(name: str, group: Sequence[tuple[Given, Document]]) -> Benchmark:
    names = list(dict.fromkeys(key for case, _ in group for key in case.params))
    combinations = dict.fromkeys(_texts(case, names) for case, _ in group)
    axes = [list(dict.fromkeys(texts)) for texts in zip(*combinations, strict=True)] if names else []
    if math.prod(map(len, axes)) > MOST_CASES:
        raise DocumentError(
            f"{name} has too many cases",
            why=f"its parameters multiply to {math.prod(map(len, axes))}, and {MOST_CASES} can be held",
            fix="measure fewer of them in one run",
        )
    good = [case for case, _ in group if case.failure is None] or [group[0][0]]
    metric, document = good[0].metric, group[0][1]
    tracked = metric not in METRICS
    unit = good[0].values[metric].unit if tracked and metric in good[0].values else "seconds"
    return Benchmark(
        name,
        "track" if tracked else "time",
        unit,
        axes,
        names,
        version=document.format,
        metric=metric,
        needs_device=document.needs_device,
        program=document.format,
        lacks=[list(combination) for combination in itertools.product(*axes) if combination not in combinations],
    )


def _texts(given: Given, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(given.params.get(name, ABSENT) for name in names)


def rounds_of(
    document: Document, benchmarks: Mapping[str, Benchmark], side: str, order: int = 0, prefix: str | None = None
) -> list[Round]:
    """The rounds of one document, which is one run: a round of each case that is among the benchmarks."""
    rounds = []
    for case in document.cases:
        benchmark = benchmarks.get(_name(document, case, prefix))
        if benchmark is None:
            continue
        rounds.append(
            Round(
                benchmark.name,
                list(_texts(case, benchmark.param_names)),
                side,
                order,
                started_at=document.started_at,
                protocol=Protocol(benchmark.metric, process=PROGRAM),
                values=dict(case.values),
                failure=case.failure,
                facts={**document.facts, **case.facts},
                flags=list(case.flags),
            )
        )
    return rounds
