"""Nsight Compute's CSV. The tables here are made by hand, in the layout that the tool's documentation shows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.errors import ProfileError
from regress.model import KernelMetrics
from regress.traces import ncu
from tests.traces.samples import near

COLUMNS = (
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
)
PLACE = (
    "0",
    "1234",
    "python3",
    "127.0.0.1",
    "void gelu<float, 4>(float *, int)",
    "1",
    "7",
    "(128, 1, 1)",
    "(2048, 2, 1)",
)
METRICS = {
    "gpu__time_duration.sum": ("us", "1,027.94"),
    "sm__warps_active.avg.pct_of_peak_sustained_active": ("%", "41.5"),
    "sm__maximum_warps_per_active_cycle_pct": ("%", "50"),
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": ("%", "91.25"),
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": ("%", "88"),
    "dram__bytes.sum.per_second": ("Tbyte/s", "3.25"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "22"),
    "sm__inst_executed_pipe_tensor_op_hmma.avg.pct_of_peak_sustained_active": ("%", "0"),
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": ("%", "12.5"),
    "l1tex__t_sector_hit_rate.pct": ("%", "33.3"),
    "lts__t_sector_hit_rate.pct": ("%", "66.6"),
    "launch__registers_per_thread": ("register/thread", "32"),
    "launch__shared_mem_per_block_static": ("Kbyte/block", "1.02"),
    "launch__shared_mem_per_block_dynamic": ("byte/block", "2,048"),
    "launch__waves_per_multiprocessor": ("", "2.5"),
    "smsp__something.ratio": ("", "n/a"),
}
EXPECTED = KernelMetrics(
    "void gelu<float, 4>(float *, int)",
    grid=(2048, 2, 1),
    block=(128, 1, 1),
    duration_s=near(1027.94e-6),
    achieved_occupancy=near(0.415),
    theoretical_occupancy=near(0.5),
    memory_throughput=near(0.9125),
    dram_throughput=near(0.88),
    dram_bytes_s=near(3.25e12),
    compute_throughput=near(0.22),
    tensor_use=near(0.125),
    l1_hit_rate=near(0.333),
    l2_hit_rate=near(0.666),
    registers=32,
    shared_bytes=3068,
    waves=2.5,
)


def line(fields: tuple[str, ...]) -> str:
    return ",".join(f'"{field}"' for field in fields) + "\n"


def raw(*kernels: dict[str, tuple[str, str]]) -> str:
    names = tuple(kernels[0])
    units = tuple(unit for unit, _ in kernels[0].values())
    rows = [
        line((str(index), *PLACE[1:], *(value for _, value in kernel.values()))) for index, kernel in enumerate(kernels)
    ]
    return line((*COLUMNS, *names)) + line(("",) * len(COLUMNS) + units) + "".join(rows)


def details(*rows: tuple[str, str, str, str]) -> str:
    columns = (*COLUMNS, "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name")
    return line(columns) + "".join(line((*PLACE, *row, "")) for row in rows)


def test_the_raw_page() -> None:
    assert ncu.read(raw(METRICS)) == (EXPECTED,)


def test_metrics_that_were_asked_for_by_name_come_one_a_row() -> None:
    rows = [("Command line profiler metrics", name, unit, value) for name, (unit, value) in METRICS.items()]
    assert ncu.read(details(*rows)) == (EXPECTED,)


def test_the_details_page_has_names_for_people() -> None:
    text = details(
        ("GPU Speed Of Light Throughput", "Duration", "us", "1,027.94"),
        ("GPU Speed Of Light Throughput", "Memory Throughput", "%", "91.25"),
        ("GPU Speed Of Light Throughput", "DRAM Throughput", "%", "88"),
        ("GPU Speed Of Light Throughput", "Compute (SM) Throughput", "%", "22"),
        ("Memory Workload Analysis", "Memory Throughput", "Tbyte/s", "3.25"),
        ("Memory Workload Analysis", "L1/TEX Hit Rate", "%", "33.3"),
        ("Memory Workload Analysis", "L2 Hit Rate", "%", "66.6"),
        ("Launch Statistics", "Registers Per Thread", "register/thread", "32"),
        ("Launch Statistics", "Static Shared Memory Per Block", "Kbyte/block", "1.02"),
        ("Launch Statistics", "Dynamic Shared Memory Per Block", "byte/block", "2,048"),
        ("Launch Statistics", "Waves Per SM", "", "2.5"),
        ("Occupancy", "Theoretical Occupancy", "%", "50"),
        ("Occupancy", "Achieved Occupancy", "%", "41.5"),
    )
    (launch,) = ncu.read(text)
    assert launch.tensor_use is None  # the page has no number for it
    assert launch == replace(EXPECTED, tensor_use=None)


def test_launches_are_kept_apart_and_in_order() -> None:
    second = {**METRICS, "gpu__time_duration.sum": ("us", "5")}
    assert [launch.duration_s for launch in ncu.read(raw(METRICS, second))] == [
        near(1027.94e-6),
        near(5e-6),
    ]


def test_the_output_of_profiler_and_application_stands_around_the_table() -> None:
    before = '==PROF== Connected to process 1234 (/usr/bin/python3)\nepoch 1, loss 3\n"a quoted","line"\n'
    text = (
        before
        + raw(METRICS).replace("\n", '\n"done", norm_gelu\n', 1)
        + "==PROF== Disconnected from process 1234\nbye\n"
    )
    assert ncu.read(text) == (EXPECTED,)


def test_what_was_not_collected_is_none() -> None:
    (launch,) = ncu.read(
        raw(
            {"gpu__time_duration.sum": ("ns", "2048"), "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "nan")}
        )
    )
    assert launch == KernelMetrics(PLACE[4], (2048, 2, 1), (128, 1, 1), duration_s=near(2048e-9))


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("%", (0.01, "share")),
        ("ns", (1e-9, "s")),
        ("usecond", (1e-6, "s")),
        ("msecond", (1e-3, "s")),
        ("second", (1.0, "s")),
        ("byte", (1.0, "B")),
        ("Mbyte", (1e6, "B")),
        ("Kbyte/block", (1e3, "B")),
        ("Gbyte/second", (1e9, "B/s")),
        ("Tbyte/s", (1e12, "B/s")),
        ("register/thread", (1.0, "")),
        ("", (1.0, "")),
    ],
)
def test_units(unit: str, expected: tuple[float, str]) -> None:
    assert ncu.scale_of(unit) == expected


@given(st.floats(1e-9, 10), st.sampled_from(("ns", "us", "ms", "s")))
def test_a_duration_is_the_same_in_every_unit(seconds: float, unit: str) -> None:
    scale, _ = ncu.scale_of(unit)
    (launch,) = ncu.read(raw({"gpu__time_duration.sum": (unit, f"{seconds / scale:,.9f}")}))
    assert launch.duration_s == pytest.approx(seconds, rel=1e-6, abs=scale * 1e-9)


def test_tensor_cores_are_used_as_long_as_they_are_busy_not_as_often_as_they_are_told() -> None:
    busy, told = (
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained",
        "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained",
    )
    metrics = {f"{told}_active": ("%", "2.6"), f"{busy}_elapsed": ("%", "72"), f"{busy}_active": ("%", "82")}
    for name, share in ((f"{busy}_active", 0.82), (f"{busy}_elapsed", 0.72), (f"{told}_active", 0.026)):
        assert ncu.read(raw(metrics))[0].tensor_use == near(share)
        del metrics[name]


def test_a_table_that_breaks_off_is_refused() -> None:
    with pytest.raises(ProfileError, match=r"run\.csv, line 3: \d+ fields of 25") as caught:
        ncu.read(raw(METRICS)[:-40], "run.csv")
    assert "too early" in caught.value.why


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters",
            "may not read",
        ),
        ("hello\n==WARNING== No kernels were profiled.\n", "has profiled no kernel"),
        ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded\n", "cannot reach the GPU's counters"),
        (
            "==ERROR== The application returned an error code (3).\n",
            r"ncu failed: The application returned an error code \(3\)",
        ),
        ("hello\n", "holds no table"),
        (raw(METRICS).partition("\n")[0], "holds no table"),
    ],
)
def test_no_table_and_why(text: str, what: str) -> None:
    with pytest.raises(ProfileError, match=what) as caught:
        ncu.read(text)
    assert caught.value.fix
