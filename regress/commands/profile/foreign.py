"""`regress profile FILE`: what Nsight Systems and Nsight Compute have exported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from regress.errors import ProfileError, RegressError
from regress.measure.wire import CALL_MARK
from regress.model import Case, Report
from regress.run.execute import Watcher
from regress.text.wording import counted, quoted
from regress.traces import ncu, nsys, nsys_stats
from regress.traces.exported import REPORTS, kind_of, of_stats, of_timeline, text_of
from regress.traces.metered import devices, metered
from regress.units import format_bytes

LARGE = 32 << 20
"""Bytes of an export, from which on reading takes so long that it is said."""
READ = "a JSON of GPUProfiler, a SQLite export or the CSV of `nsys stats`, or the CSV of ncu"


def show_export(
    words: Sequence[str], against: Sequence[str] = (), record: str | None = None, watcher: Watcher | None = None
) -> Report:
    """What the export says. Raises RegressError for one that cannot be read, and for what only exports of GPUProfiler can."""
    path = Path(words[0])
    asked = "--against" if against else "--record" if record else counted(len(words), "file") if len(words) > 1 else ""
    if asked:
        raise RegressError(
            f"{asked}, and {path} is not an export of GPUProfiler",
            why="exports of other profilers can be shown, but not judged or recorded",
            fix=quoted("regress", "profile", path),
        )
    if not path.is_file():
        raise RegressError(
            f"{path} cannot be read",
            why="it is a folder" if path.is_dir() else "there is no such file",
            fix=f"name an existing file: {READ}",
        )
    if watcher is not None and path.stat().st_size >= LARGE:
        watcher.note(f"reading {path}, {format_bytes(path.stat().st_size)}")
    kind, case = kind_of(path), Case(path.name)
    if kind == "nsys":
        return _recording(path)
    if kind == "nsys stats":
        profile = of_stats(case, nsys_stats.read(text_of(path), str(path)))
        return Report(
            "profiled", plan=f"{path}, sums of Nsight Systems", profiled=(profile,), cases=1, remark=path.name
        )
    if kind == "ncu":
        kernels = replace(metered(case, ncu.read(text_of(path), str(path))), table=str(path))
        plan = f"{path}, of Nsight Compute"
        return Report("metered", device=devices([kernels]), plan=plan, metered=(kernels,), cases=1, remark=path.name)
    raise _unread(path)


def _recording(path: Path) -> Report:
    timeline = nsys.read(path)
    profile = of_timeline(Case(path.name), timeline, CALL_MARK)
    plan = f"{path}, a recording of Nsight Systems"
    return Report("profiled", device=timeline.device, plan=plan, profiled=(profile,), cases=1, remark=path.name)


def _unread(path: Path) -> ProfileError:
    if path.suffix not in REPORTS:
        return ProfileError(
            f"{path} is not a known export", why="its content is none of the known kinds", fix=f"export {READ}"
        )
    if path.suffix == ".ncu-rep":
        fix = f"{quoted('ncu', '--import', path, '--csv', '--page', 'raw')} > {quoted(path.with_suffix('.csv'))}"
        return ProfileError(f"{path} is a report of Nsight Compute", why="only the tool itself can read those", fix=fix)
    return nsys.unreadable(path)
