"""The name and the facts of this machine, as asv keeps them."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from regress.errors import StoreError
from regress.files import read_bytes
from regress.history.json_text import loads
from regress.model import Machine


def this_machine(name: str = "") -> Machine:
    """This machine under `name`, else under its name in asv's own machine file, else under the host's name.

    The facts are asv's (os, arch, cpu, num_cpu, ram), as strings; what the user told asv about that machine wins over
    detection. Raises StoreError if asv's machine file cannot be read, because guessing could file results under a wrong
    machine.
    """
    known = _asv_machines()
    host = platform.node() or "unknown"
    if not name:
        name = host if host in known or len(known) != 1 else next(iter(known))
    told = {key: value for key, value in known.get(name, {}).items() if isinstance(value, str) and key != "machine"}
    return Machine(name, {**detected_facts(), **told})


def detected_facts() -> dict[str, str]:
    """What asv would detect: os, arch, cpu, num_cpu and ram (bytes)."""
    return {
        "os": f"{platform.system()} {platform.release()}",
        "arch": platform.machine(),
        "cpu": _cpu(),
        "num_cpu": str(os.cpu_count() or ""),
        "ram": _ram(),
    }


def _asv_machines() -> dict[str, dict[str, Any]]:
    """The machines in asv's `~/.asv-machine.json`, by name; empty without such a file."""
    path = Path(os.path.expanduser("~/.asv-machine.json"))
    try:
        data = loads(read_bytes(path))
        if not isinstance(data, dict):
            raise ValueError("not an object")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read {path}", why=str(error), fix="asv machine --yes") from error
    return {name: entry for name, entry in data.items() if isinstance(entry, dict)}


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    return value.strip()
    except OSError:
        pass
    return platform.processor()


def _ram() -> str:
    try:
        return str(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return ""
