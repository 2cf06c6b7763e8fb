from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.measure import wire

number = st.floats(allow_nan=False, allow_infinity=False)
text = st.text(max_size=30)
failure = st.builds(wire.Failure, kind=text, message=text, where=text, detail=text)
measured = st.builds(wire.Measured, value=number, samples=st.lists(number, max_size=5), invalid=st.integers(0, 9))
protocol = st.builds(wire.Protocol, metric=text, calls=st.integers(1, 500), window_budget_s=number)
rounds = st.builds(
    wire.Round,
    name=text,
    params=st.lists(text, max_size=3),
    side=text,
    order=st.integers(0, 100),
    protocol=st.none() | protocol,
    values=st.dictionaries(text, measured, max_size=3),
    failure=st.none() | failure,
    flags=st.lists(text, max_size=2),
)
task = st.builds(wire.Task, name=text, params=st.lists(text), side=text, protocol=st.none() | protocol)
visits = st.builds(wire.Visit, tasks=st.lists(task, max_size=3))


@given(rounds | visits | st.builds(wire.Broken, failure=failure))
def test_a_message_comes_back_as_it_went(message: Any) -> None:
    line = wire.encode(message)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1, "nothing inside may break the line"
    assert wire.decode(line) == message


def test_a_sample_that_is_no_number_survives() -> None:
    line = wire.encode(wire.Measured(math.nan, [math.inf]))
    assert b"NaN" in line
    back = wire.build(wire.Measured, {"value": math.nan, "samples": [math.inf], "later": 1})
    assert math.isnan(back.value), "unknown keys are ignored"


@pytest.mark.parametrize("line", [b"", b"hello\n", b"[]\n", b'{"is": "Sneaky"}\n', b'{"no": 1}\n'])
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):
        wire.decode(line)


ROUND = (
    '{"is": "Round", "name": "a", "params": ["1"], "side": "head", "order": 0, "values": {"gpu_time": {"value": %s}}}'
)


@pytest.mark.parametrize(
    "line",
    [
        *('{"is": []}', '{"is": "Round"}', '{"is": "Visit", "tasks": 5}', '{"is": "Broken", "failure": 7}'),
        *('{"is": "Begin", "task": "1"}', '{"is": "Begin", "task": true}', '{"is": "End", "late": [7]}'),
        *('{"is": "Forked", "pid": 1e30}', '{"is": "Forked", "pid": 18446744073709551616}', "[" * 60_000),
        *('{"is": "Visit", "tasks": [null]}', '{"is": "Works"'),
        *(ROUND % value for value in ('"fast", "samples": []', '1.0, "samples": ["1"]', 'NaN, "samples": []', "1.0")),
    ],
)
def test_a_message_with_something_of_another_kind_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        wire.decode(line.encode(), wire.from_json)


def test_a_number_that_the_author_gives_may_be_none() -> None:
    line = (ROUND % 'NaN, "samples": [NaN]').replace("gpu_time", "value")
    assert math.isnan(wire.decode(line.encode()).values["value"].value)


def test_text_that_no_file_takes_is_written_out() -> None:
    message = wire.Broken(wire.Failure("error", "cannot read caf\udce9.npy \U0001f600"))
    assert wire.decode(wire.encode(message)) == message, "a path of the driver's stays one"
    assert wire.decode(wire.encode(message), wire.from_json).failure.message == "cannot read caf\\udce9.npy \U0001f600"


def test_every_nested_dataclass_is_rebuilt() -> None:
    """A field that holds a dataclass but is not declared with `nested` would come back as a dict."""
    for kind in wire.MESSAGES.values():
        for item in fields(kind):
            named = [name for name, row in vars(wire).items() if is_dataclass(row) and name in str(item.type)]
            assert bool(named) == ("kind" in item.metadata), f"{kind.__name__}.{item.name}"
