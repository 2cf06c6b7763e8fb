"""Why a command failed, by what it printed."""

from __future__ import annotations

import pytest

from regress.run.shell import why

PIP = """
  error: subprocess-exited-with-error
  x Building wheel for proj (pyproject.toml) did not run successfully.
      csrc/ops.cu:12:10: fatal error: cub/cub.cuh: No such file or directory
      error: command '/usr/local/cuda/bin/nvcc' failed with exit code 1
  ERROR: Failed building wheel for proj
ERROR: Failed to build one or more wheels
"""
MESON = "Found ninja-1.11.1\n\nmeson-python: error: The package requires Python version >=3.12, running on 3.11.2\n"
BUILD = "* Building wheel...\nERROR Backend subprocess exited when trying to invoke build_wheel\n"


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        ((PIP,), "exit code 1: csrc/ops.cu:12:10: fatal error: cub/cub.cuh: No such file or directory"),
        (
            (BUILD, MESON),
            "exit code 1: meson-python: error: The package requires Python version >=3.12, running on 3.11.2",
        ),
        (("Traceback:\n  File 1\nOSError: no nvcc\n\nhint: see the manual\n",), "exit code 1: OSError: no nvcc"),
        (("ERROR: Failed to build it\n", "nvcc is not there\n"), "exit code 1: ERROR: Failed to build it"),
        (("", "one\nnvcc is not there\n"), "exit code 1: nvcc is not there"),
        (("\n", ""), "exit code 1, and nothing was printed"),
    ],
)
def test_the_line_that_says_why_is_found(printed: tuple[str, ...], reason: str) -> None:
    assert why("exit code 1", *printed) == reason
