"""What benchmarks declare about the device, through real worker processes on the scripted device."""

from __future__ import annotations

from pathlib import Path

import pytest

from regress.measure.loop import ESCAPES
from regress.measure.methods.host import LAUNCH_ONLY
from regress.model import SYNCHRONIZES, Round
from tests.run.test_execute import Bench, failures, good


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def by_name(bench: Bench, **job: object) -> dict[str, Round]:
    """The last round of each benchmark."""
    measured = bench.run(**job)  # type: ignore[arg-type]
    assert failures(measured) == {}
    return {round.name.removeprefix("b."): round for round in measured.rounds}


EXISTING = """
import regress_scripted as d
def work(): d.kernel("k", 50e-6)
def time_trailing():
    work(); d.synchronize()
def time_middle():
    work(); d.synchronize(); work(); d.synchronize()
def time_launch(): work()
def time_host(): d.host(20e-6)
"""


def test_a_pattern_puts_existing_benchmarks_under_the_device_protocol(bench: Bench) -> None:
    bench.write(EXISTING)
    rounds = by_name(bench, settings={"cuda": ("trailing", "middle")})
    trailing, middle = rounds["time_trailing"], rounds["time_middle"]
    assert trailing.values["gpu_time"].value == pytest.approx(50e-6, rel=0.015)
    assert trailing.values["wall_time"].value > 60e-6, "the old series has the synchronize in it"
    assert (trailing.facts["synchronizes_left_out"], trailing.facts["synchronizes_kept"]) == (1, 0)
    assert "gpu_time" not in middle.values
    assert middle.flags == [SYNCHRONIZES]
    assert (middle.facts["synchronizes_left_out"], middle.facts["synchronizes_kept"]) == (1, 1)


def test_an_existing_benchmark_that_only_launches_is_noted(bench: Bench) -> None:
    bench.write(EXISTING)
    rounds = by_name(bench)
    assert rounds["time_launch"].flags == [LAUNCH_ONLY]
    assert {rounds[name].flags == [] for name in ("time_trailing", "time_middle", "time_host")} == {True}
    assert set(rounds["time_trailing"].values) == {"wall_time"}


def test_a_benchmark_can_ask_for_the_device_protocol_itself(bench: Bench) -> None:
    bench.write(EXISTING + "time_launch.cuda = True\n")
    round_ = by_name(bench, patterns=("launch",))["time_launch"]
    assert round_.values["gpu_time"].value == pytest.approx(50e-6, rel=0.015)
    assert round_.flags == []


def test_declared_streams_belong_to_the_call(bench: Bench) -> None:
    bench.write(
        """
import regress_scripted as d
class Declared:
    def streams(self): return [7]
    def cudatime_both(self):
        d.kernel("main", 50e-6)
        d.kernel("side", 200e-6, stream=7)
class Hidden:
    def cudatime_both(self):
        d.kernel("main", 50e-6)
        d.kernel("side", 200e-6, stream=7)
"""
    )
    rounds = by_name(bench)
    assert rounds["Declared.cudatime_both"].values["gpu_time"].value == pytest.approx(200e-6, rel=0.015)
    assert "gpu_time" not in rounds["Hidden.cudatime_both"].values
    assert rounds["Hidden.cudatime_both"].flags == [ESCAPES]


def test_hot_and_cold_caches_are_different_protocols(bench: Bench) -> None:
    bench.write(
        """
import regress_scripted as d
def cudatime_hot(): d.kernel("k", 50e-6, cold=30e-6)
def cudatime_cold(): d.kernel("k", 50e-6, cold=30e-6)
cudatime_cold.cache = "cold"
"""
    )
    rounds = by_name(bench)
    hot, cold = rounds["cudatime_hot"], rounds["cudatime_cold"]
    assert hot.protocol is not None
    assert cold.protocol is not None
    assert (hot.protocol.cache, cold.protocol.cache) == ("hot", "cold")
    assert hot.values["gpu_time"].value == pytest.approx(50e-6, rel=0.015)
    assert cold.values["gpu_time"].value == pytest.approx(80e-6, rel=0.015)


def test_what_blocks_by_nature_is_timed_by_the_wall(bench: Bench) -> None:
    bench.write(
        """
import regress_scripted as d
def cudatime_copy():
    buffer = d.alloc(1 << 20)
    d.kernel("copy", 2e-3)
    d.synchronize()
cudatime_copy.clock = "wall"
"""
    )
    round_ = by_name(bench)["cudatime_copy"]
    assert round_.values["wall_time"].value == pytest.approx(2.01e-3, rel=0.02)
    assert round_.values["peak_memory"].value == 1 << 20
    assert "gpu_time" not in round_.values
    assert round_.flags == []


def test_a_cold_start_has_a_process_and_caches_of_its_own(bench: Bench, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    bench.write(
        f"""
import os
import regress_scripted as d
made = False
def cudacold_first():
    global made
    if not made:
        cache = os.environ["TRITON_CACHE_DIR"]
        with open({str(seen)!r}, "a") as file:
            print(os.getpid(), cache, os.path.exists(cache), file=file)
        os.makedirs(cache, exist_ok=True)
        d.host(1.0)  # compiles
    made = True
    d.kernel("k", 1e-3)
def cudatime_warm():
    os.makedirs(os.environ["TRITON_CACHE_DIR"], exist_ok=True)
    d.kernel("k", 1e-3)
"""
    )
    rounds = by_name(bench)
    cold = rounds["cudacold_first"]
    assert set(cold.values) == {"cold_time", "compile_time", "wall_time"}
    assert cold.values["cold_time"].value == pytest.approx(1.0, rel=0.2)
    assert cold.values["compile_time"].value == pytest.approx(1.0, rel=0.2)
    assert cold.values["wall_time"].value == pytest.approx(1e-3, rel=0.05)
    visit, *cold_rounds = [line.split() for line in seen.read_text().splitlines()]
    assert len({pid for pid, _, _ in cold_rounds}) == len({cache for _, cache, _ in cold_rounds}) == 2
    assert {there for _, _, there in cold_rounds} == {"False"}
    assert visit[1] not in {cache for _, cache, _ in cold_rounds}, "what the unmeasured visit compiles warms no round"


def test_sides_do_not_share_compile_caches(bench: Bench, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    bench.write(
        "import proj\ndef track_caches(): return proj.note()\n",
        **{
            side: f"import os\ndef note():\n"
            f"    print({side!r}, os.environ['TORCH_EXTENSIONS_DIR'], file=open({str(seen)!r}, 'a'))\n    return 1\n"
            for side in ("base", "head")
        },
    )
    bench.run()
    pairs = {tuple(line.split()) for line in seen.read_text().splitlines()}
    assert len(pairs) == len({cache for _, cache in pairs}) == 2, "each side its own, the same in all its rounds"


def test_declared_work_and_output_travel_with_the_round(bench: Bench) -> None:
    bench.write(
        """
import regress_scripted as d
class Copy:
    params = [[1024, 4096]]
    def bytes(self, n): return 8 * n
    def flops(self, n): return n
    def cudatime_copy(self, n):
        d.kernel("copy", 50e-6)
        return [1.0]
"""
    )
    measured = bench.run()
    facts = [round.facts for round in measured.rounds if round.order == 0]
    assert sorted((of_rank["bytes"], of_rank["flops"]) for of_rank in facts) == [(8192.0, 1024.0), (32768.0, 4096.0)]
    assert {of_rank["output"] for of_rank in facts} == {"float"}


def test_setup_before_every_sample_where_one_call_is_asked_for(bench: Bench) -> None:
    bench.write(
        """
import regress_scripted as d
class InPlace:
    number = 1
    def setup(self):
        self.used = False
        d.kernel("fill", 500e-6)
        d.synchronize()
    def cudatime_sort(self):
        assert not self.used
        self.used = True
        d.kernel("sort", 50e-6)
"""
    )
    round_ = by_name(bench)["InPlace.cudatime_sort"]
    assert round_.protocol is not None
    assert round_.protocol.setup_each
    assert round_.values["gpu_time"].value == pytest.approx(50e-6, rel=0.015)


def test_what_a_first_call_does_more_is_no_reason_for_a_setup_each_time(bench: Bench) -> None:
    """An optimizer makes its state in its first step. What is put back between samples is declared."""
    bench.write(
        """
import regress_scripted as d
class Optimizer:
    def setup(self): self.state = False
    def cudatime_step(self):
        d.kernel("step", 50e-6 if self.state else 500e-6)
        self.state = True
class PutBack(Optimizer):
    def reset(self): self.state = False
"""
    )
    rounds = by_name(bench)
    assert not any(round.protocol is None or round.protocol.setup_each for round in rounds.values())
    times = {name: records.values["gpu_time"].value for name, records in rounds.items()}
    assert times["Optimizer.cudatime_step"] == pytest.approx(50e-6, rel=0.015)
    assert times["PutBack.cudatime_step"] == pytest.approx(500e-6, rel=0.015)


def test_a_device_that_protects_itself_is_waited_for(bench: Bench) -> None:
    bench.write(
        """
import regress_scripted as d
class Hot:
    def setup(self): d.hold_back("hw_thermal", 2)
    def cudatime_once(self): d.kernel("k", 50e-6)
class Hotter:
    def setup(self): d.hold_back("hw_thermal", 8)
    def cudatime_always(self): d.kernel("k", 50e-6)
"""
    )
    rounds = by_name(bench)
    assert "throttled" not in rounds["Hot.cudatime_once"].facts, "measured again after a pause"
    assert rounds["Hotter.cudatime_always"].facts["throttled"] == ["hw_thermal"]
    assert "gpu_time" in rounds["Hotter.cudatime_always"].values, "kept, with the fact"


def test_a_benchmark_that_needs_a_device_is_skipped_without_one(bench: Bench) -> None:
    bench.write(
        """
def time_on_cuda(): pass
time_on_cuda.device = "cuda"
def cudacold_c(): pass
def time_retimed(): pass
time_retimed.cuda = True
def time_cpu(): sum(range(10))
"""
    )
    failed = failures(bench.run(settings={"device": "cpu"}))
    assert set(failed) == {"b.time_on_cuda", "b.cudacold_c", "b.time_retimed"}
    assert {failure.kind for failure in failed.values()} == {"skipped"}
    assert "needs a CUDA device" in failed["b.time_on_cuda"].message


# -- what a review of the whole found ------------------------------------------------------------------------------------


def test_what_a_module_sets_at_import_is_the_modules(bench: Bench) -> None:
    """It is neither undone after the module's first case, nor laid at that case's door."""
    bench.write(
        """
import os, random, sys
os.environ["OF_THE_SUITE"] = "1"
sys.setrecursionlimit(4321)
DATA = random.random()
def track_a_first():
    os.environ["OF_A_CASE"] = "1"
    [random.random() for _ in range(os.getpid() % 7)]
    return int(os.environ["OF_THE_SUITE"])
def track_b_second(): return int(os.environ["OF_THE_SUITE"]) + ("OF_A_CASE" in os.environ)
def track_c_depth(): return sys.getrecursionlimit()
"""
    )
    (bench.root / "benchmarks" / "c.py").write_text(
        "import random\nDATA = random.random()\ndef track_data(): return DATA\n"
    )
    measured = bench.run()
    assert failures(measured) == {}
    values = {round.name: round.values["value"].value for round in measured.rounds}
    assert (values["b.track_a_first"], values["b.track_b_second"], values["b.track_c_depth"]) == (1, 1, 4321)
    data = {round.values["value"].value for round in measured.rounds if round.name == "c.track_data"}
    assert len(data) == 1, "drawn from the same seed, whatever ran before"


def test_a_head_that_can_use_one_lane_only_gives_both_sides_one(bench: Bench) -> None:
    """Its work on another lane would run beside the spin: a false improvement."""
    suite = "import proj\ndef cudatime_c(): proj.work()\n"
    code = "import regress_scripted as d\ndef work():\n    d.kernel('small', 2e-6)\n    d.kernel('k', 50e-6{})\n"
    bench.write(suite, base=code.format(""), head=code.format(", stream=0"))
    measured = bench.run()
    assert {round.protocol.lanes for round in measured.rounds if round.protocol} == {1}
    for side in ("base", "head"):
        assert measured.of(side)[0].values["gpu_time"].value == pytest.approx(52e-6, rel=0.02)


def test_no_device_work_is_no_device_time(bench: Bench) -> None:
    bench.write(
        """
import regress_scripted as d
def cudatime_host(): d.host(20e-6)
def cudatime_generator():
    return (d.kernel("k", 50e-6) for _ in range(1))
"""
    )
    for round_ in by_name(bench).values():
        assert "gpu_time" not in round_.values
        assert any("no device work was seen" in flag for flag in round_.flags)


def test_a_long_call_is_called_a_few_times_only(bench: Bench, tmp_path: Path) -> None:
    """Every call of two seconds costs two; twenty samples of it would not end within the time limit."""
    count = tmp_path / "count"
    bench.write(
        f"""
import regress_scripted as d
def cudatime_long():
    open({str(count)!r}, "a").write("x")
    d.kernel("k", 2.0)
"""
    )
    round_ = by_name(bench, rounds=2)["cudatime_long"]
    assert len(round_.values["gpu_time"].samples) == 3
    assert round_.flags == []
    assert len(count.read_text()) <= 60, "a first visit and two rounds with memory"


def test_teardown_finds_what_the_call_left(bench: Bench, tmp_path: Path) -> None:
    """With setup before every sample, a setup that no call has used is not torn down."""
    left = tmp_path / "left"
    bench.write(
        f"""
import os
import regress_scripted as d
class Writes:
    number = 1
    def setup(self): assert not os.path.exists({str(left)!r})
    def teardown(self): os.remove({str(left)!r})
    def cudatime_device(self):
        open({str(left)!r}, "w").close()
        d.kernel("k", 50e-6)
    def time_host(self):
        open({str(left)!r}, "w").close()
"""
    )
    rounds = by_name(bench)
    assert "gpu_time" in rounds["Writes.cudatime_device"].values
    assert "wall_time" in rounds["Writes.time_host"].values


def test_a_body_that_reads_what_it_waited_for_keeps_its_synchronizes(bench: Bench) -> None:
    bench.write(
        """
import regress_scripted as d
def time_reads():
    d.kernel("k", 50e-6)
    d.synchronize()
    assert d.idle()
time_reads.cuda = True
"""
    )
    round_ = by_name(bench)["time_reads"]
    assert round_.facts["synchronizes_kept"] == 1
    assert "wall_time" in round_.values


def test_names_of_a_module_by_chance_declare_nothing(bench: Bench) -> None:
    bench.write(
        """
from functools import cache
import regress_scripted as d
def reset(model): raise AssertionError("a helper of the suite")
def cudatime_device(): d.kernel("k", 50e-6)
def time_host(): d.host(1e-5)
"""
    )
    rounds = by_name(bench)
    assert rounds["cudatime_device"].values["gpu_time"].value == pytest.approx(50e-6, rel=0.02)


def test_work_that_cannot_be_read_costs_no_value(bench: Bench) -> None:
    bench.write(
        """
import regress_scripted as d
def cudatime_c(): d.kernel("k", 50e-6)
def wrong(): raise ValueError("typo")
cudatime_c.bytes = wrong
"""
    )
    round_ = by_name(bench)["cudatime_c"]
    assert "gpu_time" in round_.values
    assert round_.flags == ["bytes or flops cannot be read: ValueError: typo"]


def test_a_call_that_another_stream_is_waited_for_escapes(bench: Bench) -> None:
    """The side stream's work is done while the spin holds the current one, so the window would not have it."""
    bench.write(
        """
import regress_scripted as d
def cudatime_joined():
    d.kernel("side", 80e-6, stream=7)
    d.wait_for(7)
    d.kernel("main", 30e-6)
"""
    )
    round_ = by_name(bench)["cudatime_joined"]
    assert "gpu_time" not in round_.values
    assert round_.flags == [ESCAPES]


def test_a_killed_builds_lock_is_removed(bench: Bench, tmp_path: Path) -> None:
    """torch waits for the lock of an extension's build for ever, also when the builder is dead."""
    tried = tmp_path / "tried"
    bench.write(
        f"""
import os, time
def build():
    lock = os.path.join(os.environ["TORCH_EXTENSIONS_DIR"], "ext", "lock")
    os.makedirs(os.path.dirname(lock), exist_ok=True)
    if not os.path.exists({str(tried)!r}):
        open({str(tried)!r}, "w").close()
        open(lock, "w").close()
        time.sleep(600)
    assert not os.path.exists(lock)
def track_first():
    build()
    return 1
track_first.timeout = 2
def track_later():
    build()
    return 1
"""
    )
    import regress.run.replies as module

    before = module.GRACE_S
    module.GRACE_S = 2.0
    try:
        measured = bench.run()
    finally:
        module.GRACE_S = before
    assert set(failures(measured)) == {"b.track_first"}


@pytest.mark.parametrize("process", ["auto", "fresh"])
@pytest.mark.parametrize("synchronizes", [1, 2])
def test_a_lost_context_is_blamed_on_the_case_that_lost_it(bench: Bench, synchronizes: int, process: str) -> None:
    """Also where only the second synchronize behind the case finds it out, when its values are complete."""
    bench.write(
        f"""
import regress_scripted as d
def cudatime_before(): d.kernel("k", 50e-6)
class Breaks:
    def cudatime_work(self): d.kernel("k", 50e-6)
    def teardown(self): d.lose_context({synchronizes})
def cudatime_behind(): d.kernel("k", 50e-6)
"""
    )
    measured = bench.run(rounds=2, settings={"process": process})
    assert set(failures(measured)) == {"b.Breaks.cudatime_work"}
    assert "an illegal memory access was encountered" in failures(measured)["b.Breaks.cudatime_work"].message
    assert good(measured) == {"b.cudatime_before": 2, "b.cudatime_behind": 2}
