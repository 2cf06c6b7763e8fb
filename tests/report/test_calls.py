"""Profiled cases in every format: all names are made visible, and a device's part is left out where there is none."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest

from regress.choices import FORMATS
from regress.model import (
    Bottleneck,
    Bound,
    CallProfile,
    Case,
    Failure,
    Gap,
    KernelUse,
    MemoryUse,
    OperatorUse,
    PartUse,
    Report,
    Totals,
)
from regress.report import Style, render
from regress.report.json import schema

US = 1e-6
HOSTILE = "a\nb\x1b[31mred\x1b[0m </script> \u202e"
TOTALS = Totals(100 * US, 80 * US, 20 * US, 78 * US, 4 * US, 30 * US, 10 * US, 25 * US, 1 * US, 3, 1, 0.5)
NAME = f"void softmax<{HOSTILE}>(float*)"
FOUND = CallProfile(
    Case("b.cudatime_softmax", (HOSTILE,)),
    call_s=95 * US,
    calls=20,
    trace=f"/traces/{HOSTILE}.json.gz",
    host_s=40 * US,
    idle_s=15 * US,
    totals=TOTALS,
    parts=(PartUse(HOSTILE, 1, 20 * US, 60 * US, 2),),
    operators=tuple(OperatorUse(f"aten::op{n}{HOSTILE}", 1, 5 * US, 4 * US, 20 * US, 20 * US, 1) for n in range(10)),
    kernels=(
        KernelUse(
            *(NAME, 3, 78 * US, 9 * US, 0, (8, 1, 1), (256, 1, 1), 32, 0, 0.5, (HOSTILE,)), short=f"softmax{HOSTILE}"
        ),
    ),
    copies=(KernelUse("Memcpy HtoD", 1, 4 * US, 2 * US, 4096),),
    gaps=(Gap(0, 10 * US, NAME, "", HOSTILE),),
    memory=MemoryUse(1 << 20, 20 << 20, 64),
    bottleneck=Bottleneck("kernel", NAME, 0.78),
    bound=Bound("memory-bound", 0.9, "90 % of the bandwidth of a large copy", "move fewer bytes"),
    on_device=True,
    flags=(HOSTILE,),
)
FAILED = CallProfile(Case("b.cudatime_fails"), failure=Failure("error", HOSTILE, "b.py:3", HOSTILE))


def report(*profiles: CallProfile) -> Report:
    return Report("profiled", state="PASS", profiled=profiles, cases=len(profiles))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("verbose", [False, True])
def test_no_format_lets_control_characters_through(form: str, verbose: bool) -> None:
    for shown in (report(FOUND), report(FOUND, FAILED), report(FOUND, FOUND), report(FAILED)):
        text = render(shown, Style(verbose=verbose), form)
        assert not [character for character in text if ord(character) < 32 and character != "\n"]
        assert "\x1b" not in text


def test_one_case_is_shown_in_full_and_several_side_by_side() -> None:
    one, two = render(report(FOUND), Style(), "text"), render(report(FOUND, FOUND), Style(), "text")
    lines = [" ".join(line.split()) for line in one.splitlines()]
    assert "device busy 80.0 us 80 % 3 launches, 1 copy" in lines
    assert "host waiting 10.0 us 10 % 0.500 synchronizations" in lines
    assert "device memory 1.00 MiB peak; 1.00 MiB allocated a call, 64 B left" in lines
    assert any(line.startswith("memory-bound 90 % of the bandwidth") for line in lines)
    assert "… and 2 more with -v" in lines
    assert "… and" not in render(report(FOUND), Style(verbose=True), "text")
    assert "operator, alone" not in two
    assert two.count("memory-bound") == 2


def test_without_a_device_nothing_is_said_of_one() -> None:
    host = replace(FOUND, kernels=(), copies=(), gaps=(), memory=None, bound=None, on_device=False, flags=())
    text = render(report(host), Style(), "text")
    assert "device busy" not in text
    assert "kernel" not in text.replace("softmax", "")


def test_components_have_their_share() -> None:
    parts = [replace(FOUND, component=name, share=share) for name, share in (("softmax", 0.7), ("scores", 0.3))]
    rows = [line.split()[:3] for line in render(report(*parts), Style(), "text").splitlines()]
    assert ["softmax", "70", "%"] in rows
    assert ["scores", "30", "%"] in rows


def test_the_document_fulfils_the_schema() -> None:
    data = json.loads(render(report(FOUND, FAILED), Style(), "json"))
    jsonschema.Draft202012Validator(schema()).validate(data)
    assert data["profiles"][0]["kernels"][0]["name"] == NAME
    assert data["errors"][0]["name"] == "b.cudatime_fails"
