from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regress.history.json_text import NUMBERS, decoded, loads, strict

texts = st.text(max_size=6) | st.lists(
    st.sampled_from(["NaN", "Infinity", "-", '"', "\\", ",", " ", "[NaN, ", "é", "\n", '\\"']), max_size=5
).map("".join)  # fmt: skip
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | texts
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=20
)


def quoted(value: Any) -> Any:
    """The document with each number that JSON lacks as a string: what `strict` has to make of it, told by the values."""
    if isinstance(value, float) and not math.isfinite(value):
        return next(name for name, number in NUMBERS.items() if repr(number) == repr(value))
    if isinstance(value, dict):
        return {key: quoted(row) for key, row in value.items()}
    return [quoted(row) for row in value] if isinstance(value, list) else value


@given(documents, st.booleans(), st.sampled_from([None, 1]))
@example(["NaN", math.nan, '"NaN', "\\"], True, None)
@example({"NaN": -math.inf, '\\"Infinity': [math.inf]}, True, None)
def test_what_json_lacks_becomes_text_and_text_stays(document: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent).encode(errors="replace")
    assert json.loads(strict(text)) == quoted(json.loads(text))


@given(documents, st.booleans())
@example({"time_x": [math.nan, -math.inf], "NaN": 1.0, "of -Infinity": [math.inf]}, True)
def test_a_decoder_reads_such_numbers_as_text(document: Any, ascii_only: bool) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only).encode(errors="replace")
    assert repr(decoded(text, msgspec.json.decode)) == repr(msgspec.json.decode(strict(text)))


def test_numbers_and_letters_that_no_file_takes_become_such_as_it_does() -> None:
    assert loads(b"[1e400, -1e400, 18446744073709551615]") == [math.inf, -math.inf, 2**64 - 1]
    assert loads(b"[18446744073709551616, -1" + b"0" * 5000 + b"]") == [2.0**64, -math.inf]
    assert loads(rb'{"caf\udce9": ["\ud83d\ude00", "\ud83d"]}') == {"caf\\udce9": ["\U0001f600", "\\ud83d"]}


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a":' * 100_000, b'["\xff"]', b""])
def test_what_is_no_document_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError):
        loads(text)


@given(documents, st.booleans())
def test_documents_are_read_as_json_reads_them(document: Any, ascii_only: bool) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only).encode(errors="replace")
    assert repr(loads(text)) == repr(json.loads(text))


def test_text_without_such_numbers_is_not_copied() -> None:
    text = b'{"a": [1, 2.5, "x"]}'
    assert strict(text) is text


@pytest.mark.parametrize("text", [b"", b"[1", b"\xff", b"[NaN", b'{"a": NaNNaN}', b'"NaN', b"<<<<<<< HEAD\n[]"])
def test_what_is_no_json_is_none_afterwards_either(text: bytes) -> None:
    with pytest.raises(ValueError):
        loads(text)
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(strict(text))
    with pytest.raises(msgspec.DecodeError):
        decoded(text, msgspec.json.decode)
