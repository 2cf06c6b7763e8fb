"""`regress merge`: the results of shards, or of other machines, into results_dir."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from regress.commands.sweep.choosing import EXISTING, Asked, choose
from regress.commands.sweep.marks import Reported, Untold
from regress.commands.sweep.reporting import news
from regress.errors import Exit, NoRepository, RevisionError, StoreError, exits, ranked
from regress.history import Merging
from regress.model import Commit, Merged, Report
from regress.run.execute import Watcher
from regress.session import Request, Session
from regress.text.wording import counted, quoted
from regress.trends.events import Events, events_in, marked_new, with_failures, with_shifts


def merge(request: Request, folders: Sequence[Path], watcher: Watcher, into: Path | None = None) -> Reported:
    """Take what the folders hold into results_dir, or into another folder, and say what of results_dir's history is new by
    that. What of the folders cannot be read is named, and the rest is taken.

    What was new in a merge that was killed is new in the next one, of whichever folders: call what is returned beside the
    report once people have that. Raises StoreError, with nothing written, where a folder has no results or results that would
    be mixed with others.
    """
    if into is not None:
        return _taken(Merging(into, folders), into, watcher), lambda: None
    session = Session(request)
    untold = Untold(session, "merge")
    return untold.alone(watcher.note, lambda: _judged(session, untold, folders, watcher))


def _judged(session: Session, untold: Untold, folders: Sequence[Path], watcher: Watcher) -> Reported:
    """The merge into results_dir, with what is new by it. Where nobody knows the history's commits here, nothing is judged."""
    start = time.monotonic()
    root = session.config.results_dir
    merging = Merging(root, folders)
    past, before = _past(session), untold.read()
    warnings = list(session.config.warnings if past is None else session.warnings)
    was_killed = before is not None
    if past is not None and before is None:
        before = past[1]
        try:
            untold.write(before)
        except StoreError as error:  # no reason to take nothing
            warnings.append(f"{error.what}: {error.why}; what is new is lost if this merge is killed; fix: {error.fix}")
    report = _taken(merging, root, watcher)
    if past is not None and before is not None and (was_killed or any(part.added for part in report.merged)):
        report = _with_events(report, session, before)
    report = replace(report, warnings=(*warnings, *report.warnings), duration_s=time.monotonic() - start)
    return report, untold.forget


def _taken(merging: Merging, root: Path, watcher: Watcher) -> Report:
    start = time.monotonic()
    interrupted = False
    watcher.start(len(merging.results), "merging")
    try:
        for machine, stem in merging.results:
            merging.take(machine, stem)
            watcher.advance(f"{machine} {stem}")
    except KeyboardInterrupt:
        interrupted = True  # what was taken is whole, and the same command does the rest
    merged = merging.finish()
    codes = exits(interrupted=interrupted, failed=bool(merging.skipped))
    return Report(
        command="merge",
        exit_codes=codes,
        state=codes[0].word,
        merged=merged,
        remark=_summed_up(merged),
        warnings=tuple(f"not merged: {file.path}: {file.why}; fix: {file.fix}" for file in merging.skipped),
        recorded=str(root),
        duration_s=time.monotonic() - start,
    )


Past = tuple[tuple[tuple[Commit, ...], ...], Events]
"""The histories of the branches, and what they say."""


def _past(session: Session) -> Past | None:
    """What the history says; None where nobody knows its commits here."""
    try:
        histories = choose(session, Asked((EXISTING,)), session.recorded()).histories
    except (NoRepository, RevisionError):
        return None
    return histories, events_in(session, histories, None, None)


def _with_events(report: Report, session: Session, before: Events) -> Report:
    """The report with what is new of the history, and the exit codes of that."""
    after = _past(session)
    assert after is not None
    histories, events = after
    events = with_shifts(session, histories, marked_new(before, events))
    changes = tuple(change for change in events.changes if change.new)
    broken = tuple(breakage for breakage in events.breakages if breakage.new)
    opened = [change for change in changes if change.point.is_open]
    codes = ranked([*report.exit_codes, *([Exit.REGRESSED] if opened else []), *([Exit.FAILED] if broken else [])])
    return replace(
        report,
        exit_codes=codes,
        state=codes[0].word,
        changes=changes,
        shifts=tuple(shift for shift in events.shifts if shift.new),
        breakages=with_failures(session, broken),
        remark=f"{report.remark}; {news(events)}" if changes or broken else report.remark,
        suggestions=tuple(("see", quoted("regress", "report")) for _ in [*opened, *broken][:1]),
    )


def _summed_up(merged: Sequence[Merged]) -> str:
    """ "12 folders: 480 rounds added, 20 already present"."""
    added, known = (sum(getattr(part, name) for part in merged) for name in ("added", "known"))
    words = f"{counted(len(merged), 'folder')}: {counted(added, 'round')} added"
    return words + (f", {known} already present" if known else "")
