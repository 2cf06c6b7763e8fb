"""What real traces and tables show, recorded on an H200 (recorded/record.py says how)."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from regress.model import Explanation
from regress.traces import bound, chrome, ncu
from regress.traces.kernels import explain
from regress.traces.names import short
from regress.traces.timeline import Timeline, between
from regress.traces.totals import bottleneck, by_copy, by_kernel, memory, totals
from tests.traces.samples import US, near

RECORDED = Path(__file__).parent / "recorded"


def calls(name: str) -> Timeline:
    """The marked calls but the first, in which the profiler asks for its buffers."""
    return between(chrome.read(RECORDED / f"{name}.json.gz"), "regress.call", skip=1)


def difference(base: str, head: str) -> Explanation:
    return explain(calls(base), calls(head), 0.05)


def table(name: str) -> str:
    return gzip.decompress((RECORDED / name).read_bytes()).decode()


# -- traces --------------------------------------------------------------------------------------------------------------


def test_a_product() -> None:
    timeline = calls("linear_fp32")
    assert (timeline.calls, timeline.device, timeline.gaps_in_record) == (3, "NVIDIA H200", ())
    (use,) = by_kernel(timeline)
    assert short(use.name) == "cutlass_80_simt_sgemm_256x128_8x4_nn_align1"
    assert (use.launches, use.grid, use.block, use.registers) == (1, (128, 1, 1), (256, 1, 1), 202)
    assert (use.shared_bytes, use.occupancy) == (49152, near(0.12))
    assert use.operators == ("aten::matmul", "aten::mm")
    assert (use.shapes, use.dtypes) == ("[2048, 2048], [2048, 2048]", "float, float")
    assert use.seconds == pytest.approx(343 * US, rel=0.01)


def test_a_device_that_never_waits_is_busy_all_the_time() -> None:
    sums = totals(calls("linear_fp32"))  # the host is faster: each call starts while the one before is still running
    assert sums.device_busy_s == pytest.approx(sums.span_s, rel=0.01)
    assert sums.kernels_s == pytest.approx(343 * US, rel=0.01)
    assert bound.of_call(sums).kind == "unknown"


def test_a_device_that_waits_for_the_host() -> None:
    timeline = calls("scale_slow_host")
    assert totals(timeline).idle_s > 500 * US
    worst = bottleneck(timeline)
    assert worst is not None
    assert (worst.kind, worst.share > 0.9) == ("idle", True)
    assert bound.of_call(totals(timeline)).kind == "launch-bound"


def test_transfers_in_every_direction() -> None:
    sizes = {use.name: use.bytes for use in by_copy(calls("transfers"))}
    assert sizes == {
        "Memcpy HtoD (Pinned -> Device)": 4 << 20,
        "Memcpy DtoH (Device -> Pinned)": 4 << 20,
        "Memcpy HtoD (Pageable -> Device)": 1 << 20,
        "Memcpy DtoD (Device -> Device)": 4 << 20,
    }
    assert totals(calls("transfers")).synchronizations == 1  # the pageable copy waits


def test_work_on_two_streams() -> None:
    assert len({launch.stream for launch in calls("two_streams").launches}) == 2


def test_the_kernels_of_a_graph_share_its_launch() -> None:
    timeline = calls("graph")
    assert totals(timeline).launches == 3
    assert len({launch.correlation for launch in timeline.launches}) == 3  # one a call
    assert len({use.host_s for use in by_kernel(timeline)}) == 1


def test_memory_of_an_unfused_program() -> None:
    use = memory(calls("norm_gelu_unfused"))
    assert use is not None
    assert use.left_bytes == 0
    assert use.peak_bytes > 4 * 4096 * 1024 * 2  # several whole intermediates at a time
    assert memory(calls("scale")) is None


def test_the_profilers_own_work_is_told_apart() -> None:
    whole = between(chrome.read(RECORDED / "scale.json.gz"), "regress.call")
    assert any("Buffer" in overhead.name for overhead in whole.overheads)
    assert totals(whole).profiler_s > 500 * US
    assert totals(calls("scale")).profiler_s == 0
    assert any("the profiler itself took" in warning for warning in explain(whole, whole, 0.05).warnings)


# -- differences ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "head", "kind", "words", "opposite"),
    [
        ("norm_gelu_fused", "norm_gelu_unfused", "fusion", "a fusion was lost", "a fusion was gained"),
        ("norm_gelu_compiled", "norm_gelu_unfused", "fusion", "layer_norm_0 became 17", "does what 17"),
        ("attention_bf16", "attention_fp32", "precision", "computed in float32 instead of bfloat16", "in bfloat16 instead of"),
        ("linear_bf16", "linear_fp32", "precision", "computed in float32 instead of bfloat16", "in bfloat16 instead of"),
        ("linear_tf32", "linear_fp32", "precision", "TF32 was switched off", "TF32 is used"),
        ("scale", "scale_memset", "memset", "a memset of 16.0 MiB was added", "a memset of 16.0 MiB was dropped"),
        ("clip", "clip_item", "synchronization", "waits for the device once a call more", "no longer waits"),
        ("scale", "scale_slow_host", "host", "us a call longer for the host", "us a call less for the host"),
    ],
)  # fmt: skip
def test_the_cause_of_a_difference(base: str, head: str, kind: str, words: str, opposite: str) -> None:
    for explanation, text in ((difference(base, head), words), (difference(head, base), opposite)):
        assert (explanation.causes[0].kind, explanation.causes[0].confidence) == (kind, "high")
        assert text in explanation.causes[0].text


def test_where_the_time_of_a_product_without_tf32_went() -> None:
    explanation = difference("linear_tf32", "linear_fp32")
    (row,) = explanation.kernels
    assert (row.matched, row.kind) == ("operator", "replaced")
    assert row.difference_s == pytest.approx(explanation.kernels_s)
    assert explanation.kernels_s == pytest.approx(295 * US, rel=0.01)
    assert explanation.idle_s < 0  # the longer kernel hides what the host takes
    assert (
        explanation.kernels_s + explanation.copies_s + explanation.idle_s + explanation.unexplained_s
        == pytest.approx(explanation.difference_s)
    )


# -- Nsight Compute ------------------------------------------------------------------------------------------------------


def test_the_pages_of_nsight_compute_agree() -> None:
    raw, details = ncu.read(table("ncu-raw.csv.gz")), ncu.read(table("ncu-details.csv.gz"))
    assert [short(launch.kernel).rpartition("::")[2] for launch in raw] == [
        "vectorized_layer_norm_kernel",
        "vectorized_elementwise_kernel",
        "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT",
        "cutlass_80_simt_sgemm_256x128_8x4_nn_align1",
        "vectorized_elementwise_kernel",
    ]
    for one, other in zip(raw, details, strict=True):
        assert (one.kernel, one.grid, one.block, one.registers) == (
            other.kernel,
            other.grid,
            other.block,
            other.registers,
        )
        for name in (
            "duration_s",
            "memory_throughput",
            "dram_bytes_s",
            "compute_throughput",
            "l2_hit_rate",
            "shared_bytes",
        ):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=0.01)


def test_what_was_measured_of_a_product_on_tensor_cores_and_of_one_without() -> None:
    kernel_metricses = ncu.read(table("ncu-raw.csv.gz"))
    of_kernel = {short(launch.kernel): launch for launch in kernel_metricses}
    fast = of_kernel[short("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT")]
    slow = of_kernel[short(by_kernel(calls("linear_fp32"))[0].name)]
    assert (fast.tensor_use, slow.tensor_use) == (near(0.8252873), 0)
    assert (fast.theoretical_occupancy, slow.theoretical_occupancy) == (0.1875, 0.125)
    assert slow.duration_s == pytest.approx(343 * US, rel=0.01)
    assert (bound.of_metrics(fast).kind, bound.of_metrics(slow).kind) == ("compute-bound", "compute-bound")


def test_the_output_of_a_program_under_nsight_compute() -> None:
    (launch,) = ncu.read(table("ncu-stdout.txt.gz"))
    assert (launch.duration_s, launch.registers, launch.waves) == (near(9.088e-6), 32, 3.88)
    assert launch.l2_hit_rate is None  # the basic set has it not
