"""index.html: the template with style and scripts in it, so that the page is there or is not, and never half of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent

SCRIPTS = (
    "start",
    "text",
    "dom",
    "state",
    "data",
    "words",
    "search",
    "export",
    "table",
    "marks",
    "filters",
    "event",
    "columns",
    "overview",
    "chart",
    "painting",
    "plugins",
    "samples",
    "sizes",
    "choice",
    "facts",
    "detail",
    "benchmark",
    "compare",
    "regressions",
    "machines",
    "failures",
    "keys",
    "main",
)
"""In the order in which they run: each uses what stands before it, and main begins."""


def page(title: str, data: Sequence[str] = (), sources: Sequence[str] = ()) -> str:
    """The page with the data in it, or with the files that it loads them from."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    return environment.get_template("page.html.j2").render(
        title=title,
        style=_text("vendor/uPlot.min.css") + _text("style.css").replace("/* dark.css */", _text("dark.css")),
        licence=_text("vendor/uPlot.LICENSE"),
        library=_text("vendor/uPlot.iife.min.js"),
        scripts=[_text(f"js/{name}.js") for name in SCRIPTS],
        data=data,
        sources=sources,
    )


@cache
def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")
