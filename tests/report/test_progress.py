"""Progress on a terminal and elsewhere, with a clock that is moved by hand."""

from __future__ import annotations

import io
import threading

import pytest

from regress.report.progress import Progress


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.fixture(autouse=True)
def able(monkeypatch: pytest.MonkeyPatch) -> None:
    """Terminals here take escapes, whatever the one is that the tests run in."""
    monkeypatch.setenv("TERM", "xterm")


def test_one_line_a_minute() -> None:
    clock, stream = Clock(), io.StringIO()
    with Progress(stream, clock=clock) as progress:
        progress.start(100, "measuring")
        for done in range(1, 14):
            clock.now += 10.0
            progress.advance(f"case {done}")
    assert stream.getvalue().splitlines() == [
        "measuring: 0 of 100",
        "measuring: 6 of 100, case 6, 1:00 so far, about 16 min left",
        "measuring: 12 of 100, case 12, 2:00 so far, about 15 min left",
        "measuring: ended, 13 of 100 in 2:10",
    ]


def test_a_phase_that_comes_to_its_end_is_done() -> None:
    clock, stream = Clock(), io.StringIO()
    progress = Progress(stream, clock=clock)
    progress.start(2, "building")
    progress.advance("a", steps=2)
    progress.start(1, "measuring")
    progress.close()
    progress.close()
    assert stream.getvalue().splitlines() == [
        "building: 0 of 2",
        "building: done, 2 of 2 in 0.0 s",
        "measuring: 0 of 1",
        "measuring: ended, 0 of 1 in 0.0 s",
    ]


def test_a_phase_whose_progress_nobody_can_tell_is_told_of_if_it_took_long() -> None:
    clock, stream = Clock(), io.StringIO()
    with Progress(stream, clock=clock) as progress:
        for took_s in (9.0, 72.0):
            progress.start(0, "importing the suite")
            clock.now += took_s
    assert stream.getvalue().splitlines() == ["importing the suite: 1:12"]
    with Progress(terminal := Terminal(), clock=Clock()) as progress:
        progress.start(0, "importing the suite")
    assert "importing the suite" in terminal.getvalue()


def test_the_first_line_comes_before_anything_is_done() -> None:
    clock, stream = Clock(), io.StringIO()
    progress = Progress(stream, clock=clock, interval_s=5.0)
    progress.start(3, "measuring")
    clock.now += 5.0
    progress.advance("slow one", steps=0)
    assert stream.getvalue().splitlines()[1] == "measuring: 0 of 3, slow one, 5.0 s so far"


def test_more_steps_than_were_announced() -> None:
    stream = io.StringIO()
    progress = Progress(stream, clock=Clock(), interval_s=0.0)
    progress.start(1, "measuring")
    progress.advance("a", steps=3)
    assert "3 of 3" in stream.getvalue()


def test_notes_are_lines_and_hostile_text_is_shown() -> None:
    stream = io.StringIO()
    progress = Progress(stream, clock=Clock(), interval_s=0.0)
    progress.note("before\nany phase")
    progress.start(1, "a\x1b[2Jb")
    progress.advance("c\rd")
    assert "\x1b" not in stream.getvalue()
    assert stream.getvalue().splitlines()[0] == "before\\nany phase"
    assert "c\\rd" in stream.getvalue()


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal(), None])
def test_quiet_writes_nothing(stream: io.StringIO | None) -> None:
    with Progress(stream, quiet=True, clock=Clock(), interval_s=0.0) as progress:
        progress.start(2, "measuring")
        progress.advance("a")
        progress.note("note")
    assert stream is None or stream.getvalue() == ""


def test_a_closed_stderr_is_quiet() -> None:
    with Progress(None, clock=Clock()) as progress:
        progress.start(1, "measuring")
        progress.note("note")


def test_a_reader_that_went_away_ends_no_measurement() -> None:
    with Progress(Gone(), clock=Clock(), interval_s=0.0) as progress:
        progress.start(1, "measuring")
        progress.advance("a")


def test_a_terminal_gets_a_bar_with_notes_above_it() -> None:
    stream, threads = Terminal(), set(threading.enumerate())
    with Progress(stream, clock=Clock()) as progress:
        progress.start(84, "measuring [bold]")
        progress.advance("softmax[red](4096)\x1b[2J", steps=12)
        progress.note("a [note] with \x07 in it")
        assert set(threading.enumerate()) <= threads, "a bar of its own thread would disturb what is timed"
        drawn = stream.getvalue()
    assert "12/84" in drawn
    assert "measuring [bold]" in drawn
    assert "a [note] with \\x07 in it\n" in drawn
    assert "\x07" not in drawn
    assert "\x1b[?25h" in stream.getvalue(), "the cursor is shown again"


def test_a_bar_names_the_case() -> None:
    stream = Terminal()
    progress = Progress(stream, clock=Clock())
    progress.start(2, "m")
    progress.advance("x[red]y")
    progress.close()
    assert "x[red]y" in stream.getvalue()


def test_the_bar_is_taken_away_when_the_work_is_interrupted() -> None:
    stream = Terminal()

    def work() -> None:
        with Progress(stream, clock=Clock()) as progress:
            progress.start(2, "m")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert stream.getvalue().count("\x1b[?25l") == stream.getvalue().count("\x1b[?25h") == 1
