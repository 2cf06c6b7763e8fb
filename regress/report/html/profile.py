"""Pages that are one file: of a profile, onto which any export of GPUProfiler can be dropped; and of an explanation, with the
timelines of both sides one above the other."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from regress.model import Comparison, Explained, Report
from regress.profiles import Profile
from regress.report.calls import totals_against
from regress.report.html.account import account, kernels_of
from regress.report.html.folder import write_alone
from regress.report.html.page import explained_page, profile_page, script_of
from regress.report.json import document
from regress.report.summary import place, sides
from regress.text.style import Style


def write_profile(report: Report, path: Path) -> None:
    """Write the page of what was profiled: an export, with its comparisons where it has some, or cases. Raises RegressError
    if it cannot be written."""
    data = _cases(report) if report.profile is None else _export(report, report.profile)
    write_alone(path, "--html", profile_page(_title(report), [script_of("profile", "", data)]))


def _title(report: Report) -> str:
    if report.profile is not None:
        return Path(report.profile.program).name or "profile"
    cases = [*(each.case for each in report.profiled), *(each.case for each in report.metered)]
    return ", ".join(map(str, cases)) or "profile"


def _export(report: Report, found: Profile) -> dict[str, Any]:
    return {
        "document": dataclasses.asdict(found),
        "plan": report.plan,
        "state": report.state,
        "warnings": report.warnings,
        "comparisons": [_comparison(each) for each in report.comparisons],
    }


def _cases(report: Report) -> dict[str, Any]:
    """As the JSON of the report has them."""
    found = document(report)
    compared = [f"{label} {commit} {subject}" for label, commit, subject, *_ in sides(report, Style())]
    return {
        "document": None,
        "lede": " · ".join(filter(None, [*compared, place(report), report.plan])),
        "difference": _difference(report),
        "profiles": found.get("profiles", []),
        "metered": found.get("metered", []),
        "warnings": report.warnings,
    }


def _difference(report: Report) -> dict[str, Any] | None:
    """Between two cases, where one was compared with the other."""
    found = report.profiled_difference
    if found is None:
        return None
    base, head = report.profiled
    return {
        "sides": [str(base.case), str(head.case)],
        "totals": totals_against(base, head),
        "causes": [each.text for each in found.causes],
        "kernels": kernels_of(found),
        "warnings": found.warnings,
    }


def _comparison(each: Comparison) -> dict[str, Any]:
    return {
        "case": str(each.case),
        "metric": each.metric.name,
        "unit": each.metric.unit,
        "verdict": str(each.verdict),
        "gates": each.gates,
        "base": each.base.center if each.base else None,
        "head": each.head.center if each.head else None,
        "n": [side.n if side else 0 for side in (each.base, each.head)],
        "ratio": each.ratio,
        "low": each.low,
        "high": each.high,
        "reasons": each.reasons,
    }


# -- an explanation ----------------------------------------------------------------------------------------------------


def write_explained(report: Report, path: Path) -> None:
    """Write the page of what the report explains. Raises RegressError if it cannot be written."""
    compared = [f"{label} {commit} {subject}" for label, commit, subject, *_ in sides(report, Style())]
    data = {
        "lede": " · ".join(filter(None, [*compared, place(report)])),
        "cases": [_explanation(each, report) for each in report.explained],
    }
    title = str(report.explained[0].case) if report.explained else "nothing"
    write_alone(path, "--html", explained_page(title, [script_of("explained", "", data)]))


def _explanation(each: Explained, report: Report) -> dict[str, Any]:
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
