"""GitHub Flavored Markdown, which GitLab reads too: text from outside in it, tables, and as much as fits. The one place that
knows what is markup there.

A host makes links of mentions, issues, commits and addresses after the markup is read, but never inside of code. So whatever
could be more than words is a code span, in which nothing is read at all.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from regress.text.style import cut, visible
from regress.text.table import Row

_LONGEST = 300
"""Columns of a cell: a name of a hundred thousand characters must not be the whole page."""

_WORDS = re.compile(
    r"(?:[^\W_]|(?<=[^\W_])_(?=[^\W_])|[ (),;.…±·'\"/=+?-]|:(?= |$)|(?<=\d):(?=\d\d(?!\d))|%(?!\w)|(?<=-)>)*"
)
"""Characters that are no markup where they stand, wherever that is but at the beginning of a block."""
_LINK = re.compile(r"//|\bwww\.|\bGH-\d|--", re.IGNORECASE)
"""What is made a link all the same; two dashes because they end an HTML comment, and begin a line or a table."""
_NO_BREAK = "\u00a0"
_ALIGN = {"l": ":--", "r": "--:"}


@dataclass(frozen=True)
class PagePart:
    """A part of a page: rows of which some may be left out, and what stands around them. It ends with an empty line."""

    before: str = ""
    rows: tuple[str, ...] = ()
    after: str = ""
    weights: tuple[float, ...] = ()
    """How much each row matters, where not all have room; empty: the first ones most."""
    reserved: int = 0
    """This many of its rows, those that matter most, have room before any that are not reserved."""

    def by_weight(self) -> list[int]:
        """The places of its rows, the one that matters most first."""
        weights = self.weights or (0.0,) * len(self.rows)
        return sorted(range(len(self.rows)), key=lambda at: -weights[at])

    def whole(self) -> PagePart:
        """The same with nothing that may be left out; for what is short."""
        return PagePart("".join((self.before, *self.rows, self.after)))


def words(text: str) -> str:
    """Text from outside as running text where it can be nothing else, else as code."""
    text = cut(visible(text), _LONGEST)
    return text if _is_words(text) else code(text)


def code(text: str) -> str:
    """Text from outside as a code span; empty if there is nothing to be seen."""
    text = cut(visible(text), _LONGEST)
    if not text.strip():
        return ""
    ticks = _ticks(text, 1)
    space = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def table(rows: Sequence[Row], aligns: str, *, bold: bool = True) -> PagePart:
    """The first row is the titles, the first column are names; `bold` is for what a row is about. Columns in which nothing
    stands are left out."""
    used = [at for at in range(len(aligns)) if any(row.cells[at].strip() for row in rows)]
    titles = _line(words(rows[0].cells[at]) for at in used)
    below = _line(_ALIGN[aligns[at]] for at in used)
    cells = ((_cell(row, at, bold) for at in used) for row in rows[1:])
    return PagePart(f"{titles}{below}", tuple(map(_line, cells)), "\n", tuple(row.weight for row in rows[1:]))


def fence(blocks: Iterable[Sequence[str]], language: str = "text", *, longest: int = _LONGEST) -> PagePart:
    """Lines as they are, up to this many columns; those of a block stay together."""
    rows = tuple("".join(f"{cut(visible(line), longest)}\n" for line in lines) for lines in blocks)
    ticks = _ticks("".join(rows), 3)
    return PagePart(f"{ticks}{language}\n", rows, f"{ticks}\n\n")


def fold(title: str, part: PagePart) -> PagePart:
    """The part behind a line to be clicked at, which is HTML: no markup is read there, but links are made."""
    text = cut(visible(title), _LONGEST)
    escaped = html.escape(text)
    summary = escaped if _is_words(text) else f"<code>{escaped}</code>"
    before = f"<details><summary>{summary}</summary>\n\n{part.before}"
    return replace(part, before=before, after=f"{part.after}</details>\n\n")


def fit(parts: Sequence[PagePart], limit: int, where: str) -> str:
    """The page in at most this many bytes. What is left out is counted, and `where` says where it is."""
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
    """The places of the rows of each part that have room."""
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
        for at in (each for each in part.by_weight() if each not in kept[number]):
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
    """A row; a pipe ends a cell even inside of code."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _ticks(text: str, least: int) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(least, longest + 1)


def _size(text: str) -> int:
    return len(text.encode())
