"""The command that runs a program under Nsight Compute, so that `ncu.read` can read what it prints."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from regress.errors import ProfileError
from regress.profiling.names import function_name

SECTIONS = ("SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "LaunchStats", "Occupancy")
"""Sections rather than metrics: their metrics fit the chip, where a name that a chip lacks is an error."""
PLACES = ("/usr/local/cuda/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu")
"""Where installers put it without putting it on the path."""


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


def command(
    program: Sequence[str],
    *,
    ncu: str = "ncu",
    kernels: Iterable[str] = (),
    launch_count: int | None = None,
    marked_only: bool = True,
) -> list[str]:
    """The arguments that profile a program, its child processes too, and print the raw page.

    The clock is left alone, as in every measurement: ncu would set it to its base. `kernels` are names as a timeline has them,
    `launch_count` ends profiling after so many launches. `marked_only` profiles what lies between cudaProfilerStart and
    cudaProfilerStop alone."""
    options = ["--csv", "--page", "raw", "--print-units", "base", "--rename-kernels", "no"]
    options += ["--clock-control", "none", "--target-processes", "all"]
    for section in SECTIONS:
        options += ["--section", section]
    if marked_only:
        options += ["--profile-from-start", "off"]
    functions = dict.fromkeys(function_name(name) for name in kernels)
    if functions:
        options += ["--kernel-name", f"regex:^({'|'.join(re.escape(name) for name in functions)})$"]
    if launch_count is not None:
        options += ["--launch-count", str(launch_count)]
    return [ncu, *options, *program]
