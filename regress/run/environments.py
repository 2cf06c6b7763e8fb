"""A side made ready to import: its tree, its build, its interpreter and its import path.

One kind so far, `worktree`: a git worktree of the commit (or the working tree itself) under an interpreter that has what the
project needs; the tree's own packages go first on the path.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from regress.config import Config
from regress.errors import BuildFailed, NothingMeasured, RegressError
from regress.git import Repository
from regress.model import Side

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


def prepare(side: Side, config: Config, repository: Repository, cache: Path, note: Callable[[str], None]) -> Prepared:
    """Check the side's code out, build it if that was not done before, and find what to import.

    Raises BuildFailed (head) or NothingMeasured (base) when the build fails.
    """
    if side.dirty:
        tree, build_s = repository.root, 0.0
    else:
        tree = repository.worktree(side.commit, cache / "worktrees")
        build_s = _build(side, tree, config, repository, cache / "builds", note)
    roots = import_roots(tree, config)
    python = config.settings.python or sys.executable
    return Prepared(side, tree, python, roots, _variables(roots), build_s)


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
    if source.is_dir() and any((child / "__init__.py").exists() for child in source.iterdir()):
        return (source,)
    return (project,)


def environment_name(python_version: str) -> str:
    """Name of the environment in asv's files: `worktree-py3.12`."""
    return "worktree-py" + ".".join(python_version.split(".")[:2])


def _variables(roots: tuple[Path, ...]) -> dict[str, str]:
    inherited = os.environ.get("PYTHONPATH", "")
    paths = [str(root) for root in roots] + [path for path in inherited.split(os.pathsep) if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _build(
    side: Side, tree: Path, config: Config, repository: Repository, cache: Path, note: Callable[[str], None]
) -> float:
    """Run the build commands in the tree unless they ran there before. Returns seconds."""
    commands = config.settings.build
    if not commands:
        return 0.0
    mark, log = repository.own_folder(tree) / BUILT, cache / f"{side.commit.sha}.log"
    key = hashlib.sha256("\0".join((config.settings.python or sys.executable, *commands)).encode()).hexdigest()
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{side.commit.sha}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process builds, another that wants the same tree waits
        done = mark.read_text().split() if mark.exists() else []
        if len(done) == 2 and done[0] == key:
            return float(done[1])
        start = time.monotonic()
        for command in commands:
            note(f"building {side.label}: {command}")
            _run_build(command, side, tree, log, config)
        seconds = time.monotonic() - start
        mark.write_text(f"{key} {seconds:.3f}")
        return seconds


def _run_build(command: str, side: Side, tree: Path, log: Path, config: Config) -> None:
    python = config.settings.python or sys.executable
    variables = {
        **os.environ,
        "PYTHON": python,
        "PATH": os.pathsep.join((str(Path(python).parent), os.environ.get("PATH", ""))),
    }
    with log.open("ab") as out:
        try:
            code = subprocess.run(
                command,
                shell=True,
                cwd=tree,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=config.settings.build_timeout_s,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            code = -1
    if code:
        last = (log.read_text(errors="replace").strip().splitlines() or ["no output"])[-1]
        raise (NothingMeasured if side.name == "base" else BuildFailed)(
            f"{side.name} {side.label} does not build: {command}",
            why=f"timed out after {config.settings.build_timeout_s:.0f} s"
            if code == -1
            else f"exit code {code}: {last}",
            fix=f"cd {tree} && {command}    # log: {log}",
        )
