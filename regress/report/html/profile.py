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
    cases = [*(profile.case for profile in report.profiled), *(result.case for result in report.metered)]
    return ", ".join(map(str, cases)) or "profile"


def _export(report: Report, export: Profile) -> dict[str, Any]:
    return {
        "document": dataclasses.asdict(export),
        "plan": report.plan,
        "state": report.state,
        "warnings": report.warnings,
        "comparisons": [_comparison(comparison) for comparison in report.comparisons],
    }


def _cases(report: Report) -> dict[str, Any]:
    """As the JSON of the report has them."""
    content = document(report)
    compared = [f"{label} {commit} {subject}" for label, commit, subject, *_ in sides(report, Style())]
    return {
        "document": None,
        "lede": " · ".join(filter(None, [*compared, place(report), report.plan])),
        "difference": _difference(report),
        "profiles": content.get("profiles", []),
        "metered": content.get("metered", []),
        "warnings": report.warnings,
    }


def _difference(report: Report) -> dict[str, Any] | None:
    """Between two cases, where one was compared with the other."""
    explanation = report.profiled_difference
    if explanation is None:
        return None
    base, head = report.profiled
    return {
        "sides": [str(base.case), str(head.case)],
        "totals": totals_against(base, head),
        "causes": [cause.text for cause in explanation.causes],
        "kernels": kernels_of(explanation),
        "warnings": explanation.warnings,
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "case": str(comparison.case),
        "metric": comparison.metric.name,
        "unit": comparison.metric.unit,
        "verdict": str(comparison.verdict),
        "gates": comparison.gates,
        "base": comparison.base.center if comparison.base else None,
        "head": comparison.head.center if comparison.head else None,
        "n": [side.n if side else 0 for side in (comparison.base, comparison.head)],
        "ratio": comparison.ratio,
        "low": comparison.low,
        "high": comparison.high,
        "reasons": comparison.reasons,
    }


# -- an explanation ----------------------------------------------------------------------------------------------------


def write_explained(report: Report, path: Path) -> None:
    """Write the page of what the report explains. Raises RegressError if it cannot be written."""
    compared = [f"{label} {commit} {subject}" for label, commit, subject, *_ in sides(report, Style())]
    data = {
        "lede": " · ".join(filter(None, [*compared, place(report)])),
        "cases": [_explanation(shown, report) for shown in report.explained],
    }
    title = str(report.explained[0].case) if report.explained else "nothing"
    write_alone(path, "--html", explained_page(title, [script_of("explained", "", data)]))


def _explanation(shown: Explained, report: Report) -> dict[str, Any]:
    said = account(shown)
    return {
        **said,
        "timelines": [
            {"side": name, "lane": one.lane, "name": one.name, "start_s": one.start_s, "duration_s": one.duration_s}
            for name, side in (("base", shown.base), ("head", shown.head))
            for one in (side.timeline if side is not None else ())
        ],
        "files": shown.files,
        "commits": [f"{one.short} {one.subject}" for one in reversed(shown.commits)],
        "warnings": [*said["warnings"], *report.warnings],
    }
