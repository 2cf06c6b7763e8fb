"""A project as the user has it: what was asked of a command, the configuration, the repository, and where things are kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from regress import config as configuration
from regress.config import Config
from regress.errors import RegressError
from regress.git import Clone, Repository, open_repository
from regress.history import this_machine
from regress.model import Commit, Machine, Side
from regress.text.wording import quoted


def _unheard(text: str) -> None:
    pass


@dataclass(frozen=True)
class Request:
    """What the user asked of any command: where to look, which benchmarks, which settings for this time."""

    start: Path
    config_file: Path | None = None
    patterns: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    affected: bool = False
    """Only benchmarks that cover a changed file."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    quick: bool = False
    own_suite: bool = False
    """Each side is measured with the suite of its own commit, not with the invoking checkout's."""
    strict: bool = False
    prove: bool = False
    """Every case is held to what a critical one is."""
    lock_clocks: bool = False
    wait_lock: bool = False
    """Wait for a device that another process is measuring on."""
    gpus: tuple[str, ...] = ()
    """Those to measure on at once: numbers, UUIDs, or `all`."""
    fetches: bool = True
    """Whether a project that is known by its address may be cloned and fetched."""
    into: Path | None = None
    """Folder of results in place of results_dir."""
    note: Callable[[str], None] = _unheard
    """Takes a line on what takes its time before anything is measured."""


def doubts_of(request: Request) -> tuple[str, ...]:
    """The warnings of the configuration, for beside an error that may come from what they are about. Of one that cannot be read
    there is none: the error says so."""
    try:
        return configuration.load(request.config_file, request.start).warnings
    except RegressError:
        return ()


class Project:
    """A repository with its configuration, opened once a command."""

    def __init__(self, request: Request) -> None:
        self.request = request
        loaded = configuration.load(request.config_file, request.start)
        self.config: Config = configuration.with_overrides(loaded, **request.overrides)
        self._own = configuration.own_paths(self.config)
        if request.into is not None:
            self.config = replace(self.config, results_dir=request.into.absolute())
        self.cache = configuration.cache_dir(self.config)
        self.config = replace(self.config, warnings=(*self.config.warnings, *self._misplaced_cache()))

    def _misplaced_cache(self) -> list[str]:
        """The warning that git would take the cache with the project's files."""
        inside, folder, source = configuration.cache_in_tree(self.config)
        try:
            if not inside or self.repository.ignores(f"{inside}/"):
                return []
        except RegressError:  # who needs the repository says what is wrong with it
            return []
        where = f"the cache is in the working tree, where git does not ignore it: {folder} ({source})"
        return [f"{where}; fix: name a folder outside" + f", or add /{inside}/ to .gitignore" * (inside != ".")]

    @cached_property
    def repository(self) -> Repository:
        config, request = self.config, self.request
        if config.repo is not None:
            return open_repository(config.repo, config.settings.release_tags)
        clone = Clone(config.address, configuration.clone_dir(config), request.note, request.fetches)
        repository = open_repository(clone, config.settings.release_tags)
        request.note(
            f"the project is a clone of {clone.words}, fetched {clone.fetched}; HEAD is its {repository.head_words}"
        )
        return repository

    @cached_property
    def machine(self) -> Machine:
        return this_machine(self.config.settings.machine)

    @property
    def own_paths(self) -> tuple[Path, ...]:
        return (*self._own, self.config.results_dir)

    @property
    def suite_parent(self) -> str:
        """The folder that holds the suite, relative to the repository."""
        return Path(os.path.relpath(self.config.benchmark_dir.parent, self.repository.root)).as_posix()

    @property
    def again(self) -> tuple[str, ...]:
        """Options that a command needs to measure in the same way again."""
        return ("--suite", "own") if self.request.own_suite else ()

    @property
    def on_gpus(self) -> tuple[str, ...]:
        """Options that a command which measures on several GPUs needs to measure on the same ones again."""
        return ("--gpus", ",".join(self.request.gpus)) if self.request.gpus else ()

    def line(self, revisions: str | Sequence[str], recorded: Collection[str]) -> list[Commit]:
        """The history up to the revisions, the oldest commit first: what has something new to measure, and what has results all
        the same. asv measures a merge that is like one of its parents too."""
        own = {commit.sha for commit in self.repository.commits(revisions, self.own_paths)}
        return [commit for commit in self.repository.commits(revisions) if commit.sha in own or commit.sha in recorded]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know of the configuration, and of the history, before a verdict over many commits is trusted."""
        return (*self.config.warnings, *self.repository.missing_history())

    def histories(self, revisions: Sequence[str], line: Sequence[Commit]) -> list[list[Commit]]:
        """Of each of the revisions the commits of `line` that it has; see Repository.histories."""
        kept = {commit.sha for commit in line}
        return [[commit for commit in own if commit.sha in kept] for own in self.repository.histories(revisions)]

    # -- sides -----------------------------------------------------------------------------------------------------------

    def is_dirty(self) -> bool:
        return self.repository.is_dirty(self.own_paths)

    def revision_side(self, name: str, revision: str, how: str = "", environment: str = "") -> Side:
        """The side of a revision as the user wrote it, or with a word on how it was chosen."""
        return Side(name, self.repository.resolve(revision), how or revision, environment)

    def tree_side(self, name: str, environment: str = "") -> Side:
        """The working tree: HEAD's commit where nothing is changed, else the tree itself."""
        dirty = self.is_dirty()
        head = self.repository.resolve("HEAD")
        clean = f"HEAD: {self.repository.head_words}" if self.repository.is_bare else "HEAD, clean"
        return Side(name, head, "the working tree" if dirty else clean, environment, dirty=dirty)

    def one_side(self, revision: str | None, environment: str = "") -> Side:
        """The side of a command that measures one: that revision, or the working tree (None)."""
        if revision is None:
            return self.tree_side("head", environment)
        return self.revision_side("head", revision, "", environment)

    def changed(self, base: Side, head: Side) -> tuple[str, ...]:
        """The files that differ between the sides, relative to the repository; what we write ourselves does not count."""
        files = self.repository.changed_between(base.commit.sha, head.commit.sha, self.own_paths)
        files += self.repository.changed_files(self.own_paths) if head.dirty else []
        return tuple(dict.fromkeys(files))

    def doubtful_order(self, base: Side, head: Side) -> list[str]:
        """The note that the base came after the head, so that what got worse reads as an improvement; or that both are one
        commit, which passes whatever was meant."""
        if (base.commit.sha, base.environment) == (head.commit.sha, head.environment):
            aa = quoted("regress", "doctor", "--aa")
            return [
                f"both sides are {base.commit.short}: there is nothing to find; to measure a commit against itself: {aa}"
            ]
        if base.commit.sha == head.commit.sha or not self.repository.is_ancestor(head.commit.sha, base.commit.sha):
            return []
        again = quoted("regress", "check", head.commit.short, base.commit.short)
        return [f"the base is newer than the head, so a regression looks like an improvement; swap them: {again}"]
