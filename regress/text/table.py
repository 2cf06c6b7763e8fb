"""Aligned columns. The first column holds names, which may be far longer than the rest is wide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from regress.text.style import Style, cells, cut, pad, paint

__all__ = ["Layout", "Row", "align", "shortened", "table", "titles"]

_GAP = "  "
_MARK_WIDTH = 2
_NAME_LIMIT = 60
"""A longer name has a line of its own, so that one name does not push the numbers of all rows out of sight."""
_NAME_LEAST = 20
_SUBJECT_LEAST = 12
_NOTE_LIMIT = 12
"""How much of a terminal's width is kept free for the last column, which may wrap."""


@dataclass(frozen=True)
class Row:
    """One line of a table. `mark` stands before it; mark and the column number `accent` are painted in `color`."""

    cells: tuple[str, ...]
    mark: str = " "
    color: str = ""
    accent: int | None = None
    weight: float = 0.0
    """How much it matters, if there is no room for all."""
    subject: str = ""
    """A part of the last cell that is cut where the line is wider than the terminal: the subject of a commit."""


@dataclass(frozen=True)
class Layout:
    """Widths of the columns that all rows of a table, and of the tables below it, share."""

    widths: tuple[int, ...]
    aligns: str
    """One letter a column: l or r."""

    @classmethod
    def of(cls, rows: Sequence[Row], aligns: str, style: Style) -> Layout:
        """The narrowest layout that holds these rows."""
        if not rows:
            return cls((0,) * len(aligns), aligns)
        widths = [max(cells(row.cells[column]) for row in rows) for column in range(len(aligns))]
        limit = _NAME_LIMIT
        if style.width is not None:
            others = [*widths[1:-1], min(widths[-1], _NOTE_LIMIT)]
            limit = max(_NAME_LEAST, style.width - _MARK_WIDTH - sum(len(_GAP) + width for width in others))
        names = [cells(row.cells[0]) for row in rows]
        widths[0] = max((name for name in names if name <= limit), default=0)
        return cls(tuple(widths), aligns)

    def lines(self, row: Row, style: Style) -> list[str]:
        """The row as a line, or two: behind a name that does not fit, the numbers follow on the next line.

        Only a name that is wider than the whole terminal is cut.
        """
        name = row.cells[0]
        if cells(name) <= self.widths[0]:
            return [self._fitting(row.cells, row.mark, row, style)]
        if style.width is not None:
            name = cut(name, max(_NAME_LEAST, style.width - _MARK_WIDTH))
        alone = f"{paint(row.mark, row.color, style)} {paint(name, row.color if row.accent == 0 else '', style)}"
        if not any(row.cells[1:]):
            return [alone]
        return [alone, self._fitting(("", *row.cells[1:]), " ", row, style)]

    def _fitting(self, texts: Sequence[str], mark: str, row: Row, style: Style) -> str:
        """The line, with as much of the subject as there is room for."""
        line = self._line(texts, mark, row, style)
        if style.width is None or not row.subject:
            return line
        wide = cells(self._line(texts, mark, row, replace(style, color=False)))
        short = shortened(row.subject, wide - style.width)
        return self._line((*texts[:-1], texts[-1].replace(row.subject, short, 1)), mark, row, style)

    def _line(self, texts: Sequence[str], mark: str, row: Row, style: Style) -> str:
        parts = []
        last = max((column for column, text in enumerate(texts) if text), default=0)
        for column, (text, width, how) in enumerate(zip(texts, self.widths, self.aligns, strict=True)):
            if column > last or not width:
                continue
            padded = text if column == last and how == "l" else pad(text, width, how)
            parts.append(paint(padded, row.color, style) if column == row.accent else padded)
        return f"{paint(mark, row.color, style)} {_GAP.join(parts)}".rstrip()


def shortened(subject: str, over: int) -> str:
    """The subject of a commit, cut by the columns that there is no room for; some of it stays."""
    return subject if over <= 0 else cut(subject, max(min(_SUBJECT_LEAST, cells(subject)), cells(subject) - over))


def titles(*words: str, columns: int = 0) -> Row:
    """The row above the others of a table; blank cells follow as far as the columns go."""
    return Row((*words, *("",) * (columns - len(words))), color="bold", accent=0)


def table(rows: Sequence[Row], aligns: str, style: Style) -> list[str]:
    """Rows as lines, as wide as they need."""
    layout = Layout.of(rows, aligns, style)
    return [line for row in rows for line in layout.lines(row, style)]


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of equal length as lines with aligned columns, for the few short lines that are no table."""
    widths = [max(cells(text) for text in column) for column in zip(*rows, strict=True)]
    return [_GAP.join(pad(text, width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
