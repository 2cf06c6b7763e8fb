"""Who else computes on the device while a process measures."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from .backend import Backend


class Company:
    """The other processes on the device: those that are there when this is made, and those that have come by the end of a case.

    Make it before a context of ours is open: from inside a container ids mean nothing, and ours could be any of those that
    came later, as many as `ours` of them. `driver` is the process that all of ours descend from.
    """

    def __init__(self, backend: Backend, driver: int = 0, ours: int = 1) -> None:
        self._backend, self._ours = backend, ours
        self._driver = driver or None
        self._first = backend.processes(self._driver)

    def warnings(self) -> List[str]:
        """Of what was there at first, what is no evidence, because it may be one of ours."""
        return [f"on the device when a round began: {process}" for process in self._first if process.unreliable]

    def seen(self) -> Tuple[Dict[str, Any], List[str]]:
        """Facts of a case that has just been measured (`foreign_processes`), and doubts."""
        now = self._backend.processes(self._driver)
        certain = {process.pid: str(process) for process in (*self._first, *now) if not process.unreliable}
        known = {process.pid for process in self._first}
        arrived = [process.pid for process in now if process.unreliable and process.pid not in known]
        facts = {"foreign_processes": list(certain.values())} if certain else {}
        if len(arrived) <= self._ours:
            return facts, []
        pids, own = ", ".join(map(str, arrived)), "one is ours" if self._ours == 1 else f"{self._ours} are ours"
        return facts, [f"appeared on the device in between: pids {pids}, of which {own} (seen from a container)"]
