"""What of the suite's code makes a benchmark another one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from regress.measure.code import Code

FILES = {
    "__init__.py": "",
    "b.py": '''
"""Benchmarks."""
import numpy as np
from .helper import SIZE, make
from . import tables
import json

np.random.seed(0)
REPEATS = 3
UNUSED = 1


def load():
    with open("data.json") as file:
        return json.load(file)


class Base:
    tags = ["core"]

    def size(self):
        return SIZE


class T(Base):
    number = 10

    def setup(self):
        """Makes the input."""
        self.x = make(self.size())  # once

    def time_f(self):
        return REPEATS * self.x

    def time_g(self):
        return load(), tables.ROWS


def time_alone():
    return 1
''',
    "helper.py": "SIZE = 100\nOTHER = 5\ndef scaled(n): return 2 * n\ndef make(n): return [0] * scaled(n)\n",
    "tables.py": "ROWS = 3\n",
    "unrelated.py": "X = 1\n",
    "data.json": "{}",
}
Uses = Callable[..., dict[str, str]]


@pytest.fixture
def uses(tmp_path: Path) -> Uses:
    """What `b` uses once a text in a file was replaced."""

    def after(
        file: str = "", old: str = "", new: str = "", name: str = "T", function: str = "time_f"
    ) -> dict[str, str]:
        folder = tmp_path / "benchmarks"
        folder.mkdir(exist_ok=True)
        for changed_file, text in FILES.items():
            assert changed_file != file or old in text
            (folder / changed_file).write_text(text.replace(old, new) if changed_file == file else text)
        return Code(str(folder)).used_by(str(folder / "b.py"), name, function)

    return after


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("b.py", "  # once", ""),
        ("b.py", "Makes the input", "Another word"),
        ("b.py", "return REPEATS * self.x", "return (REPEATS *\n            self.x)"),
        ("b.py", "UNUSED = 1", "UNUSED = 2"),
        ("b.py", "return load()", "return 7, load()"),
        ("b.py", 'tags = ["core"]', 'tags = ["other"]'),
        ("b.py", "number = 10", "number = 20"),
        ("b.py", "return 1", "return 2"),
        ("helper.py", "OTHER = 5", "OTHER = 6"),
        ("unrelated.py", "1", "2"),
        ("data.json", "{}", "[]"),
    ],
)
def test_what_makes_no_difference(uses: Uses, file: str, old: str, new: str) -> None:
    assert uses(file, old, new) == uses()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("b.py", "return REPEATS * self.x", "return self.x"),
        ("b.py", "REPEATS = 3", "REPEATS = 4"),
        ("b.py", "make(self.size())", "make(2)"),
        ("b.py", "return SIZE", "return SIZE + 1"),
        ("b.py", "seed(0)", "seed(1)"),
        ("helper.py", "SIZE = 100", "SIZE = 150"),
        ("helper.py", "2 * n", "3 * n"),
    ],
)
def test_what_makes_it_another_one_and_where(uses: Uses, file: str, old: str, new: str) -> None:
    before, after = uses(), uses(file, old, new)
    assert {commit for commit in before if before[commit] != after[commit]} == {file}


def test_data_and_modules_that_are_used_as_a_whole(uses: Uses) -> None:
    whole = {"name": "T", "function": "time_g"}
    before = uses(**whole)
    assert set(before) == {"b.py", "helper.py", "tables.py", "data.json"}
    for file, old, new in (("data.json", "{}", "[]"), ("tables.py", "3", "4")):
        after = uses(file, old, new, **whole)
        assert {commit for commit in before if before[commit] != after[commit]} == {file}


def test_a_function_uses_what_it_names(uses: Uses) -> None:
    alone = {"name": "time_alone", "function": "time_alone"}
    assert set(uses(**alone)) == {"b.py"}
    assert (
        uses("b.py", "REPEATS = 3", "REPEATS = 4", **alone)
        == uses(**alone)
        != uses("b.py", "return 1", "return 2", **alone)
    )


def test_what_cannot_be_found_is_not_known(uses: Uses, tmp_path: Path) -> None:
    assert uses(name="Made", function="time_made") == {}
    (tmp_path / "odd.py").write_text("def time_x(:\n")
    assert Code(str(tmp_path)).used_by(str(tmp_path / "odd.py"), "time_x", "time_x") == {}
