"""GitHub Flavored Markdown, which GitLab reads too: foreign text in it, tables, and a size limit. The one place that knows what
is markup there.

A host turns mentions, issues, commits and addresses into links after it has read the markup, but never inside code. So
whatever could be more than words is a code span, in which nothing is markup.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from regress.text.style import cut, visible
from regress.text.table import Row

_LONGEST = 300
"""Columns of a cell: one long name must not fill the page."""

_WORDS = re.compile(
    r"(?:[^\W_]|(?<=[^\W_])_(?=[^\W_])|[ (),;.…±·'\"/=+?-]|:(?= |$)|(?<=\d):(?=\d\d(?!\d))|%(?!\w)|(?<=-)>)*"
)
"""Characters that are no markup where they stand, anywhere but at the beginning of a block."""
_LINK = re.compile(r"//|\bwww\.|\bGH-\d|--", re.IGNORECASE)
"""What becomes a link all the same; and two dashes, which end an HTML comment and begin a line or a table."""
_NO_BREAK = "\u00a0"
_ALIGN = {"l": ":--", "r": "--:"}


@dataclass(frozen=True)
class PagePart:
    """A part of a page: rows, of which some may be left out, and the text around them. It ends with an empty line."""

    before: str = ""
    rows: tuple[str, ...] = ()
    after: str = ""
    weights: tuple[float, ...] = ()
    """How much each row matters if not all fit; empty: the first ones most."""
    reserved: int = 0
    """The number of rows, those that matter most, that get room before any others."""

    def by_weight(self) -> list[int]:
        """The indices of its rows, the one that matters most first."""
        weights = self.weights or (0.0,) * len(self.rows)
        return sorted(range(len(self.rows)), key=lambda at: -weights[at])

    def whole(self) -> PagePart:
        """The same part with no row that may be left out; for what is short."""
        return PagePart("".join((self.before, *self.rows, self.after)))


def words(text: str) -> str:
    """Foreign text: as running text if it cannot be markup, else as code."""
    text = cut(visible(text), _LONGEST)
    return text if _is_words(text) else code(text)


def code(text: str) -> str:
    """Foreign text as a code span; empty if nothing in it is visible."""
    text = cut(visible(text), _LONGEST)
    if not text.strip():
        return ""
    ticks = _ticks(text, 1)
    space = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def table(rows: Sequence[Row], aligns: str, *, bold: bool = True) -> PagePart:
    """A table whose first row has the titles and whose first column has names; `bold` marks the accent of a row. Empty columns
    are left out."""
    used = [at for at in range(len(aligns)) if any(row.cells[at].strip() for row in rows)]
    titles = _line(words(rows[0].cells[at]) for at in used)
    below = _line(_ALIGN[aligns[at]] for at in used)
    cells = ((_cell(row, at, bold) for at in used) for row in rows[1:])
    return PagePart(f"{titles}{below}", tuple(map(_line, cells)), "\n", tuple(row.weight for row in rows[1:]))


def fence(blocks: Iterable[Sequence[str]], language: str = "text", *, longest: int = _LONGEST) -> PagePart:
    """Lines as they are, cut after `longest` columns; the lines of a block stay together."""
    rows = tuple("".join(f"{cut(visible(line), longest)}\n" for line in lines) for lines in blocks)
    ticks = _ticks("".join(rows), 3)
    return PagePart(f"{ticks}{language}\n", rows, f"{ticks}\n\n")


def fold(title: str, part: PagePart) -> PagePart:
    """The part behind a line to click. That line is HTML: markup is not read there, but links are made."""
    text = cut(visible(title), _LONGEST)
    escaped = html.escape(text)
    summary = escaped if _is_words(text) else f"<code>{escaped}</code>"
    before = f"<details><summary>{summary}</summary>\n\n{part.before}"
    return replace(part, before=before, after=f"{part.after}</details>\n\n")


def fit(parts: Sequence[PagePart], limit: int, where: str) -> str:
    """The page in at most `limit` bytes. It says how many rows are left out, and by `where` where they are."""
    ends = [_size(part.before) + _size(part.after) + _size(_more(10**9)) for part in parts]
    kept = _kept(parts, limit - sum(ends) - _size(_left_out(10**9, where)))
    page, missing = [], 0
    for part, places in zip(parts, kept, strict=True):
        left = len(part.rows) - len(places)
        missing += left
        page += [part.before, *(part.rows[at] for at in sorted(places)), part.after, _more(left) if left else ""]
    page += [_left_out(missing, where)] if missing else []
    return "".join(page).rstrip("\n") + "\n"


def _kept(parts: Sequence[PagePart], room: int) -> list[set[int]]:
    """The indices of the rows of each part that fit."""
    kept: list[set[int]] = [set() for _ in parts]
    share = room // 2  # of what is reserved no part takes more: nothing else would be there
    for number, part in enumerate(parts):
        own = share
        for at in part.by_weight()[: part.reserved]:
            if _size(part.rows[at]) <= min(own, room):
                own -= _size(part.rows[at])
                room -= _size(part.rows[at])
                kept[number].add(at)
    for number, part in enumerate(parts):
        for at in (place for place in part.by_weight() if place not in kept[number]):
            if room < _size(part.rows[at]):
                return kept  # what comes next is less serious: it must not be there instead of this
            room -= _size(part.rows[at])
            kept[number].add(at)
    return kept


def _is_words(text: str) -> bool:
    return bool(_WORDS.fullmatch(text)) and not _LINK.search(text)


def _more(count: int) -> str:
    return f"… and {count} more.\n\n"


def _left_out(count: int, where: str) -> str:
    rows = "1 row is" if count == 1 else f"{count} rows are"
    return f"{rows} left out here; {where}\n"


def _cell(row: Row, at: int, bold: bool) -> str:
    text = row.cells[at]
    if at == 0:
        return code(text)
    said = words(text)
    if at < len(row.cells) - 1:
        said = said.replace(" ", _NO_BREAK)  # a number keeps its unit; only names and notes take more than a line
    return f"**{said}**" if bold and at == row.accent and text.strip() else said


def _line(cells: Iterable[str]) -> str:
    """A row; a pipe would end a cell even inside code."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _ticks(text: str, least: int) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(least, longest + 1)


def _size(text: str) -> int:
    return len(text.encode())
