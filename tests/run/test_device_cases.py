"""What benchmarks declare about the device, through real worker processes on the scripted device."""

from __future__ import annotations

from pathlib import Path

import pytest

from regress.measure.methods.device import ESCAPES
from regress.measure.methods.host import LAUNCH_ONLY
from regress.model import SYNCHRONIZES, Round
from tests.run.test_execute import Bench, failures


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def by_name(bench: Bench, **job: object) -> dict[str, Round]:
    """The last round of each benchmark."""
    measured = bench.run(**job)  # type: ignore[arg-type]
    assert failures(measured) == {}
    return {each.name.removeprefix("b."): each for each in measured.rounds}


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
    lines = [line.split() for line in seen.read_text().splitlines()]
    assert len({pid for pid, _, _ in lines}) == len({cache for _, cache, _ in lines}) == 3, "first visit and two rounds"
    assert {there for _, _, there in lines} == {"False"}


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
    facts = [each.facts for each in measured.rounds if each.order == 0]
    assert [(each["bytes"], each["flops"]) for each in facts] == [(8192.0, 1024.0), (32768.0, 4096.0)]
    assert {each["output"] for each in facts} == {"float"}


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


def test_a_device_that_protects_itself_is_waited_for(bench: Bench) -> None:
    bench.write(
        """
import regress_scripted as d
class Hot:
    def setup(self): d.hold_back("hw_thermal", 2)
    def cudatime_once(self): d.kernel("k", 50e-6)
class Hotter:
    def setup(self): d.hold_back("hw_thermal", 6)
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
    found = failures(bench.run(settings={"device": "cpu"}))
    assert set(found) == {"b.time_on_cuda", "b.cudacold_c", "b.time_retimed"}
    assert {each.kind for each in found.values()} == {"skipped"}
    assert "needs a CUDA device" in found["b.time_on_cuda"].message
