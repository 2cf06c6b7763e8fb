"""What the demo has planted is found in the history that a sweep recorded of it on a real GPU, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from regress.commands.demo.story import PLANTED, STORY
from regress.commands.report import report
from regress.pages import Event, PageIndex
from regress.report.progress import Progress
from regress.session import Request
from tests.conftest import regress
from tests.data import h200_demo

RULED = {"gpu_time", "peak_memory", "host_time"}
"""Metrics that are listed with every change that is found of them. Wall time and the counters follow from what is planted."""


EXPECTED = {
    (subject, planted.benchmark, planted.metric, str(planted.verdict))
    for subject, own in PLANTED.items()
    for planted in own
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
        return h200_demo(tmp_path_factory.mktemp("recorded") / "tinynn")


@pytest.fixture(scope="module")
def index(root: Path, tmp_path_factory: pytest.TempPathFactory) -> PageIndex:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGRESS_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        site, _ = report(Request(root), Progress(None, quiet=True))
        return site.index([leaf.make()[1] for leaf in site.leaves])[0]


def found(index: PageIndex, events: Sequence[Event]) -> set[tuple[str, str, str, str]]:
    return {
        (index.commits[event.first].subject, index.entries[event.benchmark].name, event.metric, event.moved)
        for event in events
    }


def test_every_planted_change_is_found_with_its_commit(index: PageIndex) -> None:
    assert found(index, index.events) >= EXPECTED
    assert all(
        event.last == event.first == event.good + 1 for event in index.events
    )  # one commit is to blame, and no other


def test_nothing_is_found_that_was_not_planted(index: PageIndex) -> None:
    assert found(index, [event for event in index.events if event.metric in RULED]) <= EXPECTED
    assert {subject for subject, *_ in found(index, index.events)} == set(PLANTED)


def test_what_has_become_of_them(index: PageIndex) -> None:
    states = {
        (index.commits[event.first].subject, event.metric): event.state
        for event in index.events
        if event.gates and event.moved == "regressed"
    }
    reverted = next(step.reverts for step in STORY if step.reverts)
    assert states.pop((reverted, "gpu_time")) == "recovered"
    assert states.pop((STORY[-1].subject, "gpu_time")) == "tentative"  # the newest commit, measured once
    assert set(states.values()) == {"open"}


def test_a_report_and_a_table_of_it(root: Path) -> None:
    done = regress(root, "report", "-q")
    assert done.out == "report/index.html  (8 benchmarks, 30 commits; 8 pages changed)\n", done.err
    compared = regress(root, "compare", "HEAD~1", "HEAD", "--machine", "h200")
    assert compared.code == 4, "two groups of a sweep, when each was a run of its own"
    assert "UNDECIDED  18 cases: 4 undecided, 14 unchanged" in compared.out
    rows = regress(root, "export", "--csv", "-").out.splitlines()
    assert sum(",gpu_time," in row and "Softmax" in row for row in rows) == 30 * 2
