"""The suite of this repository: what discovery finds of it, and that every body works.

Bodies run on the CPU here, with sizes cut down; on a device, as they are.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import json
import math
import operator
import pkgutil
import subprocess
import sys
import textwrap
import types
from collections.abc import Callable, Container
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

import benchmarks  # noqa: E402
from benchmarks import attention, autograd, common, jax_arrays, optimizer, scaling, wrapper  # noqa: E402

ROOT = Path(__file__).parents[1]
KINDS = ("cudatime_", "cudacold_", "track_", "time_")
SMALL = 64
"""Sizes are cut down to this on the CPU."""
NEEDS_DRIVER = {
    "transfers.Pinned": "the CUDA driver pins memory",
    **dict.fromkeys(
        ("collectives." + name for name in ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "PeerToPeer")),
        "a collective needs several ranks",
    ),
    "graph": "a CUDA graph is captured from a device's stream",
    "triton": "Triton compiles for a device",
}
"""Classes and implementations that cannot run on the CPU, with the reason."""
WAITS = {"item", "cpu", "tolist", "numpy", "nonzero", "synchronize", "to", "print"}
"""What makes the host wait for the device, or copies from pageable memory."""
MOST_BYTES = 4 << 30


def found(*kinds: str) -> list[tuple[type, str]]:
    """Classes of the suite and their benchmarks of these kinds, without asv's help."""
    pairs = []
    for _, name, _ in pkgutil.iter_modules(benchmarks.__path__):
        module = importlib.import_module(f"benchmarks.{name}")
        for owner in vars(module).values():
            if inspect.isclass(owner) and owner.__module__ == module.__name__:
                pairs += [(owner, name) for name in dir(owner) if name.startswith(kinds)]
    return pairs


def name_of(owner: type, function: str = "") -> str:
    return f"{owner.__module__.partition('.')[2]}.{owner.__qualname__}.{function}".rstrip(".")


def combinations(owner: Any, most: float = math.inf) -> list[tuple[Any, ...]]:
    """The parameters of a class, with its sizes cut down to `most`."""
    axes = [
        list(dict.fromkeys(min(value, most) if isinstance(value, int) else value for value in axis))
        for axis in getattr(owner, "params", [])
    ]
    return list(itertools.product(*axes))


def cases(*kinds: str, most: float = math.inf) -> list[Any]:
    return [
        pytest.param(owner, function, params, id=f"{name_of(owner, function)}{params}")
        for owner, function in found(*kinds)
        for params in combinations(owner, most)
    ]


def ready(owner: type, params: tuple[Any, ...]) -> Any:
    """An instance as the harness makes it: seeded, set up, and put back for the first sample."""
    torch.manual_seed(0)
    instance = owner()
    for step in ("setup", "reset"):
        if hasattr(instance, step):
            getattr(instance, step)(*params)
    return instance


def assert_close(one: Any, other: Any) -> None:
    """Alike within rounding; in 16 bits every step of a computation is rounded, and implementations have different steps."""
    atol, rtol = (0.02, 0.05) if one.dtype == torch.bfloat16 else (1e-4, 1e-4)
    torch.testing.assert_close(one, other, atol=atol, rtol=rtol)


def tensor_of(result: Any) -> Any:
    return result.data if isinstance(result, wrapper.Wrapped) else torch.as_tensor(result)


@pytest.fixture
def on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite without a GPU, without a compiler and without the libraries that are not installed."""
    monkeypatch.setattr(common, "DEVICE", "cpu")
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    monkeypatch.setitem(sys.modules, "cupy", np)
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # which the suite would leave behind
    monkeypatch.setitem(sys.modules, "jax", numpy_as_jax())
    for module in (common, scaling):
        monkeypatch.setattr(module, "event_seconds", lambda call: call() is None or 1e-3)


def numpy_as_jax() -> Any:
    def jit(function: Callable[..., Any]) -> Any:
        lowered = types.SimpleNamespace(compile=lambda: function)
        return types.SimpleNamespace(lower=lambda *inputs: lowered)

    jax: Any = types.ModuleType("jax")
    jax.numpy, jax.jit, jax.block_until_ready = np, jit, lambda result: result
    jax.default_backend = lambda: "gpu"
    jax.nn = types.SimpleNamespace(softmax=lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True))
    jax.random = types.SimpleNamespace(key=np.random.default_rng, normal=lambda key, shape: key.normal(size=shape))
    return jax


# -- what there is -------------------------------------------------------------------------------------------------------

PROGRAM = """
import dataclasses, json
from regress.measure.suite import Suite
found, problems = Suite("benchmarks", {}).discover()
print(json.dumps([[dataclasses.asdict(each) for each in these] for these in (found, problems)]))
"""


@pytest.fixture(scope="module")
def suite() -> dict[str, dict[str, Any]]:
    """The suite by name as discovery finds it, in a process of its own: importing a suite changes the interpreter."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True)
    described, problems = json.loads(done.stdout.splitlines()[-1])
    assert problems == []
    return {row["name"]: row for row in described}


def count(described: list[dict[str, Any]]) -> int:
    return sum(math.prod(map(len, row["params"])) for row in described)


def test_discovery_finds_everything_and_nothing_else(suite: dict[str, dict[str, Any]]) -> None:
    assert set(suite) == {name_of(owner, function) for owner, function in found(*KINDS)}


def test_the_suite_stays_affordable(suite: dict[str, dict[str, Any]]) -> None:
    assert count([row for row in suite.values() if row["needs_device"]]) <= 250
    assert count([row for row in suite.values() if not row["needs_device"]]) <= 30


def test_core_is_small_and_has_something_of_every_theme(suite: dict[str, dict[str, Any]]) -> None:
    core = [row for row in suite.values() if "core" in row["declared"].get("tags", ())]
    assert 20 <= count(core) <= 40
    assert all(row["metric"] == "gpu_time" for row in core)
    themes = {row["name"].split(".")[0] for row in core}
    assert themes >= {"elementwise", "transfers", "reductions", "matmul", "embedding", "attention"}
    assert themes >= {"autograd", "optimizer", "wrapper", "cold_start"}


def test_declarations_are_where_the_harness_looks(suite: dict[str, dict[str, Any]]) -> None:
    declared = {name: row["declared"] for name, row in suite.items()}
    assert declared["transfers.Pageable.cudatime_to_host"]["clock"] == "wall"
    assert declared["allocation.Release.cudatime_release"]["clock"] == "wall"
    assert declared["bandwidth.ColdCopy.cudatime_copy"]["cache"] == "cold"
    assert declared["wrapper.Ratio.track_ratio"]["better"] == "lower"
    assert declared["scaling.Speedup.track_speedup"]["better"] == "higher"
    assert suite["wrapper.Ratio.track_ratio"]["unit"] == suite["scaling.Speedup.track_speedup"]["unit"] == "ratio"


@pytest.mark.parametrize(
    "owner, work",
    [
        (owner, work)
        for owner, _ in found("cudatime_", "cudacold_")
        for work in ("bytes", "flops")
        if hasattr(owner, work)
    ],
)
def test_declared_work_is_a_positive_number(owner: Any, work: str) -> None:
    amounts = [getattr(owner(), work)(*params) for params in combinations(owner)]
    assert all(isinstance(amount, int) and amount > 0 for amount in amounts)


def test_declared_work_of_known_operations() -> None:
    def one(theme: str, owner: str) -> Any:
        return getattr(importlib.import_module(f"benchmarks.{theme}"), owner)()

    assert one("elementwise", "Add").bytes(1000) == 12_000
    assert one("reductions", "HalfRows").bytes(10, "float16") == 400
    assert one("matmul", "Square").flops(10, "float32") == 2000
    assert one("embedding", "Lookup").bytes(1) == 2 * 4096 + 8
    assert one("optimizer", "AdamW").bytes("fused") == 7 * 16 * (1 << 20) * 4
    assert one("autograd", "Backward").flops(8) == 2 * one("autograd", "Forward").flops(8)
    projections = [one("attention", "Components").flops(part, 8) for part in ("qkv_projection", "output_projection")]
    assert projections == [3 * projections[1], 2 * 4 * 8 * 1024**2]
    middle = sum(one("attention", "Components").flops(part, 8) for part in ("scores", "weighted_sum"))
    assert middle == one("attention", "Implementations").flops("flash", 8)


@pytest.mark.parametrize("owner, function", found("cudatime_"))
def test_no_body_waits_for_the_device(owner: Any, function: str) -> None:
    module = importlib.import_module(owner.__module__)
    if getattr(owner, "clock", getattr(module, "clock", "gpu")) == "wall":
        return
    body = ast.parse(textwrap.dedent(inspect.getsource(getattr(owner, function))))
    called = {ast.unparse(node.func).split(".")[-1] for node in ast.walk(body) if isinstance(node, ast.Call)}
    assert not called & WAITS


# -- that it works -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("owner, function, params", cases(*KINDS, most=SMALL))
def test_bodies_work_on_the_cpu_and_leave_their_inputs_alone(
    owner: Any, function: str, params: tuple[Any, ...]
) -> None:
    for reason in (NEEDS_DRIVER.get(row) for row in (name_of(owner), *params)):
        if reason is not None:
            pytest.skip(reason)
    results = []
    instance = ready(owner, params)
    for _ in range(2):
        torch.manual_seed(0)
        result = getattr(instance, function)(*params)
        results.append(result.clone() if isinstance(result, torch.Tensor) else None)
        if hasattr(instance, "reset"):
            instance.reset(*params)
    if results[0] is not None and owner.__module__ != "benchmarks.allocation":  # whose memory holds anything
        assert torch.equal(*results)
    if hasattr(instance, "teardown"):
        instance.teardown()


SIDE_BY_SIDE = [
    (owner, function)
    for owner, function in found("cudatime_", "cudacold_")
    if "implementation" in getattr(owner, "param_names", ()) and owner is not optimizer.AdamW  # which returns nothing
]


def compare_implementations(owner: Any, function: str, without: Container[str] = ()) -> None:
    index = owner.param_names.index("implementation")
    results: dict[tuple[Any, ...], list[Any]] = {}
    for params in combinations(owner, SMALL):
        if params[index] not in without:
            result = tensor_of(getattr(ready(owner, params), function)(*params)).clone()
            results.setdefault(params[:index] + params[index + 1 :], []).append(result)
    for first, *others in results.values():
        assert others, "nothing to compare with"
        for other in others:
            assert_close(other, first)


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("owner, function", SIDE_BY_SIDE)
def test_implementations_give_the_same_result(owner: Any, function: str) -> None:
    compare_implementations(owner, function, without=NEEDS_DRIVER)


@pytest.mark.usefixtures("on_cpu")
def test_the_components_make_up_attention() -> None:
    def part(name: str) -> Any:
        return ready(attention.Components, (name, 16)).cudatime_forward(name, 16)

    shape = (attention.BATCH, 16, 3, attention.HEADS, attention.HEAD)
    q, k, v = part("qkv_projection").view(shape).permute(2, 0, 3, 1, 4)
    assert_close(part("scores"), attention.scores(q, k))
    assert_close(part("softmax").sum(-1), torch.ones(shape[0], shape[3], 16, dtype=q.dtype))
    assert_close(part("weighted_sum"), attention.sdpa(q, k, v))
    assert part("output_projection").shape == (attention.BATCH, 16, attention.WIDTH)


@pytest.mark.usefixtures("on_cpu")
def test_a_step_is_the_same_by_either_implementation_and_always_the_same_work() -> None:
    def weights(implementation: str, steps: int) -> Any:
        instance = ready(optimizer.AdamW, (implementation,))
        for _ in range(steps):
            instance.cudatime_step(implementation)
        (group,) = instance.optimizer.param_groups
        assert [param.shape for param in group["params"]] == [(instance.rows, instance.rows)] * instance.tensors
        return group["params"][-1]

    torch.testing.assert_close(weights("foreach", 2), weights("fused", 2))
    assert not torch.equal(weights("fused", 1), weights("fused", 2))


@pytest.mark.usefixtures("on_cpu")
def test_backward_needs_its_reset() -> None:
    def gradient(backward: autograd.Backward) -> Any:
        backward.cudatime_backward(8)
        return backward.x.grad.clone()

    backward = ready(autograd.Backward, (8,))
    first = gradient(backward)
    torch.testing.assert_close(gradient(backward), 2 * first)
    backward.reset(8)
    torch.testing.assert_close(gradient(backward), first)


# -- the wrapper, and ratios ---------------------------------------------------------------------------------------------


def test_the_wrapper_checks_what_it_wraps() -> None:
    small, large = (wrapper.Wrapped(torch.ones(size)) for size in (1, 2))
    half = wrapper.Wrapped(torch.ones(2, dtype=torch.float16))
    assert wrapper.chain(large, large).data.tolist() == [2.0, 2.0]
    for operate, other in itertools.product((operator.add, operator.mul), (small, half)):
        with pytest.raises(ValueError, match="differ"):
            operate(large, other)


def test_a_ratio_is_the_median_of_pairs_that_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    drift = itertools.count(1)

    def seconds(call: Callable[[], object]) -> float:
        order.append(str(call()))
        return next(drift) * (3.0 if order[-1] == "call" else 1.0)

    monkeypatch.setattr(common, "event_seconds", seconds)
    measured = common.ratio(lambda: "call", lambda: "reference", pairs=5)
    assert order == ["call", "reference"] + ["call", "reference", "reference", "call"] * 2 + ["call", "reference"]
    pairs = [
        (3, 4),
        (6, 5),
        (7, 8),
        (10, 9),
        (11, 12),
    ]  # positions of call and reference: the clock gets slower all the time
    assert measured == pytest.approx(sorted(3 * above / below for above, below in pairs)[2])


@pytest.mark.usefixtures("on_cpu")
def test_a_speedup_is_the_reference_over_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "host_seconds", lambda call: call() is None or 4e-3)
    instance = ready(scaling.Speedup, ("matmul", 8))
    assert instance.track_speedup("matmul", 8) == pytest.approx(4.0)
    on_device, reference = (instance.operate(row, row) for row in (instance.x, instance.reference))
    torch.testing.assert_close(on_device, torch.from_numpy(reference))


def test_host_seconds_leaves_the_first_call_out(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    readings = iter([0.0, 9.0, 10.0, 10.5, 11.0, 12.0, 13.0, 13.25])
    monkeypatch.setattr(scaling, "time", types.SimpleNamespace(perf_counter=lambda: next(readings)))
    assert scaling.host_seconds(lambda: calls.append(1), calls=3) == 0.5
    assert len(calls) == 4


# -- what is skipped -----------------------------------------------------------------------------------------------------


def test_what_is_missing_skips_a_case_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setitem(sys.modules, "cupy", None)
    for owner, params in ((wrapper.Ratio, (64,)), (scaling.Speedup, ("add", 64))):
        with pytest.raises(NotImplementedError, match="CUDA device"):
            ready(owner, params)
    with pytest.raises(NotImplementedError, match="cupy cannot be imported"):
        common.package("cupy")


@pytest.mark.usefixtures("on_cpu")
def test_jax_without_a_gpu_is_not_timed_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["jax"], "default_backend", lambda: "cpu")
    with pytest.raises(NotImplementedError, match="only: cpu"):
        ready(jax_arrays.Device, (8,))
    ready(jax_arrays.Anywhere, (8,)).time_softmax(8)


def test_compiling_needs_triton_and_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(NotImplementedError, match="Triton"):
        common.needs_compiler()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(NotImplementedError, match="C compiler"):
        common.needs_compiler()
    monkeypatch.setenv("CC", "tcc")
    common.needs_compiler()


@pytest.mark.usefixtures("on_cpu")
def test_flash_attention_is_skipped_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*inputs: Any) -> Any:
        raise RuntimeError("No available kernel")

    monkeypatch.setattr(attention, "flash", none)
    with pytest.raises(NotImplementedError, match="No available kernel"):
        ready(attention.Implementations, ("flash", 64))


# -- on a device ---------------------------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.filterwarnings("default")  # what torch thinks of our dtypes and of its own debug mode is no error here
@pytest.mark.parametrize("owner, function, params", cases("cudatime_", "cudacold_", "track_"))
def test_bodies_neither_wait_nor_need_much_memory(owner: Any, function: str, params: tuple[Any, ...]) -> None:
    """torch itself says what synchronizes, once compilation and capture are over."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    try:
        instance = ready(owner, params)
    except NotImplementedError as reason:
        pytest.skip(str(reason))
    getattr(instance, function)(*params)
    if hasattr(instance, "reset"):
        instance.reset(*params)
    clock = getattr(owner, "clock", getattr(importlib.import_module(owner.__module__), "clock", "gpu"))
    strict = clock == "gpu" and not function.startswith("track_")
    torch.cuda.set_sync_debug_mode("error" if strict else "default")
    try:
        result = getattr(instance, function)(*params)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.cuda.max_memory_allocated() <= MOST_BYTES
    if function.startswith("track_"):
        assert 0 < result < math.inf


@pytest.mark.gpu
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("owner, function", SIDE_BY_SIDE)
def test_implementations_give_the_same_result_on_a_device(owner: Any, function: str) -> None:
    try:
        compare_implementations(owner, function)
    except NotImplementedError as reason:
        pytest.skip(str(reason))
