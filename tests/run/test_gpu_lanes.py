"""Two real GPUs at once: cases of this repository's suite, beside what one of them measures."""

from __future__ import annotations

import json
import os
import shutil
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from regress.history import Store
from regress.measure.backend import DeviceError
from regress.measure.backend.cuda import visible_uuids
from regress.model import Case
from regress.run.gpus import Gpu, allowed, named
from regress.run.homes import home
from tests.conftest import Project
from tests.run.test_execute import Bench, failures, good

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).parents[2]
STEADY = (
    r"elementwise.Add.cudatime_add\(67108864\)",
    r"reductions.Reduce.*\(67108864\)",
    r"reductions.Rows.*\(4096\)",
    r"matmul.Square.cudatime_matmul\(4096",
    r"embedding.Lookup.cudatime_lookup\(32768\)",
)
"""Of the cases tagged `core` those that differ by less than 1 % from process to process."""
CHOICE = ("--tag", "core", *(word for pattern in STEADY for word in ("-b", pattern)))
AGREE = 0.03


@pytest.fixture(scope="module")
def uuids() -> list[str]:
    """The first two of the machine."""
    pytest.importorskip("torch")
    try:
        shown = visible_uuids()
    except DeviceError as error:
        pytest.skip(str(error))
    if len(shown) < 2:
        pytest.skip("needs two GPUs")
    return shown[:2]


@pytest.fixture(scope="module")
def p(uuids: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A repository with this suite, whose commit `one` was measured on the first GPU, and `two` on both."""
    with pytest.MonkeyPatch.context() as patch:
        for role in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{role}_NAME", "Ada Lovelace")
            patch.setenv(f"GIT_{role}_EMAIL", "ada@example.org")
        patch.setenv("REGRESS_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        p = Project(tmp_path_factory.mktemp("suite") / "p", {"device": "cuda"})
        shutil.copytree(ROOT / "benchmarks", p.root / "benchmarks", dirs_exist_ok=True)
        p.write({".gitignore": "__pycache__/\nhistory/\n"})
        for name, gpus in {"one": uuids[0], "two": ",".join(uuids)}.items():
            p.commit({}, name)
            p.git("tag", name)
            result = p.regress("run", "--gpus", gpus, *CHOICE)
            assert result.code == 0, result.out + result.err
        yield p


def recorded(p: Project, revision: str) -> dict[Case, dict[str, list[float]]]:
    """By case and GPU: the device times of its rounds."""
    (result,) = Store(p.root / "history").load(p.git("rev-parse", revision)).recorded
    times: dict[Case, dict[str, list[float]]] = {}
    for round in result.rounds:
        own = times.setdefault(Case(round.name, tuple(round.params)), {})
        own.setdefault(round.facts["gpu_uuid"], []).append(round.values["gpu_time"].value)
    return times


def test_each_case_is_on_the_gpu_that_is_its_own(p: Project, uuids: list[str]) -> None:
    values = recorded(p, "two")
    assert len(values) >= 8
    places = [(Gpu(uuid),) for uuid in uuids]
    homes = {case: [gpu.uuid for gpu in home(case, case.name, places)] for case in values}
    assert {case: list(own) for case, own in values.items()} == homes
    assert {uuid for own in recorded(p, "one").values() for uuid in own} == {uuids[0]}


def test_the_other_gpu_does_not_show_in_what_the_first_one_measures(p: Project, uuids: list[str]) -> None:
    both, alone = recorded(p, "two"), recorded(p, "one")
    shared = [case for case, own in both.items() if uuids[0] in own]
    assert shared
    ratios = {
        str(case): statistics.median(both[case][uuids[0]]) / statistics.median(alone[case][uuids[0]]) for case in shared
    }
    assert ratios == {case: pytest.approx(1.0, rel=AGREE) for case in ratios}


def test_a_check_of_a_commit_against_itself_finds_nothing(p: Project) -> None:
    result = p.regress("check", "one", "two", "--gpus", "0,1", "--budget", "60s", "--format", "json", *CHOICE)
    report = json.loads(result.out)
    assert result.code == 0, result.out + result.err
    assert {row["verdict"] for row in report["benchmarks"] if row["gates"]} <= {"unchanged", "undecided"}


# -- what the processes see ----------------------------------------------------------------------------------------------

SEES = """
import os, pathlib, time
import torch

HERE = pathlib.Path({folder!r})

def look(name):
    seen = [os.environ["CUDA_VISIBLE_DEVICES"], str(torch.cuda.device_count()), *map(str, os.sched_getaffinity(0))]
    (HERE / f"new-{{os.getpid()}}").write_text(" ".join(seen))
    os.replace(HERE / f"new-{{os.getpid()}}", HERE / name)

class Sees:
    timeout = 60
    params = [list(range(12))]
    def setup(self, n):
        look(f"lane-{{n}}")
        while len({{each.read_text().split()[0] for each in HERE.glob("lane-*")}}) < 2:
            time.sleep(0.01)  # until both lanes have come
        self.x = torch.randn(1 << 22, device="cuda")
    def cudatime_add(self, n): return self.x + self.x

class SeesBoth:
    gpus = 2
    def setup(self):
        look("both")
        self.xs = [torch.randn(1 << 22, device=f"cuda:{{index}}") for index in range(2)]
    def track_sum(self): return float(sum(float((x * 0 + 1).sum()) for x in self.xs))
"""


def test_lanes_work_at_once_and_see_their_gpu_alone(uuids: list[str], tmp_path: Path) -> None:
    gpus = named(uuids, uuids)
    seen = _seen(tmp_path, gpus)
    lanes = {words[0]: words for name, words in seen.items() if name.startswith("lane")}
    assert set(lanes) == set(uuids)
    assert {words[1] for words in lanes.values()} == {"1"}
    assert seen["both"][:2] == [",".join(sorted(uuids)), "2"]
    cpus = {uuid: set(map(int, words[2:])) for uuid, words in lanes.items()}
    assert cpus == {gpu.uuid: set(gpu.cpus) for gpu in gpus}
    if len(allowed()) >= 4:
        assert not set.intersection(*cpus.values())
    assert len(seen["both"]) - 2 == len(os.sched_getaffinity(0))


def _seen(folder: Path, gpus: tuple[Gpu, ...]) -> Mapping[str, list[str]]:
    """What each process of the suite above has written down."""
    notes = folder / "notes"
    notes.mkdir()
    bench = Bench(folder)
    bench.write(SEES.format(folder=str(notes)))
    measured = bench.run(rounds=1, gpus=gpus, settings={"device": "cuda"}, default_timeout_s=60.0)
    assert failures(measured) == {}
    assert good(measured)["b.SeesBoth.track_sum"] == 1
    return {path.name: path.read_text().split() for path in notes.iterdir()}
