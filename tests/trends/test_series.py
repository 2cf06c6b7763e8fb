from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from regress.history import Recorded, Store
from regress.model import Benchmark, Case, Machine, Round, Series, metric_of
from regress.trends import series_of
from tests.compare.rounds import MIB, QUIET, SETTINGS, benchmark, broken, known, rounds, scaled

FACTS = {"gpu": "H100", "gpu_uuid": "GPU-1", "driver": "570", "torch": "2.11"}


def recorded(*groups: list[Round], machine: str = "box", defined: Benchmark | None = None, **facts: Any) -> Recorded:
    """What is recorded of a commit; `facts` are those of all its rounds, beside FACTS."""
    every = [replace(round, facts={**FACTS, **facts}) for group in groups for round in group]
    return Recorded("sha", Machine(machine), "py", tuple(every), known(defined or benchmark()), Path("file"))


def history(*commits: Recorded | None) -> list[tuple[str, list[Recorded]]]:
    return [(f"{place:040x}", [commit] if commit is not None else []) for place, commit in enumerate(commits)]


def at(center: float, **options: Any) -> list[Round]:
    return rounds(gpu_time=scaled(center), **options)


def one(*commits: Recorded | None) -> Series:
    (series,) = series_of(history(*commits), SETTINGS)
    return series


def test_a_series_has_an_item_for_every_commit_with_a_result() -> None:
    series = one(recorded(at(1e-3)), None, recorded(at(2e-3)))
    assert (series.case, series.metric) == (Case("ops.cudatime_add"), metric_of("gpu_time"))
    assert (series.machine, series.device, series.environment, series.primary) == ("box", "H100", "py", True)
    assert [int(sha, 16) for sha in series.commits] == [0, 1, 2]
    assert series.at == (0, 2)
    assert series.rounds == (tuple(scaled(1e-3)), tuple(scaled(2e-3)))
    assert series.ways[0] == series.ways[1] != ()
    assert {("version", "1"), ("driver", "570"), ("harness", "1"), ("unit", "s")} <= set(series.ways[0])


def test_every_case_and_metric_is_a_series() -> None:
    both = recorded(
        rounds(
            params=["1"], gpu_time=scaled(1e-3), host_time=scaled(1e-5), peak_memory=[MIB] * 2, exact={"peak_memory"}
        ),
        at(2e-3, params=["2"]),
    )
    series = series_of(history(both), SETTINGS)
    assert [
        (one_series.case.params, one_series.metric.name, one_series.metric.exact, one_series.primary)
        for one_series in series
    ] == [
        (("1",), "gpu_time", False, True),
        (("1",), "host_time", False, False),
        (("1",), "peak_memory", True, False),
        (("2",), "gpu_time", False, True),
    ]


def test_machines_and_kinds_of_devices_are_never_one_series() -> None:
    every = [("a", "H100", "GPU-1"), ("a", "H100", "GPU-2"), ("a", "H200", "GPU-3"), ("b", "H100", "GPU-2")]
    commits = history(*(recorded(at(1e-3), machine=machine, gpu=gpu, gpu_uuid=uuid) for machine, gpu, uuid in every))
    series = series_of(commits, SETTINGS)
    assert [(one_series.machine, one_series.device) for one_series in series] == [
        ("a", "H100"),
        ("a", "H200"),
        ("b", "H100"),
    ]
    assert series[0].cards == {0: ("GPU-1",), 1: ("GPU-2",)}
    assert series[0].ways[0] != series[0].ways[1], "nothing links the two cards"


@pytest.mark.parametrize(
    "other",
    [
        recorded(at(1e-3), driver="580"),
        recorded(at(1e-3), torch="2.12"),
        recorded(at(1e-3), power_limit_w=500.0),
        recorded(at(1e-3, protocol={"cache": "cold"})),
        recorded(at(1e-3, protocol={"harness": 2})),
        recorded(at(1e-3), defined=benchmark(version="2")),
        recorded(at(1e-3), defined=benchmark(declared={"number": 1})),
    ],
)
def test_what_was_measured_differently_has_another_way(other: Recorded) -> None:
    ways = one(recorded(at(1e-3)), other).ways
    assert ways[0] != ways[1]


def test_how_often_was_sampled_is_no_other_way() -> None:
    ways = one(recorded(at(1e-3)), recorded(at(1e-3, protocol={"calls": 7, "samples_max": 50}))).ways
    assert ways[0] == ways[1]


def test_of_a_commit_measured_in_two_ways_the_later_one_counts() -> None:
    old, new = recorded(at(1e-3), driver="570"), recorded(at(2e-3), driver="580")
    series = one(replace(old, rounds=old.rounds + new.rounds))
    assert series.rounds == (tuple(scaled(2e-3)),)
    assert ("driver", "580") in series.ways[0]


def test_failures_and_values_that_are_none_leave_a_gap() -> None:
    series = one(
        recorded(at(1e-3)),
        recorded(broken()),
        recorded(rounds(gpu_time=[math.nan] * 5)),
        recorded(at(1e-3)[:4], broken(count=1)),
    )
    assert [len(round) for round in series.rounds] == [5, 0, 0, 4]


def test_what_the_newest_definition_declares_counts() -> None:
    def declaring(**declared: Any) -> Recorded:
        return recorded(rounds(metric="value", value=scaled(3.0)), defined=benchmark(metric="value", declared=declared))

    series = one(declaring(threshold=0.3), declaring(threshold=0.2, better="higher"))
    assert (series.threshold, series.metric.better) == (0.2, "higher")


def test_exact_is_what_every_commit_calls_exact() -> None:
    exact = recorded(rounds(gpu_time=QUIET, peak_memory=[MIB], exact={"peak_memory"}))
    lower_bound = recorded(rounds(gpu_time=QUIET, peak_memory=[MIB]))
    (_, both) = series_of(history(exact, exact), SETTINGS)
    (_, one_only) = series_of(history(exact, lower_bound), SETTINGS)
    assert (both.metric.exact, one_only.metric.exact) == (True, False)


def test_the_recorded_history_of_this_repository_makes_series() -> None:
    store = Store(Path(__file__).parents[2] / "history")
    shas = list(dict.fromkeys(commit.commit_sha for commit in store.commits()))
    series = series_of([(sha, store.load(sha).recorded) for sha in shas], SETTINGS)
    times = [one_series for one_series in series if one_series.metric.name == "gpu_time"]
    assert times
    assert all(series.device.startswith("NVIDIA") and len(series.rounds) == len(shas) for series in times)
