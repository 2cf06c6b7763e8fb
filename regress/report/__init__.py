"""Reports as text. A renderer turns one Report into one string and computes nothing; only invocation.py prints it.

    summary.py    common to all formats: sides, verdict line, the command to measure a case again
    terminal.py   text for people: check, compare, run, list, config, doctor, and errors
    verdicts.py   its sections of comparisons, by verdict
    together.py   cases of one benchmark that moved together, which are one row
    rows.py       the cells of a row
    changes.py    change points of a sweep
    anchors.py    what its anchors show about the machine
    bisection.py  ends and probes of a bisection
    failures.py   what failed or was skipped, which has no cells
    listings.py   its tables of the other commands
    explained.py  explanations: the cause, where the time went, the kernels
    profile.py    profiles of programs: operations and bottlenecks
    implementations.py  implementations of one operation, the fastest marked
    calls.py      cases that were profiled, side by side or in full
    metered.py    kernels one by one, as Nsight Compute measured them
    json.py       the versioned document of regress.check.schema.json
    shapes.py     the keys of its objects where they differ from the types' fields, and the keys of each command
    schema.py     the schemas from the same types: `make schemas`
    markdown.py   a comment for a pull request
    gfm.py        its markup and size limit
    xml.py        XML: foreign text, and a whole document
    junit.py      testcases, for GitLab and Jenkins
    github.py     annotations, for GitHub Actions
    progress.py   progress on stderr

A further format is one module with a function `render(report, style)` and one line in regress/choices.py.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable

from regress.choices import FORMATS
from regress.model import Report
from regress.text.style import Style

__all__ = ["Renderer", "Style", "load", "render"]

Renderer = Callable[[Report, Style], str]


def load(formats: Iterable[str]) -> None:
    """Import the renderers now. Who installs another version while something is measured must not lose its report."""
    for format in formats:
        importlib.import_module(FORMATS[format])


def render(report: Report, style: Style, format: str = "text") -> str:
    """The report in a format of FORMATS: empty, or ending with a newline. KeyError for an unknown format."""
    renderer: Renderer = importlib.import_module(FORMATS[format]).render
    return renderer(report, style)
