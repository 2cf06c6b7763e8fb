"""The page of an explanation: what a reader sees, in both themes, whatever a name says."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from regress.model import Explained, KernelDiff, Span
from regress.report.html import write_explained
from tests.report import sample
from tests.report.html.test_looks import axe
from tests.report.html.test_views import texts
from tests.traces.exports import HOSTILE

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

Open = Callable[..., "Page"]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample's report, with a kernel whose name is markup."""
    report = sample.explain()
    first, second = report.explained
    assert first.explanation is not None
    assert first.head is not None
    bad = KernelDiff(None, sample.use(HOSTILE, 1e-7), "nothing", "new")
    explanation = dataclasses.replace(first.explanation, kernels=(*first.explanation.kernels, bad))
    head = dataclasses.replace(first.head, timeline=(*first.head.timeline, Span("copies", HOSTILE, 1e-6, 2e-6)))
    first = dataclasses.replace(first, explanation=explanation, head=head)
    path = tmp_path_factory.mktemp("explained") / "why.html"
    write_explained(dataclasses.replace(report, explained=(first, second)), path)
    return path


@pytest.fixture
def opened(visit: Open, page_file: Path) -> Open:
    return lambda **options: visit("", path=page_file, **options)


def test_the_cause_comes_first_and_the_parts_add_up(opened: Open) -> None:
    page = opened()
    first, second = page.locator("h1").all_inner_texts()
    assert "is 9.4 % slower: a fusion was lost: softmax::wide became 3 launches a call (high confidence)" in first
    assert second.endswith("is 2.90 times as slow: it could not be profiled")
    rows = texts(page.locator(".parts tbody tr"))
    assert [row.split(" ")[0] for row in rows] == ["kernels", "copies", "the", "measured", "a"]
    amounts = [
        float(page.locator(".parts tbody tr").nth(at).locator("td").first.inner_text().split()[0]) for at in range(4)
    ]
    assert sum(amounts[:3]) == pytest.approx(amounts[3])


def test_both_timelines_stand_in_one_scale(opened: Open) -> None:
    page = opened()
    lanes = page.locator(".lanes span").all_inner_texts()
    assert [lane.strip() for lane in lanes] == ["base host", "base kernels", "head copies", "head host", "head kernels"]
    page.locator(".lanechart").focus()
    page.keyboard.press("ArrowRight")
    assert page.inner_text(".said").startswith("aten::softmax: ")


def test_kernels_say_what_became_of_them(opened: Open) -> None:
    page = opened()
    rows = texts(page.locator("section:has(> h2:text-is('Kernels and copies')) tbody tr"))
    assert rows[0].startswith("softmax::rest new - 2.00 us +2.00 us 0 → 2")
    assert "was softmax::wide" in rows[1]
    assert "registers 40 -> 96" in rows[1]
    assert any(HOSTILE.split()[0] in row for row in rows)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_stands_in_the_way_of_a_reader(opened: Open, theme: str) -> None:
    page = opened(color_scheme=theme)
    page.add_script_tag(content=axe())
    faults = page.evaluate("axe.run({resultTypes: ['violations']})")
    assert [
        (violation["id"], [node["html"] for node in violation["nodes"]]) for violation in faults["violations"]
    ] == []


def test_without_a_profile_there_is_only_the_reason(visit: Open, tmp_path: Path) -> None:
    report = sample.explain()
    only: Explained = report.explained[1]
    write_explained(dataclasses.replace(report, explained=(only,)), tmp_path / "one.html")
    page = visit("", path=tmp_path / "one.html")
    assert "no trace was written: out of memory" in page.inner_text("main")
    assert page.locator("table").count() == 0
