"""Ceilings are measured once a card and driver; whatever is wrong with the file or the worker, a command goes on."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from regress.errors import NothingMeasured
from regress.measure.wire import HARNESS_VERSION, Ceilings
from regress.model import Commit, Failure, Settings, Side
from regress.run import ceilings, questions
from regress.run.ceilings import FILE, ceilings_of, known
from regress.run.environments import Prepared
from regress.run.processes import Processes
from regress.run.ship import ship
from regress.run.starting import Starter

CARD = {"gpu_uuid": "GPU-1", "driver": "580.1"}
FOUND = Ceilings(2.8e12, {"float32": 5.1e13, "bfloat16": 7.8e14})


class Measuring:
    """A worker's answers; counts how often it was asked."""

    def __init__(self, answer: Ceilings | Exception = FOUND) -> None:
        self.answer, self.asked = answer, 0

    def __call__(self) -> Ceilings:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_a_card_is_measured_once(tmp_path: Path) -> None:
    measure = Measuring()
    assert [ceilings_of(CARD, tmp_path / "new", measure) for _ in range(2)] == [FOUND, FOUND]
    assert measure.asked == 1
    assert [path.name for path in (tmp_path / "new").iterdir()] == [FILE]


@pytest.mark.parametrize("other", [{"gpu_uuid": "GPU-2", "driver": "580.1"}, {"gpu_uuid": "GPU-1", "driver": "590"}])
def test_another_card_and_another_driver_are_measured_anew(tmp_path: Path, other: dict[str, str]) -> None:
    ceilings_of(CARD, tmp_path, Measuring())
    second = Measuring(Ceilings(1e12))
    assert ceilings_of(other, tmp_path, second) == Ceilings(1e12)
    assert second.asked == 1
    both = other["gpu_uuid"] != CARD["gpu_uuid"]
    assert known(tmp_path, CARD) == (FOUND if both else None), "a value of each card, of its newest driver"


def test_the_copy_to_another_card_is_measured_once_it_is_asked_for(tmp_path: Path) -> None:
    ceilings_of(CARD, tmp_path, Measuring())
    with_peer = replace(FOUND, peer_bytes_s=4e11)
    measure = Measuring(with_peer)
    assert [ceilings_of(CARD, tmp_path, measure, peer=True) for _ in range(2)] == [with_peer] * 2
    assert measure.asked == 1
    assert ceilings_of(CARD, tmp_path, measure) == with_peer


def test_a_change_of_the_harness_measures_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ceilings_of(CARD, tmp_path, Measuring())
    monkeypatch.setattr(ceilings, "HARNESS_VERSION", HARNESS_VERSION + 1)
    assert known(tmp_path, CARD) is None


ENTRY = {"driver": "580.1", "harness": HARNESS_VERSION, "copy_bytes_s": 2.8e12, "matmul_flops_s": {"float32": 5e13}}


def file_of(entry: Any, format: int = 1) -> str:
    return json.dumps({"format": format, "devices": {"GPU-1": entry}})


def test_a_whole_entry_is_read(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(file_of(ENTRY))
    assert known(tmp_path, CARD) == Ceilings(2.8e12, {"float32": 5e13})


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"format": 1, "dev',
        "[]",
        "\x00\xff",
        '{"format": 1, "devices": []}',
        file_of(ENTRY, format=2),
        file_of(None),
        file_of({**ENTRY, "copy_bytes_s": None}),
        file_of({**ENTRY, "copy_bytes_s": -1.0}),
        file_of({**ENTRY, "copy_bytes_s": float("nan")}),
        file_of({**ENTRY, "matmul_flops_s": [1.0]}),
        file_of({**ENTRY, "matmul_flops_s": {"float32": "fast"}}),
    ],
)
def test_what_cannot_be_read_is_measured_again_and_replaced(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text, encoding="latin-1")
    assert ceilings_of(CARD, tmp_path, Measuring()) == FOUND
    assert known(tmp_path, CARD) == FOUND


def test_a_failure_is_a_reason_and_is_not_kept(tmp_path: Path) -> None:
    part = Ceilings(2.8e12, {}, Failure("oom", "no room for matrices"))
    assert ceilings_of(CARD, tmp_path, Measuring(part)) == part
    assert known(tmp_path, CARD) is None
    dead = Measuring(NothingMeasured("no process could be started", why="exit code 1"))
    limits = ceilings_of(CARD, tmp_path, dead)
    assert limits == Ceilings(failure=Failure("error", "no process could be started: exit code 1"))


def test_a_folder_that_cannot_be_written_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    limits = ceilings_of(CARD, tmp_path / "file", Measuring())
    assert limits.failure is not None
    assert "cannot write" in limits.failure.message


@pytest.mark.parametrize("facts", [{}, {"gpu_uuid": ""}, {"gpu_uuid": "scripted", "scripted": True}])
def test_without_a_real_device_nothing_is_started(tmp_path: Path, facts: dict[str, Any]) -> None:
    measure = Measuring()
    assert ceilings_of(facts, tmp_path, measure) == Ceilings()
    assert measure.asked == 0


def test_a_worker_is_asked_and_one_that_dies_is_a_reason(tmp_path: Path) -> None:
    suite = tmp_path / "benchmarks"
    suite.mkdir()
    (suite / "__init__.py").write_text("")
    side = Side("head", Commit("a" * 40, "subject", "Ada", 0.0), "head")
    for code, said in (("", "scripted"), ("import os; os._exit(3)", "exit code 3")):
        start = ship(tmp_path / "cache")
        if code:
            worker = start.parent / "_regress_measure" / "ceilings.py"
            worker.write_text(code)
        processes = Processes(Starter(suite, start, Settings(device="fake")))
        try:
            limits = questions.ceilings(
                processes, Prepared(side, tmp_path, sys.executable, (tmp_path,), dict(os.environ))
            )
        finally:
            processes.close()
        assert limits.failure is not None
        assert said in limits.failure.message
