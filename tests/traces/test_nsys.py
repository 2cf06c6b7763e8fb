"""Exports of Nsight Systems, made by `nsys_export` after the documented schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from regress.errors import ProfileError
from regress.traces import nsys
from regress.traces.timeline import between
from regress.traces.totals import totals
from tests.traces.nsys_export import PID, TID, Export, two_calls
from tests.traces.samples import US, near


def test_a_whole_recording(tmp_path: Path) -> None:
    timeline = nsys.read(two_calls(tmp_path / "r.sqlite"))
    assert (len(timeline.launches), len(timeline.copies), len(timeline.syncs), len(timeline.ranges)) == (3, 6, 3, 2)
    launch = timeline.launches[1]
    assert (launch.name, launch.grid, launch.block) == ("void gelu<float>(float *)", (4, 2, 1), (128, 1, 1))
    assert (launch.registers, launch.shared_bytes, launch.stream) == (40, 512, 7)
    assert (launch.start_s, launch.duration_s) == pytest.approx((1009 * US, 20 * US))
    assert [(copy.name, copy.kind, copy.bytes) for copy in timeline.copies[:2]] == [
        ("Memset (Device)", "memset", 4096),
        ("Memcpy DtoH (Device -> Pinned)", "device to host", 1024),
    ]
    assert timeline.api_calls[0].name == "cudaLaunchKernel"
    assert timeline.api_calls[0].thread == TID & 0xFFFFFF
    assert timeline.device == "NVIDIA H200"
    assert timeline.gaps_in_record == ()


def test_the_marked_calls_and_their_totals(tmp_path: Path) -> None:
    timeline = between(nsys.read(two_calls(tmp_path / "r.sqlite")), "regress.call")
    assert (timeline.calls, len(timeline.launches), len(timeline.syncs)) == (2, 2, 2)
    all_of_it = totals(timeline)
    assert all_of_it.kernels_s == pytest.approx(20 * US)
    assert all_of_it.copies_s == pytest.approx(7 * US)
    assert all_of_it.waiting_s == pytest.approx(34 * US)
    assert all_of_it.overlap_s == pytest.approx(2 * US)  # of the kernel with cudaMemcpyAsync


def test_columns_of_other_versions_may_be_missing(tmp_path: Path) -> None:
    less = ("globalPid", "registersPerThread", "srcKind", "dstKind", "memKind", "textId", "greenContextId")
    timeline = nsys.read(two_calls(tmp_path / "r.sqlite", leave_out=less))
    assert timeline.launches[0].registers is None
    assert [copy.name for copy in timeline.copies[:2]] == ["Memset (Device)", "Memcpy DtoH"]
    assert len(timeline.ranges) == 2


def test_tables_that_are_not_there_are_named(tmp_path: Path) -> None:
    export = Export(tmp_path / "r.sqlite")
    export.kernel("k", 10, 20)
    timeline = nsys.read(export.finish())
    assert (len(timeline.launches), timeline.copies, timeline.syncs) == (1, (), ())
    assert any("CUPTI_ACTIVITY_KIND_MEMCPY" in gap and "copies" in gap for gap in timeline.gaps_in_record)
    assert not any("KIND_KERNEL" in gap for gap in timeline.gaps_in_record)


def test_waits_come_from_their_own_table_where_the_api_was_not_recorded(tmp_path: Path) -> None:
    export = Export(tmp_path / "r.sqlite")
    export.kernel("k", 0, 1000)
    for kind in (1, 2, 3, 4):
        export.add("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", start=100 * kind, end=100 * kind + 50, syncType=kind)
    timeline = nsys.read(export.finish())
    assert [sync.name for sync in timeline.syncs] == [
        "cudaEventSynchronize",
        "cudaStreamSynchronize",
        "cudaDeviceSynchronize",
    ]


def test_what_the_profiler_did_itself(tmp_path: Path) -> None:
    export = Export(tmp_path / "r.sqlite")
    export.kernel("k", 0, 1000)
    export.add(
        "PROFILER_OVERHEAD",
        start=200,
        end=700,
        globalTid=TID,
        nameId=export.string("CUDA profiling data flush overhead"),
    )
    timeline = nsys.read(export.finish())
    assert [(overhead.name, overhead.thread) for overhead in timeline.overheads] == [
        ("CUDA profiling data flush overhead", 101)
    ]
    assert totals(timeline).profiler_s == near(500e-9)


def test_graphs_that_were_recorded_whole_are_work_of_the_device(tmp_path: Path) -> None:
    export = Export(tmp_path / "r.sqlite")
    export.call("cudaGraphLaunch_v10000", 0, 100, correlation=4)
    export.add("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", start=50, end=950, correlationId=4, globalPid=PID, graphId=3)
    timeline = nsys.read(export.finish())
    assert [(launch.name, launch.duration_s) for launch in timeline.launches] == [("CUDA graph 3", near(900e-9))]
    assert any("--cuda-graph-trace=node" in gap for gap in timeline.gaps_in_record)


def test_correlations_of_two_processes_are_not_mixed_up(tmp_path: Path) -> None:
    export = Export(tmp_path / "r.sqlite")
    other = TID + (1 << 24)
    for tid, start in ((TID, 0), (other, 5000)):
        export.call("cudaLaunchKernel", start, start + 10, correlation=1, tid=tid)
        export.kernel(f"of {start}", start + 20, start + 30, correlation=1, pid=tid & ~0xFFFFFF)
    export.add("NVTX_EVENTS", start=0, end=100, eventType=59, textId=export.string("call"), globalTid=TID)
    timeline = between(nsys.read(export.finish()), "call")
    assert [launch.name for launch in timeline.launches] == ["of 0"]


@pytest.mark.parametrize("name", ["run.nsys-rep", "run.qdrep"])
def test_a_report_is_refused_with_the_command_that_exports_it(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"NSYS report of some kind")
    with pytest.raises(ProfileError, match="is a report of Nsight Systems") as caught:
        nsys.read(tmp_path / name)
    assert "nsys export --type sqlite" in caught.value.fix
    assert "run.sqlite" in caught.value.fix


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("run.qdstrm", b"stream", "cannot finish a report"),
        ("run.sqlite", b"text", "not an SQLite file"),
        ("run.sqlite", b"SQLite format 3\0 and then nothing", "cannot be read"),
    ],
)
def test_what_is_no_export_is_refused(tmp_path: Path, name: str, content: bytes, what: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ProfileError, match=what):
        nsys.read(tmp_path / name)


def test_an_export_without_cuda_says_how_to_record_it(tmp_path: Path) -> None:
    export = Export(tmp_path / "r.sqlite")
    export.add("NVTX_EVENTS", start=0, end=100, eventType=59, text="call")
    with pytest.raises(ProfileError, match="nothing of CUDA") as caught:
        nsys.read(export.finish())
    assert "--trace=cuda,nvtx" in caught.value.fix


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="cannot be read"):
        nsys.read(tmp_path / "none.sqlite")
