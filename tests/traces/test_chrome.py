"""Chrome traces: the operators from a real profiler here, device work from events as torch writes them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from regress.errors import ProfileError
from regress.traces import chrome
from regress.traces.timeline import between
from tests.traces.samples import US, event, write_trace

LINEAR = {"External id": 2, "Input Dims": [[8, 16], [], [4, 16]], "Input type": ["float", "", "float"]}
SGEMM = {
    "External id": 3,
    "correlation": 7,
    "device": 0,
    "stream": 7,
    "grid": [4, 2, 1],
    "block": [128, 1, 1],
    "registers per thread": 96,
    "shared memory": 1024,
    "est. achieved occupancy %": 25,
}
COPIED = {"correlation": 8, "bytes": 4, "stream": 7, "device": 0}
SET = {"correlation": 99, "bytes": 512, "stream": 7, "device": 0}
CALL = [
    event("user_annotation", "call", 0, 100, {"External id": 1}),
    event("cpu_op", "aten::linear", 10, 50, LINEAR),
    event("cpu_op", "aten::addmm", 20, 30, {"External id": 3, "Input Dims": [[16]], "Input type": ["float"]}),
    event("cuda_runtime", "cudaLaunchKernel", 30, 5, {"External id": 3, "correlation": 7}),
    event("cpu_op", "aten::item", 70, 20, {"External id": 4, "Input Dims": [[]], "Input type": ["float"]}),
    event("cuda_runtime", "cudaMemcpyAsync", 72, 3, {"External id": 4, "correlation": 8}),
    event("cuda_runtime", "cudaStreamSynchronize", 76, 10, {"External id": 4, "correlation": 9}),
    event("kernel", "sgemm<4>", 40, 20, SGEMM, tid=7),
    event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 78, 2, COPIED, tid=7),
    event("gpu_memset", "Memset (Device)", 62, 1, SET, tid=7),
    event("gpu_user_annotation", "call", 40, 40, {}, tid=7),
]


def test_a_kernel_has_its_launch_and_the_operators_it_was_launched_in(tmp_path: Path) -> None:
    timeline = chrome.read(
        write_trace(tmp_path / "t.json.gz", CALL, deviceProperties=[{"id": 0, "name": "NVIDIA H200"}])
    )
    (launch,) = timeline.launches
    assert (launch.name, launch.grid, launch.block, launch.registers) == ("sgemm<4>", (4, 2, 1), (128, 1, 1), 96)
    assert (launch.shared_bytes, launch.occupancy, launch.stream, launch.correlation) == (1024, 0.25, 7, 7)
    assert launch.operators == ("aten::linear", "aten::addmm")
    assert launch.shapes == "[8, 16], [4, 16]"
    assert (launch.start_s, launch.duration_s) == pytest.approx((40 * US, 20 * US), abs=1e-9)
    assert timeline.device == "NVIDIA H200"


def test_copies_memsets_and_waits(tmp_path: Path) -> None:
    timeline = chrome.read(write_trace(tmp_path / "t.json", CALL))
    memset, copy = timeline.copies
    assert (memset.kind, memset.bytes, memset.operators) == ("memset", 512, ())
    assert (copy.kind, copy.bytes, copy.operators) == ("device to host", 4, ("aten::item",))
    (wait,) = timeline.syncs
    assert (wait.name, wait.operators) == ("cudaStreamSynchronize", ("aten::item",))
    assert [call.name for call in timeline.api_calls] == [
        "cudaLaunchKernel",
        "cudaMemcpyAsync",
        "cudaStreamSynchronize",
    ]
    assert [(span.name, span.thread) for span in timeline.ranges] == [("call", 1)]


def test_operators_of_threads_do_not_nest_in_each_other(tmp_path: Path) -> None:
    events = [
        event("cpu_op", "outer", 0, 100, {"External id": 1}, tid=1),
        event("cpu_op", "elsewhere", 10, 20, {"External id": 2}, tid=2),
        event("cpu_op", "inner", 0, 50, {"External id": 3}, tid=1),
        event("cpu_op", "next", 100, 5, {"External id": 4}, tid=1),
    ]
    timeline = chrome.read(write_trace(tmp_path / "t.json", events))
    assert [operator.path for operator in timeline.operators] == [
        ("outer",),
        ("outer", "inner"),
        ("elsewhere",),
        ("next",),
    ]
    assert timeline.gaps_in_record == ("no device work was recorded",)


def test_what_torch_records_on_the_host_is_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    x, weight = torch.randn(8, 16), torch.randn(16)
    path = tmp_path / "trace.json.gz"
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, profile_memory=True
    ) as run:
        for _ in range(3):
            with torch.profiler.record_function("regress.call"):
                torch.nn.functional.layer_norm(x, (16,), weight)
    run.export_chrome_trace(str(path))
    timeline = between(chrome.read(path), "regress.call")
    assert timeline.calls == 3
    outermost = [operator for operator in timeline.operators if len(operator.path) == 1]
    assert [operator.name for operator in outermost] == ["aten::layer_norm"] * 3
    assert (outermost[0].shapes, outermost[0].dtypes) == ("[8, 16], [16]", "float, float")
    assert ("aten::layer_norm", "aten::native_layer_norm") in {operator.path for operator in timeline.operators}
    assert timeline.allocations
    assert not any(allocation.on_device for allocation in timeline.allocations)


def test_a_bare_nan_is_no_reason_to_refuse_a_trace(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.json", CALL)
    path.write_text(path.read_text().replace('"bytes": 512', '"bytes": 512, "memory bandwidth (GB/s)": NaN'))
    assert [copy.bytes for copy in chrome.read(path).copies] == [512, 4]


def test_a_trace_may_be_the_bare_list_of_events(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(CALL))
    assert len(chrome.read(path).launches) == 1


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b'{"traceEvents": [{"ph": "X", "name": "cut', "the file ends too early"),
        (b'{"traceEvents": [{"ph": "X", "ts": null}]}', "not as torch writes it"),
        (b'{"traceEvents": [{"ph": "X", "ts": 1, "dur": -1}]}', "not as torch writes it"),
        (b'{"traceEvents": [{"ph": "X", "ts": 1, "tid": {}}]}', "not as torch writes it"),
        (b'{"traceEvents": [{"ph": "X", "ts": 1, "args": {"correlation": [1]}}]}', "not as torch writes it"),
        (b'{"traceEvents": [{"ph": "X", "ts": 1e999}]}', "not as torch writes it"),
        (b"[" * 100_000, "the file ends too early"),
        (b'{"schemaVersion": 1}', "it has no traceEvents"),
        (b"hello", "it has no traceEvents"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(content)
    with pytest.raises(ProfileError) as caught:
        chrome.read(path)
    assert what in caught.value.why
    assert str(path) in caught.value.what


def test_a_gzipped_trace_that_breaks_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents": []}' * 100)[:-12])
    with pytest.raises(ProfileError, match="ends too early"):
        chrome.read(path)


def test_no_file_and_no_events(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="cannot be read"):
        chrome.read(tmp_path / "none.json")
    with pytest.raises(ProfileError, match="holds no events"):
        chrome.read(write_trace(tmp_path / "empty.json", []))
