"""Each format, as its tool has written it, comes to cases with values.

written/ was made by running the tools: sums.cpp with Google Benchmark 1.7.1 (`--benchmark_repetitions=3`), test_sorting.py with
pytest-benchmark 5.3.1 (`--benchmark-json`), hyperfine 1.15 (`--export-json`), and nvbench of 66212f1 on an H200 (`--jsonbin`;
one of its states is kept). What else nvbench may write, and what cutlass_profiler does, is made here, by the schema of the
json_printer and the header of the performance_report.
"""

from __future__ import annotations

import array
import json
from pathlib import Path
from typing import Any

import pytest

from regress.errors import DocumentError
from regress.importers import Document, Given, benchmarks_of, read, read_list, rounds_of
from regress.importers.document import name_of, param
from regress.model import Case
from regress.run.plan import cases_of

WRITTEN = Path(__file__).parent / "written"


def by_case(document: Document) -> dict[str, Given]:
    return {str(Case(case.name, tuple(case.params.values()))): case for case in document.cases}


def test_google_benchmark_gives_families_arguments_and_repetitions() -> None:
    document = read(WRITTEN / "google_benchmark-1.json")
    cases = by_case(document)
    assert list(cases) == [
        "BM_sum<int>(1024)",
        "BM_sum<int>(65536)",
        "BM_sum<double>(1024, 3)",
        "BM_copy.short",
        "BM_fails",
        "Stack.Push(2)",
    ]
    assert (document.format, document.source) == ("google-benchmark", "sums")
    small, by_real_time = cases["BM_sum<int>(1024)"], cases["BM_sum<double>(1024, 3)"]
    assert small.params == {"n": "1024"}
    assert (small.metric, by_real_time.metric) == ("cpu_time", "wall_time")
    cpu = small.values["cpu_time"]
    assert len(cpu.samples) == 3
    assert cpu.value == sorted(cpu.samples)[1] == pytest.approx(2.96e-7, rel=0.05)  # 296 ns
    assert small.facts["bytes"] == pytest.approx(4096)  # as the source says
    assert by_real_time.facts["bytes"] == pytest.approx(8192)
    assert small.values["width"].value == 4
    assert (small.values["items_per_second"].unit, small.values["width"].unit) == ("1/s", "")
    assert cases["BM_copy.short"].facts["label"] == "by value"
    failure = cases["BM_fails"].failure
    assert failure is not None
    assert (failure.kind, failure.message) == ("error", "no input")


def test_aggregates_alone_have_a_median_and_no_samples() -> None:
    alone = by_case(read(WRITTEN / "google_benchmark-aggregates.json"))
    written = json.loads((WRITTEN / "google_benchmark-aggregates.json").read_text())
    median = next(row for row in written["benchmarks"] if row["name"] == "BM_sum<int>/n:1024_median")
    value = alone["BM_sum<int>(1024)"].values["cpu_time"]
    assert value.value == pytest.approx(median["cpu_time"] * 1e-9)
    assert value.samples == []


def test_what_google_benchmark_lists_are_the_cases_that_it_gives() -> None:
    listed = read_list(WRITTEN / "google_benchmark-list.txt", "google-benchmark")
    given = by_case(read(WRITTEN / "google_benchmark-1.json"))
    assert {name: case.metric for name, case in by_case(listed).items()} == {
        name: case.metric for name, case in given.items()
    }


def test_pytest_benchmark_gives_tests_with_their_parameters() -> None:
    document = read(WRITTEN / "pytest_benchmark.json")
    cases = by_case(document)
    assert list(cases)[:2] == ["t.test_sorting.test_sort('up', 10)", "t.test_sorting.test_sort('up', 1000)"]
    assert list(cases)[4:] == [
        "t.test_sorting.TestJoin.test_join",
        "t.test_sorting.test_object('sum')",  # a function is no value that JSON has
        "t.test_sorting.test_object('min')",
    ]
    written = json.loads((WRITTEN / "pytest_benchmark.json").read_text())["benchmarks"][0]["stats"]
    sort = cases["t.test_sorting.test_sort('up', 10)"]
    assert (sort.values["wall_time"].value, len(sort.values["wall_time"].samples)) == (
        written["median"],
        written["rounds"],
    )
    assert sort.values["length"].value == 10
    assert document.started_at == pytest.approx(1795982581, abs=86400)
    assert document.facts["python"].startswith("3.")


def test_hyperfine_gives_commands_with_what_was_put_in() -> None:
    cases = by_case(read(WRITTEN / "hyperfine.json"))
    command = "sh_-c_'exit_0;_echo_{n}'"
    assert list(cases) == [f"{command}(1)", "true(1)", f"{command}(2)", "true(2)"]
    times = next(iter(cases.values())).values
    assert len(times["wall_time"].samples) == 5
    assert {"user_time", "system_time"} <= times.keys()
    failure = by_case(read(WRITTEN / "hyperfine-failing.json"))["false"].failure
    assert failure is not None
    assert failure.message == "3 of 3 runs ended with exit code 1"


# -- nvbench -------------------------------------------------------------------------------------------------------------


def named(**values: Any) -> list[dict[str, str]]:
    kinds = {int: "int64", float: "float64", str: "string"}
    return [{"name": name, "type": kinds[type(value)], "value": str(value)} for name, value in values.items()]


def state(elements: int, dtype: str, seconds: float, samples: str = "", **more: Any) -> dict[str, Any]:
    """A state as json_printer writes it, with a file of samples."""
    summaries = [
        {"tag": "nv/cold/time/cpu/mean", "name": "CPU Time", "hint": "duration", "data": named(value=seconds * 1.5)},
        {"tag": "nv/cold/time/gpu/mean", "name": "GPU Time", "hint": "duration", "data": named(value=seconds)},
        {
            "tag": "nv/cold/bw/global/bytes_per_second",
            "hint": "byte_rate",
            "data": named(value=4.0 * elements / seconds),
        },
        {"tag": "nv/cold/sm_clock_rate/mean", "hint": "frequency", "data": named(value=1.98e9)},
        {"tag": "nv/batch/time/gpu/mean", "hint": "duration", "data": named(value=seconds * 0.9)},
        {"tag": "my/collisions", "name": "Collisions", "data": named(value=7)},
    ]
    if samples:
        summaries.append(
            {
                "tag": "nv/json/bin:nv/cold/sample_times",
                "hint": "file/sample_times",
                "data": named(filename=samples, size=3),
            }
        )
    axes = named(Elements=elements, T=dtype)
    return {"device": 0, "axis_values": axes, "summaries": summaries, "is_skipped": False, **more}


def nvbench(*states: dict[str, Any], version: str = "1.0.0") -> dict[str, Any]:
    return {
        "meta": {
            "argv": ["build/bench/axpy", "--jsonbin", "out.json"],
            "version": {"json": {"major": 1, "string": version}, "nvbench": {"string": "0.1.0", "git_sha": "66212f1"}},
        },
        "devices": [{"id": 0, "name": "NVIDIA H200", "sm_version": 900}],
        "benchmarks": [{"name": "axpy", "index": 0, "axes": None, "states": list(states)}],
    }


def written(path: Path, content: dict[str, Any]) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_nvbench_as_it_was_written_on_a_gpu() -> None:
    document = read(WRITTEN / "nvbench.json")
    (case,) = document.cases
    assert (case.name, case.params, case.failure) == ("mix", {"Elements": "4194304"}, None)
    assert (document.needs_device, document.facts["gpu"]) == (True, "NVIDIA H200")
    samples = case.values["gpu_time"].samples
    assert len(samples) == 189
    assert case.values["gpu_time"].value == pytest.approx(264.8e-6, rel=1e-3)
    assert case.values["batch_time"].value == pytest.approx(263e-6, rel=2e-3)
    assert 1.9e9 < case.facts["sm_clock_hz"] < 2.0e9


def test_nvbench_gives_cold_batch_and_host_times_and_samples_from_beside(tmp_path: Path) -> None:
    (tmp_path / "out.json-bin").mkdir()
    (tmp_path / "out.json-bin" / "0.bin").write_bytes(array.array("f", [1e-4, 1.1e-4, 1.5e-4]).tobytes())
    skipped = state(8, "F16", 1e-4, is_skipped=True, skip_reason="no F16 here")
    raised = state(8, "F64", 1e-4, is_skipped=True, skip_reason="Unexpected error: out of memory")
    content = nvbench(state(1024, "F32", 1.2e-4, "out.json-bin/0.bin"), skipped, raised)
    document = read(written(tmp_path / "out.json", content))
    assert (document.source, document.needs_device, document.facts["gpu"]) == ("axpy", True, "NVIDIA H200")
    case, without, broken = document.cases
    assert (case.name, case.metric, case.params) == ("axpy", "gpu_time", {"Elements": "1024", "T": "'F32'"})
    assert case.values["gpu_time"].value == pytest.approx(1.1e-4, rel=1e-6)  # the median of the samples
    assert case.values["gpu_time"].samples == pytest.approx([1e-4, 1.1e-4, 1.5e-4], rel=1e-6)
    assert case.values["wall_time"].value == pytest.approx(1.8e-4)
    assert case.values["batch_time"].value == pytest.approx(1.08e-4)
    assert case.values["my.collisions"].value == 7
    assert case.facts == {"sm_clock_hz": 1.98e9, "bytes": pytest.approx(4096)}
    assert [given.failure and given.failure.kind for given in (without, broken)] == ["skipped", "error"]


def test_nvbench_without_samples_has_their_mean_and_says_so(tmp_path: Path) -> None:
    (case,) = read(written(tmp_path / "a.json", nvbench(state(8, "F32", 2e-4)))).cases
    assert case.values["gpu_time"].value == 2e-4
    assert case.flags == ("nvbench wrote no samples: the value is their mean",)


def test_nvbench_lists_all_combinations_of_its_axes(tmp_path: Path) -> None:
    axes = [
        {"name": "Elements", "type": "int64", "flags": "pow2", "values": [{"input_string": "10", "value": 1024}]},
        {"name": "T", "type": "type", "flags": "", "values": [{"input_string": "F32"}, {"input_string": "F64"}]},
        {"name": "Density", "type": "float64", "flags": "", "values": [{"input_string": "1", "value": 1.0}]},
    ]
    listed = read_list(written(tmp_path / "l.json", {"benchmarks": [{"name": "axpy", "axes": axes}]}), "nvbench")
    assert list(by_case(listed)) == ["axpy(1024, 'F32', 1)", "axpy(1024, 'F64', 1)"]


# -- cutlass, and JSON of the author's own -------------------------------------------------------------------------------

CUTLASS = """\
Problem,Provider,OperationKind,Operation,Disposition,Status,gemm_kind,m,n,k,A,alpha,op_class,accum,Bytes,Flops,Flops/Byte,Runtime,GB/s,GFLOPs
1,CUTLASS,gemm,cutlass_tensorop_gemm_128x128,passed,success,universal,1024,512,256,f16:row,1,tensorop,f32,2048,4096,2,0.25,10,20
2,CUTLASS,gemm,cutlass_tensorop_gemm_128x128,incorrect,success,universal,64,64,64,f16:row,1,tensorop,f32,2048,4096,2,0.5,10,20
3,CUTLASS,gemm,cutlass_simt_gemm,not_supported,success,universal,64,64,64,f16:row,,simt,f32,0,0,0,0,,
"""


def test_cutlass_gives_operations_with_their_problems(tmp_path: Path) -> None:
    (tmp_path / "out.gemm.csv").write_text(CUTLASS)
    document = read(tmp_path / "out.gemm.csv")
    assert (document.format, document.needs_device) == ("cutlass", True)
    passed, incorrect, unsupported = document.cases
    assert passed.name == "cutlass_tensorop_gemm_128x128"
    assert list(passed.params) == ["Provider", "gemm_kind", "m", "n", "k", "A", "alpha"]
    assert (passed.params["m"], passed.params["A"]) == ("1024", "'f16:row'")
    assert passed.values["gpu_time"].value == pytest.approx(0.25e-3)
    assert passed.facts == {"bytes": 2048.0, "flops": 4096.0}
    failures = [(given.failure.kind, given.failure.message) for given in (incorrect, unsupported) if given.failure]
    assert failures == [("error", "incorrect, success"), ("skipped", "not_supported, success")]
    (tmp_path / "cut.csv").write_text(CUTLASS[:-80])
    with pytest.raises(DocumentError, match="not a document of cutlass"):
        read(tmp_path / "cut.csv")


MAPPING = {
    "cases": "out.kernels",
    "name": "kernel",
    "params": ["n"],
    "values": {"gpu_time": ["ms", "ms"], "rate": ["perf.gflops", "GFLOP/s"]},
    "error": "wrong",
}


def test_what_stands_where_is_declared(tmp_path: Path) -> None:
    kernels = [
        {"kernel": "axpy", "n": 8, "ms": [2.0, 3.0, 9.0], "perf": {"gflops": 5}},
        {"kernel": "dot", "n": 8, "wrong": "no memory"},
    ]
    path = written(tmp_path / "own.json", {"out": {"kernels": kernels}})
    axpy, dot = read(path, "json", MAPPING).cases
    assert (axpy.name, axpy.params, axpy.metric) == ("axpy", {"n": "8"}, "gpu_time")
    assert axpy.values["gpu_time"].value == pytest.approx(3e-3)
    assert axpy.values["gpu_time"].samples == pytest.approx([2e-3, 3e-3, 9e-3])
    assert (axpy.values["rate"].value, axpy.values["rate"].unit) == (5.0, "GFLOP/s")
    assert dot.failure is not None
    assert dot.failure.message == "no memory"
    by_name = written(tmp_path / "named.json", {"axpy": {"ms": 2.0}})
    (case,) = read(by_name, "json", {"values": {"gpu_time": ["ms", "ms"]}}).cases
    assert (case.name, case.values["gpu_time"].value) == ("axpy", 2e-3)


@pytest.mark.parametrize(
    "mapping, why",
    [
        ({}, "its mapping cannot be used: Object missing required field `values`"),
        ({**MAPPING, "case": "x"}, "its mapping cannot be used: Object contains unknown field `case`"),
        ({**MAPPING, "values": {"gpu_time": ["ms"]}}, "its mapping has no values, each with a key and a unit"),
        ({**MAPPING, "cases": "out.rows"}, "there is no out.rows"),
        ({**MAPPING, "values": {"gpu_time": ["kernel", "s"]}}, "kernel of axpy is 'axpy', not a number"),
    ],
)
def test_a_mapping_that_does_not_fit_says_why(tmp_path: Path, mapping: dict[str, Any], why: str) -> None:
    path = written(tmp_path / "own.json", {"out": {"kernels": [{"kernel": "axpy", "n": 1}]}})
    with pytest.raises(DocumentError) as caught:
        read(path, "json", mapping)
    assert caught.value.why == why


# -- benchmarks and rounds -----------------------------------------------------------------------------------------------


def test_parameters_that_make_no_full_grid_make_no_case_more() -> None:
    document = Document(tuple(Given("copy", {}, {"n": n, "m": m}) for n, m in (("1", "1"), ("2", "2"))), "app")
    benchmarks = benchmarks_of([document])
    assert list(benchmarks) == ["app.copy"]
    assert [str(case) for case in cases_of(benchmarks["app.copy"])] == ["app.copy(1, 1)", "app.copy(2, 2)"]
    assert [round.params for round in rounds_of(document, benchmarks, "head")] == [["1", "1"], ["2", "2"]]


def test_two_cases_of_one_name_are_two(tmp_path: Path) -> None:
    result = {"command": "a b", "mean": 1.0, "median": 1.0}
    document = read(written(tmp_path / "h.json", {"results": [result, result]}))
    assert [case.name for case in document.cases] == ["a_b", "a_b_2"]


@pytest.mark.parametrize(
    "text, name",
    [
        ("./build/bench axpy", "build.bench_axpy"),
        ("BM_f<void(int)>", "BM_f<void[int]>"),
        ('a "b"\n\tc', "a_'b'_c"),
        ("\udce9?*|", "udce9_"),
        ("/", "_"),
    ],
)
def test_names_are_such_as_asv_and_its_pages_hold(text: str, name: str) -> None:
    assert name_of(text) == name
    assert name_of(name) == name


def test_parameters_are_written_as_asv_writes_them() -> None:
    assert [param(value) for value in ("12", "1e+20", "F32", 3, None, True)] == [
        "12",
        "1e+20",
        "'F32'",
        "3",
        "None",
        "True",
    ]


# -- what is no document -------------------------------------------------------------------------------------------------

DOCUMENTS = sorted(WRITTEN.glob("*.json"))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_a_document_that_was_cut_off_is_refused(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    for size in (0, 1, len(data) // 3, len(data) // 2, len(data) - 3):
        (tmp_path / "cut.json").write_bytes(data[:size])
        with pytest.raises(DocumentError, match="is not JSON"):
            read(tmp_path / "cut.json")


OTHERS: tuple[Any, ...] = (None, [], "x", {"y": 1}, -1)


def mutations(content: Any) -> list[Any]:
    """The document with each of its values in turn replaced by another kind, or left out; of lists the first items."""
    mutated: list[Any] = []
    if isinstance(content, dict):
        for key, value in content.items():
            mutated += [{**content, key: other} for other in OTHERS]
            mutated += [{**content, key: inner} for inner in mutations(value)]
            mutated.append({name: row for name, row in content.items() if name != key})
    elif isinstance(content, list):
        mutated += [[inner] for value in content[:1] for inner in mutations(value)]
    return mutated


@pytest.mark.parametrize("name", ["google_benchmark-1", "pytest_benchmark", "hyperfine"])
def test_a_mutated_document_is_read_or_refused_with_the_reason(name: str, tmp_path: Path) -> None:
    path, kind = WRITTEN / f"{name}.json", name.partition("-")[0].replace("_", "-")
    for mutated in mutations(json.loads(path.read_text())):
        try:
            document = read(written(tmp_path / "m.json", mutated), kind)
            rounds_of(document, benchmarks_of([document]), "head")
        except DocumentError as refused:
            assert "" not in (refused.why, refused.fix)  # noqa: PT017  # what cannot be read says why


def test_unknown_versions_are_refused_with_what_was_found(tmp_path: Path) -> None:
    google = json.loads((WRITTEN / "google_benchmark-1.json").read_text())
    google["context"]["json_schema_version"] = 2
    tests = json.loads((WRITTEN / "pytest_benchmark.json").read_text())
    tests["version"] = "9.1"
    for content, why in (
        (google, "json_schema_version 2, and known are 1"),
        (tests, "pytest-benchmark 9.1, and known are 3, 4, 5"),
        (nvbench(version="2.0.0"), "a document of JSON version 2.0.0, and known are 1"),
    ):
        with pytest.raises(DocumentError) as caught:
            read(written(tmp_path / "v.json", content))
        assert caught.value.why == why


def test_samples_that_are_missing_or_cut_off_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "out.json", nvbench(state(8, "F32", 1e-4, "out.json-bin/0.bin")))
    with pytest.raises(DocumentError) as caught:
        read(path)
    assert "its samples are not there" in caught.value.why
    (tmp_path / "out.json-bin").mkdir()
    (tmp_path / "out.json-bin" / "0.bin").write_bytes(b"12345678")
    with pytest.raises(DocumentError) as caught:
        read(path)
    assert "has 8 bytes, and its 3 samples take 4 each" in caught.value.why


def test_what_is_of_no_format_is_told_which_are_known(tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as caught:
        read(written(tmp_path / "x.json", {"a": 1}))
    assert "google-benchmark, nvbench, pytest-benchmark, hyperfine, cutlass" in caught.value.why


def test_parameters_that_multiply_beyond_measure_are_refused() -> None:
    params = [{f"p{axis}": str(value) for axis in range(3)} for value in range(50)]
    with pytest.raises(DocumentError) as caught:
        benchmarks_of([Document(tuple(Given("x", {}, param) for param in params))])
    assert caught.value.why == "its parameters multiply to 125000, and 100000 can be held"
