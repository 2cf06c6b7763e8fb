"""Records the Chrome traces that lie here, on a machine with a GPU: python record.py FOLDER.

Each workload is a version before or after some change that a profile can explain. What lies here was recorded on an H200 with
torch 2.11 and CUDA 13. The tables of Nsight Compute 2025.3 are of the kernels of norm_gelu_fused, linear_bf16, linear_fp32 and
scale_memset, one call each: `ncu --set full --clock-control none`, imported with `--csv --page raw` and `--page details`; the
text is what `--set basic --csv --page raw` printed for scale, with the program's own output. Paths and the words of the
profiler's rules were taken out.
"""

from __future__ import annotations

import ctypes
import gzip
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile, record_function

CALLS, MARK = 4, "regress.call"
PATHS = ("host_name", "trace_id", "kernel_file", "kernel_hash")
"""What a trace holds of the machine."""
Call = Callable[[], object]


def libcudart() -> Any:
    torch.cuda.init()
    loaded = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libcudart" in line]
    return ctypes.CDLL(loaded[0] if loaded else "libcudart.so")


def tensor(*shape: int, dtype: Any = torch.float16) -> Any:
    return torch.randn(*shape, device="cuda", dtype=dtype)


def norm_gelu_fused() -> Call:
    x, w, b = tensor(4096, 1024), tensor(1024), tensor(1024)
    return lambda: F.gelu(F.layer_norm(x, (1024,), w, b), approximate="tanh")


def norm_gelu_unfused() -> Call:
    x, w, b = tensor(4096, 1024), tensor(1024), tensor(1024)

    def call() -> object:
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True, unbiased=False)
        y = (x - mean) * torch.rsqrt(var + 1e-5) * w + b
        return 0.5 * y * (1 + torch.tanh(0.79788456 * (y + 0.044715 * y * y * y)))

    return call


def norm_gelu_compiled() -> Call:
    x, w, b = tensor(4096, 1024), tensor(1024), tensor(1024)
    compiled: Call = torch.compile(lambda: F.gelu(F.layer_norm(x, (1024,), w, b), approximate="tanh"))
    return compiled


def attention(dtype: Any) -> Call:
    q, k, v = (tensor(4, 16, 1024, 64, dtype=dtype) for _ in range(3))
    return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)


def attention_bf16() -> Call:
    return attention(torch.bfloat16)


def attention_fp32() -> Call:
    return attention(torch.float32)


def linear(dtype: Any, precision: str) -> Call:
    torch.set_float32_matmul_precision(precision)
    x, w = tensor(2048, 2048, dtype=dtype), tensor(2048, 2048, dtype=dtype)
    return lambda: x @ w


def linear_tf32() -> Call:
    return linear(torch.float32, "high")


def linear_fp32() -> Call:
    return linear(torch.float32, "highest")


def linear_bf16() -> Call:
    return linear(torch.bfloat16, "highest")


def scale() -> Call:
    x, out = tensor(8 << 20), torch.empty(8 << 20, device="cuda", dtype=torch.float16)
    return lambda: torch.mul(x, 2.0, out=out)


def scale_memset() -> Call:
    x, out = tensor(8 << 20), torch.empty(8 << 20, device="cuda", dtype=torch.float16)
    cuda = libcudart()

    def call() -> object:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        cuda.cudaMemsetAsync(ctypes.c_void_p(out.data_ptr()), 0, ctypes.c_size_t(out.numel() * 2), stream)
        return torch.mul(x, 2.0, out=out)

    return call


def scale_zero() -> Call:
    x = tensor(8 << 20)

    def call() -> object:
        out = torch.zeros_like(x)
        return torch.add(out, x)

    return call


def clip() -> Call:
    x = tensor(1 << 20)
    return lambda: x * torch.clamp(1.0 / (x.norm() + 1e-6), max=1.0)


def clip_item() -> Call:
    x = tensor(1 << 20)

    def call() -> object:
        norm = x.norm().item()
        return x * min(1.0, 1.0 / (norm + 1e-6))

    return call


def scale_slow_host() -> Call:
    x, out = tensor(8 << 20), torch.empty(8 << 20, device="cuda", dtype=torch.float16)

    def call() -> object:
        time.sleep(0.0005)
        return torch.mul(x, 2.0, out=out)

    return call


def transfers() -> Call:
    host = torch.randn(1 << 20).pin_memory()
    back = torch.empty(1 << 20).pin_memory()
    paged = torch.randn(1 << 18)

    def call() -> object:
        x = host.to("cuda", non_blocking=True)
        y = paged.to("cuda")
        x[: 1 << 18] += y
        back.copy_(x.clone(), non_blocking=True)
        return x

    return call


def two_streams() -> Call:
    a, b = tensor(2048, 2048, dtype=torch.bfloat16), tensor(2048, 2048, dtype=torch.bfloat16)
    x = tensor(4 << 20)
    side = torch.cuda.Stream()

    def call() -> object:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = x * 2 + 1
        z = a @ b
        torch.cuda.current_stream().wait_stream(side)
        return y, z

    return call


def graph() -> Call:
    a, b = tensor(1024, 1024), tensor(1024, 1024)
    captured = torch.cuda.CUDAGraph()
    F.gelu(a @ b) + a
    torch.cuda.synchronize()
    with torch.cuda.graph(captured):
        F.gelu(a @ b) + a
    return lambda: captured.replay()


WORKLOADS = (
    norm_gelu_fused,
    norm_gelu_unfused,
    norm_gelu_compiled,
    attention_bf16,
    attention_fp32,
    linear_tf32,
    linear_fp32,
    linear_bf16,
    scale,
    scale_memset,
    scale_zero,
    scale_slow_host,
    clip,
    clip_item,
    transfers,
    two_streams,
    graph,
)


def record(call: Call, **options: Any) -> Any:
    for _ in range(5):
        call()
    torch.cuda.synchronize()
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=activities, record_shapes=True, **options) as profiler:
        for _ in range(CALLS):
            with record_function(MARK):
                call()
        torch.cuda.synchronize()
    return profiler


def without_paths(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_paths(row) for key, row in value.items() if key not in PATHS}
    return [without_paths(row) for row in value] if isinstance(value, list) else value


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for make in WORKLOADS:
        name = make.__name__
        recorded = record(make(), profile_memory=make is norm_gelu_unfused)
        path = folder / f"{name}.json"
        recorded.export_chrome_trace(str(path))
        data = {**without_paths(json.loads(path.read_bytes())), "traceName": name}
        path.unlink()
        text = json.dumps(data, separators=(",", ":")).encode()
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(text, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
