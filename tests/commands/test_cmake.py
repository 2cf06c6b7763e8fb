"""A CMake project with programs of Google Benchmark, and a commit that made one of them 8 % slower: from check to report.

The programs are real and their times are not: each states what it has counted (`UseManualTime`), so that no clock decides.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable

import pytest

from tests.conftest import Project

CMAKE = """
cmake_minimum_required(VERSION 3.16)
project(vec CXX)
find_package(benchmark REQUIRED)
foreach(name axpy dot)
  add_executable(${name} bench/${name}.cpp)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} benchmark::benchmark_main)
endforeach()
"""
VEC = """
#pragma once
#include <cstddef>
static std::size_t steps = 0;
inline void axpy(std::size_t n) {{ steps += n{more}; }}
inline void dot(std::size_t n) {{ steps += 2 * n; }}
"""
BENCH = """
#include <benchmark/benchmark.h>
#include "vec/vec.hpp"
static void BM_{name}(benchmark::State& state) {{
  for (auto _ : state) {{
    steps = 0;
    {name}(state.range(0));
    state.SetIterationTime(steps * 1e-9);
  }}
}}
BENCHMARK(BM_{name})->ArgName("n")->Arg(10000)->Arg(90000)->UseManualTime()->Iterations(3);
"""
SUITE = """
class Axpy:
    command = ["build/axpy", "--benchmark_out={output}", "--benchmark_out_format=json"]
    list_command = ["build/axpy", "--benchmark_list_tests=true"]
    format = "google-benchmark"
class Dot:
    command = ["build/dot", "--benchmark_format=json"]
    format = "google-benchmark"
"""


def has_google_benchmark() -> bool:
    words = ["c++", "-E", "-x", "c++", "-include", "benchmark/benchmark.h", os.devnull]
    installed = all(map(shutil.which, ("cmake", "c++")))
    return installed and subprocess.run(words, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
def test_the_commit_is_found_by_check_sweep_bisect_and_report(
    project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_google_benchmark():
        pytest.skip("needs cmake and Google Benchmark (libbenchmark-dev)")
    monkeypatch.setenv("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 1))
    p = project(machine="box", device="cpu", build=["cmake -S . -B build", "cmake --build build"])
    first = p.commit(
        {
            ".gitignore": "build/\n__pycache__/\n",
            "CMakeLists.txt": CMAKE,
            "vec/vec.hpp": VEC.format(more=""),
            **{f"bench/{name}.cpp": BENCH.format(name=name) for name in ("axpy", "dot")},
            "benchmarks/native.py": SUITE,
        }
    )
    p.commit({"vec/README": "axpy and dot"}, "readme")
    slower = p.commit({"vec/vec.hpp": VEC.format(more=" + n * 8 / 100")}, "axpy: a second pass")
    p.commit({"vec/README": "dot and axpy"}, "readme again")
    done = p.regress("check", first, "HEAD", "--format", "json")
    rows = [
        (row["name"], row["verdict"], round(row["ratio"], 4))
        for row in json.loads(done.out)["benchmarks"]
        if row["gates"]
    ]
    axpy, dot = ("native.Axpy.BM_axpy", "regressed", 1.08), ("native.Dot.BM_dot", "unchanged", 1.0)
    assert (sorted(rows), done.code) == ([axpy, axpy, dot, dot], 1), done.err
    swept = p.regress("sweep", "ALL")
    assert "4 of 4 commits measured" in swept.out, swept.out + swept.err
    bisected = p.regress("bisect", "native.Axpy.BM_axpy(90000)", first, "HEAD")
    assert (bisected.code, f"FOUND  {slower[:8]} axpy: a second pass" in bisected.out) == (0, True), bisected.out
    assert "4 commits" in p.regress("report").out
    assert "native.Axpy.BM_axpy(90000)" in p.regress("export", "--csv").out
