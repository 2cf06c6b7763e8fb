"""The page of an explanation: one file, with the timelines of both sides one above the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regress.model import Explained, KernelDiff, Report
from regress.report.explained import configuration_lines, count, part_rows, sentence
from regress.report.html.folder import explained, replace_file
from regress.report.html.page import explained_page
from regress.report.html.script import script_of
from regress.report.style import Style
from regress.report.summary import place, sides


def write_explained(report: Report, path: Path) -> None:
    """Write the page of what the report explains. Raises RegressError where it cannot be written."""
    compared = [f"{label} {commit} {subject}" for label, commit, subject, *_ in sides(report, Style())]
    data = {
        "lede": " · ".join(filter(None, [*compared, place(report)])),
        "cases": [_case(each, report) for each in report.explained],
    }
    title = str(report.explained[0].case) if report.explained else "nothing"
    with explained(path, "--html FILE with a file that can be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, explained_page(title, [script_of("explained", "", data)]))


def _case(each: Explained, report: Report) -> dict[str, Any]:
    found = each.explanation
    diffs = (*found.kernels, *found.copies) if found is not None else ()
    return {
        "sentence": sentence(each),
        "parts": _parts(each),
        "also": [f"{one.text} ({one.confidence} confidence)" for one in found.causes[1:]] if found else [],
        "kernels": [_kernel(one) for one in sorted(diffs, key=lambda one: -abs(one.difference_s))],
        "timelines": [
            {"side": name, "lane": one.lane, "name": one.name, "start_s": one.start_s, "duration_s": one.duration_s}
            for name, side in (("base", each.base), ("head", each.head))
            for one in (side.timeline if side is not None else ())
        ],
        "files": each.files,
        "commits": [f"{one.short} {one.subject}" for one in reversed(each.commits)],
        "warnings": [*each.warnings, *report.warnings],
    }


def _parts(each: Explained) -> list[tuple[str, str, str, float | None]]:
    """The rows, each with its share; the sums have none."""
    found = each.explanation
    if found is None:
        return []
    whole = each.whole_s
    shares = [part / whole if whole else 0.0 for part in each.parts.values()]
    rows = part_rows(each)
    return [(*row, share) for row, share in zip(rows, [*shares, *[None] * (len(rows) - len(shares))], strict=True)]


def _kernel(each: KernelDiff) -> dict[str, Any]:
    use = each.head or each.base
    assert use is not None
    launches = [count(one.launches) if one else "0" for one in (each.base, each.head)]
    return {
        "name": use.name,
        "label": use.label,
        "kind": each.kind,
        "before_s": each.base.seconds if each.base else None,
        "after_s": each.head.seconds if each.head else None,
        "difference_s": each.difference_s,
        "launches": " → ".join(dict.fromkeys(launches)),
        "matched": each.matched if each.base and each.head else "",
        "operator": " ".join([*use.operators[:1], use.shapes]).strip(),
        "more": configuration_lines(each),
    }
