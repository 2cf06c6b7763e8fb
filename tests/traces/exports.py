"""Runs of a small program on the scripted device, as GPUProfiler exports them."""

from __future__ import annotations

from pathlib import Path

from regress.measure.backend.fake import FakeBackend
from regress.profiler import GPUProfiler

US = 1e-6
HOSTILE = "</script><script>window.hacked=1</script>"


def export(path: Path, seed: int = 0, slower: float = 1.0, steps: int = 30) -> Path:
    """Steps of a training, in which attention is slower by that factor. Every run draws its own level."""
    device = FakeBackend(seed)
    device.begin_case("run", seed)
    profiler = GPUProfiler(backend=device)
    kept = []
    for _ in range(steps):
        with profiler.profile("step", batch=32):
            with profiler.profile("load", device="cpu"):
                device.host(120 * US)
            with profiler.profile("to_device"):
                device.copy(8 << 20, 180 * US)
            for size in (1024, 2048):
                with profiler.profile("attention", size=size):
                    kept.append(device.alloc(size << 10))
                    device.kernel("flash_fwd_kernel", size * 0.1 * US * slower)
            with profiler.profile(HOSTILE, bytes=1 << 20):
                device.kernel("elementwise_kernel", 30 * US)
            with profiler.profile("optimizer"):
                for _ in range(6):
                    device.synchronize()
                    device.kernel("add", 3 * US)
        kept.clear()
    return profiler.export_json(path)
