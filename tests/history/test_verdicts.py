"""The last verdicts, and how often they were taken back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from regress.history import LastVerdict, last_verdicts, remember_verdicts
from regress.history.memory import FORGOTTEN
from regress.history.memory import VERDICTS_FILE as FILE
from regress.model import METRICS, Case, Commit, Comparison, Side, Summary, Verdict

CASE = Case("ops.cudatime_add", ("16",))
BASE, HEAD = (Side(name, Commit(sha * 40, "", "", 0.0), "") for name, sha in (("base", "a"), ("head", "b")))
R, F, U, N = Verdict.REGRESSED, Verdict.IMPROVED, Verdict.UNCHANGED, Verdict.UNDECIDED


def said(verdict: Verdict, **changes: object) -> Comparison:
    head = Summary(1.1e-3, 1e-3, 1.2e-3, 0.95, 5, 0.01)
    comparison = Comparison(CASE, METRICS["gpu_time"], verdict, head=head, ratio=1.1)
    return replace(comparison, **changes)  # type: ignore[arg-type]


def after(folder: Path, *verdicts: Verdict, head: Side = HEAD) -> LastVerdict:
    for other in verdicts:
        remember_verdicts(folder, "box", BASE, head, [said(other)])
    return last_verdicts(folder, "box")[str(CASE), "gpu_time"]


def test_the_last_verdict_is_kept_with_its_sides_and_values(tmp_path: Path) -> None:
    last = after(tmp_path, R)
    assert last == LastVerdict("a" * 40, "b" * 40, 0.05, R, 1.1, 1.1e-3)
    assert last_verdicts(tmp_path, "other") == {}


@pytest.mark.parametrize(
    ("verdicts", "reversals"),
    [
        ([R, R, R], 0),
        ([R, U, R, U], 3),
        ([R, F], 1),
        ([R, N, R], 0),  # undecided takes nothing back
        ([R, N, U], 1),
    ],
)
def test_a_verdict_is_reversed_by_another_one_on_the_same_sides(
    tmp_path: Path, verdicts: list[Verdict], reversals: int
) -> None:
    assert after(tmp_path, *verdicts).reversed == reversals


def test_other_code_reverses_nothing(tmp_path: Path) -> None:
    after(tmp_path, R)
    assert after(tmp_path, U, head=replace(HEAD, commit=replace(HEAD.commit, sha="c" * 40))).reversed == 0
    dirty = replace(HEAD, dirty=True)  # nobody knows whether it is the same code
    assert after(tmp_path, R, U, head=dirty).reversed == 0
    after(tmp_path, R)
    remember_verdicts(tmp_path, "box", BASE, HEAD, [said(U, threshold=0.2)])
    assert last_verdicts(tmp_path, "box")[str(CASE), "gpu_time"].reversed == 0


def test_reversals_of_several_pairs_add_up_and_are_forgotten(tmp_path: Path) -> None:
    for sha in "cde":
        last = after(tmp_path, R, U, head=replace(HEAD, commit=replace(HEAD.commit, sha=sha * 40)))
    assert last.reversed == 3
    assert after(tmp_path, *[U] * (FORGOTTEN - last.steady - 1)).reversed == 3
    assert after(tmp_path, U).reversed == 0


def test_only_what_gates_in_one_environment_is_kept(tmp_path: Path) -> None:
    remember_verdicts(tmp_path, "box", BASE, HEAD, [said(R, gates=False), said(Verdict.FAILED)])
    remember_verdicts(tmp_path, "box", BASE, replace(HEAD, environment="next"), [said(R)])
    assert last_verdicts(tmp_path, "box") == {}


def test_what_cannot_be_read_counts_as_not_there(tmp_path: Path) -> None:
    after(tmp_path, R)
    file = tmp_path / FILE
    file.write_text(file.read_text().replace("regressed", "worse"))
    assert last_verdicts(tmp_path, "box") == {}
    assert after(tmp_path, R, U).reversed == 1
