"""Rows as the index keeps them: what goes in comes out, and what is alike is one object."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from regress.history import rows
from regress.history.json_text import strict
from regress.history.reading import AsvRow

AXES = [["1", "2"], ["'a'"]]


def cut(
    result: Any,
    params: Any = None,
    version: str | None = None,
    started_at: float | None = None,
    duration: float | None = None,
    ends: Sequence[Any] = (),
) -> rows.Cut:
    return rows.Cut(raw(result), raw(params), version, started_at, duration, *map(raw, ends))


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(strict(json.dumps(value).encode()))


def test_rows_are_read_as_they_were_put_in() -> None:
    one = cut([0.5, math.nan], AXES, "v1", 1000, 0.25, [[0.4, -math.inf], [0.6, math.inf]])
    data = rows.packed([one, cut(None, AXES, "v2"), cut([math.inf, 7], AXES, "v1")])
    reader = rows.RowReader()
    first, *others = reader.rows(data)
    assert first.results is not None
    assert math.isnan(first.results[1])
    axes = (("1", "2"), ("'a'",))
    assert first._replace(results=None) == AsvRow(axes, "v1", None, 1000, 0.25, [0.4, -math.inf], [0.6, math.inf])
    assert others == [AsvRow(axes, "v2", None), AsvRow(axes, "v1", [math.inf, 7])]
    assert first.axes is others[0].axes is next(reader.rows(data)).axes
    assert list(rows.versions(data)) == ["v1", "v2", "v1"]


def test_what_stands_alone_is_the_one_case_of_a_plain_benchmark() -> None:
    read = list(rows.RowReader().rows(rows.packed([cut([0.5], None), cut(0.5)])))
    assert read == [AsvRow((), "", [0.5]), AsvRow((), "", [0.5])]


@pytest.mark.parametrize(
    "unlike",
    [
        {"result": {}},
        {"result": "0.5"},
        {"params": 5},
        {"params": [5]},
        {"params": ["ab"]},
        {"params": [[str(value) for value in range(60)]] * 6},
        {"started_at": 1e300},
        {"duration": -1e13},
        {"ends": [3.0]},
        {"ends": [None, "x"]},
    ],
)
def test_what_is_malformed_is_left_to_the_careful_reader(unlike: dict[str, Any]) -> None:
    usual: dict[str, Any] = {
        "result": [0.5],
        "params": AXES,
        "version": "v",
        "started_at": 1000.0,
        "duration": 0.1,
        "ends": [[1], None],
    }
    assert rows.are_usual([cut(**usual)])
    assert not rows.are_usual([cut(**usual), cut(**(usual | unlike))])


def test_the_text_of_a_row_follows_the_row_and_not_those_beside_it() -> None:
    every = [cut([0.5], AXES, "v1", 1000), cut([0.5], [], "v1", 1000), cut([0.5], AXES, "v1", 1001)]
    together = list(map(bytes, rows.texts(rows.packed(every))))
    assert len(set(together)) == 3
    assert together == [bytes(text) for row in every for text in rows.texts(rows.packed([row]))]
