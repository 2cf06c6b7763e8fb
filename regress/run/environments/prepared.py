"""What every kind of environment gives: a side that can be measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from regress.config import Config
from regress.git import Repository
from regress.model import DEFAULT_ENVIRONMENT, Environment, Side
from regress.run.environments.copies import Lock


@dataclass(frozen=True)
class BuildSite:
    """Where sides are made ready: whose configuration and repository, the folder for what is kept, and who is told of it."""

    config: Config
    repository: Repository
    cache: Path
    note: Callable[[str], None]


@dataclass(frozen=True)
class Identity:
    """What tells an environment from others in asv's files."""

    name: str
    python: str
    requirements: Mapping[str, str] = field(default_factory=dict)
    env_vars: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Prepared:
    """A side that can be measured."""

    side: Side
    tree: Path
    python: str
    import_roots: tuple[Path, ...]
    """Folders that the project may be imported from. The first has its packages, and goes first on the path of the processes
    of a side that is not installed."""
    variables: dict[str, str] = field(default_factory=dict)
    """The whole environment of its processes."""
    build_s: float = 0.0
    environment: Environment = field(default_factory=Environment)
    checkout: tuple[Path, ...] = ()
    """The import roots of the invoking checkout, in which compiled files may lie that the side's tree does not have."""
    named_in: tuple[Path, ...] = ()
    """Folders of the side and of the invoking checkout whose packages are the project's, wherever the side has them."""
    identity: Identity | None = None
    """How asv records its environment; None for those that asv does not know."""
    warnings: tuple[str, ...] = ()
    lock: Lock | None = field(default=None, compare=False)
    """Held for as long as this object lives: nobody changes what is installed or built."""

    @property
    def starts_python(self) -> str:
        """The beginning of a command line that imports what this side would."""
        path = f"PYTHONPATH={self.import_roots[0]} " if "PYTHONPATH" in self.variables else ""
        return path + self.python


def identity_of(prepared: Prepared, python_version: str) -> Identity:
    """How the environment of the side is recorded: `worktree-py3.12`, or as asv does."""
    if prepared.identity is not None:
        return prepared.identity
    environment = prepared.environment
    python = ".".join(python_version.split(".")[:2])
    # asv averages what has equal parameters, whatever the environment's name: the name is one of them, then.
    named = {} if environment.name == DEFAULT_ENVIRONMENT else {"environment": environment.name}
    return Identity(f"{environment.name}-py{python}", python, named, environment.variables)
