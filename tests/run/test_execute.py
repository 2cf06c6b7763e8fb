"""Rounds with real processes: whatever a benchmark does to its process, the others are measured."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from regress.errors import NothingMeasured
from regress.model import Batch, Case, Commit, Failure, Round, Settings, Side
from regress.run import replies
from regress.run.environments import Prepared
from regress.run.execute import Job, JobResult, execute
from regress.run.plan import FixedRounds, Selection
from regress.run.ship import ship
from tests.conftest import ended

COMMIT = Commit("a" * 40, "subject", "Ada", 0.0)


class Watch:
    """A watcher that remembers."""

    def __init__(self) -> None:
        self.total = self.done = 0
        self.texts: list[str] = []

    def start(self, total: int, title: str) -> None:
        self.total += total

    def advance(self, text: str, steps: int = 1) -> None:
        self.done += steps
        self.texts.append(text)

    def note(self, text: str) -> None: ...


class Bench:
    """A suite and the code of one or two sides in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.watch = Watch()
        self.kept: list[tuple[Round, Mapping[str, Any]]] = []

    def write(self, suite: str, **sides: str) -> None:
        (self.root / "benchmarks").mkdir()
        (self.root / "benchmarks" / "__init__.py").write_text("")
        (self.root / "benchmarks" / "b.py").write_text(suite)
        for side, code in (sides or {"head": ""}).items():
            (self.root / side / "proj").mkdir(parents=True)
            (self.root / side / "proj" / "__init__.py").write_text(code)

    def job(self, rounds: int = 2, patterns: tuple[str, ...] = (), **job: Any) -> Job:
        present = [side for side in ("base", "head") if (self.root / side).exists()]
        sides = tuple(
            Prepared(
                Side(side, COMMIT, side),
                self.root / side,
                sys.executable,
                (self.root / side,),
                {**os.environ, "PYTHONPATH": str(self.root / side)},
            )
            for side in present
        )
        settings = Settings(**{"device": "fake", **job.pop("settings", {})})
        start = ship(Path(os.environ["REGRESS_CACHE_DIR"]))
        return Job(sides, self.root / "benchmarks", start, settings, rounds, Selection(patterns), **job)

    def run(self, rounds: int = 2, patterns: tuple[str, ...] = (), **job: Any) -> JobResult:
        steps, sink = (
            job.pop("steps", None),
            job.pop("sink", lambda round, facts, benchmark: self.kept.append((round, facts))),
        )
        return execute(self.job(rounds, patterns, **job), sink, self.watch, steps)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def failures(measured: JobResult, side: str = "head") -> dict[str, Failure]:
    return {
        str(Case(round.name, tuple(round.params))): round.failure
        for round in measured.of(side)
        if round.failure is not None
    }


def good(measured: JobResult, side: str = "head") -> dict[str, int]:
    counts: dict[str, int] = {}
    for round in measured.of(side):
        if round.values:
            counts[str(Case(round.name, tuple(round.params)))] = (
                counts.get(str(Case(round.name, tuple(round.params))), 0) + 1
            )
    return counts


def test_every_kind_of_benchmark_gives_its_metric(bench: Bench) -> None:
    bench.write(
        """
import regress_scripted as device
def cudatime_c():
    buffer = device.alloc(1 << 20)
    device.kernel("k", 50e-6)
def time_t(): device.host(100e-6)
def track_v(): return 7
track_v.unit = "GB/s"
def mem_m(): return [0] * 1000
def peakmem_p(): return bytearray(200 << 20)
def timeraw_r(): return "x = 1"
timeraw_r.repeat = 2
"""
    )
    measured = bench.run()
    assert failures(measured) == {}
    assert measured.start_s > 0
    values = {round.name.removeprefix("b."): {k: v.value for k, v in round.values.items()} for round in measured.rounds}
    counters = {"launches", "synchronizations", "copies", "allocations"}
    memory = {"peak_memory", "output_memory", "left_memory"}
    assert set(values["cudatime_c"]) - counters == {"gpu_time", "host_time", "wall_time"} | memory
    assert values["cudatime_c"]["gpu_time"] == pytest.approx(50e-6, rel=0.015)
    assert values["cudatime_c"]["peak_memory"] == 1 << 20
    assert values["time_t"]["wall_time"] == pytest.approx(100e-6, rel=0.15)
    assert values["track_v"] == {"value": 7.0}
    assert 7_000 < values["mem_m"]["object_size"] < 10_000
    assert 200 << 20 < values["peakmem_p"]["peak_rss"] < 320 << 20
    assert values["timeraw_r"]["wall_time"] > 0
    processes = {(round.side, round.order): round.process for round in measured.rounds if round.name != "b.peakmem_p"}
    assert len(set(processes.values())) == 2, "a fresh process a round"
    assert bench.watch.done == bench.watch.total
    assert [round for round, _ in bench.kept] == measured.rounds
    assert bench.kept[0][1]["gpu"] == "scripted device"


def test_sides_alternate_and_each_runs_its_own_code(bench: Bench) -> None:
    suite = "import proj\ndef cudatime_c(): proj.work()\n"
    code = "import regress_scripted\ndef work(): regress_scripted.kernel('k', {})\n"
    bench.write(suite, base=code.format("50e-6"), head=code.format("60e-6"))
    measured = bench.run(rounds=4)
    assert [round.side for round in measured.rounds] == ["base", "head", "head", "base", "base", "head", "head", "base"]
    ratio = measured.of("head")[0].values["gpu_time"].value / measured.of("base")[0].values["gpu_time"].value
    assert ratio == pytest.approx(1.2, rel=0.02)
    assert len({round.protocol for round in measured.rounds}) == 1


def test_memory_is_probed_in_two_rounds_a_side(bench: Bench) -> None:
    bench.write("import regress_scripted as d\ndef cudatime_c(): d.kernel('k', 5e-5)\n")
    measured = bench.run(rounds=4)
    assert ["peak_memory" in round.values for round in measured.rounds] == [True, True, False, False]


def test_what_a_benchmark_does_to_its_process_is_its_own_failure(bench: Bench) -> None:
    bench.write(
        """
import os, signal, sys
def time_a_first(): sum(range(10))
def time_crash(): os.kill(os.getpid(), signal.SIGSEGV)
def time_exit(): os._exit(0)
def time_raise():
    {}["missing"]
def time_system_exit(): sys.exit(4)
def time_memory(): raise MemoryError("no room")
def time_z_last(): sum(range(10))
def track_text(): return "seven"
for healthy in (time_a_first, time_z_last):
    healthy.timer, healthy.number, healthy.repeat = __import__("time").perf_counter, 10, 2
"""
    )
    measured = bench.run()
    failed = failures(measured)
    assert set(good(measured)) == {"b.time_a_first", "b.time_z_last"}
    assert good(measured)["b.time_z_last"] == 2, "the others are measured"
    assert (failed["b.time_crash"].kind, failed["b.time_crash"].message) == ("signal", "failed (signal 11, SIGSEGV)")
    assert failed["b.time_exit"].message == "ended without a result (exit code 0)"
    assert (failed["b.time_raise"].kind, failed["b.time_raise"].message) == ("error", "KeyError: 'missing'")
    assert failed["b.time_raise"].where.endswith("b.py:7")
    assert failed["b.time_system_exit"].message == "SystemExit: 4"
    assert failed["b.time_memory"].kind == "oom"
    assert failed["b.track_text"].message == "TypeError: a track benchmark has to return a number, not str"


def test_a_benchmark_that_hangs_is_ended_with_its_children(bench: Bench, tmp_path: Path) -> None:
    pid_file = tmp_path / "child.pid"
    bench.write(
        f"""
import subprocess, sys, time
def time_hang():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    open({str(pid_file)!r}, "w").write(str(child.pid))
    while True:
        print("still here", flush=True)
        time.sleep(0.01)
time_hang.timeout = 3
def track_after(): return 1
"""
    )
    import regress.run.replies as module

    before = module.GRACE_S
    module.GRACE_S = 0.5
    try:
        measured = bench.run()
    finally:
        module.GRACE_S = before
    assert (failures(measured)["b.time_hang"].kind, failures(measured)["b.time_hang"].message) == (
        "timeout",
        "took longer than 3 s",
    )
    assert good(measured) == {"b.track_after": 2}
    assert ended(int(pid_file.read_text()))


def test_nothing_a_benchmark_prints_or_closes_gets_into_the_results(bench: Bench) -> None:
    bench.write(
        """
import os, sys
print("at import")
def track_flood():
    print("x" * 10_000_000)
    os.write(1, b'{"is": "Round"}\\n')
    os.write(2, b"noise\\n")
    return 1
def track_reads(): return len(sys.stdin.read())
def track_closes():
    sys.stdin.close(); sys.stdout.close()
    return 3
def track_moves():
    os.chdir("/")
    open(os.path.join(os.environ["TMPDIR"], "left-behind"), "w").close()
    return 4
def track_where(): return float(os.getcwd() == "/")
"""
    )
    measured = bench.run()
    assert failures(measured) == {}
    values = {round.name: round.values["value"].value for round in measured.rounds}
    assert values == {
        "b.track_flood": 1,
        "b.track_reads": 0,
        "b.track_closes": 3,
        "b.track_moves": 4,
        "b.track_where": 0,
    }


def test_skips_stand_in_their_place(bench: Bench) -> None:
    bench.write(
        """
import regress_scripted as d
class Some:
    params = [1, 2, 3]
    def setup(self, n):
        if n == 2:
            raise NotImplementedError("not two")
    def cudatime_x(self, n): d.kernel("k", n * 1e-4)
    def teardown(self, n): pass
"""
    )
    measured = bench.run()
    assert good(measured) == {"b.Some.cudatime_x(1)": 2, "b.Some.cudatime_x(3)": 2}
    assert failures(measured)["b.Some.cudatime_x(2)"].kind == "skipped"


def test_setup_cache_runs_once_a_side_in_its_own_folder(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "log"
    bench.write(
        f"""
import os
class Cached:
    def setup_cache(self):
        open({str(log)!r}, "a").write("made\\n")
        open("beside.txt", "w").write("12")
        return {{"n": 30}}
    def track_cache(self, cache): return cache["n"] + int(open("beside.txt").read())
class Leaves:
    def setup_cache(self):
        open("beside.txt", "w").write("5")
        os.chdir({str(tmp_path)!r})
        return 1
    def track_left(self, cache): return cache + int(open("beside.txt").read())
class Broken:
    def setup_cache(self): raise OSError("disk on fire")
    def track_a(self, cache): return 1
    def track_b(self, cache): return 1
def track_other(): return 5
"""
    )
    measured = bench.run()
    assert log.read_text() == "made\n"
    assert {round.name: round.values["value"].value for round in measured.rounds if round.values} == {
        "b.Cached.track_cache": 42,
        "b.Leaves.track_left": 6,
        "b.track_other": 5,
    }
    failed = failures(measured)
    assert set(failed) == {"b.Broken.track_a", "b.Broken.track_b"}
    assert all(failure.message == "setup_cache: OSError: disk on fire" for failure in failed.values())


def test_a_setup_cache_that_takes_too_long_fails_its_dependents_once_each(bench: Bench) -> None:
    bench.write(
        """
import time
class Slow:
    def setup_cache(self): time.sleep(600)
    setup_cache.timeout = 0.5
    params = [1, 2]
    def track_a(self, cache, n): return 1
    def track_two(self, cache, n): return 1
    track_two.gpus = 2
def track_other(): return 5
"""
    )
    measured = bench.run()
    assert good(measured) == {"b.track_other": 2}
    messages = [round.failure.message for round in measured.rounds if round.failure]
    refused = "needs 2 GPUs: one is used; name more with --gpus"
    assert sorted(messages) == [refused] * 2 + ["setup_cache took longer than 0.5 s"] * 2


@pytest.mark.parametrize("process", ["auto", "fresh"])
def test_a_hang_in_native_code_that_holds_the_interpreter_is_ended(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, process: str
) -> None:
    monkeypatch.setattr(replies, "GRACE_S", 0.5)
    bench.write(
        """
import ctypes
def time_hang(): ctypes.PyDLL(None).pause()
time_hang.timeout = 0.5
def track_after(): return 1
"""
    )
    measured = bench.run(settings={"process": process})
    assert failures(measured)["b.time_hang"].message == "took longer than 0.5 s"
    assert good(measured) == {"b.track_after": 2}


def test_setup_runs_before_every_sample_where_number_is_one(bench: Bench) -> None:
    bench.write(
        """
import regress_scripted as d
class Sorting:
    number = 1
    repeat = 4
    def setup(self): self.fresh = True
    def time_sort(self):
        assert self.fresh, "the input was used before"
        self.fresh = False
        d.host(1e-3)
"""
    )
    measured = bench.run()
    assert failures(measured) == {}
    (first, *_) = measured.rounds
    assert len(first.values["wall_time"].samples) == 4
    assert first.protocol is not None
    assert (first.protocol.calls, first.protocol.setup_each) == (1, True)


def test_setup_runs_before_every_sample_of_so_many_calls(bench: Bench) -> None:
    bench.write(
        """
import regress_scripted as d
class Ten:
    number = 10
    repeat = 4
    def setup(self): self.left = [1e-3] * 10
    def time_pop(self): d.host(self.left.pop())
"""
    )
    measured = bench.run()
    assert failures(measured) == {}
    (first, *_) = measured.rounds
    assert first.protocol is not None
    assert (first.protocol.calls, first.protocol.setup_each) == (10, True)


def test_what_is_used_up_in_a_round_is_set_up_again(bench: Bench) -> None:
    bench.write(
        """
import regress_scripted as d
class Many:
    def setup(self): self.left = [1e-5] * 3000
    def time_pop(self): d.host(self.left.pop())
"""
    )
    measured = bench.run()
    assert failures(measured) == {}
    (first, *_) = measured.rounds
    assert first.protocol is not None
    assert first.protocol.calls * first.protocol.windows > 3000
    assert not first.protocol.setup_each


def test_what_a_call_changes_on_one_side_is_set_up_again_on_both(bench: Bench) -> None:
    bench.write(
        """
import proj
class Order:
    def setup(self): self.x = [2, 1]
    def time_order(self): proj.order(self.x)
    def time_length(self): proj.order([])
""",
        base="import regress_scripted as d\ndef order(x): d.host(2e-3)\n",
        head="import regress_scripted as d\ndef order(x): d.host(1e-4 if x == sorted(x) else 1e-3); x.sort()\n",
    )
    measured = bench.run()
    assert failures(measured) == failures(measured, "base") == {}
    rounds = {(one.side, one.name): one for one in measured.rounds}
    assert rounds["head", "b.Order.time_order"].values["wall_time"].value == pytest.approx(1e-3, rel=0.2)
    said = {key: one.protocol.setup_each for key, one in rounds.items() if one.protocol is not None}
    assert said == {(side, name): name == "b.Order.time_order" for side, name in rounds}


def test_coroutines_are_awaited_in_a_loop_of_their_own(bench: Bench) -> None:
    bench.write(
        """
import asyncio, functools
import regress_scripted as d
def plainly(function):
    @functools.wraps(function)
    def call(*args): return function(*args)
    return call
class Waits:
    params = [[1e-3, 2e-3]]
    async def setup(self, s):
        self.lock = asyncio.Lock()
        self.late = asyncio.create_task(asyncio.sleep(3600))
    async def teardown(self, s):
        assert not self.late.done()
    async def work(self, s):
        await asyncio.sleep(0)
        async with self.lock: d.host(s)
    async def time_work(self, s): await self.work(s)
    async def cudatime_work(self, s):
        await asyncio.sleep(0)
        d.kernel("k", s)
    async def track_work(self, s):
        await self.work(s)
        return 7
    async def peakmem_work(self, s): await self.work(s)
    @plainly
    async def time_wrapped(self, s): await self.work(s)
class Cached:
    async def setup_cache(self): return 3
    def track_cached(self, cache): return cache
"""
    )
    measured = bench.run()
    assert failures(measured) == {}
    value = {
        (round.name, *round.params): next(iter(round.values.values())).value
        for round in measured.rounds
        if round.order == 0
    }
    for name in ("time_work", "time_wrapped", "cudatime_work"):
        for s in (1e-3, 2e-3):
            assert value[f"b.Waits.{name}", str(s)] == pytest.approx(s, rel=0.2)
    assert value["b.Waits.track_work", "0.001"] == 7
    assert value["b.Cached.track_cached",] == 3


@pytest.mark.parametrize(
    ("suite", "which"),
    [
        ("def time_x(): yield", "time_x"),
        ("async def time_x(): yield", "time_x"),
        ("class C:\n    def setup(self): yield\n    def track_x(self): return 1", "setup"),
    ],
)
def test_what_would_never_run_is_an_error(bench: Bench, suite: str, which: str) -> None:
    bench.write(suite)
    (failure,) = failures(bench.run()).values()
    assert failure.message.startswith(f"TypeError: {which} is a generator function")
    assert "fix:" in failure.message


def test_a_case_that_fails_on_one_side_is_proven_to_work_on_the_other_and_left(bench: Bench) -> None:
    suite = "import proj\ndef cudatime_c(): proj.work()\ndef cudatime_d(): proj.other()\n"
    works = "import regress_scripted as d\ndef work(): d.kernel('k', 5e-5)\ndef other(): work()\n"
    bench.write(suite, base=works, head=works.replace("def work(): d", "def work(): 1 / 0; d"))
    measured = bench.run(rounds=4)
    assert good(measured, "base") == {"b.cudatime_c": 1, "b.cudatime_d": 1}
    assert set(failures(measured, "head")) == {"b.cudatime_c", "b.cudatime_d"}
    assert bench.watch.done == bench.watch.total


def test_installed_code_that_wins_over_the_side_is_refused(bench: Bench, tmp_path: Path) -> None:
    """As with an editable install, whose finder may stand before the path."""
    bench.write("import proj\ndef track_x(): return 1\n", base="", head="")
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "proj").mkdir(parents=True)
    (elsewhere / "proj" / "__init__.py").write_text("")
    (tmp_path / "benchmarks" / "__init__.py").write_text(
        "import sys, importlib.machinery\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        return importlib.machinery.PathFinder.find_spec(name, [{str(elsewhere)!r}]) if name == 'proj' else None\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    with pytest.raises(NothingMeasured, match="proj was imported from elsewhere") as caught:
        bench.run()
    assert str(elsewhere) in caught.value.why


def test_a_file_of_the_repository_does_not_shadow_the_standard_library(bench: Bench) -> None:
    bench.write("import random, proj\ndef track_x(): return random.seed(1) is None\n".replace("is None", "or 1"))
    (bench.root / "head" / "random.py").write_text("raise RuntimeError('shadowed')\n")
    assert good(bench.run()) == {"b.track_x": 2}


def test_a_suite_that_hangs_at_import_is_named(bench: Bench) -> None:
    bench.write("import time\nwhile True: time.sleep(1)\n")
    with pytest.raises(NothingMeasured, match=r"the import of benchmarks\.b did not end within 5 s"):
        bench.run(settings={"discover_timeout_s": 5.0})


@pytest.mark.parametrize(
    ("suite", "patterns", "message"),
    [
        ("def time_x(): pass\n", ("softmx",), "no benchmark matches 'softmx'"),
        ("", (), "there is no benchmark in"),
        ("import does_not_exist\n", (), "could be imported"),
        ("import does_not_exist\n", ("time_x",), "no benchmark matches 'time_x'"),
    ],
)
def test_nothing_to_measure_says_why(bench: Bench, suite: str, patterns: tuple[str, ...], message: str) -> None:
    bench.write(suite)
    with pytest.raises(NothingMeasured, match=message) as caught:
        bench.run(patterns=patterns)
    assert ("No module named 'does_not_exist'" in caught.value.why) == ("does_not_exist" in suite)


def test_rounds_repeat_exactly_on_the_scripted_device(bench: Bench) -> None:
    bench.write("import regress_scripted as d\ndef cudatime_c():\n    d.host(3e-6)\n    d.kernel('k', 5e-6)\n")
    first, second = bench.run(), bench.run()
    assert [round.values for round in first.rounds] == [round.values for round in second.rounds]
    assert first.rounds[0].values != first.rounds[1].values, "rounds differ from one another"


def test_a_killed_driver_leaves_no_process_behind(bench: Bench, tmp_path: Path) -> None:
    pid_file = tmp_path / "pids"
    bench.write(
        f"""
import os, subprocess, sys, time
def track_slow():
    child = subprocess.Popen(["sleep", "600"])
    with open({str(pid_file)!r}, "w") as file: file.write(f"{{os.getpid()}} {{child.pid}}\\n")
    time.sleep(600)
"""
    )
    code = (
        "import sys; from pathlib import Path; from tests.run.test_execute import Bench\n"
        f"Bench(Path({str(tmp_path)!r})).run()"
    )
    driver = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2])
    try:
        while not (pid_file.exists() and pid_file.read_text().endswith("\n")):
            assert driver.poll() is None
            time.sleep(0.05)
    finally:
        driver.kill()
        driver.wait()
    assert all(ended(int(pid)) for pid in pid_file.read_text().split())


def values_of(measured: JobResult, metric: str = "value") -> dict[str, list[float]]:
    by_run: dict[str, list[float]] = {}
    for round in measured.rounds:
        if metric in round.values:
            by_run.setdefault(str(Case(round.name, tuple(round.params))), []).append(round.values[metric].value)
    return by_run


def test_a_case_sees_nothing_that_an_earlier_one_left_in_its_instance(bench: Bench) -> None:
    bench.write(
        """
class T:
    params = [1, 2, 3]
    def setup(self, n):
        if not hasattr(self, "data"):
            self.data = n
    def track_x(self, n): return self.data
"""
    )
    assert values_of(bench.run()) == {f"b.T.track_x({n})": [n, n] for n in (1, 2, 3)}


def test_a_case_sees_nothing_that_an_earlier_one_left_in_the_process(bench: Bench) -> None:
    bench.write(
        """
import gc, os, signal, sys
def track_a_changes():
    os.environ["LEFT"] = "1"
    sys.path.append("/left")
    gc.disable()
    sys.setrecursionlimit(77777)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    sys.stdout.close()
    return 1
def track_b_sees():
    import time
    time.sleep(0.4)
    print("still works")
    left = ["LEFT" in os.environ, "/left" in sys.path, not gc.isenabled(), sys.getrecursionlimit() == 77777]
    return sum(left)
"""
    )
    measured = bench.run()
    assert failures(measured) == {}
    assert values_of(measured)["b.track_b_sees"] == [0.0, 0.0]


def test_random_numbers_repeat_wherever_they_are_drawn(bench: Bench) -> None:
    bench.write(
        """
import numpy as np
AT_IMPORT = np.random.rand()
class Cached:
    def setup_cache(self): return np.random.rand()
    def track_cache(self, cache): return cache
def track_import(): return AT_IMPORT
def track_call(): return np.random.rand()
"""
    )
    first, second = values_of(bench.run()), values_of(bench.run())
    assert first == second
    assert all(len(set(values)) == 1 for values in first.values())


def test_a_failed_setup_cache_on_one_side_is_that_sides_failure(bench: Bench) -> None:
    suite = (
        "import proj\nclass C:\n    def setup_cache(self): return proj.make()\n"
        "    def track_c(self, cache=None): return len(cache or ())\n"
    )
    bench.write(suite, base="def make(): return [0] * 1000\n", head="def make(): raise OSError('gone')\n")
    measured = bench.run()
    assert failures(measured) == {"b.C.track_c": Failure("error", "setup_cache: OSError: gone", *where(measured))}
    assert good(measured) == {}
    assert good(measured, "base") == {"b.C.track_c": 1}


def where(measured: JobResult) -> tuple[str, str]:
    (failure,) = failures(measured).values()
    return failure.where, failure.detail


def test_parameters_with_addresses_inside_are_found_again(bench: Bench) -> None:
    bench.write(
        """
class K: pass
class T:
    params = [[(K(),), {"a": K()}, (K(),)]]
    def track_x(self, p): return 1
"""
    )
    values = values_of(bench.run())
    assert len(values) == 3
    assert all("0x" not in name and values == [1.0, 1.0] for name, values in values.items())


@pytest.mark.parametrize("process", ["auto", "fresh"])
def test_parameters_with_sets_inside_are_found_again(bench: Bench, process: str) -> None:
    """Whose order follows from hashes of strings, which Python draws anew for every process."""
    bench.write(
        """
class T:
    params = [[frozenset("abcdefgh"), ("x", set("qrstuvwx"))]]
    def track_x(self, p): return len(p)
    def peakmem_x(self, p): return bytearray(8)
"""
    )
    names = []
    for _ in range(2):
        measured = bench.run(settings={"process": process})
        assert failures(measured) == {}
        names.append(good(measured))
    assert len(names[0]) == 4
    assert names[0] == names[1]


def test_an_exception_that_cannot_be_printed_is_still_a_failure(bench: Bench) -> None:
    bench.write(
        """
import os, shutil
class E(Exception):
    def __str__(self): raise ValueError("no")
def track_a(): raise E()
def track_b(): shutil.rmtree(os.getcwd()); return 2
def track_c(): return 3
"""
    )
    measured = bench.run()
    assert failures(measured)["b.track_a"].message.startswith("benchmarks.b.E: ")
    assert good(measured) == {"b.track_b": 2, "b.track_c": 2}


def test_odd_ends_of_a_process_are_named(bench: Bench) -> None:
    bench.write(
        """
import os, sys
def track_a(): os.kill(os.getpid(), 40)
def track_b():
    for fd in range(3, 60):
        try:
            os.write(fd, b"x\\n")
        except OSError:
            pass
    return 2
def track_c():
    pid = os.fork()
    if pid == 0:
        sys.exit(0)
    os.waitpid(pid, 0)
    return 3
"""
    )
    measured = bench.run()
    assert failures(measured)["b.track_a"].message == "failed (signal 40)"
    assert values_of(measured) == {"b.track_b": [2.0, 2.0], "b.track_c": [3.0, 3.0]}


def test_a_crash_is_seen_at_once_though_a_forked_child_lives_on(bench: Bench) -> None:
    bench.write(
        """
import multiprocessing, os, signal, time
def track_a():
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,), daemon=True).start()
    os.kill(os.getpid(), signal.SIGSEGV)
"""
    )
    assert failures(bench.run(default_timeout_s=30.0))["b.track_a"].kind == "signal"


def test_processes_that_are_spawned_do_not_start_another_worker(bench: Bench) -> None:
    bench.write(
        """
import math, multiprocessing
from concurrent.futures import ProcessPoolExecutor
def track_a():
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(math.sqrt, 16.0).result(50)
"""
    )
    assert values_of(bench.run()) == {"b.track_a": [4.0, 4.0]}


def test_a_slow_call_is_measured_within_its_timeout(bench: Bench) -> None:
    bench.write(
        """
import time
def time_slow(): time.sleep(0.7)
time_slow.timeout = 2.5
time_slow.timer = time.perf_counter_ns
"""
    )
    (first, *_) = bench.run(settings={"device": "cpu"}).rounds
    assert first.failure is None
    assert 1 <= len(first.values["wall_time"].samples) <= 2


def test_a_timeout_may_be_as_long_as_it_likes(bench: Bench) -> None:
    bench.write(
        """
class Cached:
    def setup_cache(self): return 1
    setup_cache.timeout = float("inf")
    def track_a(self, cache): return cache
    track_a.timeout = float("inf")
def track_b(): return 1
track_b.timeout = 1e30
"""
    )
    measured = bench.run()
    assert failures(measured) == {}
    assert good(measured) == {"b.Cached.track_a": 2, "b.track_b": 2}


def test_a_teardown_that_fails_does_not_hide_the_cause(bench: Bench) -> None:
    bench.write(
        """
class T:
    def track_x(self): return {}["cause"]
    def teardown(self): raise AttributeError("consequence")
class U:
    def track_x(self): return 1
    def teardown(self): raise AttributeError("alone")
"""
    )
    failed = failures(bench.run())
    assert failed["b.T.track_x"].message == "KeyError: 'cause'"
    assert failed["b.U.track_x"].message == "AttributeError: alone"


def test_declared_counts_are_kept_to(bench: Bench) -> None:
    bench.write(
        """
import regress_scripted as d
def time_t(): d.host(0.03)
time_t.repeat = 12
def cudatime_c(): d.kernel("k", 5e-6)
cudatime_c.number, cudatime_c.repeat = 7, 20
def cudatime_reset(): d.kernel("k", 5e-6)
cudatime_reset.reset = lambda: None
"""
    )
    counts = {
        round.name: (round.protocol.calls, len(round.values[round.protocol.metric].samples))
        for round in bench.run().rounds
        if round.protocol
    }
    assert counts == {"b.time_t": (1, 12), "b.cudatime_c": (7, 20), "b.cudatime_reset": (1, 24)}


@pytest.mark.slow
def test_a_thousand_cases_cost_little_each(bench: Bench) -> None:
    bench.write("class T:\n    params = list(range(1000))\n    def track_x(self, n): return n\n")
    measured = bench.run()
    assert len(measured.rounds) == 2000
    assert bench.watch.done == bench.watch.total == 3000


def test_a_namespace_package_of_the_side_is_its_code_and_another_is_refused(bench: Bench, tmp_path: Path) -> None:
    bench.write("import ns.pkg\ndef track_x(): return 1\n")
    (bench.root / "head" / "ns" / "pkg").mkdir(parents=True)
    (bench.root / "head" / "ns" / "pkg" / "__init__.py").write_text("")
    measured = bench.run()
    assert good(measured) == {"b.track_x": 2}
    assert measured.warnings == []
    elsewhere = tmp_path / "elsewhere" / "ns" / "other"
    elsewhere.mkdir(parents=True)
    (elsewhere / "__init__.py").write_text("")
    (bench.root / "benchmarks" / "__init__.py").write_text(
        f"import sys; sys.path.append({str(elsewhere.parents[1])!r})\n"
    )
    (bench.root / "benchmarks" / "b.py").write_text("import ns.pkg, ns.other\ndef track_x(): return 1\n")
    with pytest.raises(NothingMeasured, match="ns was imported from elsewhere"):
        bench.run()


def test_one_process_that_imports_nothing_of_the_project_is_no_warning(bench: Bench) -> None:
    """A case that runs alone may need nothing of it; the suite does."""
    text = "the suite imports nothing of this repository"
    bench.write("def track_here():\n    import proj\n    return 1\ndef peakmem_alone(): pass\n")
    assert not any(text in warning for warning in bench.run().warnings)
    assert any(text in warning for warning in bench.run(patterns=("alone",)).warnings)


class Passes:
    """First visits alone, a pass at a time, each over at once; what was visited after each."""

    end_s = math.inf

    def __init__(self, passes: int) -> None:
        self.left, self.visited = passes, list[set[str]]()

    def next(self, measured: JobResult) -> Batch | None:
        self.visited.append({case.name for case in measured.costs})
        self.left -= 1
        return Batch(dict.fromkeys(measured.cases["head"], 0), visits_s=0.0) if self.left >= 0 else None


def test_first_visits_go_as_far_as_there_is_time_by_how_much_a_case_is_wanted_the_same_on_all_sides(
    bench: Bench,
) -> None:
    suite = "".join(f"def track_{name}(): return 5\n" for name in "abc")
    cached = "class Own:\n    def setup_cache(self): return 2\n    def track_d(self, two): return two\n"
    bench.write(suite + cached, base="", head="")
    order = ["b.Own.track_d", "b.track_c", "b.track_a", "b.track_b"]
    steps = Passes(4)
    measured = bench.run(steps=steps, rank=lambda case, benchmark: order.index(case.name))
    assert steps.visited == [set(order[:number]) for number in range(5)]
    assert measured.rounds == []


def test_when_time_is_over_what_is_under_way_counts_for_nothing(bench: Bench) -> None:
    """The first visit would take an hour; nothing has failed, and nothing was measured."""
    bench.write("import time\ndef time_for_ever(): time.sleep(3600)\n")
    measured = bench.run(steps=FixedRounds(2, time.monotonic() + 4.0))
    assert (measured.rounds, measured.costs, measured.interrupted) == ([], {}, False)
