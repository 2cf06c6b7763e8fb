"""Attributes of another kind than they should be, the whole way: they cost no other benchmark, and no command."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.conftest import Project

CODE = "import regress_scripted as d\ndef work(): d.kernel('k', {seconds})\n"
SUITE = "import proj\ndef cudatime_work(): proj.work()\n"
ODD = (
    "was",
    "type",
    "unit",
    "threshold",
    "tags",
    "covers",
    "processes",
    "better",
    "dtype",
    "exact",
    "gpus",
    "ranks",
    "critical",
)
VALUES = ("7", "float('nan')", "[None]", "[[1]]", "{'a': 1}", "True", "len")


@pytest.mark.slow
def test_odd_declarations_cost_no_command(project: Callable[..., Project]) -> None:
    p = project(check_rounds=2, run_rounds=2)
    lines = [SUITE]
    for name in ODD:
        for at, value in enumerate(VALUES):
            lines.append(f"def track_{name}_{at}(): return 1\ntrack_{name}_{at}.{name} = {value}\n")
    for seconds in (50e-6, 60e-6):
        p.commit({"proj/__init__.py": CODE.format(seconds=seconds), "benchmarks/b.py": "".join(lines)})
        assert p.regress("run", "-q").code == 0
    for words in (("check",), ("compare", "HEAD~1", "HEAD")):
        result = p.regress(*words, "--format", "json")
        assert "internal error" not in result.err, result.err
        times = [row for row in json.loads(result.out)["benchmarks"] if row["metric"] == "gpu_time"]
        assert [(series["name"], series["ratio"]) for series in times] == [
            ("b.cudatime_work", pytest.approx(1.2, rel=0.02))
        ]
    for line in ("report", "export --csv", "list", "sweep ALL", "gate HEAD HEAD"):
        result = p.regress(*line.split())
        assert (result.code, "internal error" in result.err) == (0, False), result.err


NO_UTF8 = "import os, proj\nHALF = os.fsdecode(b'caf\\xe9')\ndef cudatime_work(): proj.work()\n"
"""HALF is what Python makes of a file name that is not UTF-8."""
SAID = """
class Odd:
    def __init__(self, said): self.said = said
    def __repr__(self): return self.said
def track_fails(): raise RuntimeError('cannot read ' + HALF)
def track_prints():
    import os
    os.write(1, b'caf\\xe9')
    os._exit(3)
def track_param(name): return 1
track_param.params = [[Odd(HALF), HALF]]
track_param.param_names = [HALF]
def track_unit(): return 1
track_unit.unit = HALF
track_unit.tags = [HALF]
track_unit.was = HALF
def skips(): raise NotImplementedError(HALF)
def track_skips(): return 1
track_skips.setup = skips
def track_named(): return 1
track_named.benchmark_name = 'b.track_' + HALF
"""


@pytest.mark.slow
def test_text_that_is_not_utf_8_ends_no_command(project: Callable[..., Project]) -> None:
    p = project(check_rounds=2, run_rounds=2)
    for seconds in (50e-6, 60e-6):
        p.commit({"proj/__init__.py": CODE.format(seconds=seconds), "benchmarks/b.py": NO_UTF8 + SAID})
        result = p.regress("run")
        assert (result.code, "internal error" in result.err) == (3, False), result.err
        assert all(words in result.out for words in ("b.track_param(caf\\udce9)", "is not UTF-8")), result.out
    lines = (
        "compare HEAD~1 HEAD --format json",
        "report",
        "export --csv",
        "list",
        "sweep ALL",
        "gate HEAD~1 HEAD",
        "check",
    )
    for line in (*lines, "check --format markdown", "check --format junit", "check --format github"):
        result = p.regress(*line.split())
        assert "internal error" not in result.err, result.err
        assert result.code in (0, 1, 3, 4), result.err
    (shard := p.root.parent / "shard").mkdir()
    assert p.regress("merge", "history").code == 2, "it is results_dir itself"
    (p.root / "history").rename(shard / "history")
    assert p.regress("merge", str(shard / "history")).code == 0


def test_a_machine_whose_name_is_no_text_is_refused(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": CODE.format(seconds=5e-5), "benchmarks/b.py": SUITE})
    result = p.regress("run", "--machine", "caf\udce9")
    assert (result.code, "cannot name a machine" in result.err) == (2, True), result.err
