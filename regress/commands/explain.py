"""`regress explain`: what makes one case slower on the head, or faster, down to the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from regress.commands.check import check
from regress.errors import Exit
from regress.model import Comparison, Explained, Report, Stopped, Verdict
from regress.run.execute import Watcher
from regress.session import Request
from regress.session.explanation import TRACES, farthest
from regress.units import format_change, format_interval


def explain(
    request: Request,
    case: str,
    base: str,
    head: str | None,
    watcher: Watcher,
    *,
    environments: tuple[str, str] = ("", ""),
    record: bool = False,
) -> Report:
    """Check the case by itself, without a profiler; if it changed, profile both sides in turn and say where the difference
    went.

    Of several cases that match, the one that changed most. Nothing fails here but what cannot be explained, or measured. What
    was found goes into the cache; with `record` into results_dir.
    """
    asked = replace(request, patterns=(case,))
    report = check(asked, base, head, watcher, environments=environments, record=record, choose=farthest, explains=True)
    report = replace(report, command="explain")
    if not report.comparisons or report.state == "INTERRUPTED":
        return report
    if not report.explained:
        return _nothing(report)
    (explained,) = report.explained
    if explained.explanation is not None and not explained.shown and not explained.comparison.gates:
        return _not_shown(report, explained)
    plan = f"{report.plan}; {TRACES} profiles a side, in turn" if explained.base is not None else report.plan
    done = explained.explanation is not None
    error = None if done else Stopped("it could not be profiled", "; ".join(explained.warnings))
    code = Exit.PASSED if done else Exit.NOTHING
    answer = _answer(
        report, [comparison for comparison in report.comparisons if comparison.case == explained.case], error, code
    )
    return replace(answer, plan=plan, noise_floor=None, min_detectable=None)


def _answer(report: Report, comparisons: Sequence[Comparison], error: Stopped | None, *codes: Exit) -> Report:
    """The report with these comparisons, none of which fails anything, and without what sums them up: the command answers a
    question."""
    return replace(
        report,
        exit_codes=codes,
        state="" if error is None else "NOTHING",
        comparisons=tuple(replace(comparison, gates=False) for comparison in comparisons),
        counts={},
        acknowledged={},
        cases=0,
        geomean=None,
        suggestions=(),
        error=error,
    )


def _not_shown(report: Report, explained: Explained) -> Report:
    """A time that fails no check, and that the profiles do not show: the host of a few processes was slow by itself."""
    error = Stopped(
        "can't explain: the profiles do not show the difference",
        f"without a profiler: {_seen(explained.comparison)}; with one, {explained.warnings[-1]}",
        "take more rounds (--rounds), and look at what else runs on this machine (regress doctor)",
    )
    comparisons = [comparison for comparison in report.comparisons if comparison.case == explained.case]
    return replace(_answer(report, comparisons, error, Exit.NOTHING), explained=())


def _nothing(report: Report) -> Report:
    """Why there is nothing to explain: no time changed, or it fails."""
    failed = next((comparison for comparison in report.comparisons if comparison.verdict is Verdict.FAILED), None)
    if failed is not None:
        failure = failed.head_failure or failed.base_failure
        side = "head" if failed.head_failure is not None else "base"
        stopped = Stopped(f"can't explain: {failed.case} fails on {side}", failure.message if failure else "")
        return replace(report, state="FAIL" if Exit.FAILED in report.exit_codes else "NOTHING", error=stopped)
    error = Stopped(
        "can't explain: the difference does not reproduce",
        "measured again, without a profiler: "
        + "; ".join(_seen(comparison) for comparison in _times(report.comparisons)),
        "check what differed then: clocks, other work on the machine, versions (regress doctor)",
    )
    codes = [Exit.NOTHING, *([Exit.FAILED] if Exit.FAILED in report.exit_codes else [])]
    return _answer(report, report.comparisons, error, *codes)


def _times(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The times that gate, else all there is."""
    times = [comparison for comparison in comparisons if comparison.metric.kind == "time" and comparison.gates]
    return times or list(comparisons)


def _seen(comparison: Comparison) -> str:
    """ "softmax.cudatime_fwd gpu_time unchanged, +0.1 % (-0.3 … +0.5)"."""
    change = f", {format_change(comparison.ratio)}" if comparison.ratio is not None else ""
    interval = f" ({format_interval(comparison.low, comparison.high)})" if comparison.low is not None else ""
    return f"{comparison.case} {comparison.metric.name} {comparison.verdict}{change}{interval}"
