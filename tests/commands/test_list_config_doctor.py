"""The commands that judge nothing: `list`, `config` and `doctor`."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from regress.commands.doctor import machine
from regress.measure.backend.base import Backend
from regress.measure.windows import Agreement, agreement
from regress.report.json import schema
from tests.conftest import Project, Result, regress

CODE = "import regress_scripted as d\ndef work(): d.kernel('k', 50e-6)\n"
SUITE = """
import proj
class Sizes:
    params = [[1, 2], ["a b"]]
    tags = ["slow", "nightly"]
    def cudatime_work(self, n, how): proj.work()
def time_work(): proj.work()
time_work.tags = "quick"
def peakmem_work(): proj.work()
def track_size(): return 7
track_size.unit = "GB/s"
"""


def document(result: Result) -> dict[str, Any]:
    assert result.out, result.err
    data: dict[str, Any] = json.loads(result.out)
    jsonschema.Draft202012Validator(schema()).validate(data)
    return data


# -- list ----------------------------------------------------------------------------------------------------------------


def test_list_shows_names_metrics_tags_and_after_a_run_what_they_cost(project: Callable[..., Project]) -> None:
    p = project(run_rounds=2)
    p.commit({"proj/__init__.py": CODE, "benchmarks/b.py": SUITE})
    before = document(p.regress("list", "--format", "json"))
    seen = {(row["name"], *row["params"]): row for row in before["benchmarks"]}
    assert {name: (row["metric"], row["needs_device"], row["tags"]) for name, row in seen.items()} == {
        ("b.Sizes.cudatime_work", "1", "'a b'"): ("gpu_time", True, ["slow", "nightly"]),
        ("b.Sizes.cudatime_work", "2", "'a b'"): ("gpu_time", True, ["slow", "nightly"]),
        ("b.time_work",): ("wall_time", False, ["quick"]),
        ("b.peakmem_work",): ("peak_rss", False, []),
        ("b.track_size",): ("value", False, []),
    }
    assert {row["cost_s"] for row in before["benchmarks"]} == {None}

    assert p.regress("run", "-b", "Sizes", "-b", "track", "-q").code == 0
    after = document(p.regress("list", "--format", "json"))
    costs = {row["name"]: row["cost_s"] for row in after["benchmarks"]}
    assert 0 < costs["b.Sizes.cudatime_work"] < 60
    assert costs["b.track_size"] > 0
    assert (costs["b.time_work"], costs["b.peakmem_work"]) == (None, None)
    text = p.regress("list", "-b", "Sizes").out
    assert "slow, nightly" in text
    assert "2 cases" in text


def test_list_quiet_is_names_that_b_takes(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": CODE, "benchmarks/b.py": SUITE})
    names = p.regress("list", "-q", "-b", "Sizes", "-b", "b.time_work").out.splitlines()
    assert names == ["b.Sizes.cudatime_work(1, 'a b')", "b.Sizes.cudatime_work(2, 'a b')", "b.time_work"]
    assert p.regress("list", "-q", "-b", names[1]).out.splitlines() == [names[1]]


def test_list_of_a_suite_without_benchmarks_is_5(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": "", "benchmarks/b.py": "def tme_x(): pass\n"})
    result = p.regress("list")
    assert (result.code, result.out) == (5, "")
    assert result.err.startswith("error: there is no benchmark in ")


def test_list_without_a_match_is_5(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": CODE, "benchmarks/b.py": SUITE})
    result = p.regress("list", "-b", "softmx", "-b", "atn")
    assert (result.code, result.out) == (5, "")
    assert result.err.splitlines() == [
        "error: no benchmark matches 'softmx' or 'atn'",
        f"why:   searched in {p.root}/benchmarks",
        "fix:   regress list",
    ]


def test_tags_stand_on_functions_classes_and_modules_and_the_nearest_counts(project: Callable[..., Project]) -> None:
    p = project()
    suite = """
tags = "core"
def time_plain(): pass
def time_own(): pass
time_own.tags = ("slow", "quick")
class Soft:
    tags = ["nightly", "slow"]
    def time_of_class(self): pass
    def time_of_method(self): pass
    time_of_method.tags = "core"
"""
    p.commit({"benchmarks/b.py": suite})

    def named(*tags: str) -> list[str]:
        return p.regress("list", "-q", *(word for tag in tags for word in ("--tag", tag))).out.split()

    assert named("core") == ["b.time_plain", "b.Soft.time_of_method"]
    assert named("slow") == ["b.time_own", "b.Soft.time_of_class"]
    assert named("quick", "nightly") == ["b.time_own", "b.Soft.time_of_class"]
    both = p.regress("list", "-q", "-b", "Soft", "--tag", "core")
    assert both.out.split() == ["b.Soft.time_of_method"]
    missing = p.regress("list", "-b", "Soft", "--tag", "cores")
    assert (missing.code, missing.err.splitlines()[0]) == (
        5,
        "error: no benchmark matches 'Soft' and the tag 'cores'",
    )


def test_list_names_a_module_that_cannot_be_imported_and_shows_the_others(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": CODE, "benchmarks/b.py": SUITE, "benchmarks/bad.py": "\nimport not_there\n"})
    result = p.regress("list")
    assert result.code == 3
    assert "b.time_work" in result.out
    assert "bad.py:2" in result.out
    assert "not_there" in result.out


# -- config --------------------------------------------------------------------------------------------------------------


def test_config_says_what_counts_and_where_it_came_from(project: Callable[..., Project]) -> None:
    p = project(memory_threshold="15%", run_rounds=7, build=["make"])
    arguments = ("--device", "cpu", "--time-threshold", "7%", "--machine", "box")
    settings = document(p.regress("config", *arguments, "--format", "json"))["settings"]
    values = {setting["name"]: (setting["value"], setting["source"]) for setting in settings}
    assert len(values) == len(settings)
    expected = {
        "device": ("cpu", "command line"),
        "time_threshold": (0.07, "command line"),
        "machine": ("box", "command line"),
        "memory_threshold": (0.15, "asv.conf.json"),
        "run_rounds": (7, "asv.conf.json"),
        "build": (["make"], "asv.conf.json"),
        "results_dir": (str(p.root / "history"), "asv.conf.json"),
        "check_rounds": (0, "default"),
        "html_dir": (str(p.root / "html"), "default"),
    }
    assert {name: values[name] for name in expected} == expected
    assert values["cache_dir"][0].startswith(os.environ["REGRESS_CACHE_DIR"])
    assert values["cache_dir"][1] == "$REGRESS_CACHE_DIR"


def test_a_cache_that_git_would_take_is_told_of(
    project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    p = project()
    monkeypatch.setenv("REGRESS_CACHE_DIR", "cache")
    warning = (
        f"the cache is in the working tree, where git does not ignore it: {p.root / 'cache'} ($REGRESS_CACHE_DIR); "
        "fix: name a folder outside, or add /cache/ to .gitignore"
    )
    assert document(p.regress("config", "--format", "json"))["warnings"] == [warning]
    check = checks(p.regress("doctor", "--format", "json"))["configuration"]
    assert (check["state"], "; fix: ".join((check["found"], check["fix"]))) == ("warn", warning)
    p.write({".gitignore": "/cache/\n"})
    assert document(p.regress("config", "--format", "json"))["warnings"] == []


def test_config_as_text_is_one_line_a_setting(project: Callable[..., Project]) -> None:
    p = project()
    lines = p.regress("config", "--memory-threshold", "0.2").out.splitlines()
    (threshold,) = [line for line in lines if line.split()[:1] == ["memory_threshold"]]
    assert threshold.split() == ["memory_threshold", "0.2", "command", "line"]
    (device,) = [line for line in lines if line.split()[:1] == ["device"]]
    assert device.split() == ["device", '"fake"', "asv.conf.json"]


@pytest.mark.parametrize("command", ["config", "list", "check", "run"])
def test_an_unknown_setting_is_2_with_the_nearest_name(project: Callable[..., Project], command: str) -> None:
    p = project(time_treshold=0.05)
    result = p.regress(command)
    assert (result.code, result.out) == (2, "")
    assert result.err.splitlines()[0] == 'error: unknown setting "time_treshold" (asv.conf.json)'
    assert result.err.splitlines()[-1] == 'fix:   write "time_threshold"'


def test_a_configuration_elsewhere_is_named_with_config(project: Callable[..., Project], tmp_path: Path) -> None:
    p = project(run_rounds=9)
    result = regress(tmp_path, "config", "--config", str(p.root / "asv.conf.json"), "--format", "json")
    (rounds,) = [setting for setting in document(result)["settings"] if setting["name"] == "run_rounds"]
    assert rounds["value"] == 9
    assert regress(tmp_path, "config", "--config", "nothing.json").code == 2


# -- doctor --------------------------------------------------------------------------------------------------------------


def checks(result: Result) -> dict[str, dict[str, Any]]:
    """Name -> check; every check that is not well says what to do."""
    listed = document(result)["checks"]
    assert all(row["fix"] for row in listed if row["state"] == "fail")
    return {row["name"]: row for row in listed}


def test_doctor_is_content_with_a_good_project(project: Callable[..., Project]) -> None:
    p = project()
    base = p.commit({"proj/__init__.py": CODE, "benchmarks/b.py": SUITE})
    p.commit({})
    result = p.regress("doctor", "--format", "json")
    by_name = checks(result)
    assert result.code == 0
    assert {name for name, benchmark in by_name.items() if benchmark["state"] == "fail"} == set()
    assert {"Python", "device", "configuration", "repository", "suite", "cache", "results"} <= set(by_name)
    assert by_name["suite"]["found"] == "4 benchmarks, 1 of them on the device"
    assert by_name["repository"]["found"] == f"{p.root}; a check would compare with {base[:8]} (HEAD~1)"
    assert p.git("status", "--porcelain") == "", "looking leaves nothing behind"


@pytest.mark.parametrize(
    ("agreed", "state", "words"),
    [
        (
            Agreement(0.0014, 0.07, 1, True),
            "ok",
            "windows in turn on CPU 1 agree to 0.14 %, one after the other to 7 %",
        ),
        (Agreement(0.03, 0.07, 1, True), "warn", "host and wall times need many pairs"),
        (Agreement(0.0014, 0.07, None, True), "warn", "on whatever CPU agree to 0.14 %"),
        (Agreement(0.0014, 0.07, 0, False), "warn", "the kernel does not report when others had the CPU"),
    ],
)
def test_doctor_says_how_well_host_times_agree_here(
    monkeypatch: pytest.MonkeyPatch, agreed: Agreement, state: str, words: str
) -> None:
    monkeypatch.setattr(machine, "agreement", lambda clock: agreed)
    check = machine._host_clock()
    assert check.state == state
    assert words in check.found
    assert bool(check.fix) == (state == "warn")


def test_windows_are_taken_where_no_process_may_choose_its_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("not in this sandbox")

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    agreed = agreement(Backend())
    assert agreed.core is None
    assert 0 < agreed.in_turn < 1


def test_doctor_on_the_scripted_device_speaks_of_no_other(project: Callable[..., Project]) -> None:
    """What a CUDA device would lack says nothing of a suite whose times are stated by its code."""
    by_name = checks(project().regress("doctor", "--format", "json"))
    assert by_name["device"] == {
        "name": "device",
        "state": "ok",
        "found": 'scripted ("device" in the configuration): times are simulated, not measured',
        "fix": "",
    }
    assert not {"CUDA device", "NVML", "torch", "other processes"} & by_name.keys()


def test_doctor_warns_where_there_is_no_commit_to_compare_with(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": CODE, "benchmarks/b.py": SUITE})
    result = p.regress("doctor", "--format", "json")
    by_name = checks(result)
    assert (result.code, by_name["repository"]["state"], by_name["suite"]["state"]) == (0, "warn", "ok")
    assert "before the first commit" in by_name["repository"]["found"]


def test_doctor_fails_a_suite_that_is_broken(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": CODE, "benchmarks/b.py": SUITE, "benchmarks/bad.py": "import not_there\n"})
    p.commit({})
    result = p.regress("doctor")
    assert result.code == 5
    assert "bad.py:1: ModuleNotFoundError: No module named 'not_there'" in result.out
    assert result.out.splitlines()[-1].startswith("FAIL")


def test_doctor_fails_a_suite_that_is_not_there(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": CODE})
    assert "no benchmark in" in checks(p.regress("doctor", "--format", "json"))["suite"]["found"]
    shutil.rmtree(p.root / "benchmarks")
    p.commit({})
    result = p.regress("doctor", "--format", "json")
    assert result.code == 5
    assert checks(result)["suite"]["found"].startswith(f"there is no folder {p.root / 'benchmarks'}")


def test_doctor_outside_a_repository(project: Callable[..., Project], tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    result = regress(nowhere, "doctor", "--format", "json")
    by_name = checks(result)
    assert (result.code, by_name["project"]["state"]) == (0, "warn"), "the machine is fit"
    assert by_name["project"]["found"] == f"none in {nowhere} or above, so only the machine was checked"
    assert "regress init" in by_name["project"]["fix"]
    assert by_name["Python"]["state"] == by_name["cache"]["state"] == "ok", "what needs no project is looked at"
    assert "results" not in by_name

    p = project()
    shutil.rmtree(p.root / ".git")
    result = p.regress("doctor", "--format", "json")
    by_name = checks(result)
    assert (result.code, by_name["repository"]["state"]) == (5, "fail")
    assert "not in a git repository" in by_name["repository"]["found"]
    assert "suite" not in by_name, "said once"
    assert by_name["results"]["state"] == "ok"


def test_doctor_says_where_results_cannot_go(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": CODE, "benchmarks/b.py": SUITE, "history": "a file, not a folder"})
    check = checks(p.regress("doctor", "--format", "json"))["results"]
    assert check["state"] == "fail"
    assert str(p.root / "history") in check["found"]
