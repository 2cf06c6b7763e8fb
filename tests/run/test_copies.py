"""Which copy of an environment is taken, with real locks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from regress.run.environments.copies import Lock, take


@dataclass
class Copy:
    _path: Path


class Copies:
    """Copies of an environment, and what is installed in each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.installed: dict[int, str] = {}
        self.clock = 0

    def take(self, commit: str) -> tuple[int, Lock]:
        """What preparing a side does."""
        number, lock = take(lambda number: Copy(self.folder / str(number)), lambda made: self._has(made, commit))
        self.installed[number] = commit
        lock.share()
        self.clock += 1
        os.utime(self.folder / f"{number}.lock", (self.clock, self.clock))
        return number, lock

    def _has(self, made: Copy, commit: str) -> bool:
        return self.installed.get(int(made._path.name)) == commit


@pytest.fixture
def copies(tmp_path: Path) -> Copies:
    return Copies(tmp_path / "environments")


def test_two_sides_take_two_copies_and_the_next_check_finds_them(copies: Copies) -> None:
    sides = [copies.take("a"), copies.take("b")]
    assert [number for number, _ in sides] == [0, 1]
    del sides
    again = [copies.take("b"), copies.take("a")]
    assert [number for number, _ in again] == [1, 0]


def test_who_needs_the_same_shares_it(copies: Copies) -> None:
    held = [copies.take("a") for _ in range(3)]
    assert [number for number, _ in held] == [0, 0, 0]


def test_the_copy_that_was_not_used_for_the_longest_time_is_changed(copies: Copies) -> None:
    sides = [copies.take("a"), copies.take("b")]
    del sides
    copies.take("a")
    first = copies.take("c")
    assert first[0] == 1, "a was used last"
    second = copies.take("d")
    third = copies.take("e")
    assert (second[0], third[0]) == (0, 2), "those in use are left alone"
    del first
    assert copies.take("f")[0] == 1
