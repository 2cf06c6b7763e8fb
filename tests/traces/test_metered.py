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
    found = metered(CASE, [launch(30, l2_hit_rate=0.8), launch(10, l2_hit_rate=0.4), launch(60, "norm")], calls=2)
    norm, gelu = found.kernels
    assert (norm.label, norm.launches, norm.seconds, norm.share) == ("norm", 0.5, near(30 * US), near(0.6))
    assert (gelu.label, gelu.launches, gelu.seconds, gelu.share) == ("gelu", 1, near(20 * US), near(0.4))
    assert (gelu.metrics.duration_s, gelu.metrics.l2_hit_rate) == (near(20 * US), near(0.7))
    assert gelu.metrics.tensor_use is None
    assert found.seconds == near(50 * US)


def test_another_grid_is_another_kernel() -> None:
    found = metered(CASE, [launch(30), launch(10, grid=16), launch(30)])
    assert [(each.label, each.launches) for each in found.kernels] == [
        ("gelu on (8, 1, 1)", 2),
        ("gelu on (16, 1, 1)", 1),
    ]


def test_names_are_as_long_as_tells_them_apart() -> None:
    names = [
        "void at::elementwise<8, MulFunctor>(int)",
        "void at::elementwise<8, AddFunctor>(int)",
        "void at::norm<4>(int)",
    ]
    found = metered(CASE, [launch(30 - at, name) for at, name in enumerate(names)])
    assert [each.label for each in found.kernels] == [
        "at::elementwise<…MulFunctor…>",
        "at::elementwise<…AddFunctor…>",
        "at::norm",
    ]


def test_without_times_launches_count_alike_and_there_is_no_share() -> None:
    (found,) = metered(CASE, [launch(None, l2_hit_rate=0.8), launch(None, l2_hit_rate=0.4)]).kernels
    assert (found.metrics.l2_hit_rate, found.share, found.metrics.duration_s) == (near(0.6), None, None)


@given(st.lists(st.tuples(st.floats(1, 1e4), st.sampled_from("abc"), st.floats(0, 1)), min_size=1, max_size=20))
def test_nothing_is_lost_and_means_lie_within_what_they_are_of(rows: list[tuple[float, str, float]]) -> None:
    found = metered(CASE, [launch(us, name, achieved_occupancy=share) for us, name, share in rows])
    assert found.seconds == near(sum(us for us, _, _ in rows) * US)
    assert sum(each.launches for each in found.kernels) == len(rows)
    for each in found.kernels:
        own = [share for _, name, share in rows if name == each.metrics.kernel]
        assert each.metrics.achieved_occupancy is not None
        assert min(own) - 1e-9 <= each.metrics.achieved_occupancy <= max(own) + 1e-9
    assert [each.seconds for each in found.kernels] == sorted((each.seconds for each in found.kernels), reverse=True)


def test_what_was_recorded_on_a_device() -> None:
    text = gzip.decompress((RECORDED / "ncu-raw.csv.gz").read_bytes()).decode()
    found = metered(CASE, ncu.read(text))
    first = found.kernels[0]
    assert devices([found]) == "NVIDIA H200"
    assert first.label == "cutlass_80_simt_sgemm_256x128_8x4_nn_align1"
    assert first.bound.kind == "compute-bound"
    assert first.share is not None
    assert first.share > 0.7
