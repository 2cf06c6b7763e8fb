"""Parts of messages say what was meant, in one line."""

from __future__ import annotations

import shlex

import pytest

from regress.text.wording import correction, counted, first_of, near_names, quoted


@pytest.mark.parametrize(
    ("number", "noun", "said"),
    [
        (1, "case", "1 case"),
        (0, "case", "0 cases"),
        (2, "entry", "2 entries"),
        (3, "launch", "3 launches"),
        (2, "day", "2 days"),
    ],
)
def test_counts(number: int, noun: str, said: str) -> None:
    assert counted(number, noun) == said


def test_a_list_ends_early_and_says_how_much_is_left() -> None:
    assert [first_of("abcd"[:count], 2) for count in (0, 1, 2, 3, 4)] == [
        "",
        "a",
        "a, b",
        "a, b and 1 more",
        "a, b and 2 more",
    ]


def test_a_misspelt_word_is_corrected_where_one_is_near() -> None:
    assert correction("machin", ("machine", "device"), "remove it") == 'write "machine"'
    assert correction("xyzzy", ("machine", "device"), "remove it") == "remove it"


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ("softmax", ["ops.Softmax.time_fwd", "ops.Softmax.time_bwd"]),
        ("Sofmax", ["ops.Softmax.time_bwd", "ops.Softmax.time_fwd"]),
        ("Softmax.time_fdw", ["ops.Softmax.time_fwd", "ops.Softmax.time_bwd"]),
        (r"^io\.time_laod$", ["io.time_load(1, 2)"]),
        ("io.time_load(1,2)", ["io.time_load(1, 2)"]),
        ("xyzzy", []),
        ("", []),
    ],
)
def test_names_are_near_in_whole_or_in_part(words: str, near: list[str]) -> None:
    names = ["ops.Softmax.time_fwd", "ops.Softmax.time_bwd", "io.time_load(1, 2)"]
    assert sorted(near_names(words, names)) == sorted(near)
    assert near_names(words, names)[:1] == near_names(words, reversed(names))[:1], (
        "the order that they stand in is nobody's"
    )


def test_a_command_line_is_one_line_that_the_shell_takes_apart() -> None:
    words = ("regress", "check", "-b", "f('a b', $x)")
    assert shlex.split(quoted(*words)) == list(words)
    assert quoted("a\n'b\\") == "$'a\\U0000000a\\'b\\\\'"
