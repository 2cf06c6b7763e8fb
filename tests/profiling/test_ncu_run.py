from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from regress.errors import ProfileError
from regress.profiling import ncu_run


def test_the_program_comes_last_and_the_clock_is_left_alone() -> None:
    words = ncu_run.command(["python", "-c", "pass"], ncu="/opt/ncu")
    assert (words[0], words[-3:]) == ("/opt/ncu", ["python", "-c", "pass"])
    assert words[words.index("--clock-control") + 1] == "none"
    assert words[words.index("--target-processes") + 1] == "all"
    assert words[words.index("--page") + 1] == "raw"
    assert words[words.index("--profile-from-start") + 1] == "off"
    assert "--kernel-name" not in words
    assert "--launch-count" not in words


def test_kernels_are_chosen_by_the_name_of_their_function() -> None:
    kernels = [
        "void at::native::gelu<4>(float*)",
        "void at::native::gelu<8>(float*)",
        "sm90_xmma+gemm",
        "void cutlass::Kernel2<a>(a)",
    ]
    words = ncu_run.command(["a.out"], kernels=kernels, launch_count=3, marked_only=False)
    way, _, pattern = words[words.index("--kernel-name") + 1].partition(":")
    assert way == "regex"
    names = ("gelu", "sm90_xmma+gemm", "gelu2", "mygelu", "Kernel2", "a")
    assert [name for name in names if re.search(pattern, name)] == ["gelu", "sm90_xmma+gemm", "Kernel2"]
    assert words[words.index("--launch-count") + 1] == "3"
    assert "--profile-from-start" not in words


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
    assert ncu_run.find(places) == str(newest)
    on_path = executable(tmp_path / "bin/ncu")
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert ncu_run.find(places) == str(on_path)


def test_without_the_tool_it_is_said_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(ProfileError, match="not installed") as caught:
        ncu_run.find([f"{tmp_path}/*/ncu"])
    assert "install" in caught.value.fix
