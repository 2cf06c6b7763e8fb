"""A built wheel as the code of a side: unpacked once, and imported from there.

Nothing is installed: what the wheel needs has to be in the interpreter under test already, as for any other side.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

from regress.errors import NothingMeasured
from regress.files import made_at_once
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
        with made_at_once(folder) as fresh:
            try:
                with zipfile.ZipFile(wheel) as content:
                    content.extractall(fresh)
            except (zipfile.BadZipFile, OSError) as error:
                raise _unusable(environment, f"{wheel} cannot be unpacked: {error}") from None
            for scheme in SCHEMES:
                for data in fresh.glob(f"*.data/{scheme}"):
                    shutil.copytree(data, fresh, dirs_exist_ok=True)
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
        with made_at_once(folder) as fresh:
            _fetch(environment, root, python, fresh, folder.with_name(f"{folder.name}.log"))
    return next(folder.glob(f"*{ENDING}"))


def _fetch(environment: Environment, root: Path, python: str, fresh: Path, log: Path) -> None:
    """Have the command deliver one wheel into the folder."""
    path = os.pathsep.join((str(Path(python).parent), os.environ.get("PATH", "")))
    variables = {**os.environ, "WHEELS": str(fresh), "PYTHON": python, "PATH": path}
    with log.open("wb") as out:
        problem = shell(environment.fetch, root, variables, out, FETCH_TIMEOUT_S)
    names = sorted(path.name for path in fresh.glob(f"*{ENDING}"))
    if problem or len(names) != 1:
        delivered = f"it put {', '.join(names) or 'no wheel'} into $WHEELS, and one wheel is expected"
        printed = log.read_text(errors="replace").strip().splitlines()
        said = f" ({printed[-1]})" if printed else ""
        raise _unusable(environment, f"{environment.fetch}: {problem or delivered}{said}")


def _unusable(environment: Environment, why: str) -> NothingMeasured:
    return NothingMeasured(
        f'environment "{environment.name}" has no wheel',
        why=why,
        fix=f'correct "{environment.name}" under "environments"',
    )
