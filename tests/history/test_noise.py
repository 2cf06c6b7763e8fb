"""What is remembered of each case's scatter: pooled, bounded; not a file can make a command fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from regress.history import remember_noise, remembered_noise
from regress.history.memory import MEMORY
from regress.history.memory import NOISE_FILE as FILE
from regress.model import Spread


def test_each_machine_remembers_by_itself(tmp_path: Path) -> None:
    remember_noise(tmp_path, "box", {"a.f(1)": Spread(0.002, 6)})
    remember_noise(tmp_path, "den", {"a.f(1)": Spread(0.01, 18)})
    assert remembered_noise(tmp_path, "box") == {"a.f(1)": Spread(0.002, 6)}
    assert remembered_noise(tmp_path, "den") == {"a.f(1)": Spread(0.01, 18)}
    assert remembered_noise(tmp_path, "elsewhere") == {}


def test_checks_are_pooled_by_their_degrees_of_freedom(tmp_path: Path) -> None:
    remember_noise(tmp_path, "box", {"a.f": Spread(0.003, 6), "a.g": Spread(0.0, 6)})
    remember_noise(tmp_path, "box", {"a.f": Spread(0.004, 18)})
    spreads = remembered_noise(tmp_path, "box")
    assert spreads["a.g"] == Spread(0.0, 6), "a case that was not measured this time stays"
    assert spreads["a.f"] == Spread(0.00377, 24), "sqrt((6 * 0.003^2 + 18 * 0.004^2) / 24), to three digits"


def test_a_machine_that_became_noisier_is_believed_soon(tmp_path: Path) -> None:
    for _ in range(100):
        remember_noise(tmp_path, "box", {"a.f": Spread(0.001, 6)})
    assert remembered_noise(tmp_path, "box")["a.f"] == Spread(0.001, MEMORY)
    remember_noise(tmp_path, "box", {"a.f": Spread(0.03, 6)})
    assert remembered_noise(tmp_path, "box")["a.f"].sd > 0.009


@pytest.mark.parametrize(
    "entry", ["[0.1]", "[true, 6]", "[-0.1, 6]", "[NaN, 6]", "[0.1, 0]", "[0.1, 2.5]", '"x"', "null"]
)
def test_what_is_no_spread_is_forgotten(tmp_path: Path, entry: str) -> None:
    text = f'{{"format": 1, "machines": {{"box": {{"a.f": {entry}, "a.g": [0.02, 6]}}}}}}'
    (tmp_path / FILE).write_text(text)
    assert remembered_noise(tmp_path, "box") == {"a.g": Spread(0.02, 6)}
    remember_noise(tmp_path, "box", {"a.f": Spread(0.01, 6)})
    assert remembered_noise(tmp_path, "box")["a.f"] == Spread(0.01, 6)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1, "machines": {"box": 3}}'])
def test_a_broken_file_remembers_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    assert remembered_noise(tmp_path, "box") == {}
