"""Who else computes on the device while a process measures."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from .backend import Backend


class Company:
    """The other processes on the device: those that are there when this is made, and those that have come by the end of a case.

    Make it before a context of ours is open: from inside a container ids mean nothing, and ours could be any of those that
    came later.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._first = backend.processes()

    def warnings(self) -> List[str]:
        """Of what was there at first, what is no evidence, because it may be one of ours."""
        return [f"on the device when a round began: {each}" for each in self._first if each.unreliable]

    def seen(self) -> Tuple[Dict[str, Any], List[str]]:
        """Facts of a case that has just been measured (`foreign_processes`), and doubts."""
        now = self._backend.processes()
        certain = {each.pid: str(each) for each in (*self._first, *now) if not each.unreliable}
        known = {each.pid for each in self._first}
        arrived = [each.pid for each in now if each.unreliable and each.pid not in known]
        facts = {"foreign_processes": list(certain.values())} if certain else {}
        if len(arrived) < 2:
            return facts, []
        pids = ", ".join(map(str, arrived))
        return facts, [f"came onto the device meanwhile: pids {pids}, of which one is ours (seen from a container)"]
