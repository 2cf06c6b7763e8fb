"""`--gpus`: a check and a run on several scripted devices, and how real ones are held."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from regress.errors import NothingMeasured
from regress.history import Store
from regress.model import Case
from regress.run import device_lock, gpus
from regress.run.device_lock import held
from regress.session import Request, Session
from tests.conftest import Project, Result, interrupted, start
from tests.run.test_clocks import Nvml
from tests.run.test_execute import Watch

SUITE = """
import regress_scripted as device
import proj
class Sizes:
    params = [1, 2, 3, 4, 5, 6, 7, 8]
    def cudatime_work(self, n): device.kernel("k", n * 50e-6 * proj.FACTOR)
"""
CASES = {f"b.Sizes.cudatime_work({n})" for n in range(1, 9)}


def document(result: Result) -> dict[str, Any]:
    assert result.out, result.err
    return dict(json.loads(result.out))


def verdicts(report: dict[str, Any]) -> dict[str, str]:
    return {
        f"{row['name']}({', '.join(row['params'])})": row["verdict"] for row in report["benchmarks"] if row["gates"]
    }


def gpus_of(p: Project, sha: str) -> dict[str, set[str]]:
    """By case: the devices that a commit's recorded rounds were on."""
    (recorded,) = Store(p.root / "history").load(sha).recorded
    cards: dict[str, set[str]] = {}
    for round in recorded.rounds:
        cards.setdefault(str(Case(round.name, tuple(round.params))), set()).add(round.facts["gpu_uuid"])
    return cards


@pytest.fixture
def p(project: Callable[..., Project]) -> Project:
    p = project(run_rounds=2)
    p.commit({"proj/__init__.py": "FACTOR = 1.0\n", "benchmarks/b.py": SUITE})
    return p


@pytest.mark.slow
def test_a_check_in_steps_finds_on_several_gpus_what_it_finds_on_one(p: Project) -> None:
    p.commit({"proj/__init__.py": "FACTOR = 1.2\n"})
    one = document(p.regress("check", "--format", "json", "-b", "work"))
    result = p.regress("check", "--format", "json", "-b", "work", "--gpus", "all", "--output", "text=seen.txt")
    several = document(result)
    timed = [row for row in several["benchmarks"] if row["metric"] == "gpu_time"]
    assert {row["verdict"] for row in timed} == {"regressed"}
    assert all("confirmed" in row["reason"] for row in timed)
    assert verdicts(several) == verdicts(one)
    assert "on 4 GPUs at once" in (p.root / "seen.txt").read_text()
    assert any("host_time and wall_time are left out of 8 cases" in warning for warning in several["warnings"])
    assert not {"host_time", "wall_time"} & {row["metric"] for row in several["benchmarks"]}
    assert result.err.count("trial runs: 0 of 16") == 1, "one line over all"


def test_what_measures_again_does_so_on_the_same_gpus(p: Project) -> None:
    p.commit({"proj/__init__.py": "FACTOR = 1.2\n"})
    report = document(p.regress("check", "--format", "json", "-b", "b.Sizes.cudatime_work(1)", "--gpus", "1"))
    commands = {row["word"]: row["command"] for row in report["suggestions"]}
    assert " --gpus 1 " in commands["again"]
    assert "--gpus" not in commands["why"], "explain measures on one"


def test_a_case_is_on_one_gpu_over_commits_and_selections(p: Project) -> None:
    p.regress("run", "--gpus", "0,1")
    before = gpus_of(p, p.git("rev-parse", "HEAD"))
    after_sha = p.commit({"proj/__init__.py": "FACTOR = 1.1\n", "benchmarks/c.py": SUITE})
    result = p.regress("run", "--gpus", "1,scripted", "-b", r"b.Sizes.cudatime_work\([1-4]\)")
    assert result.code == 0, result.err
    after = gpus_of(p, after_sha)
    assert set(before) == CASES
    assert {uuid for uuids in before.values() for uuid in uuids} == {"scripted", "scripted-1"}
    assert after == {case: before[case] for case in sorted(CASES)[:4]}
    (machine,) = (p.root / "history").glob("*/machine.json")
    assert json.loads(machine.read_text())["gpu_uuid"] == "scripted, scripted-1"


def test_a_renamed_benchmark_is_compared_on_its_gpu(p: Project) -> None:
    p.commit({"benchmarks/b.py": SUITE})
    p.commit({"benchmarks/b.py": SUITE.replace("class Sizes:", "class Renamed:\n    was = 'b.Sizes'")})
    report = document(p.regress("check", "--format", "json", "--gpus", "all", "--suite", "own"))
    assert set(verdicts(report).values()) == {"unchanged"}
    assert all("renamed" in row["reason"] for row in report["benchmarks"] if row["metric"] == "gpu_time")


def test_ctrl_c_keeps_what_the_lanes_have_measured(p: Project, tmp_path: Path) -> None:
    """The third visit to a case on either side says when."""
    mark = tmp_path / "mark"
    waits = f"""
    def setup(self, n):
        import pathlib, os
        count = pathlib.Path({str(tmp_path)!r}) / f"visits-{{n}}"
        with open(count, "a") as file: file.write(f"{{os.getpid()}} ")
        if len(set(count.read_text().split())) > 5: pathlib.Path({str(mark)!r}).touch()
"""
    p.commit({"benchmarks/b.py": SUITE + waits})
    p.commit({})
    result = interrupted(start(p.root, "check", "--rounds", "500", "--gpus", "0,1", "--format", "json"), mark)
    report = document(result)
    assert (result.code, report["verdict"]) == (130, "INTERRUPTED")
    assert any(row["ratio"] for row in report["benchmarks"] if row["metric"] == "gpu_time")


def test_gpus_that_are_not_there_are_refused_before_anything_is_measured(p: Project) -> None:
    for words, what in (("0,7", "'7' names no GPU"), ("0,", "has an empty name")):
        result = p.regress("run", "--gpus", words)
        assert (result.code, result.out) == (2, "")
        assert what in result.err
    result = p.regress("run", "--gpus", "0", "--device", "cpu")
    assert (result.code, "the device is set to cpu" in result.err) == (2, True)


# -- how they are held ---------------------------------------------------------------------------------------------------

FIRST, SECOND = "GPU-1", "GPU-2"


class TwoDevices(Nvml):
    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        return uuid

    def nvmlDeviceSetGpuLockedClocks(self, device: str, low: int, high: int) -> None:
        self.calls.append(("SetGpu", device))

    def nvmlDeviceResetGpuLockedClocks(self, device: str) -> None:
        self.calls.append(("ResetGpu", device))


@pytest.fixture
def session(project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Session]:
    """Makes sessions on a machine with two GPUs, which the driver shows in the other order."""
    p = project("held", device="cuda", cache_dir="cache", lock_dir="locks")
    monkeypatch.setattr(gpus, "shown", lambda kind: [SECOND, FIRST])
    return lambda **more: Session(Request(start=p.root, gpus=("all",), **more))


def test_gpus_are_held_together_in_the_order_of_their_uuids(
    session: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []

    def spy(uuid: str, *rest: Any) -> Any:
        taken.append(uuid)
        return held(uuid, *rest)

    monkeypatch.setattr(device_lock, "held", spy)
    locks = session().config.root / "locks"
    with ExitStack() as others:
        others.enter_context(held(SECOND, locks, print))
        with pytest.raises(NothingMeasured, match=rf"{SECOND} is being measured by process {os.getpid()} of"):
            with session().devices.held(Watch()):
                raise AssertionError("the second one is held")
        assert taken == [FIRST, SECOND]
        with held(FIRST, locks, print):
            pass  # it was given back
    with session().devices.held(Watch()):
        with pytest.raises(NothingMeasured, match=FIRST):
            with session().devices.held(Watch()):
                raise AssertionError("both are held")


def test_the_clocks_of_every_gpu_are_locked_and_given_back(
    session: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml = TwoDevices()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    with session(lock_clocks=True).devices.held(Watch()) as words:
        assert [call for call in nvml.calls if call[0] == "SetGpu"] == [("SetGpu", FIRST), ("SetGpu", SECOND)]
        assert words.count("SM clock locked at 1980 MHz") == 1
    assert {call for call in nvml.calls if call[0] == "ResetGpu"} == {("ResetGpu", FIRST), ("ResetGpu", SECOND)}
