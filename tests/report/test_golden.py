"""Every renderer against its golden file. `REGRESS_UPDATE_GOLDEN=1 pytest tests/report` rewrites them: read the diff."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from regress.choices import FORMATS
from regress.model import Report
from regress.report import Style, render

from . import sample

UPDATE = bool(os.environ.get("REGRESS_UPDATE_GOLDEN"))
GOLDEN = Path(__file__).parent / "golden"
ENDINGS = {"text": "txt", "json": "json", "markdown": "md", "github": "log", "junit": "xml"}
REPORTS: dict[str, tuple[Callable[[], Report], tuple[str, ...]]] = {
    "check": (sample.check, ("", "-verbose", "-quiet", "-terminal")),
    "acknowledged": (sample.acknowledged, ("", "-verbose", "-quiet", "-terminal")),
    "acknowledged-changes": (sample.acknowledged_changes, ("", "-verbose")),
    "ack": (sample.ack, ("", "-quiet", "-terminal")),
    "check-explained": (sample.check_explained, ("",)),
    "explain": (sample.explain, ("", "-verbose", "-quiet", "-terminal")),
    "together": (sample.together, ("", "-verbose", "-terminal")),
    "compare": (sample.passed, ("", "-verbose")),
    "run": (sample.run, ("", "-verbose", "-terminal")),
    "fastest": (sample.fastest, ("", "-verbose", "-quiet", "-terminal")),
    "sweep": (sample.sweep, ("", "-verbose", "-quiet", "-terminal")),
    "shifted": (sample.shifted, ("", "-verbose", "-terminal")),
    "gate": (sample.gate, ("", "-verbose", "-quiet", "-terminal")),
    "bisect": (sample.bisect, ("", "-verbose", "-quiet", "-terminal")),
    "list": (sample.listing, ("", "-quiet")),
    "doctor": (sample.doctor, ("", "-quiet", "-terminal")),
    "aa": (sample.aa, ("", "-quiet", "-terminal")),
    "init": (sample.init, ("", "-quiet")),
    "build": (sample.build, ("", "-quiet", "-terminal")),
    "merge": (sample.merge, ("", "-quiet", "-terminal")),
    "config": (sample.config, ("",)),
    "stopped": (sample.stopped, ("",)),
}
"""Name -> report, and the styles in which its text differs."""
STYLES = {
    "": Style(),
    "-verbose": Style(verbose=True),
    "-quiet": Style(quiet=True),
    "-terminal": Style(color=True, width=90, now=sample.NOW),
}
CASES = [(name, style, "text") for name, (_, styles) in REPORTS.items() for style in styles]
CASES += [(name, "", format) for name in REPORTS for format in FORMATS if format != "text"]
CASES += [("check", style, "markdown") for style in ("-verbose", "-quiet")]


@pytest.mark.parametrize(("name", "style", "format"), CASES)
def test_golden(name: str, style: str, format: str) -> None:
    text = render(REPORTS[name][0](), STYLES[style], format)
    file = GOLDEN / f"{name}{style}.{ENDINGS[format]}"
    if UPDATE:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
    assert text == file.read_text(encoding="utf-8")


def test_every_golden_file_is_used() -> None:
    files = {f"{name}{style}.{ENDINGS[format]}" for name, style, format in CASES}
    assert {file.name for file in GOLDEN.iterdir()} == files
