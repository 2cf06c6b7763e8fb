"""What a device does at most: kept by GPU in one file of the cache, measured by one more worker where it is not there.

    {"format": 1, "devices": {UUID: {"driver", "harness", "copy_bytes_s", "matmul_flops_s": {dtype: ...}, "peer_bytes_s"}}}

A value belongs to one card, one driver and one version of the harness. The file is a cache: what cannot be read is measured
again, and no failure here fails a command.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from regress.errors import RegressError
from regress.history.disk import changing_kept, read_kept
from regress.measure.wire import HARNESS_VERSION, Ceilings
from regress.model import Failure

FILE = "ceilings.json"
FORMAT = 1


def ceilings_of(
    facts: Mapping[str, Any], folder: Path, measure: Callable[[], Ceilings], peer: bool = False
) -> Ceilings:
    """The ceilings of the device that a worker's facts name, with `peer` of copies to another one too: those in the folder,
    else what `measure` finds, which is kept.

    Empty without a reason if there is no device to speak of (none, or a scripted one); with one where measuring or keeping
    failed. What was measured only in part is used, and measured again the next time.
    """
    if not facts.get("gpu_uuid") or facts.get("scripted"):
        return Ceilings()
    kept = known(folder, facts)
    if kept is not None and (kept.peer_bytes_s or not peer):
        return kept
    try:
        found = measure()
        if found.failure is None:
            keep(folder, facts, found)
    except RegressError as error:
        return Ceilings(failure=Failure("error", f"{error.what} ({error.why})" if error.why else error.what))
    return found


def known(folder: Path, facts: Mapping[str, Any]) -> Ceilings | None:
    """The ceilings kept for that card and driver; None if there are none."""
    entry = read_kept(folder / FILE, "devices", FORMAT).get(str(facts["gpu_uuid"]))
    if not isinstance(entry, dict) or {key: entry.get(key) for key in ("driver", "harness")} != _measured_with(facts):
        return None
    copy, products = entry.get("copy_bytes_s"), entry.get("matmul_flops_s")
    if not _is_rate(copy) or not isinstance(products, dict) or not all(map(_is_rate, products.values())):
        return None
    peer = entry.get("peer_bytes_s")
    return Ceilings(copy, products, peer_bytes_s=peer if _is_rate(peer) else 0.0)


def keep(folder: Path, facts: Mapping[str, Any], found: Ceilings) -> None:
    """Keep the ceilings of that card, instead of those it had. Raises StoreError where the folder cannot be written."""
    entry = {
        **_measured_with(facts),
        "copy_bytes_s": found.copy_bytes_s,
        "matmul_flops_s": found.matmul_flops_s,
        "peer_bytes_s": found.peer_bytes_s,
    }
    with changing_kept(folder / FILE, "devices", FORMAT) as devices:
        devices[str(facts["gpu_uuid"])] = entry


def _measured_with(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What has to be the same for a value to hold."""
    return {"driver": facts.get("driver", ""), "harness": HARNESS_VERSION}


def _is_rate(value: object) -> TypeGuard[float]:
    return isinstance(value, float) and 0 < value < math.inf
