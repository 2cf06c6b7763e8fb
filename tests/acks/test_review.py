"""Acknowledgements held against comparisons and change points, in real repositories."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from regress import acks
from regress.acks import Review, acknowledged
from regress.acks.project import review
from regress.compare import overall
from regress.git import open_repository
from regress.model import (
    METRICS,
    Acknowledgement,
    Case,
    ChangePoint,
    Comparison,
    Failure,
    Series,
    Settings,
    Side,
    Summary,
    Verdict,
    metric_of,
)
from regress.project import Project as Opened
from regress.project import Request
from tests.conftest import Project

NOW = datetime.datetime(2026, 3, 1, 12).timestamp()
CASE = Case("ops.cudatime_add", ("16",))
GPU, HOST = METRICS["gpu_time"], METRICS["host_time"]
FILE = "regress-acks.toml"


def entry(kind: str = "accepted", pattern: str = "ops.cudatime_add", **more: Any) -> Acknowledgement:
    level = {"level": 1.1} if kind == "accepted" and "value" not in more else {}
    return Acknowledgement(pattern, kind, "why", **{**level, **more})  # type: ignore[arg-type]


def compared(ratio: float | None = 1.1, verdict: Verdict = Verdict.REGRESSED, **more: Any) -> Comparison:
    head = Summary(ratio or 1.0, 1.0, 1.2, 0.95, 5, 0.01)
    return replace(Comparison(CASE, GPU, verdict, base=head, head=head, ratio=ratio), **more)


class Repository(Project):
    """A repository with an acknowledgement file."""

    def write_entries(self, *entries: Acknowledgement) -> None:
        text = ""
        for known in entries:
            text = acks.added(text, known, FILE)
        self.write({FILE: text})

    def commit_with(self, *entries: Acknowledgement) -> str:
        self.write_entries(*entries)
        return self.commit({})

    def review(
        self, head: str = "HEAD", *, dirty: bool = False, now: float = NOW, known: Sequence[Case] = ()
    ) -> Review:
        repository = open_repository(self.root)
        side = Side("head", repository.resolve(head), head, dirty=dirty)
        path = (self.root / FILE).resolve()
        return Review(acks.read(path), path, repository, side, now, known)

    def acts(self, comparison: Comparison, base: str, head: str = "HEAD") -> bool:
        """Whether the file as it is keeps it from being an alarm."""
        reviewed = self.review(head).of(comparison, open_repository(self.root).resolve(base).sha)
        assert reviewed.verdict is comparison.verdict
        return not reviewed.alarms


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "project", {})
    made.commit({}, "first")
    return made


# -- accepted ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ratio", "acts"), [(1.06, True), (1.1, True), (1.154, True), (1.156, False), (1.5, False)])
def test_a_regression_is_accepted_up_to_the_level_give_or_take_the_threshold(
    repository: Repository, ratio: float, acts: bool
) -> None:
    repository.write_entries(entry())
    assert repository.acts(compared(ratio), "HEAD") is acts


def test_what_is_above_the_level_says_so(repository: Repository) -> None:
    repository.write_entries(entry())
    assert repository.review().of(compared(1.5), "HEAD").reasons == ("above what is accepted, +10.0 %",)


def test_where_more_is_better_a_level_is_below_one(repository: Repository) -> None:
    rate = metric_of("value", "GB/s")
    repository.write_entries(entry(level=0.9))
    assert repository.acts(compared(0.87, metric=rate), "HEAD")
    assert not repository.acts(compared(0.8, metric=rate), "HEAD")
    assert not repository.acts(compared(0.0, metric=rate), "HEAD")


def test_counters_are_held_to_the_level_exactly(repository: Repository) -> None:
    launches = METRICS["launches"]
    repository.write_entries(entry(level=float(f"{4 / 3:.5g}")))
    assert repository.acts(compared(4 / 3, metric=launches, threshold=0.0), "HEAD")
    assert not repository.acts(compared(5 / 3, metric=launches, threshold=0.0), "HEAD")


def test_from_zero_a_value_is_accepted(repository: Repository) -> None:
    def synchronizations(value: float) -> Comparison:
        head = Summary(value, value, value, 0.95, 2, 0.0)
        return compared(None, metric=METRICS["synchronizations"], head=head, threshold=0.0)

    repository.write_entries(entry(value=2.0))
    assert repository.acts(synchronizations(2), "HEAD")
    assert not repository.acts(synchronizations(3), "HEAD")
    repository.write_entries(entry(level=2.0))
    assert not repository.acts(synchronizations(1), "HEAD")


def test_a_base_that_has_the_entry_has_the_change(repository: Repository) -> None:
    old = repository.git("rev-parse", "HEAD")
    repository.commit_with(entry(until="lifted"))
    repository.commit({})
    assert repository.acts(compared(), old)
    assert not repository.acts(compared(), "HEAD~1")  # another 10 % on top


def test_a_base_that_has_what_was_seen_has_the_change_before_the_entry_lands(repository: Repository) -> None:
    old = repository.git("rev-parse", "HEAD")
    seen = repository.commit({})
    repository.commit_with(entry(since=old, seen=seen))
    assert repository.acts(compared(), old)
    assert not repository.acts(compared(), seen)


def test_two_accepted_changes_are_one_level(repository: Repository) -> None:
    old = repository.git("rev-parse", "HEAD")
    first = repository.commit_with(entry(until="lifted"))
    repository.commit_with(entry(until="lifted", level=1.21))
    assert repository.acts(compared(1.21), old)
    assert repository.acts(compared(1.1), first)
    assert not repository.acts(compared(1.21), first)


def test_the_entry_holds_after_a_squash(repository: Repository) -> None:
    """Whose hash nobody has seen before: only what the files say counts."""
    main = repository.git("rev-parse", "HEAD")
    repository.git("checkout", "-qb", "topic")
    repository.commit({"a.py": "1"})
    repository.commit_with(entry(since=main, until="lifted"))
    repository.git("checkout", "-q", "main")
    repository.commit({"other.py": "1"})
    repository.git("merge", "--squash", "-q", "topic")
    repository.git("commit", "-qm", "topic")
    assert repository.acts(compared(), "HEAD~1")
    repository.commit({})
    assert not repository.acts(compared(), "HEAD~1")


def test_a_head_before_the_change_is_not_excused_by_it(repository: Repository) -> None:
    since = repository.commit({})
    repository.write_entries(entry(since=since))
    assert not repository.acts(compared(), "HEAD~1", head=since)
    dirty = repository.review(dirty=True)  # the change is not committed yet
    assert not dirty.of(compared(), since).alarms


@pytest.mark.parametrize("verdict", [Verdict.FAILED, Verdict.UNDECIDED, Verdict.IMPROVED])
def test_only_regressions_are_accepted(repository: Repository, verdict: Verdict) -> None:
    repository.write_entries(entry())
    assert not repository.acts(compared(verdict=verdict), "HEAD")


# -- noise and quarantine ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "noise"),
    [(Verdict.REGRESSED, True), (Verdict.UNDECIDED, True), (Verdict.UNCHANGED, True), (Verdict.FAILED, False)],
)
def test_noise_excuses_numbers_and_quarantine_everything(repository: Repository, verdict: Verdict, noise: bool) -> None:
    repository.write_entries(entry("noise"))
    assert repository.acts(compared(verdict=verdict), "HEAD") is noise
    repository.write_entries(entry("quarantine"))
    assert repository.acts(compared(verdict=verdict), "HEAD")


def test_what_is_acknowledged_changes_no_exit_code_and_is_counted(repository: Repository) -> None:
    boom = Failure("error", "boom", "ops.py:1")
    other = compared(case=Case("ops.cudatime_mul"), ratio=1.02, verdict=Verdict.UNCHANGED, noise=0.01)
    failed = compared(case=Case("ops.cudatime_div"), ratio=None, verdict=Verdict.FAILED, head_failure=boom, noise=0.9)
    comparisons = [compared(noise=0.02), other, failed]
    assert overall(comparisons, Settings()).exit_codes == (1, 3)
    repository.write_entries(entry(), entry("quarantine", "ops.cudatime_div"))
    base = Side("base", open_repository(repository.root).resolve("HEAD"), "")
    done, told = acknowledged(comparisons, repository.review(), base, whole=True)
    summed = overall(done, Settings())
    assert (summed.state, summed.exit_codes, told) == ("PASS", (0,), ())
    assert summed.counts == {"regressed": 1, "failed": 1, "unchanged": 1}
    assert summed.acknowledged == {"regressed": 1, "failed": 1}
    assert summed.noise_floor == (0.015, 0.02, str(CASE))  # without what is in quarantine


def test_one_metric_of_a_case_may_be_acknowledged_and_not_another(repository: Repository) -> None:
    repository.write_entries(entry("noise", metric="gpu_time"))
    comparisons = [
        repository.review().of(comparison, "HEAD")
        for comparison in (compared(), compared(metric=METRICS["peak_memory"]))
    ]
    assert [comparison.alarms for comparison in comparisons] == [False, True]
    summed = overall(comparisons, Settings())
    assert (summed.exit_codes, summed.counts, summed.acknowledged) == ((1,), {"regressed": 1}, {})


# -- which entry ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("ops.cudatime_add", True),
        ("ops.cudatime_add(16)", True),
        ("cudatime_a", True),
        (r"add\(\d+\)$", True),
        ("ops.cudatime_ad", False),  # the name of another one
        ("ops.cudatime_add(1)", False),
    ],
)
def test_a_pattern_is_a_name_first(repository: Repository, pattern: str, matches: bool) -> None:
    repository.write_entries(entry("noise", pattern))
    review = repository.review(known=[CASE, Case("ops.cudatime_ad"), Case("ops.cudatime_add", ("1",))])
    assert (review.of(compared(), "HEAD").acknowledged is not None) is matches


def test_the_entry_that_says_most_about_the_case_counts(repository: Repository) -> None:
    entries = [
        entry("noise", "ops"),
        entry("noise", "ops.cudatime_add"),
        entry("noise", "ops.cudatime_add", metric="gpu_time"),
        entry("noise", "ops.cudatime_add(16)"),
    ]
    for count in range(1, 5):
        repository.write_entries(*entries[:count])
        assert repository.review().of(compared(), "HEAD").acknowledged == entries[count - 1]


# -- until ---------------------------------------------------------------------------------------------------------------


def test_the_next_tag_is_the_first_that_has_the_entry(repository: Repository) -> None:
    old = repository.git("rev-parse", "HEAD")
    repository.git("tag", "v1.5")
    repository.commit_with(entry())
    assert repository.acts(compared(), old)
    repository.git("tag", "v1.6")
    assert repository.acts(compared(), old)  # what is released is judged with it
    repository.commit({})
    assert not repository.acts(compared(), old)
    assert repository.review().of(compared(), old).reasons == ("no longer accepted: v1.6 has it",)
    assert repository.acts(compared(), old, head="v1.6")


def test_an_entry_written_anew_lasts_until_another_tag(repository: Repository) -> None:
    old = repository.git("rev-parse", "HEAD")
    repository.commit_with(entry())
    repository.git("tag", "-am", "annotated", "v1.6")
    repository.commit_with(replace(entry(), reason="in other words"))
    assert not repository.acts(compared(), old)
    repository.commit_with(entry(since=old))
    assert repository.acts(compared(), old)


def test_a_tag_on_another_branch_ends_nothing(repository: Repository) -> None:
    repository.commit_with(entry(until="v1.6"))
    repository.git("checkout", "-qb", "release", "HEAD~1")
    repository.commit({"release.txt": "1"})
    repository.git("tag", "v1.6")
    repository.git("checkout", "-q", "main")
    repository.commit({})
    assert repository.review().active
    repository.git("merge", "-q", "v1.6")
    assert [*repository.review().expired.values()] == ["v1.6 is there"]


def test_changes_on_top_of_a_tagged_commit_come_after_it(repository: Repository) -> None:
    repository.commit_with(entry(), entry("noise", "x", until="v1.6"))
    repository.git("tag", "v1.6")
    assert len(repository.review().active) == 2
    assert repository.review(dirty=True).active == ()


def test_a_date_counts_to_its_end(repository: Repository) -> None:
    repository.write_entries(entry(until="2026-03-01"))
    assert repository.review().active
    assert [*repository.review(now=NOW + 86400).expired.values()] == ["2026-03-01 is over"]


def test_a_tag_that_had_another_file_or_a_broken_one_ends_nothing(repository: Repository) -> None:
    repository.commit({FILE: "broken ["})
    repository.git("tag", "v1")
    repository.write_entries(entry())
    repository.commit({})
    assert repository.review().active


# -- told ----------------------------------------------------------------------------------------------------------------


def test_expired_and_unused_entries_are_told_of_where_all_was_looked_at(repository: Repository) -> None:
    repository.write_entries(entry(until="2026-02-01"), entry("noise", "ops.cudatime_ad(16)"), entry("noise", "ops"))
    base = Side("base", open_repository(repository.root).resolve("HEAD"), "HEAD")
    _, told = acknowledged([compared()], repository.review(known=()), base, whole=True)
    assert [(reviewed.entry.pattern, reviewed.state, reviewed.why) for reviewed in told] == [
        ("ops.cudatime_add", "expired", "2026-02-01 is over"),
        ("ops.cudatime_ad(16)", "unused", "no benchmark matches"),
    ]
    assert told[0].fix.startswith("regress ack --remove ops.cudatime_add, or ")
    assert told[1].fix == "write \"ops.cudatime_add(16)\", or regress ack --remove 'ops.cudatime_ad(16)'"
    assert acknowledged([compared()], repository.review(), base, whole=False)[1] == ()
    assert [reviewed.state for reviewed in repository.review().entries_of([])] == ["expired", "active", "active"]


# -- change points -------------------------------------------------------------------------------------------------------


def history(repository: Repository, count: int = 8) -> list[str]:
    return [repository.commit({"step.txt": str(at)}) for at in range(count)]


def step(commits: list[str], at: int, before: float, after: float, **more: Any) -> ChangePoint:
    point = ChangePoint(
        first=commits[at],
        blamed=(commits[at],),
        good=commits[at - 1],
        before=before,
        after=after,
        ratio=after / before,
        low=after / before,
        high=after / before,
        moved=Verdict.REGRESSED if after > before else Verdict.IMPROVED,
        large=True,
        threshold=0.05,
        state="confirmed",
        way=(),
    )
    return replace(point, **more)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("metric", ["wall_time", "host_time", "gpu_time"])
def test_host_times_of_a_shared_node_are_noise(repository: Repository, metric: str, exclusive: bool) -> None:
    """In a check there, and in the history; that a case fails is no noise."""
    commits = history(repository)
    cluster = {"kinds": {"h100": {"exclusive": exclusive}}}
    config = json.loads((repository.root / "asv.conf.json").read_text())
    (repository.root / "asv.conf.json").write_text(
        json.dumps({**config, "regress": {**config["regress"], "cluster": cluster, "machine": "h100"}})
    )
    reviewing = review(
        Opened(Request(repository.root)), Side("head", open_repository(repository.root).resolve("HEAD"), "")
    )
    series = Series(CASE, METRICS[metric], "h100", "", "worktree", (), (), (), (), (), ())
    gates = exclusive or metric == "gpu_time"
    assert reviewing.of(compared(1.5, metric=METRICS[metric]), commits[0]).alarms is gates
    assert [point.is_open for point in reviewing.of_changes(series, [step(commits, 2, 1.0, 1.5)])] == [gates]
    assert reviewing.of_changes(replace(series, machine="box"), [step(commits, 2, 1.0, 1.5)])[0].is_open
    assert reviewing.of(compared(1.5, Verdict.FAILED, metric=METRICS[metric]), commits[0]).alarms


def opened(repository: Repository, *points: ChangePoint) -> list[bool]:
    series = Series(CASE, GPU, "box", "", "worktree", (), (), (), (), (), ())
    return [point.is_open for point in repository.review().of_changes(series, points)]


def test_a_change_after_since_is_no_longer_open(repository: Repository) -> None:
    commits = history(repository)
    points = step(commits, 2, 1.0, 1.07), step(commits, 5, 1.07, 1.18)
    assert opened(repository, *points) == [True, True]
    repository.write_entries(entry(since=commits[4]))
    assert opened(repository, *points) == [True, False]
    repository.write_entries(entry(since=commits[5]))
    assert opened(repository, *points) == [True, True]
    repository.write_entries(entry(since="0" * 40))  # rebased away: any of them may be it, while both are one level
    assert opened(repository, *points) == [False, True]


def test_changes_since_then_have_to_stay_below_the_level_together(repository: Repository) -> None:
    commits = history(repository)
    repository.write_entries(entry(since=commits[1]))
    assert opened(repository, step(commits, 3, 1.0, 1.08), step(commits, 5, 1.08, 1.18)) == [False, True]
    assert opened(repository, step(commits, 3, 1.0, 1.04), step(commits, 5, 1.04, 1.1)) == [False, False]


def test_a_relapse_needs_no_acknowledgement(repository: Repository) -> None:
    commits = history(repository)
    repository.write_entries(entry("noise"))
    series = Series(CASE, GPU, "box", "", "worktree", (), (), (), (), (), ())
    points = [step(commits, 2, 1.0, 1.07, state=state) for state in ("confirmed", "relapsed")]
    reviewed = repository.review().of_changes(series, points)
    assert [point.acknowledged is not None for point in reviewed] == [True, False]


def test_a_change_on_top_of_what_was_accepted_is_open(repository: Repository) -> None:
    """In another way of measuring, which does not know the level at `since`."""
    commits = history(repository, 3)
    commits.append(repository.commit_with(entry(since=commits[1], until="lifted")))
    commits += history(repository, 3)
    assert opened(repository, step(commits, 5, 1.0, 1.08, way=(("driver", "580"),))) == [True]


@pytest.mark.parametrize("kind", ["noise", "quarantine"])
def test_regressions_of_noise_are_not_open_and_improvements_are_left_alone(repository: Repository, kind: str) -> None:
    commits = history(repository)
    repository.write_entries(entry(kind))
    review = repository.review()
    series = Series(CASE, GPU, "box", "", "worktree", (), (), (), (), (), ())
    worse, better = review.of_changes(series, (step(commits, 2, 1.0, 2.0), step(commits, 5, 2.0, 1.0)))
    assert worse.acknowledged == entry(kind)
    assert better.acknowledged is None


def test_an_expired_entry_opens_its_changes_again(repository: Repository) -> None:
    commits = history(repository)
    repository.write_entries(entry(since=commits[1], until="2026-02-01"))
    assert opened(repository, step(commits, 3, 1.0, 1.1)) == [True]
