"""A side made ready to import: its tree, its build, its interpreter and its import path.

A git worktree of the commit (or the working tree itself), or a wheel that is unpacked, under an interpreter that has what the
project needs; the side's own packages go first on the path.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from regress.config import Config
from regress.config import environment as environment_of
from regress.errors import BuildFailed, NothingMeasured, RegressError
from regress.git import Repository
from regress.model import DEFAULT_ENVIRONMENT, Environment, Side
from regress.run import wheels
from regress.run.shell import shell

EXTENSIONS = (".so", ".pyd")
BUILT = "regress-built"
"""The mark of a finished build. It lies in the worktree's own git folder: it goes when the worktree is made anew, and neither
the build nor `git status` sees it."""


@dataclass(frozen=True)
class Prepared:
    """A side that can be measured. `import_roots` go first on the path of its processes."""

    side: Side
    tree: Path
    python: str
    import_roots: tuple[Path, ...]
    variables: dict[str, str] = field(default_factory=dict)
    """The whole environment of its processes."""
    build_s: float = 0.0
    environment: Environment = field(default_factory=Environment)
    checkout: tuple[Path, ...] = ()
    """The import roots of the invoking checkout, in which compiled files may lie that the side's tree does not have."""


def prepare(side: Side, config: Config, repository: Repository, cache: Path, note: Callable[[str], None]) -> Prepared:
    """Check the side's code out and build it, or unpack its wheel, if that was not done before, and find what to import.

    `side.environment` names one of the configuration's environments. Raises ConfigError where there is none of that name,
    BuildFailed (head) or NothingMeasured (base) when the build fails, NothingMeasured where there is no interpreter or wheel.
    """
    environment = environment_of(config, side.environment)
    python = _interpreter(config, environment)
    build_s = 0.0
    if environment.wheel or environment.fetch:
        tree = wheels.unpacked(environment, config.root, python, cache / "wheels", note)
        roots: tuple[Path, ...] = (tree,)
    else:
        if side.dirty:
            tree = repository.root
        else:
            # An environment's builds are for its interpreter and libraries: no other environment meets them.
            own = "" if environment.name == DEFAULT_ENVIRONMENT else f"-{environment.name}"
            tree = repository.worktree(side.commit, cache / f"worktrees{own}")
            build_s = _build(side, tree, python, config, repository, cache / "builds", note)
        roots = import_roots(tree, config)
    variables = {**_variables(roots, cache), **environment.variables}
    beside = import_roots(repository.root, config) if tree != repository.root else ()
    return Prepared(side, tree, python, roots, variables, build_s, environment, beside)


def unbuilt(side: Prepared, failure: str) -> str:
    """The compiled file that an import failed for want of: one that the invoking checkout has and the side's tree has not, with
    its name in the failure's message. Empty where there is none."""
    for root, own in zip(side.checkout, side.import_roots, strict=False):
        for ending in EXTENSIONS:
            for path in root.rglob(f"*{ending}"):
                name = path.name.partition(".")[0]
                if re.search(rf"\b{re.escape(name)}\b", failure) and not (own / path.relative_to(root)).exists():
                    return str(path.relative_to(root))
    return ""


def _interpreter(config: Config, environment: Environment) -> str:
    """The interpreter under test: a path (a relative one starts at the configuration's folder) or a name on PATH."""
    wanted = environment.python or config.settings.python
    if not wanted:
        return sys.executable
    # Not resolved: the link in a virtual environment is what makes Python see that environment.
    path = str(config.root / Path(wanted).expanduser()) if os.sep in wanted else wanted
    found = shutil.which(path)
    if found is None:
        where = f'of environment "{environment.name}"' if environment.python else 'under "regress" in asv.conf.json'
        raise NothingMeasured(
            f"there is no interpreter {wanted}",
            why=f"{path} is not an executable file" if os.sep in wanted else f"no {wanted} on PATH",
            fix=f'correct "python" {where}, or leave it out for the one that runs regress',
        )
    return found


def import_roots(tree: Path, config: Config) -> tuple[Path, ...]:
    """Folders to import the project from: `package_dir`, or src/ where it holds packages, or the project's folder itself."""
    project = tree / config.repo_subdir if config.repo_subdir else tree
    if config.settings.package_dir:
        root = project / config.settings.package_dir
        if not root.is_dir():
            raise RegressError(
                f"package_dir {config.settings.package_dir!r} is not a folder of this commit",
                why=f"looked for it in {project}",
                fix='correct "package_dir" under "regress" in asv.conf.json',
            )
        return (root,)
    source = project / "src"
    if any(next(source.glob(pattern), None) for pattern in ("*.py", "*/*.py", "*/*/*.py")):
        return (source,)
    return (project,)


def recorded_name(environment: Environment, python_version: str) -> str:
    """Name of the environment in asv's files: `worktree-py3.12`."""
    return f"{environment.name}-py" + ".".join(python_version.split(".")[:2])


def _variables(roots: tuple[Path, ...], cache: Path) -> dict[str, str]:
    inherited = os.environ.get("PYTHONPATH", "")
    paths = [str(root) for root in roots] + [os.path.abspath(path) for path in inherited.split(os.pathsep) if path]
    compiled = str(cache / "pycache")  # or measuring would leave __pycache__ folders in the user's suite
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONPYCACHEPREFIX": compiled}
    # Images for containers often forbid bytecode. There it would cost every round a compilation of all it imports, torch and
    # the standard library too; and what is kept here is in nobody's way.
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return variables


def _build(
    side: Side,
    tree: Path,
    python: str,
    config: Config,
    repository: Repository,
    cache: Path,
    note: Callable[[str], None],
) -> float:
    """Run the build commands in the tree unless they ran there before. Returns seconds."""
    commands = config.settings.build
    if not commands:
        return 0.0
    mark, log = repository.own_folder(tree) / BUILT, cache / f"{side.commit.sha}.log"
    key = hashlib.sha256("\0".join((python, *commands)).encode()).hexdigest()
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{side.commit.sha}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process builds, another that wants the same tree waits
        done = mark.read_text().split() if mark.exists() else []
        if len(done) == 2 and done[0] == key:
            return float(done[1])
        start = time.monotonic()
        for command in commands:
            note(f"building {side.label}: {command}")
            _run_build(command, side, tree, python, log, config.settings.build_timeout_s)
        seconds = time.monotonic() - start
        mark.write_text(f"{key} {seconds:.3f}")
        return seconds


def _run_build(command: str, side: Side, tree: Path, python: str, log: Path, timeout_s: float) -> None:
    variables = {
        **os.environ,
        "PYTHON": python,
        "PATH": os.pathsep.join((str(Path(python).parent), os.environ.get("PATH", ""))),
    }
    with log.open("ab") as out:
        start = out.tell()
        problem = shell(command, tree, variables, out, timeout_s)
    if problem:
        printed = log.read_bytes()[start:].decode(errors="replace").strip().splitlines()
        raise (NothingMeasured if side.name == "base" else BuildFailed)(
            f"{side.name} {side.label} does not build: {command}",
            why=f"{problem}: {printed[-1]}" if printed else f"{problem}, and nothing was printed",
            fix=f"cd {tree} && {command}    # log: {log}",
        )
