"""The metric that a command was asked to look at."""

from __future__ import annotations

import difflib

from regress.errors import RegressError
from regress.model import METRICS


def check_metric(name: str) -> None:
    """Raise RegressError, with the name that is near, for one that no benchmark can have; empty is none that was asked for."""
    known = (*METRICS, "value")
    if name and name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        fix = f"--metric {near[0] if near else 'gpu_time'}"
        raise RegressError(f"there is no metric {name}", why=f"known are {', '.join(known)}", fix=fix)
