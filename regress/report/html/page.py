"""The pages: a template with style and scripts in it, so that the page is there or is not, and never half of it."""

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
    "implementations/facts",
    "implementations/chart",
    "implementations/main",
    "choice",
    "facts",
    "detail",
    "benchmark",
    "compare",
    "regressions",
    "machines",
    "failures",
    "keys",
    "theme",
    "main",
)
"""Of index.html, in the order in which they run: each uses what stands before it, and main begins."""

PROFILE_SCRIPTS = (
    *("start", "text", "dom", "state", "words", "search", "export", "table", "theme"),
    *(
        "profile/document",
        "profile/bars",
        "profile/memory",
        "profile/timeline",
        "profile/sections",
        "profile/tables",
        "profile/main",
    ),
)
"""Of the page of a profile."""

EXPLAINED_SCRIPTS = (
    *("start", "text", "dom", "state", "words", "search", "export", "table", "theme"),
    *("profile/timeline", "explained/main"),
)
"""Of the page of an explanation."""


def page(title: str, data: Sequence[str] = (), sources: Sequence[str] = ()) -> str:
    """The page of a report with the data in it, or with the files that it loads them from."""
    return _rendered("page.html.j2", "style.css implementations.css", SCRIPTS, title=title, data=data, sources=sources)


def profile_page(title: str, data: Sequence[str]) -> str:
    """The page of a profile, with the data in it."""
    return _rendered("profile.html.j2", "style.css profile.css", PROFILE_SCRIPTS, title=title, data=data)


def explained_page(title: str, data: Sequence[str]) -> str:
    """The page of an explanation, with the data in it."""
    styles = "style.css profile.css explained.css"
    return _rendered("explained.html.j2", styles, EXPLAINED_SCRIPTS, title=title, data=data)


def _rendered(template: str, styles: str, scripts: Sequence[str], **more: object) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    style = "".join(map(_text, styles.split())).replace("/* dark.css */", _text("dark.css"))
    return environment.get_template(template).render(
        style=_text("vendor/uPlot.min.css") + style,
        licence=_text("vendor/uPlot.LICENSE"),
        library=_text("vendor/uPlot.iife.min.js"),
        scripts=[_text(f"js/{name}.js") for name in scripts],
        **more,
    )


@cache
def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")
