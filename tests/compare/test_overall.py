from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from regress.compare.overall import overall
from regress.model import Case, Comparison, Failure, Settings, SuiteProblem, Verdict, metric_of

SETTINGS = Settings()
ERROR = Failure("error", "ValueError: no such kernel")
SKIPPED = Failure("skipped", "needs a device")


def comparison(verdict: str, case: str = "a", metric: str = "gpu_time", **changes: Any) -> Comparison:
    return Comparison(Case(case), metric_of(metric), Verdict(verdict), **changes)


UNCHANGED = comparison("unchanged", "fine")
ON_HEAD = comparison("failed", head_failure=ERROR)
ON_BOTH = comparison("failed", base_failure=ERROR, head_failure=ERROR)
ON_BASE = comparison("failed", base_failure=ERROR)


@pytest.mark.parametrize(
    ("comparisons", "strict", "codes", "state"),
    [
        ([UNCHANGED], False, (0,), "PASS"),
        ([UNCHANGED, comparison("improved")], False, (0,), "PASS"),
        ([UNCHANGED, comparison("regressed")], False, (1,), "FAIL"),
        ([UNCHANGED, comparison("regressed", gates=False)], False, (0,), "PASS"),
        ([UNCHANGED, comparison("changed")], True, (0,), "PASS"),
        ([UNCHANGED, ON_HEAD], False, (3,), "FAIL"),
        ([UNCHANGED, ON_BOTH], False, (0,), "PASS"),
        ([UNCHANGED, ON_BOTH], True, (3,), "FAIL"),
        ([UNCHANGED, ON_BASE], True, (0,), "PASS"),
        ([UNCHANGED, comparison("skipped", head_failure=SKIPPED)], True, (0,), "PASS"),
        ([UNCHANGED, comparison("failed", base_failure=ERROR, head_failure=SKIPPED)], True, (0,), "PASS"),
        ([UNCHANGED, comparison("failed", base_failure=SKIPPED, head_failure=ERROR)], False, (0,), "PASS"),
        ([UNCHANGED, comparison("undecided")], False, (0,), "PASS"),
        ([UNCHANGED, comparison("undecided")], True, (4,), "UNDECIDED"),
        ([UNCHANGED, comparison("undecided", critical=True)], False, (4,), "UNDECIDED"),
        ([UNCHANGED, comparison("undecided", critical=True, gates=False)], True, (0,), "PASS"),
        # A critical case has to give a number on head, and one that can be judged.
        ([UNCHANGED, comparison("skipped", head_failure=SKIPPED, critical=True)], False, (4,), "UNDECIDED"),
        (
            [UNCHANGED, comparison("skipped", base_failure=SKIPPED, head_failure=SKIPPED, critical=True)],
            False,
            (4,),
            "UNDECIDED",
        ),
        (
            [UNCHANGED, comparison("failed", base_failure=ERROR, head_failure=SKIPPED, critical=True)],
            False,
            (4,),
            "UNDECIDED",
        ),
        ([UNCHANGED, replace(ON_BOTH, critical=True)], False, (3,), "FAIL"),
        ([UNCHANGED, comparison("gone", critical=True)], False, (4,), "UNDECIDED"),
        ([UNCHANGED, comparison("incomparable", critical=True)], False, (4,), "UNDECIDED"),
        ([UNCHANGED, comparison("changed", critical=True)], False, (4,), "UNDECIDED"),
        ([UNCHANGED, comparison("new", critical=True), replace(ON_BASE, critical=True)], False, (0,), "PASS"),
        ([UNCHANGED, comparison("skipped", base_failure=SKIPPED, critical=True)], False, (0,), "PASS"),
        ([comparison("regressed"), ON_HEAD, comparison("undecided", "b")], True, (1, 3, 4), "FAIL"),
        ([ON_HEAD, comparison("undecided", "b", critical=True)], False, (3, 4), "FAIL"),
        # Nothing to go by is never a pass.
        ([], False, (5,), "NOTHING"),
        ([ON_BOTH], False, (5,), "NOTHING"),
        ([ON_BOTH], True, (5, 3), "NOTHING"),
        ([ON_HEAD], False, (3,), "FAIL"),
        ([comparison("skipped"), comparison("new", "b"), comparison("gone", "c")], False, (5,), "NOTHING"),
        ([comparison("incomparable")], False, (5,), "NOTHING"),
        ([comparison("unchanged", gates=False)], False, (5,), "NOTHING"),
    ],
)
def test_exit_codes(comparisons: list[Comparison], strict: bool, codes: tuple[int, ...], state: str) -> None:
    summed = overall(comparisons, SETTINGS, strict=strict)
    assert (summed.exit_codes, summed.state) == (codes, state)


def test_a_file_that_cannot_be_imported_fails_a_line_does_not() -> None:
    fatal = SuiteProblem("benchmarks/ops.py:3", "SyntaxError")
    line = SuiteProblem("benchmarks/ops.py:9", "abstract class", fatal=False)
    assert overall([UNCHANGED], SETTINGS, problems=[fatal, line]).exit_codes == (3,)
    assert overall([UNCHANGED], SETTINGS, problems=[line]).exit_codes == (0,)
    assert overall([], SETTINGS, problems=[fatal]).exit_codes == (5, 3)


def test_a_case_counts_once_with_its_most_serious_verdict_that_gates() -> None:
    summed = overall(
        [
            comparison("unchanged", "a"),
            comparison("regressed", "a", "peak_memory"),
            comparison("unchanged", "b"),
            comparison("regressed", "b", "host_time", gates=False),
            comparison("improved", "c"),
            comparison("undecided", "c", "peak_memory"),
            comparison("unchanged", "d"),
            comparison("incomparable", "d", "peak_memory"),
        ],
        SETTINGS,
    )
    assert summed.cases == 4
    assert summed.counts == {"regressed": 1, "undecided": 1, "incomparable": 1, "unchanged": 1}
    assert next(iter(summed.counts)) == "regressed"


def test_geomean_is_over_the_time_ratios_that_gate() -> None:
    summed = overall(
        [
            comparison("regressed", "a", ratio=2.0),
            comparison("improved", "b", "wall_time", ratio=0.5),
            comparison("regressed", "a", "wall_time", ratio=9.0, gates=False),
            comparison("regressed", "a", "peak_memory", ratio=9.0),
            comparison("failed", "c"),
            comparison("undecided", "d", ratio=math.inf),
        ],
        SETTINGS,
    )
    assert summed.geomean is not None
    center, low, high, n = summed.geomean
    assert center == pytest.approx(1.0)
    assert low < 1 < high
    assert n == 2
    assert overall([comparison("failed")], SETTINGS).geomean is None


def test_noise_floor_and_smallest_detectable_regression_are_medians() -> None:
    summed = overall(
        [
            comparison("unchanged", "a", noise=0.004, min_detectable=1.055),
            comparison("unchanged", "b", noise=0.006, min_detectable=1.06),
            comparison("undecided", "c", noise=0.03, min_detectable=1.2),
            comparison("unchanged", "c", "host_time", noise=0.5, min_detectable=2.0, gates=False),
            comparison("unchanged", "d", "peak_memory", exact=True),
        ],
        SETTINGS,
    )
    assert summed.noise_floor == (0.006, 0.03, "c")
    assert summed.min_detectable == pytest.approx(0.06)


def test_without_a_test_there_is_no_noise_floor() -> None:
    summed = overall([comparison("unchanged", exact=True)], SETTINGS)
    assert (summed.noise_floor, summed.min_detectable) == (None, None)
