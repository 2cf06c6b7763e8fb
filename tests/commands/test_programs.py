"""A program as a benchmark, from the command line: listed, checked, recorded."""

from __future__ import annotations

import json
from collections.abc import Callable

import jsonschema

from regress.report.json import schema
from tests.conftest import Project

BENCH = """
import json, random, sys
factor = float(open("factor").read())
def entry(name, ns):
    ns *= factor * random.gauss(1, 0.003)
    return {"name": name, "run_name": name, "run_type": "iteration", "cpu_time": ns, "real_time": 1.1 * ns, "time_unit": "ns"}
document = {"context": {"executable": "axpy"}, "benchmarks": [entry("BM_axpy/n:1024", 1e5), entry("BM_dot", 2e5)]}
json.dump(document, open(sys.argv[1], "w"))
"""
SUITE = """
class Axpy:
    command = ["{python}", "-S", "bench.py", "{output}"]
    format = "google-benchmark"
    tags = ["native"]
"""


def test_a_program_that_got_slower_is_found_and_recorded(project: Callable[..., Project]) -> None:
    p = project(machine="box")
    p.commit({"bench.py": BENCH, "factor": "1.0", "benchmarks/native.py": SUITE})
    p.commit({"factor": "1.08"}, "slower")
    listed = p.regress("list", "--tag", "native")
    assert "native.Axpy.BM_axpy(1024)  cpu time" in listed.out
    assert "2 cases" in listed.out
    done = p.regress("check", "HEAD~1", "HEAD", "--record", "--format", "json", "--rounds", "4")
    jsonschema.validate(json.loads(done.out), schema())
    by_metric = {(row["name"], row["metric"]): row for row in json.loads(done.out)["benchmarks"]}
    verdicts = {key: value["verdict"] for key, value in by_metric.items() if value["gates"]}
    assert (verdicts, done.code) == (
        {("native.Axpy.BM_axpy", "cpu_time"): "regressed", ("native.Axpy.BM_dot", "cpu_time"): "regressed"},
        1,
    )
    assert "explain" not in done.out.partition('"suggestions"')[2], "nothing can be profiled of a program"
    # Both sides are recorded, as results of their commits in one environment.
    compared = p.regress("compare", "HEAD~1", "HEAD")
    assert (compared.code, "2 regressed" in compared.out) == (1, True), compared.out + compared.err


def test_a_program_that_is_not_built_says_what_builds_it(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"benchmarks/native.py": 'class Axpy:\n    command, format = ["build/axpy", "{output}"], "nvbench"\n'})
    done = p.regress("list")
    assert "! native.Axpy\n    build/axpy cannot be run on" in done.out
    assert done.code == 3
    done = p.regress("run")
    assert done.code == 5
    assert "could be run" in done.err
    assert 'fix that program, or its build: "build"' in done.err
