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
    "critical",
)
VALUES = ("7", "float('nan')", "[None]", "[[1]]", "{'a': 1}", "True", "len")


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
        times = [each for each in json.loads(result.out)["benchmarks"] if each["metric"] == "gpu_time"]
        assert [(each["name"], each["ratio"]) for each in times] == [("b.cudatime_work", pytest.approx(1.2, rel=0.02))]
    for line in ("report", "export --csv", "list", "sweep ALL", "gate HEAD HEAD"):
        result = p.regress(*line.split())
        assert (result.code, "internal error" in result.err) == (0, False), result.err
