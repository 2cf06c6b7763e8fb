"""`regress merge`: the results of shards, or of other machines, into results_dir."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from regress.commands.sweep.choosing import EXISTING, Asked, choose
from regress.commands.sweep.reporting import news
from regress.errors import Exit, NoRepository, RevisionError, exits, ranked
from regress.history import Merging
from regress.model import Commit, Merged, Report
from regress.run.execute import Watcher
from regress.session import Request, Session
from regress.text.wording import counted, quoted
from regress.trends.events import Events, events_in, marked_new, with_failures, with_shifts


def merge(request: Request, folders: Sequence[Path], watcher: Watcher, into: Path | None = None) -> Report:
    """Take what the folders hold into results_dir, or into another folder, and say what of results_dir's history is new by
    that. What of the folders cannot be read is named, and the rest is taken.

    Raises StoreError, with nothing written, where a folder has no results or results that would be mixed with others.
    """
    start = time.monotonic()
    session = None if into is not None else Session(request)
    root = into if session is None else session.config.results_dir
    assert root is not None
    merging = Merging(root, folders)
    before = _judged(session)
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
    report = Report(
        command="merge",
        merged=merged,
        remark=_summed_up(merged),
        warnings=(
            *(session.config.warnings if session is not None else ()),
            *(f"not merged: {file.path}: {file.why}; fix: {file.fix}" for file in merging.skipped),
        ),
        recorded=str(root),
    )
    if session is not None and before is not None and any(part.added for part in merged):
        report, event_codes = _with_events(report, session, before)
        codes = ranked([*codes, *event_codes])
    return replace(report, exit_codes=codes, state=codes[0].word, duration_s=time.monotonic() - start)


Judged = tuple[tuple[tuple[Commit, ...], ...], Events]
"""The histories of the branches, and what they say."""


def _judged(session: Session | None) -> Judged | None:
    """What the history says; None where nobody knows its commits here."""
    if session is None:
        return None
    try:
        histories = choose(session, Asked((EXISTING,)), session.recorded()).histories
    except (NoRepository, RevisionError):
        return None
    return histories, events_in(session, histories, None, None)


def _with_events(report: Report, session: Session, before: Judged) -> tuple[Report, list[Exit]]:
    """The report with what is new of the history, and the exit codes of that."""
    after = _judged(session)
    assert after is not None
    histories, events = after
    events = with_shifts(session, histories, marked_new(before[1], events))
    changes = tuple(change for change in events.changes if change.new)
    broken = tuple(breakage for breakage in events.breakages if breakage.new)
    opened = [change for change in changes if change.point.is_open]
    report = replace(
        report,
        changes=changes,
        shifts=tuple(shift for shift in events.shifts if shift.new),
        breakages=with_failures(session, broken),
        remark=f"{report.remark}; {news(events)}" if changes or broken else report.remark,
        suggestions=tuple(("see", quoted("regress", "report")) for _ in [*opened, *broken][:1]),
    )
    return report, [*([Exit.REGRESSED] if opened else []), *([Exit.FAILED] if broken else [])]


def _summed_up(merged: Sequence[Merged]) -> str:
    """ "12 folders: 480 rounds added, 20 already present"."""
    added, known = (sum(getattr(part, name) for part in merged) for name in ("added", "known"))
    words = f"{counted(len(merged), 'folder')}: {counted(added, 'round')} added"
    return words + (f", {known} already present" if known else "")
