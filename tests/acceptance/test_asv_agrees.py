"""An unmodified asv on a suite with our type, on a real device: the same times, and its pages still show what we recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Project

from . import bench

pytestmark = pytest.mark.gpu

SUITE = """
import torch


class Operations:
    def setup(self):
        self.x = torch.randn(1 << 26, device="cuda")
        self.a = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)

    def cudatime_add(self): return self.x + self.x
    def cudatime_matmul(self): return self.a @ self.a
"""
NAMES = ("b.Operations.cudatime_add", "b.Operations.cudatime_matmul")
MACHINE = {"machine": "box", "arch": "", "cpu": "", "num_cpu": "", "os": "", "ram": ""}


def installed(folder: Path) -> Path:
    """A folder that, put on the path, is an installation of this checkout: asv_runner finds plugins by their distribution."""
    metadata = folder / "asv_bench_regress-0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: asv_bench_regress\nVersion: 0\n")
    (folder / "regress").symlink_to(bench.ROOT / "regress")
    (folder / "asv_bench_regress").symlink_to(bench.ROOT / "regress" / "asv_plugin")
    return folder


def values(project: Project, environment: str) -> dict[str, float]:
    """Name -> value in asv's file of the newest commit, of the one environment that has this in its name."""
    sha = project.git("rev-parse", "HEAD")
    (path,) = (project.root / "history" / "box").glob(f"{sha[:8]}-*{environment}*.json")
    data = json.loads(path.read_text())
    where = data["result_columns"].index("result")
    return {name: row[where][0] for name, row in data["results"].items() if row[where]}


def published(project: Project) -> dict[str, Any]:
    """What asv's pages draw: benchmark -> points of its graph."""
    graphs = (path for path in (project.root / "html" / "graphs").rglob("*.json") if "summary" not in path.parts)
    return {path.stem: json.loads(path.read_text()) for path in graphs if path.stem.startswith("b.")}


def test_asv_finds_the_same_times_and_publishes_ours(project: Callable[..., Project], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    site = installed(tmp_path / "site")

    def asv(*words: str) -> None:
        path = os.pathsep.join([str(site), bench.environment()["PYTHONPATH"]])
        environment = bench.environment(HOME=str(tmp_path), PYTHONPATH=path)
        command = [sys.executable, "-m", "asv", *words]
        done = subprocess.run(
            command, cwd=p.root, env=environment, capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    p = project(device="cuda", machine="box")
    config = json.loads((p.root / "asv.conf.json").read_text())
    config.update(branches=["main"], environment_type="existing", html_dir="html", show_commit_url="#")
    (tmp_path / ".asv-machine.json").write_text(json.dumps({"box": MACHINE, "version": 1}))
    sha = p.commit({"asv.conf.json": json.dumps(config), "benchmarks/b.py": SUITE, ".gitignore": "html/\n"})

    recorded = bench.run([sys.executable, "-m", "regress", "run", "--format", "json"], p.root, 300)
    assert json.loads(recorded)["exit_code"] == 0
    ours = values(p, "worktree")
    asv("run", "--python=same", "--machine", "box", "--set-commit-hash", sha)
    theirs = values(p, "existing")
    for name in NAMES:
        assert theirs[name] == pytest.approx(ours[name], rel=0.05)

    asv("publish", "--no-pull")
    drawn = published(p)
    assert set(NAMES) <= set(drawn)
    for name in NAMES:
        assert drawn[name][0][1] == pytest.approx(ours[name], rel=0.05)

    bench.run([sys.executable, "-m", "regress", "run", "-b", "cudatime_add"], p.root, 300)
    asv("publish", "--no-pull")
    assert {f"{name}.host_time" for name in NAMES} <= set(published(p)), "asv's run had dropped our further names"
