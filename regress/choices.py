"""What can be chosen on the command line and in the configuration. It imports nothing: `--help` shows these words."""

from __future__ import annotations

DEVICES = ("auto", "cuda", "torch", "cpu", "fake")
"""What to measure on; `fake` is the scripted device. `measure.backend.choose` opens it."""

FORMATS = {
    "text": "regress.report.terminal",
    "json": "regress.report.json",
    "markdown": "regress.report.markdown",
    "github": "regress.report.github",
    "junit": "regress.report.junit",
}
"""Format of a report -> the module whose `render` writes it."""

IMPORTED = {
    "google-benchmark": "regress.importers.google_benchmark",
    "nvbench": "regress.importers.nvbench",
    "pytest-benchmark": "regress.importers.pytest_benchmark",
    "hyperfine": "regress.importers.hyperfine",
    "cutlass": "regress.importers.cutlass",
}
"""Format of what another suite has written -> the module whose `read` reads it."""

MAPPED = {"json": "regress.importers.mapped"}
"""The same of what only its author can say how to read: a program's."""
