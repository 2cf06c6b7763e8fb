"""The page of a profile: one file, which any other export can be dropped onto."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from regress.model import Comparison, Report
from regress.report.html.folder import explained, replace_file
from regress.report.html.page import profile_page
from regress.report.html.script import script_of


def write_profile(report: Report, path: Path) -> None:
    """Write the page of the report's profile, with its comparisons where it has some. Raises RegressError where it cannot be
    written."""
    assert report.profile is not None
    data = {
        "document": dataclasses.asdict(report.profile),
        "plan": report.plan,
        "state": report.state,
        "warnings": report.warnings,
        "comparisons": [_comparison(each) for each in report.comparisons],
    }
    title = Path(report.profile.program).name or "profile"
    with explained(path, "--html FILE with a file that can be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, profile_page(title, [script_of("profile", "", data)]))


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
