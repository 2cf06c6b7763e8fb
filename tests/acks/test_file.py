"""The acknowledgement file: what is read of it, what is refused, and that a change leaves every other line as it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regress.acks import file as acks
from regress.errors import ConfigError
from regress.model import LIFTED, NEXT_TAG, Acknowledgement

FILE = """\
# Ours. Ask Ada before you add to it.

# max and sum are one pass
[[ack]]
benchmark = "softmax.cudatime_fwd(4096, fp16)"  # the largest
metric = "gpu_time"
kind = "accepted"
level = 1.094
since = "3f2c1ab07d41"
until = "v1.6"
reason = "exact for long rows"
link = "https://example.org/412"

# -- noisy ones --

# reads from the disk
[[ack]]
benchmark = "^io\\\\."
kind = "noise"
reason = '''
a disk that
[[ack]]
others use'''

# broken since June
[[ack]]
benchmark = "conv.time_conv"
kind = "quarantine"
reason = "no shape fits"
# the end
"""
SOFTMAX = Acknowledgement(
    "softmax.cudatime_fwd(4096, fp16)",
    "accepted",
    "exact for long rows",
    "gpu_time",
    1.094,
    since="3f2c1ab07d41",
    until="v1.6",
    link="https://example.org/412",
    line=4,
)
PLAIN = FILE.replace("'''\na disk that\n[[ack]]\nothers use'''", '"a shared disk"')


def refused(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        acks.parse(text, "acks.toml")
    return caught.value


def entry(**keys: str) -> str:
    given = {"benchmark": '"a.time_b"', "kind": '"noise"', "reason": '"why"'} | keys
    return "[[ack]]\n" + "".join(f"{key} = {value}\n" for key, value in given.items() if value)


def test_every_key_is_read() -> None:
    softmax, io, conv = acks.parse(PLAIN, "acks.toml")
    assert softmax == SOFTMAX
    assert (io.pattern, io.kind, io.reason, io.until) == ("^io\\.", "noise", "a shared disk", NEXT_TAG)
    assert conv.until == LIFTED
    assert [known.line for known in (softmax, io, conv)] == [4, 17, 23]


def test_no_file_and_an_empty_one_acknowledge_nothing(tmp_path: pytest.TempPathFactory) -> None:
    assert acks.read(tmp_path / "none.toml") == acks.parse("# nothing yet\n", "x") == ()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        (entry() + "kind =\n", "acks.toml:5 is not TOML", "correct acks.toml:5"),
        ("version = 1\n", 'acks.toml has "version"', "[[ack]]"),
        ("[ack]\nkind = 1\n", "not a list of tables", "[[ack]]"),
        ("\n" + entry(reasn='"x"'), 'acks.toml:2 has an unknown key "reasn"', 'write "reason"'),
        (entry(reason=""), 'acks.toml:1 has an entry without "reason"', "add reason"),
        (entry(reason='" "'), "has \"reason\" ' '", "correct"),
        (entry(kind='"nosie"'), 'the kind "nosie"', 'write "noise"'),
        (entry(metric='"gpu_tme"'), 'the metric "gpu_tme"', 'write "gpu_time"'),
        (entry(benchmark='"a(("'), 'the benchmark "a(("', "regress list"),
        (entry(kind='"accepted"'), "accepted entry without one level", "level = 1.094"),
        (entry(kind='"accepted"', level="1.1", value="2"), "accepted entry without one level", "level = 1.094"),
        (entry(kind='"accepted"', level="-0.1"), 'has "level" -0.1', "correct"),
        (entry(kind='"accepted"', level='"9 %"'), "has \"level\" '9 %'", "correct"),
        (entry(kind='"known"'), "a known entry without seen", 'add seen = "v1.4"'),
        (entry(level="1.1"), "a level in an entry of the kind noise", "remove it"),
        (entry(until='"2026-02-30"'), "has \"until\" '2026-02-30'", "correct"),
        (entry(until='"soon enough"'), "has \"until\" 'soon enough'", "correct"),
        (entry(until="6"), 'has "until" 6', "correct"),
        (entry() + "\n" + entry(reason='"other"'), "acks.toml:6 has a second entry", "remove one"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(text: str, what: str, fix: str) -> None:
    error = refused(text)
    assert what in error.what
    assert error.why
    assert fix in error.fix


def test_entries_for_two_metrics_are_two() -> None:
    text = entry(metric='"gpu_time"') + entry(metric='"peak_memory"') + entry()
    assert [known.metric for known in acks.parse(text, "x")] == ["gpu_time", "peak_memory", ""]


@pytest.mark.parametrize(
    ("words", "until"),
    [("v1.6", "v1.6"), ("Next Tag", NEXT_TAG), ("lifted", LIFTED), ("2026-03-31", "2026-03-31"), ("rel/2", "rel/2")],
)
def test_an_end_is_a_tag_a_date_or_a_word(words: str, until: str) -> None:
    assert acks.until_of(words) == until
    assert acks.parse(entry(until=f'"{words}"'), "x")[0].until == until


def test_a_date_may_be_written_as_one() -> None:
    assert acks.parse(entry(until="2026-03-31"), "x")[0].until == "2026-03-31"


# -- changing ------------------------------------------------------------------------------------------------------------


def test_an_entry_is_added_below_what_is_there() -> None:
    new = Acknowledgement("a.time_b", "noise", "why")
    assert acks.added(PLAIN, new, "x") == PLAIN + (
        '\n[[ack]]\nbenchmark = "a.time_b"\nkind = "noise"\nuntil = "next tag"\nreason = "why"\n'
    )


def test_a_new_file_says_what_it_is() -> None:
    assert acks.added("", SOFTMAX, "x").startswith("# Acknowledged regressions")


def test_a_removed_entry_takes_the_comments_right_above_it_and_no_others() -> None:
    _, io, _ = acks.parse(PLAIN, "x")
    start, end = PLAIN.index("# reads from the disk"), PLAIN.index("# broken since June")
    assert acks.removed(PLAIN, io, "x") == PLAIN[:start] + PLAIN[end:]


def test_the_last_entry_leaves_what_stands_below_it() -> None:
    conv = acks.parse(PLAIN, "x")[-1]
    assert acks.removed(PLAIN, conv, "x") == PLAIN[: PLAIN.index("# broken since June")] + "# the end\n"


def test_a_replaced_entry_stays_in_its_place_under_its_comments() -> None:
    new = replace(SOFTMAX, level=1.2, until=NEXT_TAG)
    changed = acks.replaced(PLAIN, SOFTMAX, new, "x")
    assert acks.parse(changed, "x")[0] == new
    assert changed.startswith("# Ours. Ask Ada before you add to it.\n\n# max and sum are one pass\n[[ack]]\n")
    rest = "\n# -- noisy ones --"
    assert changed[changed.index(rest) :] == PLAIN[PLAIN.index(rest) :]


def test_words_that_look_like_an_entry_are_not_taken_for_one() -> None:
    softmax, io, _ = acks.parse(FILE, "x")
    assert softmax.line == 0  # there are more beginnings than entries
    assert acks.parse(acks.added(FILE, Acknowledgement("a", "noise", "b"), "x"), "x")[1] == io
    with pytest.raises(ConfigError, match="cannot change x"):
        acks.removed(FILE, io, "x")


ENTRIES = st.builds(
    Acknowledgement,
    pattern=st.text("abc.() 'é\"\\", min_size=1).map(lambda text: f"ops.{text.replace('(', '').replace(')', '')}x"),
    kind=st.sampled_from(["noise", "quarantine"]),
    reason=st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: bool(text.strip())),
    metric=st.sampled_from(["", "gpu_time", "peak_memory"]),
    since=st.sampled_from(["", "abc123"]),
    until=st.sampled_from([NEXT_TAG, LIFTED, "v1.6", "2026-03-31"]),
    link=st.sampled_from(["", "https://example.org/?a=1&b=\"'"]),
)


@settings(max_examples=30)
@given(st.lists(ENTRIES, min_size=1, max_size=4, unique_by=lambda known: (known.pattern, known.metric)), st.data())
def test_what_is_written_is_read_and_what_is_added_can_be_removed(
    entries: list[Acknowledgement], data: st.DataObject
) -> None:
    entries = [known for known in entries if acks._is_pattern(known.pattern)]
    text = PLAIN
    for known in entries:
        text = acks.added(text, known, "x")
    assert list(acks.parse(text, "x"))[3:] == entries
    for known in data.draw(st.permutations(entries)):
        text = acks.removed(text, known, "x")
    assert text == PLAIN


def test_a_byte_order_mark_is_named() -> None:
    with pytest.raises(ConfigError, match="x begins with a byte order mark"):
        acks.parse("\ufeff" + entry(), "x")
