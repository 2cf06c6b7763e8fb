from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from regress.compare import compare
from regress.model import Case, Comparison, Protocol, Verdict

from .rounds import SETTINGS, benchmark, broken, known, one, rounds, scaled

# -- one side only -----------------------------------------------------------------------------------------------------


def test_a_renamed_benchmark_is_gone_and_new() -> None:
    old, new = rounds("ops.cudatime_old", gpu_time=scaled(1e-3)), rounds("ops.cudatime_new", gpu_time=scaled(1e-3))
    comparisons = compare(old, new, None, SETTINGS)
    assert [(comparison.case.name, comparison.verdict) for comparison in comparisons] == [
        ("ops.cudatime_new", Verdict.NEW),
        ("ops.cudatime_old", Verdict.GONE),
    ]
    assert all(comparison.ratio is None for comparison in comparisons)
    assert comparisons[0].head is not None
    assert comparisons[1].base is not None


def test_a_new_benchmark_that_fails_has_failed() -> None:
    comparison = one([], broken())
    assert (comparison.verdict, comparison.reasons[0]) == (Verdict.FAILED, "new")
    assert comparison.head_failure is not None
    assert one(broken(), []).verdict is Verdict.GONE
    assert one([], broken("skipped")).verdict is Verdict.SKIPPED


def test_a_case_that_the_other_side_defines_was_only_not_measured_there() -> None:
    defined = known(benchmark(params=[["64", "256"]], param_names=["n"]))
    side = rounds(params=["64"], gpu_time=scaled(1e-3))
    (not_on_head,) = compare(side, [], defined, SETTINGS, defined)
    assert (not_on_head.verdict, not_on_head.reasons) == (Verdict.UNDECIDED, ("not measured on the head",))
    (not_on_base,) = compare([], side, defined, SETTINGS, defined)
    assert not_on_base.reasons == ("not measured on the base",)
    (other,) = compare(rounds(params=["1"], gpu_time=scaled(1e-3)), [], defined, SETTINGS, defined)
    assert other.verdict is Verdict.GONE


def test_without_definitions_of_base_the_rounds_say_what_exists() -> None:
    side = rounds(gpu_time=scaled(1e-3))
    assert one(side, [], benchmark()).verdict is Verdict.GONE
    assert one([], side, benchmark()).verdict is Verdict.NEW


# -- renamed -----------------------------------------------------------------------------------------------------------


def renamed(
    was: object, name: str = "ops.Fast.cudatime_add", old: str = "ops.cudatime_old", **changes: Any
) -> Comparison:
    """The one comparison of a benchmark that was measured on base under its old name."""
    before, after = (
        benchmark(old, version="1"),
        benchmark(name, **{"version": "2", "declared": {"was": was}, **changes}),
    )
    base, head = rounds(old, gpu_time=scaled(1e-3)), rounds(name, gpu_time=scaled(2e-3))
    (comparison,) = compare(base, head, known(after), SETTINGS, known(before))
    return comparison


@pytest.mark.parametrize(
    ("was", "old"),
    [
        ("ops.cudatime_old", "ops.cudatime_old"),
        (["ops.cudatime_older", "ops.cudatime_old"], "ops.cudatime_old"),
        (("ops.cudatime_old",), "ops.cudatime_old"),
        ("ops.Slow", "ops.Slow.cudatime_add"),  # declared on the class
        ("operators", "operators.Fast.cudatime_add"),  # declared in the module
    ],
)
def test_a_benchmark_that_says_how_it_was_called_is_compared(was: object, old: str) -> None:
    comparison = renamed(was, old=old)
    assert (comparison.case.name, comparison.verdict) == ("ops.Fast.cudatime_add", Verdict.REGRESSED)
    assert comparison.ratio == pytest.approx(2)
    assert comparison.reasons == (f"renamed: {old} on the base",)


def test_a_renamed_benchmark_is_found_by_the_rounds_alone() -> None:
    base, head = rounds("ops.cudatime_old", gpu_time=scaled(1e-3)), rounds("ops.cudatime_new", gpu_time=scaled(1e-3))
    comparison = one(base, head, benchmark("ops.cudatime_new", declared={"was": "ops.cudatime_old"}))
    assert (comparison.case.name, comparison.verdict) == ("ops.cudatime_new", Verdict.UNCHANGED)


def test_a_renamed_benchmark_is_held_to_its_parameters_and_sampling() -> None:
    assert (
        renamed("ops.cudatime_old", declared={"was": "ops.cudatime_old", "repeat": 3}).verdict is Verdict.INCOMPARABLE
    )
    assert renamed("ops.cudatime_old", param_names=["n"], params=[["1"]]).verdict is Verdict.INCOMPARABLE
    old = benchmark("ops.cudatime_old", param_names=["n", "dtype"], params=[["64"], ["'fp16'"]])
    new = benchmark(
        "ops.cudatime_new",
        param_names=["dtype", "n"],
        params=[["'fp16'"], ["64", "128"]],
        declared={"was": "ops.cudatime_old"},
    )
    base = rounds("ops.cudatime_old", params=["64", "'fp16'"], gpu_time=scaled(1e-3))
    head = [
        round
        for n in ("64", "128")
        for round in rounds("ops.cudatime_new", params=["'fp16'", n], gpu_time=scaled(1e-3))
    ]
    comparisons = compare(base, head, known(new), SETTINGS, known(old))
    assert [(str(comparison.case), comparison.verdict) for comparison in comparisons] == [
        ("ops.cudatime_new('fp16', 64)", Verdict.UNCHANGED),
        ("ops.cudatime_new('fp16', 128)", Verdict.NEW),
    ]


@pytest.mark.parametrize(
    ("was", "verdicts", "beside"),
    [
        ("nothing.of_that_name", {"old": "gone", "new": "new"}, ""),
        (7, {"old": "gone", "new": "new"}, ""),
        # base has it under its name of today too
        ("old", {"old": "gone", "new": "unchanged"}, "new on base"),
        # the old name is still in use on head
        ("old", {"old": "unchanged", "new": "new"}, "old on head"),
        # two say that it was them
        ("old", {"old": "gone", "new": "new", "other": "new"}, "other on head"),
    ],
)
def test_a_rename_that_is_none_is_gone_and_new(was: object, verdicts: dict[str, str], beside: str) -> None:
    side = {name: rounds(name, gpu_time=scaled(1e-3)) for name in ("old", "new", "other")}
    claim = {"declared": {"was": was}}
    before, after = {"old": side["old"]}, {"new": side["new"]}
    definitions = [benchmark("new", **claim)]
    if beside == "new on base":
        before["new"] = side["new"]
    if beside == "old on head":
        after["old"] = side["old"]
        definitions.append(benchmark("old"))
    if beside == "other on head":
        after["other"] = side["other"]
        definitions.append(benchmark("other", **claim))
    base, head = ([round for own in part.values() for round in own] for part in (before, after))
    comparisons = compare(base, head, known(*definitions), SETTINGS, known(*(benchmark(name) for name in before)))
    assert {comparison.case.name: str(comparison.verdict) for comparison in comparisons} == verdicts


# -- not measured alike ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": "2"}, "version differs: the code of the benchmark differs between the sides"),
        ({"declared": {"repeat": 3}}, "different declared repeat: none on the base, 3 on the head"),
        ({"declared": {"number": 10}}, "different declared number: none on the base, 10 on the head"),
        ({"declared": {"processes": 3}}, "different declared processes: none on the base, 3 on the head"),
        ({"declared": {"min_run_count": 9}}, "different declared min_run_count: none on the base, 9 on the head"),
        ({"param_names": ["n"], "params": [["1"]]}, "different parameters: none on the base, n on the head"),
    ],
)
def test_a_benchmark_that_is_not_the_same_is_incomparable(changes: dict[str, Any], reason: str) -> None:
    base, head = rounds(gpu_time=scaled(1e-3)), rounds(gpu_time=scaled(2e-3))
    (comparison,) = compare(base, head, known(benchmark(**changes)), SETTINGS, known(benchmark()))
    assert comparison.verdict is Verdict.INCOMPARABLE
    assert comparison.reasons == (reason,)
    assert (comparison.ratio, comparison.p) == (None, None)
    assert comparison.base is not None
    assert comparison.head is not None


@pytest.mark.parametrize(
    ("head", "files"),
    [
        ({"ops.py": "a", "helper.py": "b"}, ""),
        ({"ops.py": "a", "helper.py": "c"}, "helper.py"),
        ({"ops.py": "b", "data.json": "d"}, "data.json, helper.py, ops.py"),
    ],
)
def test_the_code_that_is_used_tells_and_not_its_text(head: dict[str, str], files: str) -> None:
    side = rounds(gpu_time=scaled(1e-3))
    before = replace(benchmark(version="1"), uses={"ops.py": "a", "helper.py": "b"})
    after = replace(benchmark(version="2"), uses=head)
    (comparison,) = compare(side, side, known(after), SETTINGS, known(before))
    words = f"the code of the benchmark differs between the sides: {files}"
    assert comparison.reasons == ((words,) if files else ())
    assert comparison.verdict is (Verdict.INCOMPARABLE if files else Verdict.UNCHANGED)


def test_what_is_declared_about_anything_but_sampling_may_differ() -> None:
    side = rounds(gpu_time=scaled(1e-3))
    (comparison,) = compare(side, side, known(benchmark(declared={"tags": ["core"]})), SETTINGS, known(benchmark()))
    assert comparison.verdict is Verdict.UNCHANGED


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cache", "cold"),
        ("setup_each", True),
        ("process", "fork"),
        ("harness", 99),
        ("metric", "wall_time"),
    ],
)
def test_rounds_of_another_protocol_are_incomparable(field: str, value: Any) -> None:
    base = rounds(gpu_time=scaled(1e-3), wall_time=scaled(1e-3))
    head = [
        replace(round, protocol=replace(round.protocol or Protocol("gpu_time"), **{field: value})) for round in base
    ]
    comparison = one(base, head)
    assert comparison.verdict is Verdict.INCOMPARABLE
    assert comparison.reasons[0].startswith(f"different protocol ({field}): ")
    mixed = one([*base[:3], *head[3:]], base)
    assert mixed.verdict is Verdict.INCOMPARABLE


def test_how_much_was_sampled_may_differ() -> None:
    base, head = rounds(gpu_time=scaled(1e-3)), rounds(gpu_time=scaled(1e-3), protocol={"samples_max": 5})
    assert one(base, head).verdict is Verdict.UNCHANGED


def test_parameters_are_matched_by_value() -> None:
    """Reordered and extended between the sides: what both have is compared, the rest is new."""
    base = [*rounds(params=["64"], gpu_time=scaled(1e-3)), *rounds(params=["256"], gpu_time=scaled(4e-3))]
    head = [
        *rounds(params=["1024"], gpu_time=scaled(16e-3)),
        *rounds(params=["256"], gpu_time=scaled(4e-3)),
        *rounds(params=["64"], gpu_time=scaled(1e-3)),
    ]
    definitions = [
        known(benchmark(params=[values], param_names=["n"])) for values in (["1024", "256", "64"], ["64", "256"])
    ]
    comparisons = compare(base, head, definitions[0], SETTINGS, definitions[1])
    assert [(comparison.case.params, comparison.verdict) for comparison in comparisons] == [
        (("1024",), Verdict.NEW),
        (("256",), Verdict.UNCHANGED),
        (("64",), Verdict.UNCHANGED),
    ]


def test_parameters_in_another_order_are_matched_by_name() -> None:
    base = rounds(params=["64", "'fp16'"], gpu_time=scaled(1e-3))
    head = rounds(params=["'fp16'", "64"], gpu_time=scaled(2e-3))
    (comparison,) = compare(
        base,
        head,
        known(benchmark(params=[["'fp16'"], ["64"]], param_names=["dtype", "n"])),
        SETTINGS,
        known(benchmark(params=[["64"], ["'fp16'"]], param_names=["n", "dtype"])),
    )
    assert comparison.case == Case("ops.cudatime_add", ("'fp16'", "64"))
    assert comparison.verdict is Verdict.REGRESSED
