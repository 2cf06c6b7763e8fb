"""Stands in for Nsight Compute where there is none: takes the options that it documents, runs the program, writes a report, and
prints it as the documented table. Not recorded; what a real one prints is in recorded/.

FAKE_NCU says what goes wrong: denied, nothing, broken, no-library, waits (until Ctrl-C, when it writes what it has).
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

FLAGS = {"--force-overwrite", "--csv"}
TABLE = """\
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"gpu__time_duration.sum","sm__warps_active.avg.pct_of_peak_sustained_active","sm__maximum_warps_per_active_cycle_pct",\
"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed","gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",\
"dram__bytes.sum.per_second","sm__throughput.avg.pct_of_peak_sustained_elapsed",\
"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active","l1tex__t_sector_hit_rate.pct","lts__t_sector_hit_rate.pct",\
"launch__registers_per_thread","launch__shared_mem_per_block_static","launch__shared_mem_per_block_dynamic",\
"launch__waves_per_multiprocessor"
"","","","","","","","","","","","ns","%","%","%","%","byte/second","%","%","%","%","register/thread","byte/block","byte/block",""
"0","99","python3","127.0.0.1","void softmax<float, 4>(float *, int)","1","7","(128, 1, 1)","(2048, 1, 1)","0","9.0",\
"30,720","81.5","100","91.25","88","4,200,000,000,000","22","0","33.3","66.6","32","1,024","2,048","2.5"
"1","99","python3","127.0.0.1","sgemm_128x128(float *)","1","7","(256, 1, 1)","(64, 1, 1)","0","9.0",\
"10,240","12.4","12.5","20","4","190,000,000,000","25","0","1.5","88","255","0","49,152","0.5"
"""


def main(words: list[str]) -> int:
    options: dict[str, str] = {}
    while words and words[0].startswith("--"):
        word = words.pop(0)
        options[word] = "" if word in FLAGS else words.pop(0)
    if "--import" in options:
        sys.stdout.write(Path(options["--import"]).read_text())
        return 0
    return _record(options, words, os.environ.get("FAKE_NCU", ""))


def _record(options: dict[str, str], program: list[str], wrong: str) -> int:
    report = Path(options["--export"])
    report.with_suffix(".called").write_text(shlex.join([*options, "", *program]))
    print("==PROF== Connected to process 99 (python3)", flush=True)
    if wrong == "denied":
        print(
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"
        )
    if wrong == "no-library":
        print("==ERROR== LibraryNotLoaded: cannot load the profiler")
        return 1
    if wrong == "waits":
        signal.signal(signal.SIGINT, lambda number, frame: _stop(report, number, frame))
        report.with_suffix(".waits").touch()
        signal.pause()
    code = subprocess.run(program, check=False).returncode
    if code:
        print(f"==ERROR== The application returned an error code ({code}).")
    if wrong == "nothing" or code:
        print("==WARNING== No kernels were profiled.")
    elif wrong != "denied":
        print('==PROF== Profiling "softmax" - 0: 0%....50%....100% - 9 passes', flush=True)
        report.write_text(TABLE[: TABLE.index("30,720")] if wrong == "broken" else TABLE)
    return code


def _stop(report: Path, number: int, frame: FrameType | None) -> None:
    report.write_text(TABLE)
    sys.exit(1)


def install(folder: Path) -> Path:
    """A folder for PATH, with `ncu` in it."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "ncu"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(__file__)} "$@"\n')
    script.chmod(0o755)
    return folder


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
