from __future__ import annotations

import os
from pathlib import Path

import pytest

from regress.errors import ProfileError
from regress.traces import ncu


def test_the_program_comes_last_and_the_clock_is_left_alone() -> None:
    words = ncu.record(["python", "-c", "pass"], Path("r.ncu-rep"), ncu="/opt/ncu", launch_count=3)
    assert (words[0], words[-3:]) == ("/opt/ncu", ["python", "-c", "pass"])
    for option, value in (
        ("--export", "r.ncu-rep"),
        ("--clock-control", "none"),
        ("--target-processes", "all"),
        ("--profile-from-start", "off"),
        ("--launch-count", "3"),
    ):
        assert words[words.index(option) + 1] == value


def test_a_report_is_shown_in_base_units() -> None:
    words = ncu.show(Path("r.ncu-rep"), ncu="ncu")
    assert " ".join(words).startswith("ncu --import r.ncu-rep --csv --page raw --print-units base")


@pytest.mark.parametrize(
    ("line", "kernel"),
    [
        ('==PROF== Profiling "void gelu<float>(int)" - 0: 0%....50%....100% - 9 passes', "void gelu<float>(int)"),
        ('==PROF== Profiling "gelu" - 3 (4/5): 0%....50%....100% - 9 passes', "gelu"),
        ('the program: ==PROF== Profiling "gelu"', None),
        ("==PROF== Connected to process 1", None),
    ],
)
def test_which_kernel_is_profiled(line: str, kernel: str | None) -> None:
    assert ncu.kernel_of(line) == kernel


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_tool_on_the_path_comes_first_and_else_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = [f"{tmp_path}/nsight-compute/*/ncu"]
    executable(tmp_path / "nsight-compute/2025.3.1/ncu")
    newest = executable(tmp_path / "nsight-compute/2025.10.0/ncu")
    monkeypatch.setenv("PATH", os.devnull)
    assert ncu.find(places) == str(newest)
    on_path = executable(tmp_path / "bin/ncu")
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert ncu.find(places) == str(on_path)


def test_without_the_tool_it_is_said_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(ProfileError, match="not installed") as caught:
        ncu.find([f"{tmp_path}/*/ncu"])
    assert "install" in caught.value.fix
