"""Values under asv and here: one suite, one machine, one after the other.

    python benchmarks/versus/values.py             the functions of host_noise.py, which change nothing
    python benchmarks/versus/values.py --in-place  ten functions that change what their setup makes

The ten are of the kinds that public suites have: input sorted or filled in place, containers that are emptied or grow, a graph
that gets its edges, an index that is made at its first use and kept. Prints a table: asv's value, ours, how we set up, and the
ratio; then the median of the ratios. Needs asv here; torch and numpy without `--in-place`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from against_asv import ASV, Repository  # type: ignore[import-not-found]  # beside this file
from host_noise import FUNCTIONS, HEAD  # type: ignore[import-not-found]  # beside this file

PLAIN = HEAD + "".join(f"\n\ndef time_{name}():\n    {function}\n" for name, function in FUNCTIONS.items())

IN_PLACE = """
import collections, heapq, random


class InPlace:
    def setup(self):
        dice = random.Random()
        self.numbers = [dice.random() for _ in range(2000)]
        self.holes = [None if number < 0.5 else number for number in self.numbers]
        self.columns = {str(number): number for number in self.numbers}
        self.names = list(self.columns)
        self.edges = [(dice.randrange(500), dice.randrange(500)) for _ in range(2000)]
        self.graph = collections.defaultdict(set)
        self.heap = sorted(self.numbers)
        self.queue = collections.deque(self.numbers)
        self.kept = None
        self.written = []

    def time_sort(self):
        self.numbers.sort()

    def time_fill_missing(self):
        for place, value in enumerate(self.holes):
            if value is None:
                self.holes[place] = sum(map(abs, (1.0, -1.0)))

    def time_pop_columns(self):
        for name in self.names:
            self.columns.pop(name)

    def time_add_edges(self):
        for one, other in self.edges:
            self.graph[one].add(other)

    def time_drain_heap(self):
        while self.heap:
            heapq.heappop(self.heap)

    def time_drain_queue(self):
        while self.queue:
            self.queue.popleft()

    def time_insert_in_front(self):
        self.written.insert(0, None)

    def time_index_at_first_use(self):
        if self.kept is None:
            self.kept = {number: place for place, number in enumerate(self.numbers)}
        return self.kept[self.numbers[7]]

    def time_scale(self):
        for place, number in enumerate(self.numbers):
            self.numbers[place] = number * 0.5


class Ten:
    number = 10

    def setup(self):
        self.left = [[random.random() for _ in range(2000)] for _ in range(10)]

    def time_sort_one_of_ten(self):
        self.left.pop().sort()
"""


def values_of_asv(repository: Repository) -> dict[str, float]:
    """By benchmark, the value that asv has recorded."""
    (file,) = (repository.folder / "results" / "here").glob(f"{repository.head()[:8]}-existing*.json")
    data = json.loads(file.read_text())
    column = data["result_columns"].index("result")
    return {name: cells[column][0] for name, cells in data["results"].items() if cells[column]}


def ours(repository: Repository, rounds: int) -> dict[str, tuple[float, bool]]:
    """By benchmark, our value, and whether each sample is set up."""
    table = repository.folder / "table.json"
    repository.run(sys.executable, "-m", "regress", "run", "--rounds", str(rounds), "--output", f"json={table}")
    return {
        row["name"]: (row["value"], "set up before each sample" in row["flags"])
        for row in json.loads(table.read_text())["benchmarks"]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in-place", action="store_true")
    suite = IN_PLACE if parser.parse_args().in_place else PLAIN
    with tempfile.TemporaryDirectory(prefix="versus-") as folder:
        repository = Repository(Path(folder), suite)
        measured = ours(repository, rounds=5)
        repository.run(sys.executable, "-m", "asv", "run", *ASV, "--set-commit-hash", repository.head())
        theirs = values_of_asv(repository)
    print("| benchmark | asv | here | setup | ratio |\n| --- | --- | --- | --- | --- |")
    ratios = {name: value / theirs[name] for name, (value, _) in measured.items()}
    for name, (value, set_up_each) in measured.items():
        setup = "each sample" if set_up_each else "once a round"
        row = f"{1e6 * theirs[name]:.4g} us | {1e6 * value:.4g} us | {setup} | {ratios[name]:.2f}"
        print(f"| {name.rpartition('.')[2]} | {row} |")
    print(f"\nmedian ratio {statistics.median(ratios.values()):.3f}")


if __name__ == "__main__":
    main()
