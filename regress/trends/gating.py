"""Which series of a benchmark raise alarms for its cases: those that a check would fail for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from regress.compare.draft import ALSO_GATING
from regress.model import ChangePoint, Series
from regress.trends.anchors import key_of


def gating(series: Series, every: Iterable[Series]) -> frozenset[str] | None:
    """The full hashes of commits at which a change of the series counts for its case: None for all, empty for none.

    `every` are the series of the benchmark. A wall time counts where the device time was lost or came back, because the
    benchmark began or stopped waiting for the device, and while there is no device time: as in a check, nothing else can be
    compared.
    """
    if series.primary or series.metric.name in ALSO_GATING:
        return None
    if series.metric.name != "wall_time":
        return frozenset()
    key = (*key_of(series)[:-1], "gpu_time")
    device = next((other for other in every if key_of(other) == key), None)
    if device is None:
        return frozenset()
    with_device = {place for place, rounds in zip(device.at, device.rounds, strict=True) if rounds}
    has = [(place, place in with_device) for place, wall in zip(series.at, series.rounds, strict=True) if wall]
    return frozenset(series.commits[place] for (_, before), (place, after) in pairwise(has) if not (before and after))


def that_gate(points: Sequence[ChangePoint], at: frozenset[str] | None) -> tuple[ChangePoint, ...]:
    """The change points of a series that count for its case; `at` is what `gating` returned for the series."""
    return tuple(point for point in points if at is None or not at.isdisjoint(point.blamed))
