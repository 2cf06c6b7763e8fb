"""What a change comes from, on the scripted device: real checks, real profiles, each in processes of its own."""

from __future__ import annotations

import json
import re
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regress.history import explanations_in
from regress.model import KeptExplanation
from regress.session import Request, Session
from tests.conftest import Project, interrupted, start

BASE = """
import regress_scripted as d
def adds(): d.kernel("norm", 50e-6)
def replaces(): d.kernel("before", 5e-6); d.kernel("tensor_gemm", 50e-6); d.kernel("after", 5e-6)
def waits(): d.kernel("sum", 50e-6)
def host(): d.kernel("scale", 50e-6); d.host(10e-6)
def same(): d.kernel("same", 50e-6)
"""
HEAD = """
import regress_scripted as d
def adds(): d.kernel("norm", 50e-6); d.kernel("mask", 10e-6)
def replaces(): d.kernel("before", 5e-6); d.kernel("plain_gemm", 80e-6); d.kernel("after", 5e-6)
def waits(): d.kernel("sum", 50e-6); d.synchronize(); d.host(30e-6)
def host(): d.kernel("scale", 50e-6); d.host(100e-6)
def same(): d.kernel("same", 50e-6)  # as before
"""
NAMES = ("adds", "replaces", "waits", "host", "same")
SUITE = "import proj\n" + "".join(f"def cudatime_{name}(): proj.{name}()\n" for name in NAMES)

Make = Callable[..., Project]


def planted(make: Make, **settings: object) -> Project:
    p = make(check_rounds=3, memory_rounds=0, **settings)
    p.commit({"proj/__init__.py": BASE, "benchmarks/b.py": SUITE, "notes.md": ""}, "base")
    p.commit({"notes.md": "more"}, "notes")
    p.commit({"proj/__init__.py": HEAD}, "slower in each way")
    return p


def explained(p: Project, name: str, *more: str) -> dict[str, Any]:
    """The document of `regress explain`."""
    result = p.regress("explain", f"b.cudatime_{name}", "HEAD~2", "HEAD", "--format", "json", *more)
    assert "Traceback" not in result.err
    document: dict[str, Any] = json.loads(result.out)
    assert result.code == document["exit_code"]
    return document


def only(document: dict[str, Any]) -> dict[str, Any]:
    (explained_case,) = document["explained"]
    explanation = explained_case["explanation"]
    parts = sum(explanation[name] for name in ("kernels_s", "copies_s", "idle_s", "unexplained_s"))
    assert parts == pytest.approx(explanation["head_s"] - explanation["base_s"])
    assert all(Path(trace).is_file() for side in ("base", "head") for trace in explained_case[side]["traces"])
    return dict(explained_case)


def kinds(explained_case: dict[str, Any]) -> dict[str, str]:
    return {
        (kernel["head"] or kernel["base"])["name"]: kernel["kind"]
        for kernel in explained_case["explanation"]["kernels"]
    }


def test_a_kernel_that_was_added(project: Make) -> None:
    document = explained(planted(project), "adds")
    case = only(document)
    assert document["exit_code"] == 0
    assert kinds(case) == {"norm": "same", "mask": "new"}
    assert case["explanation"]["causes"][0]["kind"] == "added kernel"
    assert case["explanation"]["kernels_s"] == pytest.approx(10e-6, rel=0.1)
    assert case["measured_s"] == pytest.approx(10e-6, rel=0.1)
    assert (case["files"], [commit["subject"] for commit in case["commits"]]) == (
        ["notes.md", "proj/__init__.py"],
        ["notes", "slower in each way"],
    )
    assert [len(case[side]["calls_s"]) for side in ("base", "head")] == [3, 3]


def test_a_kernel_that_was_replaced_is_found_by_its_place(project: Make) -> None:
    case = only(explained(planted(project), "replaces"))
    (replaced,) = (kernel for kernel in case["explanation"]["kernels"] if kernel["kind"] != "same")
    assert (replaced["kind"], replaced["matched"]) == ("replaced", "position")
    assert [replaced[side]["name"] for side in ("base", "head")] == ["tensor_gemm", "plain_gemm"]
    assert case["explanation"]["causes"][0]["kind"] == "replaced kernel"
    assert " slower: plain_gemm runs instead of tensor_gemm in scripted::plain_gemm (medium" in case["sentence"]


def test_a_wait(project: Make) -> None:
    case = only(explained(planted(project), "waits"))
    assert case["explanation"]["synchronizations"] == {"base": 0, "head": 1}
    assert case["explanation"]["causes"][0]["kind"] == "synchronization"
    assert case["explanation"]["idle_s"] > 0.9 * case["explanation"]["difference_s"]


def test_a_slower_host(project: Make) -> None:
    case = only(explained(planted(project), "host"))
    assert case["explanation"]["causes"][0]["kind"] == "host"
    assert set(kinds(case).values()) == {"same"}


def test_what_does_not_reproduce_is_not_profiled(project: Make) -> None:
    p = planted(project)
    document = explained(p, "same")
    assert (document["exit_code"], document["explained"]) == (5, [])
    (error,) = document["errors"]
    assert error["message"] == "can't explain: the difference does not reproduce"
    assert "b.cudatime_same gpu_time unchanged" in error["detail"]


def test_a_time_of_the_host_that_the_profiles_do_not_show_is_not_explained(project: Make) -> None:
    p = planted(project)
    unseen = "d.host(10e-6 if any(name.endswith('.profiling') for name in sys.modules) else 100e-6)"
    p.commit({"proj/__init__.py": "import sys\n" + BASE.replace("d.host(10e-6)", unseen)}, "slower when not looked at")
    result = p.regress("explain", "host", "HEAD~2", "HEAD", "--rounds", "4")
    assert result.code == 5
    assert "can't explain: the profiles do not show the difference" in result.out
    assert re.search(
        r"without a profiler: b.cudatime_host host_time regressed, .*; with one, the profiles show", result.out
    )


def test_what_became_faster_is_explained_too(project: Make) -> None:
    p = planted(project)
    page = p.root.parent / "why.html"
    result = p.regress("explain", "adds", "HEAD", "HEAD~1", "--html", str(page))
    assert result.code == 0
    assert re.search(
        r"b\.cudatime_adds is \S+ % faster: mask was dropped in scripted::mask: 10.\d us a call less", result.out
    )
    assert "- mask" in result.out
    shown = re.findall(r'"side":"(\w+)","lane":"kernels","name":"(\w+)"', page.read_text())
    assert shown == [("base", "norm"), ("base", "mask")] * 3 + [("head", "norm")] * 3


def test_of_several_cases_the_one_that_changed_most(project: Make) -> None:
    p = planted(project)
    result = p.regress("explain", "adds|replaces|same", "HEAD~1", "-q")
    assert result.out.startswith("b.cudatime_replaces is ")


def test_without_a_profiler_nothing_is_measured(project: Make, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    python = tmp_path / "bare" / "bin" / "python"
    p = planted(project, device="cpu", environments={"bare": {"python": str(python)}})
    result = p.regress("explain", "b.cudatime_adds", "HEAD~2", "HEAD", "--head-env", "bare")
    assert (result.code, result.out) == (5, "")
    assert result.err.splitlines() == [
        f"error: no profile can be taken on head {p.git('rev-parse', '--short=8', 'HEAD')}",
        f"why:   {python} has no torch, whose profiler is used",
        f"fix:   {python} -m pip install torch",
    ]


def test_a_check_explains_what_makes_it_fail(project: Make) -> None:
    p = planted(project)
    result = p.regress("check", "HEAD~1", "--explain", "--format", "json", "--output", f"markdown={p.root / 'c.md'}")
    document = json.loads(result.out)
    assert result.code == document["exit_code"] == 1
    regressed = {row["name"] for row in document["benchmarks"] if row["verdict"] == "regressed" and row["gates"]}
    assert {row["name"] for row in document["explained"]} == regressed >= {"b.cudatime_adds", "b.cudatime_replaces"}
    assert "b.cudatime_same" not in regressed
    assert document["suggestions"][0]["command"].startswith("regress explain b.cudatime_")
    text = (p.root / "c.md").read_text()
    assert "plain_gemm runs instead of tensor_gemm" in text
    assert text.count("<summary>where the time went</summary>") == len(regressed)


def test_verdicts_and_what_was_explained_outlive_ctrl_c_while_profiles_are_taken(project: Make) -> None:
    p = planted(project)
    mark = p.root.parent / "profiling"
    stops = f"""
def hold():
    import sys, time
    if "_regress_measure.profiling" in sys.modules:
        open({str(mark)!r}, "w").close()
        time.sleep(600)
"""
    p.commit({"proj/__init__.py": HEAD.replace("def adds(): d", "def adds(): hold(); d") + stops})
    words = ("check", "HEAD~3", "-b", "adds", "-b", "replaces", "--explain", "--format", "json")
    result = interrupted(start(p.root, *words), mark)
    document = json.loads(result.out)
    assert (result.code, document["exit_codes"]) == (130, [130, 1])
    assert [row["verdict"] for row in document["benchmarks"] if row["metric"] == "gpu_time"] == ["regressed"] * 2
    assert "interrupted: the verdicts are complete, 1 of 2 explained" in document["warnings"]
    assert [str(explanation.found.case) for explanation in kept(p, "cache")] == ["b.cudatime_replaces"]


def kept(p: Project, where: str) -> list[KeptExplanation]:
    """What is kept below results_dir ("history"), or in the cache."""
    root = p.root / where if where == "history" else Session(Request(p.root)).cache / "history"
    return list(explanations_in(root))


@pytest.mark.slow
def test_an_explanation_stays_in_the_cache_or_is_recorded(project: Make) -> None:
    p = planted(project)
    base, head = (p.git("rev-parse", word) for word in ("HEAD~2", "HEAD"))
    case = only(explained(p, "adds"))
    assert not (p.root / "history").exists()
    (explanation,) = kept(p, "cache")
    assert (explanation.base, explanation.head, str(explanation.found.case)) == (base, head, "b.cudatime_adds")
    assert explanation.found.explanation is not None
    assert explanation.found.explanation.causes[0].text == case["explanation"]["causes"][0]["text"]
    assert [one.kind for one in explanation.found.explanation.kernels] == ["new"]
    only(explained(p, "adds", "--record"))
    (recorded,) = kept(p, "history")
    assert (recorded.base, recorded.head, recorded.environment) == (base, head, explanation.environment)
    names = {path.name for path in (p.root / "history" / recorded.machine).iterdir()}
    assert f"{head[:8]}-{recorded.environment}.rounds.jsonl" in names
    assert f"{head[:8]}-{recorded.environment}.explained.jsonl" in names


def test_a_check_records_what_it_explains_where_it_records_results(project: Make) -> None:
    p = planted(project)
    assert p.regress("check", "HEAD~1", "-b", "adds", "-b", "same", "--explain", "--record", "-q").code == 1
    assert [str(explanation.found.case) for explanation in kept(p, "history")] == ["b.cudatime_adds"]
    assert kept(p, "cache") == []


def test_what_is_no_commit_of_its_own_is_explained_and_not_kept(project: Make) -> None:
    p = planted(project)
    p.write({"proj/__init__.py": HEAD.replace('kernel("mask", 10e-6)', 'kernel("mask", 90e-6)')})
    assert p.regress("explain", "adds", "HEAD", "-q").code == 0
    assert kept(p, "cache") == []


@pytest.mark.slow
def test_what_cannot_be_kept_is_told_all_the_same(project: Make) -> None:
    p = planted(project)
    only(explained(p, "adds"))
    (path,) = (Session(Request(p.root)).cache / "history").rglob("*.explained.jsonl")
    path.unlink()
    path.mkdir()
    document = explained(p, "adds")
    assert (document["exit_code"], len(document["explained"])) == (0, 1)
    assert any(warning.startswith("the explanation is not kept: cannot") for warning in document["warnings"])
