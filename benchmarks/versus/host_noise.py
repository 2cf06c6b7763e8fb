"""How far apart two sides of one and the same code read, by the host's clock: an A/A test of many kinds of functions.

    python benchmarks/versus/host_noise.py [--busy] [--rounds 12] [--only NAME,...] [--tools asv,pyperf,pytest-benchmark]

Each function is measured on two commits that differ in a comment. For `regress` the spread is that of the difference of a pair
(windows in turn on one core; "not pinned" leaves the cores to the system), and of two rounds one after the other
(`"in_turn": false`); for the other tools that of the difference of two results of theirs, sides in turn. "sd" is the standard
deviation of ln(head/base). With `--busy` a neighbour keeps one core busy. Prints a row a function, the medians, and the seconds
of each. Needs torch, numpy and the tools here.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]

HEAD = """
import io, json, pathlib, pickle, random, re, tempfile, time, zlib
import numpy as np
import torch

torch.set_num_threads(1)
random.seed(1)
LIST = [random.random() for _ in range(1000)]
TABLE = {i: i for i in range(50)}
BIG = dict.fromkeys(range(200_000), 1)
KEYS = random.sample(range(200_000), 2000)
ROWS = [{"id": i, "name": f"row {i}", "v": [i / 3, None]} for i in range(100)]
TEXT = "alpha 12 beta-3.5 gamma_7 " * 100
WORD = re.compile(r"[a-z]+[ _-](\\\\d+(?:\\\\.\\\\d+)?)")
SMALL, CACHED, LARGE = np.full(1000, 0.5), np.full(65_536, 0.5), np.full(1 << 20, 0.5)
OUT = np.empty_like(LARGE)
AT = np.random.default_rng(1).integers(0, 1 << 20, 20_000)
UNSORTED = np.random.default_rng(1).random(20_000)
X, ROWS_OF, W = torch.randn(1000), torch.randn(64, 256), torch.randn(256, 256)
FILE = pathlib.Path(tempfile.mkdtemp()) / "x"
DATA = bytes(range(256)) * 256
SOURCE = "def f(a, b=3):\\\\n    return [a + b, {'k': a}]\\\\n" * 25
CODES = [eval(f"lambda a, b: (a * {i} + b, a) if a > {i} else [b - {i}]") for i in range(400)]


class Node:
    def __init__(self, value):
        self.value, self.self = value, self


def count(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


def risky(i):
    try:
        raise ValueError(i)
    except ValueError:
        return i
""".replace("\\\\", "\\")

FUNCTIONS = {
    "py_loop": "sum(TABLE[k] for k in TABLE)",
    "py_method": "TEXT.upper().lower()",
    "py_1ms": "count(15_000)",
    "py_10ms": "count(150_000)",
    "exceptions": "risky(1)",
    "generators": "sum(x * 2 for x in (y + 1 for y in range(2000)) if x % 3)",
    "wide_code": "[f(3, 4) for f in CODES]",
    "list_sort": "sorted(LIST)",
    "dict_str": "{str(i): i for i in range(500)}",
    "dict_big": "[BIG[k] for k in KEYS]",
    "str_format": "[f'{i:>8.3f} {i}' for i in range(200)]",
    "json": "json.loads(json.dumps(ROWS))",
    "pickle": "pickle.loads(pickle.dumps(ROWS))",
    "regex": "WORD.findall(TEXT)",
    "zlib": "zlib.compress(DATA, 1)",
    "compile": "exec(compile(SOURCE, 'm', 'exec'), {})",
    "cycles": "[Node(i) for i in range(300)]",
    "alloc_small": "[bytearray(100) for _ in range(500)]",
    "alloc_big": "np.ones(1 << 20)",
    "file_io": "(FILE.write_bytes(DATA), FILE.read_bytes())",
    "np_add": "SMALL + 1",
    "np_cached": "CACHED.sum()",
    "np_copy": "np.copyto(OUT, LARGE)",
    "np_gather": "LARGE.take(AT)",
    "np_sort": "np.sort(UNSORTED)",
    "torch_add": "X + 1",
    "torch_norm": "torch.nn.functional.layer_norm(ROWS_OF, (256,))",
    "torch_matmul": "ROWS_OF @ W",
    "sleep": "time.sleep(200e-6)",
}
"""Name -> the expression that is timed."""

Spreads = dict[str, float]


def run(words: Sequence[str], folder: Path, **more: str) -> str:
    done = subprocess.run(
        words,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **more},
    )
    if done.returncode not in (0, 1, 4):
        raise RuntimeError(f"{' '.join(words)}: {done.stderr[-2000:] or done.stdout[-2000:]}")
    return done.stdout


def suite(folder: Path, names: Sequence[str]) -> None:
    """A repository with the functions as an asv suite, and two commits."""
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "benchmarks" / "__init__.py").write_text("")
    body = "".join(f"\n\ndef time_{name}():\n    {FUNCTIONS[name]}\n" for name in names)
    (folder / "benchmarks" / "host.py").write_text(HEAD + body)
    (folder / "lib.py").write_text("")
    for turn in (True, False):
        config = {"version": 1, "project": "host", "repo": ".", "environment_type": "existing", "branches": ["main"]}
        config["regress"] = {"device": "cpu", "in_turn": turn}
        (folder / ("asv.conf.json" if turn else "apart.conf.json")).write_text(json.dumps(config))
    (folder / "free").mkdir()
    (folder / "free" / "sitecustomize.py").write_text("import os\n\nos.sched_setaffinity = lambda *args: None\n")
    run(["git", "init", "-q", "-b", "main"], folder)
    for text in ("", "# a comment\n"):
        (folder / "lib.py").write_text(text)
        run(["git", "add", "-A"], folder)
        run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x", "--allow-empty"], folder)


def by_regress(folder: Path, rounds: int, turns: bool, pinned: bool = True) -> Spreads:
    out = folder / "found.json"
    config = "asv.conf.json" if turns else "apart.conf.json"
    words = ["--config", str(folder / config), "--rounds", str(rounds), "--output", f"json={out}"]
    more = {} if pinned else {"PYTHONPATH": os.pathsep.join((str(folder / "free"), str(ROOT)))}
    run([sys.executable, "-m", "regress", "check", "HEAD~1", "HEAD", *words], folder, **more)
    values = {}
    for row in json.loads(out.read_text())["benchmarks"]:
        name = row["name"].rpartition("time_")[2]
        sides = [row[f"{side}_summary"] for side in ("base", "head")]
        if row["pairs"] is not None:
            values[name] = row["pairs"]["spread"]
        elif all(sides):
            values[name] = math.hypot(*(side["spread"] for side in sides))
    return values


def differences(measure: Callable[[], Mapping[str, float]], times: int) -> Spreads:
    """The spread of results of two sides in turn."""
    pairs = [(measure(), measure()) for _ in range(times)]
    names = pairs[0][0].keys()
    logs = {name: [math.log(head[name] / base[name]) for base, head in pairs if name in head] for name in names}
    return {name: math.sqrt(statistics.fmean(log * log for log in own)) for name, own in logs.items() if own}


def by_asv(folder: Path, names: Sequence[str], times: int) -> Spreads:
    run([sys.executable, "-m", "asv", "machine", "--yes"], folder, HOME=str(folder))

    def measure() -> dict[str, float]:
        for file in (folder / "results").rglob("*.json"):
            if file.name not in ("machine.json", "benchmarks.json"):
                file.unlink()
        # It interleaves rounds only in environments that it has made itself.
        sha = run(["git", "rev-parse", "HEAD"], folder).strip()
        run([sys.executable, "-m", "asv", "run", "--set-commit-hash", sha, "-E", "existing"], folder, HOME=str(folder))
        (file,) = (path for path in (folder / "results").rglob("*-existing*.json"))
        results = json.loads(file.read_text())
        return {name: results["results"][f"host.time_{name}"][0][0] for name in names}

    return differences(measure, times)


def by_pytest_benchmark(folder: Path, names: Sequence[str], times: int) -> Spreads:
    tests = "".join(f"\n\ndef test_{name}(benchmark):\n    benchmark(lambda: {FUNCTIONS[name]})\n" for name in names)
    (folder / "test_host.py").write_text(HEAD + tests)

    def measure() -> dict[str, float]:
        words = [
            "--benchmark-json=bench.json",
            "--benchmark-max-time=0.1",
            "--benchmark-min-rounds=5",
            "-p",
            "no:cacheprovider",
        ]
        run([sys.executable, "-m", "pytest", "-q", "test_host.py", *words], folder)
        benchmarks = json.loads((folder / "bench.json").read_text())["benchmarks"]
        return {row["name"].removeprefix("test_"): row["stats"]["median"] for row in benchmarks}

    return differences(measure, times)


def by_pyperf(folder: Path, names: Sequence[str], times: int) -> Spreads:
    calls = "".join(f"runner.bench_func({name!r}, lambda: {FUNCTIONS[name]})\n" for name in names)
    (folder / "perf.py").write_text(f"import pyperf\n{HEAD}\nrunner = pyperf.Runner()\n{calls}")

    def measure() -> dict[str, float]:
        (folder / "perf.json").unlink(missing_ok=True)
        run(
            [sys.executable, "perf.py", "-q", "-p", "1", "-n", "5", "-w", "1", "--min-time", "0.02", "-o", "perf.json"],
            folder,
        )
        import pyperf  # the tool that is tried may not be here

        measured = pyperf.BenchmarkSuite.load(str(folder / "perf.json"))
        return {benchmark.get_name(): benchmark.mean() for benchmark in measured}

    return differences(measure, times)


TOOLS: Mapping[str, Callable[[Path, Sequence[str], int], Spreads]] = {
    "asv": by_asv,
    "pyperf": by_pyperf,
    "pytest-benchmark": by_pytest_benchmark,
}


@contextlib.contextmanager
def neighbour(busy: bool) -> Iterator[None]:
    """A process that keeps a core busy."""
    process = subprocess.Popen([sys.executable, "-c", "while True: sum(range(10000))"]) if busy else None
    try:
        yield
    finally:
        if process is not None:
            process.kill()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--times", type=int, default=4, help="results a side of each other tool: %(default)s")
    parser.add_argument("--only", default=",".join(FUNCTIONS))
    parser.add_argument("--tools", default=",".join(TOOLS))
    options = parser.parse_args()
    names = [name for name in options.only.split(",") if name]
    columns: dict[str, tuple[Spreads, float]] = {}
    with tempfile.TemporaryDirectory() as scratch, neighbour(options.busy):
        folder = Path(scratch) / "host"
        suite(folder, names)
        wanted: dict[str, Callable[[], Spreads]] = {
            "one after the other": lambda: by_regress(folder, options.rounds, turns=False),
            "in turn, not pinned": lambda: by_regress(folder, options.rounds, turns=True, pinned=False),
            "in turn": lambda: by_regress(folder, options.rounds, turns=True),
        }
        for tool in filter(None, options.tools.split(",")):
            wanted[tool] = lambda tool=tool: TOOLS[tool](folder, names, options.times)  # type: ignore[misc]
        for title, measure in wanted.items():
            start = time.perf_counter()
            columns[title] = measure(), time.perf_counter() - start
            print(f"{title}: {columns[title][1]:.0f} s", file=sys.stderr, flush=True)
    print(f"{'sd of ln(head/base), %':24}" + "".join(f"{title:>22}" for title in columns))
    for name in names:
        cells = (f"{100 * row[name]:.2g}" if name in row else "" for row, _ in columns.values())
        print(f"{name:24}" + "".join(f"{cell:>22}" for cell in cells))
    medians = (f"{100 * statistics.median(row.values()):.2g}" for row, _ in columns.values())
    print(f"{'median':24}" + "".join(f"{cell:>22}" for cell in medians))
    print(f"{'seconds':24}" + "".join(f"{seconds:>22.0f}" for _, seconds in columns.values()))
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
