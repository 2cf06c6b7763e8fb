"""The last A/A check of each device: kept, replaced, and whatever is in the file, no command fails on it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from regress.history import keep_aa, last_aa
from regress.history.memory import AA_FILE as FILE
from regress.model import SelfCheck

FOUND = SelfCheck(1.78e9, "3f2c1ab0", ("a.f(1)", "a.g"), 0, 1, 1, 0.012, None)
CARD, OTHER = "GPU-1", "GPU-2"


def test_each_device_of_each_machine_has_its_own(tmp_path: Path) -> None:
    assert last_aa(tmp_path, "box", CARD) is None
    keep_aa(tmp_path, "box", CARD, FOUND)
    keep_aa(tmp_path, "box", "", replace(FOUND, undecided=0))
    keep_aa(tmp_path, "den", CARD, replace(FOUND, false_alarms=2))
    keep_aa(tmp_path, "box", CARD, replace(FOUND, commit="9d41e770"))
    assert last_aa(tmp_path, "box", CARD) == replace(FOUND, commit="9d41e770")
    assert last_aa(tmp_path, "box", "") == replace(FOUND, undecided=0), "without a device"
    assert last_aa(tmp_path, "den", CARD) == replace(FOUND, false_alarms=2)
    assert last_aa(tmp_path, "box", OTHER) is None
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize(
    "change", [{"format": 2}, {"machines": []}, {"machines": {"box": 3}}, {"machines": {"box": {"GPU-1": [1]}}}]
)
def test_a_file_of_another_kind_has_none_and_is_written_anew(tmp_path: Path, change: dict[str, Any]) -> None:
    keep_aa(tmp_path, "box", CARD, FOUND)
    path = tmp_path / FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert last_aa(tmp_path, "box", CARD) is None
    keep_aa(tmp_path, "box", CARD, FOUND)
    assert last_aa(tmp_path, "box", CARD) == FOUND


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\x00"])
def test_a_broken_file_has_none(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    assert last_aa(tmp_path, "box", CARD) is None


@pytest.mark.parametrize(
    "change", [{"date": "x"}, {"cases": 3}, {"undecided": None}, {"min_detectable": "5"}, {"commit": 1}]
)
def test_an_entry_that_does_not_hold_what_it_should_is_none(tmp_path: Path, change: dict[str, Any]) -> None:
    path = keep_aa(tmp_path, "box", CARD, FOUND)
    data = json.loads(path.read_text())
    data["machines"]["box"]["GPU-1"] |= change
    path.write_text(json.dumps(data))
    assert last_aa(tmp_path, "box", CARD) is None
