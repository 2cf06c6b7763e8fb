"""Setup before each sample: where a repeated call does other work than one right after a setup, and nowhere else."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from asv_runner.benchmarks.time import TimeBenchmark

from regress.measure.backend import Backend
from regress.measure.backend.fake import FakeBackend
from regress.measure.declared import redone_setup
from regress.measure.inplace import settled


class Suite:
    """A class of a suite, by what its call costs: the count of calls since the last setup, and of all, begin with 0."""

    def __init__(self, work: Callable[[int, int], None]) -> None:
        self._work = work
        self.setups = self.calls = self.since = 0

    def setup(self) -> None:
        self.setups, self.since = self.setups + 1, 0

    def time_x(self) -> None:
        since, calls = self.since, self.calls
        self.since, self.calls = since + 1, calls + 1
        self._work(since, calls)


def looked_at(device: Backend, suite: Suite) -> bool:
    """Whether the suite's benchmark is measured with a setup before each sample."""
    benchmark: Any = TimeBenchmark("b.time_x", suite.time_x, [suite.time_x, suite])
    benchmark.do_setup()

    def measure() -> bool:
        redo = redone_setup(benchmark)
        for _ in range(200):
            if redo is not None:
                redo()
            suite.time_x()
            benchmark._used = True
        return redo is not None

    return settled(benchmark, device, measure, 60.0)


def used_up(since: int, _: int) -> None:
    if since == 150:
        raise IndexError("pop from empty list")


@pytest.mark.parametrize(
    ("host", "set_up_each"),
    [
        pytest.param(lambda since, calls: 1e-3 if since == 0 else 1e-4, True, id="sorts what is sorted then"),
        pytest.param(lambda since, calls: 1e-4 if since == 0 else 3e-4, True, id="is longer once something is there"),
        pytest.param(lambda since, calls: 1e-4 * (1 + since / 50), True, id="grows little by little"),
        pytest.param(lambda since, calls: 0.5 if since == 0 else 0.1, True, id="a long call"),
        pytest.param(lambda since, calls: 1e-4, False, id="changes nothing"),
        pytest.param(lambda since, calls: 1e-1 if calls == 0 else 1e-4, False, id="imports in its first call"),
        pytest.param(lambda since, calls: 5e-3 if calls % 3 == 0 else 1e-4, False, id="is disturbed now and then"),
    ],
)
def test_a_call_that_takes_another_time_after_a_setup(host: Callable[[int, int], float], set_up_each: bool) -> None:
    device = FakeBackend()
    assert looked_at(device, Suite(lambda since, calls: device.host(host(since, calls)))) is set_up_each


def test_noise_is_no_difference() -> None:
    """Twenty times what a quiet machine has."""
    device, dice = FakeBackend(), random.Random(1)
    differences = [
        looked_at(device, Suite(lambda *_: device.host(1e-4 * dice.lognormvariate(0, 0.2)))) for _ in range(30)
    ]
    assert sum(differences) == 0


def test_what_is_used_up_is_set_up_each_time() -> None:
    assert looked_at(FakeBackend(), Suite(used_up))


def test_a_call_that_always_fails_says_why_it_does() -> None:
    def fails(since: int, calls: int) -> None:
        if calls:
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        looked_at(FakeBackend(), Suite(fails))


def test_a_long_call_that_changes_nothing_is_not_set_up_again() -> None:
    device = FakeBackend()
    suite = Suite(lambda *_: device.host(0.2))
    assert not looked_at(device, suite)
    assert suite.setups == 1


def test_a_call_that_several_threads_work_for_is_not_set_up_again() -> None:
    """Each of its calls waits for the slowest thread, so that calls differ by more than a changed input makes."""
    helper = ThreadPoolExecutor(1)

    def busy(since: int, _: int) -> None:
        other = helper.submit(_compute, 20 if since == 0 else 1)
        _compute(20 if since == 0 else 1)
        other.result()

    with helper:
        assert not looked_at(Backend(), Suite(busy))


def _compute(megabytes: int) -> None:
    zlib.crc32(b"x" * (megabytes << 20))  # it lets go of the interpreter
