"""Whose code is measured: the proof that the project was imported from the side's own folders."""

from __future__ import annotations

import os
import sys
from typing import FrozenSet, Iterator, List, Optional, Tuple


class ProjectCode:
    """Proves that the project's packages were imported from the side's own folders.

    An editable install, a path file or a meta-path hook can win over the worktree; then both sides would measure the same
    installed code and every verdict would be "unchanged".
    """

    def __init__(self, roots: List[str], suite_package: str) -> None:
        self._roots = [os.path.realpath(root) + os.sep for root in roots]
        # A repository's test/ is not the standard library's, which others may have imported.
        standard: FrozenSet[str] = getattr(sys, "stdlib_module_names", frozenset())
        self._names = {name for root in roots for name in _packages(root)} - {suite_package} - standard

    def imported(self) -> List[str]:
        """Files of the project's packages that are loaded, one a package."""
        return [file for _, file in self._loaded()]

    def foreign(self) -> Optional[Tuple[str, str]]:
        """A package of the project (name, file) that came from elsewhere, or None."""
        for name, file in self._loaded():
            if not os.path.realpath(file).startswith(tuple(self._roots)):
                return name, file
        return None

    def _loaded(self) -> Iterator[Tuple[str, str]]:
        for name in sorted(self._names):
            module = sys.modules.get(name)
            file = getattr(module, "__file__", None) if module is not None else None
            if file is None and module is not None:
                file = next(iter(getattr(module, "__path__", [])), None)
            if file is not None:
                yield name, file


def _packages(root: str) -> Iterator[str]:
    """Names that can be imported from a folder. A folder without Python files in it is no package of the project's:
    `docs/` would be a namespace package to the import system."""
    for name in os.listdir(root):
        path = os.path.join(root, name)
        if name.endswith(".py"):
            if name not in ("setup.py", "conftest.py"):
                yield name[:-3]
        elif (
            os.path.isdir(path)
            and name.isidentifier()
            and any(each.endswith((".py", ".so")) for each in os.listdir(path))
        ):
            yield name
        elif name.endswith((".so", ".pyd")):
            yield name.split(".")[0]
