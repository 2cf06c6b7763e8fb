from __future__ import annotations

import ctypes
import importlib.util
import io
import itertools
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regress.commands.demo import LEAST_COMMITS, PLANTED, DemoCreated, create, cuda_devices, files
from regress.commands.demo.repository import DemoRepository
from regress.commands.demo.story import STORY, Edit
from regress.errors import RegressError
from regress.model import Settings, Verdict

TREES = Path(__file__).with_name("demo_trees.py")
CASES = 18
BENCHMARKS = 8

Costs = dict[str, dict[str, float]]
"""Case -> metric -> what one call costs."""


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, encoding="utf-8").stdout


def subjects(folder: Path) -> list[str]:
    return git(folder, "log", "--reverse", "--format=%s").splitlines()


def checked_out(folder: Path, into: Path) -> list[str]:
    """Each commit's files in a folder of their own, oldest first."""
    folders = []
    for sha in git(folder, "rev-list", "--reverse", "HEAD").split():
        archive = subprocess.run(["git", "archive", sha], cwd=folder, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files_of_commit:
            files_of_commit.extraction_filter = getattr(tarfile, "data_filter", None)
            files_of_commit.extractall(into / sha)
        folders.append(str(into / sha))
    return folders


def run_trees(kind: str, folders: list[str]) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, str(TREES), kind, *folders], check=True, capture_output=True, encoding="utf-8"
    )
    loaded: list[dict[str, Any]] = json.loads(done.stdout)
    return loaded


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return create(tmp_path_factory.mktemp("scripted") / "demo", scripted=True).directory


@pytest.fixture(scope="module")
def costs(scripted: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Costs]:
    return run_trees("scripted", checked_out(scripted, tmp_path_factory.mktemp("trees")))


# -- the repository ------------------------------------------------------------------------------------------------------


def test_says_what_was_made(tmp_path: Path) -> None:
    folder = tmp_path / "a demo"
    assert create(folder, scripted=True) == DemoCreated(folder, 12, True, f"cd '{folder}' && regress check HEAD~1")


@pytest.mark.parametrize("commits", [12, 13, 30])
def test_has_so_many_commits_and_keeps_the_story(tmp_path: Path, commits: int) -> None:
    folder = tmp_path / "demo"
    create(folder, commits, scripted=True)
    told = subjects(folder)
    story = [step.subject for step in STORY]
    assert len(told) == len(set(told)) == commits
    assert [subject for subject in told if subject in story] == story
    assert told[-2:] == story[-2:]
    assert git(folder, "status", "--porcelain") == ""
    assert git(folder, "symbolic-ref", "--short", "HEAD").strip() == "main"
    dates = [int(date) for date in git(folder, "log", "--reverse", "--format=%ct").split()]
    assert {later - earlier for earlier, later in itertools.pairwise(dates)} == {24 * 60 * 60}


def test_unchanged_commits_are_spread_evenly() -> None:
    extra = 25
    planted_at = [index for index, step in enumerate(files.steps(len(STORY) + extra)) if step in STORY]
    between = [later - earlier - 1 for earlier, later in itertools.pairwise([-1, *planted_at])]
    assert sum(between) == extra
    assert between[-1] == 0
    assert set(between[:-1]) == {2, 3}


def test_unchanged_commits_touch_the_documentation_only() -> None:
    steps = [step for step in files.steps(200) if step not in STORY]
    assert {edit.path for step in steps for edit in step.edits} == {"docs/sizes.md"}


def test_is_the_same_everywhere(scripted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "home" / "git"
    settings.mkdir(parents=True)
    (settings / "config").write_text("[user]\nname = Other\n[commit]\ngpgSign = true\n[core]\nautocrlf = true\n")
    (settings / "ignore").write_text("*.md\n")
    (settings / "attributes").write_text("* text eol=crlf ident\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(settings.parent))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody")
    again = create(tmp_path / "again", scripted=True).directory
    monkeypatch.delenv("GIT_DIR")
    assert git(again, "rev-parse", "HEAD") == git(scripted, "rev-parse", "HEAD")


def test_no_hook_of_the_user_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("pre-commit", "commit-msg", "post-commit"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        (hooks / name).chmod(0o755)
    (tmp_path / ".gitconfig").write_text(f"[core]\nhooksPath = {hooks}\n[init]\ntemplateDir = {tmp_path}\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = create(tmp_path / "demo", scripted=True).directory
    assert not (tmp_path / "ran").exists()
    assert not (folder / ".git" / "hooks").exists()


def test_authors_are_not_ascii_only(scripted: Path) -> None:
    assert "Tomás Öberg <tomas@example.org>" in git(scripted, "log", "--format=%an <%ae>").splitlines()


def test_the_revert_names_what_it_reverts(scripted: Path) -> None:
    revert, slower = next((step.subject, step.reverts) for step in STORY if step.reverts)
    shas = {
        subject: sha
        for sha, subject in (line.split(" ", 1) for line in git(scripted, "log", "--format=%H %s").splitlines())
    }
    assert f"This reverts commit {shas[slower]}." in git(scripted, "log", "-1", "--format=%b", shas[revert])
    assert git(scripted, "diff", f"{shas[slower]}~1", shas[revert], "--", "tinynn/ops.py") == ""


def test_the_suite_is_the_same_in_every_commit(scripted: Path) -> None:
    assert len(git(scripted, "log", "--format=%H", "--", "benchmarks", "asv.conf.json").split()) == 1


@pytest.mark.parametrize("is_scripted", [True, False])
def test_readme_says_what_is_planted_and_how_it_is_timed(is_scripted: bool) -> None:
    readme = files.first_tree(is_scripted)["README.md"]
    for subject, planted in PLANTED.items():
        (row,) = (line for line in readme.splitlines() if line.startswith(f"| {subject} |"))
        assert all(f"`{change.benchmark}`" in row for change in planted)
    assert ("scripted, not measured" in readme) == is_scripted
    assert "$" not in readme


def test_both_devices_have_the_same_library_and_suite() -> None:
    torch, fake = files.first_tree(False), files.first_tree(True)
    assert {path for path in {*torch, *fake} if torch.get(path) != fake.get(path)} == {
        "README.md",
        "asv.conf.json",
        "pyproject.toml",
        "tests/conftest.py",
        "tinynn/tensor.py",
    }
    assert json.loads(fake["asv.conf.json"]) == {**json.loads(torch["asv.conf.json"]), "regress": {"device": "fake"}}


def test_its_own_tests_pass_at_both_ends(scripted: Path, tmp_path: Path) -> None:
    folders = checked_out(scripted, tmp_path)
    for folder in (folders[0], folders[-1]):
        command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stdout


# -- what is planted -----------------------------------------------------------------------------------------------------


def test_every_commit_has_the_same_cases(costs: list[Costs]) -> None:
    (names,) = {tuple(case_costs) for case_costs in costs}
    assert len(names) == CASES
    assert len({name.split("(")[0] for name in names}) == BENCHMARKS


def test_each_commit_changes_what_is_planted_and_nothing_else(scripted: Path, costs: list[Costs]) -> None:
    for subject, (before, after) in zip(subjects(scripted)[1:], itertools.pairwise(costs), strict=True):
        planted = {(change.benchmark, change.metric): change.verdict for change in PLANTED.get(subject, ())}
        seen = set()
        for case in before:
            for metric in compared(before[case], after[case]):
                ratio = after[case][metric] / before[case][metric]
                key = (case.split("(")[0], metric)
                if key in planted:
                    seen.add(key)
                    assert verdict(metric, ratio) is planted[key], (subject, case, metric, ratio)
                else:
                    assert ratio == pytest.approx(1, rel=1e-9), (subject, case, metric)
        assert seen == planted.keys(), subject


def compared(before: dict[str, float], after: dict[str, float]) -> set[str]:
    """The metrics that are compared: wall time stands in where a side has no device time."""
    both = before.keys() & after.keys()
    return both - {"wall_time"} if "gpu_time" in both else both


def verdict(metric: str, ratio: float) -> Verdict:
    settings = Settings()
    thresholds = {"host_time": settings.host_threshold, "peak_memory": settings.memory_threshold}
    limit = 1 + thresholds.get(metric, settings.time_threshold)
    if ratio > limit:
        return Verdict.REGRESSED
    return Verdict.IMPROVED if ratio < 1 / limit else Verdict.UNCHANGED


def change(scripted: Path, costs: list[Costs], subject: str, metric: str) -> list[float]:
    """Ratios of the planted metric over the cases of the planted benchmark."""
    index = subjects(scripted).index(subject)
    (benchmark,) = (planted.benchmark for planted in PLANTED[subject] if planted.metric == metric)
    cases = [case for case in costs[index] if case.startswith(f"{benchmark}(")]
    return [costs[index][case][metric] / costs[index - 1][case][metric] for case in cases]


@pytest.mark.parametrize(
    ("subject", "metric", "low", "high"),
    [
        ("layer_norm: subtract the mean before squaring", "gpu_time", 1.2, 1.6),
        ("attention: tell raw from biased scores by name", "peak_memory", 1.2, 1.5),
        ("clip_grads: log the norm of each gradient", "wall_time", 1.2, 2.5),
        ("residual: scale and add in one pass", "gpu_time", 0.5, 0.8),
        ("attention: scale the scores, not the queries", "gpu_time", 1.12, 1.4),
    ],
)
def test_the_planted_changes_are_clear(
    scripted: Path, costs: list[Costs], subject: str, metric: str, low: float, high: float
) -> None:
    ratios = change(scripted, costs, subject, metric)
    assert len(ratios) >= 2
    assert all(low <= ratio <= high for ratio in ratios), ratios


def test_checking_arguments_costs_the_host_some_microseconds(scripted: Path, costs: list[Costs]) -> None:
    index = subjects(scripted).index("embedding: check the arguments")
    (case, *_) = (case for case in costs[index] if case.startswith("ops.Embedding"))
    assert 15e-6 <= costs[index][case]["host_time"] - costs[index - 1][case]["host_time"] <= 60e-6


def test_logging_norms_makes_it_synchronous(scripted: Path, costs: list[Costs]) -> None:
    index = subjects(scripted).index("clip_grads: log the norm of each gradient")
    waiting = [{case.split("(")[0] for case, row in row.items() if "gpu_time" not in row} for row in costs]
    assert waiting == [set()] * index + [{"optim.ClipGrads.cudatime_clip"}] * (len(costs) - index)


def test_device_times_are_where_a_device_times_well(costs: list[Costs]) -> None:
    times = [row["gpu_time"] for row in costs[0].values()]
    assert min(times) >= 20e-6
    assert max(times) <= 2e-3


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_on_torch_every_commit_gives_the_same_results(tmp_path: Path) -> None:
    folder = create(tmp_path / "demo", scripted=False).directory
    differences = run_trees("torch", checked_out(folder, tmp_path / "trees"))
    assert [len(cases) for cases in differences] == [CASES] * LEAST_COMMITS
    # Rounding of float16; a wrong scale or a missing pass is far above it.
    assert max(difference for cases in differences for difference in cases.values()) < 0.01


# -- what is refused -----------------------------------------------------------------------------------------------------


def test_too_few_commits(tmp_path: Path) -> None:
    with pytest.raises(RegressError) as caught:
        create(tmp_path / "demo", 11, scripted=True)
    assert "12" in caught.value.why
    assert caught.value.fix.endswith("--commits 12")
    assert not (tmp_path / "demo").exists()


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(RegressError, match="is not empty") as caught:
        create(tmp_path, scripted=True)
    assert caught.value.why
    assert caught.value.fix
    assert os.listdir(tmp_path) == ["mine.txt"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "demo").write_text("")
    with pytest.raises(RegressError, match="is a file"):
        create(tmp_path / "demo", scripted=True)


def test_an_empty_folder_will_do(tmp_path: Path) -> None:
    assert create(tmp_path, scripted=True).directory == tmp_path
    assert len(subjects(tmp_path)) == LEAST_COMMITS


def test_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RegressError, match="git was not found") as caught:
        create(tmp_path / "demo", scripted=True)
    assert "install git" in caught.value.fix


def test_a_failing_git_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'fatal: disk full' >&2\nexit 128\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    with pytest.raises(RegressError, match="git init failed") as caught:
        create(tmp_path / "demo", scripted=True)
    assert caught.value.why == "fatal: disk full"


@pytest.mark.parametrize("edit", [Edit("a", "x", "y"), Edit("a", "z", "y"), Edit("a", "", "new")])
def test_an_edit_that_does_not_fit_is_an_error(edit: Edit) -> None:
    with pytest.raises(ValueError):
        files.edited({"a": "x x"}, edit)


# -- which device --------------------------------------------------------------------------------------------------------


class Driver:
    """A CUDA driver library with so many devices; `init` is what cuInit answers."""

    def __init__(self, devices: int, init: int = 0) -> None:
        self._devices, self._init = devices, init

    def cuInit(self, flags: int) -> int:
        return self._init

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = self._devices
        return 0


def no_driver(name: str) -> Driver:
    raise OSError(f"{name}: cannot open shared object file")


@pytest.mark.parametrize(
    ("load", "devices"),
    [
        (lambda name: Driver(2), 2),
        (lambda name: Driver(0), 0),
        (lambda name: Driver(2, init=100), 0),
        (no_driver, 0),
    ],
)
def test_devices_are_those_of_the_driver(
    monkeypatch: pytest.MonkeyPatch, load: Callable[[str], Driver], devices: int
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", load)
    assert cuda_devices() == devices


@pytest.mark.parametrize(("devices", "is_scripted"), [(0, True), (1, False)])
def test_it_is_scripted_where_there_is_no_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, devices: int, is_scripted: bool
) -> None:
    monkeypatch.setattr("regress.commands.demo.cuda_devices", lambda: devices)
    created = create(tmp_path / "demo")
    assert created.scripted is is_scripted
    assert ("regress" in json.loads((created.directory / "asv.conf.json").read_text())) is is_scripted


@pytest.mark.parametrize(
    ("raised", "expected"),
    [(KeyboardInterrupt(), KeyboardInterrupt), (PermissionError(13, "Permission denied"), RegressError)],
)
def test_half_a_demo_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: BaseException, expected: type[BaseException]
) -> None:
    """Or the next one would find the folder in use."""
    commit, done = DemoRepository.commit, itertools.count()

    def twice(*arguments: Any) -> str:
        if next(done) == 2:
            raise raised
        return commit(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(DemoRepository, "commit", twice)
        with pytest.raises(expected):
            create(tmp_path / "d", scripted=True)
    assert create(tmp_path / "d", scripted=True).commits == LEAST_COMMITS
