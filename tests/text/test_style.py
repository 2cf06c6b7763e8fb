"""Text from outside is shown, never obeyed; widths are columns of a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regress.text.style import Style, cells, cut, pad, paint, visible

LAWS = settings(deadline=None, derandomize=True, database=None)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 'text' \\n </td>", "plain 'text' \\n </td>"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b[31mred\x7f\x00\x9b", "\\x1b[31mred\\x7f\\x00\\x9b"),
        ("\u202egnp\u2066\u200b\u2028", "\\u202egnp\\u2066\\u200b\\u2028"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("Zoë 李 🚀 👩\u200d🔬", "Zoë 李 🚀 👩\u200d🔬"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("トーク", 6), ("🚀", 2), ("e\u0301", 1), ("…±", 2), ("", 0)])
def test_cells_are_columns(text: str, width: int) -> None:
    assert cells(text) == width


def test_pad_fills_columns_not_characters() -> None:
    assert pad("李", 4) == "李  "
    assert pad("李", 4, "r") == "  李"
    assert pad("abc", 2) == "abc"


def test_cut_keeps_both_ends() -> None:
    assert cut("softmax.cudatime_fwd(4096, fp16)", 21) == "softmax.cu…096, fp16)"
    assert cut("short", 5) == "short"
    assert cut("李李李李", 5) == "李…李"


@LAWS
@given(st.text(), st.integers(1, 30))
def test_a_cut_text_fits(text: str, width: int) -> None:
    assert cells(cut(text, width)) <= width
    assert (cut(text, width) == text) == (cells(text) <= width)


def test_color_is_used_only_when_wanted() -> None:
    assert paint("x", "red", Style()) == "x"
    assert paint("x", "red", Style(color=True)) == "\x1b[31mx\x1b[0m"
    assert paint("x", "", Style(color=True)) == "x"
    assert paint("  ", "red", Style(color=True)) == "  "
