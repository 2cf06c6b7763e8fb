"""`regress sweep --gpus`: groups on several cards of one kind, which are not alike. Real processes, scripted devices."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from regress.commands.sweep import confirming
from regress.history import Store
from tests.commands.test_check import document
from tests.conftest import Project, inside

pytestmark = pytest.mark.usefixtures("dated")

SUITE = "import proj\ndef cudatime_work(): proj.work()\ndef cudatime_other(): proj.other()\n"
CODE = """
import os, regress_scripted
CARD = {{"scripted": 1.0, "scripted-1": 1.06}}.get(os.environ.get("CUDA_VISIBLE_DEVICES"), 1.0)
def work(): regress_scripted.kernel("work", CARD * {work})
def other(): regress_scripted.kernel("other", CARD * {other})
"""


def filled(project: Callable[..., Project], works: list[float], others: list[float]) -> tuple[Project, list[str]]:
    p = project()
    shas = []
    for at, (work, other) in enumerate(zip(works, others, strict=True)):
        files = {"proj/__init__.py": CODE.format(work=work, other=other), "NEWS": str(at)}
        shas.append(p.commit({**files, **({} if at else {"benchmarks/b.py": SUITE})}, f"commit {at}"))
    return p, shas


def jobs_of(p: Project) -> dict[tuple[str, str], set[str]]:
    """By run and card: the commits that it has measured."""
    jobs = defaultdict[tuple[str, str], set[str]](set)
    for commit in Store(p.root / "history").commits():
        (recorded,) = Store(p.root / "history").load(commit.commit_sha).recorded
        for round in recorded.rounds:
            jobs[round.run, round.facts["gpu_uuid"]].add(commit.commit_sha)
    return dict(jobs)


def test_an_event_over_two_cards_is_found_once_and_confirmed_on_one(project: Callable[..., Project]) -> None:
    """The cards are 6 % apart, and `work` is 10 % slower from one commit on."""
    p, shas = filled(project, [50e-6] * 5 + [55e-6] * 4, [80e-6] * 9)
    seen = p.root.parent / "seen.txt"
    with patch.object(confirming, "tentative", return_value={}):  # as if the budget had ended before
        early = inside(p, "sweep", "ALL", "--gpus", "0,1", "--format", "json", "--output", f"text={seen}")
    (change,) = document(early)["changes"]
    assert (early.code, change["state"]) == (0, "tentative")
    assert change["reason"].startswith("seen over 2 cards, and not yet in turn on one")
    assert f"{shas[-1][:8]} measured again beside them" in seen.read_text()
    result = inside(p, "sweep", "ALL", "--gpus", "0,1", "--format", "json", "--output", f"text={seen}")
    report: dict[str, Any] = document(result)
    (change,) = report["changes"]
    assert (change["name"], change["first"], change["device"]) == ("b.cudatime_work", shas[5], "scripted device")
    assert [row["sha"] for row in change["blamed"]] == [shas[5]]
    assert change["ratio"] == pytest.approx(1.1, rel=0.01)
    assert change["reason"].startswith(f"confirmed by check {shas[4][:8]} {shas[5][:8]} on ")
    assert (result.code, change["state"], change["new"]) == (1, "confirmed", True)
    assert "1 pair of commits measured side by side" in seen.read_text()

    jobs = jobs_of(p)
    assert {card for _, card in jobs} == {"scripted", "scripted-1"}
    assert all(shas[-1] in own for own in jobs.values()), "the anchor is in each"
    order = {sha: at for at, sha in enumerate(shas)}
    for own in jobs.values():
        places = sorted(order[sha] for sha in own - {shas[-1]})
        assert all(later - earlier > 1 for earlier, later in itertools.pairwise(places)), "no neighbours"
    assert inside(p, "sweep", "ALL", "--gpus", "0,1", "-q").code == 0, "nothing is left"


def test_the_next_sweep_on_the_other_card_has_the_same_anchor(
    project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that shows one card today and another one tomorrow."""
    p, shas = filled(project, [50e-6] * 2, [80e-6] * 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "scripted")
    assert inside(p, "sweep", "ALL", "-q").code == 0
    files = {"proj/__init__.py": CODE.format(work=50e-6, other=80e-6), "NEWS": "more"}
    shas.append(p.commit(files, "more"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "scripted-1")
    seen = p.root.parent / "seen.txt"
    report = document(inside(p, "sweep", "--format", "json", "--output", f"text={seen}"))
    assert report["changes"] == []
    assert f"{shas[0][:8]} measured again beside them" in seen.read_text()
    (machine,) = (p.root / "history").glob("*/machine.json")
    assert json.loads(machine.read_text())["gpu_uuid"] == "scripted-1"
    (second,) = (own for (_, card), own in jobs_of(p).items() if card == "scripted-1")
    assert second == {shas[0], shas[-1]}
