"""The build of a side's tree: left as it was, taken from what is kept of an equal one, or made by the build commands."""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path

from regress.errors import BuildFailed, NothingMeasured, RegressError
from regress.model import Environment, Side
from regress.run.environments.copies import Lock
from regress.run.environments.kept import BuildStore, key_of
from regress.run.environments.prepared import BuildSite
from regress.run.plan import covers
from regress.run.shell import shell, why
from regress.text.wording import quoted

BUILT = "regress-built"
"""The mark of a build: its key, and seconds once it is finished. It lies in the worktree's own git folder: it goes when the
worktree is made again, and neither the build nor `git status` sees it. Beside it lies the lock of who uses the build."""
_LOCK_TRIES = 100


def build(side: Side, tree: Path, python: str, environment: Environment, site: BuildSite) -> tuple[float, Lock | None]:
    """Have the tree built: as it was left, from what is kept of an equal build, or by the build commands. Returns seconds, and
    the lock by which nobody builds it in another way while it is in use.

    Raises RegressError if somebody uses another build of it."""
    if not site.config.settings.build:
        return 0.0, None
    mark, key = site.repository.worktrees.own_folder(tree) / BUILT, _key(side, python, environment, site)
    lock = Lock(mark.with_name(f"{BUILT}.lock"))
    try:
        for _ in range(_LOCK_TRIES):
            lock.share()  # waits while another process builds it
            build_s = _took(mark, key)
            if build_s is not None:
                return build_s, lock
            if lock.taken(shared=False):  # if not, it may have lost the shared one
                _build(side, tree, python, environment, site, mark, key)
            else:
                time.sleep(random.uniform(0.02, 0.1))
    except BaseException:
        lock.close()
        raise
    lock.close()
    raise RegressError(
        f"{side.name} {side.label} cannot be built now",
        why=f"another regress is measuring another build of it, in {tree}",
        fix="wait until the other one has ended",
    )


def _marked(mark: Path) -> list[str]:
    return mark.read_text().split() if mark.exists() else []


def _took(mark: Path, key: str) -> float | None:
    """Seconds that the build of that key has taken; None if there is none, or it is not finished."""
    marked = _marked(mark)
    return float(marked[1]) if len(marked) == 2 and marked[0] == key else None


def _build(
    side: Side, tree: Path, python: str, environment: Environment, site: BuildSite, mark: Path, key: str
) -> None:
    """Build it, as the only one that has the tree's lock."""
    settings, cache = site.config.settings, site.cache / "builds"
    log, kept = cache / f"{side.commit.sha}.log", BuildStore(cache / "kept", settings.build_cache_bytes)
    cache.mkdir(parents=True, exist_ok=True)
    if _took(mark, key) is not None:  # another process was first
        return
    marked = _marked(mark)
    if marked and marked[0] != key:
        site.repository.worktrees.clean(tree)  # another build's files are no part of this one
    mark.write_text(key)
    with kept.used(key) as folder:
        if folder is not None and _fits(folder, side, site):
            shutil.copytree(folder, tree, symlinks=True, dirs_exist_ok=True)
            mark.write_text(f"{key} 0")
            return
    start = time.monotonic()
    for command in settings.build:
        site.note(f"building {side.label}: {command}")
        _run_build(command, side, tree, python, environment, log, settings.build_timeout_s)
    mark.write_text(f"{key} {time.monotonic() - start:.3f}")
    outputs = site.repository.worktrees.outputs(tree)
    if outputs is not None:
        kept.keep(key, lambda fresh: _copy(outputs, tree, fresh))


def _fits(folder: Path, side: Side, site: BuildSite) -> bool:
    """Whether no file of the commit is among those of the build: where only some files are its inputs, another commit may have
    had it made."""
    files = site.repository.contents(side.commit.sha)
    return not any(str(path.relative_to(folder)) in files for path in folder.rglob("*"))


def _key(side: Side, python: str, environment: Environment, site: BuildSite) -> str:
    settings = site.config.settings
    files = site.repository.contents(side.commit.sha)
    wanted = settings.build_inputs
    inputs = {name: files[name] for name in files if not wanted or any(covers(pattern, name) for pattern in wanted)}
    if not inputs:
        raise NothingMeasured(
            f"no file of {side.name} {side.label} is an input of its build",
            why=f"build_inputs has {', '.join(wanted)}",
            fix='correct "build_inputs" under "regress" in asv.conf.json',
        )
    variables = [f"{name}={value}" for name, value in sorted(environment.variables.items())]
    return key_of(inputs, python, os.path.realpath(python), *settings.build, *variables)


def _copy(names: list[str], tree: Path, to: Path) -> None:
    for name in names:
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(tree / name, target, follow_symlinks=False)


def _run_build(
    command: str, side: Side, tree: Path, python: str, environment: Environment, log: Path, timeout_s: float
) -> None:
    variables = {**os.environ, **environment.variables, "PYTHON": python}
    variables["PATH"] = os.pathsep.join((str(Path(python).parent), variables.get("PATH", "")))
    with log.open("ab") as out:
        start = out.tell()
        problem = shell(command, tree, variables, out, timeout_s)
    if problem:
        printed = log.read_bytes()[start:].decode(errors="replace")
        raise (NothingMeasured if side.name == "base" else BuildFailed)(
            f"{side.name} {side.label} does not build: {command}",
            why=why(problem, printed),
            fix=f"{quoted('cd', tree)} && {_by_hand(command, python)}    # log: {log}",
        )


def _by_hand(command: str, python: str) -> str:
    """The command as it does the same in the user's shell."""
    return f"export PYTHON={quoted(python)} && {command}" if "$PYTHON" in command else command
