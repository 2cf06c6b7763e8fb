"""asv's first format, read by us and by asv's own update."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest
from asv.results import Results
from hypothesis import given
from hypothesis import strategies as st

from regress.history.results_file import FormatError, cells_of, parse_results

from .samples import SHA, only

PLAIN: dict[str, Any] = {
    "commit_hash": SHA,
    "date": 1_400_000_000_000,
    "params": {"machine": "box", "python": "2.7"},
    "python": "2.7",
    "requirements": {"numpy": "1.8", "six": ""},
    "results": {},
    "version": 1,
}

numbers = st.none() | st.floats(1e-9, 1e9) | st.just(math.nan)
stats = st.none() | st.fixed_dictionaries(
    {"ci_99": st.tuples(numbers, numbers).map(list)},
    optional={"q_25": numbers, "q_75": numbers, "number": st.integers(1, 9), "repeat": st.integers(1, 9)},
)


@st.composite
def results(draw: st.DrawFn) -> Any:
    if draw(st.booleans()):
        return draw(numbers)
    n = draw(st.integers(1, 3))
    several = draw(st.booleans())
    value: dict[str, Any] = {"result": draw(st.lists(numbers, min_size=n, max_size=n)) if several else draw(numbers)}
    if several:
        value["params"] = [[str(place) for place in range(n)]]
    if draw(st.booleans()):
        value["stats"] = draw(st.lists(stats, min_size=n, max_size=n)) if several else draw(stats)
        value["samples"] = [draw(st.none() | st.lists(st.floats(0, 1), max_size=2)) for _ in range(n if several else 1)]
    return value


@given(st.dictionaries(st.sampled_from(["a.time_x", "b.track_y"]), results()), st.data())
def test_rows_are_those_that_asv_update_writes(table: dict[str, Any], data: st.DataObject) -> None:
    content = {**PLAIN, "results": table}
    for key, values in (
        ("benchmark_version", st.text(max_size=2)), ("started_at", st.integers(0, 10)), ("duration", st.floats(0, 10)),
    ):  # fmt: skip
        if data.draw(st.booleans()):
            content[key] = {name: data.draw(values) for name in table}
    ours = parse_results(json.dumps(content).encode())
    asvs = Results.update_to_2(copy.deepcopy(content))
    assert (ours.commit_hash, ours.env_name, ours.malformed) == (SHA, asvs["env_name"], ())
    assert set(ours.rows) == set(asvs["results"])
    for name, row in asvs["results"].items():
        theirs = dict(zip(asvs["result_columns"], row, strict=False))
        told = {
            key: value for key, value in ours.rows[name].items() if not key.startswith("stats_") and key != "duration"
        }
        for key, value in told.items():
            assert repr(value) == repr(theirs.get(key)) or (not any(value or ()) and theirs.get(key) is None), key
        for one, other in zip(cells_of(ours.rows[name]).values(), cells_of(theirs).values(), strict=True):
            assert (one.stats or {}).keys() == (other.stats or {}).keys()


def test_a_file_of_the_first_format_is_read_with_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "box"
    folder.mkdir()
    (folder / "machine.json").write_text(json.dumps({"machine": "box", "version": 1}))
    value = {"result": [2.0, None], "params": [["1", "2"]]}
    content = {**PLAIN, "results": {"x.time_f": 1.0, "x.time_g": value}, "benchmark_version": {"x.time_f": "w"}}
    (folder / f"{SHA[:8]}-py2.7-numpy1.8-six.json").write_text(json.dumps(content))
    recorded = only(tmp_path)
    assert (recorded.environment, recorded.benchmarks["x.time_f"].version) == ("py2.7-numpy1.8-six", "w")
    values = {(round.name, *round.params): round.values.get("wall_time") for round in recorded.rounds}
    assert {key: value and value.value for key, value in values.items()} == {
        ("x.time_f",): 1.0,
        ("x.time_g", "1"): 2.0,
        ("x.time_g", "2"): None,
    }


@pytest.mark.parametrize("change", [{"results": 5}, {"results": None}, {"requirements": "numpy"}, {"commit_hash": 7}])
def test_what_is_none_of_it_is_named(change: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        parse_results(json.dumps({**PLAIN, **change}).encode())
