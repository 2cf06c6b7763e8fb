"""The page of an explanation: one file, with the timelines of both sides one above the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regress.model import Explained, Report
from regress.report.html.account import account
from regress.report.html.folder import write_alone
from regress.report.html.page import explained_page, script_of
from regress.report.summary import place, sides
from regress.text.style import Style


def write_explained(report: Report, path: Path) -> None:
    """Write the page of what the report explains. Raises RegressError if it cannot be written."""
    compared = [f"{label} {commit} {subject}" for label, commit, subject, *_ in sides(report, Style())]
    data = {
        "lede": " · ".join(filter(None, [*compared, place(report)])),
        "cases": [_case(each, report) for each in report.explained],
    }
    title = str(report.explained[0].case) if report.explained else "nothing"
    write_alone(path, "--html", explained_page(title, [script_of("explained", "", data)]))


def _case(each: Explained, report: Report) -> dict[str, Any]:
    said = account(each)
    return {
        **said,
        "timelines": [
            {"side": name, "lane": one.lane, "name": one.name, "start_s": one.start_s, "duration_s": one.duration_s}
            for name, side in (("base", each.base), ("head", each.head))
            for one in (side.timeline if side is not None else ())
        ],
        "files": each.files,
        "commits": [f"{one.short} {one.subject}" for one in reversed(each.commits)],
        "warnings": [*said["warnings"], *report.warnings],
    }
