"""A side made ready to import: its code, its interpreter and its import path.

prepared  what all kinds give
tree      a git worktree of the commit, or the working tree itself, with its own packages first on the path
builds    the build of a tree
wheels    a wheel that is unpacked, instead of the commit's tree
asv       the commit installed in an environment that asv makes: virtualenv, uv, conda, rattler
copies    which copy of asv's environment a side takes
kept      builds by a key of what went into them, the least recently used thrown away
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from regress.config import Config
from regress.config import environment as environment_of
from regress.git import Repository
from regress.model import Side
from regress.run.environments import asv, tree
from regress.run.environments.prepared import BuildSite, Identity, Prepared, identity_of

__all__ = ["Identity", "Prepared", "identity_of", "prepare"]


def prepare(side: Side, config: Config, repository: Repository, cache: Path, note: Callable[[str], None]) -> Prepared:
    """Make the side's code ready to be imported, if that was not done before.

    `side.environment` names one of the configuration's environments, or one of asv's. Raises ConfigError if there is none
    of that name, BuildFailed (head) or NothingMeasured (base) when the build fails, NothingMeasured if there is no
    interpreter, wheel or environment available.
    """
    environment = environment_of(config, side.environment)
    site = BuildSite(config, repository, cache, note)
    return asv.prepare(side, environment, site) if environment.asv else tree.prepare(side, environment, site)
