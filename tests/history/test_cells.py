from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from asv_runner.statistics import compute_stats

from regress.history.cells import newest_alike, recorded_later, rows_of
from regress.history.results_file import Cell, cells_of, row_from
from regress.history.sidecar import Kept
from regress.model import Failure, Protocol, Round

from .samples import GPU, WALL, benchmark, taken

ADD = "ops.cudatime_add"
SKIPPED = Failure("skipped", "not on this device")
BROKEN = Failure("error", "boom")


def kept(*rounds: Round, run: str = "r", version: str = "v1", **declared: Any) -> list[Kept]:
    return [
        Kept(dataclasses.replace(round, run=run), benchmark(round.name, version=version, **declared))
        for round in rounds
    ]


def orders(kept_rounds: list[Kept]) -> list[int]:
    return [record.round.order for group in newest_alike(kept_rounds)[0].values() for record in group]


# -- which rounds belong together ----------------------------------------------------------------------------------------


def test_rounds_of_one_way_are_pooled_over_runs() -> None:
    first, second = kept(taken(ADD, order=0)), kept(taken(ADD, order=1), run="s")
    alike, notes = newest_alike([*first, *second])
    assert alike == {ADD: [*first, *second]}
    assert notes == []


@pytest.mark.parametrize(
    "change",
    [
        {"metric": "wall_time"},
        {"cache": "cold"},
        {"setup_each": True},
        {"process": "fork"},
        {"harness": 99},
    ],
)
def test_rounds_measured_in_another_way_are_left_out_and_said(change: dict[str, Any]) -> None:
    old = kept(taken(ADD, order=0, protocol=dataclasses.replace(GPU, **change)))
    alike, notes = newest_alike([*old, *kept(taken(ADD, order=1))])
    assert [record.round.order for record in alike[ADD]] == [1]
    assert notes == [f"{ADD}: 1 older rounds were measured differently (other protocol) and are left out"]


def test_rounds_under_other_packages_are_left_out_and_said() -> None:
    """The same commit with a new version of what it needs is another measurement."""
    first, silent, second, last = (taken(ADD, order=order) for order in range(4))
    old, new = (dataclasses.replace(round, facts={"installed": word}) for round, word in ((first, "a"), (second, "b")))
    alike, notes = newest_alike(kept(old, silent, new, last))
    assert [record.round.order for record in alike[ADD]] == [1, 2, 3], "an older record says nothing of it"
    assert notes == [f"{ADD}: 1 older rounds were measured differently (other packages installed) and are left out"]


@pytest.mark.parametrize(
    "name", ["number", "repeat", "rounds", "processes", "warmup_time", "min_run_count", "sample_time"]
)
def test_rounds_of_another_declared_sampling_are_left_out_of_every_case_and_said(name: str) -> None:
    declared: dict[str, Any] = {name: 5}
    old = kept(taken(ADD, ["1"], 0), taken(ADD, ["2"], 1), **declared)
    alike, notes = newest_alike([*old, *kept(taken(ADD, ["1"], 2), tags=["core"])])
    assert [record.round.order for record in alike[ADD]] == [2]
    assert notes == [f"{ADD}: 2 older rounds were measured differently (other declared {name}) and are left out"]
    again, notes = newest_alike([*old, *kept(taken(ADD, ["1"], 2), tags=["core"], **declared)])
    assert ([record.round.order for record in again[ADD]], notes) == ([0, 2, 1], [])


def test_how_long_was_sampled_is_no_other_way() -> None:
    longer = Protocol("gpu_time", calls=4, wall_calls=2, samples_max=999, window_budget_s=9.0, warmup_s=1.0)
    assert orders(kept(taken(ADD, order=0, protocol=longer), taken(ADD, order=1))) == [0, 1]


def test_an_older_version_is_left_out_of_every_case_of_the_benchmark() -> None:
    old = kept(taken(ADD, ["1"], 0), taken(ADD, ["2"], 1), taken("other", [], 2), version="v0")
    assert sorted(orders([*old, *kept(taken(ADD, ["1"], 3))])) == [2, 3]


def test_a_failure_counts_until_a_later_run_visits_the_case() -> None:
    failed = kept(taken(ADD, order=0, protocol=None, failure=BROKEN))
    assert orders([*failed, *kept(taken(ADD, order=1))]) == [0, 1]
    assert orders([*failed, *kept(taken(ADD, order=1), run="later")]) == [1]
    assert orders([*failed, *kept(taken(ADD, ["other"], 1), run="later")]) == [0, 1]


# -- values --------------------------------------------------------------------------------------------------------------


def row(*rounds: Round, params: list[list[str]] | None = None, before: dict[str, Any] | None = None) -> dict[str, Any]:
    return rows_of(benchmark(params=params or []), rounds, {ADD: before} if before else {})[ADD]


def test_a_cell_is_the_median_of_the_rounds_with_asvs_statistics() -> None:
    values = [3.0, 1.0, 2.0, 5.0, 4.0]
    written = row(*(taken(ADD, order=order, gpu_time=value) for order, value in enumerate(values)))
    center, stats = compute_stats(values, 4)
    assert written["result"] == [center] == [3.0]
    assert written["samples"] == [values]
    cell = cells_of(written)[()]
    assert cell.stats == pytest.approx(stats, rel=1e-4)
    assert (written["stats_repeat"], written["stats_number"]) == ([5], [4])


def test_further_metrics_have_rows_with_their_own_version_and_calls() -> None:
    rounds = [taken(ADD, gpu_time=1.0, wall_time=2.0, host_time=3.0, peak_memory=4.0)]
    rows = rows_of(benchmark(version="abc"), rounds, {})
    assert {name: (row["result"], row["version"]) for name, row in rows.items()} == {
        ADD: ([1.0], "abc"),
        f"{ADD}.wall_time": ([2.0], "abc:wall_time"),
        f"{ADD}.host_time": ([3.0], "abc:host_time"),
        f"{ADD}.peak_memory": ([4.0], "abc:peak_memory"),
    }
    assert [rows[name]["stats_number"] for name in rows] == [[4], [2], [4], [1]]


def test_only_the_own_row_has_the_duration() -> None:
    rows = rows_of(benchmark(), [taken(ADD, order=order, gpu_time=1.0, wall_time=2.0) for order in range(3)], {})
    assert [row["duration"] for row in rows.values()] == [0.75, None]


def test_a_metric_of_some_rounds_only_has_their_values() -> None:
    rounds = [taken(ADD, order=0, gpu_time=1.0, peak_memory=64.0), taken(ADD, order=1, gpu_time=1.0)]
    assert rows_of(benchmark(), rounds, {})[f"{ADD}.peak_memory"]["samples"] == [[64.0]]


def test_a_case_that_became_synchronous_has_null_under_its_own_name() -> None:
    rows = rows_of(benchmark(), [taken(ADD, wall_time=2.0)], {})
    assert rows[ADD]["result"] is None
    assert rows[f"{ADD}.wall_time"]["result"] == [2.0]


def test_a_benchmark_of_asv_keeps_wall_time_under_its_name_in_the_device_protocol() -> None:
    name = "ops.time_add"
    rows = rows_of(benchmark(name), [taken(name, gpu_time=1.0, wall_time=2.0)], {})
    assert {key: row["result"] for key, row in rows.items()} == {name: [2.0], f"{name}.gpu_time": [1.0]}


def test_a_cuda_benchmark_declared_for_the_wall_clock_has_wall_time_under_its_name() -> None:
    rows = rows_of(benchmark(), [taken(ADD, protocol=WALL, wall_time=2.0)], {})
    assert {key: row["result"] for key, row in rows.items()} == {ADD: [2.0]}


def test_failed_is_null_and_skipped_is_nan_in_their_places() -> None:
    rounds = [
        taken(ADD, ["1"], gpu_time=1.0, wall_time=2.0),
        taken(ADD, ["2"], failure=SKIPPED),
        taken(ADD, ["3"], failure=BROKEN),
    ]
    rows = rows_of(benchmark(params=[["1", "2", "3", "4"]]), rounds, {})
    for name, value in ((ADD, 1.0), (f"{ADD}.wall_time", 2.0)):
        first, second, third, fourth = rows[name]["result"]
        assert (first, third) == (value, None)
        assert math.isnan(fourth)  # not measured
        assert math.isnan(second)


def test_a_case_that_was_skipped_and_failed_has_failed() -> None:
    assert row(taken(ADD, failure=SKIPPED), taken(ADD, failure=BROKEN))["result"] is None


def test_one_failed_round_does_not_take_the_value_of_the_others() -> None:
    assert row(taken(ADD, gpu_time=1.0), taken(ADD, failure=BROKEN))["result"] == [1.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_values_that_are_no_numbers_are_left_out(bad: float) -> None:
    assert row(taken(ADD, gpu_time=bad), taken(ADD, gpu_time=2.0))["samples"] == [[2.0]]
    assert row(taken(ADD, gpu_time=bad))["result"] is None


def test_a_row_starts_with_its_first_round() -> None:
    assert row(taken(ADD, started_at=12.5), taken(ADD, started_at=11.25))["started_at"] == 11250
    assert row(taken(ADD))["started_at"] is None


# -- what the file had ---------------------------------------------------------------------------------------------------


def old_row(cells: dict[tuple[str, ...], Cell], params: list[list[str]], **columns: Any) -> dict[str, Any]:
    return row_from(params, cells, **{"version": "v1", **columns})


def test_cells_that_nobody_visited_stay_and_are_matched_by_value() -> None:
    before = old_row({("3",): Cell(30.0, [30.0]), ("1",): Cell(10.0)}, [["3", "1"]])
    written = row(taken(ADD, ["1"], gpu_time=1.0), params=[["1", "2", "3"]], before=before)
    assert written["params"] == [["1", "2", "3"]]
    assert written["result"] == [1.0, pytest.approx(math.nan, nan_ok=True), 30.0]
    assert written["samples"] == [[1.0], None, [30.0]]


def test_parameters_that_the_suite_no_longer_has_stay_in_the_row() -> None:
    before = old_row({("9",): Cell(90.0)}, [["9"]])
    written = row(taken(ADD, ["1"], gpu_time=1.0), params=[["1"]], before=before)
    assert (written["params"], written["result"]) == ([["1", "9"]], [1.0, 90.0])


def test_cells_of_another_version_or_other_parameters_go() -> None:
    other_version = old_row({("1",): Cell(10.0)}, [["1"]], version="v0")
    other_params = old_row({("1", "a"): Cell(10.0)}, [["1"], ["a"]])
    for before in (other_version, other_params):
        written = row(taken(ADD, ["2"], gpu_time=2.0), params=[["1", "2"]], before=before)
        assert written["result"] == [pytest.approx(math.nan, nan_ok=True), 2.0]


def test_a_failure_now_replaces_the_value_before() -> None:
    before = old_row({(): Cell(10.0)}, [])
    assert row(taken(ADD, failure=BROKEN), before=before)["result"] is None


def test_the_profile_of_asv_stays() -> None:
    before = old_row({}, [], profile="eJw=", novel=7)
    written = row(taken(ADD, gpu_time=1.0), before=before)
    assert (written["profile"], written["novel"]) == ("eJw=", 7)


def test_a_row_that_asv_recorded_later_stays_as_it_is() -> None:
    before = old_row({(): Cell(10.0)}, [], started_at=200_000)
    assert row(taken(ADD, gpu_time=1.0, started_at=199.0), before=before) is before
    assert row(taken(ADD, gpu_time=1.0, started_at=201.0), before=before)["result"] == [1.0]
    assert not recorded_later(before["started_at"], [taken(ADD)]), "a round without a time tells nothing"
