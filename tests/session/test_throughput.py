"""Declared work over time, and as a share of the ceiling that fits."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from regress.measure.wire import Ceilings
from regress.model import METRICS, Benchmark, Case, Measured, Round, Summary, Throughput
from regress.session.throughput import Rates, Work, declares_work, product_of, throughput

CEILINGS = Ceilings(2.8e12, {"float32": 5e13, "tf32": 4e14, "bfloat16": 8e14})
NO_TF32, TF32 = {"tf32_matmul": False}, {"tf32_matmul": True}


def benchmark(**declared: Any) -> Benchmark:
    return Benchmark("b.f", "time", "seconds", [], [], "1", "gpu_time", True, declared=declared)


def visited(*params: str, times: tuple[str, ...] = ("gpu_time", "wall_time"), **facts: Any) -> Round:
    values = {name: Measured(1.0, [1.0]) for name in times}
    return Round("b.f", list(params), "head", 0, values=values, facts=facts)


def at(seconds: float) -> Summary:
    return Summary(seconds, seconds, seconds, 0.95, 5)


def numbers(rates: Throughput | None) -> list[Any]:
    assert rates is not None
    return list(dataclasses.astuple(rates))


def test_work_over_time_and_over_the_ceilings() -> None:
    rates = throughput(2e-3, Work(2.8e9, 8e11, "bfloat16"), CEILINGS)
    assert numbers(rates) == pytest.approx([1.4e12, 4e14, 0.5, 0.5])
    assert throughput(2.0, Work(None, 8.0, "float16"), CEILINGS) == Throughput(flops_per_s=4.0)
    assert throughput(2.0, Work(8.0, None, ""), Ceilings()) == Throughput(bytes_per_s=4.0)


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.inf, math.nan])
def test_a_time_that_is_none_has_no_throughput(seconds: float) -> None:
    assert throughput(seconds, Work(1e9, 1e9, "tf32"), CEILINGS) is None


@pytest.mark.parametrize(
    ("params", "precision", "product"),
    [
        (("4096", "'float32'"), NO_TF32, "float32"),
        (("4096", "'float32'"), TF32, "tf32"),
        (("'float32'",), {}, ""),
        (("'float32'",), None, ""),
        (("'bfloat16'",), None, "bfloat16"),
        (("torch.bfloat16", "32"), TF32, "bfloat16"),
        (("<class 'numpy.float16'>",), None, "float16"),
        (("'bf16'",), None, "bfloat16"),
        (("'fp16'", "'half'"), None, "float16"),
        (("'float16'", "'float32'"), TF32, ""),
        (("'float64'",), NO_TF32, ""),
        (("'int8'", "4096"), NO_TF32, ""),
        ((), NO_TF32, ""),
    ],
)
def test_the_product_is_that_of_the_one_dtype_that_the_parameters_name(
    params: tuple[str, ...], precision: object, product: str
) -> None:
    assert product_of(Case("b.f", params), benchmark(), precision) == product


def test_a_declared_dtype_wins_over_parameters() -> None:
    case = Case("b.f", ("'float16'",))
    assert product_of(case, benchmark(dtype="bfloat16"), None) == "bfloat16"
    assert product_of(case, benchmark(dtype=["bfloat16"]), None) == "float16", "what is no text is no declaration"
    assert product_of(case, None, None) == "float16"


@pytest.mark.parametrize(
    ("facts", "declares"),
    [({"bytes": 8}, True), ({"flops": 1.5}, True), ({}, False), ({"bytes": 0}, False), ({"bytes": True}, False)]
    + [({"flops": value}, False) for value in (-1, math.nan, math.inf, "8", None)],
)
def test_only_a_positive_number_is_work(facts: dict[str, Any], declares: bool) -> None:
    assert declares_work(visited(**facts).facts) is declares


def test_rates_of_a_side() -> None:
    rounds = [
        visited("'bfloat16'"),
        visited("'bfloat16'", bytes=1, times=()),
        visited("'bfloat16'", bytes=2800, flops=8000, precision=NO_TF32),
        visited("'bfloat16'", bytes=1),
        visited("'float64'", flops=100),
    ]
    rates = Rates.of(rounds, {"b.f": benchmark()}, CEILINGS)
    case, gpu_time = Case("b.f", ("'bfloat16'",)), METRICS["gpu_time"]
    assert numbers(rates.of_time(case, gpu_time, at(2e-9))) == pytest.approx([1.4e12, 4e12, 0.5, 0.005])
    for other in ("wall_time", "host_time", "peak_memory"):
        assert rates.of_time(case, METRICS[other], at(1.0)) is None, "it is the device's time that the work is done in"
    assert rates.of_time(case, gpu_time, None) is None
    assert rates.of_time(Case("b.g"), gpu_time, at(1.0)) is None
    assert rates.of_time(Case("b.f", ("'float64'",)), gpu_time, at(1.0)) == Throughput(flops_per_s=100.0)


def test_what_ranks_move_is_held_against_a_copy_between_devices() -> None:
    ceilings = dataclasses.replace(CEILINGS, peer_bytes_s=4e11)
    rates = Rates.of([visited(bytes=1e11, ranks=2)], {"b.f": benchmark()}, ceilings)
    of_time = rates.of_time(Case("b.f"), METRICS["gpu_time"], at(0.5))
    assert of_time is not None
    assert (of_time.bytes_per_s, of_time.share_of_copy) == (2e11, 0.5)
    alone = Rates.of([visited(bytes=1e11, ranks=2)], {"b.f": benchmark()}, CEILINGS)
    nothing = alone.of_time(Case("b.f"), METRICS["gpu_time"], at(0.5))
    assert nothing is not None
    assert nothing.share_of_copy is None


def test_wall_time_is_no_share_of_what_the_device_does() -> None:
    rates = Rates.of([visited("'bfloat16'", times=("wall_time",), bytes=8, flops=16)], {}, CEILINGS)
    case = Case("b.f", ("'bfloat16'",))
    assert rates.of_time(case, METRICS["wall_time"], at(2.0)) == Throughput(4.0, 8.0)
    assert rates.of_time(case, METRICS["gpu_time"], at(2.0)) is None
