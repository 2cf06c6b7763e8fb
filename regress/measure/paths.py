"""The import path of a process under test."""

from __future__ import annotations

import os
from typing import List, Sequence


def arranged(path: Sequence[str], ship: str) -> List[str]:
    """`path` with the folder `ship` first, and what PYTHONPATH names just ahead of what is installed.

    PYTHONPATH names the side's own folders first. They have to win over what is installed, but a repository that happens to
    have a random.py at its top must not win over the standard library.
    """
    ours = [os.path.abspath(folder) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    rest = [folder for folder in path if folder and os.path.abspath(folder) not in (ship, *ours)]
    installed = [
        index for index, folder in enumerate(rest) if folder.rstrip("/").endswith(("site-packages", "dist-packages"))
    ]
    first = installed[0] if installed else len(rest)
    return [ship, *rest[:first], *ours, *rest[first:]]
