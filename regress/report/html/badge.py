"""The badge of a report: a line for a README that says how many regressions are open, as a picture of its own."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from regress.pages import PageIndex
from regress.report.xml import inert
from regress.text.wording import counted

BADGE = "badge.svg"
SVG = "http://www.w3.org/2000/svg"
LETTER, MARGIN = 6.2, 8
"""Pixels: the mean width of a letter, which every font is made to keep, and of what is left beside the text."""
MARK = 26
"""Pixels of the part with the mark."""
DARK, WORSE, BETTER = "#40464d", "#a83208", "#0a665b"
"""White stands out from each of them, and each from a page of either theme."""


def badge(index: PageIndex) -> str:
    """The picture."""
    words, color = _said(index)
    letters = len(words) * LETTER
    width = round(MARK + letters + 2 * MARGIN)
    title = inert(f"{index.project}: {words}")
    root = ElementTree.Element("svg", xmlns=SVG, width=str(width), height="20", role="img")
    root.set("aria-label", title)
    ElementTree.SubElement(root, "title").text = title
    ElementTree.SubElement(root, "rect", width=str(width), height="20", rx="3", fill=color)
    ElementTree.SubElement(root, "path", d=f"M3 0H{MARK}V20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z", fill=DARK)
    step = "M6 13h7V7h7" if color == WORSE else "M6 10h14"
    ElementTree.SubElement(root, "path", {"d": step, "fill": "none", "stroke": "#fff", "stroke-width": "2"})
    text = ElementTree.SubElement(root, "text", x=str(MARK + MARGIN), y="14", fill="#fff", textLength=f"{letters:.1f}")
    text.set("font-family", "Verdana, DejaVu Sans, sans-serif")
    text.set("font-size", "11")
    text.text = words
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _said(index: PageIndex) -> tuple[str, str]:
    """What it says, and its colour. What stopped giving numbers is said where there is any."""
    regressions, stopped = len(index.open), sum(case.cases for case in index.stopped)
    words = [f"{counted(regressions, 'regression') if regressions else 'no regressions'} open"]
    if stopped:
        words.append(f"{counted(stopped, 'case')} without a number")
    if regressions or stopped:
        return ", ".join(words), WORSE
    return (words[0], BETTER) if index.told else ("not enough results", DARK)
