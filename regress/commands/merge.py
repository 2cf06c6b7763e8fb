"""`regress merge`: the results of shards, or of other machines, into results_dir."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from regress.errors import exits
from regress.history import Merging
from regress.model import Merged, Report
from regress.run.execute import Watcher
from regress.session import Request, Session, counted


def merge(request: Request, folders: Sequence[Path], watcher: Watcher, into: Path | None = None) -> Report:
    """Take what the folders hold into results_dir, or into another folder. What of them cannot be read is named, and the rest
    is taken.

    Raises StoreError, with nothing written, where a folder has no results or results that would be mixed with others.
    """
    start = time.monotonic()
    root, warnings = (into, ()) if into is not None else _results_dir(request)
    merging = Merging(root, folders)
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
        warnings=(
            *warnings,
            *(f"not merged: {each.path}: {each.why}; fix: {each.fix}" for each in merging.skipped),
        ),
        recorded=str(root),
        duration_s=time.monotonic() - start,
    )


def _results_dir(request: Request) -> tuple[Path, tuple[str, ...]]:
    config = Session(request).config
    return config.results_dir, config.warnings


def _summed_up(merged: Sequence[Merged]) -> str:
    """ "12 folders: 480 rounds added, 20 were there"."""
    added, known = (sum(getattr(each, name) for each in merged) for name in ("added", "known"))
    words = f"{counted(len(merged), 'folder')}: {counted(added, 'round')} added"
    return words + (f", {known} were there" if known else "")
