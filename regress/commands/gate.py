"""`regress gate`: may this be released? A check with a policy, and what the recorded history says of the same commits.

Three questions, each of which can fail the gate: what the head is against the base, measured now; what all steps since the last
release add up to (`drift`); which changes for the worse the history found on the way and nobody took back or acknowledged.
What is measured now counts more than what was recorded: a change that the base and head of now do not show is none.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from regress.acks.project import review
from regress.commands.check import check
from regress.errors import Exit, RevisionError, ranked
from regress.history import Store
from regress.model import Case, Changed, Commit, Comparison, Report, Side, Verdict
from regress.run.execute import Watcher
from regress.session import Request, Session
from regress.text.wording import quoted
from regress.trends import Anchors, drifts, past_of
from regress.trends.events import Events, events_on


def gate(
    request: Request,
    base: str,
    head: str | None,
    watcher: Watcher,
    *,
    environments: tuple[str, str] = ("", ""),
    record: bool = False,
) -> Report:
    """Measure both release points side by side, and judge the head by that and by the history of this machine.

    The arguments are those of `check`; the thresholds are those of the settings with `gate_thresholds` over them.
    """
    start = time.monotonic()
    request = _with_policy(request)
    report = check(request, base, head, watcher, environments=environments, record=record)
    report = replace(report, command="gate")
    if report.base is None or report.head is None or not report.comparisons:
        return report
    session = Session(request)
    line = session.line(report.head.commit.sha, session.recorded())
    names = {comparison.case.name for comparison in report.comparisons}
    release, unknown_release = _release(session, report.base, line)
    drift, unknown = _drift(session, line, names, release, report) if release else ([], 0)
    history = events_on(session, line, names, session.machine.name)
    changes = _open_changes(session, history, report)
    failing = [*(comparison.exit_code(request.strict) for comparison in drift), *(Exit.REGRESSED for _ in changes)]
    codes = ranked([*report.exit_codes, *failing])
    since = release.revision if release else ""
    warnings = [*report.warnings, *session.repository.missing_history(), *unknown_release]
    if unknown and release:
        why = "measured differently, or not at both ends; measure the release again: regress sweep"
        warnings.append(f"drift since {release.revision} is unknown for {unknown} series: {why}")
    return replace(
        report,
        exit_codes=codes,
        state=codes[0].word,
        drift=tuple(drift),
        drift_since=since,
        questions=(*_asked(report, history, changes), *_asked_of_drift(since, drift, unknown, request.strict)),
        changes=tuple(changes),
        warnings=tuple(warnings),
        suggestions=(*report.suggestions, *_bisect(changes, drift, release, report.head)),
        policy={**report.policy, "gate_thresholds": dict(session.config.settings.gate_thresholds)},
        duration_s=time.monotonic() - start,
    )


def _with_policy(request: Request) -> Request:
    """The request with what a release may lose as thresholds: a later pattern counts more, so the gate's come last."""
    settings = Session(request).config.settings
    merged: dict[str, Mapping[str, float]] = dict(settings.thresholds)
    for pattern, by_metric in settings.gate_thresholds.items():
        merged[pattern] = {**merged.pop(pattern, {}), **by_metric}
    if not settings.gate_thresholds:
        return request
    return replace(request, overrides={**request.overrides, "thresholds": merged})


def _release(session: Session, base: Side, line: Sequence[Commit]) -> tuple[Side | None, list[str]]:
    """What drift is compared with, named by its tag: the setting, else the base if it is a release, else the newest one before
    the head; and what is wrong with it. Of a release that was tagged on a branch of its own, it is the newest measured commit
    that both have."""
    named, tags = session.config.settings.gate_release, session.repository.releases.all()
    if named:
        release = session.revision_side("release", named)
        if all(commit.sha != release.commit.sha for commit in line):
            raise RevisionError(
                f'"gate_release" is {named}, which the head does not descend from',
                why="drift is what the commits between them add up to",
                fix='correct "gate_release", or leave it out',
            )
        return release, []
    standing = session.repository.releases.of(line)
    own = tags.get(base.commit.sha, ())
    at = next((at for at, commit in enumerate(line) if own and own[-1] in standing.get(commit.sha, ())), None)
    if at is None:
        at = next((at for at in reversed(range(len(line) - 1)) if line[at].sha in standing), None)
    if at is None:
        return None, [
            'no release is tagged before the head, so drift is not judged; set "gate_release" to the last release or a commit'
        ]
    name = own[-1] if own and own[-1] in standing[line[at].sha] else standing[line[at].sha][-1]
    if name in tags.get(line[at].sha, ()):
        return Side("release", line[at], name), []
    store, machine = Store(session.config.results_dir), session.machine.name
    recorded = {commit.commit_sha for commit in store.commits(machine)}
    measured = next((commit for commit in reversed(line[: at + 1]) if commit.sha in recorded), line[at])
    told = f"{name} was tagged on a separate branch: drift is compared with {measured.short}, the newest measured before it"
    return Side("release", measured, name), [told]


def _drift(
    session: Session, line: Sequence[Commit], names: set[str], release: Side, report: Report
) -> tuple[list[Comparison], int]:
    """The drift of all cases of the report that the check itself did not measure against the release, and of how many series
    nobody knows it. What is acknowledged says so."""
    config, machine = session.config, session.machine.name
    past = past_of(config.results_dir, session.cache, line, config.settings, machine)
    again = Anchors(Store(config.results_dir).anchors(machine), config.settings)
    wanted = {(comparison.case, comparison.metric.name) for comparison in report.comparisons if comparison.gates}
    if report.base is not None and report.base.commit.sha == release.commit.sha:
        wanted -= {
            (comparison.case, comparison.metric.name) for comparison in report.comparisons if comparison.verdict.decided
        }
    assert report.head is not None
    entries = review(session, report.head)
    comparisons: list[Comparison] = []
    unknown = 0
    for name in past.names:
        if name in names:
            series = [
                one_series for one_series in past.series(name) if (one_series.case, one_series.metric.name) in wanted
            ]
            own, more = drifts(series, release.commit.sha, again.of(name), config.settings)
            comparisons += [entries.of(comparison, release.commit.sha) for comparison in own]
            unknown += more
    return comparisons, unknown


def _asked(check: Report, history: Events, changes: Sequence[Changed]) -> list[tuple[str, str]]:
    """What came of what was measured, which `check` is the report of, and of the history."""
    cases = {comparison.case for comparison in check.comparisons if comparison.gates}
    told = sum(not history.lacking.get(case, True) for case in cases)
    code = Exit.REGRESSED if changes else Exit.PASSED
    return [("head against base", check.state), ("open regressions", _answer(code, told, len(cases), "cases"))]


def _asked_of_drift(since: str, drift: Sequence[Comparison], unknown: int, strict: bool) -> list[tuple[str, str]]:
    """The same of the drift, where there is any that the check has not measured itself."""
    if not drift and not unknown:
        return []
    code = ranked(comparison.exit_code(strict) for comparison in drift)[0]
    told = sum(comparison.verdict.traits.tells for comparison in drift)
    return [(f"drift since {since}", _answer(code, told, len(drift) + unknown, "series"))]


def _answer(code: Exit, told: int, of: int, noun: str) -> str:
    if code is not Exit.PASSED:
        return code.word
    return "not known" if not told else "PASS" if told == of else f"PASS ({told} of {of} {noun})"


def _open_changes(session: Session, history: Events, report: Report) -> list[Changed]:
    """Regressions of the range that are open in the history, but for those that the check has shown not to be there."""
    assert report.base is not None
    assert report.head is not None
    inside = {
        commit.sha for commit in session.repository.commits(f"{report.base.commit.sha}..{report.head.commit.sha}")
    }
    gone: set[tuple[Case, str]] = {
        (comparison.case, comparison.metric.name)
        for comparison in report.comparisons
        if comparison.verdict in (Verdict.UNCHANGED, Verdict.IMPROVED)
    }
    return [
        replace(change, new=True)
        for change in history.changes
        if change.point.is_open
        and not inside.isdisjoint(change.point.blamed)
        and (change.case, change.metric.name) not in gone
    ]


def _bisect(
    changes: Sequence[Changed], drift: Sequence[Comparison], release: Side | None, head: Side
) -> list[tuple[str, str]]:
    """The commands that find who did it, where the history does not say so already."""
    ranges = [
        (str(change.case), change.point.good[:8], change.blamed[-1].short, "--metric", change.metric.name)
        for change in changes
        if len(change.blamed) > 1
    ]
    if release is not None:
        worst = max(
            (comparison for comparison in drift if comparison.exit_code()),
            key=lambda comparison: comparison.ratio or 0.0,
            default=None,
        )
        if worst is not None:
            ends = release.commit.short, head.commit.short
            ranges.append((str(worst.case), *ends, "--metric", worst.metric.name))
    return [("find", quoted("regress", "bisect", *words)) for words in ranges[:2]]
