"""What a report says is so: histories that are made for it, with the right words and numbers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from regress.history import Store
from regress.model import NEGATIVE, SYNCHRONIZES, Commit, Machine, Measured, Side
from regress.report.html.badge import badge
from regress.report.html.feed import feed
from regress.session import Request, Session
from regress.trends.events import events_on
from tests.history.samples import benchmark, taken

from .made import DAY, START, Made, noisy

ADD = "ops.cudatime_add"


@pytest.mark.parametrize("better, status", [({}, "changed"), ({"^x\\.": "lower"}, "regressed")])
def test_a_direction_that_nothing_declares_is_neither_worse_nor_better(
    tmp_path: Path, better: dict[str, str], status: str
) -> None:
    """25 times as much of something: a regression only where somebody said that less is better."""
    made = Made(tmp_path / "p", 24, {"better": better})
    index = made.record({"x.track_score": noisy((12, 1.0), (12, 25.0))}, unit="score").index()
    (row,), (event,) = index.rows, index.events
    assert (row.status, event.moved, event.large) == (status, status, True)
    assert (event.state == "open") == (status == "regressed")


def test_what_is_said_to_have_changed_since_is_what_was_measured(tmp_path: Path) -> None:
    """277, 276 | 998 ... 998 | 275: nothing is 72 % less than it was."""
    values = [277e-6, 276e-6, *noisy((20, 998e-6)), 275e-6]
    index = Made(tmp_path / "p", len(values)).record({"x.time_f": values}).index()
    (row,) = index.rows
    assert row.since == pytest.approx(275 / 277, rel=1e-4)
    assert (row.doubt, row.off, row.status) == ("", (), "tentative")
    assert [(level.first, level.last) for level in row.levels] == [(0, 1), (2, 21), (22, 22)]


def test_a_negative_value_is_shown_and_is_no_failure(tmp_path: Path) -> None:
    below, above = noisy((20, -5.0)), noisy((20, 5.0))
    made = Made(tmp_path / "p", 20, {"better": {"": "lower"}})
    lines = {"x.track_a": below, "x.track_b": [*above[:12], *below[12:]], "x.track_c": [*below[:4], *above[4:]]}
    index = made.record(lines, unit="score").index()
    assert [(row.status, row.why) for row in index.rows] == [*[("undecided", NEGATIVE)] * 2, ("unchanged", "")]
    assert [row.latest for row in index.rows] == [below[-1], below[-1], above[-1]]
    assert [row.since for row in index.rows[:2]] == [None, None]
    assert (index.broken, index.open) == ((), ())
    assert [level.against for level in index.rows[0].levels] == [""]


def test_a_value_far_off_its_level_claims_nothing(tmp_path: Path) -> None:
    values = [3.6e-3, *noisy((20, 1e-3))]
    index = Made(tmp_path / "p", len(values)).record({"x.time_f": values, "x.time_g": noisy((21, 1e-3))}).index()
    stray, steady = index.rows
    assert stray.since == pytest.approx(1 / 3.6, rel=0.01)
    assert (stray.doubt, stray.off) == ("the value then is +260 % off its level", (0,))
    assert steady.doubt == ""
    (overall,) = index.overall
    assert (overall.n, overall.ratio) == (1, steady.since)


def test_a_history_that_jumps_between_two_levels_is_undecided(tmp_path: Path) -> None:
    slow = [at % 5 < (1 if at < 40 else 4) for at in range(80)]
    values = [value * (27 if up else 1) for value, up in zip(noisy((80, 3.5e-3)), slow, strict=True)]
    (row,) = Made(tmp_path / "p", 80).record({"x.time_f": values}).index().rows
    assert row.status == "undecided"
    assert row.why.startswith("alternating: its levels have hardly moved")


def test_a_metric_that_vanished_is_gone_and_the_wall_time_takes_over(tmp_path: Path) -> None:
    """A case began to wait for its device seven commits ago, and became slower once more since."""
    made, box = Made(tmp_path / "p", 24), Machine("box", {})
    store, wall = Store(made.root / "history"), noisy((11, 1e-3), (6, 1.3e-3), (7, 2e-3))
    for at, sha in enumerate(made.shas):
        side = Side("head", Commit(sha, "", "", START + at * DAY), "HEAD", "env")
        read = {"wall_time": wall[at]} if at >= 17 else {"wall_time": wall[at], "gpu_time": 0.9 * wall[at]}
        for order in range(2):
            values = {name: value * (1 + order / 1000) for name, value in read.items()}
            round = replace(taken(ADD, order=order, values=values), flags=[SYNCHRONIZES] if at >= 17 else [])
            store.append(side, box, "env", round, {"gpu_uuid": "G"}, benchmark())
        store.finish(side, box, "env", python="3.12", benchmarks={ADD: benchmark()})
    rows = {row.metric: row for row in made.index().rows}
    gpu, host = rows["gpu_time"], rows["wall_time"]
    assert (gpu.status, gpu.why) == ("gone", f"no gpu time since {made.shas[17][:8]}; {SYNCHRONIZES}")
    assert (host.gates, host.status, host.changed) == (True, "regressed", 17)
    states = {(event.metric, event.first): event.state for event in made.index().events if event.gates}
    assert states == {("gpu_time", 11): "gone", ("wall_time", 17): "open"}


def test_a_release_of_a_branch_of_its_own_is_what_was_measured_before_that_left(tmp_path: Path) -> None:
    made = Made(tmp_path / "p", 24).record({"x.time_f": [None if at == 12 else 1e-3 + at * 1e-6 for at in range(24)]})
    made.git("checkout", "-q", "-b", "maintenance", made.shas[12])
    made.git("commit", "-q", "--allow-empty", "-m", "prepare")
    made.git("tag", "v1.0")
    made.git("checkout", "-q", "main")
    index = made.index()
    (release,) = index.releases
    at = made.shas.index(next(sha for sha in made.shas if sha.startswith(index.commits[release.at].sha)))
    assert (index.release, at, release.measured, release.tagged) == ("v1.0", 11, False, False)
    assert index.reference == release.at
    assert index.rows[0].since == pytest.approx(1.023 / 1.011, rel=1e-4)
    made.record({"x.time_old": [1e-3] * 8 + [None] * 16})
    assert [row.since for row in made.index().rows][1] is None, "there is no value since then"


NAMES = [f"{module}.time_{word}" for module in ("io", "nn", "ops", "text") for word in "abc"]
QUIET = {name: noisy((40, 1e-3)) for name in NAMES}


def test_what_moved_at_once_in_one_of_three_places_is_one_event_that_asks_for_the_machine(tmp_path: Path) -> None:
    """A third of the benchmarks are slower on one box from one commit on, and one of them everywhere."""
    flipped = [name for at, name in enumerate(NAMES) if at % 3 == 0 or name.startswith("io")]
    made = Made(tmp_path / "p", 40).record(QUIET, machine="one").record(QUIET, machine="two")
    made.record({**QUIET, **{name: noisy((25, 1e-3), (15, 1.2e-3)) for name in flipped}}, machine="three")
    index = made.index()
    (shift,) = index.shifts
    assert (shift.good, shift.last, shift.benchmarks, shift.suspect) == (24, 25, 6, "machine")
    assert index.places[shift.place].label == "three"
    assert shift.reasons == (
        "6 of them were measured on other machines too and did not move there: was it the machine?",
    )
    assert {(index.entries[event.benchmark].name, event.state, event.shift) for event in index.events} == {
        (name, "open", 0) for name in flipped
    }


def test_what_moved_everywhere_or_where_one_place_only_is_measured_is_the_commits(tmp_path: Path) -> None:
    moved = {name: noisy((25, 1e-3), (15, 1.2e-3)) for name in NAMES}
    alone = Made(tmp_path / "p", 40).record(moved, machine="one").index()
    both = Made(tmp_path / "q", 40).record(moved, machine="one").record(moved, machine="two").index()
    for index in (alone, both):
        assert index.shifts == ()
        assert [event.shift for event in index.events] == [None] * 12


def test_what_is_back_at_the_level_of_before_is_one_event_that_says_so(tmp_path: Path) -> None:
    made = Made(tmp_path / "p", 45)
    lost = {name: noisy((15, 1.3e-3), (15, 1e-3), (15, 1.3e-3)) for name in NAMES}
    index = made.record(lost, machine="one").index()
    (shift,) = index.shifts
    assert (shift.good, shift.last, shift.benchmarks, shift.suspect) == (29, 30, 12, "")
    assert shift.reasons == (f"they are back at the level of {made.shas[14][:8]}",)
    assert {(event.moved, event.state, event.undoes, event.shift) for event in index.events} == {
        ("improved", "confirmed", None, None),
        ("regressed", "open", (14, 15), 0),
    }


def test_a_short_improvement_that_was_lost_counts_nowhere_as_worse_until_it_was_released(tmp_path: Path) -> None:
    made = Made(tmp_path / "p", 60).record({"x.time_f": noisy((30, 1e-3), (8, 0.7e-3), (22, 1e-3))})
    session = Session(Request(made.root))

    def said() -> tuple[object, ...]:
        """The status of the case, the state of its regression, and what pages, feed, badge and sweep count as open."""
        index = made.index()
        (row,) = index.rows
        event = next(one for one in index.events if one.moved == "regressed")
        events = events_on(session, session.repository.commits("main"), None, None)
        opened = sum(change.point.is_open for change in events.changes)
        told = re.findall(r">(\w+) regressions? open", badge(index))
        return row.status, event.state, len(index.open), feed(index, ())[0].count("<entry>"), opened, told

    assert said() == ("relapsed", "relapsed", 0, 0, 0, ["no"])
    made.git("tag", "v1.0", made.shas[33])
    assert said() == ("regressed", "open", 1, 1, 1, ["1"])


def test_another_number_of_calls_is_a_note_on_what_moved_there(tmp_path: Path) -> None:
    made = Made(tmp_path / "p", 40).record({"x.time_f": noisy((25, 1e-3), (15, 1.2e-3)), "x.time_g": noisy((40, 1e-3))})
    for at, sha in enumerate(made.shas):
        path = made.root / "history" / "box" / f"{sha[:8]}-py3.12.json"
        content = json.loads(path.read_text())
        content["result_columns"] += [
            "duration",
            *(f"stats_{column}" for column in ("ci_99_a", "ci_99_b", "q_25", "q_75", "number")),
        ]
        for row in content["results"].values():
            row += [1.0, *([None] * 4), [100 if at < 25 else 5]]
        path.write_text(json.dumps(content))
    (event,) = made.index().events
    assert (event.first, event.note, event.reasons) == (25, "measured differently: number 100 → 5", ())


def test_a_case_that_is_skipped_counts_once_as_one_that_gives_no_number(tmp_path: Path) -> None:
    """It has been for more commits than it takes to be gone, and another case was never anything else."""
    made = Made(tmp_path / "p", 40).record({"x.time_f": noisy((25, 1e-3)) + [float("nan")] * 15})
    index = made.record({"x.time_g": noisy((40, 1e-3)), "x.time_h": [float("nan")] * 40}).index()
    assert [dict(row) for row in index.counts] == [{"failed": 1, "unchanged": 1}]
    assert [(row.status, row.why) for row in index.rows] == [("failed", "skipped"), ("unchanged", "")]
    (broken,) = index.broken
    assert (broken.kind, broken.good, broken.first, broken.open) == ("skipped", 24, 25, True)


def test_an_event_is_not_open_by_what_is_small_where_the_large_part_is_tentative(tmp_path: Path) -> None:
    """3 % for certain on one machine, 30 % in the last result of another."""
    made = Made(tmp_path / "p", 40).record({"x.time_f": noisy((30, 1e-3), (10, 1.03e-3), noise=0.001)}, machine="one")
    other = [value if at < 30 or at == 39 else None for at, value in enumerate(noisy((39, 1e-3), (1, 1.3e-3)))]
    index = made.record({"x.time_f": other}, machine="two").index()
    (event,) = index.events
    assert (event.large, event.state, event.places) == (True, "tentative", (0, 1))
    assert sorted(row.status for row in index.rows) == ["tentative", "unchanged"]
    back = [value if at < 30 or at > 32 else 1.3 * value for at, value in enumerate(noisy((40, 1e-3)))]
    index = made.record({"x.time_f": back}, machine="two").index()
    assert [(event.moved, event.state) for event in index.events if event.large and event.moved == "regressed"] == [
        ("regressed", "recovered")
    ]


def test_what_is_open_only_where_nothing_is_measured_any_more_is_gone(tmp_path: Path) -> None:
    """A machine that was given up long ago never saw it taken back, as another did."""
    made, up = Made(tmp_path / "p", 160), noisy((15, 1e-3), (15, 1.3e-3))
    made.record({"x.time_f": [*up, *[None] * 130]}, machine="old")
    index = made.record({"x.time_f": [*up, *noisy((130, 1e-3))]}, machine="new").index()
    states = {(event.moved, event.state, event.places, event.held) for event in index.events}
    assert ("regressed", "gone", (0, 1), (1,)) in states
    assert [(index.places[row.place].label, row.status) for row in index.rows] == [
        ("new", "recovered"),
        ("old", "gone"),
    ]


def test_a_page_says_which_card_measured_what_and_which_one_is_off_its_kind(tmp_path: Path) -> None:
    """The first commit is measured by all cards, the others by one each, in turn."""
    made, box = Made(tmp_path / "p", 13), Machine("box", {"gpu": "H100"})
    store, cards = Store(made.root / "history"), {"GPU-0": 1.0, "GPU-1": 1.005, "GPU-2": 0.995, "GPU-3": 1.1}
    for at, (sha, value) in enumerate(zip(made.shas, noisy((13, 1e-3)), strict=True)):
        side = Side("head", Commit(sha, "", "", START + at * DAY), "HEAD", "env")
        for card in cards if at == 0 else [f"GPU-{at % 4}"]:
            for order in range(2):
                read = taken(ADD, order=order, values={"gpu_time": value * cards[card] * (1 + order / 1000)})
                facts = {"gpu": "H100", "gpu_uuid": card}
                store.append(side, box, "env", replace(read, run=f"{at} {card}"), facts, benchmark())
        store.finish(side, box, "env", python="3.12", benchmarks={ADD: benchmark()})
    (leaf,) = made.site().leaves
    (line,) = leaf.make()[0].lines
    assert line.cards == ("GPU-0, GPU-1, GPU-2, GPU-3", "GPU-1", "GPU-2", "GPU-3", "GPU-0")
    assert line.card == (0, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4)
    assert line.changes == ()
    assert max(line.values) < 1.01 * min(line.values), "as the mean card would have read them"
    assert line.read[3] > 1.08 * line.read[1]
    (place,) = made.index().places
    assert place.device == "H100"
    assert place.cards == ("GPU-0 -2.4 %", "GPU-1 -1.9 %", "GPU-2 -2.8 %", "GPU-3 +7.4 %, off its kind")


def test_how_many_cases_have_too_few_results_for_a_change_to_be_told(tmp_path: Path) -> None:
    """Of two benchmarks one has three results, and then enough; a new place begins anew."""
    made = Made(tmp_path / "p", 6)
    old, new = noisy((6, 1e-3)), [None, None, None, *noisy((3, 1e-3))]
    index = made.record({"x.time_old": old, "x.time_new": new}).index()
    assert (index.fewest, index.young, index.told) == (4, (1,), True)
    assert {row.lacks: (row.status, row.why) for row in index.rows} == {
        0: ("unchanged", ""),
        1: ("undecided", "3 results to compare; it takes 4"),
    }
    made.record({"x.time_old": [*[None] * 5, 1e-3]}, machine="other")
    assert made.index().young == (1, 1)


def test_one_result_that_repeats_exactly_tells_nothing_either(tmp_path: Path) -> None:
    made, box = Made(tmp_path / "p", 2), Machine("box", {})
    store = Store(made.root / "history")
    states = []
    for at, sha in enumerate(made.shas):
        side = Side("head", Commit(sha, "", "", START + at * DAY), "HEAD", "env")
        values = {"gpu_time": Measured(1e-3, [1e-3]), "peak_memory": Measured(1e6, [1e6], unit="B", exact=True)}
        store.append(side, box, "env", replace(taken(ADD), values=values), {"gpu_uuid": "G"}, benchmark())
        store.finish(side, box, "env", python="3.12", benchmarks={ADD: benchmark()})
        states.append({row.metric: (row.status, row.lacks) for row in made.index().rows})
    assert states == [
        {"gpu_time": ("undecided", 3), "peak_memory": ("undecided", 1)},
        {"gpu_time": ("undecided", 2), "peak_memory": ("unchanged", 0)},
    ]


def test_the_overall_figure_leaves_out_what_cannot_be_judged(tmp_path: Path) -> None:
    modes = [1e-3 if at * 7 % 5 < 3 else 1.5e-3 for at in range(100)]
    made = Made(tmp_path / "p", 100).record({"x.time_f": noisy((100, 1e-3)), "x.time_modes": modes})
    (overall,) = made.index().overall
    assert overall.n == 1
    assert overall.ratio == pytest.approx(1.0, abs=0.01)
