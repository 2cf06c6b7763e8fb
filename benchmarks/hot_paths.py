"""Our own hot paths: what a check does between two measurements, and what a user waits for."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from pathlib import Path

from regress.compare import compare
from regress.history import Loaded, Store
from regress.measure.stopping import enough, round_value
from regress.measure.wire import Benchmark, Measured, Protocol, Round, decode, encode
from regress.model import Commit, Comparison, Machine, Report, Settings, Side
from regress.report import Style, render

NAME = "suite.Bench.cudatime_x"


class Wire:
    """A round's way from the worker to the driver."""

    def setup(self) -> None:
        samples = [random.lognormvariate(0, 0.01) * 1e-5 for _ in range(200)]
        values = {name: Measured(1e-5, samples) for name in ("gpu_time", "host_time", "wall_time")}
        self.round = Round(NAME, ["1024", "'float32'"], "head", 3, values=values)
        self.line = encode(self.round)

    def time_encode(self) -> bytes:
        return encode(self.round)

    def time_decode(self) -> object:
        return decode(self.line)


class Stopping:
    """Asked after every block of samples."""

    def setup(self) -> None:
        self.samples = [random.lognormvariate(0, 0.01) * 1e-5 for _ in range(100)]
        self.protocol = Protocol("gpu_time")

    def time_enough(self) -> bool:
        return enough(self.samples, self.protocol)

    def time_round_value(self) -> float:
        return round_value(self.samples)


class Start:
    """What every command pays before it does anything."""

    repeat = 3

    def time_help(self) -> None:
        subprocess.run([sys.executable, "-m", "regress", "--help"], check=True, capture_output=True)


def taken(side: str, cases: int, count: int = 5) -> list[Round]:
    """Rounds of that many cases, with a value that differs from round to round by 1 %."""

    def one(case: int, order: int) -> Round:
        value = random.lognormvariate(0, 0.01) * 1e-5
        values = {"gpu_time": Measured(value, [value])}
        return Round(NAME, [str(case)], side, order, protocol=Protocol("gpu_time"), values=values)

    return [one(case, order) for case in range(cases) for order in range(count)]


class Judging:
    """200 cases with five rounds a side."""

    repeat = 3

    def setup(self) -> None:
        self.base, self.head = taken("base", 200), taken("head", 200)

    def time_compare(self) -> tuple[Comparison, ...]:
        return compare(self.base, self.head, None, Settings())


class Terminal:
    """What is printed of it, every case in a row."""

    def setup(self) -> None:
        comparisons = compare(taken("base", 200), taken("head", 200), None, Settings())
        self.report = Report("compare", comparisons=comparisons)

    def time_render(self) -> str:
        return render(self.report, Style(verbose=True))


class History:
    """The record of a commit: 40 cases with five rounds each."""

    def setup(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.store = Store(Path(self.folder.name))
        self.side = Side("head", Commit("3f2c1ab9" * 5, "Fuse the epilogue", "Ada", 1.7e9), "HEAD")
        self.machine = Machine("here")
        self.taken = taken("head", 40)
        for round in self.taken:
            self.append(round)
        axis = [str(case) for case in range(40)]
        known = Benchmark(NAME, "time", "seconds", [axis], ["case"], "1", "gpu_time", True)
        self.store.finish(self.side, self.machine, "env", python="3", benchmarks={NAME: known})

    def teardown(self) -> None:
        self.folder.cleanup()

    def append(self, round: Round) -> None:
        self.store.append(self.side, self.machine, "env", round)

    def time_append(self) -> None:
        self.append(self.taken[0])

    def time_load(self) -> Loaded:
        return self.store.load(self.side.commit.sha)
