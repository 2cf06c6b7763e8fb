"""What a device does at most: kept by GPU in one file of the cache, measured by one more worker where it is not there.

    {"format": 1, "devices": {UUID: {"driver", "harness", "copy_bytes_s", "matmul_flops_s": {dtype: ...}, "peer_bytes_s"}}}

A value belongs to one card, one driver and one version of the harness. The file is a cache: what cannot be read is measured
again, and no failure here fails a command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from regress.errors import RegressError
from regress.history.kept import StateFile
from regress.measure.wire import HARNESS_VERSION, Ceilings
from regress.model import Failure

FILE = "ceilings.json"

_Rate = Annotated[float, Meta(gt=0, le=1e300)]


@dataclass(frozen=True)
class _Measured:
    """Ceilings as they are on disk, and with what they were measured."""

    driver: str
    harness: int
    copy_bytes_s: _Rate
    matmul_flops_s: dict[str, _Rate]
    peer_bytes_s: Annotated[float, Meta(ge=0, le=1e300)] = 0.0


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
        ceilings = measure()
        if ceilings.failure is None:
            keep(folder, facts, ceilings)
    except RegressError as error:
        return Ceilings(failure=Failure("error", error.cause))
    return ceilings


def known(folder: Path, facts: Mapping[str, Any]) -> Ceilings | None:
    """The ceilings kept for that card and driver; None if there are none."""
    kept = _kept(folder).read().get(str(facts["gpu_uuid"]))
    if kept is None or (kept.driver, kept.harness) != _measured_with(facts):
        return None
    return Ceilings(kept.copy_bytes_s, kept.matmul_flops_s, peer_bytes_s=kept.peer_bytes_s)


def keep(folder: Path, facts: Mapping[str, Any], ceilings: Ceilings) -> None:
    """Keep the ceilings of that card, instead of those it had. Raises StoreError if the folder cannot be written."""
    made = _Measured(
        *_measured_with(facts), ceilings.copy_bytes_s, dict(ceilings.matmul_flops_s), ceilings.peer_bytes_s
    )
    with _kept(folder).changing() as devices:
        devices[str(facts["gpu_uuid"])] = made


def _kept(folder: Path) -> StateFile[_Measured]:
    """By the UUID of the card."""
    return StateFile(folder / FILE, "devices", _Measured)


def _measured_with(facts: Mapping[str, Any]) -> tuple[str, int]:
    """What has to be the same for a value to hold: the driver, and what measures."""
    return str(facts.get("driver", "")), HARNESS_VERSION
