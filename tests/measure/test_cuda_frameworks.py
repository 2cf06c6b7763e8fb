"""What the frameworks do on a real device: synchronizes that are left out, backward passes, graphs, recompilations; and each
framework by itself, in workers of its own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from regress.measure.backend.cuda import CudaBackend
from regress.measure.blocks import Starved
from regress.measure.counters import CompileWatch
from regress.measure.existing import QuietCall
from regress.measure.loop import DeviceLoop
from regress.measure.methods.jax_arrays import WALL_ONLY
from regress.model import Round
from tests.measure.test_cuda import profiled, sampled
from tests.run.test_execute import Bench, failures

# What other packages warn of when they are imported or compile something is not ours to mend.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]


# -- synchronizes of existing suites -------------------------------------------------------------------------------------

BODIES = """
import torch
from torch.cuda import synchronize

def device(x):
    x + x
    torch.cuda.synchronize()

def stream(x):
    x + x
    torch.cuda.current_stream().synchronize()

def event(x):
    x + x
    torch.cuda.current_stream().record_event().synchronize()

def by_another_name(x):
    x + x
    synchronize()

def twice(x):
    x + x
    torch.cuda.current_stream().synchronize()
    torch.cuda.synchronize()

def in_the_middle(x):
    x + x
    torch.cuda.synchronize()
    x + x
    torch.cuda.synchronize()
"""


@pytest.fixture
def bodies(torch: Any, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The bodies of an existing suite, as a module that is loaded."""
    module = ModuleType("bodies_of_an_existing_suite")
    exec(BODIES, module.__dict__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


@pytest.mark.parametrize(
    ("body", "left_out"), [("device", 1), ("stream", 1), ("event", 1), ("by_another_name", 1), ("twice", 2)]
)
def test_a_trailing_synchronize_is_left_out(
    torch: Any, device: CudaBackend, bodies: ModuleType, body: str, left_out: int
) -> None:
    x = torch.randn(1 << 24, device="cuda")
    plain = sampled(device, lambda: x + x)
    call = getattr(bodies, body)
    assert isinstance(DeviceLoop(lambda: call(x), device).block(10, 1), Starved)
    with QuietCall(lambda: call(x), device) as quiet:
        assert (quiet.kept, len(quiet.left_out)) == (0, left_out)
        samples = sampled(device, quiet)
    assert samples.value() == pytest.approx(plain.value(), rel=0.05), "an event of its own may be in it"
    assert isinstance(DeviceLoop(lambda: call(x), device).block(10, 1), Starved), "it waits again"


def test_a_synchronize_in_the_middle_is_kept(torch: Any, device: CudaBackend, bodies: ModuleType) -> None:
    x = torch.randn(1 << 24, device="cuda")
    with QuietCall(lambda: bodies.in_the_middle(x), device) as quiet:
        assert (quiet.kept, len(quiet.left_out)) == (1, 1)
        assert isinstance(DeviceLoop(quiet, device).block(10, 1), Starved)


# -- torch ---------------------------------------------------------------------------------------------------------------


def test_a_backward_pass_works_on_the_stream_of_its_forward_and_is_timed_all_the_same(
    torch: Any, device: CudaBackend
) -> None:
    weight = torch.randn(2048, 2048, device="cuda", requires_grad=True)
    loss = (torch.randn(2048, 2048, device="cuda") @ weight).square().sum()

    def backward() -> object:
        return torch.autograd.grad(loss, weight, retain_graph=True)

    kernels = profiled(torch, backward)
    samples = sampled(device, backward)
    assert samples.value() == pytest.approx(kernels, rel=0.05, abs=15e-6)


def graph_on(torch: Any, x: Any, kernels: int) -> Any:
    """A graph of so many kernels that work on x, one after the other."""
    x.mul_(1.0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(kernels):
            x.mul_(1.0)
    torch.cuda.synchronize()
    return graph


def test_a_graph_takes_what_its_kernels_take(torch: Any, device: CudaBackend) -> None:
    x = torch.randn(1 << 20, device="cuda")
    graph = graph_on(torch, x, 20)
    one = profiled(torch, lambda: x.mul_(1.0))
    samples = sampled(device, graph.replay)
    assert 0.8 * 20 * one < samples.value() < 20 * (one + 2e-6)


def test_a_recompilation_on_the_third_call_is_counted(torch: Any, device: CudaBackend) -> None:
    torch.compiler.reset()
    watch, seen = CompileWatch(), []
    doubled = torch.compile(lambda x: x + x, backend="eager", dynamic=False)
    watch.start()
    for elements in (8, 8, 16):
        doubled(torch.ones(elements, device="cuda"))
        seen.append({name: value.value for name, value in watch.stop().items()})
    assert [activity["recompiles"] for activity in seen] == [0, 0, 1]
    torch.compiler.reset()


# -- each framework by itself --------------------------------------------------------------------------------------------

ELEMENTS = 1 << 24
TORCH_FREE = """
import sys
class _Alone:
    def teardown(self): assert "torch" not in sys.modules
"""
CUPY = (
    TORCH_FREE
    + f"""
import cupy

spin = cupy.RawKernel(r'''
extern "C" __global__ void spin(unsigned long long nanoseconds) {{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do {{ asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); }} while (now - start < nanoseconds);
}}
''', "spin")

class Plain(_Alone):
    def setup(self): self.x = cupy.ones({ELEMENTS}, cupy.float32)
    def cudatime_add(self): return self.x + self.x
    def cudatime_spin(self): spin((1,), (1,), (cupy.uint64(100_000),))
    def cudatime_waits(self): return float(self.x.sum())

class OnItsStream(_Alone):
    def setup(self):
        self.x = cupy.ones({ELEMENTS}, cupy.float32)
        cupy.cuda.Device().synchronize()
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.stream.use()
    def teardown(self):
        cupy.cuda.Stream.null.use()
    def cudatime_add(self): return self.x + self.x

class Existing(_Alone):
    def setup(self): self.x = cupy.ones({ELEMENTS}, cupy.float32)
    def time_device(self):
        self.x + self.x
        cupy.cuda.Device().synchronize()
    def time_stream(self):
        self.x + self.x
        cupy.cuda.get_current_stream().synchronize()
"""
)
NUMBA = (
    TORCH_FREE
    + f"""
import numpy
from numba import cuda

@cuda.jit
def add(x, out):
    at = cuda.grid(1)
    if at < x.size:
        out[at] = x[at] + x[at]

class Numba(_Alone):
    def setup(self):
        self.x = cuda.to_device(numpy.ones({ELEMENTS}, numpy.float32))
        self.out = cuda.device_array_like(self.x)
    def cudatime_add(self): add[{ELEMENTS} // 256, 256](self.x, self.out)
    def time_add(self):
        self.cudatime_add()
        cuda.synchronize()
"""
)
WARP = (
    TORCH_FREE
    + f"""
import warp

@warp.kernel
def add(x: warp.array(dtype=warp.float32), out: warp.array(dtype=warp.float32)):
    at = warp.tid()
    out[at] = x[at] + x[at]

class Warp(_Alone):
    def setup(self):
        self.x = warp.ones({ELEMENTS}, dtype=warp.float32, device="cuda:0")
        self.out = warp.zeros({ELEMENTS}, dtype=warp.float32, device="cuda:0")
    def cudatime_add(self): warp.launch(add, {ELEMENTS}, inputs=[self.x], outputs=[self.out], device="cuda:0")
    def time_add(self):
        self.cudatime_add()
        warp.synchronize()
"""
)
JAX = f"""
import jax

double = jax.jit(lambda x: x + x)

class Jax:
    def setup(self):
        if jax.default_backend() != "gpu":
            raise NotImplementedError
        self.x = jax.numpy.ones({ELEMENTS}, jax.numpy.float32)
    def cudatime_add(self): return double(self.x)
"""
TRITON = f"""
import torch
import triton
import triton.language as tl

@triton.jit
def add(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(out + at, value + value)

class Triton:
    def setup(self):
        self.x = torch.randn({ELEMENTS}, device="cuda")
        self.out = torch.empty_like(self.x)
    def teardown(self): torch.testing.assert_close(self.out, self.x + self.x)
    def cudatime_kernel(self): add[({ELEMENTS} // 1024,)](self.x, self.out, BLOCK=1024)

class Torch:
    def setup(self):
        self.x = torch.randn({ELEMENTS}, device="cuda")
        self.out = torch.empty_like(self.x)
    def cudatime_kernel(self): return torch.add(self.x, self.x, out=self.out)
"""
MOVED_BYTES = 2 * 4 * ELEMENTS
FASTEST_BYTES_S, SLOWEST_BYTES_S = 20e12, 0.1e12
"""Between what no memory reaches and what any device for computing does."""

Measure = Callable[..., dict[str, Round]]


@pytest.fixture
def measure(tmp_path: Path) -> Measure:
    """One round of each benchmark of a suite in workers of its own, by the part of its name behind the file's. Skips the test
    where a framework is not installed."""

    def rounds_of(suite: str, *needed: str) -> dict[str, Round]:
        for name in needed:
            if importlib.util.find_spec(name) is None:
                pytest.skip(f"{name} is not installed")
        bench = Bench(tmp_path)
        bench.write(suite)
        measured = bench.run(rounds=1, settings={"device": "cuda", "cuda": ("time_",)}, default_timeout_s=120.0)
        assert {name: failure for name, failure in failures(measured).items() if failure.kind != "skipped"} == {}
        return {round.name.removeprefix("b."): round for round in measured.rounds}

    return rounds_of


def gpu_time(round: Round) -> float:
    assert "gpu_time" in round.values, round.flags
    return round.values["gpu_time"].value


def assert_moved(seconds: float) -> None:
    """The time is one in which a device can have read and written the array."""
    assert MOVED_BYTES / FASTEST_BYTES_S < seconds < MOVED_BYTES / SLOWEST_BYTES_S


def test_cupy(measure: Measure) -> None:
    rounds = measure(CUPY, "cupy")
    plain = rounds["Plain.cudatime_add"]
    assert_moved(gpu_time(plain))
    assert plain.values["peak_memory"].value == plain.values["output_memory"].value == 4 * ELEMENTS
    assert gpu_time(rounds["Plain.cudatime_spin"]) == pytest.approx(103e-6, abs=4e-6)
    assert "gpu_time" not in rounds["Plain.cudatime_waits"].values
    assert gpu_time(rounds["OnItsStream.cudatime_add"]) == pytest.approx(gpu_time(plain), rel=0.05)
    for name in ("Existing.time_device", "Existing.time_stream"):
        assert rounds[name].facts["synchronizes_left_out"] >= 1
        assert rounds[name].facts["synchronizes_kept"] == 0
        assert gpu_time(rounds[name]) == pytest.approx(gpu_time(plain), rel=0.05)


def skip_where_numba_itself_fails() -> None:
    """Its releases and NumPy's do not always fit, which shows at the first kernel."""
    kernel = "import numpy\nfrom numba import cuda\ncuda.jit(lambda x: None)[1, 1](numpy.ones(1))"
    done = subprocess.run([sys.executable, "-c", kernel], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        pytest.skip(f"numba runs no kernel here: {done.stderr.strip().splitlines()[-1]}")


@pytest.mark.parametrize(
    ("owner", "suite", "needed"), [("Numba", NUMBA, ("numba", "numba_cuda")), ("Warp", WARP, ("warp",))]
)
def test_numba_and_warp(measure: Measure, owner: str, suite: str, needed: tuple[str, ...]) -> None:
    if owner == "Numba":
        skip_where_numba_itself_fails()
    rounds = measure(suite, *needed)
    plain = gpu_time(rounds[f"{owner}.cudatime_add"])
    assert_moved(plain)
    assert rounds[f"{owner}.time_add"].facts["synchronizes_left_out"] >= 1
    assert gpu_time(rounds[f"{owner}.time_add"]) == pytest.approx(plain, rel=0.05)


def test_jax_is_timed_until_its_outputs_are_there(measure: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else it takes three quarters of the memory at once
    round = measure(JAX, "jax")["Jax.cudatime_add"]
    if round.failure is not None:
        pytest.skip("this JAX knows no GPU")
    assert WALL_ONLY in round.flags
    assert "gpu_time" not in round.values
    assert_moved(round.values["wall_time"].value)
    assert round.values["host_time"].value > 0


def test_a_kernel_of_triton_is_as_fast_as_torchs(measure: Measure) -> None:
    rounds = measure(TRITON, "torch", "triton")
    ours, theirs = gpu_time(rounds["Triton.cudatime_kernel"]), gpu_time(rounds["Torch.cudatime_kernel"])
    assert_moved(ours)
    assert ours == pytest.approx(theirs, rel=0.25)
