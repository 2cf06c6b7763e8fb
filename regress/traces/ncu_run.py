"""The commands that run a program under Nsight Compute, and that print its report for `ncu.read`."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from regress.errors import ProfileError

SECTIONS = ("SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "LaunchStats", "Occupancy")
"""Sections rather than metrics: their metrics fit the chip, where a name that a chip lacks is an error."""
PLACES = ("/usr/local/cuda/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu")
"""Where installers put it without putting it on the path."""

_KERNEL = re.compile(r'^==PROF== Profiling "(.+?)"', re.MULTILINE)


def find(places: Sequence[str] = PLACES) -> str:
    """The installed ncu, the one on the path or else the newest. Raises ProfileError."""
    on_path = shutil.which("ncu")
    if on_path is not None:
        return on_path
    found = [path for place in places for path in sorted(Path("/").glob(place.lstrip("/")), key=_version)]
    if not found:
        raise ProfileError(
            "Nsight Compute is not installed here: there is no ncu",
            why="it comes with the CUDA toolkit, not with the driver",
            fix="install it (package nsight-compute), or put its folder on PATH",
        )
    return str(found[-1])


def _version(path: Path) -> list[int]:
    return [int(each) for each in re.findall(r"\d+", str(path))]


def record(program: Sequence[str], report: Path, *, ncu: str, launch_count: int) -> list[str]:
    """The arguments that profile a program with its child processes and write the report.

    The clock is left alone, as in every measurement: ncu would set it to its base. Everything between cudaProfilerStart and
    cudaProfilerStop is profiled, at most `launch_count` launches.
    """
    options = ["--export", str(report), "--force-overwrite", "--target-processes", "all"]
    options += ["--clock-control", "none", "--profile-from-start", "off", "--launch-count", str(launch_count)]
    for section in SECTIONS:
        options += ["--section", section]
    return [ncu, *options, *program]


def show(report: Path, *, ncu: str) -> list[str]:
    """The arguments that print the raw page of a report."""
    return [ncu, "--import", str(report), "--csv", "--page", "raw", "--print-units", "base", "--rename-kernels", "no"]


def kernel_of(line: str) -> str | None:
    """The kernel that ncu says it is profiling, if that is what it says."""
    said = _KERNEL.match(line)
    return said[1] if said else None
