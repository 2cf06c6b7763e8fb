"""What the anchors of a sweep say about the machine, in sentences."""

from __future__ import annotations

from regress.model import AnchorCheck, Report
from regress.report.rows import range_words
from regress.report.summary import when
from regress.text.style import Style, visible
from regress.units import format_change, format_interval, format_percent


def steady(report: Report, style: Style) -> str:
    """The line of the anchors that did not move; empty if all did."""
    found = [each for each in report.anchors if not each.drifted and each.within is not None]
    if not found:
        return ""
    within = format_percent(max(each.within or 0.0 for each in found))
    return f"{', '.join(map(_name, found))}: within {within} of when they were recorded"


def notes(report: Report, style: Style) -> list[str]:
    """How far each anchor has drifted and what follows for the changes; or that it has nothing to compare with."""
    return [note for each in report.anchors for note in _notes(each, style)]


def _notes(each: AnchorCheck, style: Style) -> list[str]:
    if each.within is None:
        return [f"{_name(each)} was measured again, but has no earlier value to compare with"]
    if not each.drifted:
        return []
    since = f" since {_name(each)} was recorded"
    if each.recorded_at is not None:
        since += f" ({when(each.recorded_at, style)})"
    return [f"the machine has drifted{since}: {_by(each)}", _effect(each)]


def _by(each: AnchorCheck) -> str:
    parts = []
    if each.moved:
        far = range_words(move.ratio for move in each.moved)
        parts.append(f"{len({move.case for move in each.moved})} of {each.cases} cases by {far}")
    if each.together is not None:
        ratio, low, high, over = each.together
        parts.append(f"the times of {over} together by {format_change(ratio)} ({format_interval(low, high)})")
    return ", ".join(parts)


def _effect(each: AnchorCheck) -> str:
    """What `trends.anchors` does with it."""
    if not each.moved:
        return f"no single case certainly has, so no change since {_name(each)} is corrected"
    cases = "those cases" if len({move.case for move in each.moved}) > 1 else "that case"
    return f"a change of {cases} in the same direction since {_name(each)} counts only by the rest; nothing else is corrected"


def _name(each: AnchorCheck) -> str:
    return visible(each.label or each.commit.short)
