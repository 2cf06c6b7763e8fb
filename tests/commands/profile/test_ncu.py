"""`regress profile CASE --ncu`, with a stand-in for ncu that really runs the case, on the scripted device."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from regress.cli import regress
from regress.commands.demo import create
from regress.commands.profile.case import FOLDER
from regress.report.json import schema
from regress.session import Request, Session
from regress.session.devices import Devices
from regress.traces import ncu
from tests.conftest import closed, with_this_checkout
from tests.traces import fake_ncu

CASE = "ops.Linear.cudatime_forward(2048)"
SUITE = """
def cudatime_fails(): raise ValueError("not today")
class Skips:
    def setup(self): raise NotImplementedError
    def cudatime_skips(self): pass
def cudatime_dies():
    import os
    os.kill(os.getpid(), 11)
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("metered") / "d"
    create(folder, scripted=True)
    (folder / "benchmarks" / "own.py").write_text(SUITE)
    return folder


@pytest.fixture(autouse=True)
def _here(demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(demo)
    monkeypatch.setenv("PATH", f"{fake_ncu.install(tmp_path / 'bin')}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were one: what runs is scripted."""
    monkeypatch.setattr(Devices, "require_gpu", lambda self, what: None)


def invoke(*words: str) -> Result:
    return CliRunner().invoke(regress, ["profile", *words, "--ncu"])


def document(*words: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(invoke(*words, "--format", "json").stdout)
    jsonschema.Draft202012Validator(closed(schema())).validate(data)
    return data


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.mark.usefixtures("gpu")
def test_the_kernels_of_a_call_and_what_binds_them() -> None:
    done = invoke(CASE)
    assert done.exit_code == 0, done.output
    shown = lines(done.stdout)
    assert "plan 1 case, 1 call of each under Nsight Compute" in shown
    assert (
        "kernel, of a call launches time share occupancy at most memory compute tensor L1 hits L2 hits registers shared"
        in shown
    )
    assert "softmax 1 30.7 us 75 % 81.5 % 100 % 91.2 % 22 % 0 % 33.3 % 66.6 % 32 3.00 KiB" in shown
    assert "sgemm_128x128 1 10.2 us 25 % 12.4 % 12.5 % 20 % 25 % 0 % 1.5 % 88 % 255 48.0 KiB" in shown
    assert "bottleneck softmax, 75 % of the kernels' time" in shown
    assert "memory-bound 91.2 % of the memory's peak and 22 % of the multiprocessors' peak" in shown
    assert any(line.startswith("try move fewer bytes") for line in shown)
    (table,) = (line.split()[1] for line in shown if line.startswith("table "))
    (report,) = (line.split()[1] for line in shown if line.startswith("report "))
    assert Path(table).read_text() == Path(report).read_text() == fake_ncu.TABLE
    assert shown[-1].startswith("PASS 1 case")


@pytest.mark.usefixtures("gpu")
def test_the_case_runs_as_once_does_it_with_the_clock_left_alone() -> None:
    (case,) = document(CASE, "--calls", "3")["metered"]
    called = Path(case["report"]).with_suffix(".called").read_text()
    for option in ("--clock-control", "--profile-from-start", "--target-processes"):
        assert option in called
    assert '"calls": 3' in called or '"calls":3' in called
    log = Path(case["report"]).with_suffix(".ncu.log").read_text()
    assert f"regress: 3 calls of {CASE}, " in log
    assert (case["calls"], [kernel["launches"] for kernel in case["kernels"]]) == (3, [pytest.approx(1 / 3)] * 2)


@pytest.mark.usefixtures("gpu")
def test_the_document_says_all() -> None:
    (case,) = document(CASE)["metered"]
    first = case["kernels"][0]
    assert (case["name"], case["params"], case["failure"]) == ("ops.Linear.cudatime_forward", ["2048"], None)
    assert first["bound"]["kind"] == "memory-bound"
    assert first["metrics"]["dram_bytes_s"] == pytest.approx(4.2e12)
    assert first["metrics"]["grid"] == [2048, 1, 1]
    assert case["kernels"][1]["bound"]["kind"] == "latency-bound"
    assert "fills 50 % of the device" in case["kernels"][1]["bound"]["advice"]


@pytest.mark.usefixtures("gpu")
def test_more_is_told_with_v_and_in_markdown() -> None:
    shown = lines(invoke(CASE, "-v").stdout)
    (row,) = (line for line in shown if line.startswith("softmax "))
    assert row.endswith("30.7 us 2048 x 1 x 1 128 x 1 x 1 2.50 88 % 4.20 TB/s memory-bound")
    markdown = invoke(CASE, "--format", "markdown").stdout
    assert "bottleneck" in markdown


@pytest.mark.usefixtures("gpu")
def test_the_page_is_written_too(tmp_path: Path) -> None:
    done = invoke(CASE, "--html", str(tmp_path / "kernels.html"))
    assert done.exit_code == 0
    assert f"{tmp_path / 'kernels.html'}\n" in done.stderr
    page = (tmp_path / "kernels.html").read_text()
    assert "sgemm_128x128(float *)" in page
    assert "achieved_occupancy" in page


@pytest.mark.usefixtures("gpu")
def test_several_cases_are_a_row_each_and_what_fails_stands_below() -> None:
    done = invoke("Linear|own")
    assert done.exit_code == 3, done.output
    shown = lines(done.stdout)
    assert f"{CASE} 2 2 41.0 us softmax, 75 % memory-bound" in shown
    assert "! own.cudatime_fails" in shown
    assert "not today" in " ".join(shown)
    assert "/ own.Skips.cudatime_skips" in shown
    assert "its process ended with code -11 under ncu" in shown


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("wrong", "what", "fix"),
    [
        (
            "denied",
            "may not read the GPU's performance counters (ERR_NVGPUCTRPERM)",
            "NVreg_RestrictProfilingToAdminUsers=0",
        ),
        ("no-library", "ncu cannot reach the GPU's counters", "on the host itself"),
        ("nothing", "ncu has profiled no kernel", "the profiled range"),
        ("broken", "what ncu prints of", "profile again"),
    ],
)
def test_why_nothing_was_measured(monkeypatch: pytest.MonkeyPatch, wrong: str, what: str, fix: str) -> None:
    monkeypatch.setenv("FAKE_NCU", wrong)
    done = invoke(CASE)
    assert done.exit_code == 5, done.output
    assert [line.split(":")[0] for line in done.stderr.splitlines()[-3:]] == ["error", "why", "fix"]
    assert what in done.stderr
    assert fix in done.stderr


@pytest.mark.usefixtures("gpu")
def test_without_the_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(ncu.find, "__defaults__", ((),))
    done = invoke(CASE)
    assert done.exit_code == 5
    assert "error: Nsight Compute is not installed here" in done.stderr
    assert "fix:   install it" in done.stderr


@pytest.mark.usefixtures("gpu")
def test_what_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_NCU", "waits")
    monkeypatch.setattr("regress.commands.profile.ncu.LEAST_TIMEOUT_S", 0.5)
    monkeypatch.setattr("regress.commands.profile.ncu.LONGER", 0)
    done = invoke(CASE)
    assert done.exit_code == 5
    assert "timeout: not done under ncu after " in done.stdout
    assert "`timeout` of the benchmark" in done.stdout


def test_a_scripted_device_has_no_kernels_to_measure() -> None:
    done = invoke(CASE)
    assert done.exit_code == 5
    assert done.stderr.splitlines()[-3:] == [
        "error: there is no GPU whose kernels ncu could measure",
        "why:   the device is set to fake",
        "fix:   --device cuda on a machine with a GPU",
    ]


def test_a_machine_without_a_gpu() -> None:
    done = invoke(CASE, "--device", "auto")
    assert done.exit_code in (0, 5)
    if done.exit_code:  # else there is one
        assert "error: there is no GPU" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((CASE, "--against", CASE), "--ncu cannot be combined with --against"),
        (("README.md",), "--ncu measures a case, and README.md is a file"),
    ],
)
def test_what_it_is_not_for(words: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(regress, ["profile", *words, "--ncu"], standalone_mode=False)
    assert said in f"{done.stderr} {done.exception}"


def test_an_interrupt_keeps_what_the_tool_had_written(demo: Path) -> None:
    program = """
        from regress.cli import main
        from regress.session.devices import Devices
        Devices.require_gpu = lambda self, what: None
        main()
    """
    kept = Session(Request(demo)).cache / FOLDER
    for left in kept.glob("*.waits"):
        left.unlink()
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), "profile", CASE, "--ncu"],
        cwd=demo,
        env={**with_this_checkout(), "FAKE_NCU": "waits"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not list(kept.glob("*.waits")):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "softmax" in out
    assert "INTERRUPTED" in out
