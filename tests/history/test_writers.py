"""Several processes that write one history at once."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest

from regress.history import Store, explanations_in, keep_explanation
from regress.model import KeptExplanation
from tests.report import sample

from .samples import BOX, ENV, SHA, benchmark, column, only, side, taken

ROUNDS = 15


def write(root: Path, name: str, first: int, barrier: object) -> None:
    """Append rounds and finish now and then, as a run of its own does."""
    barrier.wait()  # type: ignore[attr-defined]
    store = Store(root, root.parent / "journal")
    for order in range(first, first + ROUNDS):
        store.append(side(), BOX, ENV, taken(name, order=order, gpu_time=1.0 + order), {"driver": "580"})
        if order % 5 == 4:
            store.finish(side(), BOX, ENV, python="3.11", benchmarks={name: benchmark(name)})


@pytest.mark.parametrize("names", [("ops.cudatime_a", "ops.cudatime_b"), ("ops.cudatime_a", "ops.cudatime_a")])
def test_two_writers_lose_nothing(tmp_path: Path, names: tuple[str, str]) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    root = tmp_path / "results"
    writers = [
        context.Process(target=write, args=(root, name, index * 100, barrier)) for index, name in enumerate(names)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0, 0]

    recorded = only(root)
    expected = {(name, index * 100 + order) for index, name in enumerate(names) for order in range(ROUNDS)}
    assert {(round.name, round.order) for round in recorded.rounds} == expected
    assert len(recorded.rounds) == 2 * ROUNDS
    assert all(round.facts == {"driver": "580"} for round in recorded.rounds)
    path = root / "gpu-box" / f"{SHA[:8]}-{ENV}.json"
    samples = sum(len(column(path, name, "samples")[0]) for name in set(names))
    assert samples == 2 * ROUNDS
    assert set(names) <= set(json.loads((root / "benchmarks.json").read_text()))
    leftovers = [path.name for path in root.rglob("*") if path.name.startswith(".")]
    assert leftovers == []


def explain(root: Path, first: int, barrier: object) -> None:
    """Keep explanations of one head against several bases."""
    barrier.wait()  # type: ignore[attr-defined]
    for base in range(first, first + ROUNDS):
        explained = sample.explain().explained[0]
        keep_explanation(root, KeptExplanation(f"{base:040x}", SHA, BOX.name, ENV, 1e9, explained))


def test_two_that_explain_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    writers = [context.Process(target=explain, args=(tmp_path, index * 100, barrier)) for index in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0, 0]
    kept = sorted(int(explanation.base, 16) for explanation in explanations_in(tmp_path))
    assert kept == [index * 100 + at for index in range(2) for at in range(ROUNDS)]
    assert [path.name for path in tmp_path.rglob(".*")] == []
