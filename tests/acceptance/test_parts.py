"""What the acceptance table makes of its figures: limits, classes, traces and marks; on a device the figures are measured."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regress.measure.backend import DeviceError
from regress.model import Benchmark, Case, Failure, Measured, Round
from tests.conftest import Project

from . import __main__ as program
from . import attribution, bench, limits, memory, profiler, side_by_side, spread
from .profiler import MARKER, Kernel
from .side_by_side import OURS, PLAIN, Timed, medians
from .table import Row, Table, variation, write

US = 1e-6


def case(name: str) -> Case:
    return Case(f"b.{name}")


def benchmark(metric: str = "gpu_time", params: list[list[str]] | None = None, **declared: Any) -> Benchmark:
    return Benchmark("b.x", "time", "seconds", params or [], [], "1", metric, True, declared=declared)


def visited(name: str, failure: Failure | None = None, exact: bool = True, **values: float) -> Round:
    measured = {metric: Measured(value, [value], exact=exact) for metric, value in values.items()}
    return Round(f"b.{name}", [], "head", 0, values=measured, failure=failure)


# -- tables --------------------------------------------------------------------------------------------------------------

TABLE = Table(
    "A | title", ("name", "value"), (Row(("a|b", "1"), True, {"value": 1.0}), Row(("c", "2\n3"))), ("a note",)
)


def test_a_table_as_text_and_as_data(tmp_path: Path) -> None:
    assert TABLE.markdown() == (
        "## A | title\n\n"
        "| name | value |     |\n"
        "| ---- | ----- | --- |\n"
        "| a\\|b | 1     | ok  |\n"
        "| c    | 2 3   |     |\n\n"
        "a note\n"
    )
    write(tmp_path / "new", "spread", [TABLE, TABLE], {"gpu": "H100"})
    assert (tmp_path / "new" / "spread.md").read_text().count("## A | title") == 2
    document = json.loads((tmp_path / "new" / "spread.json").read_text())
    assert document["machine"] == {"gpu": "H100"}
    assert document["tables"][0]["rows"][0] == {"cells": ["a|b", "1"], "passed": True, "value": 1.0}


def test_a_table_passes_with_all_its_limits_and_never_when_it_is_empty() -> None:
    assert TABLE.passed
    assert not Table("t", ("c",), (Row(("a",), True), Row(("b",), False))).passed
    assert not Table("t", ("c",), ()).passed


def test_variation() -> None:
    assert variation([9.0, 11.0]) == pytest.approx(math.sqrt(2) / 10)
    assert math.isnan(variation([1.0]))


# -- limits --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "title"),
    [
        (1.0, "from 45 us"),
        (45e-6, "from 45 us"),
        (44e-6, "10 to 45 us"),
        (5e-6, "5 to 10 us"),
        (4.9e-6, "under 5 us"),
        (0.0, "under 5 us"),
    ],
)
def test_classes(seconds: float, title: str) -> None:
    assert limits.class_of(seconds).title == title


@pytest.mark.parametrize(
    ("ours", "busy", "span", "holds"),
    [
        (11.9, 10.0, 10.0, True),
        (12.1, 10.0, 10.0, False),
        (8.1, 10.0, 10.0, True),
        (7.9, 10.0, 10.0, False),
        (1029.0, 1000.0, 1000.0, True),
        (1031.0, 1000.0, 1000.0, False),
        (50.0, 40.0, 60.0, True),
        (63.0, 40.0, 60.0, False),
        (37.0, 40.0, 60.0, False),
    ],
)
def test_agreement_is_within_2_us_or_3_percent_of_what_lies_between(
    ours: float, busy: float, span: float, holds: bool
) -> None:
    assert limits.agrees(ours * US, busy * US, span * US) is holds


def test_continuity_is_within_1_us_or_5_percent() -> None:
    assert limits.continuous(15 * US, 15.9 * US)
    assert not limits.continuous(15 * US, 13.9 * US)
    assert limits.continuous(100 * US, 104 * US)


# -- spread and memory ---------------------------------------------------------------------------------------------------


def test_spread_is_judged_by_the_median_of_a_class() -> None:
    def around(level: float, share: float) -> list[float]:
        return [level * (1 - share), level, level * (1 + share)]

    gpu = {
        case("big"): around(100 * US, 0.001),
        case("huge"): around(1e-3, 0.002),
        case("wild"): around(50 * US, 0.2),
        case("medium"): around(20 * US, 0.02),
        case("tiny"): around(2 * US, 0.1),
        case("once"): [1.0],
    }
    host = {case("big"): around(9 * US, 0.1)}
    classes, cases = spread.tables(gpu, host, ("a note",))
    assert classes.title == "Spread between 3 processes, by duration"
    by_class = {row.cells[0]: row for row in classes.rows}
    assert set(by_class) == {"from 45 us", "10 to 45 us", "under 5 us"}
    assert by_class["from 45 us"].passed is True, "the median of three, whatever the wild one does"
    assert by_class["from 45 us"].figures["gpu_time"] == pytest.approx(0.002)
    assert by_class["from 45 us"].figures["host_time"] == pytest.approx(0.1)
    assert by_class["from 45 us"].cells[4] == "20 % (b.wild)"
    assert by_class["10 to 45 us"].passed is False
    assert by_class["under 5 us"].passed is None, "an aim is reported"
    assert by_class["under 5 us"].cells[3] == "aim, missed: 2.5 %"
    assert classes.notes == ("a note",)
    assert [row.cells[0] for row in cases.rows] == ["b.huge", "b.big", "b.wild", "b.medium", "b.tiny"]


@pytest.mark.parametrize(
    ("definition", "core"),
    [
        (benchmark(tags=["core", "x"]), True),
        (benchmark(tags="core"), True),
        (benchmark(tags="score"), False),
        (benchmark(), False),
        (benchmark("wall_time", tags=["core"]), False),
    ],
)
def test_core_benchmarks_are_those_of_device_time_with_the_tag(definition: Benchmark, core: bool) -> None:
    assert spread.is_core(definition) is core


def test_memory_has_to_repeat_to_the_byte() -> None:
    broken = Failure("error", "boom")
    rounds = [
        *(visited("same", peak_memory=4096.0, left_memory=0.0) for _ in range(2)),
        *(visited("other", peak_memory=float(size)) for size in (512, 513)),
        *(visited("bound", exact=False, peak_memory=float(size)) for size in (1, 2)),
        visited("once", peak_memory=1.0),
        visited("bad", broken),
    ]
    table = memory.table(rounds)
    by_case = {row.cells[0]: (row.passed, row.cells[1:]) for row in table.rows}
    assert by_case == {"peak memory": (False, ("2", "1", "b.other")), "left memory": (True, ("1", "0", ""))}
    assert table.notes == ("error: b.bad: boom",)


# -- the profiler's trace ------------------------------------------------------------------------------------------------


def trace(*texts: str) -> list[Kernel]:
    """Kernels one after the other, a microsecond each, a microsecond apart."""
    return [Kernel(MARKER if text == "|" else text, 2 * i * US, (2 * i + 1) * US) for i, text in enumerate(texts)]


def test_a_call_is_what_stands_between_two_markers() -> None:
    kernels = trace("before", "|", "reset", "|", "a", "b", "|", "reset", "|", "a", "b", "|", "after")
    names = [[kernel.name for kernel in call] for call in profiler.calls_of(reversed(kernels))]
    assert names == [["a", "b"], ["a", "b"]]
    assert profiler.calls_of(trace("|", "|", "|")) == [[]], "a call that launched nothing"


def test_busy_time_counts_overlaps_once_and_leaves_gaps_out() -> None:
    kernels = [Kernel("a", 0.0, 2.0), Kernel("b", 1.0, 3.0), Kernel("inside", 1.5, 2.5), Kernel("c", 5.0, 6.0)]
    assert profiler.busy(kernels) == 4.0
    assert profiler.span(kernels) == 6.0


def test_a_row_of_several_kernels_shows_the_gaps_apart() -> None:
    row = profiler.row(case("two"), 2.5 * US, [trace("a", "b")] * 3)
    assert row.passed
    assert row.cells == ("b.two", "2", "2.50 us", "2.00 us", "3.00 us", "33.3 %", "+0.00 us")
    late = profiler.row(case("late"), 6 * US, [trace("a", "b")] * 3)
    assert late.passed is False
    assert late.cells[-1] == "+3.00 us"
    assert profiler.table([row, late]).notes == ("1 of 2 operations with several kernels agree with the span itself.",)


def test_first_and_last_parameters_of_every_hot_benchmark_of_device_time() -> None:
    several = benchmark(params=[["1", "2", "3"], ["'a'", "'b'"]])
    cases = list(
        profiler.cases([several, benchmark(), benchmark("wall_time"), benchmark(cache="cold"), benchmark(cache="hot")])
    )
    assert cases == [Case("b.x", ("1", "'a'")), Case("b.x", ("3", "'b'")), Case("b.x"), Case("b.x")]


# -- side by side --------------------------------------------------------------------------------------------------------


def test_samples_of_asv_are_taken_apart_by_process() -> None:
    assert medians([1.0, 2.0, 3.0, 7.0, 8.0, 9.0], 2) == [2.0, 8.0]
    for samples in ([1.0, 2.0, 3.0], []):
        with pytest.raises(ValueError, match="not those of 2 processes"):
            medians(samples, 2)


def test_tools_stand_side_by_side(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    by_tool = {PLAIN: Timed({"Matmul": [1e-5, 3e-5]}, 12.0), OURS: Timed({"Matmul": [9e-6, 9e-6]}, 40.0)}
    table = side_by_side.table(by_tool)
    assert table.columns == ("operation", PLAIN, OURS)
    rows = {row.cells[0]: row.cells[1:] for row in table.rows}
    assert rows["matmul 1024² bf16"] == ("20.0 us, 70.7 %", "9.00 us, 0 %")
    assert rows["softmax 4096²"] == ("failed", "failed")
    assert rows["spent in all"] == ("12 s", "40 s")
    assert len(table.notes) == 3


@pytest.mark.slow
def test_an_unmodified_asv_gives_the_samples_of_each_process(tmp_path: Path) -> None:
    project = side_by_side._project(tmp_path / "asv")
    suite = """
import time
class Nap:
    rounds = 6
    def setup(self): pass
    def time_plain(self): time.sleep(1e-3)
    def time_synchronized(self): raise KeyError("not asked for")
"""
    project.write({"benchmarks/operations.py": suite})
    timed = side_by_side._by_asv(project, "time_plain")
    assert list(timed.values) == ["Nap"]
    assert len(timed.values["Nap"]) == 6
    assert min(timed.values["Nap"]) >= 1e-3


# -- with workers, on the scripted device --------------------------------------------------------------------------------


def test_rounds_of_a_suite_on_the_scripted_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "DEVICE", "fake")
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "__init__.py").write_text("")
    (suite / "b.py").write_text(
        "import regress_scripted as d\n"
        "def cudatime_a(): d.kernel('a', 5e-5)\ncudatime_a.tags = ['core']\n"
        "def cudatime_b(): raise KeyError('b')\n"
    )
    benchmarks = bench.suite_of(tmp_path, suite)
    assert [definition.name for definition in benchmarks if spread.is_core(definition)] == ["b.cudatime_a"]
    measured = bench.measured(tmp_path, suite, ["b.cudatime_a", "b.cudatime_b"], 2)
    values = bench.values(measured.rounds, "gpu_time")
    assert list(values) == [Case("b.cudatime_a")]
    assert values[Case("b.cudatime_a")] == pytest.approx([5e-5] * 2, rel=0.02)
    assert bench.failures(measured.rounds) == ("error: b.cudatime_b: KeyError: 'b'",)
    (suite / "bad.py").write_text("import does_not_exist\n")
    with pytest.raises(RuntimeError, match="does_not_exist"):
        bench.suite_of(tmp_path, suite)


SCRIPTED = """
import regress_scripted as d
def delayed(): {delay}; d.kernel("k", 2e-4)
def longer(): d.kernel("k", {seconds})
def waiting(): d.kernel("k", 5e-5); {wait}
"""
SCRIPTED_SUITE = "import proj\n" + "".join(
    f"def cudatime_{name}(): proj.{name}()\n" for name in ("delayed", "longer", "waiting")
)


@pytest.mark.slow
def test_attribution_reads_the_document_of_a_check(project: Callable[..., Project]) -> None:
    p = project()
    base = SCRIPTED.format(delay="pass", seconds=1e-4, wait="pass")
    head = SCRIPTED.format(delay="d.host(6e-5)", seconds=1.07e-4, wait="d.synchronize()")
    p.commit({"proj/__init__.py": base, "benchmarks/b.py": SCRIPTED_SUITE})
    p.commit({"proj/__init__.py": head})
    document = json.loads(p.regress("check", "HEAD~1", "HEAD", "--format", "json").out)
    table = attribution.table(attribution.by_metric(document))
    assert [(row.cells[0], row.cells[1]) for row in table.rows if not row.passed] == []

    document = json.loads(p.regress("check", "HEAD", "HEAD", "--format", "json").out)
    table = attribution.table(attribution.by_metric(document))
    failed = {row.cells[0] for row in table.rows if row.passed is False}
    assert failed == {"a sleep of 20 us", "a kernel 7 % longer", "an .item()"}, "nothing changed, so nothing is shown"


# -- the program ---------------------------------------------------------------------------------------------------------


def test_parts_run_in_their_order_whatever_is_asked_for() -> None:
    assert program.chosen("spin, spread") == ["spread", "spin"]
    assert program.chosen("") == list(program.PARTS)
    with pytest.raises(ValueError, match="no part nonsense; there are spread, "):
        program.chosen("spin,nonsense")


def test_without_a_device_it_says_so_and_exits_5(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none() -> None:
        raise DeviceError("no CUDA driver")

    monkeypatch.setattr(program, "CudaBackend", none)
    assert program.main([]) == 5
    assert "nothing can be measured here: no CUDA driver" in capsys.readouterr().err


def test_a_part_that_fails_is_a_table_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    class Device:
        def facts(self) -> dict[str, str]:
            return {"gpu": "H100"}

    good = Table("good", ("c",), (Row(("fine",), True),))

    def broken(scratch: Path) -> list[Table]:
        raise RuntimeError("no luck")

    monkeypatch.setattr(program, "CudaBackend", Device)
    monkeypatch.setattr(spread, "run", broken)
    monkeypatch.setattr(memory, "run", lambda scratch: [good])
    assert program.main(["--only", "spread,memory", "--out", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "RuntimeError: no luck" in out
    assert "| fine | ok" in out
    assert {path.name for path in tmp_path.iterdir()} == {"spread.md", "spread.json", "memory.md", "memory.json"}
    assert program.main(["--only", "memory"]) == 0


def test_commands_that_fail_say_what_they_printed(tmp_path: Path) -> None:
    words = [sys.executable, "-c", "import sys; print('seen'); sys.exit(3)"]
    with pytest.raises(RuntimeError, match=r"(?s)exit code 3.*seen"):
        bench.run(words, tmp_path, 60)
    assert bench.run(words, tmp_path, 60, allowed=(3,)) == "seen\n"
