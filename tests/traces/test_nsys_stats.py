"""`nsys stats`. The reports here are made by hand, in the layout that the tool's documentation shows."""

from __future__ import annotations

import pytest

from regress.errors import ProfileError
from regress.traces.nsys_stats import Total, read
from tests.traces.samples import near

KERNELS = """\
Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
88.7,10650240,24,443760.0,443520,441120,449280,2048.5,"void gemm<double, 4>(double *, int)"
11.3,"1,357,824",24,56576.0,56512,56320,57344,301.2,scale
"""
COPIES = """\
Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Operation
71.4,2411520,48,50240.0,50176,49920,51200,320.1,[CUDA memcpy Host-to-Device]
28.6,965632,24,40234.6,40192,39936,41216,290.7,[CUDA memset]
"""
API = """\
Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
100.0,7000000,100,70000.0,1,1,1,0.0,cudaLaunchKernel
"""
SIZES = """\
Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation
402.653,48,8.389,8.389,8.389,8.389,0.000,[CUDA memcpy Host-to-Device]
"""
GEMM = Total("void gemm<double, 4>(double *, int)", 24, near(10650240e-9))
SCALE = Total("scale", 24, near(1357824e-9))


def processing(report: str) -> str:
    return f"Processing [run.sqlite] with [reports/{report}.py]... \n\n ** Something ({report}):\n\n"


def test_reports_one_after_the_other() -> None:
    text = "".join(
        processing(name) + table + "\n"
        for name, table in (
            ("cuda_gpu_kern_sum", KERNELS),
            ("cuda_gpu_mem_time_sum", COPIES),
            ("cuda_gpu_mem_size_sum", SIZES),
            ("osrt_sum", API.replace("cudaLaunchKernel", "poll")),
            ("cuda_api_sum", API),
        )
    )
    stats = read("Generating SQLite file run.sqlite from run.nsys-rep\n" + text)
    assert stats.kernels == (GEMM, SCALE)
    assert [(kernel.name, kernel.count) for kernel in stats.copies] == [
        ("[CUDA memcpy Host-to-Device]", 48),
        ("[CUDA memset]", 24),
    ]
    assert stats.api_calls == (Total("cudaLaunchKernel", 100, near(7e-3)),)
    assert stats.device_s == near((10650240 + 1357824 + 2411520 + 965632) * 1e-9)
    assert stats.api_s == near(7e-3)


@pytest.mark.parametrize(("table", "column"), [(KERNELS, "kernels"), (COPIES, "copies"), (API, "api_calls")])
def test_a_report_alone_is_known_by_its_columns(table: str, column: str) -> None:
    stats = read(table)
    assert [name for name in ("kernels", "copies", "api_calls") if getattr(stats, name)] == [column]


def test_a_file_of_another_report_is_not_taken_for_calls_of_the_api() -> None:
    with pytest.raises(ProfileError, match="no report of CUDA"):
        read(API, "run_osrt_sum.csv")


def test_copies_have_the_sizes_of_their_report() -> None:
    stats = read("\n".join((SIZES, COPIES)))
    assert [kernel.bytes for kernel in stats.copies] == [near(402.653e6), 0]


def test_sizes_alone_are_no_times() -> None:
    with pytest.raises(ProfileError, match="no report of CUDA"):
        read(SIZES)


def test_kernels_by_grid_and_block_say_more_than_those_by_name() -> None:
    header, first, second = KERNELS.splitlines()
    sized = (
        header.replace("Name", "GridXYZ,BlockXYZ,Name"),
        first.replace('"void gemm', '   4    2    1, 128    1    1,"void gemm'),
        second.replace("scale", "  64    1    1, 256    1    1,scale"),
    )
    stats = read("\n".join((KERNELS, processing("cuda_gpu_kern_gb_sum"), *sized)))
    assert [(kernel.name, kernel.grid, kernel.block) for kernel in stats.kernels] == [
        ("void gemm<double, 4>(double *, int)", (4, 2, 1), (128, 1, 1)),
        ("scale", (64, 1, 1), (256, 1, 1)),
    ]
    assert read("\n".join(sized)).kernels == stats.kernels


def test_other_units_of_time() -> None:
    assert read(KERNELS.replace("(ns)", "(us)")).kernels[0].total_s == near(10.650240)


def test_reports_of_old_versions() -> None:
    old = "Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,Name\n50.0,200,2,100.0,90,110,k\n"
    assert read("Processing [r.sqlite] with [reports/gpukernsum.py]...\n\n" + old).kernels == (
        Total("k", 2, near(2e-7)),
    )


def test_a_report_that_breaks_off_is_refused() -> None:
    with pytest.raises(ProfileError, match="line 3: 2 fields of 9"):
        read(KERNELS[: KERNELS.index(",24,56576")])


@pytest.mark.parametrize("total", ["-1", "inf", "nan", "1e999"])
def test_times_that_nothing_takes_are_refused(total: str) -> None:
    with pytest.raises(ProfileError, match=f"line 2: there is {total}"):
        read(f"Time (%),Total Time (ns),Instances,Avg (ns),Name\n88.7,{total},24,1,k\n")


def test_a_line_that_is_longer_than_a_table_has_is_none() -> None:
    table = "Time (%),Total Time (ns),Instances,Avg (ns),Name\n88.7,100,24,1,k\n"
    assert read(f"{table}{'x' * 200_000}\n").kernels == read(table).kernels


def test_something_else_is_refused_with_the_command() -> None:
    with pytest.raises(ProfileError, match="no report of CUDA") as caught:
        read("hello\n")
    assert "nsys stats --report" in caught.value.fix
