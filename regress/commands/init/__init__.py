"""`regress init`: the configuration of a repository, and what an existing suite is made of.

files.py        what is written where there is nothing
text.py         the text of asv.conf.json, and how the block of our settings gets into one that is there
classified.py   which cases are CPU and which CUDA, and with which synchronizes
described.py    the report on a suite: what a check of it takes, and what to look after
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from regress import config as configuration
from regress.commands.init import files
from regress.commands.init.classified import Classified, classify
from regress.commands.init.described import ABOUT, described, selected, untried
from regress.commands.init.text import File, block
from regress.config import environment as environment_of
from regress.errors import BuildFailed, NothingMeasured, RegressError, RevisionError, StoreError
from regress.git import Repository, open_repository
from regress.history.kept import StateFile
from regress.model import DEFAULT_ENVIRONMENT, Check, Report, Side
from regress.run.environments import Prepared
from regress.run.execute import Watcher
from regress.session import Request, Session
from regress.text.wording import quoted

BUDGET_S = 60.0
FILE, FORMAT, KEPT = "classified.json", 3, 20
"""In the cache: the settings found last, which `--write` adds, and what was not tried, of this many states of suites."""


class LookedOver(NamedTuple):
    """A suite that was classified, and is as it was since."""

    needed: dict[str, Any]
    """Settings that the configuration needs, by their names."""
    left: str
    """What was not tried, in words."""


def init(
    request: Request, directory: Path, watcher: Watcher, *, write: bool = False, budget_s: float = BUDGET_S
) -> Report:
    """Write a configuration and a first suite if there are none. A suite that is there is classified, as far as the budget
    goes, and the block for its asv.conf.json given, or with `write` added."""
    start = time.monotonic()
    repository = _repository(directory)
    fresh = request.config_file is None and configuration.find(directory) is None
    wrote = _configured(directory, repository) if fresh else []
    session = Session(replace(request, start=directory))
    file = File.of(session.config.path)
    if write and not fresh and file.has_block:
        raise RegressError(
            f'{file.path} has a "regress" block already',
            why="init adds a block, but changes none",
            fix="run regress init, and add what it shows by hand",
        )
    if not any(session.config.benchmark_dir.rglob("*.py")):
        wrote.append(_wrote(directory, *files.write_suite(session.config.benchmark_dir)))
        first = () if _has_commit(session) else (("first", "git add -A && git commit"),)
        next_commands = (*first, ("try", "regress run --quick"), ("then", "regress check"))
        report = Report("init", warnings=session.config.warnings, suggestions=next_commands)
    elif fresh:
        report = _of_new_configuration(session, directory, watcher, budget_s)
    else:
        report = _of_existing(session, file, watcher, write, budget_s)
    return replace(
        report,
        checks=(*wrote, *report.checks),
        suggestions=_from_here(report.suggestions, request, directory),
        duration_s=time.monotonic() - start if report.cases else 0.0,
    )


def _repository(directory: Path) -> Repository:
    if directory.exists() and not directory.is_dir():
        raise RegressError(f"{directory} is a file", why="init sets up a folder", fix="regress init FOLDER")
    if not directory.exists():
        name, why = quoted(str(directory)), "init sets up an existing repository"
        raise RegressError(f"there is no folder {directory}", why=why, fix=f"git init {name} && regress init {name}")
    return open_repository(directory)


def _configured(directory: Path, repository: Repository) -> list[Check]:
    """Write the configuration and what git is to ignore."""
    path = files.write_configuration(directory, repository)
    return [_wrote(directory, path), *_ignored(directory, files.IGNORED, repository)]


def _of_new_configuration(session: Session, directory: Path, watcher: Watcher, budget_s: float) -> Report:
    """The report on a suite without a configuration so far: the new one gets the patterns for it. What is wrong with the suite
    does not take the configuration back."""
    try:
        seen = _classified(session, session.prepare(_side(session), watcher), watcher, budget_s)
    except RegressError as error:
        return Report("init", (error.exit_code,), "FAIL", checks=(Check("suite", "fail", error.cause, error.fix),))
    patterns = [] if seen.interrupted else seen.patterns()
    if patterns:
        files.write_configuration(directory, session.repository, patterns)
    return described(session, seen)


def _of_existing(session: Session, file: File, watcher: Watcher, write: bool, budget_s: float) -> Report:
    """The report on a suite with a configuration, and the block for it, or with `write` the word that it was added."""
    key = _state(session)
    kept = StateFile(session.cache / FILE, "suites", LookedOver, FORMAT)
    known = kept.read().get(key) if write else None
    if known is not None:  # looked over before, and nothing has changed since
        checks = (*_added(session, file, known.needed), *untried(session, known.left))
        return Report("init", checks=checks, suggestions=(("then", "regress check"),))
    used, prepared, told = _prepared(session, watcher)
    seen = _classified(used, prepared, watcher, budget_s)
    report = described(used, seen)
    report = replace(report, checks=(*told, *report.checks))
    if seen.interrupted:
        return report
    patterns = seen.patterns()
    needed = {**({"cuda": patterns} if patterns else {}), **({"environment": DEFAULT_ENVIRONMENT} if told else {})}
    with contextlib.suppress(StoreError), kept.changing() as suites:
        suites.pop(key, None)
        suites[key] = LookedOver(needed, seen.left)
        for old in list(suites)[:-KEPT]:
            del suites[old]
    if write:
        return replace(report, checks=(*_added(session, file, needed), *report.checks))
    shown = _block(session, file, needed)
    if shown is None:
        return replace(report, checks=(_nothing_to_add(file), *report.checks))
    report = replace(report, block=shown)
    if file.has_block:
        return report
    write_it = quoted("regress", "init", "--write", *selected(session))
    return replace(report, suggestions=(("next", write_it), *report.suggestions))


def _has_commit(session: Session) -> bool:
    """Whether there is anything that can be measured."""
    try:
        session.repository.resolve("HEAD")
    except RevisionError:
        return False
    return True


# -- an existing suite ---------------------------------------------------------------------------------------------------


def _side(session: Session) -> Side:
    """What is tried: the working tree's code, compiled files and all, where it is neither installed nor built from a commit."""
    side = session.tree_side("head")
    made = environment_of(session.config, "").asv or session.config.settings.build
    return side if made or session.repository.is_bare else replace(side, revision="the working tree", dirty=True)


def _prepared(session: Session, watcher: Watcher) -> tuple[Session, Prepared, tuple[Check, ...]]:
    """The suite's side in the environment that checks take. Where that is one of asv's that cannot be had here, the side in a
    worktree, with the session that takes it for the usual one, and the word that it is so."""
    try:
        return session, session.prepare(_side(session), watcher), ()
    except (NothingMeasured, BuildFailed) as error:
        if not environment_of(session.config, "").asv:
            raise
        overrides = {**session.request.overrides, "environment": DEFAULT_ENVIRONMENT}
        other = Session(replace(session.request, overrides=overrides))
        what = f"{error.cause}; tried in a worktree under this interpreter instead"
        check = Check("environment", "warn", what, error.fix)
        return other, other.prepare(_side(other), watcher), (check,)


def _classified(session: Session, prepared: Prepared, watcher: Watcher, budget_s: float) -> Classified:
    job = session.job((prepared,), 1)
    with session.devices.held(watcher):
        return classify(job, watcher, budget_s)


def _state(session: Session) -> str:
    """A word that is another one when the suite, the configuration, the code, the device or what was asked for is."""
    config = session.config
    texts = [path.read_bytes() for path in (config.path, *sorted(config.benchmark_dir.rglob("*.py"))) if path.is_file()]
    repository = session.repository
    changed = [repository.root / name for name in repository.changed_files(session.own_paths)]
    parts = [
        *(hashlib.sha256(text).hexdigest() for text in texts),
        repository.resolve("HEAD").sha,
        *(f"{path} {path.lstat().st_mtime_ns}" for path in changed if path.exists()),
        *session.devices.uuids,
        *selected(session),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


# -- the block -----------------------------------------------------------------------------------------------------------


def _block(session: Session, file: File, needed: Mapping[str, Any]) -> tuple[str, str] | None:
    """Where to add something, and what; None where nothing has to be added."""
    if file.has_block:
        every = {**needed, **({"cuda": [*session.config.settings.cuda, *needed["cuda"]]} if "cuda" in needed else {})}
        lines = [f"    {json.dumps(key)}: {json.dumps(value)}," for key, value in every.items()]
        return (f'"regress" in {file.path.name}', "\n".join(lines)) if lines else None
    return (file.path.name, "\n".join(block(needed))) if needed or not file.is_plain else None


def _added(session: Session, file: File, needed: Mapping[str, Any]) -> list[Check]:
    """The block written into the configuration, and what is to be ignored into .gitignore."""
    config = session.config
    if not needed and file.is_plain:
        return [_nothing_to_add(file)]
    files.write(file.path, file.with_block(needed), overwrite=True)
    report_dir = (config.root / config.settings.report_dir).resolve()
    inside = [
        os.path.relpath(path, config.root) for path in (config.html_dir, report_dir) if path.is_relative_to(config.root)
    ]
    held = config.root.is_relative_to(session.repository.root)
    ignored = _ignored(config.root, inside, session.repository) if held else []
    return [Check("wrote", "ok", f'{file.path.name}: "regress"'), *ignored]


# -- words ---------------------------------------------------------------------------------------------------------------


def _wrote(directory: Path, *paths: Path) -> Check:
    return Check("wrote", "ok", ", ".join(os.path.relpath(path.resolve(), directory.resolve()) for path in paths))


def _nothing_to_add(file: File) -> Check:
    return Check("configuration", "ok", f"nothing to add to {file.path.name}")


def _ignored(folder: Path, names: Sequence[str], repository: Repository) -> list[Check]:
    lines = files.ignore(folder, names, repository)
    return [Check("wrote", "ok", f".gitignore: {', '.join(lines)}")] if lines else []


def _from_here(commands: Sequence[tuple[str, str]], request: Request, directory: Path) -> tuple[tuple[str, str], ...]:
    """The commands as they work where the user is."""
    if request.config_file is not None:
        option = f" --config {quoted(str(request.config_file))}"
        parts = [(word, *command.partition(ABOUT)) for word, command in commands]
        return tuple((word, f"{command}{option}{mark}{about}") for word, command, mark, about in parts)
    if directory.resolve() == request.start.resolve():
        return tuple(commands)
    return tuple((word, f"cd {quoted(str(directory))} && {command}") for word, command in commands)
