"""What profilers have exported, recognized by its content; and exports of Nsight Systems -> CallProfile."""

from __future__ import annotations

import codecs
import re
from dataclasses import replace
from math import fsum
from pathlib import Path
from typing import Literal

from regress.errors import ProfileError
from regress.model import ApiUse, Bottleneck, Bound, CallProfile, Case, KernelUse, Totals
from regress.text.wording import reason
from regress.traces.calls import call_profile
from regress.traces.names import labels
from regress.traces.nsys_stats import Stats
from regress.traces.timeline import Timeline, between, is_sync

Kind = Literal["GPUProfiler", "nsys", "nsys stats", "ncu", "report", "unknown"]
REPORTS = (".nsys-rep", ".qdrep", ".qdstrm", ".ncu-rep")
"""Files that only the tool itself can read."""
ENDINGS = (*REPORTS, ".sqlite", ".csv")

_HEAD = 1 << 20
"""How many bytes at the start of a file identify it: a program may print before ncu does."""
_NCU = re.compile(r'^("ID",|==PROF== |==ERROR== )', re.MULTILINE)
_NSYS_STATS = re.compile(r"\bTotal Time \(|\bTotal \([KMG]?B\)|^Processing \[", re.MULTILINE)

NOT_TOLD = Bound(
    "unknown",
    None,
    "a recording of Nsight Systems does not show how close a kernel gets to the device's limits",
    "measure its kernels one by one: regress profile CASE --ncu, or ncu",
)


def kind_of(path: Path) -> Kind:
    """The tool that exported the file. Raises ProfileError if it cannot be read."""
    if path.suffix in REPORTS:
        return "report"
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise ProfileError(f"{path} cannot be read", why=reason(error), fix="name an export") from None
    if head.startswith(b"SQLite format 3\0"):
        return "nsys"
    text = _decoded(head)
    if text.lstrip()[:1] in ("{", "["):
        return "GPUProfiler"
    return "ncu" if _NCU.search(text) else "nsys stats" if _NSYS_STATS.search(text) else "unknown"


def text_of(path: Path) -> str:
    """The text of a file that some shell wrote what a tool printed into. Raises ProfileError."""
    try:
        return _decoded(path.read_bytes())
    except OSError as error:
        raise ProfileError(f"{path} cannot be read", why=reason(error), fix="name an export") from None


def _decoded(data: bytes) -> str:
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # as PowerShell writes it
    return data.decode("utf-16" if wide else "utf-8-sig", "replace")


def of_timeline(case: Case, whole: Timeline, mark: str) -> CallProfile:
    """The profile in a recording: of a call if ranges of that name mark calls, else of the whole program."""
    marked = any(span.name == mark for span in whole.ranges)
    timeline = between(whole, mark) if marked else whole
    profile = call_profile(case, timeline, mark, 0.0, lambda seconds: None)
    bound = NOT_TOLD if profile.bound is not None and profile.bound.kind == "unknown" else profile.bound
    return replace(profile, bound=bound, flags=(*profile.flags, *whole.gaps_in_record))


def of_stats(case: Case, stats: Stats) -> CallProfile:
    """The profile in the sums of a recording. They do not say when anything ran, so idle time is unknown."""
    kernels_s, copies_s = (fsum(total.total_s for total in totals) for totals in (stats.kernels, stats.copies))
    waits = [call for call in stats.api_calls if is_sync(call.name)]
    waiting_s = fsum(wait.total_s for wait in waits)
    told = labels(kernel.name for kernel in stats.kernels)
    kernels = tuple(
        KernelUse(
            kernel.name, kernel.count, kernel.total_s, grid=kernel.grid, block=kernel.block, short=told[kernel.name]
        )
        for kernel in stats.kernels
    )
    copies = tuple(KernelUse(copy.name, copy.count, copy.total_s, bytes=copy.bytes) for copy in stats.copies)
    device_s, largest = kernels_s + copies_s, max((*kernels, *copies), key=lambda use: use.seconds, default=None)
    bottleneck = None
    if largest is not None and device_s > 0:
        kind: Literal["kernel", "copies"] = "kernel" if largest in kernels else "copies"
        bottleneck = Bottleneck(kind, largest.name, largest.seconds / device_s)
    return CallProfile(
        case,
        calls=1,
        totals=Totals(
            span_s=0.0,
            device_busy_s=device_s,
            idle_s=0.0,
            kernels_s=kernels_s,
            copies_s=copies_s,
            host_busy_s=stats.api_s - waiting_s,
            waiting_s=waiting_s,
            overlap_s=0.0,
            profiler_s=0.0,
            launches=sum(kernel.count for kernel in stats.kernels),
            copies=sum(copy.count for copy in stats.copies),
            synchronizations=sum(wait.count for wait in waits),
        ),
        kernels=kernels,
        copies=copies,
        api_calls=tuple(ApiUse(call.name, call.count, call.total_s) for call in stats.api_calls),
        bottleneck=bottleneck,
        bound=NOT_TOLD if bottleneck is not None else None,
        on_device=bool(kernels or copies),
        flags=("sums only: what ran side by side counts twice, and idle time and overlap are not in them",),
    )
