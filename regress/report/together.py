"""Cases of one benchmark that moved together: one change for a reader, not a row for each size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from regress.model import Comparison, Verdict

FEWEST = 3
"""Least number of cases that become one row."""

_OPPOSITE = {
    Verdict.REGRESSED: Verdict.IMPROVED,
    Verdict.IMPROVED: Verdict.REGRESSED,
    Verdict.UNCHANGED: Verdict.IMPROVED,
}
"""Verdicts that are gathered (unchanged: the folded slowdowns), and what speaks against having moved together."""

_FARTHEST = 1e4
"""More than the logarithm of any number."""

Key = tuple[str, str]


@dataclass(frozen=True)
class Together:
    """Comparisons with one verdict, out of the `of` comparisons of their benchmark and metric."""

    moved: tuple[Comparison, ...]
    of: int

    @property
    def name(self) -> str:
        return f"{self.moved[0].case.name}: {self.count}"

    @property
    def count(self) -> str:
        return f"{len(self.moved)} of {self.of} cases"

    @property
    def farthest(self) -> Comparison:
        """The comparison that moved most; the first of equals."""
        return max(self.moved, key=lambda comparison: abs(math.log(comparison.ratio or 1.0)))

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons that all of them share, in order."""
        return tuple(reason for reason in self.moved[0].reasons if all(reason in other.reasons for other in self.moved))


def how_far(ratio: float | None) -> float:
    """How far something moved, either way; what has no ratio (as from zero) is farther than what has one."""
    return abs(math.log(ratio)) if ratio is not None and 0 < ratio < math.inf else _FARTHEST


def weight_of(shown: Comparison | Together) -> float:
    """How much a row matters: critical ones most, then by how far it moved."""
    moved = shown.moved if isinstance(shown, Together) else (shown,)
    return max(how_far(comparison.ratio) for comparison in moved) + 2 * _FARTHEST * any(
        comparison.critical for comparison in moved
    )


def gathered(rows: Iterable[Comparison], all_of_them: Sequence[Comparison]) -> list[Comparison | Together]:
    """The rows of one section in their order; those that moved together are one row, in the place of the first of them.

    At least FEWEST rows of one benchmark and metric with one verdict, and among all comparisons none of that benchmark and
    metric with the opposite one. A row without a ratio stands for itself.
    """
    benchmarks: dict[Key, list[Comparison]] = {}
    for comparison in all_of_them:
        benchmarks.setdefault(_key(comparison), []).append(comparison)
    moved: dict[tuple[Key, Verdict], list[Comparison]] = {}
    rows = list(rows)
    for row in rows:
        against = _OPPOSITE.get(row.verdict)
        if against is None or row.ratio is None or not 0 < row.ratio < math.inf:
            continue
        if all(other.verdict is not against for other in benchmarks.get(_key(row), ())):
            moved.setdefault((_key(row), row.verdict), []).append(row)
    groups = {
        id(comparison): Together(tuple(group), len(benchmarks[key]))
        for (key, _), group in moved.items()
        if len(group) >= FEWEST
        for comparison in group
    }
    shown: list[Comparison | Together] = []
    for row in rows:
        group = groups.get(id(row))
        if group is None:
            shown.append(row)
        elif group.moved[0] is row:
            shown.append(group)
    return shown


def _key(comparison: Comparison) -> Key:
    return comparison.case.name, comparison.metric.name
