"""Columns stay aligned, whatever the names are."""

from __future__ import annotations

from regress.text.style import Style, cells
from regress.text.table import Layout, Row, align

LONG = "n" * 61


def lines(rows: list[Row], aligns: str, style: Style = Style()) -> list[str]:  # noqa: B008 - frozen
    layout = Layout.of(rows, aligns, style)
    return [line for row in rows for line in layout.lines(row, style)]


def test_columns_are_aligned_by_their_letter() -> None:
    rows = [Row(("name", "9.9 us", "x")), Row(("トーク", "10.0 us", ""), "+")]
    assert lines(rows, "lrl") == ["  name     9.9 us  x", "+ トーク  10.0 us"]


def test_a_column_that_is_empty_in_all_rows_takes_no_room() -> None:
    assert lines([Row(("a", "", "1")), Row(("b", "", "2"))], "lll") == ["  a  1", "  b  2"]


def test_a_very_long_name_has_its_own_line_and_pushes_nothing() -> None:
    rows = [Row(("short", "1")), Row((LONG, "2"), "+"), Row((LONG, ""))]
    assert lines(rows, "lr") == ["  short  1", f"+ {LONG}", "         2", f"  {LONG}"]


def test_names_are_never_cut_when_not_on_a_terminal() -> None:
    assert f"  {'n' * 5000}" in lines([Row(("n" * 5000, "1"))], "lr")


def test_on_a_terminal_numbers_follow_below_a_name_that_does_not_fit() -> None:
    rows = [Row(("a" * 21, "1" * 10, "note")), Row(("b" * 22, "2" * 10, ""))]
    assert lines(rows, "lrl", Style(width=41)) == [
        f"  {'a' * 21}  {'1' * 10}  note",
        f"  {'b' * 22}",
        f"  {' ' * 21}  {'2' * 10}",
    ]


def test_only_a_name_wider_than_the_terminal_is_cut() -> None:
    assert lines([Row(("b" * 38,))], "l", Style(width=40)) == [f"  {'b' * 38}"]
    (line,) = lines([Row(("b" * 39,))], "l", Style(width=40))
    assert "…" in line
    assert cells(line) == 40


def test_color_does_not_move_columns() -> None:
    rows = [Row(("a", "1", "x"), "+", "red", accent=1), Row(("b", "22", "y"))]
    colored = lines(rows, "lrl", Style(color=True))
    assert colored[0] == "\x1b[31m+\x1b[0m a  \x1b[31m 1\x1b[0m  x"
    assert [line.replace("\x1b[31m", "").replace("\x1b[0m", "") for line in colored] == lines(rows, "lrl")


def test_no_rows() -> None:
    assert lines([], "lr") == []


def test_align() -> None:
    assert align([("a", "bb", "c"), ("aa", "b", "")]) == ["a   bb  c", "aa  b"]
