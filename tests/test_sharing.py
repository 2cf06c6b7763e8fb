"""Work shared between processes: all of it is done once, whatever becomes of them, and none of them stays."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from regress import sharing
from regress.sharing import TICKETS, beside, helpers, shared
from tests.conftest import ended

R = TypeVar("R")
HERE = os.getpid()


def done(items: list[int], work: Callable[[int], R], processes: int) -> dict[int, R]:
    with shared(items, work, processes) as results:
        every = list(results)
    assert len(every) == len({place for place, _ in every})
    return dict(every)


@pytest.mark.parametrize("processes", [0, 1, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 50, 2 * TICKETS + 3])
def test_each_item_is_worked_on_once(count: int, processes: int) -> None:
    assert done(list(range(count)), lambda item: item * item, processes) == {
        number: number * number for number in range(count)
    }
    assert multiprocessing.active_children() == []


def test_other_processes_do_the_work_but_for_the_first_item() -> None:
    pids = done(list(range(50)), lambda item: os.getpid(), 2)
    assert pids.pop(0) == HERE
    assert HERE not in pids.values()


@pytest.mark.parametrize("end", [lambda: os._exit(1), lambda: os.kill(os.getpid(), signal.SIGKILL)])
def test_what_a_process_leaves_undone_is_done_here(end: Callable[[], None]) -> None:
    def work(item: int) -> tuple[int, int]:
        if os.getpid() != HERE and item % 10 == 7:
            end()
        return item, os.getpid()

    by_item = done(list(range(40)), work, 2)
    assert {item for item, _ in by_item.values()} == set(range(40))
    assert by_item[7] == (7, HERE)


@pytest.mark.parametrize("to_be_had", [0, 1])
def test_without_more_processes_it_goes_on(monkeypatch: pytest.MonkeyPatch, to_be_had: int) -> None:
    fork, left = os.fork, [None] * to_be_had

    def scarce() -> int:
        if not left:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        left.pop()
        return fork()

    monkeypatch.setattr(os, "fork", scarce)
    pids = done(list(range(50)), lambda item: os.getpid(), 3)
    assert len(set(pids.values())) == 1 + to_be_had


def test_what_is_wrong_is_raised_here() -> None:
    def work(item: int) -> int:
        if item == 30:
            raise OSError(28, "No space left on device", f"in {os.getpid()}")
        return item

    with pytest.raises(OSError, match="No space left") as raised:
        done(list(range(40)), work, 2)
    assert raised.value.filename == f"in {HERE}"


def test_no_process_is_left_where_it_is_interrupted() -> None:
    def work(item: int) -> int:
        time.sleep(0.01 if item < 3 else 60)
        return item

    def interrupted() -> None:
        with shared(list(range(40)), work, 2) as results:
            assert next(results) == (0, 0)
            assert next(results)[0] in (1, 2)
            assert len(multiprocessing.active_children()) == 2
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert multiprocessing.active_children() == []


ENDED = """
import signal
from regress.sharing import shared

signal.signal(signal.SIGTERM, signal.default_int_handler)  # as the command line does
for _ in range(100):
    try:
        with shared(range(10_000), lambda item: b"x" * 1000, 2):
            raise OSError
    except OSError:
        pass
"""


def test_processes_that_have_only_just_begun_are_ended() -> None:
    done = subprocess.run([sys.executable, "-c", ENDED], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("end", [lambda: None, lambda: os.kill(os.getpid(), signal.SIGKILL)])
def test_work_beside_a_block_is_over_with_it(tmp_path: Path, end: Callable[[], None]) -> None:
    def work() -> None:
        (tmp_path / "pid").write_text(str(os.getpid()))
        end()

    with beside(work):
        pass
    assert int((tmp_path / "pid").read_text()) != HERE
    assert multiprocessing.active_children() == []


def test_work_beside_a_block_that_raises_is_ended() -> None:
    with pytest.raises(KeyError), beside(lambda: time.sleep(600)):
        raise KeyError
    assert multiprocessing.active_children() == []


SIGNALLED = """
import os, signal, sys, threading
from regress import sharing

signal.signal(signal.SIGTERM, signal.default_int_handler)
fork, forks = os.fork, []

def told():
    forks.append(None)
    if len(forks) == 2:
        os.kill(os.getpid(), signal.SIGTERM)  # it is there while the process forks
    return fork()

os.fork = told
try:
    with sharing.shared(range(10_000), lambda item: b"x" * 1000, 3) as results:
        list(results)
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_a_signal_that_comes_while_processes_are_forked_is_not_lost() -> None:
    done = subprocess.run([sys.executable, "-c", SIGNALLED], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (130, "")


SCARCE = """
import resource, sys
from regress.sharing import shared

resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]),) * 2)
with shared(range(1000), lambda item: item, 16) as results:
    files = [open("/dev/null") for _ in range(8)]
    assert len(dict(results)) == 1000
"""


@pytest.mark.parametrize("files", [20, 31, 32, 33, 40])
def test_files_are_left_for_who_asks_for_the_work(files: int) -> None:
    words = [sys.executable, "-c", SCARCE, str(files)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


ORPHANS = """
import os, sys, time
from regress.sharing import shared

def work(item):
    with open(sys.argv[1], "a") as told:
        told.write(f"{os.getpid()}\\n")
    time.sleep(0.02)
    return b"x" * 100_000

with shared(list(range(100_000)), work, 3) as results:
    for _ in results:
        if len(set(open(sys.argv[1]))) == 4:  # all have begun
            os.kill(os.getpid(), 9)
"""


def test_the_processes_end_with_who_started_them(tmp_path: Path) -> None:
    told = tmp_path / "pids"
    killed = subprocess.run([sys.executable, "-c", ORPHANS, str(told)], check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    pids = set(told.read_text().split())
    assert len(pids) == 4
    assert all(ended(int(pid)) for pid in pids)


def test_how_many_processes_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert [helpers(items, 0.01) for items in (0, 9, 11, 31, 10_000)] == [0, 0, 2, 6, 8]
    assert [helpers(items, 1.0) for items in (0, 1, 2, 10)] == [0, 0, 2, 8]
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {5})
    assert helpers(10_000, 0.01) == 0
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(200)))
    assert helpers(10_000, 0.01) == sharing.MOST_PROCESSES
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert helpers(10_000, 0.01) == 0
