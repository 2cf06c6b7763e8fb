"""Which GPU a case is measured on, and what counts of a round that was measured beside others: no process, no device."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.measure.wire import Proposal
from regress.model import SYNCHRONIZES, Benchmark, Case, Failure, Measured, Protocol, Round
from regress.run import homes
from regress.run.gpus import Gpu

GPUS = tuple(map(Gpu, ("GPU-a", "GPU-b", "GPU-c")))
PLACES = [(gpu,) for gpu in GPUS]
CASES = [Case(f"ops.Op.cudatime_{number % 50}", (str(number // 50),)) for number in range(600)]


def benchmark(name: str, needs_device: bool = True, **declared: Any) -> Benchmark:
    return Benchmark(name, "time", "seconds", [], [], "1", "gpu_time", needs_device, declared=declared)


def by_name(*benchmarks: Benchmark) -> dict[str, Benchmark]:
    return {benchmark.name: benchmark for benchmark in benchmarks}


# -- which GPU -----------------------------------------------------------------------------------------------------------


def test_every_gpu_gets_about_its_part() -> None:
    gpuses = [homes.home(case, case.name, PLACES) for case in CASES]
    assert all(160 < gpuses.count(place) < 240 for place in PLACES)


@given(st.permutations(PLACES), st.sampled_from(CASES))
def test_the_order_of_the_gpus_does_not_matter(places: list[tuple[Gpu]], case: Case) -> None:
    assert homes.home(case, case.name, places) == homes.home(case, case.name, PLACES)


@given(st.sampled_from(CASES))
def test_with_another_gpu_a_case_stays_or_goes_to_that_one(case: Case) -> None:
    another = (Gpu("GPU-d"),)
    before, after = homes.home(case, case.name, PLACES), homes.home(case, case.name, (*PLACES, another))
    assert after in (before, another)


def test_parameters_in_another_order_are_the_same_case() -> None:
    for one in CASES[:20]:
        pair = (Case(one.name, ("8", "'x'")), Case(one.name, ("'x'", "8")))
        assert len({homes.home(case, one.name, PLACES) for case in pair}) == 1


@pytest.mark.parametrize("was", ["ops.Old.cudatime_add", "ops.Old"])
def test_a_renamed_benchmark_keeps_its_gpu(was: str) -> None:
    new = benchmark("ops.New.cudatime_add", was=was)
    assert homes.roots({"head": by_name(new)})[new.name] == "ops.Old.cudatime_add", "alone, too"
    both = homes.roots({"base": by_name(benchmark("ops.Old.cudatime_add")), "head": by_name(new)})
    assert both == {"ops.Old.cudatime_add": "ops.Old.cudatime_add", "ops.New.cudatime_add": "ops.Old.cudatime_add"}


def test_a_name_that_the_base_has_comes_before_one_that_only_looks_like_it() -> None:
    new = benchmark("ops.sub.New.cudatime_add", was="ops.Old")  # ops.Old.cudatime_add, or ops.Old.New.cudatime_add
    roots = homes.roots({"base": by_name(benchmark("ops.Old.cudatime_add")), "head": by_name(new)})
    assert roots[new.name] == "ops.Old.cudatime_add"


def test_a_chain_of_names_is_followed_and_a_circle_ends() -> None:
    base, head = benchmark("m.b", was="m.a"), benchmark("m.c", was="m.b")
    assert homes.roots({"base": by_name(base), "head": by_name(head)}) == {"m.b": "m.a", "m.c": "m.a"}
    swapped = {"base": by_name(benchmark("m.x", was="m.y")), "head": by_name(benchmark("m.y", was="m.x"))}
    assert set(homes.roots(swapped)) == {"m.x", "m.y"}


def test_an_old_name_that_the_suite_still_has_is_another_benchmark() -> None:
    suite = by_name(benchmark("m.a"), benchmark("m.b", was="m.a"))
    assert homes.roots({"head": suite}) == {"m.a": "m.a", "m.b": "m.b"}


# -- alone or beside others ----------------------------------------------------------------------------------------------


def test_a_case_has_as_many_gpus_as_either_side_needs() -> None:
    assert homes.gpus_for_all([benchmark("a", gpus=0)]) == 1
    assert homes.gpus_for_all([benchmark("a", gpus=3)]) == 3
    assert homes.gpus_for_all([benchmark("a"), benchmark("a", ranks=2)]) == 2


def test_no_gpu_is_in_two_blocks_and_what_shares_a_gpu_or_its_links_is_apart() -> None:
    four = tuple(map(Gpu, "abcd"))
    assert [homes.blocks(four, size) for size in (2, 3, 4)] == [[four[:2], four[2:]], [four[:3]], [four]]
    assert homes.blocks(four[:1], 1) == [four[:1]]
    assert homes.apart(four[:2], four[:1])
    assert homes.apart(four[:1], four[:2])
    assert homes.apart(four[:2], four[2:]), "they share the links"
    assert not homes.apart(four[:2], four[2:3])
    assert not homes.apart(four[:1], four[1:2])
    assert not homes.apart((), ()), "no GPU was named"


def test_the_host_has_a_part_in_all_but_device_time() -> None:
    device = Protocol("gpu_time")
    quiet = Proposal("a", [], "head", device, values={"copies": Measured(0.0, [0.0], "count", exact=True)})
    waits = Proposal("a", [], "head", device, flags=[SYNCHRONIZES])
    copies = Proposal("a", [], "head", device, values={"copies": Measured(1.0, [1.0], "count", exact=True)})
    assert not homes.of_the_host(device, [quiet, quiet])
    assert homes.of_the_host(device, [quiet, waits])
    assert homes.of_the_host(device, [quiet, copies])
    for metric in ("wall_time", "cold_time", "value", "peak_rss"):
        assert homes.of_the_host(Protocol(metric), [quiet])
    assert not homes.of_the_host(None, [quiet]), "nothing is measured of it"


def round_of(*metrics: str) -> Round:
    return Round("a", [], "head", 0, values={name: Measured(1.0, [1.0]) for name in metrics}, facts={"power_w": 9.0})


def test_beside_others_times_of_the_host_are_left_out_and_it_is_said() -> None:
    whole = round_of("gpu_time", "host_time", "wall_time", "peak_memory")
    assert homes.beside_others(whole, 1) is whole
    beside = homes.beside_others(whole, 2)
    assert set(beside.values) == {"gpu_time", "peak_memory"}
    assert beside.facts == {"power_w": 9.0, "beside": 2}


def test_without_a_device_time_nothing_is_left_to_count() -> None:
    beside = homes.beside_others(round_of("wall_time", "peak_memory"), 2)
    assert beside.values == {}
    assert beside.failure == Failure("error", homes.NO_DEVICE_TIME)
    failed = Round("a", [], "head", 0, failure=Failure("oom", "no room"))
    assert homes.beside_others(failed, 2).failure == failed.failure
