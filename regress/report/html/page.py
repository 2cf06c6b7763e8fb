"""The pages: a template with style and scripts in it, so that the page is there or is not, and never half of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from regress.model import NEGATIVE, Verdict
from regress.pages import STATUSES

HERE = Path(__file__).parent
PAGE = "page.html.j2"
_WORDS = (
    f"Object.assign(regress, {json.dumps({'STATUSES': STATUSES, 'VERDICTS': list(Verdict), 'NEGATIVE': NEGATIVE})});"
)
"""The tables that the pages have from Python."""

SCRIPTS = (
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
    "account",
    "event",
    "columns",
    "overview",
    "chart",
    "picture",
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
"""Of index.html, in the order in which they run, after `start`: each uses what stands before it, and main begins."""
STYLES = "style.css account.css implementations.css"
"""Of index.html."""

PROFILE_SCRIPTS = (
    *("text", "dom", "state", "words", "search", "export", "table", "theme"),
    *(
        "profile/document",
        "profile/bars",
        "profile/memory",
        "profile/timeline",
        "profile/sections",
        "profile/tables",
        "account",
        "profile/cases",
        "profile/main",
    ),
)
"""Of the page of a profile."""

EXPLAINED_SCRIPTS = (
    *("text", "dom", "state", "words", "search", "export", "table", "theme"),
    *("profile/timeline", "account", "explained/main"),
)
"""Of the page of an explanation."""


def page(title: str, data: Sequence[str] = (), sources: Sequence[str] = ()) -> str:
    """The page of a report with the data in it, or with the files that it loads them from."""
    return _rendered(PAGE, STYLES, SCRIPTS, title=title, data=data, sources=sources)


def page_stamp(title: str, sources: Sequence[str]) -> str:
    """A word that is another one whenever that page could be: rendering it takes longer than looking at what it is made of."""
    parts = _parts(STYLES, SCRIPTS)
    return hashlib.sha256(repr((title, sources, _text(PAGE), parts)).encode()).hexdigest()[:24]


def profile_page(title: str, data: Sequence[str]) -> str:
    """The page of a profile, with the data in it."""
    return _rendered("profile.html.j2", "style.css profile.css account.css", PROFILE_SCRIPTS, title=title, data=data)


def explained_page(title: str, data: Sequence[str]) -> str:
    """The page of an explanation, with the data in it."""
    styles = "style.css profile.css account.css explained.css"
    return _rendered("explained.html.j2", styles, EXPLAINED_SCRIPTS, title=title, data=data)


def _rendered(template: str, styles: str, scripts: Sequence[str], **more: object) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    return environment.get_template(template).render(**_parts(styles, scripts), **more)


def _parts(styles: str, scripts: Sequence[str]) -> dict[str, str | list[str]]:
    """What of a page is the same for all data."""
    style = "".join(map(_text, styles.split())).replace("/* dark.css */", _text("dark.css"))
    return {
        "style": _text("vendor/uPlot.min.css") + style,
        "licence": _text("vendor/uPlot.LICENSE"),
        "library": _text("vendor/uPlot.iife.min.js"),
        "scripts": [_text("js/start.js"), _WORDS, *(_text(f"js/{name}.js") for name in scripts)],
    }


@cache
def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


_HARMLESS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""What could end a script or open a comment where a script stands in a page, and what older engines take for the end of a line.
Inside a string, which is the only place where JSON has them, the longer form is the same."""


def script_of(kind: str, name: str, data: Any) -> str:
    """Data as `regress.take(...[KIND, NAME, {...}]);`: a page opened from a file may run scripts, but not read files. Numbers
    that are not finite become null."""
    text = _json([kind, name, data])
    for character, escaped in _HARMLESS.items():
        text = text.replace(character, escaped)
    return f"regress.take(...{text});\n"


def _json(data: Any) -> str:
    try:
        return msgspec.json.encode(data).decode()
    except UnicodeEncodeError:  # half of a character, as a path or a parameter may have it
        return json.dumps(json.loads(json.dumps(msgspec.to_builtins(data)), parse_constant=lambda _: None))
