"""Several GPUs at once, with real processes on a scripted host: who measures what and when, and what a lane's end costs."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from regress.errors import NothingMeasured, StoreError
from regress.model import Batch, Case, Round
from regress.run.execute import JobResult
from regress.run.gpus import Gpu
from regress.run.homes import home
from tests.conftest import ended
from tests.run.test_execute import Bench, failures, good

FIRST, SECOND = GPUS = (Gpu("scripted"), Gpu("scripted-1"))
UUIDS = [gpu.uuid for gpu in GPUS]


def on(gpu: Gpu, *names: str) -> list[str]:
    """Those of the names that belong to the GPU."""
    places = [(own,) for own in GPUS]
    return [name for name in names if home(Case(f"b.{name}"), f"b.{name}", places) == (gpu,)]


NAMES = [f"cudatime_{letter}" for letter in "abcdefgh"]
HERE, THERE = on(FIRST, *NAMES), on(SECOND, *NAMES)
SUITE = "import os\nimport regress_scripted as device\n"
WORK = "def {}(): device.kernel('k', 50e-6)\n"
DEVICE_CASES = SUITE + "".join(map(WORK.format, NAMES))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def gpus_of(bench: Bench) -> dict[str, set[str]]:
    """By case: the GPUs that its rounds were on."""
    cards: dict[str, set[str]] = {}
    for round, facts in bench.kept:
        cards.setdefault(round.name.removeprefix("b."), set()).add(facts["gpu_uuid"])
    return cards


def values(measured: JobResult) -> dict[tuple[str, str, int], float]:
    return {(round.name, round.side, round.order): round.values["gpu_time"].value for round in measured.rounds}


def overlap(one: Round, other: Round) -> bool:
    ends = [round.started_at + round.duration_s for round in (one, other)]
    return max(one.started_at, other.started_at) < min(ends)


# -- who measures what ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("process", ["auto", "fresh"])
def test_a_case_is_on_its_gpu_on_both_sides_with_the_values_it_has_alone(tmp_path: Path, process: str) -> None:
    by_case = {}
    for name, gpus in {"one": GPUS[:1], "two": GPUS}.items():
        (tmp_path / name).mkdir()
        bench = Bench(tmp_path / name)
        bench.write(DEVICE_CASES, base="", head="")
        by_case[name] = bench.run(rounds=3, gpus=gpus, settings={"process": process})
        assert bench.watch.done == bench.watch.total
        assert [round for round, _ in bench.kept] == by_case[name].rounds
    assert gpus_of(bench) == {name: {FIRST.uuid} if name in HERE else {SECOND.uuid} for name in NAMES}
    assert values(by_case["two"]) == pytest.approx(values(by_case["one"]), rel=0.01)
    assert len(values(by_case["two"])) == 2 * 3 * len(NAMES)
    order = [round.side for round in by_case["two"].rounds if round.name == f"b.{HERE[0]}"]
    assert order == ["base", "head", "head", "base", "base", "head"], "the sides alternate in each lane"


def test_lanes_measure_at_once(bench: Bench, tmp_path: Path) -> None:
    one, other = HERE[0], THERE[0]
    bench.write(f"""{DEVICE_CASES}
import pathlib, time
def meet(ours, theirs):
    (pathlib.Path({str(tmp_path)!r}) / ours).touch()
    while not (pathlib.Path({str(tmp_path)!r}) / theirs).exists():
        time.sleep(0.01)
{one}.setup = lambda: meet("one", "other")
{other}.setup = lambda: meet("other", "one")
{one}.timeout = {other}.timeout = 120
""")
    measured = bench.run(rounds=1, gpus=GPUS, patterns=(f"b.{one}", f"b.{other}"))
    assert good(measured) == {f"b.{one}": 1, f"b.{other}": 1}, "each waits until the other one has come"


def test_the_processes_of_a_lane_see_its_gpu_alone_and_keep_to_its_processors(bench: Bench, tmp_path: Path) -> None:
    mine, before = min(os.sched_getaffinity(0)), os.sched_getaffinity(0)
    bench.write(f"""{DEVICE_CASES}
def look():
    with open({str(tmp_path / "seen")!r}, "a") as file:
        print(os.environ["CUDA_VISIBLE_DEVICES"], *os.sched_getaffinity(0), file=file)
for each in [{", ".join(NAMES)}]:
    each.setup = look
""")
    bench.run(rounds=1, gpus=tuple(Gpu(uuid, frozenset({mine})) for uuid in UUIDS))
    assert set((tmp_path / "seen").read_text().splitlines()) == {f"{uuid} {mine}" for uuid in UUIDS}
    assert {facts["cpus"] for _, facts in bench.kept} == {1}
    assert os.sched_getaffinity(0) == before


def test_a_setup_cache_is_made_once_for_each_gpu_that_needs_it(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "log"
    bench.write(f"""{SUITE}
class Cached:
    def setup_cache(self):
        with open({str(log)!r}, "a") as file: print(os.environ["CUDA_VISIBLE_DEVICES"], file=file)
        return os.environ["CUDA_VISIBLE_DEVICES"]
    params = [[1, 2, 3, 4, 5, 6]]
    def setup(self, cache, n): assert cache == os.environ["CUDA_VISIBLE_DEVICES"]
    def cudatime_x(self, cache, n): device.kernel("k", n * 1e-4)
""")
    measured = bench.run(rounds=2, gpus=GPUS)
    assert good(measured) == {f"b.Cached.cudatime_x({n})": 2 for n in range(1, 7)}
    assert sorted(log.read_text().split()) == UUIDS


def test_each_gpu_measures_all_cases_of_sides_of_its_own(bench: Bench) -> None:
    """What is to be alone is, whichever GPU's sides it is of; what needs no GPU is on the first one."""
    suite = DEVICE_CASES + "def cudatime_waits():\n    device.kernel('k', 50e-6)\n    device.synchronize()\n"
    bench.write(suite + "def time_host(): device.host(1e-4)\n", base="", head="")
    measured = bench.run(rounds=2, gpus=GPUS, groups=(("base",), ("head",)))
    assert bench.watch.done == bench.watch.total
    on = {(round.side, facts["gpu_uuid"]) for round, facts in bench.kept if round.name != "b.time_host"}
    assert on == {("base", FIRST.uuid), ("head", SECOND.uuid)}
    every = {f"b.{name}": 2 for name in (*NAMES, "cudatime_waits", "time_host")}
    assert (good(measured, "base"), good(measured)) == (every, every)
    alone = [round for round in measured.rounds if round.name in ("b.cudatime_waits", "b.time_host")]
    assert len(alone) == 8
    assert all("beside" not in round.facts for round in alone)
    assert not any(overlap(one, other) for one in alone for other in measured.rounds if one is not other)


# -- beside others, and alone --------------------------------------------------------------------------------------------

MIXED = (
    DEVICE_CASES
    + """
def cudatime_waits():
    device.kernel("k", 50e-6)
    device.synchronize()
def cudatime_both(): device.kernel("k", 50e-6)
cudatime_both.gpus = 2
def cudatime_all_there_are(): device.kernel("k", 50e-6)
cudatime_all_there_are.gpus = 3
def time_host(): device.host(1e-4)
def track_visible(): return os.environ["CUDA_VISIBLE_DEVICES"].count(",")
track_visible.gpus = 2
"""
)


def test_what_the_host_has_a_part_in_is_measured_while_nothing_else_is(bench: Bench) -> None:
    bench.write(MIXED)
    measured = bench.run(rounds=2, gpus=GPUS)
    assert {name: failure.message for name, failure in failures(measured).items()} == {
        "b.cudatime_all_there_are": "needs 3 GPUs: --gpus names 2"
    }
    alone = [round for round in measured.rounds if round.values and "beside" not in round.facts]
    beside = [round for round in measured.rounds if "beside" in round.facts]
    assert {round.name for round in beside} == {f"b.{name}" for name in NAMES}
    assert {round.name.removeprefix("b.") for round in alone} == {
        "cudatime_waits", "cudatime_both", "time_host", "track_visible",
    }  # fmt: skip
    for round in beside:
        assert round.facts["beside"] == 2
        assert {"gpu_time", "host_time", "wall_time"} & set(round.values) == {"gpu_time"}
    assert [round.values["value"].value for round in alone if round.name == "b.track_visible"] == [1.0, 1.0]
    assert all("wall_time" in round.values for round in alone if round.name in ("b.cudatime_waits", "b.time_host"))
    for round in alone:
        assert not [other.name for other in measured.rounds if other is not round and overlap(round, other)]


def test_where_one_lane_has_all_there_is_to_do_nothing_is_left_out(bench: Bench) -> None:
    bench.write(DEVICE_CASES)
    measured = bench.run(rounds=1, gpus=GPUS, patterns=(f"b.{HERE[0]}",))
    (only,) = measured.rounds
    assert "beside" not in only.facts
    assert {"gpu_time", "host_time", "wall_time"} <= set(only.values)


def test_one_gpu_by_name_measures_everything_on_it(bench: Bench) -> None:
    bench.write(MIXED)
    measured = bench.run(rounds=1, gpus=(SECOND,))
    assert not any("beside" in round.facts for round in measured.rounds)
    assert {gpu for gpus in gpus_of(bench).values() for gpu in gpus} == {SECOND.uuid}
    assert set(failures(measured)) == {"b.cudatime_both", "b.cudatime_all_there_are", "b.track_visible"}


class Looks:
    """Two batches over all cases, the second one afresh."""

    end_s = math.inf

    def __init__(self) -> None:
        self.seen: list[set[str]] = []

    def next(self, measured: Any) -> Batch | None:
        self.seen.append({round.name for round in measured.rounds})
        cases = dict.fromkeys(measured.cases["head"], 2)
        return [Batch(cases), Batch(cases, 24, "confirming", afresh=True), None][len(self.seen) - 1]


def test_a_batch_begins_when_every_lane_has_done_the_one_before(bench: Bench) -> None:
    bench.write(DEVICE_CASES, base="", head="")
    steps = Looks()
    measured = bench.run(gpus=GPUS, steps=steps)
    assert steps.seen == [set(), {f"b.{name}" for name in NAMES}, {f"b.{name}" for name in NAMES}]
    for name in NAMES:
        rounds = [(round.side, round.order) for round in measured.rounds if round.name == f"b.{name}"]
        assert rounds == [
            ("base", 0), ("head", 0), ("head", 1), ("base", 1),
            ("head", 24), ("base", 24), ("base", 25), ("head", 25),
        ]  # fmt: skip
    last = max(round.started_at for round in measured.rounds if round.order < 24)
    assert last < min(round.started_at for round in measured.rounds if round.order >= 24)


def test_what_one_lane_imports_of_the_project_the_suite_imports(bench: Bench) -> None:
    bench.write(f"{DEVICE_CASES}\ndef setup():\n    import proj\n{HERE[0]}.setup = setup\n")
    assert not [text for text in bench.run(rounds=1, gpus=GPUS).warnings if "imports nothing" in text]


# -- what goes wrong -----------------------------------------------------------------------------------------------------


def test_a_gpu_that_falls_out_fails_its_cases_and_no_others(bench: Bench, tmp_path: Path) -> None:
    """In the third visit to one of its cases the process that forks is killed, and can import the suite no more."""
    last, count = str(tmp_path / "last"), str(tmp_path / "count")
    bench.write(f"""{DEVICE_CASES}
import signal, sys
if os.path.exists({last!r}) and os.environ.get("CUDA_VISIBLE_DEVICES") == {SECOND.uuid!r}:
    print("RuntimeError: the GPU has fallen off the bus", file=sys.stderr, flush=True)
    os._exit(1)
def fall():
    open({count!r}, "a").write(f"{{os.getpid()}} ")
    if len(set(open({count!r}).read().split())) == 3:  # the first visit runs the setup more than once
        open({last!r}, "w").close()
        if os.getppid() != {os.getpid()}:
            os.kill(os.getppid(), signal.SIGKILL)
        os._exit(1)
{THERE[0]}.setup = fall
""")
    measured = bench.run(rounds=5, gpus=GPUS)
    assert good(measured).items() >= {f"b.{name}": 5 for name in HERE}.items()
    failed = [round for round in measured.rounds if round.failure is not None]
    assert {round.name for round in failed} == {f"b.{name}" for name in THERE}
    lost = f"{SECOND.uuid} cannot be used: no process could be started for head"
    for name in THERE:
        last_one = [round.failure for round in failed if round.name == f"b.{name}"][-1]
        assert last_one is not None
        assert last_one.message.startswith(lost)
        assert last_one.message.endswith("(RuntimeError: the GPU has fallen off the bus)")


def test_where_no_gpu_is_left_it_is_an_error(bench: Bench, tmp_path: Path) -> None:
    last = str(tmp_path / "last")
    bench.write(f"""{DEVICE_CASES}
import signal
if os.path.exists({last!r}):
    os._exit(1)
def fall():
    open({last!r}, "w").close()
    if os.getppid() != {os.getpid()}:  # where forks do not work in time, processes are this one's own
        os.kill(os.getppid(), signal.SIGKILL)
    os._exit(1)  # with the first case, and not whenever this is ended: the next one needs another process
for each in [{", ".join(NAMES)}]:
    each.setup = fall
""")
    with pytest.raises(NothingMeasured, match="no process could be started for head"):
        bench.run(rounds=5, gpus=GPUS)


@pytest.mark.usefixtures("_heard")
def test_ctrl_c_ends_every_lane_and_keeps_what_was_measured(bench: Bench, tmp_path: Path) -> None:
    """Two cases, one a lane, hang once everything has a round."""
    one, other = HERE[0], THERE[0]
    bench.write(f"""{DEVICE_CASES}
import time
def hang(name):
    path = os.path.join({str(tmp_path)!r}, name)
    open(path, "a").write(f"{{os.getpid()}} ")
    if len(set(open(path).read().split())) == 3:  # the first visit runs the setup more than once
        open(path + ".hangs", "w").close()
        time.sleep(600)
{one}.setup = lambda: hang("one")
{other}.setup = lambda: hang("other")
""")

    def press() -> None:
        while not all((tmp_path / name).exists() for name in ("one.hangs", "other.hangs")):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    measured = bench.run(rounds=500, gpus=GPUS)
    assert measured.interrupted
    assert set(good(measured)) == {f"b.{name}" for name in NAMES}
    assert [round for round, _ in bench.kept] == measured.rounds
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lane ")]
    for name in ("one", "other"):
        assert all(ended(int(pid)) for pid in (tmp_path / name).read_text().split())


def test_code_from_elsewhere_is_refused_in_all_lanes(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "proj").mkdir(parents=True)
    (tmp_path / "elsewhere" / "proj" / "__init__.py").write_text("")
    path = f"import sys; sys.path.insert(0, {str(tmp_path / 'elsewhere')!r})\nimport proj\n"
    bench.write(path + DEVICE_CASES)
    with pytest.raises(NothingMeasured, match="proj was imported from elsewhere"):
        bench.run(rounds=2, gpus=GPUS)


def test_where_a_round_cannot_be_kept_all_lanes_stop(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write(DEVICE_CASES)
    kept: list[str] = []

    def full(round: Round, facts: Mapping[str, Any], benchmark: Any) -> None:
        kept.append(round.name)
        raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="the disk is full"):
        bench.run(rounds=500, gpus=GPUS, sink=full)
    assert len(kept) <= len(GPUS), "a lane that was about to keep one more may try"
