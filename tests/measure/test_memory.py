from __future__ import annotations

import ctypes
import subprocess
import sys
from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import pytest

from regress.measure.backend.allocators import UNCACHED, CupyMemory, DriverPool, FreeMemory, TorchMemory, memory_probe
from regress.measure.backend.fake import Buffer, FakeBackend
from regress.measure.memory import LEAK_CALLS, describe_output, memory_of_call, peak_rss


def bytes_of(call: Any, device: FakeBackend, reset: Any = None) -> tuple[float, float, float]:
    """Peak, output and left-behind bytes."""
    memory = memory_of_call(call, device, device.probe, reset)
    assert all((value.exact, value.unit, value.samples) == (True, "B", [value.value]) for value in memory.values())
    return memory["peak_memory"].value, memory["output_memory"].value, memory["left_memory"].value


# -- one call ------------------------------------------------------------------------------------------------------------


def test_the_peak_counts_what_one_call_needs_above_what_was_there() -> None:
    device = FakeBackend()
    kept = [device.alloc(1000)]

    def call() -> object:
        scratch = device.alloc(300)
        output = device.alloc(200)
        del scratch
        return output

    assert bytes_of(call, device) == (500, 200, 0)
    assert kept


def test_what_is_made_once_does_not_count() -> None:
    device = FakeBackend()
    cache: dict[str, object] = {}

    def call() -> object:
        if "workspace" not in cache:
            cache["workspace"] = device.alloc(10_000)
        return device.alloc(10)

    assert bytes_of(call, device) == (10, 10, 0)


def test_a_leak_is_left_behind_by_each_of_five_calls_and_is_no_output() -> None:
    device = FakeBackend()
    leaked: list[Buffer] = []

    def call() -> object:
        leaked.append(device.alloc(64))
        return device.alloc(10)

    assert bytes_of(call, device) == (74, 10, 64 * LEAK_CALLS)


def test_a_cycle_is_collected_and_no_leak() -> None:
    device = FakeBackend()

    def call() -> object:
        cycle: list[object] = [device.alloc(64)]
        cycle.append(cycle)
        return None

    assert bytes_of(call, device) == (64, 0, 0)


def test_an_operation_in_place_holds_nothing() -> None:
    device = FakeBackend()
    inputs = device.alloc(4096)
    assert bytes_of(lambda: inputs, device) == (0, 0, 0)


def test_what_frees_more_than_it_takes_leaves_nothing() -> None:
    device = FakeBackend()
    stock = [device.alloc(100) for _ in range(20)]
    assert bytes_of(lambda: stock.pop() and None, device) == (0, 0, 0)


def test_reset_runs_before_every_call_and_is_not_part_of_it() -> None:
    device = FakeBackend()
    done: list[str] = []
    state: dict[str, Buffer] = {}

    def reset() -> None:
        done.append("reset")
        state["input"] = device.alloc(1000)

    def call() -> object:
        done.append("call")
        return device.alloc(10)

    assert bytes_of(call, device, reset)[:2] == (10, 10)
    assert done == ["reset", "call"] * (len(done) // 2)


def test_the_second_of_two_cases_owes_nothing_to_the_first() -> None:
    device = FakeBackend()
    first = bytes_of(lambda: device.alloc(1 << 30), device)
    assert first[0] == 1 << 30
    assert bytes_of(lambda: device.alloc(10), device) == (10, 10, 0)


# -- allocators ----------------------------------------------------------------------------------------------------------


def torch_with(initialized: bool = True, backend: str = "native", allocated: int = 1) -> Any:
    stats = {"requested_bytes.all.current": 5, "requested_bytes.all.peak": 9, "allocation.all.allocated": allocated}
    return SimpleNamespace(
        cuda=SimpleNamespace(
            is_initialized=lambda: initialized, get_allocator_backend=lambda: backend, memory_stats=lambda: stats
        )
    )


class Cupy:
    """CuPy's pool: sizes are rounded up, hooks of the thread are told."""

    def __init__(self, pooled: int = 512) -> None:
        hooks: OrderedDict[str, Any] = OrderedDict()

        class MemoryHook:
            name = ""

            def __enter__(self) -> None:
                hooks[self.name] = self

            def __exit__(self, *_: object) -> None:
                del hooks[self.name]

        self.hooks, self.cuda = hooks, SimpleNamespace(MemoryHook=MemoryHook)
        self.pool = SimpleNamespace(total_bytes=lambda: pooled, free_all_blocks=lambda: None)

    def get_default_memory_pool(self) -> Any:
        return self.pool

    def malloc(self, size: int, address: int) -> None:
        for hook in self.hooks.values():
            hook.malloc_postprocess(device_id=0, size=size, mem_size=-(-size // 512) * 512, mem_ptr=address, pmem_id=1)

    def free(self, size: int, address: int) -> None:
        for hook in self.hooks.values():
            hook.free_postprocess(device_id=0, mem_size=-(-size // 512) * 512, mem_ptr=address, pmem_id=1)


class Driver:
    """libcuda's memory functions over numbers that a test sets."""

    def __init__(self, used: int = 0, high: int = 0, free: int = 80, pool: int = 0) -> None:
        self.attributes, self.free, self.failing = {7: used, 8: high}, free, pool

    def cuDeviceGetDefaultMemPool(self, pool: Any, device: int) -> int:
        return self.failing

    def cuMemPoolGetAttribute(self, pool: Any, attribute: int, value: Any) -> int:
        value._obj.value = self.attributes[attribute]
        return 0

    def cuMemPoolSetAttribute(self, pool: Any, attribute: int, value: Any) -> int:
        assert value._obj.value == 0
        self.attributes[attribute] = self.attributes[7]
        return 0

    def cuMemPoolTrimTo(self, pool: Any, keep: ctypes.c_size_t) -> int:
        return 0

    def cuMemGetInfo_v2(self, free: Any, total: Any) -> int:
        free._obj.value, total._obj.value = self.free, 100
        return 0


def chosen(modules: dict[str, Any], driver: Any = None) -> Any:
    return type(memory_probe(modules, driver))


def test_torch_counts_requested_bytes() -> None:
    probe = memory_probe({"torch": torch_with()})
    assert isinstance(probe, TorchMemory)
    assert (probe.current(), probe.peak(), probe.allocations(), probe.exact) == (5, 9, 1, True)


def test_which_allocator_is_asked() -> None:
    used, unused = Driver(used=1, high=2), Driver()
    assert chosen({"torch": torch_with(), "cupy": Cupy()}) is TorchMemory
    assert chosen({"torch": torch_with(allocated=0), "cupy": Cupy()}) is CupyMemory
    assert chosen({"torch": torch_with(allocated=0), "cupy": Cupy(pooled=0)}) is TorchMemory
    assert chosen({"torch": torch_with(initialized=False), "cupy": Cupy()}) is CupyMemory
    assert chosen({"torch": torch_with(backend="cudaMallocAsync")}, used) is DriverPool
    assert chosen({"warp": SimpleNamespace()}, used) is DriverPool
    assert chosen({}, unused) is FreeMemory


@pytest.mark.parametrize(
    "modules",
    [
        {"torch": torch_with(backend="cudaMallocAsync")},
        {"torch": torch_with(backend="pluggable")},
        {"cupy": Cupy(pooled=0)},
        {"warp": SimpleNamespace()},
        {"jax": SimpleNamespace()},
        {"torch": SimpleNamespace(), "cupy": Cupy(pooled=0)},  # half imported
    ],
)
def test_an_allocator_that_reports_nothing_has_no_probe(modules: dict[str, Any]) -> None:
    assert memory_probe(modules, Driver()) is None
    assert memory_probe(modules, Driver(pool=801)) is None  # a device without pools
    assert memory_probe(modules) is None


def test_torch_without_its_cache_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(UNCACHED, "1")
    assert memory_probe({"torch": torch_with()}, Driver()) is None


def test_without_a_context_free_memory_cannot_be_read() -> None:
    assert memory_probe({}, None) is None


def test_cupys_hook_sees_requested_bytes_and_their_peak() -> None:
    cupy = Cupy()
    probe = CupyMemory(cupy)
    cupy.malloc(700, 1)  # before it is open
    with probe:
        cupy.malloc(100, 2)
        cupy.malloc(50, 3)
        cupy.free(100, 2)
        assert (probe.current(), probe.peak(), probe.allocations()) == (50, 150, 2)
        probe.reset_peak()
        cupy.malloc(0, 0)  # out of memory
        assert (probe.peak(), probe.allocations()) == (50, 2)
        cupy.free(700, 1)
        assert probe.current() == 50 - 1024
    assert not cupy.hooks
    cupy.malloc(100, 2)
    assert probe.current() == 50 - 1024


def test_the_drivers_pool_keeps_a_high_water_mark() -> None:
    driver = Driver(used=10, high=99)
    probe = DriverPool.of(driver, 0)
    assert probe is not None
    assert (probe.current(), probe.peak()) == (10, 99)
    probe.reset_peak()
    assert probe.peak() == 10


def test_free_memory_gives_a_lower_bound_and_says_so() -> None:
    device, driver = FakeBackend(), Driver(free=80)

    def call() -> object:
        driver.free = 70
        return None

    probe = FreeMemory(driver)
    memory = memory_of_call(call, device, probe, lambda: setattr(driver, "free", 80))
    assert (memory["peak_memory"].value, memory["peak_memory"].exact) == (10, False)
    assert "lower bound" in probe.name


# -- outputs -------------------------------------------------------------------------------------------------------------


def array(dtype: str, *shape: int) -> Any:
    return SimpleNamespace(dtype=dtype, shape=shape)


@pytest.mark.parametrize(
    "value, words",
    [
        (array("float32", 4096, 4096), "float32[4096, 4096]"),
        (array("torch.bfloat16", 2), "bfloat16[2]"),
        (array("float64"), "float64[]"),
        ((array("float32", 2), None, [1]), "float32[2], None, list"),
        ([array("int64", 1)], "int64[1]"),
        ((), "tuple"),
        (None, "None"),
        (3.5, "float"),
        ({"a": 1}, "dict"),
        (SimpleNamespace, "type"),
    ],
)
def test_an_output_in_words(value: object, words: str) -> None:
    assert describe_output(value) == words


def test_real_arrays_in_words() -> None:
    numpy, torch = pytest.importorskip("numpy"), pytest.importorskip("torch")
    assert describe_output(numpy.zeros((2, 3), dtype="float16")) == "float16[2, 3]"
    assert describe_output((torch.zeros(2, 3), torch.zeros(()))) == "float32[2, 3], float32[]"


def test_a_long_output_is_cut() -> None:
    words = describe_output([array("float32", number) for number in range(100_000)])
    assert len(words) == 200
    assert words.startswith("float32[0], float32[1], ")
    assert words.endswith("…")


# -- a process -----------------------------------------------------------------------------------------------------------


def test_a_child_of_a_large_process_does_not_report_the_parents_size() -> None:
    big = bytearray(300 << 20)
    big[::4096] = b"x" * len(big[::4096])
    code = "from regress.measure.memory import peak_rss; print(peak_rss())"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert peak_rss() > 300 << 20
    assert int(child.stdout) < 200 << 20


# -- a real device -------------------------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_torchs_bytes_on_a_device() -> None:
    from regress.measure.backend.cuda import CudaBackend

    torch, device = pytest.importorskip("torch"), CudaBackend()
    inputs = torch.ones(1000, 1000, device="cuda")
    probe = device.memory()
    assert isinstance(probe, TorchMemory)
    memory = memory_of_call(lambda: (inputs + inputs).mul(2), device, probe)
    assert {name: value.value for name, value in memory.items()} == {
        "peak_memory": 8e6,
        "output_memory": 4e6,
        "left_memory": 0,
    }
    kept: list[Any] = []
    leaking = memory_of_call(lambda: kept.append(inputs.clone()), device, probe)
    assert leaking["left_memory"].value == 4e6 * LEAK_CALLS
