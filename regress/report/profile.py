"""What was profiled: a table of the operations, and what holds back those that take the most time."""

from __future__ import annotations

from regress.model import Report
from regress.profiles.lines import bottleneck_lines, operation_lines
from regress.text.style import Style, paint


def profile(report: Report, style: Style) -> list[str]:
    """The profile of a report that is about nothing else: operations, then bottlenecks."""
    found = report.profile
    if found is None or report.command != "profile":
        return []
    lines = [*operation_lines(found.operations, style), ""]
    if found.bottlenecks:
        title = f"  {paint('bottlenecks', 'bold', style)}"
        lines += [title, *bottleneck_lines(found.bottlenecks, style), ""]
    return lines
