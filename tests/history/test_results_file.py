from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from asv.results import get_filename
from asv.util import sanitize_filename
from hypothesis import given
from hypothesis import strategies as st

from regress.history.results_file import (
    Cell,
    FormatError,
    axes_of,
    cells_of,
    file_stem,
    merged_axes,
    parse_json,
    parse_results,
    parse_whole_results,
    row_from,
    serialize_results,
)

from .samples import SHA, write_asv_file


@given(st.text(st.characters(codec="ascii"), min_size=1, max_size=300))
def test_files_are_named_as_asv_names_them(environment: str) -> None:
    expected = get_filename("box", SHA, sanitize_filename(environment))
    assert f"box/{file_stem(SHA, environment)}.json" == expected


def test_a_name_whose_bytes_do_not_fit_is_hashed() -> None:
    assert len((file_stem(SHA, "ü" * 120) + ".rounds.jsonl").encode()) < 100


def test_columns_in_another_order_and_short_rows(tmp_path: Path) -> None:
    row = {"params": [["1", "2"]], "result": [0.5, None], "version": "v", "samples": [[0.4, 0.6], None]}
    usual = parse_results(write_asv_file(tmp_path, {"x.time_f": row}).read_bytes())
    columns = ("version", "samples", "params", "result", "started_at")
    other = parse_results(write_asv_file(tmp_path, {"x.time_f": row}, columns=columns).read_bytes())
    expected = {("1",): Cell(0.5, [0.4, 0.6]), ("2",): Cell(None)}
    assert cells_of(usual.rows["x.time_f"]) == expected
    assert cells_of(other.rows["x.time_f"]) == expected


def test_a_row_without_any_value_has_a_cell_for_each_combination() -> None:
    cells = cells_of({"result": None, "params": [["1", "2"], ["a"]]})
    assert cells == {("1", "a"): Cell(None), ("2", "a"): Cell(None)}


def test_bare_nan_and_infinity_are_read(tmp_path: Path) -> None:
    path = write_asv_file(
        tmp_path,
        {"x.time_f": {"result": [math.nan, math.inf], "params": [["1", "2"]], "stats_ci_99_a": [None, -math.inf]}},
    )
    assert "NaN" in path.read_text()
    assert "Infinity" in path.read_text()
    cells = cells_of(parse_results(path.read_bytes()).rows["x.time_f"])
    assert math.isnan(cells["1",].result or 0)
    assert cells["2",] == Cell(math.inf, None, {"ci_99_a": -math.inf})


@pytest.mark.parametrize(
    ("change", "why", "fix"),
    [
        (lambda text: text[: len(text) // 2], "not JSON", "git checkout"),
        (lambda text: "<<<<<<< HEAD\n" + text, "not JSON", "git checkout"),
        (lambda text: "\udcff", "not JSON", "git checkout"),
        (lambda text: "[]", "names no version", "git checkout"),
        (lambda text: "{}", "names no version", "git checkout"),
        (lambda text: text.replace('"version": 2', '"version": 0'), "version 0 is older than 1", "asv update"),
        (lambda text: text.replace('"version": 2', '"version": 3'), "version 3 is newer than 2", "update regress"),
        (lambda text: text.replace('"result_columns"', '"columns"'), "it has no 'result_columns'", "git checkout"),
        (lambda text: text.replace('"commit_hash"', '"commit"'), "it has no 'commit_hash'", "git checkout"),
        (lambda text: text.replace(f'"{SHA}"', "null"), "its commit, its environment or its machine is", "git checkout"),
        (lambda text: _with(text, results=[]), "not a table of rows", "git checkout"),
    ],
)  # fmt: skip
def test_what_is_no_file_of_results_is_named_with_a_fix(tmp_path: Path, change: Any, why: str, fix: str) -> None:
    text = write_asv_file(tmp_path, {"x.time_f": {"result": [1.0], "params": []}}).read_text()
    with pytest.raises(FormatError) as caught:
        parse_results(change(text).encode(errors="surrogateescape"))
    assert why in caught.value.why
    assert fix in caught.value.fix


@pytest.mark.parametrize("row", [5, ["no number"], [[1], 5], [[1], ["a"]], [[1], [], 7], [[1], [], "v", "noon"]])
def test_a_malformed_row_is_named_and_the_others_are_used(tmp_path: Path, row: object) -> None:
    text = write_asv_file(tmp_path, {"x.time_f": {"result": [1.0], "params": []}}).read_text()
    data = _with(text, results={**json.loads(text)["results"], "x.time_g": row}).encode()
    results = parse_results(data)
    assert (set(results.rows), results.malformed) == ({"x.time_f"}, ("the row of x.time_g",))
    with pytest.raises(FormatError, match=r"the row of x\.time_g is malformed"):
        parse_whole_results(data)


def _with(text: str, **changes: Any) -> str:
    return json.dumps({**json.loads(text), **changes})


def test_parse_json_gives_what_is_beside_the_version() -> None:
    assert parse_json(b'{"machine": "box", "version": 1}', 1) == {"machine": "box"}


# -- what another writer wrote stays -------------------------------------------------------------------------------------


def test_rows_columns_and_keys_of_others_survive(tmp_path: Path) -> None:
    row = {"result": [1.5], "params": [], "version": "v", "profile": "eJw=", "novel": {"a": 1}}
    path = write_asv_file(tmp_path, {"x.time_f": row}, columns=("novel", "result", "params", "version", "profile"))
    content = json.loads(path.read_text())
    content["extra"] = ["kept"]
    again = parse_results(serialize_results(parse_results(json.dumps(content).encode())))
    kept = {column: value for column, value in again.rows["x.time_f"].items() if value is not None}
    assert kept == row
    assert again.others == {"extra": ["kept"]}
    assert again.durations == {"<build>": 3.5}


def test_a_file_of_asv_is_written_again_as_it_was(tmp_path: Path) -> None:
    rows: dict[str, dict[str, Any]] = {
        "x.time_f": {"result": [0.5, None], "params": [["1", "2"]], "version": "v", "samples": [[0.4, 0.6], None]},
        "x.track_g": {"result": None, "params": [], "version": "w", "started_at": 1_700_000_000_000, "duration": 1.5},
    }
    data = write_asv_file(tmp_path, rows).read_bytes()
    assert json.loads(serialize_results(parse_results(data))) == json.loads(data)


# -- rows and cells ------------------------------------------------------------------------------------------------------

axes = st.lists(st.lists(st.text(max_size=5), min_size=1, max_size=3, unique=True), max_size=3)


@given(axes, st.data())
def test_cells_survive_a_row(values: list[list[str]], data: st.DataObject) -> None:
    combinations = list(itertools.product(*values))
    results = st.one_of(st.none(), st.floats(allow_nan=False))
    cells = {
        combination: Cell(data.draw(results), data.draw(st.none() | st.lists(st.floats(0, 1), min_size=1, max_size=3)))
        for combination in combinations
        if data.draw(st.booleans())
    }
    read = cells_of(json.loads(json.dumps(row_from(values, cells))))
    assert repr(read) == repr(
        {combination: cells.get(combination, Cell(math.nan)) for combination in combinations}
    )  # NaN is not itself


def test_a_row_is_laid_out_in_the_order_of_its_parameters() -> None:
    cells: dict[tuple[str, ...], Cell] = {("2", "a"): Cell(4.0), ("1", "b"): Cell(3.0)}
    row = row_from([["1", "2"], ["b", "a"]], cells)
    assert row["result"] == [3.0, pytest.approx(math.nan, nan_ok=True), pytest.approx(math.nan, nan_ok=True), 4.0]
    assert axes_of(row) == [["1", "2"], ["b", "a"]]
    assert row["samples"] is None


def test_statistics_are_shortened_and_results_are_not() -> None:
    value = 0.123456789
    row = row_from([], {(): Cell(value, [value], {"q_25": value, "number": 3})})
    assert row["result"] == [value]
    assert row["samples"] == [[value]]
    assert row["stats_q_25"] == [0.12346]
    assert row["stats_number"] == [3]


def test_merged_axes_keep_the_first_order_and_add_what_is_new() -> None:
    assert merged_axes([["3", "1"]], [["1", "2"]], [["0"]]) == [["3", "1", "2", "0"]]
    assert merged_axes([["1"]], [["1"], ["a"]], []) == [["1"]]
    assert merged_axes([]) == []
