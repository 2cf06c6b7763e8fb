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
    report = check(asked, base, head, watcher, environments=environments, record=record, choose=farthest)
    report = replace(report, command="explain")
    if not report.comparisons or report.state == "INTERRUPTED":
        return report
    if not report.explained:
        return _nothing(report)
    (found,) = report.explained
    if found.explanation is not None and not found.shown and not found.comparison.gates:
        return _not_shown(report, found)
    plan = f"{report.plan}; {TRACES} profiles a side, in turn" if found.base is not None else report.plan
    done = found.explanation is not None
    error = None if done else Stopped("it could not be profiled", "; ".join(found.warnings))
    code = Exit.PASSED if done else Exit.NOTHING
    answer = _answer(report, [each for each in report.comparisons if each.case == found.case], error, code)
    return replace(answer, plan=plan, noise_floor=None, min_detectable=None)


def _answer(report: Report, comparisons: Sequence[Comparison], error: Stopped | None, *codes: Exit) -> Report:
    """The report with these comparisons, none of which fails anything, and without what sums them up: the command answers a
    question."""
    return replace(
        report,
        exit_codes=codes,
        state="" if error is None else "NOTHING",
        comparisons=tuple(replace(each, gates=False) for each in comparisons),
        counts={},
        acknowledged={},
        cases=0,
        geomean=None,
        suggestions=(),
        error=error,
    )


def _not_shown(report: Report, found: Explained) -> Report:
    """A time that fails no check, and that the profiles do not show: the host of a few processes was slow by itself."""
    error = Stopped(
        "can't explain: the profiles do not show the difference",
        f"without a profiler: {_seen(found.comparison)}; with one, {found.warnings[-1]}",
        "take more rounds (--rounds), and look at what else runs on this machine (regress doctor)",
    )
    comparisons = [each for each in report.comparisons if each.case == found.case]
    return replace(_answer(report, comparisons, error, Exit.NOTHING), explained=())


def _nothing(report: Report) -> Report:
    """Why there is nothing to explain: no time changed, or it fails."""
    failed = next((each for each in report.comparisons if each.verdict is Verdict.FAILED), None)
    if failed is not None:
        failure = failed.head_failure or failed.base_failure
        side = "head" if failed.head_failure is not None else "base"
        stopped = Stopped(f"can't explain: {failed.case} fails on {side}", failure.message if failure else "")
        return replace(report, state="FAIL" if Exit.FAILED in report.exit_codes else "NOTHING", error=stopped)
    error = Stopped(
        "can't explain: the difference does not reproduce",
        "measured again, without a profiler: " + "; ".join(_seen(each) for each in _times(report.comparisons)),
        "check what differed then: clocks, other work on the machine, versions (regress doctor)",
    )
    codes = [Exit.NOTHING, *([Exit.FAILED] if Exit.FAILED in report.exit_codes else [])]
    return _answer(report, report.comparisons, error, *codes)


def _times(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The times that gate, else all there is."""
    found = [each for each in comparisons if each.metric.kind == "time" and each.gates]
    return found or list(comparisons)


def _seen(each: Comparison) -> str:
    """ "softmax.cudatime_fwd gpu_time unchanged, +0.1 % (-0.3 … +0.5)"."""
    change = f", {format_change(each.ratio)}" if each.ratio is not None else ""
    interval = f" ({format_interval(each.low, each.high)})" if each.low is not None else ""
    return f"{each.case} {each.metric.name} {each.verdict}{change}{interval}"
