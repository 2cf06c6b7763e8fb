"""How the hosts read what is written for them: GitHub's Markdown, JUnit's schema, and the commands in a job's output."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cmarkgfm
from cmarkgfm.cmark import Options
from lxml import etree, html

SCHEMA = etree.XMLSchema(etree.parse(str(Path(__file__).with_name("junit.xsd"))))

OURS = {"div", "h3", "p", "br", "strong", "code", "pre", "blockquote", "sub", "details", "summary"} | {
    *("table", "thead", "tbody", "tr", "th", "td"),
}
"""Elements of a comment; a link or an image is none of them."""
LINKS = re.compile(r"[@#!~&$^]\w|%\d|://|\bwww\.|\bGH-\d|:[\w+-]*[a-z][\w+-]*:|\w@\w", re.IGNORECASE)
"""What GitHub or GitLab make a link or a picture of wherever it is not code: mentions, issues, requests, labels, addresses."""


def page(markdown: str) -> Any:
    """The comment as an element, with the HTML in it, as GitHub's own library reads it."""
    text = cmarkgfm.github_flavored_markdown_to_html(markdown, options=Options.CMARK_OPT_UNSAFE)
    return html.fromstring(f"<div>{text}</div>")


def running_text(element: Any) -> str:
    """All text that is not code, in which a host looks for links."""
    parts = [element.text or ""] if element.tag not in ("code", "pre") else [" "]
    for child in element:
        parts += [running_text(child), child.tail or ""]
    return "".join(parts)


def assert_harmless(markdown: str) -> None:
    """Nothing that came from outside is markup, a link or a mention."""
    root = page(markdown)
    for element in root.iter():
        assert element.tag in OURS, etree.tostring(element)
        assert set(element.attrib) <= {"align", "lang"}, etree.tostring(element)
    assert not LINKS.search(running_text(root)), running_text(root)


def junit(text: str) -> Any:
    """The document as an element; fails where it is not XML 1.0 or not JUnit's."""
    root = etree.fromstring(text.encode())
    SCHEMA.assertValid(root)
    return root


@dataclass(frozen=True)
class Command:
    """A workflow command as the runner understands it."""

    name: str
    properties: dict[str, str]
    data: str


def commands(output: str) -> list[Command]:
    """Those that the runner obeys, in order. It looks at each line by itself, and leaves all alone between a
    stop-commands and its token."""
    parsed, token = [], ""
    for line in output.split("\n"):
        match = re.match(r"^\s*::([\w-]+)(?: ([^:]*))?::(.*)$", line)
        if match is None:
            assert token or not ("##[" in line or line.lstrip().startswith("::")), line
            continue
        name, properties, data = match.groups()
        if token:
            token = "" if name == token else token
        elif name == "stop-commands":
            token = data
        else:
            pairs = (pair.partition("=") for pair in filter(None, (properties or "").split(",")))
            parsed.append(Command(name, {key: _unescaped(value) for key, _, value in pairs}, _unescaped(data)))
    assert not token
    return parsed


def _unescaped(text: str) -> str:
    return re.sub("%(25|0D|0A|3A|2C)", lambda match: chr(int(match[1], 16)), text)
