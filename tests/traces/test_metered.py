from __future__ import annotations

import gzip

from hypothesis import given
from hypothesis import strategies as st

from regress.model import Case, KernelMetrics
from regress.traces import ncu
from regress.traces.metered import devices, metered
from tests.traces.samples import US, near
from tests.traces.test_recorded import RECORDED

CASE = Case("b.cudatime_gelu")


def launch(us: float | None, name: str = "void gelu<4>(float*)", grid: int = 8, **more: float) -> KernelMetrics:
    return KernelMetrics(name, (grid, 1, 1), (128, 1, 1), None if us is None else us * US, **more)  # type: ignore[arg-type]


def test_launches_of_a_kernel_are_one_row_whose_means_are_weighted_by_time() -> None:
    result = metered(CASE, [launch(30, l2_hit_rate=0.8), launch(10, l2_hit_rate=0.4), launch(60, "norm")], calls=2)
    norm, gelu = result.kernels
    assert (norm.label, norm.launches, norm.seconds, norm.share) == ("norm", 0.5, near(30 * US), near(0.6))
    assert (gelu.label, gelu.launches, gelu.seconds, gelu.share) == ("gelu", 1, near(20 * US), near(0.4))
    assert (gelu.metrics.duration_s, gelu.metrics.l2_hit_rate) == (near(20 * US), near(0.7))
    assert gelu.metrics.tensor_use is None
    assert result.seconds == near(50 * US)


def test_another_grid_is_another_kernel() -> None:
    result = metered(CASE, [launch(30), launch(10, grid=16), launch(30)])
    assert [(kernel.label, kernel.launches) for kernel in result.kernels] == [
        ("gelu on (8, 1, 1)", 2),
        ("gelu on (16, 1, 1)", 1),
    ]


def test_names_are_as_long_as_tells_them_apart() -> None:
    names = [
        "void at::elementwise<8, MulFunctor>(int)",
        "void at::elementwise<8, AddFunctor>(int)",
        "void at::norm<4>(int)",
    ]
    result = metered(CASE, [launch(30 - at, name) for at, name in enumerate(names)])
    assert [kernel.label for kernel in result.kernels] == [
        "at::elementwise<…MulFunctor…>",
        "at::elementwise<…AddFunctor…>",
        "at::norm",
    ]


def test_without_times_launches_count_alike_and_there_is_no_share() -> None:
    (kernel,) = metered(CASE, [launch(None, l2_hit_rate=0.8), launch(None, l2_hit_rate=0.4)]).kernels
    assert (kernel.metrics.l2_hit_rate, kernel.share, kernel.metrics.duration_s) == (near(0.6), None, None)


@given(st.lists(st.tuples(st.floats(1, 1e4), st.sampled_from("abc"), st.floats(0, 1)), min_size=1, max_size=20))
def test_nothing_is_lost_and_means_lie_within_what_they_are_of(rows: list[tuple[float, str, float]]) -> None:
    result = metered(CASE, [launch(us, name, achieved_occupancy=share) for us, name, share in rows])
    assert result.seconds == near(sum(us for us, _, _ in rows) * US)
    assert sum(kernel.launches for kernel in result.kernels) == len(rows)
    for kernel in result.kernels:
        own = [share for _, name, share in rows if name == kernel.metrics.kernel]
        assert kernel.metrics.achieved_occupancy is not None
        assert min(own) - 1e-9 <= kernel.metrics.achieved_occupancy <= max(own) + 1e-9
    assert [kernel.seconds for kernel in result.kernels] == sorted(
        (kernel.seconds for kernel in result.kernels), reverse=True
    )


def test_what_was_recorded_on_a_device() -> None:
    text = gzip.decompress((RECORDED / "ncu-raw.csv.gz").read_bytes()).decode()
    result = metered(CASE, ncu.read(text))
    first = result.kernels[0]
    assert devices([result]) == "NVIDIA H200"
    assert first.label == "cutlass_80_simt_sgemm_256x128_8x4_nn_align1"
    assert first.bound.kind == "compute-bound"
    assert first.share is not None
    assert first.share > 0.7
