"""What it takes to read a long history, beside asv's own loader.

    python benchmarks/versus/loading.py RESULTS_DIR [--times 3]

asv's loader reads every file (`asv publish` does so three times). regress reads every file once, keeps an index, and after that
what has changed: here nothing. Each is a process of its own, in turn, and of several times the best counts; the files are in
memory before. What the interpreter and imports take is not in it. Commits stand in the order of their recorded dates, as the
project's repository is not needed. Prints seconds, how many times fewer they are than asv's, peak memory, and what was read.
"""

from __future__ import annotations

import argparse
import json
import logging
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

Told = dict[str, Any]


# -- in a process of its own ---------------------------------------------------------------------------------------------


def by_asv(root: Path, cache: Path, commits: Path) -> Told:
    from asv.console import log
    from asv.results import iter_results

    logging.disable(logging.WARNING)
    log.enable = lambda *given: None
    took, files = timed(lambda: sum(1 for _ in iter_results(str(root))))
    return {**took, "files": files}


def by_regress(root: Path, cache: Path, commits: Path) -> Told:
    """The past, twice: the second object is made in the same process."""
    from regress.model import Commit, Settings
    from regress.trends import past_of

    order = [Commit(sha, "", "", date) for sha, date in json.loads(commits.read_text())]
    first, past = timed(lambda: past_of(root, cache, order, Settings()))
    again, _ = timed(lambda: past_of(root, cache, order, Settings()))
    return {**first, "again": again, "benchmarks": len(past.names)}


def all_series(root: Path, cache: Path, commits: Path) -> Told:
    from regress.model import Commit, Settings
    from regress.trends import past_of

    order = [Commit(sha, "", "", date) for sha, date in json.loads(commits.read_text())]
    past = past_of(root, cache, order, Settings())
    totals = {"series": 0, "values": 0, "failures": 0}

    def count() -> None:
        for name in past.names:
            for series in past.series(name):
                totals["series"] += 1
                totals["values"] += sum(map(bool, series.rounds))
                totals["failures"] += sum(map(bool, series.failures))

    return {**timed(count)[0], **totals}


def prepare(root: Path, cache: Path, commits: Path) -> Told:
    """Read everything once, and write down the commits in the order of their dates."""
    from regress.history import Archive

    archive = Archive(root, cache, ())
    dates = {place.commit_sha: place.date for place in archive.places.values()}
    commits.write_text(json.dumps(sorted(dates.items(), key=lambda item: (item[1], item[0]))))
    skipped = [f"{file.path}: {file.why}" for file in archive.skipped]
    return {"used": len(archive.places), "commits": len(dates), "skipped": skipped}


def timed(call: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """Seconds from start to end, and those of processors, with what the call gives."""
    start, before = time.perf_counter(), processors()
    answer = call()
    return {"wall": time.perf_counter() - start, "cpu": processors() - before}, answer


def processors() -> float:
    """Seconds of processors that this process and those that it waited for have taken."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(number.ru_utime + number.ru_stime for number in used)


PARTS = {part.__name__: part for part in (by_asv, by_regress, all_series, prepare)}


# -- the comparison ------------------------------------------------------------------------------------------------------


def process(part: str, root: Path, cache: Path, commits: Path) -> Told:
    words = [sys.executable, __file__, str(root), "--part", part, "--cache", str(cache), "--commits", str(commits)]
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    told: Told = json.loads(done.stdout.splitlines()[-1])
    return told


def compare(root: Path, times: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        commits = Path(folder) / "commits.json"
        about = process("prepare", root, Path(folder) / "prepared", commits)
        files = [path for path in root.rglob("*.json") if path.name not in ("machine.json", "benchmarks.json")]
        if not about["used"]:
            sys.exit(f"there are no results in {root}: name the folder that has a folder of each machine")
        size = sum(path.stat().st_size for path in files)
        print(f"{len(files)} files of results, {size / 1e6:.0f} MB, {about['commits']} commits")
        rounds: dict[str, list[Told]] = {"asv": [], "first": [], "unchanged": []}
        for number in range(times):
            cache = Path(folder) / str(number)
            rounds["asv"].append(process("by_asv", root, cache, commits))
            rounds["first"].append(process("by_regress", root, cache, commits))
            rounds["unchanged"].append(process("by_regress", root, cache, commits))
        series = process("all_series", root, cache, commits)
        index = sum(path.stat().st_size for path in cache.iterdir())
    rounds["again"] = [{**row["again"], "peak": row["peak"]} for row in rounds["unchanged"]]
    labels = {
        "asv": "asv's loader",
        "first": "regress, first time",
        "unchanged": "regress, unchanged, new process",
        "again": "regress, unchanged, same process",
    }
    print(f"{'':<34}{'wall':>9}{'less':>10}{'CPU':>10}{'less':>10}{'peak memory':>15}")
    best = {key: {name: min(row[key] for row in told) for name, told in rounds.items()} for key in ("wall", "cpu")}
    for name, label in labels.items():
        columns = "".join(f"{best[key][name]:8.3f} s{best[key]['asv'] / best[key][name]:8.1f} x" for key in best)
        print(f"{label:<34}{columns}{max(round['peak'] for round in rounds[name]) / 1e6:12.0f} MB")
    columns = f"{series['wall']:8.3f} s{'':10}{series['cpu']:8.3f} s{'':10}"
    print(f"{'regress, every series':<34}{columns}{series['peak'] / 1e6:12.0f} MB")
    print(f"{series['series']} series, {series['values']} values, {series['failures']} failed or skipped")
    print(f"asv read {rounds['asv'][0]['files']} files, regress {about['used']}; the index has {index / 1e6:.0f} MB")
    print(f"not read: {len(about['skipped'])}", *about["skipped"], sep="\n    ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--cache", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--commits", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.part:
        compare(given.root.resolve(), given.times)
        return
    sys.path.insert(0, str(ROOT))
    told = PARTS[given.part](given.root, given.cache, given.commits)
    peaks = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps({**told, "peak": 1024 * sum(peaks)}))


if __name__ == "__main__":
    main()
