"""What XML takes: text from outside, and a whole document."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

from regress.text.style import visible

_NOT_XML = re.compile("[\ufffe\uffff]")
"""What `visible` leaves as it is and XML 1.0 does not have."""


def inert(text: str) -> str:
    """Text from outside in characters that XML has, on one line; what is markup there, ElementTree writes out."""
    return _NOT_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", visible(text))


def document(root: ElementTree.Element) -> str:
    """The element as a document in UTF-8."""
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'
