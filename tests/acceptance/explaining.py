"""What changes come from is found out: commits that lose a fusion, replace a kernel, wait, slow the host down, lose TF32, or
change nothing, and what `regress explain` says of each."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regress.units import format_change
from tests.conftest import Project

from . import bench
from .attribution import IDENTITY
from .table import Row, Table

TIMEOUT_S = 300.0
TIMES = ("--rounds", "6")


@dataclass(frozen=True)
class Planted:
    """A change of one function `f(x, w)`, and the causes one of which has to be named first; none: it is no change."""

    name: str
    words: str
    base: str
    head: str
    causes: tuple[str, ...]


LAYER = "import torch.nn.functional as F\ndef f(x, w): return F.gelu(F.layer_norm(x.half(), (x.shape[1],)))\n"
LOST = """
import torch
from . import kernels
def f(x, w):
    x = x.half()
    kernels.clear(w)
    mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
    y = (x - mean) * torch.rsqrt(var + 1e-5)
    return 0.5 * y * (1 + torch.erf(0.70710678 * y))
"""
CLEAR = """
import ctypes
from pathlib import Path
import torch
def clear(x):
    global cuda
    if cuda is None:
        torch.cuda.init()
        maps = Path("/proc/self/maps").read_text().splitlines()
        cuda = ctypes.CDLL(next(line.split()[-1] for line in maps if "libcudart" in line))
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    cuda.cudaMemsetAsync(ctypes.c_void_p(x.data_ptr()), 0, ctypes.c_size_t(x.numel() * x.element_size()), stream)
cuda = None
"""
TF32 = "import torch\ndef f(x, w):\n    torch.set_float32_matmul_precision({!r})\n    return x @ w\n"
CHECKED = """
def f(x, w):
    norm = x.norm()
{}    for _ in range(6): x = x * 0.5
    return x * norm
"""
RAISE = '    if not norm.isfinite().item(): raise ValueError("not finite")\n'
DELAY = "import time\ndef f(x, w):\n{}    return x * 2.0\n"
WAIT = "    until = time.perf_counter() + 200e-6\n    while time.perf_counter() < until: pass\n"

PLANTED = (
    Planted("fusion", "a lost fusion and a memset", LAYER, LOST, ("fusion", "memset")),
    Planted(
        "dtype",
        "a product that leaves bfloat16",
        "def f(x, w): return x.bfloat16() @ w.bfloat16()\n",
        "def f(x, w): return x @ w\n",
        ("precision", "replaced kernel"),
    ),
    Planted("wait", "a hidden .item()", CHECKED.format(""), CHECKED.format(RAISE), ("synchronization",)),
    Planted("host", "200 us of Python", DELAY.format(""), DELAY.format(WAIT), ("host",)),
    Planted("tf32", "TF32 switched off", TF32.format("high"), TF32.format("highest"), ("precision",)),
    Planted("nothing", "a comment", LAYER, "# As before.\n" + LAYER, ()),
)
SUITE = "import importlib\nimport torch\n" + "".join(
    f"""
class {planted.name.capitalize()}:
    def setup(self):
        self.f = importlib.import_module("proj.{planted.name}").f
        self.x, self.w = (torch.randn(2048, 2048, device="cuda") for _ in range(2))

    def cudatime_{planted.name}(self): return self.f(self.x, self.w)
"""
    for planted in PLANTED
)


def run(scratch: Path) -> list[Table]:
    os.environ.update(IDENTITY)
    project = Project(scratch / "explaining", {"device": "cuda", "cache_dir": str(scratch / "explaining-cache")})
    project.commit({"proj/__init__.py": "", "benchmarks/b.py": SUITE, "proj/kernels.py": CLEAR}, "suite")
    project.commit({f"proj/{planted.name}.py": planted.base for planted in PLANTED}, "base")
    project.commit({f"proj/{planted.name}.py": planted.head for planted in PLANTED}, "all that is planted")
    rows = []
    for planted in PLANTED:
        file = scratch / f"explained-{planted.name}.json"
        name = f"b.{planted.name.capitalize()}.cudatime_{planted.name}"
        words = [sys.executable, "-m", "regress", "explain", name, "HEAD~1", "HEAD", *TIMES, "--output", f"json={file}"]
        print(bench.run(words, project.root, TIMEOUT_S, allowed=(0, 5)), flush=True)
        rows.append(row(planted, json.loads(file.read_text())))
    return [Table("Explaining", ("planted", "change", "cause", "confidence", "of the difference", "said"), tuple(rows))]


def row(planted: Planted, document: Mapping[str, Any]) -> Row:
    """What was said of it; it holds where the cause is one that was planted, or where nothing was and nothing is explained."""
    if not document["explained"]:
        said = "; ".join(error["message"] for error in document["errors"])
        return Row((planted.words, "", "", "", "", said), not planted.causes and document["exit_code"] == 5)
    (explained,) = document["explained"]
    explanation = explained["explanation"] or {"causes": []}
    first = next(iter(explanation["causes"]), {"kind": "", "confidence": "", "text": explained["sentence"]})
    ratio = next(
        entry["ratio"]
        for entry in document["benchmarks"]
        if (entry["name"], entry["metric"]) == (explained["name"], explained["metric"])
    )
    share = ""
    if explained["measured_s"]:
        profiled_s = sum(part["seconds"] for part in explained["parts"] if part["name"] != "the rest")
        share = f"{profiled_s / explained['measured_s']:.2f}"
    cells = (planted.words, format_change(ratio), first["kind"], first["confidence"], share, first["text"])
    return Row(cells, first["kind"] in planted.causes and explained["shown"], {"explained": explained})
