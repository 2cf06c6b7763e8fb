"""The page of profiled cases, programs and other profilers' exports: what a reader sees, whatever a name says."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from regress.commands.profile.foreign import show_export
from regress.model import Case, Cause, Explanation, Failure, KernelDiff, KernelUse, Metered, Report
from regress.report.html import write_profile
from tests.report import test_calls
from tests.report.html.conftest import until
from tests.report.html.test_looks import axe
from tests.report.html.test_profile import DROP
from tests.report.html.test_views import texts
from tests.traces.exports import HOSTILE, export
from tests.traces.nsys_export import two_calls
from tests.traces.test_nsys_stats import COPIES, KERNELS, SIZES
from tests.traces.test_recorded import RECORDED

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

PAGES = ("cases", "against", "recording", "sums", "kernels")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("cases")
    profile = replace(test_calls.FOUND, case=Case("b.cudatime_softmax", (HOSTILE,)))
    write_profile(Report("profiled", profiled=(profile, test_calls.FAILED), warnings=(HOSTILE,)), made / "cases.html")
    write_profile(against(), made / "against.html")
    write_profile(show_export([str(two_calls(made / "calls.sqlite"))]), made / "recording.html")
    (made / "sums.csv").write_text("\n".join((KERNELS, COPIES, SIZES)))
    write_profile(show_export([str(made / "sums.csv")]), made / "sums.html")
    (made / "kernels.csv").write_bytes(gzip.decompress((RECORDED / "ncu-raw.csv.gz").read_bytes()))
    shown = show_export([str(made / "kernels.csv")])
    failed = Metered(Case(HOSTILE), failure=Failure("timeout", HOSTILE))
    write_profile(replace(shown, metered=(*shown.metered, failed)), made / "kernels.html")
    export(made / "run.json")
    return made


def against() -> Report:
    """A wrapper that launches one kernel more, held against what it wraps."""
    raw = replace(test_calls.FOUND, case=Case("b.cudatime_raw", (HOSTILE,)))
    totals = replace(test_calls.TOTALS, launches=test_calls.TOTALS.launches + 1)
    ours = replace(raw, case=Case("b.cudatime_ours"), totals=totals, call_s=2 * raw.call_s)
    more = KernelUse(f"void fill<{HOSTILE}>(int)", 1, 95e-6, short=f"fill{HOSTILE}")
    explanation = Explanation(
        base_s=95e-6,
        head_s=190e-6,
        kernels_s=95e-6,
        copies_s=0.0,
        idle_s=0.0,
        causes=(Cause("added", f"fill{HOSTILE} was added", "high"),),
        kernels=(KernelDiff(None, more, "nothing", "new"), KernelDiff(raw.kernels[0], raw.kernels[0], "name", "same")),
        warnings=(HOSTILE,),
    )
    return Report("profiled", profiled=(raw, ours), profiled_difference=explanation)


@pytest.fixture
def opened(visit: Callable[..., Page], folder: Path) -> Callable[..., Page]:
    return lambda name, **options: visit("", path=folder / f"{name}.html", **options)


def rows(page: Page, title: str) -> list[str]:
    return texts(page.locator(f"section:has(> h2:text-is('{title}')) tbody tr"))


def test_the_kernels_that_ncu_measured(opened: Callable[..., Page]) -> None:
    page = opened("kernels")
    title = page.inner_text("h1 >> nth=0")
    assert title.startswith("kernels.csv: cutlass_80_simt_sgemm_256x128_8x4_nn_align1, 86.1 % of the kernels' time")
    assert title.endswith(", compute-bound.")
    first, second, *_ = rows(page, "Kernels")
    assert "grid 128 × 1 × 1, block 256 × 1 × 1, 0.970 waves, DRAM 105 GB/s" in first
    assert "343 us 86.1 % 12.5 % 12.5 % 46.2 % 2.2 % 84.7 % 0 % 0 % 88.8 % 202 48.0 KiB compute" in first
    assert "82.5 %" in second
    assert "46.2 % of the memory's peak and 84.7 % of the multiprocessors' peak" in page.inner_text("main")
    with page.expect_download() as download:
        page.locator("button:text-is('JSON')").click()
    document = json.loads(Path(download.value.path()).read_text())
    assert (document[0]["achieved_occupancy"], document[0]["registers"]) == (pytest.approx(0.125, abs=0.001), 202)
    assert "could not be measured." in page.inner_text("h1 >> nth=1")


def test_one_case_held_against_another(opened: Callable[..., Page]) -> None:
    page = opened("against")
    assert page.locator("h1").first.text_content() == (
        f"b.cudatime_ours against b.cudatime_raw({HOSTILE}): +95.0 us (+100 %)."
    )
    assert f"fill{HOSTILE} was added" in texts(page.locator("p"))
    assert rows(page, "Difference")[0] == "without the profiler 95.0 us 190 us +95.0 us (+100 %)"
    assert "launches 3 4 +1" in rows(page, "Difference")
    first, *_ = rows(page, "Kernels and copies of both")
    assert first.startswith(f"fill{HOSTILE} new")
    assert "+95.0 us" in first


def test_a_recording_of_nsight_systems(opened: Callable[..., Page]) -> None:
    page = opened("recording")
    assert page.inner_text("h1") == "calls.sqlite: the device waits for the host, 95.1 % of a call, launch-bound."
    figures = texts(page.locator(".totals > div"))
    assert "device busy 27.0 us 4.9 % of a call" in figures
    assert "host busy 9.00 us 2.00 us of it while the device was" in figures
    assert rows(page, "Kernels") == ["gelu 1 20.0 us 3.6 % 4.00 us 4 × 2 × 1 128 × 1 × 1 40 512 B"]
    assert rows(page, "Copies")[0] == "Memcpy DtoH (Device -> Pinned) 1 5.00 us 0.91 % 1.00 KiB 0.205 GB/s"
    assert rows(page, "CUDA API")[0] == "cudaStreamSynchronize 1 34.0 us 34.0 us"
    assert "after Memcpy" not in page.inner_text("main")
    assert len(rows(page, "Largest gaps")) == 5


def test_sums_say_nothing_of_what_they_do_not_hold(opened: Callable[..., Page]) -> None:
    page = opened("sums")
    assert page.inner_text("h1") == "sums.csv: gemm, 69.2 % of the device's time."
    assert rows(page, "Copies")[0] == "[CUDA memcpy Host-to-Device] 48 2.41 ms 15.7 % 384 MiB 167 GB/s"
    assert not any("idle" in text for text in texts(page.locator(".totals > div")))
    assert "sums only" in page.inner_text(".banner")


def test_a_case_and_one_that_failed(opened: Callable[..., Page]) -> None:
    page = opened("cases")
    first, second = page.locator("h1").all_inner_texts()
    assert ": softmax" in first
    assert first.endswith(", 78 % of a call, memory-bound.")
    assert second == "b.cudatime_fails could not be profiled."
    assert [len(rows(page, title)) for title in ("Components", "Operators", "Kernels", "Copies")] == [1, 10, 1, 1]
    assert page.evaluate("window.hacked") is None


def test_an_export_of_ours_can_be_dropped_onto_it(opened: Callable[..., Page], folder: Path) -> None:
    page = opened("recording")
    page.evaluate(DROP, ["run.json", (folder / "run.json").read_text()])
    until(page, "document.getElementById('said').textContent === 'run.json is shown'")
    assert page.inner_text("h1").startswith("attention takes ")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_stands_in_the_way_of_a_reader(opened: Callable[..., Page], name: str, theme: str) -> None:
    page = opened(name, color_scheme=theme)
    page.add_script_tag(content=axe())
    faults = page.evaluate("axe.run({resultTypes: ['violations']}).then(told => told.violations)")
    assert [(row["id"], row["nodes"][0]["html"][:200], row["nodes"][0]["failureSummary"]) for row in faults] == []


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wider_than_the_screen(opened: Callable[..., Page], name: str, width: int) -> None:
    page = opened(name, viewport={"width": width, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
