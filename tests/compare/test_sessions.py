"""Rounds of one session of a machine are no evidence of their own: what recorded results claim, by how they were recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from regress.compare import finer
from regress.model import Against, Comparison, Round, Verdict

from .rounds import SETTINGS, one, rounds, scaled

MS = 1e-3


def recorded(*sessions: tuple[str, float], side: str = "base") -> list[Round]:
    """Five quiet rounds of each session, at its level."""
    return [
        replace(round, run=run, side=side) for run, level in sessions for round in rounds(gpu_time=scaled(level * MS))
    ]


def compared(base: Sequence[tuple[str, float]], head: Sequence[tuple[str, float]]) -> Comparison:
    return one(recorded(*base), recorded(*head, side="head"))


def test_one_session_a_side_claims_no_change_and_says_why() -> None:
    comparison = compared([("a", 1.0)], [("b", 1.26)])
    assert (comparison.verdict, comparison.sessions, comparison.alone) == (Verdict.UNDECIDED, (1, 1), True)
    assert comparison.ratio == pytest.approx(1.26)
    assert comparison.reasons == (
        "each side was measured in one session, not in the same: sessions may differ for other reasons",
    )
    assert (comparison.unconfirmed, comparison.exit_code()) == (True, 4), "what looks worse and is not told is no pass"
    assert compared([("a", 1.26)], [("b", 1.0)]).exit_code() == 0


def test_one_session_a_side_that_agree_are_unchanged_and_could_have_told_nothing() -> None:
    comparison = compared([("a", 1.0)], [("b", 1.0)])
    assert (comparison.verdict, comparison.exit_code()) == (Verdict.UNCHANGED, 0)
    assert comparison.min_detectable is None
    assert finer([comparison], SETTINGS) is None


def test_a_session_that_measured_both_sides_tells_by_itself() -> None:
    comparison = compared([("a", 1.0)], [("a", 1.26)])
    assert (comparison.verdict, comparison.sessions, comparison.reasons) == (Verdict.REGRESSED, None, ())
    apart = compared([("a", 1.0), ("b", 1.3)], [("a", 1.0), ("c", 0.7)])
    assert apart.verdict is Verdict.UNCHANGED
    assert apart.base is not None
    assert apart.base.n == 5
    assert apart.reasons == ("10 rounds of other sessions left out: one session has both sides",)
    assert compared([("a", 1.0), ("b", 1.0)], [("a", 1.0), ("b", 1.26)]).verdict is Verdict.REGRESSED, "the newest"


def test_several_sessions_against_one_claim_nothing() -> None:
    """Sessions of the base that happen to agree do not show what the head's was like."""
    for levels in ((1.0, 1.26, 1.02), (1.0, 1.003, 0.998)):
        comparison = compared([(str(at), level) for at, level in enumerate(levels)], [("h", 1.26)])
        assert (comparison.verdict, comparison.sessions) == (Verdict.UNDECIDED, (3, 1))
        assert comparison.base is not None
        assert comparison.base.n == 3
        assert "the head was measured in one session, the other side in 3" in comparison.reasons[-1]
    assert compared([("a", 1.0)], [("b", 1.3), ("c", 1.31)]).reasons[-1].startswith("the base was measured in one")


def test_of_several_sessions_a_side_each_is_one_value() -> None:
    quiet = [(word, level) for word, level in zip("abcd", (1.0, 1.003, 0.998, 1.001), strict=True)]
    slower = [(word * 2, 1.26 * level) for word, level in quiet]
    comparison = compared(quiet, slower)
    assert (comparison.verdict, comparison.sessions) == (Verdict.REGRESSED, (4, 4))
    assert comparison.head is not None
    assert comparison.head.n == 4
    assert comparison.reasons == ("of 4 and 4 sessions, each one value",)
    assert compared(quiet, quiet[::-1]).sessions is None, "the same sessions"
    noisy = compared([("a", 1.0), ("b", 1.26), ("c", 1.02)], [("d", 1.26), ("e", 1.22), ("f", 1.0)])
    assert noisy.verdict is Verdict.UNDECIDED
    few = compared(quiet[:2], slower[:2])
    assert few.verdict is Verdict.REGRESSED or few.reasons[0] == "2+2 sessions: too few to claim"


def test_one_round_of_each_in_one_session_shows_no_spread() -> None:
    base, head = recorded(("a", 1.0), ("b", 1.0)), recorded(("b", 1.26), ("c", 1.26), side="head")
    head = [round for at, round in enumerate(head) if at == 0 or round.run == "c"]
    assert one(base, head).sessions == (2, 2)


def test_what_repeats_exactly_needs_no_session() -> None:
    base, head = (
        [
            replace(round, run=run)
            for round in rounds(exact={"peak_memory"}, metric="peak_memory", peak_memory=[size] * 2)
        ]
        for run, size in (("a", 2.0**30), ("b", 2.0**31))
    )
    assert (one(base, head).verdict, one(base, head).exact) == (Verdict.REGRESSED, True)


def test_a_change_from_zero_is_claimed_of_one_session_no_more_than_another() -> None:
    base, head = (
        [replace(round, run=run) for round in rounds(metric="value", value=values)]
        for run, values in (("a", [0.0] * 5), ("b", [5.0, 5.1, 5.2, 5.0, 5.1]))
    )
    assert one(base, head).verdict is Verdict.UNDECIDED
    together = [replace(round, run="a") for round in head]
    assert one(base, together).verdict is Verdict.CHANGED


@pytest.mark.parametrize("named", ["base", "head", "neither"])
def test_what_does_not_say_its_session_is_compared_as_ever(named: str) -> None:
    base, head = recorded(("a" * (named == "base"), 1.0)), recorded(("b" * (named == "head"), 1.26), side="head")
    comparison = one(base, head)
    assert (comparison.verdict, comparison.sessions) == (Verdict.REGRESSED, None)


def test_pairs_are_those_of_one_session() -> None:
    """Two checks have a base of that name: what the head was measured against in the other one is another commit."""

    def against(run: str, ratio: float) -> list[Round]:
        return [
            replace(
                round,
                run=run,
                side="head",
                against=[Against("wall_time", "base", "c", ratio * (1 + 0.01 * round.order), 1e-4, 9)],
            )
            for round in rounds(metric="wall_time", wall_time=scaled(MS))
        ]

    base = [replace(round, run="a", side="base") for round in rounds(metric="wall_time", wall_time=scaled(MS))]
    comparison = one(base, [*against("a", 0.1), *against("b", 0.7)])
    assert comparison.pairs is not None
    assert (comparison.pairs.n, comparison.verdict) == (5, Verdict.REGRESSED)
    assert comparison.ratio == pytest.approx(1.107, rel=0.01)
    assert one(base, against("b", 0.1)).pairs is None


def test_what_one_card_has_measured_of_both_sides_in_one_run_is_compared() -> None:
    """The other card is slower by more than the head is."""

    def on(card: str, run: str, level: float, side: str) -> list[Round]:
        return [replace(round, facts={"gpu_uuid": card}) for round in recorded((run, level), side=side)]

    base = [*on("GPU-a", "one", 1.3, "base"), *on("GPU-b", "two", 1.0, "base")]
    comparison = one(base, on("GPU-b", "two", 1.2, "head"))
    assert comparison.verdict is Verdict.REGRESSED
    assert comparison.ratio == pytest.approx(1.2)
    apart = one(base, on("GPU-b", "three", 1.2, "head"))
    assert apart.verdict is Verdict.INCOMPARABLE
    assert apart.reasons[0].startswith("different device: GPU-a and GPU-b on the base, GPU-b on the head")
