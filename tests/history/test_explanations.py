"""Where differences come from, kept beside results: what comes back, what the newest is, and what asv makes of it."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path

import pytest
from asv.results import iter_results

from regress.history import Merging, Store, explanations_in, keep_explanation
from regress.history.explanations import MOST_KERNELS, MOST_LETTERS, united_explanations
from regress.model import METRICS, Explained, KeptExplanation, KernelDiff, ProfiledSide, Summary
from tests.report import sample

from .samples import BOX, ENV, OTHER_SHA, SHA, benchmark, fill, taken

FOUND = sample.explain().explained[0]
NAME = f"{SHA[:8]}-{ENV}.explained.jsonl"


def kept(
    explained: Explained = FOUND, base: str = OTHER_SHA, date: float = 1_767_000_000.25, **more: str
) -> KeptExplanation:
    return KeptExplanation(base, SHA, more.get("machine", BOX.name), more.get("environment", ENV), date, explained)


def said(root: Path) -> list[str]:
    """The first causes of all that is kept."""
    return [
        explanation.found.explanation.causes[0].text
        for explanation in explanations_in(root)
        if explanation.found.explanation
    ]


def label(kernel: KernelDiff) -> str:
    use = kernel.head or kernel.base
    return use.label if use else ""


def because(text: str) -> Explained:
    explanation = FOUND.explanation
    assert explanation is not None
    causes = (dataclasses.replace(explanation.causes[0], text=text), *explanation.causes[1:])
    return dataclasses.replace(FOUND, explanation=dataclasses.replace(explanation, causes=causes))


def test_what_a_reader_needs_comes_back(tmp_path: Path) -> None:
    path = keep_explanation(tmp_path, kept())
    assert path == tmp_path / BOX.name / NAME
    (kept_one,) = explanations_in(tmp_path)
    assert dataclasses.replace(kept_one, found=FOUND) == kept()
    before, after = FOUND.explanation, kept_one.found.explanation
    assert before is not None
    assert after is not None
    assert (after.causes, after.kernels_s) == (before.causes, before.kernels_s)
    assert after.difference_s == pytest.approx(before.difference_s)
    changed = [kernel for kernel in before.kernels if kernel.kind != "same"]
    assert len(changed) < len(before.kernels)
    assert list(map(label, after.kernels)) == list(map(label, changed))
    assert kept_one.found.comparison.ratio == pytest.approx(FOUND.comparison.ratio or 0.0, rel=1e-5)
    assert kept_one.found.warnings == FOUND.warnings


def test_traces_timelines_and_what_git_knows_are_not_kept(tmp_path: Path) -> None:
    text = keep_explanation(tmp_path, kept()).read_text()
    assert "json.gz" not in text
    assert "timeline" not in text
    assert "forward.cu" not in text
    assert len(text) < 4000


def test_of_many_kernels_the_largest_differences_are_kept_and_names_are_cut(tmp_path: Path) -> None:
    explanation = FOUND.explanation
    assert explanation is not None
    new = tuple(
        KernelDiff(None, sample.use(f"k{at}<" + "x" * 5000, at * 1e-6), "nothing", "new") for at in range(1, 41)
    )
    many = dataclasses.replace(FOUND, explanation=dataclasses.replace(explanation, kernels=new))
    path = keep_explanation(tmp_path, kept(many))
    (kept_one,) = explanations_in(tmp_path)
    assert kept_one.found.explanation is not None
    names = [kernel.head.name for kernel in kept_one.found.explanation.kernels if kernel.head]
    assert [name.partition("<")[0] for name in names] == [f"k{at}" for at in range(41 - MOST_KERNELS, 41)]
    assert {len(name) for name in names} == {MOST_LETTERS}
    assert path.stat().st_size < 20_000


def test_numbers_that_json_lacks_come_back(tmp_path: Path) -> None:
    wide = dataclasses.replace(FOUND.comparison, head=Summary(1.0, 0.0, float("inf"), 0.95, 2))
    path = keep_explanation(tmp_path, kept(dataclasses.replace(FOUND, comparison=wide)))
    json.loads(path.read_text(), parse_constant=pytest.fail)
    (kept_one,) = explanations_in(tmp_path)
    assert kept_one.found.comparison.head == wide.head


def test_the_newest_of_the_same_sides_case_and_metric_stays(tmp_path: Path) -> None:
    keep_explanation(tmp_path, kept(because("first"), date=1.0))
    keep_explanation(tmp_path, kept(because("second"), date=2.0))
    assert said(tmp_path) == ["second"]
    host = dataclasses.replace(
        because("host"), comparison=dataclasses.replace(FOUND.comparison, metric=METRICS["host_time"])
    )
    for other in (kept(because("of another base"), base="ab" * 20), kept(host), kept(because("there"), machine="b")):
        keep_explanation(tmp_path, other)
    assert sorted(said(tmp_path)) == ["host", "of another base", "second", "there"]


def test_files_are_united_in_any_order() -> None:
    lines = [
        json.dumps({"head": "h", "environment": "e", "base": base, "date": date,
                    "found": {"comparison": {"case": {"name": "n"}, "metric": {"name": "gpu_time"}}}}).encode()
        for base in "ab" for date in (1, 2)
    ]  # fmt: skip
    results = {united_explanations(order) for order in itertools.permutations(line + b"\n" for line in lines)}
    assert results == {lines[1] + b"\n" + lines[3] + b"\n"}


def test_what_a_later_version_has_written_is_kept_and_what_is_no_line_is_not(tmp_path: Path) -> None:
    path = keep_explanation(tmp_path, kept(because("first"), date=1.0))
    later = b'{"format":2,"of":"something"}\n'
    path.write_bytes(b"<<<<<<< HEAD\n" + later + path.read_bytes() + b'{"torn')
    assert said(tmp_path) == ["first"]
    keep_explanation(tmp_path, kept(because("second"), date=2.0))
    assert said(tmp_path) == ["second"]
    assert later in path.read_bytes()
    assert b"<<<" not in path.read_bytes()


def test_a_folder_of_another_machine_is_not_believed(tmp_path: Path) -> None:
    path = keep_explanation(tmp_path, kept())
    (tmp_path / "other").mkdir()
    path.rename(tmp_path / "other" / path.name)
    assert said(tmp_path) == []


def test_merge_takes_them_along(tmp_path: Path) -> None:
    for at, name in enumerate(("a", "b")):
        fill(tmp_path / name, [taken("ops.cudatime_add", order=at, gpu_time=1.0)], [benchmark()])
        keep_explanation(tmp_path / name, kept(because(f"of {name}"), date=float(at)))
    keep_explanation(tmp_path / "a", kept(because("only of a"), base="ab" * 20))
    for _ in range(2):
        merging = Merging(tmp_path / "all", [tmp_path / "b", tmp_path / "a"])
        for entry in merging.results:
            merging.take(*entry)
        merging.finish()
        assert sorted(said(tmp_path / "all")) == ["of b", "only of a"]


def test_asv_and_the_store_read_the_folder_as_before(tmp_path: Path) -> None:
    fill(tmp_path, [taken("ops.cudatime_add", gpu_time=1.0)], [benchmark()])
    before = [row.commit_hash for row in iter_results(str(tmp_path))], Store(tmp_path).load(SHA)
    keep_explanation(tmp_path, kept())
    assert ([row.commit_hash for row in iter_results(str(tmp_path))], Store(tmp_path).load(SHA)) == before
    assert before[0] == [SHA]


def test_side_without_profiles(tmp_path: Path) -> None:
    keep_explanation(tmp_path, kept(dataclasses.replace(FOUND, base=None, head=ProfiledSide((1.0,), ()))))
    (kept_one,) = explanations_in(tmp_path)
    assert (kept_one.found.base, kept_one.found.head) == (None, ProfiledSide((1.0,), ()))
