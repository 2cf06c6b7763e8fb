"""What is measured alone while there are several lanes, with real processes: when, by which process, and whatever ends one."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from regress.run import replies
from regress.run.execute import JobResult
from tests.conftest import ended
from tests.run.test_execute import Bench, failures, good
from tests.run.test_lanes import FIRST, GPUS, NAMES, SECOND, SUITE, WORK, on

WAITING = [f"cudatime_waits_{letter}" for letter in "abcdefgh"]
HERE, THERE = on(FIRST, *WAITING)[:2], on(SECOND, *WAITING)[:2]
ALONE = [*HERE, *THERE]
BESIDE = [*on(FIRST, *NAMES)[:3], *on(SECOND, *NAMES)[:3]]
WAIT = "def {}(): device.kernel('k', 50e-6), device.synchronize()\n"
LOGGED = (
    SUITE
    + """
import atexit, signal, sys, time

LOG, opened = {log!r}, False

def note(*words):
    with open(LOG, "a") as file:
        file.write(" ".join([str(os.getpid()), *words]) + "\\n")

def takes(name, seconds=0.01):
    note("begin", name)
    time.sleep(seconds)
    note("end", name)

def opens():
    global opened
    if not opened:
        opened = True
        atexit.register(takes, "closing")
        takes("opening")

def around(name):
    def setup():
        opens()
        note("begin", name)
        time.sleep(0.01)
        DOES.get(name, str)()
    return setup, lambda: note("end", name)

def visits(name):
    "How many visits to the case have begun, this one too: each has its process, and the first one some setups."
    with open(LOG) as file:
        return len({{line.split()[0] for line in file if line.endswith(f"begin {{name}}\\n")}})

DOES = {{}}
# By case: what else its setup does.
"""
    + "".join(WORK.format(name) for name in BESIDE)
    + "".join(WAIT.format(name) for name in ALONE)
    + "".join(f"{name}.setup, {name}.teardown = around({name!r})\n" for name in (*BESIDE, *ALONE))
)


class Event(NamedTuple):
    pid: int
    word: str
    name: str


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def write(bench: Bench, more: str = "", **sides: str) -> None:
    bench.write(LOGGED.format(log=str(bench.root / "log")) + more, **sides)


def events(bench: Bench) -> list[Event]:
    words = map(str.split, (bench.root / "log").read_text().splitlines())
    return [Event(int(pid), word, name) for pid, word, name in words]


def test_nothing_goes_on_beside_what_is_measured_alone(bench: Bench) -> None:
    write(bench, base="", head="")
    measured = bench.run(rounds=3, gpus=GPUS)
    assert failures(measured) == {}
    assert met_alone(measured, bench) == {name: [] for name in ALONE}


def test_a_round_of_a_lane_is_one_process(bench: Bench) -> None:
    write(bench)
    measured = bench.run(rounds=3, gpus=GPUS)
    processes: dict[tuple[str, int], set[int]] = {}
    for round, facts in bench.kept:
        processes.setdefault((facts["gpu_uuid"], round.order), set()).add(round.process)
    assert {key: len(own) for key, own in processes.items()} == {(gpu.uuid, n): 1 for gpu in GPUS for n in range(3)}
    beside = {round.name.removeprefix("b."): round.facts.get("beside") for round in measured.rounds}
    assert beside == {**dict.fromkeys(BESIDE, 2), **dict.fromkeys(ALONE)}
    for gpu, order in [(gpu, order) for gpu in GPUS for order in range(3)]:
        own = [round for round, facts in bench.kept if facts["gpu_uuid"] == gpu.uuid and round.order == order]
        assert ["beside" in round.facts for round in own] == [True] * 3 + [False] * 2, "those alone come last"


def met_alone(measured: JobResult, bench: Bench) -> dict[str, list[str]]:
    """By case that has to be alone: what went on in other processes while it was measured."""
    rounds = {round.process for round in measured.rounds if round.values}
    gpus = {round.process: facts["gpu_uuid"] for round, facts in bench.kept}
    met: dict[str, list[str]] = {}
    running: dict[int, str] = {}
    lines = events(bench)
    last = {event.pid: index for index, event in enumerate(lines)}
    for index, event in enumerate(lines):
        if event.word == "begin" and index < last[event.pid]:  # else it was killed then
            running[event.pid] = event.name
        else:
            running.pop(event.pid, None)
        for pid, name in running.items():
            if pid in rounds and name in ALONE:
                # Of a lane's own processes one waits while another, that of the other side, has its turn.
                others = [(other, of) for other, of in running.items() if gpus.get(other) != gpus[pid]]
                met.setdefault(name, []).extend(f"{of} of {other}" for other, of in others)
    return met


# -- what goes wrong -----------------------------------------------------------------------------------------------------

SECOND_ROUND = 3
"""The visit to a case that is its second round: the first one is not measured."""


@pytest.mark.parametrize("how", ["os.kill(os.getpid(), signal.SIGKILL)", "time.sleep(600)"])
def test_what_ends_while_it_is_alone_holds_nobody_up(bench: Bench, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(replies, "GRACE_S", 2.0)
    ends = HERE[0]
    write(
        bench,
        f"""
{ends}.timeout = 2
DOES[{ends!r}] = lambda: {how} if visits({ends!r}) == {SECOND_ROUND} else None
""",
    )
    measured = bench.run(rounds=4, gpus=GPUS, settings={"good_rounds": 0.5})
    failed = failures(measured)
    assert set(failed) == {f"b.{ends}"}
    assert failed[f"b.{ends}"].kind in ("signal", "timeout")
    assert good(measured) == {f"b.{name}": 4 - (name == ends) for name in (*BESIDE, *ALONE)}
    assert met_alone(measured, bench) == {name: [] for name in ALONE}


def test_a_process_that_ends_while_it_waits_for_its_turn_is_replaced(bench: Bench) -> None:
    """The first measured visit to a case of the second GPU goes on until the first one's process waits to be alone, and ends
    that from outside."""
    kills = on(SECOND, *BESIDE)[0]
    write(
        bench,
        f"""
def waiting():
    "The process that has done what it has to do beside others; None before."
    with open(LOG) as file:
        lines = [line.split() for line in file]
    ended = {{name: [pid for pid, word, other in lines if (word, other) == ("end", name)] for name in {on(FIRST, *BESIDE)!r}}}
    begun = sum((word, other) == ("begin", {HERE[0]!r}) for pid, word, other in lines)
    return ended.popitem()[1][-1] if all(len(pids) == begun + 1 for pids in ended.values()) else None
def kill():
    if visits({kills!r}) == 2:
        while waiting() is None:
            time.sleep(0.01)
        time.sleep(0.1)  # for what it does at the end of a case; if that is not enough, it ends a little too early
        os.kill(int(waiting()), signal.SIGKILL)
DOES[{kills!r}] = kill
""",
    )
    measured = bench.run(rounds=6, gpus=GPUS, settings={"good_rounds": 0.5})
    failed = [round for round in measured.rounds if round.failure is not None]
    assert [on(FIRST, round.name.removeprefix("b.")) != [] for round in failed] == [True]
    assert failed[0].failure is not None
    assert failed[0].failure.message == "failed (signal 9, SIGKILL)"
    assert sum(good(measured).values()) == 6 * len([*BESIDE, *ALONE]) - 1
    assert met_alone(measured, bench) == {name: [] for name in ALONE}


@pytest.mark.usefixtures("_heard")
def test_ctrl_c_ends_who_is_alone_and_who_waits_for_it(bench: Bench) -> None:
    hangs = HERE[0]
    write(bench, f"DOES[{hangs!r}] = lambda: time.sleep(600) if visits({hangs!r}) == {SECOND_ROUND} else None\n")
    before = {f"begin {hangs}": SECOND_ROUND, **{f"end {name}": 1 for name in ALONE}}

    def press() -> None:
        lines: list[list[str]] = []
        while any(len({pid for pid, *said in lines if said == words.split()}) < n for words, n in before.items()):
            time.sleep(0.02)
            log = bench.root / "log"
            lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    measured = bench.run(rounds=500, gpus=GPUS)
    assert measured.interrupted
    assert [round for round, _ in bench.kept] == measured.rounds
    assert set(good(measured)) >= {f"b.{hangs}"}
    assert all(ended(pid) for pid in {event.pid for event in events(bench)})
