"""The folder that every worker runs from: our measuring code under a private name, and asv_runner beside it.

Only this folder is put on the path of the process under test, so an installed or checked-out copy of either never mixes in.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
from pathlib import Path

from regress.files import made_at_once

PRIVATE_NAME = "_regress_measure"

START = f'''\
"""Starts a worker. Run as a file: with -m the current folder would be on the path and shadow installed packages."""

import os
import sys

ship = os.path.dirname(os.path.abspath(__file__))
if sys.path[:1] != [ship]:
    sys.path.insert(0, ship)
from {PRIVATE_NAME}.paths import arranged

sys.path[:] = arranged(sys.path, ship)

# Children that a benchmark starts with multiprocessing's spawn run this file again, under another name.
if __name__ == "__main__":
    from {PRIVATE_NAME}.process import start

    start()
'''


def ship(cache: Path) -> Path:
    """The file to run, in a folder under `cache` named by its content; made once, then reused."""
    measure = Path(__file__).parents[1] / "measure"
    spec = importlib.util.find_spec("asv_runner")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("asv_runner is not installed")
    runner = Path(spec.origin).parent
    folder = cache / "worker" / _digest(measure, runner)
    start = folder / "regress_worker.py"
    if start.exists():
        return start
    with made_at_once(folder) as fresh:
        _copy(measure, fresh / PRIVATE_NAME)
        _copy(runner, fresh / "asv_runner")
        (fresh / start.name).write_text(START)
    return start


def _copy(folder: Path, target: Path) -> None:
    """Copy the files of a package. Raises the OSError of the first that cannot be; shutil's own for a folder says no number."""
    for file in _sources(folder):
        place = target / file.relative_to(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)


def _sources(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)


def _digest(*folders: Path) -> str:
    digest = hashlib.sha256(START.encode())
    for folder in folders:
        for file in _sources(folder):
            digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]
