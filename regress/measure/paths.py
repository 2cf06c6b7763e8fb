"""The import path of a process under test."""

from __future__ import annotations

import os
from typing import List, Sequence


def arranged(path: Sequence[str], ship: str) -> List[str]:
    """`path` with the folder `ship` first, and what PYTHONPATH names just ahead of what is installed.

    PYTHONPATH names the side's own folders first. They have to win over what is installed, but a repository that happens to
    have a random.py at its top must not win over the standard library.
    """
    ours = [os.path.abspath(each) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    rest = [each for each in path if each and os.path.abspath(each) not in (ship, *ours)]
    installed = [
        index for index, each in enumerate(rest) if each.rstrip("/").endswith(("site-packages", "dist-packages"))
    ]
    first = installed[0] if installed else len(rest)
    return [ship, *rest[:first], *ours, *rest[first:]]
