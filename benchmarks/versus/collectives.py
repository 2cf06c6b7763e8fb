"""Collectives of two ranks: how well they repeat, and whether what is planted is found and told apart.

    python benchmarks/versus/collectives.py                         NCCL on GPUs 0 and 1
    python benchmarks/versus/collectives.py --backend gloo          on the CPU
    python benchmarks/versus/collectives.py --parts sizes,planted   some of the parts: sizes, same, planted, hung

`sizes` prints for each collective and size the time of a call, the bus bandwidth, how much rounds differ (standard deviation of
their logarithms), and beside it the time by a loop of torch alone: calls between two events, or readings of the clock, the
slowest rank, the median of seven. `same` checks a commit against itself. `planted` checks against a commit with one rank
that works 10 % longer before it meets the other, with a tensor 8 % larger, and with float32 in place of bfloat16. In `hung` one
rank never comes. Needs torch in this Python.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from regress.history import Store
from regress.measure.ranks import variables
from regress.measure.wire import Rank
from regress.run.ranks import free_port

ROOT = Path(__file__).parents[2]
CONFIG = {"version": 1, "project": "collectives", "repo": ".", "branches": ["main"], "results_dir": "history"}
NAMES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "send_receive")
SHARES = {"all_reduce": 1.0, "all_gather": 0.5, "reduce_scatter": 0.5, "broadcast": 1.0, "send_receive": 1.0}
"""Of the bytes of the larger buffer, what each link carries between two ranks."""
LOOPS, LOOP_S = 7, 0.02
CODE = "LATE, LARGER, DTYPE = {late}, {larger}, {dtype!r}\n"
SAME: dict[str, Any] = {"late": 0.0, "larger": 1.0, "dtype": "bfloat16"}
PLANTED: dict[str, tuple[str, dict[str, Any]]] = {
    "late": ("one rank works 10 % longer", {"late": 0.1}),
    "larger": ("a tensor 8 % larger", {"larger": 1.08}),
    "dtype": ("float32 in place of bfloat16", {"dtype": "float32"}),
}
SUITE = """
import os, time
import torch
import torch.distributed as dist
import proj

torch.set_num_threads(1)
ranks = 2
timeout = 60.0
CUDA = {backend!r} == "nccl"

class Together:
    def setup(self, *params):
        rank = int(os.environ["LOCAL_RANK"])
        if CUDA:
            torch.cuda.set_device(rank)
        dist.init_process_group({backend!r})
        self.rank = rank

    def tensor(self, elements, dtype="float32"):
        return torch.zeros(elements, dtype=getattr(torch, dtype), device="cuda" if CUDA else "cpu")

class Sizes(Together):
    params = [{names}, {sizes}]
    param_names = ["collective", "bytes"]

    def setup(self, name, size):
        super().setup()
        self.call = collective(name, self.tensor(size // 4), self.rank)

    def {kind}_it(self, name, size):
        self.call()

gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor

def collective(name, x, rank):
    y, part, peer = torch.empty_like(x), torch.empty_like(x[: len(x) // 2]), 1 - rank
    def send_receive():
        for each in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, peer), dist.P2POp(dist.irecv, y, peer)]):
            each.wait()
    return {{
        "all_reduce": lambda: dist.all_reduce(x),
        "all_gather": lambda: gather(x, part),
        "reduce_scatter": lambda: scatter(part, x),
        "broadcast": lambda: dist.broadcast(x, 0),
        "send_receive": send_receive,
    }}[name]

class Planted(Together):
    def setup(self):
        super().setup()
        self.a = torch.randn({side}, {side}, device="cuda" if CUDA else "cpu")
        self.b = torch.empty_like(self.a)
        self.x = self.tensor(int({elements} * proj.LARGER), proj.DTYPE)

    def products(self, count):
        for _ in range(count):
            torch.mm(self.a, self.a, out=self.b)

class Late(Planted):
    def {kind}_late(self):
        self.products(10 + round(10 * proj.LATE) * self.rank)
        dist.all_reduce(self.x)

class Larger(Planted):
    def {kind}_larger(self): dist.all_reduce(self.x)

class Dtype(Planted):
    def {kind}_dtype(self): dist.all_reduce(self.x)

class Hung(Together):
    timeout = {hung_s}
    def {kind}_hung(self):
        dist.all_reduce(self.tensor(4)) if self.rank else time.sleep(600)
    def {kind}_next(self): dist.all_reduce(self.tensor(1 << 20))
"""
PLAIN = """
import json, os, statistics, sys, time
sys.path.insert(0, {folder!r})
import torch, torch.distributed as dist
from benchmarks.b import CUDA, Sizes

def seconds(call, calls):
    if not CUDA:
        start = time.perf_counter()
        for _ in range(calls): call()
        return (time.perf_counter() - start) / calls
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(calls): call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / calls

def slowest(value):
    found = torch.tensor([value], device="cuda" if CUDA else "cpu")
    dist.all_reduce(found, dist.ReduceOp.MAX)
    return float(found)

found = []
sizes = Sizes()
Sizes.__mro__[1].setup(sizes)
from benchmarks.b import collective
for name in Sizes.params[0]:
    for size in Sizes.params[1]:
        call = collective(name, sizes.tensor(size // 4), sizes.rank)
        seconds(call, 5)
        calls = max(5, int({loop_s} / slowest(seconds(call, 5))))
        found.append([name, size, statistics.median(slowest(seconds(call, calls)) for _ in range({loops}))])
if sizes.rank == 0:
    print(json.dumps(found))
dist.destroy_process_group()
"""


class Repository:
    """A repository with this suite in it, whose commits differ in what is planted."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self.folder, self._gpus = folder, ["--gpus", options.gpus] if options.backend == "nccl" else []
        self.cuda, self.environment = options.backend == "nccl", _environment(folder)
        self.text = SUITE.format(
            backend=options.backend,
            kind="cudatime" if self.cuda else "time",
            names=list(NAMES),
            sizes=[int(word) for word in options.sizes.split(",")],
            side=2048 if self.cuda else 128,
            elements=1 << (25 if self.cuda else 20),
            hung_s=20.0 if self.cuda else 5.0,
        )
        for name in ("benchmarks", "proj"):
            (folder / name).mkdir()
        (folder / "benchmarks" / "__init__.py").touch()
        (folder / "benchmarks" / "b.py").write_text(self.text)
        regress = {"device": "cuda" if self.cuda else "cpu"}
        (folder / "asv.conf.json").write_text(json.dumps({**CONFIG, "regress": regress}))
        (folder / ".gitignore").write_text("__pycache__/\nhistory/\ncache/\n")
        self.command("git", "init", "-q", "-b", "main")
        self.commit("same", SAME)

    def commit(self, name: str, planted: Mapping[str, Any]) -> None:
        (self.folder / "proj" / "__init__.py").write_text(CODE.format(**{**SAME, **planted}))
        self.command("git", "add", "-A")
        self.command("git", "commit", "-q", "--allow-empty", "-m", name)
        self.command("git", "tag", name)

    def regress(self, *words: str) -> dict[str, Any]:
        """The JSON of a command."""
        command = self.command(
            sys.executable, "-m", "regress", *words, *self._gpus, "--format", "json", good=(0, 1, 3, 4)
        )
        document: dict[str, Any] = json.loads(command)
        return document

    def command(self, *words: str, good: tuple[int, ...] = (0,)) -> str:
        """What it printed. Exits with that where it failed."""
        done = subprocess.run(words, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode not in good:
            sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout


def _environment(folder: Path) -> dict[str, str]:
    identity = {f"GIT_{role}_{what}": "versus" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    own = {"REGRESS_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": paths}
    return {**os.environ, **identity, **own}


def plain(repository: Repository) -> dict[tuple[str, int], float]:
    """Seconds a call by a loop of torch alone, by collective and size."""
    text = PLAIN.format(folder=str(repository.folder), loop_s=LOOP_S, loops=LOOPS)
    with free_port() as port:
        ranks = [
            subprocess.Popen(
                [sys.executable, "-c", text],
                cwd=repository.folder,
                env={**repository.environment, **variables(Rank(number, 2, port, 2))},
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(2)
        ]
        out = [rank.communicate(timeout=300)[0] for rank in ranks]
    return {(name, size): seconds for name, size, seconds in json.loads(out[0])}


def sizes(repository: Repository, rounds: str) -> None:
    repository.regress("run", "--rounds", rounds, "-b", "Sizes")
    (recorded,) = (
        Store(repository.folder / "history").load(repository.command("git", "rev-parse", "HEAD").strip()).recorded
    )
    by_case: dict[tuple[str, int], list[float]] = {}
    metric = "gpu_time" if repository.cuda else "wall_time"
    for round in recorded.rounds:
        key = round.params[0].strip("'"), int(round.params[1])
        if metric in round.values:
            by_case.setdefault(key, []).append(round.values[metric].value)
        else:
            print(f"{key[0]} {key[1]}: {round.failure or round.flags}")
    loops = plain(repository)
    print(f"{'':16}{'bytes':>12}{'a call':>12}{'bus':>12}{'spread':>9}{'loop':>12}{'ratio':>8}")
    for (name, size), values in by_case.items():
        value, loop = statistics.median(values), loops[name, size]
        spread = statistics.stdev(map(math.log, values)) if len(values) > 1 else math.nan
        bus = SHARES[name] * size / value / 1e9
        print(
            f"{name:16}{size:12}{value * 1e6:9.1f} us{bus:7.1f} GB/s{spread:8.2%}{loop * 1e6:9.1f} us{value / loop:8.3f}"
        )


def compared(report: Mapping[str, Any]) -> Iterator[str]:
    for row in report["benchmarks"]:
        if row["gates"]:
            change = f" {row['ratio'] - 1:+.1%}" if row["ratio"] else ""
            params = f"({', '.join(row['params'])})" if row["params"] else ""
            yield f"{row['name']}{params}: {row['verdict']}{change}  {row['reason']}"


def same(repository: Repository, budget: str) -> None:
    repository.commit("again", {})
    patterns = "Sizes|Late|Larger|Dtype"
    for line in compared(repository.regress("check", "same", "again", "-b", patterns, "--budget", budget)):
        print(line)


def planted(repository: Repository, names: str) -> None:
    for name in names.split(","):
        words, change = PLANTED[name]
        repository.commit(name, change)
        print(f"{words}:", flush=True)
        for line in compared(repository.regress("check", "same", name, "-b", f"_{name}$")):
            print(f"  {line}", flush=True)


def hung(repository: Repository) -> None:
    start = time.monotonic()
    report = repository.regress("run", "--rounds", "2", "-b", "Hung")
    print(f"{time.monotonic() - start:.1f} s")
    for row in report["benchmarks"]:
        print(f"{row['name']}: {(row.get('failure') or {}).get('message', 'measured')}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("nccl", "gloo"), default="nccl")
    parser.add_argument("--gpus", default="0,1", help="the two to measure on [0,1]")
    parser.add_argument("--sizes", default=",".join(str(1 << power) for power in (14, 17, 20, 23, 26)), help="bytes")
    parser.add_argument("--rounds", default="5", help="of every size [5]")
    parser.add_argument("--budget", default="10m", help="of `same` [10m]")
    parser.add_argument("--planted", default=",".join(PLANTED), help="what is planted [%(default)s]")
    parser.add_argument("--parts", default="sizes,same,planted,hung")
    options = parser.parse_args()
    parts: dict[str, Callable[[Repository], None]] = {
        "sizes": lambda repository: sizes(repository, options.rounds),
        "same": lambda repository: same(repository, options.budget),
        "planted": lambda repository: planted(repository, options.planted),
        "hung": hung,
    }
    with tempfile.TemporaryDirectory(prefix="versus-") as folder:
        repository = Repository(Path(folder), options)
        for name in options.parts.split(","):
            print(f"-- {name}", flush=True)
            parts[name](repository)


if __name__ == "__main__":
    main()
