"""What the processes of rounds are forked from.

Where memory came to lie in an interpreter decides up to 13 % of the time of a loop, for as long as it lives, and its children
inherit that. So the processes that fork, one a side, are forked themselves from one that has imported the frameworks: their
zygote. What still differs from zygote to zygote is small (0.4 %, in the median), and pairs come from two of them in turn. Sides
that cannot share one, because they have other interpreters or variables, have three interpreters each, and what they differ by
counts once for each of these.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from regress.measure.wire import Preload
from regress.run.environments import Prepared
from regress.run.forks import ForkServer

WITH_ZYGOTE, WITHOUT = 2, 3
"""How many origins a run has."""
PATH = "PYTHONPATH"
OWN = (PATH, "ASV_COMMIT", "ASV_ENV_NAME", "ASV_ENV_TYPE")
"""Variables of one side alone: a fork gets them, and the process that it was forked from has none of them."""


def common(sides: Sequence[Prepared], set_by_suites: Sequence[Mapping[str, str]]) -> dict[str, str] | None:
    """The variables that the sides have in common; None if they import the frameworks in unlike ways. `set_by_suites` are the
    variables that the import of each side's suite sets: it may do so ahead of a framework that reads them."""
    first, *others = sides
    alike = all(side.python == first.python and _but_own(side) == _but_own(first) for side in others)
    if not alike or any(own != set_by_suites[0] for own in set_by_suites):
        return None
    paths = [_path(side) for side in sides]
    path = [folder for folder in paths[0] if all(folder in other for other in paths)]
    return {**_but_own(first), **set_by_suites[0], PATH: os.pathsep.join(path)}


def _but_own(side: Prepared) -> dict[str, str]:
    return {name: value for name, value in side.variables.items() if name not in OWN}


def own_variables(side: Prepared) -> dict[str, str]:
    return {name: side.variables.get(name, "") for name in OWN}


def _path(side: Prepared) -> list[str]:
    return [folder for folder in side.variables.get(PATH, "").split(os.pathsep) if folder]


@dataclass
class Origin:
    """One process a side that has imported the suite, and forks. With a `zygote` all of them were forked from that."""

    zygote: ForkServer | None = None
    parents: dict[str, ForkServer] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Unique on this machine."""
        first = self.zygote or next(iter(self.parents.values()))
        return str(first.server.opened.pid)

    def tell(self, modules: Sequence[str], own: Sequence[str]) -> None:
        """Have the zygote import modules, which may bring in no package of the names `own`. Raises Died, as `told` does."""
        assert self.zygote is not None
        self.zygote.server.send(Preload(list(modules), list(own)))

    def told(self, timeout_s: float) -> str:
        """Once the zygote has imported them: why a fork of it could not measure; empty if it could. Raises TimedOut."""
        assert self.zygote is not None
        return self.zygote.preloaded(timeout_s)

    def close(self) -> None:
        while self.parents:
            self.parents.popitem()[1].close()
        if self.zygote is not None:
            self.zygote.close()
            self.zygote = None
