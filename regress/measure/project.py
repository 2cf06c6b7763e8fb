"""Whose code is measured: the proof that the project was imported from the side's own folders."""

from __future__ import annotations

import os
import sys
from typing import Dict, FrozenSet, Iterator, List, Optional, Sequence, Tuple

NO_PACKAGES = frozenset({"doc", "docs", "examples", "test", "tests", "tools", "scripts", "build", "dist"})
"""Folders of a repository that hold code but are not what is measured; others may be installed under the same name."""


class ProjectCode:
    """Proves that the project's packages were imported from the side's own folders.

    An editable install, a path file or a meta-path hook can win over the worktree; then both sides would measure the same
    installed code and every verdict would be "unchanged". So would a commit that has no such package yet, or in another folder,
    be measured with what is installed today: `named_in` are folders, of other commits too, whose packages are the project's.
    """

    def __init__(self, roots: List[str], suite_package: str, named_in: Sequence[str] = ()) -> None:
        self._roots = [os.path.realpath(root) + os.sep for root in roots]
        # A repository's test/ is not the standard library's, which others may have imported.
        standard: FrozenSet[str] = getattr(sys, "stdlib_module_names", frozenset())
        self.names = {name for root in (*roots, *named_in) for name in _packages(root)} - {suite_package} - standard

    def imported(self) -> List[str]:
        """Files of the project's packages that are loaded, one a package, named from the side's folder that they lie in."""
        firsts: Dict[str, str] = {}
        for name, file in self._loaded():
            firsts.setdefault(name, self._named(os.path.realpath(file)))
        return list(firsts.values())

    def foreign(self) -> Optional[Tuple[str, str]]:
        """A package of the project (name, file) that came from elsewhere, or None."""
        for name, file in self._loaded():
            if not os.path.realpath(file).startswith(tuple(self._roots)):
                return name, file
        return None

    def _named(self, file: str) -> str:
        root = next((root for root in self._roots if file.startswith(root)), "")
        return file[len(root) :]

    def _loaded(self) -> Iterator[Tuple[str, str]]:
        """(package, file) of every loaded module in one of the project's packages. All of them: a namespace package has no
        file of its own, and parts of it may come from different places."""
        # Asked after every case, with thousands of other modules loaded: those are left out before anything is sorted.
        for name in sorted(name for name in list(sys.modules) if name.partition(".")[0] in self.names):
            file = getattr(sys.modules.get(name), "__file__", None)
            if isinstance(file, str):
                yield name.partition(".")[0], file


def _packages(root: str) -> Iterator[str]:
    """Names that can be imported from a folder. A folder with Python files only far below is no package of the project's:
    `docs/` would be a namespace package to the import system."""
    for name in os.listdir(root):
        path = os.path.join(root, name)
        if name.endswith(".py"):
            if name not in ("setup.py", "conftest.py"):
                yield name[:-3]
        elif name.endswith((".so", ".pyd")):
            yield name.split(".")[0]
        elif os.path.isdir(path) and name.isidentifier() and name not in NO_PACKAGES and _has_code(path, 2):
            yield name


def _has_code(folder: str, depth: int) -> bool:
    """Whether there is a module in the folder, or at most this many folders below."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return False
    if any(entry.name.endswith((".py", ".so", ".pyd")) for entry in entries):
        return True
    return depth > 0 and any(
        _has_code(entry.path, depth - 1) for entry in entries if entry.name.isidentifier() and entry.is_dir()
    )
