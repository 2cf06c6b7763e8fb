"""A history of implementations side by side, one not installed, one out of memory; at two releases and later commits."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

from regress.model import Benchmark, Commit, Failure, Machine
from tests.history.samples import GPU, benchmark
from tests.report.html import history as made

NORM, STEP, PLAIN = "ops.Norm.cudatime_fwd", "optim.Step.cudatime_step", "ops.Plain.cudatime_fwd"
WAYS = ("torch", "triton", "compiled", "</script>cupy")
SIZES = (256, 1024, 4096, 16384, 65536)
DTYPES = ("float32", "bfloat16")
H100 = Machine("h100", {"gpu": "H100 80GB", "gpu_uuid": "GPU-1", "driver": "580"})
FACTS = {"gpu_uuid": "GPU-1", "gpu": "H100 80GB", "driver": "580"}
AT = (2, 12, 24, 25, 26, 27)
"""Commits with results: v1.0, v1.1, and what came later."""
TRITON_SINCE = 12
NOT_HERE = Failure("skipped", "NotImplementedError: not installed")
OOM = Failure("oom", "out of memory")


def create(root: Path) -> Path:
    root.mkdir(parents=True)
    commits = made.repository(root)
    with mock.patch("regress.history.disk.locked", return_value=contextlib.nullcontext()):  # nobody else writes there
        recorder = made.Recorder(root / "history", H100, "worktree-py3.12")
        for at in AT:
            record(recorder, at, commits[at])
            recorder.finish(commits[at])
    return root


def defined(name: str, *axes: tuple[str, Sequence[object]]) -> Benchmark:
    return made.named(benchmark(name, [list(map(repr, values)) for _, values in axes]), *(axis for axis, _ in axes))


def record(recorder: made.Recorder, at: int, commit: Commit) -> None:
    def put(one: Benchmark, params: Sequence[object], seconds: float, failure: Failure | None = None) -> None:
        values = {} if failure is not None else {"gpu_time": seconds, "peak_memory": 1e6}
        recorder.put(commit, one, list(map(repr, params)), GPU, 0.004, FACTS, failure, **values)

    norm = defined(NORM, ("implementation", WAYS), ("dtype", DTYPES), ("n", SIZES))
    for dtype in DTYPES:
        for n in SIZES:
            bytes_ = n * (4 if dtype == "float32" else 2)
            torch, triton, compiled = 9e-6 + bytes_ * 1e-9, 4e-6 + bytes_ * 1.9e-9, 4.01e-6 + bytes_ * 1.9e-9
            put(norm, ("torch", dtype, n), torch)
            if at >= TRITON_SINCE:
                put(norm, ("triton", dtype, n), triton)
            oom = n == SIZES[-1] and dtype == "float32"
            put(norm, ("compiled", dtype, n), compiled, OOM if oom else None)
            put(norm, (WAYS[-1], dtype, n), 0.0, NOT_HERE)
    step = defined(STEP, ("implementation", ("fused", "foreach")))
    put(step, ("fused",), 1e-3)
    put(step, ("foreach",), 1.3e-3)
    plain = defined(PLAIN, ("way", ("a", "b")), ("n", SIZES))
    for way in ("a", "b"):
        for n in SIZES:
            put(plain, (way, n), n * 1e-9)
