"""A side that is installed in an environment of asv's: made, and the project built and installed in it, by asv's own code.

An environment has one commit installed at a time, and the sides of a check alternate: each has a copy of it.
"""

from __future__ import annotations

import contextlib
import copy
import json
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from regress.config import environments_dir, own_paths
from regress.errors import BuildFailed, ConfigError, NothingMeasured, RegressError
from regress.model import EXISTING, Environment, Side
from regress.run.environments import tree
from regress.run.environments.copies import take
from regress.run.environments.kept import BuildStore, key_of
from regress.run.environments.prepared import BuildSite, Identity, Prepared
from regress.run.shell import why
from regress.text.wording import quoted

FIXES = {
    "virtualenv": 'install that Python, or change "pythons" in asv.conf.json',
    "uv": "pip install uv",
    "conda": "install conda, and have its command on PATH or named by CONDA_EXE",
    "rattler": "pip install py-rattler pyyaml",
    "mamba": 'set "environment_type" to conda or rattler',
}
"""What to do where asv has no environment of a type."""
INSTEAD = 'or measure worktrees under this interpreter: "environment": "worktree" under "regress" in asv.conf.json'

PROBE = "import json, os, sys; print(json.dumps([sys.executable, sys.prefix, dict(os.environ)]))"
"""What a process of the environment says of itself: asv's code starts it as it would start one that measures."""


def prepare(side: Side, environment: Environment, site: BuildSite) -> Prepared:
    """Have the side's commit installed in the environment. A working tree with changes is installed as the commit that it
    would be.

    Raises NothingMeasured if asv has or can make no such environment, BuildFailed (head) or NothingMeasured (base) if
    the project cannot be built and installed in it.
    """
    work = _Work(side, environment, site)
    with work.inside():
        return work.installed() if environment.installs else work.existing()


@dataclass
class _Work:
    """The preparation of one side."""

    side: Side
    environment: Environment
    site: BuildSite
    said: list[str] = field(default_factory=list)
    """What asv warned of."""

    @property
    def log(self) -> Path:
        return self.site.cache / "builds" / f"{self.side.commit.sha}.log"

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """asv's code works in the folder of the configuration; what it says is noted and goes to the log."""
        from asv import console

        logger = logging.Logger("asv", logging.INFO)  # below that it logs what processes print, our variables among it
        logger.addHandler(_Noted(self._noted))
        self.log.parent.mkdir(parents=True, exist_ok=True)
        before, folder = console.log._logger, os.getcwd()
        with self.log.open("a") as out, contextlib.redirect_stdout(out):
            console.log._logger = logger
            os.chdir(self.site.config.root)
            try:
                yield
            finally:
                os.chdir(folder)
                console.log._logger = before

    def _noted(self, level: int, text: str) -> None:
        with self.log.open("a") as out:
            out.write(text + "\n")
        first = text.partition("\n")[0].rstrip()
        if level == logging.INFO:
            self.site.note(f"{self.side.name}: {first}")
        elif level == logging.WARNING and first:
            self.said.append(first)

    # -- which -----------------------------------------------------------------------------------------------------------

    def conf(self, number: int, wanted: str | None = None) -> Any:
        """asv's configuration, with the environments in the folder of that copy, that name among them."""
        from asv.config import Config

        given = copy.deepcopy(self.site.config.asv)
        folder = environments_dir(self.site.config) / str(number)
        conf = Config.from_json({**given, "repo": str(self.site.repository.root), "env_dir": str(folder)})
        conf.environment_type = conf.environment_type or re.split("[-:]", self.environment.asv)[0]
        name = re.match(r"(\w+)-py(\d[\d.]*)", wanted or "")
        if (
            name
        ):  # asv knows names of the configured type and Pythons only; what `uv:3.12` has made is to be named as well
            conf.environment_type = name[1]
            conf.pythons = list(dict.fromkeys([*conf.pythons, name[2]]))
        return conf

    def found(self, number: int, wanted: str | None) -> list[Any]:
        """asv's environments that a name or type stands for (None: all of the configuration), those left out that are not
        available; in that copy's folder."""
        from asv.environment import get_environments
        from asv.plugin_manager import plugin_manager
        from asv.util import UserError

        try:
            conf = self.conf(number, wanted)
            for plugin in conf.plugins:
                plugin_manager.import_plugin(plugin)
            return list(get_environments(conf, [wanted] if wanted else None))
        except (UserError, ValueError, TypeError, ImportError) as error:
            where = self.site.config.path
            raise RegressError(
                f"asv finds no environments in {where}", why=str(error), fix=f"correct {where.name}: asv run --dry-run"
            ) from None

    def _unavailable(self) -> RegressError:
        wanted, said = self.environment.asv, list(dict.fromkeys(self.said))
        kind = re.split("[-:]", wanted)[0]
        reasons = [text for text in said if wanted not in text]
        names = [environment.name for environment in self.found(0, None)] if "-" in wanted else []
        if names:
            return ConfigError(
                f"there is no environment {wanted}",
                why="; ".join([f"{self.site.config.path.name} gives {', '.join(names)}", *reasons]),
                fix="name one of these, or one with another Python: TYPE:VERSION",
            )
        why = "; ".join(said) or "asv does not say why"
        fix = f"{FIXES.get(kind, 'correct its name')}; {INSTEAD}"
        return NothingMeasured(f"asv has no environment {wanted}", why=why, fix=fix)

    def _others(self, chosen: Any, environments: list[Any]) -> tuple[str, ...]:
        """The warning that there are more environments than the one that is measured, where none of them was named."""
        others = [environment.name for environment in environments if environment.name != chosen.name]
        if not others or chosen.name == self.environment.asv:
            return ()
        gives = f"{self.site.config.path.name} gives {len(environments)} environments"
        return (f"{gives}, and {chosen.name} was taken; by name (--env, --base-env, --head-env): {', '.join(others)}",)

    # -- an interpreter that is there ------------------------------------------------------------------------------------

    def existing(self) -> Prepared:
        """The commit's worktree under an interpreter that is there: asv installs nothing in it, and has a name for it."""
        environments = self.found(0, self.environment.asv)
        if not environments:
            raise NothingMeasured(
                f"there is no interpreter for {self.environment.asv}",
                why=f"{self.environment.asv.partition(':')[2]} cannot be run",
                fix=f"{EXISTING}:PATH, or {EXISTING} for the one that runs regress",
            )
        (one,) = environments
        python = str(one._executable)
        identity = Identity(one.name, one.python, one.requirements, {**one.env_vars, **self.environment.variables})
        environment = replace(self.environment, name=one.name, python=python)
        return tree.prepare(self.side, environment, self.site, identity)

    # -- one that asv makes ----------------------------------------------------------------------------------------------

    def installed(self) -> Prepared:
        environments = self.found(0, self.environment.asv)
        if not environments:
            raise self._unavailable()
        chosen = environments[0]
        commit = self.site.repository.snapshot(own_paths(self.site.config)) if self.side.dirty else self.side.commit.sha
        start = time.monotonic()
        number, lock = take(lambda number: self._copy(number, chosen.name), lambda made: _has(made, commit))
        made = self._copy(number, chosen.name)
        if not _has(made, commit):
            self._install(number, made, commit)
        lock.share()
        build_s = time.monotonic() - start
        python, prefix, variables = self._asked(made)
        checkout = Path(made._build_root)
        identity = Identity(made.name, made.python, made.requirements, {**made.env_vars, **self.environment.variables})
        return Prepared(
            self.side,
            checkout,
            python,
            (*tree.import_roots(checkout, self.site.config), Path(prefix)),
            variables,
            build_s,
            replace(self.environment, name=made.name),
            named_in=tree.usual_folders(checkout, self.site.config),
            identity=identity,
            warnings=self._others(chosen, environments),
            lock=lock,
        )

    def _copy(self, number: int, name: str) -> Any:
        return next(environment for environment in self.found(number, self.environment.asv) if environment.name == name)

    def _install(self, number: int, made: Any, commit: str) -> None:
        from asv.repo import get_repo
        from asv.util import ProcessError, UserError

        try:
            made.create()
        except (ProcessError, UserError, OSError, RuntimeError) as error:
            raise NothingMeasured(
                f"asv cannot make the environment {made.name}",
                why=_words(error),
                fix=f"{'see the log' if isinstance(error, ProcessError) else FIXES.get(made.tool_name, 'fix that')}; "
                f"{INSTEAD}    # log: {self.log}",
            ) from None
        conf, settings = self.conf(number), self.site.config.settings
        kept = BuildStore(self.site.cache / "builds" / "kept", settings.build_cache_bytes)
        files = self.site.repository.contents(commit)
        key = key_of(files, made.dir_name, json.dumps([conf.build_command, conf.repo_subdir]))
        made._cache = _Builds(kept, key, Path(made._path) / "regress-build")
        try:
            made.install_project(conf, get_repo(conf), commit)
        except (ProcessError, UserError, OSError, RuntimeError) as error:
            command = f": {quoted(*error.args)}" if isinstance(error, ProcessError) else ""
            raise (NothingMeasured if self.side.name == "base" else BuildFailed)(
                f"{self.side.name} {self.side.label} cannot be installed in {made.name}{command}",
                why=_words(error),
                fix=f'correct "build_command" or "install_command" in {self.site.config.path.name}    # log: {self.log}',
            ) from None

    def _asked(self, made: Any) -> tuple[str, str, dict[str, str]]:
        """Interpreter, prefix and variables of a process that asv starts in the environment."""
        given = {**os.environ, **made.env_vars, **self.environment.variables}
        printed = made.run(["-c", PROBE], env=given, cwd=str(made._path), dots=False)
        python, prefix, variables = json.loads(printed.splitlines()[-1])
        return python, prefix, tree.with_bytecode(variables, self.site.cache)


@dataclass(frozen=True)
class _Builds:
    """What asv asks for what it has built, instead of a cache of its own for each copy of an environment. One commit's."""

    kept: BuildStore
    key: str
    folder: Path

    def get_cache_dir(self, commit: str) -> str | None:
        with self.kept.used(self.key) as path:
            if path is None:
                return None
            shutil.rmtree(self.folder, ignore_errors=True)
            shutil.copytree(path, self.folder)
        return str(self.folder)

    def create_cache_dir(self, commit: str) -> str:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        return str(self.folder)

    def finalize_cache_dir(self, commit: str) -> None:
        """Called once the project is installed."""
        with self.kept.used(self.key) as path:
            known = path is not None
        if not known and any(self.folder.iterdir()):
            self.kept.keep(self.key, self._fill)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _fill(self, fresh: Path) -> None:
        shutil.copytree(self.folder, fresh, dirs_exist_ok=True)


class _Noted(logging.Handler):
    """Hands what is logged to a function, with its level."""

    def __init__(self, take: Callable[[int, str], None]) -> None:
        super().__init__()
        self._take = take

    def emit(self, record: logging.LogRecord) -> None:
        self._take(record.levelno, record.getMessage())


def _has(made: Any, commit: str) -> bool:
    """Whether the environment is there with the commit installed."""
    return bool(made.installed_commit_hash == commit and made.check_presence())


def _words(error: Exception) -> str:
    """What went wrong: of a command its exit code, and what it printed on that."""
    code = getattr(error, "retcode", None)
    if code is None:
        return str(error)
    return why(f"exit code {code}", *(getattr(error, name, "") or "" for name in ("stderr", "stdout")))
