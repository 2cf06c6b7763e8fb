"""Groups of real processes: windows in turn on one core, and whatever keeps a case from being measured so."""

from __future__ import annotations

import math
import os
import statistics
from pathlib import Path

import pytest

from regress.model import Against, Protocol, Round
from regress.run import plan, processes, replies
from regress.run.groups import _difference, _in_order, _Windows
from tests.conftest import ended
from tests.run.test_execute import Bench, failures, good

WORK = """
import regress_scripted as device
from proj import FACTOR
def time_work(): device.host(100e-6 * FACTOR)
def cudatime_launch():
    device.host(20e-6 * FACTOR)
    device.kernel("k", 50e-6)
def track_value(): return 7
"""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def against(bench_rounds: list[Round], name: str, metric: str) -> list[Against]:
    return [
        against
        for round in bench_rounds
        if round.name == f"b.{name}"
        for against in round.against
        if against.metric == metric
    ]


def notes(rounds: list[Round], name: str) -> set[str]:
    return {flag for round in rounds if round.name == f"b.{name}" for flag in round.flags if "in turn" in flag}


def test_the_heads_rounds_say_how_they_stand_to_the_bases(bench: Bench) -> None:
    bench.write(WORK, base="FACTOR = 1.0", head="FACTOR = 1.3")
    measured = bench.run(rounds=4)
    assert failures(measured) == failures(measured, "base") == {}
    assert all(not round.against for round in measured.of("base"))
    for name, metric, ratio in (
        ("time_work", "wall_time", 1.3),
        ("cudatime_launch", "host_time", 30 / 24),  # beside its own work a launch takes 4 us
        ("cudatime_launch", "wall_time", None),
    ):
        pairs = against(measured.of("head"), name, metric)
        assert [pair.side for pair in pairs] == ["base"] * 4
        assert all(pair.common and pair.windows >= 8 and pair.error < 0.05 for pair in pairs)
        assert len({pair.origin for pair in pairs}) == 2, "two zygotes in turn"
        if ratio is not None:
            assert statistics.fmean(pair.log_ratio for pair in pairs) == pytest.approx(math.log(ratio), abs=0.06)
    assert against(measured.of("head"), "track_value", "value") == []
    protocols = {round.protocol for round in measured.rounds if round.name == "b.time_work"}
    assert [(protocol.short_windows, protocol.warm_calls, protocol.pinned) for protocol in protocols if protocol] == [
        (True, 3, True)
    ]


def test_each_round_of_a_side_is_a_process_of_its_own(bench: Bench) -> None:
    bench.write(WORK, base="FACTOR = 1.0", head="FACTOR = 1.0")
    measured = bench.run(rounds=3, patterns=("time_work", "cudatime_launch"))
    for side in ("base", "head"):
        by_order = {(round.order, round.process) for round in measured.of(side)}
        assert len(by_order) == 3, "both cases of a round share it"
    assert {round.process for round in measured.of("base")}.isdisjoint({round.process for round in measured.of("head")})


def test_one_side_takes_the_same_windows_by_itself(bench: Bench) -> None:
    bench.write(WORK, head="FACTOR = 1.0")
    measured = bench.run(rounds=2)
    assert failures(measured) == {}
    assert all(not round.against and not notes([round], "time_work") for round in measured.rounds)
    (protocol,) = {round.protocol for round in measured.rounds if round.name == "b.time_work"}
    assert protocol is not None
    assert (protocol.short_windows, protocol.warm_calls) == (True, 3)


# -- what cannot be measured in turn -------------------------------------------------------------------------------------

TAKEN = """
import os, regress_scripted as device
class Taken:
    def setup(self):
        self.file = os.open({path!r}, os.O_CREAT | os.O_EXCL)
    def teardown(self):
        os.close(self.file)
        os.unlink({path!r})
    def time_it(self): device.host(100e-6)
def time_other(): device.host(100e-6)
"""


def test_what_two_cannot_have_at_once_is_measured_one_after_the_other(bench: Bench) -> None:
    """A lock file, as a port or a device would be."""
    bench.write(TAKEN.format(path=str(bench.root / "lock")), base="", head="")
    measured = bench.run(rounds=3)
    assert failures(measured) == failures(measured, "base") == {}
    assert good(measured) == {"b.Taken.time_it": 3, "b.time_other": 3}
    assert against(measured.of("head"), "Taken.time_it", "wall_time") == []
    (note,) = notes(measured.of("head"), "Taken.time_it")
    assert note.startswith("not in turn with the other side: ")
    assert "lock" in note
    assert len(against(measured.of("head"), "time_other", "wall_time")) == 3


@pytest.mark.parametrize(
    ("ending", "kind"),
    [("os._exit(3)", "error"), ("os.kill(os.getpid(), 9)", "signal"), ("raise ValueError('no')", "error")],
    ids=["exits", "is killed", "raises"],
)
def test_a_side_that_fails_in_the_midst_of_its_windows_fails_alone(bench: Bench, ending: str, kind: str) -> None:
    bench.write(
        f"""
import os, pathlib, regress_scripted as device
from proj import BAD
calls = 0
def time_ends():
    global calls
    calls += 1
    device.host(100e-6)
    if BAD and calls > 150: {ending}
def time_other(): device.host(100e-6)
""",
        base="BAD = False",
        head="BAD = True",
    )
    measured = bench.run(rounds=2)
    assert {name: failure.kind for name, failure in failures(measured).items()} == {"b.time_ends": kind}
    assert failures(measured, "base") == {}
    assert good(measured, "base")["b.time_ends"] >= 1, "the other side goes on, to prove that it works"
    assert good(measured)["b.time_other"] == 2


def test_a_side_that_hangs_ends_with_its_time_and_the_next_case_goes_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replies, "GRACE_S", 2.0)
    bench.write(
        """
import time, regress_scripted as device
from proj import BAD
calls = 0
def time_hangs():
    global calls
    calls += 1
    device.host(100e-6)
    if BAD and calls > 150: time.sleep(600)
time_hangs.timeout = 2
def time_other(): device.host(100e-6)
""",
        base="BAD = False",
        head="BAD = True",
    )
    measured = bench.run(rounds=1)
    assert {name: failure.kind for name, failure in failures(measured).items()} == {"b.time_hangs": "timeout"}
    assert good(measured, "base") == {"b.time_hangs": 1, "b.time_other": 1}
    assert good(measured) == {"b.time_other": 1}


def test_nothing_is_left_of_groups(bench: Bench) -> None:
    bench.write(WORK, base="FACTOR = 1.0", head="FACTOR = 1.0")
    measured = bench.run(rounds=2)
    assert all(ended(round.process) for round in measured.rounds)


def test_two_sides_that_may_not_fit_the_memory_are_never_set_up_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "free_memory", lambda: 1e6)
    bench.write(WORK, base="FACTOR = 1.0", head="FACTOR = 1.0")
    measured = bench.run(rounds=2)
    assert failures(measured) == {}
    assert against(measured.of("head"), "time_work", "wall_time") == []
    (note,) = notes(measured.of("head"), "time_work")
    assert "both sides at once might not fit the memory of the host" in note


# -- what they are forked from -------------------------------------------------------------------------------------------


def outside(bench: Bench, text: str) -> None:
    """A package beside the project, which both sides import."""
    (bench.root / "installed").mkdir(exist_ok=True)
    (bench.root / "installed" / "framework.py").write_text(text)


def run_with_framework(bench: Bench, text: str, monkeypatch: pytest.MonkeyPatch, **settings: object) -> list[Round]:
    outside(bench, text)
    bench.write("import framework\n" + WORK, base="FACTOR = 1.0", head="FACTOR = 1.0")
    job = bench.job(rounds=2, patterns=("time_work",), settings=settings)
    for side in job.sides:
        side.variables["PYTHONPATH"] += os.pathsep + str(bench.root / "installed")
    monkeypatch.setattr(bench, "job", lambda *_, **__: job)
    measured = bench.run(rounds=2)
    assert failures(measured) == {}
    return measured.of("head")


def test_frameworks_are_imported_once_for_both_sides(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice by who discovers, and once by each of two zygotes: the four sides that are forked from them have it already."""
    marks = bench.root / "marks"
    head = run_with_framework(bench, f"open({str(marks)!r}, 'a').write('imported ')", monkeypatch)
    assert marks.read_text().split() == ["imported"] * 4
    assert all(pair.common for pair in against(head, "time_work", "wall_time"))


def test_a_framework_that_brings_the_project_in_is_left_to_each_side(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The zygote would have the installed code for both."""
    outside(bench, "import proj")
    (bench.root / "installed" / "proj.py").write_text("FACTOR = 2.0")
    head = run_with_framework(bench, "import proj", monkeypatch)
    pairs = against(head, "time_work", "wall_time")
    assert pairs
    assert not any(pair.common for pair in pairs)


def test_variables_that_the_suite_sets_are_there_when_the_zygote_imports(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = bench.root / "marks"
    outside(bench, f"import os\nopen({str(marks)!r}, 'a').write(os.environ.get('THREADS', 'unset') + ' ')")
    bench.write(
        "import os\nos.environ['THREADS'] = '1'\nimport framework\n" + WORK, base="FACTOR = 1.0", head="FACTOR = 1.0"
    )
    job = bench.job(rounds=2, patterns=("time_work",))
    for side in job.sides:
        side.variables["PYTHONPATH"] += os.pathsep + str(bench.root / "installed")
    monkeypatch.setattr(bench, "job", lambda *_, **__: job)
    measured = bench.run()
    assert failures(measured) == {}
    assert set(marks.read_text().split()) == {"1"}


def test_sides_with_unlike_variables_have_origins_of_their_own(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write(WORK, base="FACTOR = 1.0", head="FACTOR = 1.0")
    job = bench.job(rounds=3, patterns=("time_work",))
    job.sides[0].variables["OMP_NUM_THREADS"] = "1"
    monkeypatch.setattr(bench, "job", lambda *_, **__: job)
    pairs = against(bench.run().of("head"), "time_work", "wall_time")
    assert [pair.common for pair in pairs] == [False] * 3
    assert len({pair.origin for pair in pairs}) == 3


def test_a_zygote_whose_forks_do_not_work_is_not_used(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    real = processes.Processes._tried

    def tried(self: processes.Processes, side: object, origin: object) -> str:
        return "it hangs" if origin.zygote is not None else real(self, side, origin)  # type: ignore[attr-defined, arg-type]

    monkeypatch.setattr(processes.Processes, "_tried", tried)
    bench.write(WORK, base="FACTOR = 1.0", head="FACTOR = 1.0")
    measured = bench.run(rounds=3, patterns=("time_work",))
    assert failures(measured) == {}
    assert not any(pair.common for pair in against(measured.of("head"), "time_work", "wall_time"))


# -- order and value -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seats", "windows", "at_a_time", "order"),
    [
        ([0, 1], 4, 1, [0, 1, 1, 0, 0, 1, 1, 0]),
        ([1, 0], 2, 1, [1, 0, 0, 1]),
        ([0, 1, 2], 2, 1, [0, 1, 2, 2, 1, 0]),
        ([0, 1], 3, 2, [0, 0, 1, 1, 1, 0]),
        ([3], 3, 1, [3, 3, 3]),
    ],
)
def test_windows_come_in_an_order_and_its_reverse(
    seats: list[int], windows: int, at_a_time: int, order: list[int]
) -> None:
    assert _in_order(seats, windows, at_a_time) == order


ONE = Protocol("wall_time", short_windows=True)
SEVERAL = Protocol("wall_time", short_windows=True, pinned=False)


def test_the_value_of_a_pair_is_the_median_over_neighbours() -> None:
    """One window was taken while the core was half as fast, on both sides alike: their values lie apart, their ratios do
    not."""
    base = _Windows([1.0, 2.0, 1.0, 1.0], [1.0, 2.0, 1.0, 1.0])
    head = _Windows([1.1, 2.2, 1.1, 9.9], [1.1, 2.2, 1.1, 1.1])
    ratio, error, count = _difference(head, base, ONE)
    assert ratio == pytest.approx(math.log(1.1))
    assert (round(error, 9), count) == (0.0, 4)
    assert _difference(base, head, ONE)[0] == pytest.approx(-ratio)


def test_windows_of_several_threads_count_where_none_was_kept_waiting() -> None:
    disturbed = [math.nan] * 6
    base = _Windows([1.0] * 6 + [5.0] * 6, [1.0] * 6 + disturbed)
    head = _Windows([7.0] * 6 + [1.2] * 6, disturbed + [1.2] * 6)
    ratio, _, count = _difference(head, base, SEVERAL)
    assert ratio == pytest.approx(math.log(1.2))
    assert count == 6
    worse = _Windows([5.0] * 18 + [1.3] * 6, [math.nan] * 24)
    assert _difference(worse, base, SEVERAL)[0] == pytest.approx(math.log(1.3)), "the fastest quarter"


def test_a_side_without_windows_has_no_value() -> None:
    assert _difference(_Windows(), _Windows([1.0], [1.0]), SEVERAL)[2] == 0
