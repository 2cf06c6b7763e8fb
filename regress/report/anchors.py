"""What the anchors of a sweep say about the machine, in sentences."""

from __future__ import annotations

from regress.model import AnchorCheck, Report
from regress.report.rows import range_words
from regress.report.summary import when
from regress.text.style import Style, visible
from regress.units import format_change, format_interval, format_percent


def steady(report: Report, style: Style) -> str:
    """The line of the anchors that did not move; empty if all did."""
    anchors = [anchor for anchor in report.anchors if not anchor.drifted and anchor.within is not None]
    if not anchors:
        return ""
    within = format_percent(max(anchor.within or 0.0 for anchor in anchors))
    return f"{', '.join(map(_name, anchors))}: within {within} of when they were recorded"


def notes(report: Report, style: Style) -> list[str]:
    """How far each anchor has drifted and what follows for the changes; or that it has nothing to compare with."""
    return [note for anchor in report.anchors for note in _notes(anchor, style)]


def _notes(anchor: AnchorCheck, style: Style) -> list[str]:
    if anchor.within is None:
        return [f"{_name(anchor)} was measured again, but has no earlier value to compare with"]
    if not anchor.drifted:
        return []
    since = f" since {_name(anchor)} was recorded"
    if anchor.recorded_at is not None:
        since += f" ({when(anchor.recorded_at, style)})"
    return [f"the machine has drifted{since}: {_by(anchor)}", _effect(anchor)]


def _by(anchor: AnchorCheck) -> str:
    parts = []
    if anchor.moved:
        far = range_words(move.ratio for move in anchor.moved)
        parts.append(f"{len({move.case for move in anchor.moved})} of {anchor.cases} cases by {far}")
    if anchor.together is not None:
        ratio, low, high, over = anchor.together
        parts.append(f"the times of {over} together by {format_change(ratio)} ({format_interval(low, high)})")
    return ", ".join(parts)


def _effect(anchor: AnchorCheck) -> str:
    """What `trends.anchors` does with it."""
    if not anchor.moved:
        return f"no single case certainly has, so no change since {_name(anchor)} is corrected"
    cases = "those cases" if len({move.case for move in anchor.moved}) > 1 else "that case"
    since = f"of a change of {cases} in the same direction since {_name(anchor)}"
    return f"{since}, only what exceeds this drift counts; nothing else is corrected"


def _name(anchor: AnchorCheck) -> str:
    return visible(anchor.label or anchor.commit.short)
