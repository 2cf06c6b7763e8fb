"""The stages of a run without any process: what is selected, refused before a visit, and carried from visit to round."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from regress.errors import NothingMeasured
from regress.measure.wire import Proposal, Suite, Task
from regress.model import Benchmark, Case, Commit, Failure, Measured, Protocol, Round, Settings, Side, SuiteProblem
from regress.run import execute as module
from regress.run.environments import Prepared
from regress.run.execute import Job, execute
from regress.run.overhead import OverheadClock
from regress.run.plan import Selection
from regress.run.turns import Turns
from tests.run.test_execute import Watch

COMMIT = Commit("a" * 40, "subject", "Ada", 0.0)
COUNTED = {"launches": Measured(3.0, [3.0], "count", exact=True)}


@dataclass
class Processes:
    """None, of the kind that needs no trial."""

    kind: str = "fresh"
    facts: Mapping[str, Any] = field(default_factory=dict)
    first_facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    imported: dict[str, bool] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def settle(self, suites: Mapping[str, Suite], sides: Sequence[Prepared], device: bool) -> None: ...

    def preload(self) -> None: ...


@dataclass
class Visits:
    """Answers every task at once. `broken` are (side, order) of rounds that fail; `visited` is what was asked."""

    suite: list[Benchmark]
    broken: frozenset[tuple[str, int]] = frozenset()
    problems: list[SuiteProblem] = field(default_factory=list)
    visited: list[tuple[str, str, int]] = field(default_factory=list)
    cached: list[str] = field(default_factory=list)
    overheads: list[tuple[float, float, int]] = field(
        default_factory=lambda: [(0.5, 0.1, 1), (0.7, 0.1, 4), (0.6, 0.2, 5)]
    )

    clock: OverheadClock = field(default_factory=OverheadClock)
    processes: Processes = field(default_factory=Processes)
    parted: dict[Case, str] = field(default_factory=dict)

    def discover(self, sides: Sequence[Prepared], meanwhile: Callable[[], object]) -> dict[str, Suite]:
        return {side.side.name: Suite(self.suite, self.problems) for side in sides}

    def setup_cache(self, side: Prepared, benchmark: Benchmark, directory: Path) -> Failure | None:
        self.cached.append(benchmark.name)
        return None

    def visit(
        self, side: Prepared, tasks: Sequence[Task], benchmarks: Mapping[str, Benchmark], turns: Turns
    ) -> Iterator[tuple[Task, Proposal | Round]]:
        for task in tasks:
            self.visited.append((task.side, task.name, task.order))
            protocol = task.protocol
            if protocol is None:
                yield task, Proposal(task.name, task.params, task.side, Protocol("gpu_time"), values=COUNTED)
            elif (task.side, task.order) in self.broken:
                failure = Failure("error", "no")
                yield task, Round(task.name, task.params, task.side, task.order, failure=failure)
            else:
                values = {"gpu_time": Measured(1e-3, [1e-3])}
                yield task, Round(task.name, task.params, task.side, task.order, protocol=protocol, values=values)

    def visit_in_turn(self, *asked: Any) -> Iterator[tuple[Task, Round]]:
        return iter(())  # no protocol of these has windows

    def close(self) -> None: ...


def benchmark(name: str, setup_cache_key: str | None = None, **declared: Any) -> Benchmark:
    return Benchmark(name, "time", "seconds", [], [], "1", "gpu_time", True, setup_cache_key=setup_cache_key,
                     file="benchmarks/a.py", declared=declared)  # fmt: skip


def run(
    monkeypatch: pytest.MonkeyPatch, visits: Visits, selection: Selection | None = None
) -> tuple[module.JobResult, list[Round]]:
    """What comes out of three rounds a side, and what was handed on."""
    monkeypatch.setattr(Job, "visits", lambda job, visible, deadline, programs: visits)
    sides = tuple(Prepared(Side(name, COMMIT, name), Path(), sys.executable, (), {}) for name in ("base", "head"))
    kept: list[Round] = []
    job = Job(sides, Path("benchmarks"), Path(), Settings(good_rounds=0.5), 3, selection or Selection())
    return execute(job, lambda round, facts, benchmark: kept.append(round), Watch()), kept


def test_the_first_good_round_of_a_side_takes_the_counters_along(monkeypatch: pytest.MonkeyPatch) -> None:
    measured, kept = run(monkeypatch, Visits([benchmark("a"), benchmark("b")], frozenset({("head", 0)})))
    carried = [(round.side, round.name, round.order) for round in measured.rounds if "launches" in round.values]
    assert sorted(carried) == [("base", "a", 0), ("base", "b", 0), ("head", "a", 1), ("head", "b", 1)]
    assert kept == measured.rounds, "what is stored has them too"
    assert measured.of("head")[0].values == {}
    assert measured.of("base")[0].values == {"gpu_time": Measured(1e-3, [1e-3]), **COUNTED}


def test_what_is_spent_beside_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    measured, _ = run(monkeypatch, Visits([benchmark("a")]))
    assert measured.overhead == pytest.approx((0.6, 0.04)), "the median process, and all cases alike"


def test_several_gpus_are_refused_before_any_visit(monkeypatch: pytest.MonkeyPatch) -> None:
    visits = Visits([benchmark("one"), benchmark("two", "cache", gpus=2), benchmark("odd", gpus="many")])
    measured, _ = run(monkeypatch, visits)
    assert {name for _, name, _ in visits.visited} == {"one", "odd"}
    assert visits.cached == []
    refused = [round for round in measured.rounds if round.name == "two"]
    assert [(round.side, round.failure) for round in refused] == [
        (side, Failure("skipped", "needs 2 GPUs: one is used; name more with --gpus")) for side in ("base", "head")
    ]
    assert len(measured.warnings) == 1
    assert "the declared gpus 'many'" in measured.warnings[0]


def test_what_no_benchmark_covers_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    suite = [benchmark("soft", covers="lib/soft/"), benchmark("silent")]
    visits = Visits(suite)
    measured, _ = run(monkeypatch, visits, Selection(changed=("docs/a.md",)))
    assert (measured.unaffected, measured.rounds, visits.visited) == (True, [], [])
    assert measured.warnings[0].startswith("1 of 2 benchmarks declare no `covers`")
    measured, _ = run(monkeypatch, visits, Selection(changed=("lib/soft/k.cu",)))
    assert (measured.unaffected, {round.name for round in measured.rounds}) == (False, {"soft"})


def test_a_name_that_matches_nothing_is_an_error_whatever_was_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    visits = Visits([benchmark("soft", covers="lib/", tags="core")])
    for selection in (Selection(("hard",), changed=("lib/a",)), Selection(tags=("slow",), changed=())):
        with pytest.raises(NothingMeasured, match="no benchmark matches") as caught:
            run(monkeypatch, visits, selection)
        assert caught.value.fix == "regress list"
