"""What several GPUs of one host are worth: the same run on one of them, and on all that are named.

    python benchmarks/versus/lanes.py                        the cases of this suite that are tagged `core`, on GPUs 0 and 1
    python benchmarks/versus/lanes.py --gpus all --rounds 40
    python benchmarks/versus/lanes.py -b softmax             other cases: words for `regress run`
    python benchmarks/versus/lanes.py --products 80,4096     that many cases of one long kernel, a float32 product of this size
    python benchmarks/versus/lanes.py --scripted 36,4        no GPU: the number of cases beside others, and of those measured
                                                             alone, on scripted devices that take the time of real ones

Prints the seconds of `regress run` from start to end with one GPU and with all, and their ratio; then the same for the seconds
between the first and the last round, which leave out what does not get shorter: the imports, and the unmeasured visits. Then
where the seconds of the rounds went, for each GPU: a visit to a case takes longer beside others where the host or the driver
has a part in it, and what lies between visits is the start and the end of processes, and waiting for the other GPU. Then how
many cases each GPU had: if cases cost alike, the ratio cannot be better than all cases over those of the busiest and those that
are measured alone. Needs torch in this Python, but for `--scripted`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from regress.history import Store
from regress.model import Case

ROOT = Path(__file__).parents[2]
CONFIG = {"version": 1, "project": "lanes", "repo": ".", "branches": ["main"], "results_dir": "history"}
AIM = 1.7
SCRIPTED = """
import atexit, glob, os, time
import regress_scripted as device

HERE, opened = "{folder}", False

def takes(what, seconds, at_once_s):
    "Wait so long; longer while another process does such a thing too, as the driver does one after the other."
    mine = os.path.join(HERE, f"{{what}}-{{os.getpid()}}")
    open(mine, "w").close()
    left, before = seconds, time.monotonic()
    while left > 0:
        time.sleep(0.005)
        now = time.monotonic()
        left -= (now - before) * (seconds / at_once_s if len(glob.glob(os.path.join(HERE, "*-*"))) > 1 else 1)
        before = now
    os.remove(mine)

def set_up():
    global opened
    if not opened:
        opened = True
        takes("opening", 0.42, 0.72)
        atexit.register(takes, "closing", 0.1, 0.17)
    time.sleep(0.06)

class Beside:
    params = [list(range({beside}))]
    setup = lambda self, n: set_up()
    def cudatime_it(self, n): device.kernel("k", 50e-6)

class Alone:
    params = [list(range({alone}))]
    setup = lambda self, n: set_up()
    def cudatime_it(self, n):
        device.kernel("k", 50e-6)
        device.synchronize()
"""
"""A suite whose processes and cases take what they were seen to take on an H200."""
PRODUCTS = """
import torch

class Products:
    params = [list(range({cases}))]

    def setup(self, n):
        self.a, self.b, self.c = (torch.randn({size}, {size}, device="cuda") for _ in range(3))

    def cudatime_mm(self, n):
        torch.mm(self.a, self.b, out=self.c)
"""
"""A suite that the devices are busy with, and the host next to not at all."""


class Spent(NamedTuple):
    """What one run has cost."""

    command_s: float
    rounds_s: float
    """Between its first and its last round."""
    cases: Counter[str]
    """By GPU: those that were measured beside others."""
    alone: int
    """Cases that were measured alone."""
    visits: dict[str, list[tuple[bool, float]]]
    """By GPU: of each round of a case, whether it was beside others, and its seconds."""


class Repository:
    """A repository with this suite in it, and a commit for each run."""

    def __init__(self, folder: Path, scripted: str, products: str) -> None:
        self.folder = folder
        identity = {f"GIT_{role}_{what}": "versus" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        paths = filter(None, (str(ROOT), os.environ.get("PYTHONPATH", "")))
        own = {"HOME": str(folder), "REGRESS_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": os.pathsep.join(paths)}
        self._environment = {**os.environ, **identity, **own}
        if scripted:
            beside, alone = map(int, scripted.split(","))
            self._write("scripted", SCRIPTED.format(folder=folder / "device", beside=beside, alone=alone))
            (folder / "device").mkdir()
        elif products:
            cases, size = map(int, products.split(","))
            self._write("products", PRODUCTS.format(cases=cases, size=size))
        else:
            ignored = shutil.ignore_patterns("versus", "__pycache__")
            shutil.copytree(ROOT / "benchmarks", folder / "benchmarks", ignore=ignored)
        device = {"regress": {"device": "fake"}} if scripted else {}
        (folder / "asv.conf.json").write_text(json.dumps({**CONFIG, **device}))
        (folder / ".gitignore").write_text("__pycache__/\nhistory/\ncache/\n")
        self._command("git", "init", "-q", "-b", "main")
        self._command("git", "add", "-A")

    def read_once(self, gpu: str, words: Sequence[str]) -> None:
        """Run everything once, so that what is measured first is not the first to read torch from the disk."""
        self._command("git", "commit", "-q", "--allow-empty", "-m", "quick")
        self._regress(gpu, "--quick", *words)

    def run(self, gpus: str, words: Sequence[str]) -> Spent:
        self._command("git", "commit", "-q", "--allow-empty", "-m", gpus)
        start = time.monotonic()
        self._regress(gpus, *words)
        seconds = time.monotonic() - start
        (recorded,) = Store(self.folder / "history").load(self._command("git", "rev-parse", "HEAD").strip()).recorded
        rounds = [round for round in recorded.rounds if round.values]
        between = max(round.started_at + round.duration_s for round in rounds) - min(
            round.started_at for round in rounds
        )
        homes = {
            (Case(round.name, tuple(round.params)), str(round.facts["gpu_uuid"]), "beside" in round.facts)
            for round in rounds
        }
        beside = Counter(uuid for _, uuid, beside in homes if beside)
        visits: dict[str, list[tuple[bool, float]]] = {}
        for round in rounds:
            visits.setdefault(str(round.facts["gpu_uuid"]), []).append(("beside" in round.facts, round.duration_s))
        return Spent(seconds, between, beside, len(homes) - beside.total(), visits)

    def _regress(self, gpus: str, *words: str) -> None:
        self._command(sys.executable, "-m", "regress", "run", "-q", "--gpus", gpus, *words)

    def _write(self, module: str, text: str) -> None:
        (self.folder / "benchmarks").mkdir()
        (self.folder / "benchmarks" / "__init__.py").touch()
        (self.folder / "benchmarks" / f"{module}.py").write_text(text)

    def _command(self, *words: str) -> str:
        """What it printed. Exits with that where it failed."""
        done = subprocess.run(
            words, cwd=self.folder, env=self._environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout


def show(gpus: str, spent: Spent) -> None:
    print(f"--gpus {gpus}: {spent.command_s:.1f} s, its rounds {spent.rounds_s:.1f} s", flush=True)
    for uuid, visits in sorted(spent.visits.items()):
        parts = []
        for name, wanted in (("beside others", True), ("alone", False)):
            seconds = [visit for beside, visit in visits if beside is wanted]
            if seconds:
                parts.append(
                    f"{len(seconds)} visits {name} {sum(seconds):.1f} s, of {median(seconds) * 1e3:.0f} ms (median)"
                )
        print(
            f"  {uuid}   {'; '.join(parts)}; between them {spent.rounds_s - sum(s for _, s in visits):.1f} s",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", default="0,1", help="those to compare with the first of them [0,1]")
    parser.add_argument("--rounds", default="20", help="of every case [20]")
    parser.add_argument("--scripted", default="", metavar="BESIDE,ALONE", help="numbers of cases on scripted devices")
    parser.add_argument("--products", default="", metavar="CASES,SIZE", help="that many cases of a float32 product")
    options, words = parser.parse_known_args()
    written = options.scripted or options.products
    wanted = ("--rounds", options.rounds, *(words or (() if written else ("--tag", "core"))))
    first = options.gpus.partition(",")[0].replace("all", "0")
    with tempfile.TemporaryDirectory(prefix="versus-") as folder:
        repository = Repository(Path(folder), options.scripted, options.products)
        repository.read_once(first, ("-b", "0") if options.products else wanted[2:])
        rows = []
        for gpus in (first, options.gpus):
            rows.append(repository.run(gpus, wanted))
            show(gpus, rows[-1])
    one, several = rows
    cases, total = several.cases, several.cases.total() + several.alone
    spent = {
        "the whole command": (one.command_s, several.command_s),
        "its rounds": (one.rounds_s, several.rounds_s),
    }
    print(f"{total} cases, {several.alone} of them measured alone, {options.rounds} rounds")
    for name, (before, after) in spent.items():
        print(
            f"{name:20} one GPU {before:7.1f} s   {len(cases)} GPUs {after:7.1f} s   ratio {before / after:.2f} (aim {AIM})"
        )
    for uuid, number in sorted(cases.items()):
        print(f"{uuid}   {number} cases beside others")
    print(f"the ratio cannot be more than about {total / (max([*cases.values(), 0]) + several.alone):.2f}")


if __name__ == "__main__":
    main()
