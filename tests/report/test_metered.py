"""Kernels that Nsight Compute measured, in every format: names are made visible, and what was not collected is left out."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest

from regress.choices import FORMATS
from regress.model import Case, Failure, KernelMetrics, Metered, Report
from regress.report import Style, render
from regress.report.json import schema
from regress.traces.metered import metered
from tests.report.test_calls import HOSTILE, US

KERNELS = [
    KernelMetrics(
        f"void kernel{at}<{HOSTILE}>(int)",
        grid=(8, 1, 1),
        duration_s=(30 - at) * US,
        achieved_occupancy=0.4,
        memory_throughput=0.9,
        registers=32,
    )
    for at in range(10)
]
FOUND = replace(
    metered(Case("b.cudatime_softmax", (HOSTILE,)), KERNELS, 1), report=HOSTILE, table=HOSTILE, flags=(HOSTILE,)
)
FAILED = Metered(Case("b.cudatime_fails"), failure=Failure("error", HOSTILE, "b.py:3", HOSTILE))


def report(*metered: Metered) -> Report:
    return Report("metered", state="PASS", metered=metered, cases=len(metered))


def lines(shown: Report, verbose: bool = False) -> list[str]:
    return [" ".join(line.split()) for line in render(shown, Style(verbose=verbose), "text").splitlines()]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("verbose", [False, True])
def test_no_format_lets_control_characters_through(form: str, verbose: bool) -> None:
    for shown in (report(FOUND), report(FOUND, FAILED), report(FOUND, FOUND), report(FAILED)):
        text = render(shown, Style(verbose=verbose), form)
        assert not [character for character in text if ord(character) < 32 and character != "\n"]
        assert "\x1b" not in text


def test_a_column_of_which_nothing_was_collected_is_left_out() -> None:
    assert "kernel, of a call launches time share occupancy memory registers" in lines(report(FOUND))
    assert "kernel launches time share occupancy memory registers" in lines(report(replace(FOUND, calls=0)))


def test_few_kernels_are_shown_and_with_v_all() -> None:
    assert "… and 2 more with -v" in lines(report(FOUND))
    shown = lines(report(FOUND), verbose=True)
    assert sum(line.startswith("kernel") and "memory-bound" in line for line in shown) == 10


def test_several_cases_are_a_row_each() -> None:
    shown = lines(report(FOUND, FOUND, FAILED))
    assert "metered kernels launches time bottleneck bound by" in shown
    assert "bottleneck" not in [line.split(" ")[0] for line in shown]
    assert "! b.cudatime_fails" in shown


def test_without_times_nothing_is_said_of_shares() -> None:
    untimed = metered(Case("x.csv"), [replace(kernel, duration_s=None) for kernel in KERNELS[:2]])
    assert "kernel launches occupancy memory registers" in lines(report(untimed))
    assert "bottleneck kernel0" in lines(report(untimed))


def test_failures_are_errors_of_the_document() -> None:
    data = json.loads(render(report(FOUND, FAILED), Style(), "json"))
    jsonschema.Draft202012Validator(schema()).validate(data)
    (error,) = data["errors"]
    assert (error["name"], error["kind"]) == ("b.cudatime_fails", "error")
