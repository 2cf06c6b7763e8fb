"""`regress profile FILE`: exports of Nsight Systems and Nsight Compute. Those here are made by us, after the documented
layouts; the tables of ncu in recorded/ are real."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from regress.cli import regress
from regress.report.json import schema
from tests.traces import fake_ncu
from tests.traces.exports import export
from tests.traces.nsys_export import Export, two_calls
from tests.traces.test_nsys_stats import API, COPIES, KERNELS, SIZES
from tests.traces.test_recorded import RECORDED


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # there is no configuration, and none is needed


def invoke(*words: str) -> Result:
    return CliRunner().invoke(regress, ["profile", *words])


def shown(*words: str) -> list[str]:
    done = invoke(*words)
    assert done.exit_code == 0, done.output
    return [" ".join(line.split()) for line in done.stdout.splitlines()]


def document(*words: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(invoke(*words, "--format", "json").stdout)
    jsonschema.Draft202012Validator(schema()).validate(data)
    return data


# -- Nsight Systems ------------------------------------------------------------------------------------------------------


def test_the_calls_of_once_are_shown_as_calls() -> None:
    two_calls(Path("calls.sqlite"))
    lines = shown("calls.sqlite")
    assert "on NVIDIA H200" in lines
    for line in (
        "under the profiler 550 us 100 % mean of 2",
        "device busy 27.0 us 4.9 % 1 launch, 2 copies",
        "host waiting 34.0 us 6.2 % 1 synchronization",
        "host busy 9.00 us 1.6 % 2.00 us of it while the device was",
        "cudaLaunchKernel 1 4.00 us 4.00 us",
        "gelu 1 20.0 us 3.6 % 4.00 us <4 x 2 x 1, 128 x 1 x 1>",
        "Memcpy DtoH (Device -> Pinned) 1 5.00 us 0.91 % 3.00 us 1.00 KiB, 205 MB/s",
        "launch-bound the device is idle for 95.1 % of a call",
    ):
        assert line in lines


def program(path: Path) -> Path:
    """Two kernels, one after the other, a copy beside them, and no marks."""
    recording = Export(path)
    recording.call("cudaLaunchKernel_v7000", 0, 4_000, correlation=1)
    recording.kernel("void gemm<float>(float *)", 10_000, 90_000, correlation=1)
    recording.kernel("void gemm<float>(float *)", 90_000, 150_000, gridX=8)
    copied: dict[str, object] = {
        "start": 20_000,
        "end": 60_000,
        "bytes": 1 << 20,
        "copyKind": 1,
        "srcKind": 1,
        "dstKind": 2,
    }
    recording.add("CUPTI_ACTIVITY_KIND_MEMCPY", streamId=8, correlationId=7, **copied)
    return recording.finish()


def test_a_whole_program() -> None:
    program(Path("run.sqlite"))
    lines = shown("run.sqlite")
    assert "of the program time share" in lines
    assert "device busy 140 us 93.3 % 2 launches, 1 copy" in lines
    assert "gemm 2 140 us 93.3 % 4.00 us <4 x 2 x 1, 128 x 1 x 1>" in lines
    assert "Memcpy HtoD (Pinned -> Device) 1 40.0 us 26.7 % 0 s 1.00 MiB, 26.2 GB/s" in lines
    assert "bottleneck gemm, 93.3 % of the program" in lines
    assert any(line.startswith("unknown a recording of Nsight Systems does not show") for line in lines)
    assert any(line.startswith("note no NVTX ranges in it") for line in lines)


def test_the_document_of_a_recording() -> None:
    two_calls(Path("calls.sqlite"))
    (profile,) = document("calls.sqlite")["profiles"]
    assert profile["name"] == "calls.sqlite"
    assert profile["totals"]["overlap_s"] == pytest.approx(2e-6)
    assert [call["name"] for call in profile["api_calls"]][:2] == ["cudaStreamSynchronize", "cudaLaunchKernel"]
    assert profile["kernels"][0]["grid"] == [4, 2, 1]
    assert {copy["bytes"] for copy in profile["copies"]} == {1024, 4096}


def test_the_sums_of_nsys_stats() -> None:
    Path("sums.csv").write_text("\n".join((KERNELS, COPIES, SIZES, API)))
    lines = shown("sums.csv")
    for line in (
        "kernels 12.0 ms 78 % 48 launches",
        "copies 3.38 ms 22 % 72 copies",
        "the host in CUDA 7.00 ms without waiting",
        "[CUDA memcpy Host-to-Device] 48 2.41 ms 15.7 % 384 MiB, 167 GB/s",
        "bottleneck gemm, 69.2 % of the device's time",
    ):
        assert line in lines
    assert not any(line.startswith(("device idle", "largest gaps")) for line in lines)
    (profile,) = document("sums.csv")["profiles"]
    assert (profile["totals"]["span_s"], profile["totals"]["launches"]) == (0, 48)


# -- Nsight Compute ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ncu-raw.csv.gz", "ncu-details.csv.gz"])
def test_a_table_of_ncu(name: str) -> None:
    Path("kernels.txt").write_bytes(gzip.decompress((RECORDED / name).read_bytes()))
    lines = shown("kernels.txt")
    (row,) = (line for line in lines if line.startswith("cutlass_80_simt_sgemm_256x128_8x4_nn_align1 1 343 us"))
    assert "12.5 % 12.5 % 46.2 % 84.7 %" in row
    assert row.endswith("0 % 88.8 % 202 48.0 KiB")
    assert any(line.startswith("compute-bound 46.2 % of the memory's peak and 84.7 %") for line in lines)
    assert any(line.startswith("at::vectorized_elementwise_kernel<…AUnaryFunctor…MulFunctor…>") for line in lines)
    (case,) = document("kernels.txt")["metered"]
    assert (case["calls"], case["report"], len(case["kernels"])) == (0, "", 5)


def test_what_a_shell_has_written_in_two_bytes_a_letter() -> None:
    Path("kernels.csv").write_text(fake_ncu.TABLE, encoding="utf-16")
    assert any(line.startswith("softmax 1 30.7 us") for line in shown("kernels.csv"))


# -- what it is not ------------------------------------------------------------------------------------------------------


def broken() -> None:
    Path("text.csv").write_text("a,b\n1,2\n")
    Path("cut.csv").write_text(fake_ncu.TABLE[:-60])
    Path("cut-sums.csv").write_text(KERNELS[: KERNELS.index(",24,56576")])
    Path("words.csv").write_text(KERNELS.replace("10650240,24", "10650240,many"))
    Path("empty.sqlite").write_text("")
    Path("cut.sqlite").write_bytes(two_calls(Path("whole.sqlite")).read_bytes()[:5000])
    with closing(sqlite3.connect("other.sqlite")) as database, database:
        database.execute("CREATE TABLE places (id)")
    with closing(sqlite3.connect("odd.sqlite")) as database, database:
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end)")
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2)")
    Path("run.nsys-rep").write_bytes(b"\x00\x01")
    Path("run.ncu-rep").write_bytes(b"NVR\x00")
    Path("denied.txt").write_text(
        "==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n"
    )


@pytest.mark.parametrize(
    ("name", "what", "fix"),
    [
        ("text.csv", "text.csv is not a known export", "the CSV of `nsys stats`"),
        ("cut.csv", "cut.csv, line 4: ", "profile again"),
        ("cut-sums.csv", "cut-sums.csv, line 3: ", "nsys stats --report"),
        ("words.csv", "words.csv, line 2: could not convert string to float: 'many'", "nsys stats --report"),
        ("empty.sqlite", "empty.sqlite is not a known export", "a SQLite export"),
        ("cut.sqlite", "cut.sqlite cannot be read", "nsys export"),
        ("other.sqlite", "other.sqlite is not an export of Nsight Systems", "nsys profile"),
        ("odd.sqlite", "odd.sqlite cannot be read", "nsys export"),
        ("run.nsys-rep", "is a report of Nsight Systems", "nsys export --type sqlite -o run.sqlite run.nsys-rep"),
        ("run.ncu-rep", "is a report of Nsight Compute", "ncu --import run.ncu-rep --csv --page raw > run.csv"),
        ("denied.txt", "(ERR_NVGPUCTRPERM)", "as root"),
        ("none.sqlite", "none.sqlite cannot be read", "name an existing file"),
    ],
)
def test_what_cannot_be_read_is_answered_with_a_message(name: str, what: str, fix: str) -> None:
    broken()
    done = invoke(name)
    assert done.exit_code == 2, done.output
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["error", "why", "fix"]
    assert what in done.stderr
    assert fix in done.stderr


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--against", "old.json"), "--against"),
        (("--record", "HEAD"), "--record"),
        (("other.sqlite",), "2 files"),
    ],
)
def test_only_exports_of_our_own_are_judged_and_recorded(words: tuple[str, ...], what: str) -> None:
    two_calls(Path("calls.sqlite"))
    done = invoke("calls.sqlite", *words)
    assert done.exit_code == 2
    assert f"{what}, and calls.sqlite is not an export of GPUProfiler" in done.stderr


def test_a_large_one_is_said_to_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    two_calls(Path("calls.sqlite"))
    assert "reading" not in invoke("calls.sqlite").stderr
    monkeypatch.setattr("regress.commands.profile.foreign.LARGE", 1000)
    assert "reading calls.sqlite, " in invoke("calls.sqlite").stderr


def test_the_content_says_what_it_is_and_not_the_name() -> None:
    two_calls(Path("run.csv"))
    assert "of a call time share" in shown("run.csv")
    export(Path("profile.csv"))
    assert any(line.startswith("attention gpu 60") for line in shown("profile.csv"))
