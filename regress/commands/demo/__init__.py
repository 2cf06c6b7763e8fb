"""`regress demo`: a small repository with a real history, in which some commits are slower on purpose.

story.py        what each commit edits and what it plants
files.py        the files of each commit
repository.py   git
first-commit/   its files: `common`, and over it `torch` or `scripted`; the hyphen keeps it from passing for a package
"""

from __future__ import annotations

import contextlib
import ctypes
import shutil
from dataclasses import dataclass
from pathlib import Path

from regress.errors import RegressError
from regress.text.wording import quoted, reason

from .files import commits as commits_of
from .repository import DemoRepository
from .story import PLANTED, STORY, Planted, StoryStep

__all__ = ["PLANTED", "DemoCreated", "Planted", "create"]

LEAST_COMMITS = len(STORY) + 1
AUTHORS = (
    ("Mara Lindqvist", "mara@example.org"),
    ("Tomás Öberg", "tomas@example.org"),
    ("Ines Okafor", "ines@example.org"),
)
HEAD_DATE_S = 1_751_292_000
"""30 June 2025, 14:00 UTC: fixed, so that the same demo has the same commits everywhere."""
DAY_S = 24 * 60 * 60


@dataclass(frozen=True)
class DemoCreated:
    """A demo repository that was made, and the command to try on it."""

    directory: Path
    commits: int
    scripted: bool
    """The timings are simulated, not measured."""
    next_command: str


def create(directory: Path, commits: int = LEAST_COMMITS, scripted: bool | None = None) -> DemoCreated:
    """Make the demo repository in `directory`, which is new or empty.

    `scripted` chooses the scripted device; None: only where there is no CUDA device. Raises RegressError for a folder in use,
    for fewer commits than the story has, and where git fails.
    """
    if commits < LEAST_COMMITS:
        raise RegressError(
            f"a demo of {commits} commits is too short",
            why=f"the planted changes take {LEAST_COMMITS}",
            fix=quoted("regress", "demo", directory, "--commits", str(LEAST_COMMITS)),
        )
    _refuse_used(directory)
    if scripted is None:
        scripted = cuda_devices() == 0
    try:
        _write(directory, commits, scripted)
    except BaseException as error:  # Ctrl-C too: half a demo would be in the way of the next one
        _clear(directory)
        if isinstance(error, OSError):
            why = reason(error)
            raise RegressError(f"cannot write {directory}", why=why, fix="regress demo OTHER_FOLDER") from error
        raise
    return DemoCreated(directory, commits, scripted, f"cd {quoted(directory)} && regress check HEAD~1")


def _write(directory: Path, commits: int, scripted: bool) -> None:
    repository = DemoRepository(directory)
    shas: dict[str, str] = {}
    for index, (step, tree) in enumerate(commits_of(commits, scripted)):
        date_s = HEAD_DATE_S - (commits - 1 - index) * DAY_S
        shas[step.subject] = repository.commit(tree, _message(step, shas), AUTHORS[index % len(AUTHORS)], date_s)


def _clear(directory: Path) -> None:
    """Remove what was written into the folder, which was empty or not there."""
    with contextlib.suppress(OSError):
        for path in directory.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def cuda_devices() -> int:
    """How many CUDA devices the driver shows; 0 without a driver. Opens no context."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def _refuse_used(directory: Path) -> None:
    try:
        used = any(directory.iterdir())
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        raise RegressError(
            f"{directory} is a file", why="the demo needs a folder", fix="regress demo OTHER_FOLDER"
        ) from error
    except OSError as error:
        raise RegressError(f"{directory} cannot be read", why=str(error), fix="regress demo OTHER_FOLDER") from error
    if used:
        why = "the demo creates a new repository and overwrites nothing"
        raise RegressError(f"{directory} is not empty", why=why, fix="regress demo OTHER_FOLDER")


def _message(step: StoryStep, shas: dict[str, str]) -> str:
    body = f"This reverts commit {shas[step.reverts]}." if step.reverts else step.body
    return f"{step.subject}\n\n{body}\n" if body else f"{step.subject}\n"
