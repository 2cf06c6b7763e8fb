"""Small rounds, benchmarks and stores for the tests of this folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regress.history import Recorded, Store
from regress.model import Benchmark, Commit, Failure, Machine, Measured, Protocol, Round, Side

SHA = "3f2c1ab9d41e7700aabbccddeeff001122334455"
OTHER_SHA = "9d41e77c3f2c1ab900aabbccddeeff0011223344"
BOX = Machine(
    "gpu-box", {"os": "Linux 6.1", "arch": "x86_64", "cpu": "Some CPU", "num_cpu": "8", "ram": "1", "gpu": "H100"}
)
ENV = "worktree-py3.11"
GPU = Protocol("gpu_time", calls=4, wall_calls=2)
WALL = Protocol("wall_time", calls=10)


def side(sha: str = SHA, *, date: float = 1_700_000_000.0, dirty: bool = False) -> Side:
    return Side("head", Commit(sha, "Fuse the epilogue", "Ada", date), "HEAD", ENV, dirty)


def benchmark(
    name: str = "ops.cudatime_add",
    params: Sequence[Sequence[str]] = (),
    *,
    version: str = "v1",
    kind: str = "time",
    unit: str = "seconds",
    metric: str = "gpu_time",
    **declared: Any,
) -> Benchmark:
    axes = [list(axis) for axis in params]
    names = [f"p{index}" for index in range(len(axes))]
    entry = {
        "name": name,
        "type": kind,
        "unit": unit,
        "params": axes,
        "param_names": names,
        "version": version,
        "code": f"def {name.rpartition('.')[2]}(self): ...",
        "timeout": 60.0,
    }
    return Benchmark(name, kind, unit, axes, names, version, metric, metric == "gpu_time", declared=declared, asv=entry)


def taken(
    name: str,
    params: Sequence[str] = (),
    order: int = 0,
    *,
    protocol: Protocol | None = GPU,
    failure: Failure | None = None,
    started_at: float = 0.0,
    units: Mapping[str, str] | None = None,
    values: Mapping[str, float] | None = None,
    **metrics: float,
) -> Round:
    """A round with these values by metric, each with three samples around it."""
    measured = {
        metric: Measured(value, [value, value, value * 1.02], unit=(units or {}).get(metric, "s"))
        for metric, value in {**(values or {}), **metrics}.items()
    }
    return Round(
        name,
        list(params),
        "head",
        order,
        process=4242,
        started_at=started_at,
        duration_s=0.25,
        protocol=protocol,
        values=measured,
        failure=failure,
    )


def fill(
    root: Path, rounds: Sequence[Round], benchmarks: Sequence[Benchmark], *, of: Side | None = None, env: str = ENV
) -> Path | None:
    """Append the rounds and finish, as one run does; the file of results."""
    store = Store(root)
    for round in rounds:
        store.append(of or side(), BOX, env, round, {"driver": "580"})
    return store.finish(
        of or side(),
        BOX,
        env,
        python="3.11",
        benchmarks={benchmark.name: benchmark for benchmark in benchmarks},
        requirements={},
    )


def only(root: Path, sha: str = SHA) -> Recorded:
    """The one Recorded of the commit, where nothing had to be skipped."""
    loaded = Store(root).load(sha)
    assert loaded.skipped == ()
    assert len(loaded.recorded) == 1
    return loaded.recorded[0]


def column(path: Path, name: str, key: str) -> Any:
    """What asv's file holds of a benchmark in that column, read without our code."""
    content = json.loads(path.read_text())
    row = content["results"][name]
    index = content["result_columns"].index(key)
    return row[index] if index < len(row) else None


def write_asv_file(
    root: Path,
    rows: Mapping[str, Mapping[str, Any]],
    *,
    sha: str = SHA,
    env: str = ENV,
    machine: str = "gpu-box",
    folder: str = "gpu-box",
    columns: Sequence[str] | None = None,
) -> Path:
    """A file as `asv run` leaves it, with rows given by column; rows are cut after their last value."""
    keys = list(columns or ("result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b",
                            "stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples", "profile"))  # fmt: skip
    table = {}
    for name, row in rows.items():
        values = [row.get(key) for key in keys]
        while values and values[-1] is None:
            values.pop()
        table[name] = values
    path = root / folder / f"{sha[:8]}-{env}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / "machine.json").write_text(json.dumps({"machine": folder, "cpu": "Some CPU", "version": 1}))
    content = {
        "commit_hash": sha,
        "env_name": env,
        "date": 1_700_000_000_000,
        "params": {"machine": machine, "python": "3.11"},
        "python": "3.11",
        "requirements": {},
        "env_vars": {},
        "result_columns": keys,
        "results": table,
        "durations": {"<build>": 3.5},
        "version": 2,
    }
    path.write_text(json.dumps(content))
    return path
