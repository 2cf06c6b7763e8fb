"""A built wheel as the code of a side: unpacked once, and imported from there.

Nothing is installed: what the wheel needs has to be in the interpreter under test already, as for any other side.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from regress.errors import NothingMeasured
from regress.model import Environment
from regress.run.shell import shell

ENDING = ".whl"
FETCH_TIMEOUT_S = 1800.0
SCHEMES = ("purelib", "platlib")
"""Folders of a wheel's `.data` whose content belongs where packages are."""


def unpacked(environment: Environment, root: Path, python: str, cache: Path, note: Callable[[str], None]) -> Path:
    """The folder with the content of the environment's wheel. `root` is the folder of the configuration.

    Raises NothingMeasured if there is no such wheel, or it cannot be fetched or read.
    """
    wheel = _fetched(environment, root, python, cache, note) if environment.fetch else _found(environment, root)
    folder = cache / hashlib.sha256(wheel.read_bytes()).hexdigest()[:16]
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=cache))
        try:
            with zipfile.ZipFile(wheel) as content:
                content.extractall(fresh)
        except (zipfile.BadZipFile, OSError) as error:
            shutil.rmtree(fresh, ignore_errors=True)
            raise _unusable(environment, f"{wheel} cannot be unpacked: {error}") from None
        for scheme in SCHEMES:
            for data in fresh.glob(f"*.data/{scheme}"):
                shutil.copytree(data, fresh, dirs_exist_ok=True)
        _put(fresh, folder)
    return folder


def _found(environment: Environment, root: Path) -> Path:
    wheel = root / Path(environment.wheel).expanduser()
    if not wheel.is_file():
        raise _unusable(environment, f"there is no file {wheel}")
    return wheel


def _fetched(environment: Environment, root: Path, python: str, cache: Path, note: Callable[[str], None]) -> Path:
    """The wheel that the command delivers; it runs once."""
    key = "\0".join((environment.fetch, python))
    folder = cache / f"fetched-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    if not folder.exists():
        note(f"fetching the wheel of {environment.name}: {environment.fetch}")
        cache.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=cache))
        log = cache / f"{folder.name}.log"
        path = os.pathsep.join((str(Path(python).parent), os.environ.get("PATH", "")))
        variables = {**os.environ, "WHEELS": str(fresh), "PYTHON": python, "PATH": path}
        with log.open("wb") as out:
            problem = shell(environment.fetch, root, variables, out, FETCH_TIMEOUT_S)
        names = sorted(path.name for path in fresh.glob(f"*{ENDING}"))
        if problem or len(names) != 1:
            shutil.rmtree(fresh, ignore_errors=True)
            delivered = f"it put {', '.join(names) or 'no wheel'} into $WHEELS, and one wheel is expected"
            printed = log.read_text(errors="replace").strip().splitlines()
            said = f" ({printed[-1]})" if printed else ""
            raise _unusable(environment, f"{environment.fetch}: {problem or delivered}{said}")
        _put(fresh, folder)
    return next(folder.glob(f"*{ENDING}"))


def _put(fresh: Path, folder: Path) -> None:
    """Give the folder its name, all at once: one that is there is complete."""
    try:
        fresh.rename(folder)
    except OSError:  # another process was first
        shutil.rmtree(fresh, ignore_errors=True)


def _unusable(environment: Environment, why: str) -> NothingMeasured:
    return NothingMeasured(
        f'environment "{environment.name}" has no wheel',
        why=why,
        fix=f'correct "{environment.name}" under "environments"',
    )
