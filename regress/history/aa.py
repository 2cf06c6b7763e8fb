"""The last A/A check on each device of each machine, in one small file of the cache.

    {"format": 1, "machines": {MACHINE: {UUID: {"date", "commit", "cases": [...], "false_alarms", ...}}}}

UUID is empty for a machine without a device. What cannot be read counts as not there: it is measured again some day.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from regress.history.disk import changing_kept, read_kept
from regress.history.results_file import is_seconds
from regress.model import SelfCheck

FILE = "aa.json"
FORMAT = 1

_COUNTS = ("false_alarms", "undecided", "unchanged")
_PERHAPS = ("noise_floor", "min_detectable")


def keep_aa(folder: Path, machine: str, device: str, found: SelfCheck) -> Path:
    """Keep it for the device of that UUID, replacing the previous one. Raises StoreError."""
    path = folder / FILE
    with changing_kept(path, "machines", FORMAT) as machines:
        devices = machines.get(machine)
        known = devices if isinstance(devices, dict) else {}
        machines[machine] = {**known, device: dataclasses.asdict(found)}
    return path


def last_aa(folder: Path, machine: str, device: str) -> SelfCheck | None:
    """The last one on that device, or None."""
    devices = read_kept(folder / FILE, "machines", FORMAT).get(machine)
    entry = devices.get(device) if isinstance(devices, dict) else None
    if not isinstance(entry, dict) or set(entry) != {each.name for each in dataclasses.fields(SelfCheck)}:
        return None
    good = isinstance(entry["commit"], str) and isinstance(entry["cases"], list)
    good = good and is_seconds(entry["date"]) and all(isinstance(entry[name], int) for name in _COUNTS)
    good = good and all(entry[name] is None or isinstance(entry[name], (int, float)) for name in _PERHAPS)
    return SelfCheck(**{**entry, "cases": tuple(map(str, entry["cases"]))}) if good else None
