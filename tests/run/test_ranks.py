"""Several processes that visit a case together: what they agree on, and what becomes of the others where one fails."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from regress.commands.run import measurements
from regress.compare.judge import compare
from regress.measure import ranks as measuring
from regress.measure.wire import Meeting, Meets, Proposal, Rank
from regress.model import Case, Failure, Measured, Round, Settings
from regress.run import needs, plan, ranks, replies
from regress.run.gpus import Gpu
from regress.run.job import JobResult
from regress.run.plan import Selection
from tests.conftest import LIMIT_S, Project, ended, start
from tests.run.test_execute import Bench, failures
from tests.run.test_plan import declaring

SUITE = """
import os, time
import regress_scripted as device

class Together:
    ranks = 2
    gpus = 1
    timeout = 60
    setup = lambda self: setattr(self, "rank", int(os.environ["RANK"]))

def stuck():
    while True:
        time.sleep(0.01)
"""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "GRACE_S", 2.0)
    monkeypatch.setattr(ranks, "SETTLE_S", 2.0)
    monkeypatch.setattr(ranks, "STACK_S", LIMIT_S)  # every rank of these tests answers


def of(bench: Bench, name: str) -> Round:
    """The one round of a case."""
    (round,) = [taken for taken, _ in bench.kept if taken.name == f"b.{name}"]
    assert round.failure is None, round.failure
    return round


# -- values --------------------------------------------------------------------------------------------------------------


def test_the_value_is_that_of_the_slowest_rank_and_its_own_work_tells_who_is_late(bench: Bench) -> None:
    bench.write(f"""{SUITE}
class Late(Together):
    def cudatime_it(self):
        device.kernel("k", 50e-6 * (1 + 0.1 * self.rank))
        device.kernel("ncclDevKernel_AllReduce", 20e-6)
class Alike(Together):
    def cudatime_it(self):
        device.kernel("k", 50e-6)
        device.kernel("ncclDevKernel_AllReduce", 25e-6)
    def track_rank(self): return 10 * int(os.environ["WORLD_SIZE"]) + self.rank
    def time_host(self): device.host(1e-3)
""")
    bench.run(rounds=1)
    late, alike = of(bench, "Late.cudatime_it"), of(bench, "Alike.cudatime_it")
    assert late.values["gpu_time"].value == pytest.approx(75e-6, rel=0.02)
    assert {"host_time", "wall_time", "peak_memory", "launches"} <= set(late.values)
    assert late.facts["ranks"] == 2
    assert late.facts["own_s"] == pytest.approx([50e-6, 55e-6], rel=0.02)
    assert late.facts["skew_s"] == pytest.approx(5e-6, rel=0.2)
    assert alike.values["gpu_time"].value == pytest.approx(75e-6, rel=0.02)
    assert alike.facts["skew_s"] == pytest.approx(0.0, abs=1e-6)
    assert of(bench, "Alike.track_rank").values["value"].value == 20, "the first rank's"
    assert of(bench, "Alike.time_host").values["wall_time"].value == pytest.approx(1e-3, rel=0.1)


def test_ranks_see_the_same_devices_and_each_has_its_own(bench: Bench) -> None:
    gpus = tuple(Gpu(f"scripted-{number}") for number in (1, 2, 3))
    bench.write(f"""{SUITE}
class Both(Together):
    gpus = 2
    def track_it(self):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "scripted-1,scripted-2"
        return sum(int(os.environ[name]) for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
""")
    bench.run(rounds=1, gpus=gpus, settings={"process": "fresh"})
    assert of(bench, "Both.track_it").values["value"].value == 2
    assert bench.kept[0][1]["gpu_uuid"] == "scripted-1"


def test_a_straggler_is_told_from_a_slower_collective(bench: Bench) -> None:
    bench.write(
        f"""{SUITE}
from proj import LATE, COLLECTIVE
class It(Together):
    def cudatime_late(self):
        device.kernel("k", 50e-6 * (1 + LATE * self.rank))
        device.kernel("ncclDevKernel_AllReduce", 20e-6)
    def cudatime_collective(self):
        device.kernel("k", 50e-6)
        device.kernel("ncclDevKernel_AllReduce", COLLECTIVE)
""",
        base="LATE, COLLECTIVE = 0, 20e-6",
        head="LATE, COLLECTIVE = 0.2, 30e-6",
    )
    measured = bench.run(rounds=4)
    comparisons = compare(measured.of("base"), measured.of("head"), measured.benchmarks["head"], Settings())
    by_name = {comparison.case.name: comparison for comparison in comparisons if comparison.metric.name == "gpu_time"}
    assert [str(comparison.verdict) for comparison in by_name.values()] == ["regressed", "regressed"]
    (reason,) = [text for text in by_name["b.It.cudatime_late"].reasons if "skew" in text]
    assert reason.endswith("us a call: rank 1 works longest")
    assert not [reason for reason in by_name["b.It.cudatime_collective"].reasons if "skew" in reason]
    rows = measurements(measured.of("head"), measured.benchmarks["head"], Settings())
    told = {row.case.name for row in rows if any(flag.endswith("rank 1 works longest") for flag in row.flags)}
    assert told == {"b.It.cudatime_late"}, "of one side too"


# -- failures ------------------------------------------------------------------------------------------------------------


def test_one_that_fails_costs_its_round_alone_and_says_what_the_others_did(bench: Bench, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    bench.write(f"""{SUITE}
import signal
class It(Together):
    def setup(self):
        self.rank = int(os.environ["RANK"])
        open({str(pids)!r}, "a").write(f"{{os.getpid()}} ")
    def time_raises(self):
        if self.rank: raise ValueError("boom")
        stuck()
    def time_dies(self):
        if self.rank: os.kill(os.getpid(), signal.SIGKILL)
        stuck()
    def time_hangs(self):
        stuck() if self.rank else None
    time_hangs.timeout = 1
    def time_alike(self): raise ValueError("all of us")
    def time_works(self): device.host(1e-3)
class Skips(It):
    def setup(self): raise NotImplementedError("needs two of something")
    def time_skips(self): pass
""")
    measured = bench.run(rounds=1)
    line = 1 + SUITE.splitlines().index("        time.sleep(0.01)")
    failed = {name.removeprefix("b."): (failure.kind, failure.message) for name, failure in failures(measured).items()}
    skipped = {name: failed.pop(name) for name in list(failed) if name.startswith("Skips")}
    assert failed == {
        "It.time_raises": ("error", f"rank 1: ValueError: boom; rank 0 is in stuck (b.py:{line})"),
        "It.time_dies": ("signal", f"rank 1 failed (signal 9, SIGKILL); rank 0 is in stuck (b.py:{line})"),
        "It.time_hangs": (
            "timeout",
            f"took longer than 1 s: rank 0 waits for the others (a window), rank 1 is in stuck (b.py:{line})",
        ),
        "It.time_alike": ("error", "ValueError: all of us"),
    }
    assert {kind for kind, _ in skipped.values()} == {"skipped"}
    assert "in time_raises" in failures(measured)["b.It.time_raises"].detail, "the traceback of the one that failed"
    assert "most recent call first" in failures(measured)["b.It.time_raises"].detail, "and where the other was"
    assert of(bench, "It.time_works").values["wall_time"].value > 0
    assert all(ended(int(pid)) for pid in pids.read_text().split())


@pytest.mark.usefixtures("_heard")
def test_ctrl_c_leaves_no_rank(bench: Bench, tmp_path: Path) -> None:
    bench.write(f"""{SUITE}
class It(Together):
    timeout = 600
    def time_it(self):
        open(os.path.join({str(tmp_path)!r}, f"rank-{{self.rank}}"), "w").write(str(os.getpid()))
        stuck()
""")

    def press() -> None:
        while len(list(tmp_path.glob("rank-*"))) < 2:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    assert bench.run(rounds=1).interrupted
    pids = [int(path.read_text()) for path in tmp_path.glob("rank-*") if path.read_text()]
    assert all(map(ended, pids))


def test_one_that_is_killed_while_it_waits_ends_the_others_at_once(bench: Bench, tmp_path: Path) -> None:
    """Long before the timeout: it has come to where they meet, and the other one is in its call for ever."""
    bench.write(f"""{SUITE}
class It(Together):
    timeout = 600
    def time_it(self):
        open(os.path.join({str(tmp_path)!r}, f"called-{{self.rank}}"), "w").close()
        if self.rank:
            stuck()
    def setup(self):
        self.rank = int(os.environ["RANK"])
        open(os.path.join({str(tmp_path)!r}, f"rank-{{self.rank}}"), "w").write(str(os.getpid()))
""")

    def kill() -> None:
        while not all((tmp_path / f"called-{number}").exists() for number in (0, 1)):
            time.sleep(0.02)
        time.sleep(0.3)  # until it has come to where they meet
        os.kill(int((tmp_path / "rank-0").read_text()), signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()
    failure = failures(bench.run(rounds=1))["b.It.time_it"]
    assert failure.kind == "signal"
    assert re.fullmatch(r"rank 0 failed \(signal 9, SIGKILL\); rank 1 is in stuck \(b.py:\d+\)", failure.message), (
        failure.message
    )
    assert all(ended(int(path.read_text())) for path in tmp_path.glob("rank-*"))


# -- where they meet -----------------------------------------------------------------------------------------------------


class Driver:
    """What a rank says, and what it is answered."""

    def __init__(self, *answers: Any) -> None:
        self.said: list[Any] = []
        self._answers = list(answers)

    def send(self, message: Any) -> None:
        self.said.append(message)

    def receive(self) -> Any:
        return self._answers.pop(0) if self._answers else None


def test_ranks_agree_on_the_largest_of_each_value() -> None:
    driver: Any = Driver(Meeting([[1.0, 5.0], [2.0, 4.0]]), Meeting([[float("nan")], [3.0]]))
    together = measuring.Ranks(Rank(1, 2), driver)
    assert together.most("here", 2, 4) == [2.0, 5.0]
    assert driver.said == [Meets("here", [2.0, 4.0])]
    assert str(together.longest("there", 3)) == "nan", "what one of them does not know, none does"
    with pytest.raises(EOFError):
        together.meet("nowhere")
    assert measuring.ALONE.most("here", 2, 4) == [2, 4]
    assert not measuring.ALONE.several


def test_nobody_else_gets_the_port_but_who_asks_for_it() -> None:
    with ranks.free_port() as one, ranks.free_port() as other:
        assert one != other
        with socket.socket() as stranger, pytest.raises(OSError) as taken:
            stranger.bind(("127.0.0.1", one))
        assert taken.value.errno == errno.EADDRINUSE
        with socket.socket() as store:
            store.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            store.bind(("127.0.0.1", one))
            store.listen()


def test_what_several_say_becomes_one() -> None:
    slow, fast = Measured(2.0, [2.0]), Measured(1.0, [1.0])
    proposal = Proposal("a", [], "head", values={"launches": fast}, host_bytes=5, device_share=0.25, flags=["x"])
    other = Proposal("a", [], "head", values={"launches": slow}, host_bytes=7, device_share=0.5, flags=["x", "y"])
    whole = ranks.merged([proposal, other])
    assert (whole.values, whole.host_bytes, whole.device_share, whole.flags) == (
        {"launches": slow},
        12,
        0.5,
        ["x", "y"],
    )
    facts: list[dict[str, Any]] = [
        {"sm_clock_hz": 2.0, "own_s": 1.0},
        {"sm_clock_hz": 1.0, "own_s": 4.0, "throttled": ["heat"]},
    ]
    rounds = [
        Round("a", [], "head", 0, values={"wall_time": time_, "value": number}, facts=said, failure=None)
        for time_, number, said in zip((fast, slow), (slow, fast), facts, strict=True)
    ]
    merged = ranks.merged(rounds)
    assert merged.values == {"wall_time": slow, "value": slow}
    assert merged.facts == {"ranks": 2, "sm_clock_hz": 1.0, "throttled": ["heat"], "own_s": [1.0, 4.0], "skew_s": 3.0}


# -- what is declared ----------------------------------------------------------------------------------------------------


def test_ranks_that_work_on_a_device_need_one_each() -> None:
    two = replace(declaring("two", ranks=2), needs_device=True)
    assert needs.gpus_of(declaring("two", ranks=2)) == (1, ""), "on the CPU"
    refused = needs.refusal(two)
    assert refused == Failure("skipped", "needs 2 GPUs: one is used; name more with --gpus")
    assert needs.refusal(two, named=2) is None
    assert needs.refusal(declaring("two", ranks=2, gpus=1)) is None
    assert needs.refusal_by_itself(two, named=2) == Failure("skipped", "it has 2 ranks, and this runs one process")


def test_the_plan_says_what_needs_several() -> None:
    declared = [
        declaring("plain"),
        declaring("gloo", ranks=2),
        replace(declaring("nccl", ranks=2), needs_device=True),
        replace(declaring("shared", ranks=4, gpus=1), needs_device=True),
        replace(declaring("peer", gpus=2), needs_device=True),
    ]
    measured = JobResult(cases={"head": [Case(benchmark.name) for benchmark in declared]})
    said = needs.needing_several(measured, {"head": {benchmark.name: benchmark for benchmark in declared}})
    assert said == [
        "1 of them on 2 GPUs",
        "1 of them with 2 ranks",
        "1 of them with 2 ranks on 2 GPUs",
        "1 of them with 4 ranks",
    ]


@pytest.mark.parametrize("value", ["two", 0, True, 1.5])
def test_a_number_of_ranks_that_is_none_is_said_and_measured(value: Any) -> None:
    odd = declaring("odd", ranks=value)
    said = f"odd: the declared ranks {value!r} is not a number of processes, so one measures it"
    assert needs.ranks_of(odd) == (1, said)
    assert plan.complaints([odd], Selection()) == [said]
    timed = replace(declaring("raw", ranks=2), type="timeraw")
    assert needs.ranks_of(timed)[0] == 1


# -- what is killed ------------------------------------------------------------------------------------------------------

KILLED = """
import os, time, proj
class It:
    ranks = 2
    timeout = 600
    def setup(self):
        open({pids!r}, "a").write(f"{{os.getpid()}} ")
    def time_it(self): time.sleep(1e-3)
"""


@pytest.mark.slow
def test_fifty_killed_ranks_are_named_and_leave_nothing(bench: Bench, tmp_path: Path) -> None:
    """Each at a moment of its own, one or the other: the case fails then and there, and the next one goes on."""
    bench.write(f"""{SUITE}
class It:
    ranks = 2
    timeout = 600
    params = [list(range(50))]
    def setup(self, n):
        with open(os.path.join({str(tmp_path)!r}, f"{{n}}-{{os.environ['RANK']}}"), "w") as file:
            file.write(str(os.getpid()))
    def time_it(self, n): time.sleep(1e-3)
""")
    killed: list[str] = []

    def kill() -> None:
        for number in range(50):
            path = tmp_path / f"{number}-{number % 2}"
            while not (path.exists() and path.read_text()):
                time.sleep(0.01)
            time.sleep(0.02 * (7 * number % 50))
            with contextlib.suppress(ProcessLookupError):  # its visit was over before
                os.kill(int(path.read_text()), signal.SIGKILL)
                killed.append(f"rank {number % 2} failed (signal 9, SIGKILL)")

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    failed = failures(bench.run(rounds=1))
    thread.join(timeout=120)
    told = [failure.message.partition(";")[0] for failure in failed.values()]
    assert set(told) <= {"rank 0 failed (signal 9, SIGKILL)", "rank 1 failed (signal 9, SIGKILL)"}
    assert 10 < len(told) <= len(killed)
    assert all(ended(int(path.read_text())) for path in tmp_path.glob("[0-9]*-[01]"))


@pytest.mark.slow
def test_fifty_killed_drivers_leave_no_rank(project: Callable[..., Project], tmp_path: Path) -> None:
    """Wherever it is: at a moment of its own each time."""
    pids, p = tmp_path / "pids", project(device="cpu", run_rounds=1000)
    p.commit({"proj/__init__.py": "", "benchmarks/b.py": KILLED.format(pids=str(pids))})
    for number in range(50):
        pids.write_text("")
        process = start(p.root, "run", "--format", "json")
        with process:
            while len(pids.read_text().split()) < 2:
                assert process.poll() is None, process.communicate()[1]
                time.sleep(0.01)
            time.sleep(0.02 * number)
            process.kill()
        assert all(ended(int(pid)) for pid in pids.read_text().split())
