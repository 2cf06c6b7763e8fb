"""What several GPUs of one host are worth: the same run on one of them, and on all that are named.

    python benchmarks/versus/lanes.py                        the cases of this suite that are tagged `core`, on GPUs 0 and 1
    python benchmarks/versus/lanes.py --gpus all --rounds 40
    python benchmarks/versus/lanes.py -b softmax             other cases: words for `regress run`

Prints the seconds of `regress run` from start to end with one GPU and with all, and their ratio; then the same for the seconds
between the first and the last round, which leave out what does not get shorter: the imports, and the unmeasured visits. Then
how many cases each GPU had: if cases cost alike, the ratio cannot be better than all cases over those of the busiest. Needs
torch in this Python.
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
from typing import NamedTuple

from regress.history import Store
from regress.model import Case

ROOT = Path(__file__).parents[2]
CONFIG = {"version": 1, "project": "lanes", "repo": ".", "branches": ["main"], "results_dir": "history"}
AIM = 1.7


class Spent(NamedTuple):
    """What one run has cost."""

    command_s: float
    rounds_s: float
    """Between its first and its last round."""
    cases: Counter[str]
    """By GPU."""


class Repository:
    """A repository with this suite in it, and a commit for each run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        identity = {f"GIT_{role}_{what}": "versus" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        paths = filter(None, (str(ROOT), os.environ.get("PYTHONPATH", "")))
        own = {"HOME": str(folder), "REGRESS_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": os.pathsep.join(paths)}
        self._environment = {**os.environ, **identity, **own}
        shutil.copytree(
            ROOT / "benchmarks", folder / "benchmarks", ignore=shutil.ignore_patterns("versus", "__pycache__")
        )
        (folder / "asv.conf.json").write_text(json.dumps(CONFIG))
        (folder / ".gitignore").write_text("__pycache__/\nhistory/\ncache/\n")
        self._command("git", "init", "-q", "-b", "main")
        self._command("git", "add", "-A")

    def run(self, gpus: str, words: Sequence[str]) -> Spent:
        self._command("git", "commit", "-q", "--allow-empty", "-m", gpus)
        start = time.monotonic()
        self._command(sys.executable, "-m", "regress", "run", "-q", "--gpus", gpus, *words)
        seconds = time.monotonic() - start
        (found,) = Store(self.folder / "history").load(self._command("git", "rev-parse", "HEAD").strip()).recorded
        rounds = [each for each in found.rounds if each.values]
        between = max(each.started_at + each.duration_s for each in rounds) - min(each.started_at for each in rounds)
        homes = {(Case(each.name, tuple(each.params)), str(each.facts["gpu_uuid"])) for each in rounds}
        return Spent(seconds, between, Counter(uuid for _, uuid in homes))

    def _command(self, *words: str) -> str:
        """What it printed. Exits with that where it failed."""
        done = subprocess.run(
            words, cwd=self.folder, env=self._environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", default="0,1", help="those to compare with the first of them [0,1]")
    parser.add_argument("--rounds", default="20", help="of every case [20]")
    options, words = parser.parse_known_args()
    wanted = ("--rounds", options.rounds, *(words or ("--tag", "core")))
    first = options.gpus.partition(",")[0].replace("all", "0")
    with tempfile.TemporaryDirectory(prefix="versus-") as folder:
        repository = Repository(Path(folder))
        repository.run(first, ("--quick", *wanted[2:]))  # so that neither run is the first to read torch from the disk
        one, several = repository.run(first, wanted), repository.run(options.gpus, wanted)
    cases, spent = (
        several.cases,
        {
            "the whole command": (one.command_s, several.command_s),
            "its rounds": (one.rounds_s, several.rounds_s),
        },
    )
    print(f"{cases.total()} cases, {options.rounds} rounds")
    for name, (before, after) in spent.items():
        print(
            f"{name:20} one GPU {before:7.1f} s   {len(cases)} GPUs {after:7.1f} s   ratio {before / after:.2f} (aim {AIM})"
        )
    for uuid, number in sorted(cases.items()):
        print(f"{uuid}   {number} cases")
    print(f"the ratio cannot be more than about {cases.total() / max(cases.values()):.2f}")


if __name__ == "__main__":
    main()
