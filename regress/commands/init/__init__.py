"""`regress init`: the configuration of a repository, and what an existing suite is made of.

files.py        what is written where there is nothing
text.py         the text of asv.conf.json, and how the block of our settings gets into one that is there
classified.py   which cases are CPU and which CUDA, and with which synchronizes
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
from regress.commands.init.classified import MOVABLE, Classified, Kind, classify
from regress.commands.init.text import File, block
from regress.compare.confirming import LOOKS
from regress.config import environment as environment_of
from regress.errors import BuildFailed, NothingMeasured, RegressError, RevisionError, StoreError, exits
from regress.git import Repository, open_repository
from regress.history.kept import StateFile
from regress.model import DEFAULT_ENVIRONMENT, Case, Check, Report, Side
from regress.run.environments import Prepared
from regress.run.execute import Watcher
from regress.session import Request, Session
from regress.session.remarks import device_line
from regress.text.wording import counted, first_of, quoted
from regress.units import budget_words, format_duration

__all__ = ["init"]

ABOUT = "    # "
"""Between a command and how long it takes: a shell takes no notice of that."""
COMPILED = ("*.so", "*.pyd")
BUDGET_S = 60.0
FILE, FORMAT, KEPT = "classified.json", 3, 20
"""In the cache: the settings found last, which `--write` adds, and what was not tried, of this many states of suites."""
NO_PROJECT = {"build", "dist", "env", "venv", "site-packages", "node_modules"}
"""Folders whose compiled files are not the project's own."""


class LookedOver(NamedTuple):
    """A suite that was classified, and is as it was since."""

    found: dict[str, Any]
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
        what = f"{error.what} ({error.why})" if error.why else error.what
        return Report("init", (error.exit_code,), "FAIL", checks=(Check("suite", "fail", what, error.fix),))
    patterns = [] if seen.interrupted else seen.patterns()
    if patterns:
        files.write_configuration(directory, session.repository, patterns)
    return _described(session, seen)


def _of_existing(session: Session, file: File, watcher: Watcher, write: bool, budget_s: float) -> Report:
    """The report on a suite with a configuration, and the block for it, or with `write` the word that it was added."""
    key = _state(session)
    kept = StateFile(session.cache / FILE, "suites", LookedOver, FORMAT)
    known = kept.read().get(key) if write else None
    if known is not None:  # looked over before, and nothing has changed since
        checks = (*_added(session, file, known.found), *_untried(session, known.left))
        return Report("init", checks=checks, suggestions=(("then", "regress check"),))
    used, prepared, told = _prepared(session, watcher)
    seen = _classified(used, prepared, watcher, budget_s)
    report = _described(used, seen)
    report = replace(report, checks=(*told, *report.checks))
    if seen.interrupted:
        return report
    patterns = seen.patterns()
    found = {**({"cuda": patterns} if patterns else {}), **({"environment": DEFAULT_ENVIRONMENT} if told else {})}
    with contextlib.suppress(StoreError), kept.changing() as suites:
        suites.pop(key, None)
        suites[key] = LookedOver(found, seen.left)
        for old in list(suites)[:-KEPT]:
            del suites[old]
    if write:
        return replace(report, checks=(*_added(session, file, found), *report.checks))
    shown = _block(session, file, found)
    if shown is None:
        return replace(report, checks=(_nothing_to_add(file), *report.checks))
    report = replace(report, block=shown)
    if file.has_block:
        return report
    write_it = quoted("regress", "init", "--write", *_selected(session))
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
        what = f"{error.what} ({error.why}); tried in a worktree under this interpreter instead"
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
        *_selected(session),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def _selected(session: Session) -> list[str]:
    return [word for pattern in session.request.patterns for word in ("-b", pattern)]


def _described(session: Session, seen: Classified) -> Report:
    """The report on a suite: what it is made of, what a check of it takes, and what to look after."""
    measured, rounds = seen.measured, session.config.settings.check_rounds or LOOKS[0]
    took = f"about {format_duration(seen.check_s(rounds), rough=True)}"
    plan = f"{counted(seen.cases, 'case')}, {counted(rounds, 'round')} a side, builds apart"
    known = any(each.failure is None for each in seen.rounds)
    estimate = (Check("a check", "ok", f"{took}: {plan}"),) if known else ()
    fatal = any(problem.fatal for problem in seen.problems)
    hopeless = bool(seen.kinds) and set(seen.kinds.values()) == {Kind.FAILED}
    codes = exits(interrupted=seen.interrupted, nothing=hopeless, failed=fatal)
    return Report(
        command="init",
        exit_codes=codes,
        state=codes[0].word if codes[0] else "",
        machine=session.machine,
        device=device_line(measured.facts.get("head", {}), measured.rounds),
        checks=() if seen.interrupted else (*estimate, *_doubts(session, seen)),
        counts={kind.name.lower(): number for kind, number in seen.counts.items()},
        cases=seen.cases,
        remark=seen.words,
        problems=seen.problems,
        suggestions=_next(session, seen, rounds),
        warnings=(*session.config.warnings, *measured.warnings),
    )


def _next(session: Session, seen: Classified, rounds: int) -> tuple[tuple[str, str], ...]:
    """What to run next, and about how long it takes by what was measured."""
    good = [Case(each.name, tuple(each.params)) for each in seen.rounds if each.failure is None]
    left = seen.cases - len(seen.kinds) - seen.given_up
    more = (("go on", _further(session)),) if left > 0 else ()
    if not good:
        return (*more, ("next", "regress doctor"))
    one, asked = min(map(str, good)), _selected(session)
    settings = session.config.settings
    check_s, run_s = seen.check_s(rounds), seen.check_s(settings.run_rounds) / 2
    longer = ("--budget", budget_words(check_s)) if check_s > settings.budget_s else ()
    return (
        *more,
        ("try", quoted("regress", "check", "-b", one) + _about(seen.check_s(rounds, 1))),
        ("then", quoted("regress", "check", *longer, *asked) + _about(check_s)),
        ("keep", quoted("regress", "run", *asked) + _about(run_s)),
    )


def _about(seconds: float) -> str:
    return f"{ABOUT}about {format_duration(seconds, rough=True)}"


def _doubts(session: Session, seen: Classified) -> list[Check]:
    """What the reader has to see to, or should know before adding the block."""
    found = _untried(session, seen.left)
    facts, counts = seen.measured.facts.get("head", {}), seen.counts
    if "no_device" in facts:
        what = f"{facts['no_device']}; only a GPU shows which time_* use CUDA"
        found.append(Check("CUDA device", "warn", what, "regress init, on a machine with a GPU"))
    if Kind.UNKNOWN in counts:
        what = f"calls cannot be counted here: {counted(counts[Kind.UNKNOWN], 'time_* case')} may or may not use CUDA"
        found.append(Check("CUDA device", "warn", what, 'name those that are in "cuda" under "regress"'))
    mixed = {case.name for case, kind in seen.kinds.items() if kind in MOVABLE}
    mixed &= {case.name for case, kind in seen.kinds.items() if kind is Kind.CPU}
    if mixed:
        what = f"{counted(len(mixed), 'benchmark')} with cases on the CPU too, which keep wall time: {', '.join(sorted(mixed))}"
        found.append(Check("cuda", "ok", what))
    units, patterns = seen.undirected()
    patterns = [each for each in patterns if each not in session.config.settings.better]
    if patterns:
        what = f"no change in {', '.join(each or 'no unit' for each in units)} is known to be worse or better"
        line = json.dumps({**session.config.settings.better, **dict.fromkeys(patterns, "lower")})
        found.append(
            Check("better", "warn", what, f'"better": {line} under "regress", with "higher" where more is better')
        )
    failed = [case for case, kind in seen.kinds.items() if kind is Kind.FAILED]
    if failed:
        failure = next(each.failure for each in seen.rounds if each.failure and each.failure.kind != "skipped")
        what = f"{counted(len(failed), 'case')}, the first of them {failed[0]}: {failure.message}"
        found.append(Check("failing", "warn", what, quoted("regress", "run", "--quick", "-b", str(failed[0]))))
    compiled = [] if session.config.settings.build or session.repository.is_bare else _compiled(session.repository)
    if compiled:
        what = f"git does not have {first_of(compiled)}, and a commit's worktree has what git has"
        found.append(Check("build", "warn", what, 'set the command that compiles it: "build" under "regress"'))
    return found


def _untried(session: Session, left: str) -> list[Check]:
    """The word that not all cases were tried, where that is so, and how to go on."""
    return [Check("budget", "warn", left, _further(session))] if left else []


def _further(session: Session) -> str:
    return quoted("regress", "init", "--budget", "10m", *_selected(session))


def _compiled(repository: Repository) -> list[str]:
    """Compiled files of the working tree that git does not have, without those of environments and build folders."""
    names = repository.not_in_git(*COMPILED)
    return [
        name for name in names if not any(part in NO_PROJECT or part.startswith(".") for part in Path(name).parts[:-1])
    ]


# -- the block -----------------------------------------------------------------------------------------------------------


def _block(session: Session, file: File, found: Mapping[str, Any]) -> tuple[str, str] | None:
    """Where to add something, and what; None where nothing has to be added."""
    if file.has_block:
        every = {**found, **({"cuda": [*session.config.settings.cuda, *found["cuda"]]} if "cuda" in found else {})}
        lines = [f"    {json.dumps(key)}: {json.dumps(value)}," for key, value in every.items()]
        return (f'"regress" in {file.path.name}', "\n".join(lines)) if lines else None
    return (file.path.name, "\n".join(block(found))) if found or not file.is_plain else None


def _added(session: Session, file: File, found: Mapping[str, Any]) -> list[Check]:
    """The block written into the configuration, and what is to be ignored into .gitignore."""
    config = session.config
    if not found and file.is_plain:
        return [_nothing_to_add(file)]
    files.write(file.path, file.with_block(found), overwrite=True)
    report_dir = (config.root / config.settings.report_dir).resolve()
    inside = [
        os.path.relpath(each, config.root) for each in (config.html_dir, report_dir) if each.is_relative_to(config.root)
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
