"""What the pages are told: levels, statuses, events, suspects and intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from regress.acks import Review
from regress.model import METRICS, Acknowledgement, Case, Commit, Corrected, Series, Settings, Side, Way
from regress.pages import SPARK_LETTERS
from regress.pages.branch import MOST_SUSPECTS, Branch, Dated
from regress.pages.broken import broken_of
from regress.pages.contents import _gone, _labels, _numbered, _shortened
from regress.pages.events import events_of
from regress.pages.leaves import shard_file
from regress.pages.lines import Levelled, change_of, levelled, line_of, spans_of
from regress.pages.rows import row_of
from regress.stats.summary import summarize
from regress.trends import changes_of
from regress.trends.changes import series_rule

N = 24
SHAS = [f"{at:040x}" for at in range(N)]
SETTINGS = Settings()
WAY: Way = (("driver", "580"),)


def branch(every: Sequence[Commit] | None = None, tags: dict[str, tuple[str, ...]] | None = None) -> Branch:
    commits = tuple(Commit(sha, f"change {at}", "Ada", 1e9 + at) for at, sha in enumerate(SHAS))
    chain = tuple(replace(commit, parents=(before.sha,)) for before, commit in pairwise(commits))
    return Branch("main", tuple(every or (commits[0], *chain)), commits, (), tags or {}, tags or {})


def series(
    values: Sequence[float | None],
    *,
    metric: str = "gpu_time",
    params: tuple[str, ...] = (),
    ways: Sequence[Way] | None = None,
    failures: Sequence[str] | None = None,
) -> Series:
    """One value a commit, with two rounds 0.2 % around it."""
    apart = 0.0 if METRICS[metric].exact else 0.001
    failures, ways = failures or [""] * N, ways or [WAY] * N
    at = tuple(at for at in range(N) if values[at] is not None or failures[at])
    rounds = tuple(
        () if (value := values[place]) is None else (value * (1 - apart), value * (1 + apart)) for place in at
    )
    return Series(
        Case("ops.cudatime_f", params), METRICS[metric], "h100", "GPU-1", "env", tuple(SHAS), at, rounds,
        tuple(ways[place] for place in at), (None,) * len(at), tuple(failures[place] for place in at),
    )  # fmt: skip


def told(given: Series) -> Levelled:
    at = {sha: index for index, sha in enumerate(SHAS)}
    return levelled(given, changes_of(given, SETTINGS), at, series_rule(given, SETTINGS))


def steps(*levels: tuple[int, float]) -> list[float | None]:
    """So many commits at each value, with a little noise."""
    return [value * (1 + 0.002 * (-1) ** at) for n, value in levels for at in range(n)]


def status(given: Series) -> str:
    return row_of(told(given), 0, 0, 0.05).status


# -- levels --------------------------------------------------------------------------------------------------------------


def test_levels_lie_between_changes() -> None:
    curve = told(series(steps((10, 1e-3), (14, 1.2e-3))))
    assert [(level.first, level.last) for level in curve.levels] == [(0, 9), (10, 23)]
    assert [level.value for level in curve.levels] == pytest.approx([1e-3, 1.2e-3], rel=2e-3)
    assert [level.against for level in curve.levels] == ["", "r"]


def test_every_level_is_judged_against_every_one_before_it() -> None:
    curve = told(series(steps((8, 1e-3), (8, 1.2e-3), (8, 1.01e-3))))
    assert [level.against for level in curve.levels] == ["", "r", "ui"]


def test_what_was_measured_in_unlike_ways_is_not_one_level() -> None:
    other: Way = (("driver", "590"),)
    curve = told(series(steps((24, 1e-3)), ways=[WAY] * 12 + [other] * 12))
    assert [(level.first, level.last, level.way, level.against) for level in curve.levels] == [
        (0, 11, 0, ""),
        (12, 23, 1, "x"),
    ]
    row = row_of(curve, 0, 3, 0.05)
    assert row.since is None
    line = line_of(curve, "h100", 0.05, N)
    assert line.ticks == ((12, "driver 580 → 590"),)


def test_noise_is_what_values_scatter_around_their_levels() -> None:
    quiet, loud = told(series(steps((10, 1e-3), (14, 2e-3)))), told(series([1e-3 * 1.1 ** (at % 3) for at in range(N)]))
    assert quiet.noise == pytest.approx(1.4826 * 0.002, rel=0.1)
    assert loud.noise is not None
    assert loud.noise > 0.05


# -- statuses ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "levels, expected",
    [
        ([(24, 1.0)], "unchanged"),
        ([(12, 1.0), (12, 1.2)], "regressed"),
        ([(12, 1.0), (12, 0.8)], "improved"),
        ([(8, 1.0), (8, 1.2), (8, 1.0)], "recovered"),
        ([(8, 1.0), (8, 1.2), (8, 1.15)], "regressed"),
        ([(12, 1.0), (12, 1.03)], "unchanged"),
        ([(23, 1.0), (1, 1.3)], "tentative"),
    ],
)
def test_the_status_of_a_series(levels: list[tuple[int, float]], expected: str) -> None:
    assert status(series(steps(*[(n, value * 1e-3) for n, value in levels]))) == expected


def test_a_status_that_is_no_verdict_on_values() -> None:
    few = series([None] * 21 + [1e-3] * 3)
    row = row_of(told(few), 0, 0, 0.05)
    assert (row.status, row.why) == ("undecided", "3 results to compare; it takes 4")
    assert status(series([1e-3 * (1 + 0.4 * ((at * 7) % 5) / 5) for at in range(N)])) == "undecided"
    assert status(series([1e-3] * 23 + [None], failures=[""] * 23 + ["oom"])) == "failed"
    assert status(series([1e-3] * 23 + [None], failures=[""] * 23 + ["skipped"])) == "failed"
    assert status(series([1e-3] * 22 + [None, 1e-3], failures=[""] * 22 + ["oom", ""])) == "unchanged"


def test_a_row_tells_the_open_regression_and_the_reference() -> None:
    curve = told(series(steps((6, 1e-3), (6, 1.3e-3), (6, 1.2e-3), (6, 1.19e-3))))
    row = row_of(curve, 0, 8, 0.05)
    assert row.status == "regressed"
    assert row.changed == 6
    assert row.since == pytest.approx(curve.values[-1] / curve.values[8])


def test_a_spark_shows_steps_and_gaps_and_no_noise() -> None:
    flat = row_of(told(series(steps((24, 1e-3)))), 0, 0, 0.05).spark
    assert max(flat) < SPARK_LETTERS[len(SPARK_LETTERS) * 3 // 4]
    gapped = series([*steps((12, 1e-3)), None, None, *steps((10, 2e-3))], failures=[""] * 12 + ["oom"] + [""] * 11)
    letters = row_of(told(gapped), 0, 0, 0.05).spark
    assert (letters[0], letters[12], letters[13], letters[14]) == ("A", " ", "-", "z")


def test_a_value_whose_double_is_too_large_for_a_float_is_a_value() -> None:
    curve = told(series(steps((12, 1.2e308), (12, 1.7e308))))
    assert [level.value for level in curve.levels] == pytest.approx([1.2e308, 1.7e308], rel=0.01)
    letters = row_of(curve, 0, 0, 0.05).spark
    assert (letters[0], letters[-1] in "yz") == ("A", True)


def test_what_is_no_longer_measured_is_gone() -> None:
    row = row_of(told(series([*steps((12, 1e-3)), *[None] * 12])), 0, 0, 0.05)
    assert _gone(row, 20, 20).status == "unchanged"
    assert _gone(row, 23, 23).status == "gone"
    assert _gone(row, 11, 200).status == "gone"


# -- events --------------------------------------------------------------------------------------------------------------


def test_cases_and_places_that_moved_together_are_one_event() -> None:
    lines = [
        (told(series(steps((10, size), (14, size * 1.2)), params=(str(size),))), place)
        for size in (1e-3, 2e-3)
        for place in (0, 1)
    ]
    lines.append((told(series(steps((24, 5e-3)), params=("0.005",))), 2))
    (event,) = events_of("ops.cudatime_f", lines, branch(), frozenset({"bisect", "check"}))
    assert (event.state, event.moved, event.large, event.gates) == ("open", "regressed", True, True)
    assert (event.cases, event.of_cases, event.places, event.of_places) == (2, 3, (0, 1), (0, 1, 2))
    assert (event.good, event.first, event.suspects_n) == (9, 10, 1)
    case, ends = f"'ops.cudatime_f({event.params})'", f"{SHAS[9][:8]} {SHAS[10][:8]}"
    assert event.commands == {"check": f"regress check {ends} -b {case}"}, "one commit is no range to bisect"


def test_what_moved_at_other_times_or_in_another_direction_is_another_event() -> None:
    up, later = (
        told(series(steps((10, 1e-3), (14, 1.2e-3)))),
        told(series(steps((16, 1e-3), (8, 1.2e-3)), params=("1",))),
    )
    down = told(series(steps((10, 1e-3), (14, 0.8e-3)), params=("2",)))
    seen = events_of("f", [(up, 0), (later, 0), (down, 0)], branch(), frozenset())
    assert [(event.moved, event.first, event.state) for event in seen] == [
        ("regressed", 10, "open"), ("regressed", 16, "open"), ("improved", 10, "confirmed")]  # fmt: skip


def ranged(first: int, good: int, last: int, param: str) -> Levelled:
    """A step whose commit is `first` most likely, and one after `good` up to `last` for certain."""
    curve = told(series(steps((first, 1e-3), (N - first, 1.2e-3)), params=(param,)))
    (change,) = curve.changes
    return replace(curve, changes=(replace(change, good=SHAS[good], blamed=tuple(SHAS[good + 1 : last + 1])),))


def test_what_may_be_to_blame_for_an_event_has_the_likeliest_commit_of_each_case() -> None:
    """Each of many ranges misses its commit now and then: what all have in common may be no case's own answer."""
    lines = [(ranged(10, 8, 12, "1"), 0), (ranged(13, 10, 14, "2"), 0)]
    (event,) = events_of("f", lines, branch(), frozenset())
    assert (event.good, event.last, event.suspects_n, event.cases) == (9, 13, 4, 2)
    assert event.good < event.first <= event.last
    (narrow,) = events_of("f", [*lines[:1], (ranged(10, 9, 11, "2"), 0)], branch(), frozenset())
    assert (narrow.good, narrow.last) == (9, 11), "both likeliest commits are among what they share"


def test_a_recovered_regression_is_not_open() -> None:
    given = told(series(steps((8, 1e-3), (8, 1.2e-3), (8, 1e-3))))
    assert [(event.moved, event.state) for event in events_of("f", [(given, 0)], branch(), frozenset())] == [
        ("regressed", "recovered"), ("improved", "recovered")]  # fmt: skip
    held = told(series(steps((8, 1e-3), (16, 1.2e-3)), params=("1",)))
    worse, _ = events_of("f", [(given, 0), (held, 0)], branch(), frozenset())
    assert (worse.state, worse.cases, worse.recovered_by) == ("open", 2, None)


def test_commits_that_may_be_to_blame_stand_in_the_index_once() -> None:
    lines = [told(series(steps((10, 1e-3), (14, 1.2e-3)), metric=metric)) for metric in ("gpu_time", "host_time")]
    seen = events_of("f", [(line, 0) for line in lines], branch(), frozenset())
    events, commits = _numbered(seen)
    assert [event.suspects for event in events] == [(0,), (0,)]
    assert [commit.sha for commit in commits] == [SHAS[10][:12]]


def review(*entries: Acknowledgement) -> Review:
    commits = branch().commits
    return Review(entries, Path("acks.toml"), Dated(commits), Side("head", commits[-1], ""), 0.0)


def test_cases_that_fail_alike_are_one_failure() -> None:
    def failing(param: str, first: int) -> tuple[Series, int]:
        values: list[float | None] = [*[1e-3] * first, *[None] * (N - first)]
        return series(values, params=(param,), failures=[""] * first + ["oom"] * (N - first)), 0

    skipped = series([None] * N, params=("9",), failures=["skipped"] * N), 0
    cases = broken_of([failing("1", 20), failing("2", 20), failing("3", 22), skipped], branch(), review())
    assert [(case.params, case.cases, case.good, case.first, case.commits, case.open) for case in cases] == [
        ("1", 2, 19, 20, 4, True), ("3", 1, 21, 22, 2, True)]  # fmt: skip


def test_what_is_skipped_is_a_failure_only_where_it_gave_numbers_before() -> None:
    values: list[float | None] = [1e-3] * 20 + [None] * (N - 20)
    (case,) = broken_of([(series(values, failures=[""] * 20 + ["skipped"] * (N - 20)), 0)], branch(), review())
    assert (case.kind, case.good, case.first, case.open) == ("skipped", 19, 20, True)


def test_what_is_acknowledged_has_not_stopped_today_and_fails_all_the_same() -> None:
    values: list[float | None] = [1e-3] * 20 + [None] * (N - 20)
    failing = series(values, failures=[""] * 20 + ["error"] * (N - 20)), 0
    for entry, good in (
        (Acknowledgement("f", "known", "gone on purpose", seen=SHAS[20]), None),
        (Acknowledgement("f", "known", "before we looked", seen=SHAS[19]), 19),
        (Acknowledgement("f", "quarantine", "is mended soon", until="lifted"), None),
        (Acknowledgement("f", "quarantine", "its memory is", "peak_memory", until="lifted"), 19),
        (Acknowledgement("f", "accepted", "slower", level=1.1), 19),
    ):
        (case,) = broken_of([failing], branch(), review(entry))
        assert (case.good, case.first, case.open) == (good, 20, True), entry


def test_what_failed_and_is_skipped_since_is_no_failure_of_today() -> None:
    never = series([None] * N, failures=["error"] * 20 + ["skipped"] * (N - 20))
    (case,) = broken_of([(never, 0)], branch(), review())
    assert (case.kind, case.first, case.last, case.open) == ("error", 0, 19, False)


def test_from_zero_has_no_ratio() -> None:
    given = told(series([0.0] * 12 + [2.0**20] * 12, metric="peak_memory"))
    (event,) = events_of("f", [(given, 0)], branch(), frozenset())
    assert (event.ratio, event.state, event.before, event.after) == (None, "open", 0.0, 2.0**20)
    assert change_of(given.changes[0], given.at).ratio is None


# -- commits -------------------------------------------------------------------------------------------------------------


def test_suspects_follow_the_graph_and_not_the_order() -> None:
    root, a, b = (Commit(SHAS[at], "", "", at) for at in range(3))
    side = Commit("f" * 40, "on a branch that was merged later", "", 1, (root.sha,))
    every = (root, replace(a, parents=(root.sha,)), side, replace(b, parents=(a.sha,)))
    graph = branch(every)
    assert [commit.sha for commit in graph.suspects(root.sha, b.sha)] == [a.sha, b.sha]
    merged = replace(b, parents=(a.sha, side.sha))
    assert [commit.sha for commit in branch((*every[:3], merged)).suspects(a.sha, b.sha)] == [side.sha, b.sha]


def test_a_long_range_lists_its_newest_commits() -> None:
    gap: list[float | None] = [*[1e-3] * 4, *[None] * 12, *[1.3e-3] * 8]
    many = [Commit(f"ee{at:038x}", f"between {at}", "Eve", 1e9 + at) for at in range(30)]
    commits = branch().commits
    every = [commits[0]]
    for commit in (*commits[1:4], *many, *commits[4:]):
        every.append(replace(commit, parents=(every[-1].sha,)))
    (event,) = events_of("f", [(told(series(gap)), 0)], branch(every), frozenset())
    assert (event.suspects_n, len(event.suspects)) == (30 + 13, MOST_SUSPECTS)


@pytest.mark.parametrize(
    "tags, expected",
    [({}, 0), ({SHAS[5]: ("v1",)}, 5), ({SHAS[5]: ("v1",), SHAS[9]: ("v2",)}, 9), ({SHAS[23]: ("v3",)}, 0)],
)
def test_the_reference_is_the_last_release(tags: dict[str, tuple[str, ...]], expected: int) -> None:
    graph = branch(tags=tags)
    assert graph.reference == expected
    assert (graph.last.name if graph.last else "") == ("" if not expected else tags[SHAS[expected]][0])


# -- intervals -----------------------------------------------------------------------------------------------------------


def test_few_rounds_take_the_spread_of_the_whole_series() -> None:
    given = series([1e-3 * (1 + at / 1000) for at in range(N)])
    alone, pooled = summarize(given.rounds[0]), spans_of(given)[0]
    assert alone.high - alone.low > 4 * (pooled[1] - pooled[0])
    assert math.sqrt(pooled[0] * pooled[1]) == pytest.approx(1e-3, rel=1e-6)


def test_many_rounds_and_recorded_intervals_speak_for_themselves() -> None:
    given = series([1e-3] * N)
    rounds = (tuple(1e-3 + at * 1e-6 for at in range(6)), *given.rounds[1:])
    own = summarize(rounds[0])
    assert spans_of(replace(given, rounds=rounds))[0] == (own.low, own.high)
    recorded = replace(given, rounds=((1e-3,),) * N, intervals=((0.9e-3, 1.2e-3),) * N)
    assert spans_of(recorded)[0] == (0.9e-3, 1.2e-3)
    assert spans_of(replace(given, rounds=((1e-3,),) * N))[0] == (1e-3, 1e-3)


def test_a_corrected_value_has_the_interval_of_its_pairs_and_what_was_read_beside_it() -> None:
    given = series([1e-3] * N)
    given = replace(given, corrected={1: Corrected(2e-3, 0.01)})
    assert [*spans_of(given)[1]] == pytest.approx([2e-3 * math.exp(-0.0196), 2e-3 * math.exp(0.0196)])
    assert spans_of(given)[0] == spans_of(series([1e-3] * N))[0]
    line = line_of(told(given), "h100", 0.1, N)
    assert [value / line.per for value in line.values[:2]] == pytest.approx([1e-3, 2e-3])
    assert [value / line.per for value in line.read[:2]] == pytest.approx([1e-3, 1e-3])
    assert isinstance(line.rounds, tuple)
    for entry, of in ((line.rounds[0], 1e-3), (line.rounds[1], 2e-3)):
        assert isinstance(entry, tuple)
        assert max(map(abs, entry)) / line.per < 0.02 * of
    assert line_of(told(series([1e-3] * N)), "h100", 0.1, N).read == ()


def test_whole_numbers_are_kept_and_others_shortened() -> None:
    given = replace(series([1.0] * N, metric="peak_memory"), rounds=((123456789012,), *((1.23456789,),) * (N - 1)))
    line = line_of(told(given), "h100", 0.1, N)
    assert [value / line.per for value in line.values[:2]] == [123456789012, 1.2346]
    whole = line_of(told(series([2.0**40 + 1] * N, metric="peak_memory")), "h100", 0.1, N)
    assert (whole.per, whole.values[0], whole.lows[0], whole.rounds) == (1, 2**40 + 1, 0, 2)


def test_failures_stand_by_kind() -> None:
    kinds = {4: "oom", 9: "error", 11: "oom"}
    values = [None if at in kinds else 1e-3 for at in range(N)]
    curve = told(series(values, failures=[kinds.get(at, "") for at in range(N)]))
    assert line_of(curve, "h100", 0.1, N).failures == {"oom": (4, 11), "error": (9,)}


def test_intervals_and_rounds_are_distances_from_the_value() -> None:
    line = line_of(told(series(steps((24, 1.2345678e-5)))), "h100", 0.1, N)
    assert line.per == 10**9
    assert line.values[0] == 12370
    assert (line.lows[0], line.highs[0]) == (25, 26)
    assert isinstance(line.rounds, tuple)
    assert line.rounds[0] == (-12, 13)


# -- names ---------------------------------------------------------------------------------------------------------------


def test_places_have_the_shortest_names_that_tell_them_apart() -> None:
    assert _labels([("a", "", "e")]) == ["a"]
    assert _labels([("a", "", "e"), ("b", "", "e")]) == ["a", "b"]
    assert _labels([("a", "", "e1"), ("a", "", "e2")]) == ["e1", "e2"]
    long = [
        f"virtualenv-py{python}-Cython-numpy{numpy}"
        for python, numpy in (("3.9", "1.2"), ("3.9", "1.3"), ("3.11", "1.3"))
    ]
    assert _labels([("a", "", environment) for environment in long]) == [
        "py3.9-numpy1.2",
        "py3.9-numpy1.3",
        "py3.11-numpy1.3",
    ]
    both = [
        ("i7", "", f"virtualenv-py{words}")
        for words in ("3.9-numpy1.21-pythran", "3.7-numpy1.14", "3.7-numpy1.14-pythran")
    ]
    both += [("atom", "", f"virtualenv-py3.7-Cython0.29.{patch}-numpy1.14") for patch in (14, 20)]
    assert _labels(both) == [
        "i7 · py3.9-pythran",
        "i7 · py3.7",
        "i7 · py3.7-pythran",
        "atom · Cython0.29.14",
        "atom · Cython0.29.20",
    ]
    assert _labels([("a", "G1", "e"), ("a", "G2", "e"), ("b", "", "e")]) == ["a · G1", "a · G2", "b"]


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "é\n\0", "x" * 300, "", "CON", "."])
def test_a_file_of_any_benchmark_lies_in_the_folder(name: str) -> None:
    file = shard_file(name)
    assert file.isascii()
    assert file.isprintable()
    assert not set(file) & set('/\\:*?"<>| ')
    assert 12 < len(file) < 80
    assert file != shard_file(name + "x")


def test_too_many_rows_are_the_worst_case_of_each_benchmark() -> None:
    good, bad = (
        row_of(told(series(steps(*levels))), 0, 0, 0.05) for levels in ([(24, 1e-3)], [(12, 1e-3), (12, 2e-3)])
    )
    rows = _shortened([[good] * 3999 + [bad], [good] * 20])
    assert [(row.status, row.cases) for row in rows[:2]] == [("regressed", 4000), ("unchanged", 1)]
    assert len(rows) == 21
