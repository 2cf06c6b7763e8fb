"""Which explanation a change has: by commits, case, metric, direction and place, and from which folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from regress.history import keep_explanation
from regress.model import Case, Cause, Commit, Explained, Explanation, KeptExplanation, Verdict
from regress.pages import Told
from regress.pages.accounts import UNKNOWN, Accounts, explained_in
from regress.pages.branch import Branch
from regress.pages.events import events_of
from regress.pages.lines import line_of
from regress.session import Request, Session
from tests.conftest import Project
from tests.report import sample

from .test_model import SHAS, branch, series, steps, told

WHERE = ("h100", "GPU-1", "env")
STEP = steps((10, 1e-3), (14, 1.2e-3))
"""A regression at the commit 10."""


def kept(
    base: int,
    head: int,
    *,
    metric: str = "gpu_time",
    params: tuple[str, ...] = (),
    ratio: float = 1.2,
    machine: str = "h100",
    environment: str = "env",
    date: float = 1e9,
    causes: int = 1,
) -> KeptExplanation:
    """What lies between these commits, with a cause that names them."""
    verdict = Verdict.REGRESSED if ratio > 1 else Verdict.IMPROVED
    about = sample.compared(Case("ops.cudatime_f", params), metric, verdict, 1e-3, 1e-3 * ratio)
    named = [Cause("fusion", f"{base} to {head}", "high")] * causes
    explained = Explained(about, Explanation(1e-3, 1.2e-3, 2e-4, 0.0, 0.0, causes=tuple(named)))
    return KeptExplanation(SHAS[base], SHAS[head], machine, environment, date, explained)


def of(
    *explanations: KeptExplanation, params: tuple[str, ...] = (), good: int = 9, on: Branch | None = None
) -> Told | None:
    """What is told of the regression at the commit 10, where those after `good` may be to blame for it."""
    values = [None if good < at < 10 else value for at, value in enumerate(STEP)]
    line = line_of(told(series(values, params=params)), "h100", 0.05, 24)
    (change,) = Accounts(explanations, on or branch()).of_line(line, WHERE).changes
    assert (change.good, change.first) == (good, 10)
    return change.told


def text(account: Told | None) -> str:
    return account.text if account is not None else ""


def test_the_pair_itself_and_what_lies_in_its_range() -> None:
    assert text(of(kept(9, 10))) == "9 to 10"
    assert text(of(kept(6, 10), good=5)) == "6 to 10"
    assert of(kept(10, 11)) is None
    assert of(kept(7, 11), good=8) is not None


def test_a_pair_that_holds_other_commits_too_says_so() -> None:
    wide = of(kept(2, 15))
    assert wide is not None
    assert (wide.text, wide.wider) == ("2 to 15", True)
    assert text(of(kept(2, 15), kept(4, 12), kept(9, 10))) == "9 to 10"
    assert text(of(kept(2, 15), kept(4, 12))) == "4 to 12"
    assert of(kept(2, 8)) is None
    assert of(kept(7, 9), good=5) is not None
    assert of(kept(2, 8), good=5) is None, "some of both"


@pytest.mark.parametrize(
    "other",
    [
        kept(9, 10, metric="wall_time"),
        kept(9, 10, params=("1",)),
        kept(9, 10, ratio=0.8),
        kept(10, 9),
        replace(kept(9, 10), base="ab" * 20),
    ],
    ids=["metric", "case", "direction", "backwards", "not on the branch"],
)
def test_of_something_else_it_is_no_account(other: KeptExplanation) -> None:
    assert of(other) is None


def test_what_was_explained_elsewhere_says_where_and_is_second() -> None:
    assert of(kept(9, 10)) == Told(0, "9 to 10", "high", SHAS[9][:12], SHAS[10][:12], False)
    there, other = of(kept(9, 10, machine="laptop")), of(kept(9, 10, environment="torch-2.9"))
    assert there is not None
    assert other is not None
    assert (there.where, other.where) == ("laptop", "torch-2.9")
    own = kept(9, 10, date=1.0)
    comparison = of(kept(9, 10, machine="laptop", date=2.0), own)
    assert comparison is not None
    assert comparison.where == ""


def test_without_a_cause_there_is_still_an_account() -> None:
    comparison = of(kept(9, 10, causes=0))
    assert comparison is not None
    assert (comparison.text, comparison.confidence) == (UNKNOWN, "")


def test_a_side_branch_is_explained_from_where_it_began() -> None:
    """The commits 8 and 9 are of a branch that began at 4 and was merged by 10; 5 to 7 are not to blame."""
    parents = {at: (at - 1,) for at in range(1, 24)} | {8: (4,), 10: (7, 9)}
    graph = [
        Commit(sha, f"change {at}", "Ada", 1e9 + at, tuple(SHAS[one] for one in parents.get(at, ())))
        for at, sha in enumerate(SHAS)
    ]
    assert text(of(kept(4, 9), good=7, on=branch(graph))) == "4 to 9"
    assert of(kept(4, 9), good=7) is None, "in a straight line 5 to 7 lie between, which are not to blame"


def test_an_event_prefers_the_case_that_stands_for_it() -> None:
    cases = [("1",), ("2",)]
    lines = [
        (told(series(steps((10, 1e-3), (14, 1.2e-3 + at * 1e-4)), params=case)), 0) for at, case in enumerate(cases)
    ]
    (event,) = events_of("ops.cudatime_f", lines, branch(), frozenset())
    assert (event.params, event.cases) == ("2", 2)

    def best(*explanations: KeptExplanation) -> Told | None:
        return Accounts(explanations, branch()).of_event(event, WHERE).told

    first, second = kept(9, 10, params=("1",), ratio=1.5), kept(9, 10, params=("2",))
    for order in ((first, second), (second, first)):
        account = best(*order)
        assert account is not None
        assert account.params == ""
    only = best(first)
    assert only is not None
    assert only.params == "1"
    assert best() is None
    (shown,) = Accounts([first], branch()).shown
    assert (shown.base.subject, shown.head.subject, shown.params) == ("change 9", "change 10", "1")


def test_the_cache_and_the_results_are_read_and_the_newer_one_counts(project: Callable[..., Project]) -> None:
    p = project()
    session = Session(Request(p.root))
    results, cache = Path(session.config.results_dir), session.cache / "history"
    for folder, date, ratio in ((results, 2.0, 1.5), (cache, 1.0, 1.2), (cache, 3.0, 1.7)):
        keep_explanation(folder, kept(9, 10, date=date, ratio=ratio, metric="gpu_time" if date < 3 else "wall_time"))
    (explanations,) = explained_in(session).values()
    assert sorted((explanation.found.comparison.metric.name, explanation.date) for explanation in explanations) == [
        ("gpu_time", 2.0),
        ("wall_time", 3.0),
    ]
