"""The document fulfils its schema, says everything, and never contains what JSON has not."""

from __future__ import annotations

import dataclasses
import json
import math
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest

from regress.cli import regress
from regress.errors import Exit
from regress.model import Case, Report, Setting, Side, Verdict
from regress.report import Style, render
from regress.report.json import document, schema
from regress.report.schema import FILES, text
from tests.conftest import closed

from . import sample
from .sample import BASE, BOOM, HEAD, HOSTILE, NOT_HERE, compared

REPORTS: list[Callable[[], Report]] = [
    sample.check,
    sample.acknowledged,
    sample.acknowledged_changes,
    sample.ack,
    sample.explain,
    sample.passed,
    sample.run,
    sample.fastest,
    sample.sweep,
    sample.bisect,
    sample.gate,
    sample.shifted,
    lambda: dataclasses.replace(sample.bisect(), bisection=None),
    sample.listing,
    sample.doctor,
    sample.aa,
    sample.init,
    sample.build,
    sample.merge,
    sample.config,
    lambda: Report("demo", suggestions=(("next", "regress check HEAD~1"),)),
    lambda: Report("check", exit_codes=(Exit.NOTHING,), state="NOTHING"),
    lambda: Report("run"),
]


def validate(data: Any) -> None:
    jsonschema.Draft202012Validator(schema()).validate(data)


def takes_format(command: click.Command) -> bool:
    return any("--format" in option.opts for option in command.params)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("report", REPORTS)
def test_documents_fulfil_the_schema(report: Callable[[], Report]) -> None:
    text = render(report(), Style(), "json")
    validate(json.loads(text))
    assert text.isascii()
    assert text.endswith("}\n")


@pytest.mark.parametrize("command", [name for name, command in regress.commands.items() if takes_format(command)])
def test_what_a_command_says_that_could_not_begin_fulfils_the_schema(command: str) -> None:
    validate(document(sample.refused(command)))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_schemas_are_those_of_the_types(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == text(FILES[path]()), "run: make schemas"


@pytest.mark.parametrize("report", REPORTS)
def test_the_schema_knows_every_key(report: Callable[[], Report]) -> None:
    """The schema lets later keys pass, so that validation alone would not see one that it does not describe."""
    jsonschema.Draft202012Validator(closed(schema())).validate(document(report()))


def test_a_key_that_is_not_described_is_seen() -> None:
    data = document(sample.check())
    data["benchmarks"][0]["new_key"] = 1
    validate(data)
    with pytest.raises(jsonschema.ValidationError, match="new_key"):
        jsonschema.Draft202012Validator(closed(schema())).validate(data)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "regress.check/2"},
        {"exit_codes": []},
        {"exit_codes": [7]},
        {"verdict": "slower"},
        {"benchmarks": [{}]},
        {"geomean": {"ratio": "1"}},
        {"base": {"sha": "abc"}},
        {"errors": [{"kind": "error"}]},
    ],
)
def test_the_schema_refuses_what_is_none(change: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        validate(document(sample.check()) | change)


@pytest.mark.parametrize("key", ["verdict", "benchmarks", "policy", "counts", "geomean", "machine", "head", "errors"])
def test_no_key_may_be_missing(key: str) -> None:
    data = document(sample.check())
    del data[key]
    with pytest.raises(jsonschema.ValidationError):
        validate(data)


def test_a_comparison_in_full() -> None:
    row = compared(Case("a.f", ("1", "'x'")), "gpu_time", Verdict.REGRESSED, 2.0, 3.0, "one", "two", critical=True)
    report = Report("check", base=BASE, head=HEAD, comparisons=(row,))
    (data,) = document(report)["benchmarks"]
    assert data == {
        "name": "a.f",
        "params": ["1", "'x'"],
        "metric": "gpu_time",
        "unit": "s",
        "kind": "time",
        "better": "lower",
        "base": 2.0,
        "head": 3.0,
        "base_summary": {"low": 2 * 0.988, "high": 2 * 1.012, "confidence": 0.95, "spread": 0.012},
        "head_summary": {"low": 3 * 0.988, "high": 3 * 1.012, "confidence": 0.95, "spread": 0.012},
        "n": {"base": 5, "head": 5},
        "ratio": 1.5,
        "low": row.low,
        "high": row.high,
        "p": 1e-4,
        "p_adjusted": 1e-4,
        "verdict": "regressed",
        "reason": "one; two",
        "exact": False,
        "gates": True,
        "critical": True,
        "threshold": 0.05,
        "base_samples": None,
        "head_samples": None,
        "throughput": None,
        "acknowledged": None,
        "noise": 0.008,
        "min_detectable": 1.057,
        "pairs": None,
        "sessions": None,
        "repro": "regress check 3f2c1ab0 9d41e770 -b " + shlex.quote("a.f(1, 'x')"),
    }


def test_what_is_no_number_is_null() -> None:
    row = compared(Case("a.f"), "wall_time", Verdict.FAILED, math.nan, math.inf, ratio=-math.inf, noise=math.nan)
    report = Report(
        "check",
        comparisons=(row,),
        geomean=(math.nan, 0.9, math.inf, 3),
        policy={"odd": math.nan, "nested": [math.inf, {"x": (math.nan, 1)}], "path": Path("p"), "flag": True},
    )
    text = render(report, Style(), "json")
    data = json.loads(text, parse_constant=pytest.fail)
    validate(data)
    (benchmark,) = data["benchmarks"]
    assert [benchmark[key] for key in ("base", "head", "ratio", "noise")] == [None] * 4
    assert data["geomean"] == {"ratio": None, "low": 0.9, "high": None, "n": 3}
    assert data["policy"] == {"odd": None, "nested": [None, {"x": [None, 1]}], "path": "p", "flag": True}


def test_hostile_text_is_kept_in_full() -> None:
    data = json.loads(render(sample.check(), Style(), "json"))
    assert list(HOSTILE.params) in [row["params"] for row in data["benchmarks"]]
    assert data["head"]["author"] == HEAD.commit.author
    assert data["head"]["subject"] == HEAD.commit.subject


@pytest.mark.parametrize(
    ("base", "head", "environments", "command"),
    [
        (BASE, HEAD, (), "regress check 3f2c1ab0 9d41e770 -b a.f"),
        (BASE, dataclasses.replace(HEAD, dirty=True), (), "regress check 3f2c1ab0 -b a.f"),
        (BASE, HEAD, ("--head-env", "new torch"), "regress check 3f2c1ab0 9d41e770 --head-env 'new torch' -b a.f"),
        (None, HEAD, (), "regress check 9d41e770 -b a.f"),
    ],
)
def test_repro_repeats_the_case_on_the_same_sides(
    base: Side | None, head: Side, environments: tuple[str, ...], command: str
) -> None:
    row = compared(Case("a.f"), "wall_time", Verdict.UNCHANGED, 1.0, 1.0)
    (data,) = document(Report("check", base=base, head=head, comparisons=(row,), options=environments))["benchmarks"]
    assert data["repro"] == command


def test_the_shell_reads_the_name_of_a_case_back() -> None:
    row = compared(HOSTILE, "wall_time", Verdict.UNCHANGED, 1.0, 1.0)
    (data,) = document(Report("check", comparisons=(row,)))["benchmarks"]
    read = subprocess.run(["bash", "-c", f"printf '%s\\0' {data['repro']}"], capture_output=True, check=True)
    assert read.stdout.decode().split("\0")[:-1] == ["regress", "check", "-b", str(HOSTILE)]
    assert data["repro"].isprintable(), "it is shown as it is"


def test_errors_name_a_failed_case_once_a_side_and_no_skip() -> None:
    case = Case("a.f")
    report = Report(
        "check",
        comparisons=(
            compared(case, "wall_time", Verdict.FAILED, None, None, base_failure=BOOM, head_failure=BOOM),
            compared(case, "peak_memory", Verdict.FAILED, None, None, base_failure=BOOM, head_failure=BOOM),
            compared(Case("a.s"), "wall_time", Verdict.SKIPPED, None, None, head_failure=NOT_HERE),
        ),
        problems=sample.PROBLEMS,
    )
    errors = document(report)["errors"]
    assert [(error["kind"], error["side"], error["name"]) for error in errors] == [
        ("suite", None, None),
        ("suite", None, None),
        ("error", "base", "a.f"),
        ("error", "head", "a.f"),
    ]
    assert [error["fatal"] for error in errors] == [True, False, True, True]
    assert errors[2]["detail"] == BOOM.detail


def test_all_exit_codes_are_listed() -> None:
    data = document(Report("check", exit_codes=(Exit.REGRESSED, Exit.FAILED)))
    assert (data["exit_code"], data["exit_codes"]) == (1, [1, 3])


def test_a_setting_may_be_anything() -> None:
    data = document(Report("config", settings=(Setting("a", ("x", math.nan, Path("p")), "here"),)))
    assert data["settings"] == [{"name": "a", "value": ["x", None, "p"], "source": "here"}]
