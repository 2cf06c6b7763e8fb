"""Which problems of the suite count, by what was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from regress.model import Benchmark, SuiteProblem
from regress.run.plan import Selection
from regress.run.problems import apart

STALE = (
    "import gone\nclass Loading(Base):\n    tags = 'disk'\n    async def time_load(self): ...\ndef time_save(n): ...\n"
)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "io").mkdir()
    (tmp_path / "io" / "stale.py").write_text(STALE)
    return tmp_path


def counts(suite: Path, *patterns: str, tags: tuple[str, ...] = (), name: str = "io.stale") -> bool:
    good = [
        Benchmark("good.time_sort", "time", "seconds", [["1", "2"]], ["n"], "v", "wall_time", False),
        Benchmark("good.Base.time_open", "time", "seconds", [], [], "v", "wall_time", False),
    ]
    problem = SuiteProblem(f"suite.{name}", "No module named 'gone'", name=name)
    problems, told = apart([problem], Selection(patterns, tags), good, suite)
    assert (problems == [problem]) is (told == [])
    assert all("not selected" in line and "io.stale" in line for line in told)
    return problems == [problem]


@pytest.mark.parametrize("pattern", ["good", "good.time_sort", "time_sort", r"good\.time_sort\(1\)", "^good", "sort"])
def test_a_file_that_has_nothing_of_what_was_asked_for_does_not_count(suite: Path, pattern: str) -> None:
    assert not counts(suite, pattern)


@pytest.mark.parametrize(
    "pattern",
    ["stale", "io", "time_save", r"time_save\(3\)", "Loading", "time_open", "good|save", "nothing_has_this", "("],
)
def test_a_file_that_may_have_it_counts(suite: Path, pattern: str) -> None:
    """`time_open` may be inherited; of a pattern that matches nothing nobody knows where it would."""
    assert counts(suite, pattern)
    assert counts(suite, "good", pattern)


def test_without_a_selection_and_of_what_cannot_be_read_every_problem_counts(suite: Path) -> None:
    assert counts(suite)
    assert counts(suite, "good", name="elsewhere")
    assert counts(suite, "good", name="")
    assert [counts(suite, tags=(tag,)) for tag in ("disk", "core")] == [True, False]


def test_a_class_is_looked_for_in_its_file(suite: Path) -> None:
    assert [counts(suite, pattern, name="io.stale.Loading") for pattern in ("load", "sort")] == [True, False]
