"""Causes by the difference that a change of code leaves in a profile; what real traces show stands in test_recorded."""

from __future__ import annotations

from regress.model import Cause
from regress.traces.kernels import explain
from regress.traces.timeline import Launch, Sync, Timeline
from tests.traces.samples import US, copy, in_turn, launch, timeline

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
MUL = "void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor<float>>(int)"
EXP = "void at::native::vectorized_elementwise_kernel<4, at::native::exp_kernel_cuda>(int)"
MEAN = "void at::native::reduce_kernel<512, 1, at::native::MeanOps<float>>(int)"
NORM = "void (anonymous namespace)::layer_norm_kernel<float, float>(int)"


def causes(base: Timeline, head: Timeline) -> list[Cause]:
    return list(explain(base, head, 0.05).causes)


def only(every: list[Cause], kind: str, confidence: str) -> str:
    assert [(cause.kind, cause.confidence) for cause in every] == [(kind, confidence)]
    return every[0].text


def test_an_added_memset() -> None:
    base = timeline([launch("k", 0, 10)], span_us=12)
    head = timeline(
        [launch("k", 10, 10)], [copy("Memset (Device)", 0, 8, 1 << 24, "memset", "aten::zeros")], span_us=20
    )
    assert (
        only(causes(base, head), "memset", "high")
        == "a memset of 16.0 MiB was added in aten::zeros: 8.00 us a call more"
    )
    assert "was dropped" in only(causes(head, base), "memset", "high")


def test_an_added_kernel_that_fills() -> None:
    fill = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)"
    base, head = in_turn(launch("k", 0, 10)), in_turn(launch(fill, 0, 8, "aten::zero_"), launch("k", 0, 10))
    assert only(causes(base, head), "memset", "high").startswith("a kernel that fills memory was added in aten::zero_")


def test_a_lost_fusion() -> None:
    base = in_turn(launch(NORM, 0, 10, "aten::layer_norm"))
    head = in_turn(*(launch(name, 0, 9, f"aten::{index}") for index, name in enumerate((MEAN, ADD, MUL, EXP))))
    text = only(causes(base, head), "fusion", "high")
    assert text == "a fusion was lost: layer_norm_kernel became 4 launches a call"
    assert "a fusion was gained" in only(causes(head, base), "fusion", "high")


def waits(*kernels: Launch, small: bool, span_us: float) -> Timeline:
    item = [copy("Memcpy DtoH (Device -> Pinned)", 30, 2, 4, "device to host", "aten::item")] if small else []
    return timeline(kernels, item, [Sync("cudaStreamSynchronize", 30 * US, 5 * US)], span_us=span_us)


def test_a_hidden_synchronize() -> None:
    base = timeline([launch("k", 0, 10)], span_us=12)
    text = only(causes(base, waits(launch("k", 0, 10), small=True, span_us=40)), "synchronization", "high")
    assert text == "the host waits for the device once a call more, for a copy of 4 B to the host in aten::item"
    told = causes(base, waits(launch("k", 0, 10), small=False, span_us=40))
    assert ("synchronization", "medium") in {(cause.kind, cause.confidence) for cause in told}


def test_tf32_switched_off() -> None:
    fast = "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32_warpgroupsize1x1x1"
    slow = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x128x8_stage3_simt_sgemm"
    base = in_turn(launch(fast, 0, 10, "aten::mm", "[64, 64]"))
    head = in_turn(launch(slow, 0, 80, "aten::mm", "[64, 64]"))
    assert causes(base, head)[0].text.startswith("TF32 was switched off for this product in aten::mm: ")
    assert causes(head, base)[0].text.startswith("TF32 is used for this product now")


def test_a_product_that_left_the_tensor_cores() -> None:
    base = in_turn(launch("ampere_bf16_s16816gemm_bf16_128x128_ldg8", 0, 10, "aten::mm"))
    head = in_turn(launch("ampere_sgemm_128x64_nn", 0, 90, "aten::mm"))
    first = causes(base, head)[0]
    assert (first.kind, first.confidence) == ("precision", "high")
    assert "left the tensor cores" in first.text


def test_another_kernel_for_the_same_operator() -> None:
    base = in_turn(launch("quick_sort", 0, 10, "aten::sort", "[9]"))
    head = in_turn(launch("slow_sort", 0, 20, "aten::sort", "[9]"))
    assert only(causes(base, head), "replaced kernel", "medium") == "slow_sort runs instead of quick_sort in aten::sort"
    assert only(causes(head, base), "replaced kernel", "medium") == "quick_sort runs instead of slow_sort in aten::sort"


def test_a_slower_kernel_with_another_launch() -> None:
    base, head = in_turn(launch("k", 0, 10, registers=40)), in_turn(launch("k", 0, 20, registers=128))
    text = only(causes(base, head), "slower kernel", "medium")
    assert text == "k takes 20.0 us instead of 10.0 us (+100 %); registers 40 → 128"


def test_a_kernel_more() -> None:
    base, head = in_turn(launch("k", 0, 10)), in_turn(launch("k", 0, 10), launch("mask", 0, 5, "aten::mul"))
    assert only(causes(base, head), "added kernel", "high") == "mask was added in aten::mul: 5.00 us a call more"
    assert only(causes(head, base), "added kernel", "high") == "mask was dropped in aten::mul: 5.00 us a call less"


def test_more_launches_of_one_kernel() -> None:
    base, head = in_turn(launch("k", 0, 10)), in_turn(*[launch("k", 0, 10)] * 3)
    assert only(causes(base, head), "more launches", "high") == "k is launched 3 times a call instead of once"


def test_all_kernels_slower_alike() -> None:
    base = in_turn(launch("a", 0, 10), launch("b", 0, 20), launch("c", 0, 30))
    head = in_turn(launch("a", 0, 12), launch("b", 0, 24), launch("c", 0, 36))
    told = causes(base, head)
    assert [cause.kind for cause in told] == ["clock"]
    assert "all 3 kernels changed by the same +20.0 %" in told[0].text
    more = in_turn(*(launch(name, 0, us, "aten::add", "[12]") for name, us in (("a", 12), ("b", 24), ("c", 36))))
    assert [cause.kind for cause in causes(base, more)] == ["slower kernel"]  # more to do, not another clock


def test_overhead_of_the_host_alone() -> None:
    base, head = timeline([launch("k", 0, 10)], span_us=12), timeline([launch("k", 20, 10)], span_us=40)
    text = only(causes(base, head), "host", "high")
    assert text == "the device waits 28.0 us a call longer for the host, and does the same work as before"


def test_added_copies() -> None:
    base = timeline([launch("k", 0, 10)], span_us=12)
    head = timeline([launch("k", 0, 10)], [copy("Memcpy HtoD (Pageable -> Device)", 10, 50, 1 << 20, "host to device")])
    assert (
        only(causes(base, head), "copies", "high")
        == "copies were added: Memcpy HtoD (Pageable -> Device), 1.00 MiB a call"
    )


def test_a_change_within_the_threshold_has_no_cause() -> None:
    base, head = timeline([launch("k", 0, 10)], span_us=100), timeline([launch("k", 0, 10)], span_us=104)
    assert causes(base, head) == []
