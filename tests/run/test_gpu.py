"""Real workers on a real device: what breaks one case is blamed on it, the others are measured, and the device that is asked
for is the one that is used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from regress.measure.backend.cuda import CudaBackend
from regress.model import SYNCHRONIZES, Round
from regress.run.execute import JobResult
from tests.run.test_execute import Bench, failures, good, values_of

pytestmark = pytest.mark.gpu

SUITE = """
import torch


class Fine:
    def setup(self):
        self.x = torch.randn(1 << 22, device="cuda")

    def cudatime_a_before(self): return self.x + self.x
    def cudatime_z_after(self): return self.x + self.x


class Hungry:
    def setup(self):
        self.most = torch.empty(int(0.6 * torch.cuda.mem_get_info()[1]), dtype=torch.uint8, device="cuda")

    def cudatime_asks_for_as_much_again(self): return torch.empty_like(self.most)


class HungryToo:
    setup = Hungry.setup

    def cudatime_has_what_it_needs(self): return self.most[: 1 << 24] + 1


class OutOfRange:
    def setup(self):
        self.x, self.index = torch.randn(16, device="cuda"), torch.tensor([1 << 20], device="cuda")

    def cudatime_n_asserts(self): return self.x[self.index]


class Waits:
    def setup(self):
        self.x = torch.randn(1 << 22, device="cuda")

    def cudatime_o_reads(self): return self.x.sum().item()


class Compiles:
    def setup(self):
        self.calls, self.xs = 0, [torch.randn(elements, device="cuda") for elements in (1 << 20, 1 << 21)]
        self.doubled = torch.compile(lambda x: x + x, backend="eager", dynamic=False)

    def cudatime_another_shape_on_call_3(self):
        self.calls += 1
        return self.doubled(self.xs[self.calls > 2])


class Cold:
    def setup(self):
        self.x = torch.randn(1 << 20, device="cuda")
        self.compiled = torch.compile(lambda x: (x + x).relu())

    def cudacold_first(self): return self.compiled(self.x)
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobResult]:
    """One round of everything above; each process imports torch, so all tests look at the same."""
    pytest.importorskip("torch")
    bench = Bench(tmp_path_factory.mktemp("bench"))
    bench.write(SUITE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGRESS_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield bench.run(rounds=1, settings={"device": "cuda"}, default_timeout_s=120.0)


def of(measured: JobResult, name: str) -> Round:
    (round,) = [round for round in measured.rounds if round.name == f"b.{name}"]
    return round


def test_what_breaks_one_case_costs_only_that_case(measured: JobResult) -> None:
    broken = {"b.Hungry.cudatime_asks_for_as_much_again", "b.OutOfRange.cudatime_n_asserts"}
    assert set(failures(measured)) == broken
    assert set(good(measured)) == {round.name for round in measured.rounds} - broken


def test_a_broken_context_is_blamed_on_the_case_that_broke_it(measured: JobResult) -> None:
    failure = of(measured, "OutOfRange.cudatime_n_asserts").failure
    assert failure is not None
    assert "assert" in failure.message.lower()


def test_out_of_memory_says_what_was_asked_for_and_the_next_case_has_all_of_it(measured: JobResult) -> None:
    failure = of(measured, "Hungry.cudatime_asks_for_as_much_again").failure
    assert failure is not None
    assert failure.kind == "oom"
    assert "Tried to allocate" in failure.message
    assert "gpu_time" in of(measured, "HungryToo.cudatime_has_what_it_needs").values


def test_a_hidden_wait_leaves_wall_time_alone(measured: JobResult) -> None:
    waits = of(measured, "Waits.cudatime_o_reads")
    assert SYNCHRONIZES in waits.flags
    assert "gpu_time" not in waits.values
    assert waits.values["wall_time"].value > 0


def test_the_same_work_takes_the_same_time_whatever_came_between(measured: JobResult) -> None:
    device = values_of(measured, "gpu_time")
    assert device["b.Fine.cudatime_z_after"] == pytest.approx(device["b.Fine.cudatime_a_before"], rel=0.05)


def test_rounds_know_their_clock_and_temperature(measured: JobResult) -> None:
    facts = of(measured, "Fine.cudatime_a_before").facts
    assert 0.3e9 < facts["sm_clock_hz"] < 3e9
    assert 5 < facts["temperature_c"] < 110


def test_a_recompilation_on_the_third_call_is_counted(measured: JobResult) -> None:
    values = of(measured, "Compiles.cudatime_another_shape_on_call_3").values
    assert values["recompiles"].value == 1


def test_a_cold_start_has_its_compilation_in_it(measured: JobResult) -> None:
    values = {name: value.value for name, value in of(measured, "Cold.cudacold_first").values.items()}
    assert values["cold_time"] > values["compile_time"] > values["wall_time"] > 0


# -- which device --------------------------------------------------------------------------------------------------------


def test_a_device_is_chosen_by_its_uuid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uuid = CudaBackend().facts()["gpu_uuid"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", uuid)
    bench = Bench(tmp_path)
    bench.write("def track_one(): return 1.0\n")
    bench.run(rounds=1, settings={"device": "cuda"})
    _, facts = bench.kept[0]
    assert (facts["gpu_uuid"], facts["CUDA_VISIBLE_DEVICES"]) == (uuid, uuid)


@pytest.mark.parametrize("hidden", ["-1", ""])
def test_a_device_that_is_hidden_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hidden: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    bench = Bench(tmp_path)
    bench.write("def cudatime_never(): pass\ndef time_on_the_cpu(): pass\n")
    measured = bench.run(rounds=1, settings={"device": "auto"})
    failure = failures(measured)["b.cudatime_never"]
    assert failure.kind == "skipped"
    assert "CUDA_VISIBLE_DEVICES" in failure.message
    assert good(measured) == {"b.time_on_the_cpu": 1}
    assert {"gpu", "gpu_uuid"}.isdisjoint(bench.kept[0][1])


SHARED = """
import torch
import torch.distributed as dist


class Shares:
    ranks = 2
    gpus = 1

    def setup(self):
        dist.init_process_group("gloo")
        self.x = torch.ones(1 << 20, device="cuda")

    def cudatime_reduces(self):
        self.x.mul_(1.0)
        dist.all_reduce(self.x)

    def track_sum(self):
        x = torch.full((4,), 1.0 + dist.get_rank(), device="cuda")
        dist.all_reduce(x)
        return float(x[0])
"""


def test_two_ranks_share_one_gpu(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    bench = Bench(tmp_path)
    bench.write(SHARED)
    measured = bench.run(rounds=2, settings={"device": "cuda"}, default_timeout_s=120.0)
    assert failures(measured) == {}
    assert good(measured) == {"b.Shares.cudatime_reduces": 2, "b.Shares.track_sum": 2}
    rounds = {round.name: round for round in measured.rounds}
    assert rounds["b.Shares.track_sum"].values["value"].value == 3.0
    assert rounds["b.Shares.cudatime_reduces"].facts["ranks"] == 2
    assert len({round.facts.get("gpu_uuid") for round in measured.rounds}) == 1
