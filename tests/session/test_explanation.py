"""Which comparisons are explained, and what makes an explanation doubtful."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.model import Case, Cause, Comparison, Explained, Explanation, Verdict
from regress.session.explanation import SideTrace, doubted, farthest, regressions
from regress.traces.timeline import Timeline
from tests.acceptance.explaining import PLANTED, row
from tests.report.sample import compared, explain, explanation

A = compared(Case("b.f", ("1",)), "gpu_time", Verdict.REGRESSED, 100e-6, 110e-6)
B = compared(Case("b.f", ("2",)), "gpu_time", Verdict.REGRESSED, 100e-6, 130e-6)
C = compared(Case("b.g"), "gpu_time", Verdict.REGRESSED, 100e-6, 120e-6)
FASTER = compared(Case("b.h"), "gpu_time", Verdict.IMPROVED, 100e-6, 20e-6)
HOST = compared(Case("b.i"), "host_time", Verdict.REGRESSED, 10e-6, 90e-6, gates=False)
MEMORY = compared(Case("b.j"), "peak_memory", Verdict.REGRESSED, 1e6, 9e6)
SAME = compared(Case("b.k"), "gpu_time", Verdict.UNCHANGED, 1.0, 1.0)
ALL = (SAME, MEMORY, HOST, FASTER, A, C, B)


def test_a_check_explains_the_worst_case_of_each_benchmark() -> None:
    assert regressions(ALL) == [B, C]


def test_the_farthest_gates_if_any_does() -> None:
    assert farthest(ALL) == [B]
    assert farthest((HOST, FASTER)) == [FASTER]
    assert farthest((HOST, MEMORY)) == [HOST]
    assert farthest((MEMORY, SAME)) == []


def found(difference_s: float, kernels_s: float) -> Explained:
    """An explanation of 30 us with these figures, beyond doubt so far."""
    cause = Cause("slower kernel", "k takes longer", "high")
    idle_s = difference_s - kernels_s
    return Explained(B, Explanation(1e-4, 1e-4 + difference_s, kernels_s, 0.0, idle_s, causes=(cause,)))


def confidence(explained: Explained) -> str:
    assert explained.explanation is not None
    return explained.explanation.causes[0].confidence


def test_a_profile_that_shows_the_difference_is_believed() -> None:
    shown = doubted(found(28e-6, 28e-6), [], [])
    assert (confidence(shown), shown.warnings) == ("high", ())


def test_a_profile_without_the_difference_is_doubted() -> None:
    for difference_s in (2e-6, -30e-6):
        shown = doubted(found(difference_s, difference_s), [], [])
        assert confidence(shown) == "low"
        assert "of the measured 30.0 us" in shown.warnings[0]


def test_idle_time_under_the_profiler_does_not_hide_the_kernels() -> None:
    shown = doubted(found(0.0, 30e-6), [], [])
    assert (confidence(shown), shown.warnings, shown.shown) == ("high", (), True)


def test_more_launches_show_a_time_of_the_device_that_is_between_them() -> None:
    profiled = found(9e-6, 9e-6)
    assert profiled.explanation is not None
    assert not doubted(profiled, [], []).shown
    more = replace(profiled.explanation, launches=(1.0, 20.0))
    assert doubted(replace(profiled, explanation=more), [], []).shown


def profiles(*calls_s: float) -> list[SideTrace]:
    return [SideTrace(Path(), Timeline(0.0, end_s)) for end_s in calls_s]


def test_a_time_of_the_host_is_shown_where_the_sides_do_not_overlap() -> None:
    explanation = Explanation(100e-6, 180e-6, 0.0, 0.0, 80e-6, causes=(Cause("host", "it waits", "high"),))
    host = Explained(HOST, explanation)
    apart = doubted(host, profiles(90e-6, 100e-6, 110e-6), profiles(170e-6, 180e-6, 190e-6))
    assert (confidence(apart), apart.warnings, apart.shown) == ("high", (), True)
    mixed = doubted(host, profiles(90e-6, 100e-6, 175e-6), profiles(170e-6, 180e-6, 190e-6))
    assert (confidence(mixed), mixed.shown) == ("low", False)
    assert mixed.warnings == (
        "the calls take 90.0 us to 175 us in the profiles of the base, and 170 us to 190 us in those of the head",
    )


times_s = st.floats(-1e-3, 1e-3)


@given(times_s, times_s, times_s, times_s, st.sampled_from([B, HOST]))
def test_the_parts_add_up(
    difference_s: float, kernels_s: float, copies_s: float, idle_s: float, compared: Comparison
) -> None:
    explained = Explained(compared, Explanation(1e-3, 1e-3 + difference_s, kernels_s, copies_s, idle_s))
    assert sum(explained.parts.values()) == pytest.approx(explained.whole_s, abs=1e-12)
    measured = explained.measured_s if compared is B else explained.explanation and explained.explanation.difference_s
    assert explained.whole_s == measured


def test_acceptance_wants_the_planted_cause_first() -> None:
    from regress.report.json import document

    said = document(replace(explain(), explained=explain().explained[:1]))
    assert explanation().causes[0].kind == "fusion"
    planted = {case.name: row(case, said).passed for case in PLANTED}
    assert planted == {"fusion": True, "dtype": False, "wait": False, "host": False, "tf32": False, "nothing": False}
    none = said | {"explained": [], "exit_code": 5}
    assert [case.name for case in PLANTED if row(case, none).passed] == ["nothing"]
