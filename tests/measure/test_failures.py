"""Exceptions as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from regress.measure.failures import failure_of, last_line


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (KeyError("gone"), "error", "KeyError: 'gone'"),
        (RuntimeError("first line\n\n  second line"), "error", "RuntimeError: first line; second line"),
        (AssertionError(), "error", "AssertionError"),
        (MemoryError(), "oom", "MemoryError"),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory"), "oom", "RuntimeError: RESOURCE_EXHAUSTED: Out of memory"),
        (OSError("cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY"), "oom", "OSError: cuMemAlloc results in "),
        (
            type("OutOfMemoryError", (RuntimeError,), {})("no"),
            "oom",
            "tests.measure.test_failures.OutOfMemoryError: no",
        ),
    ],
)
@pytest.mark.parametrize("notes", [(), ("For simplicity, internal frames were removed.", "a note\nof two lines")])
def test_the_message_is_the_errors_own_and_not_its_notes(
    error: BaseException, kind: str, message: str, notes: tuple[str, ...]
) -> None:
    vars(error)["__notes__"] = list(notes)  # as add_note does, which Python has from 3.11 on
    failure = failure_of(error, [])
    assert failure.kind == kind
    assert failure.message.startswith(message)
    assert all(note in failure.detail for note in notes), "the whole is told where there is room for it"


def test_a_syntax_error_is_told_by_what_is_wrong() -> None:
    with pytest.raises(SyntaxError) as caught:
        compile("x = (\n", "b.py", "exec")
    vars(caught.value)["__notes__"] = ["a note"]
    failure = failure_of(caught.value, [])
    assert failure.message == f"SyntaxError: {caught.value.msg}"
    assert failure.where == "b.py:1"


INNER = 'Traceback (most recent call last):\n  File "<string>", line 3\nValueError: what is wrong\n'


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (f"Subprocess failed: {INNER}", "RuntimeError: Subprocess failed: ValueError: what is wrong"),
        (f"Subprocess failed: {'x' * 900}", None),
        ("Subprocess failed: bye", "RuntimeError: Subprocess failed: bye"),
    ],
)
def test_of_another_process_it_is_said_what_it_ended_with(message: str, said: str | None) -> None:
    line = last_line(RuntimeError(message + "the end" if said is None else message))
    assert line == said if said is not None else line.endswith("the end") and len(line) < 510


@pytest.mark.parametrize("mark", ["folder", "file", "none"])
def test_the_line_is_given_from_the_top_of_its_repository(tmp_path: Path, mark: str) -> None:
    """Also in a worktree, where .git is a file: both sides then name the same file, and others can open it."""
    file = tmp_path / "src" / "proj.py"
    file.parent.mkdir()
    file.write_text("def work():\n    return [][1]\n")
    if mark != "none":
        git = tmp_path / ".git"
        git.mkdir() if mark == "folder" else git.write_text("gitdir: elsewhere\n")
    names = dict[str, Any]()
    exec(compile(file.read_text(), str(file), "exec"), names)
    with pytest.raises(IndexError) as caught:
        names["work"]()
    where = failure_of(caught.value, [str(file.parent)]).where
    assert where == (f"{file}:2" if mark == "none" else "src/proj.py:2")
