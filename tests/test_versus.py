"""The comparisons with other tools and with one GPU, which print and assert nothing: that they can be run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import with_this_checkout

VERSUS = Path(__file__).parents[1] / "benchmarks" / "versus"


@pytest.mark.slow
def test_two_scripted_gpus_are_compared_with_one() -> None:
    """Its first run is a quick one, which is recorded nowhere."""
    words = [sys.executable, str(VERSUS / "lanes.py"), "--scripted", "3,1", "--rounds", "2"]
    done = subprocess.run(words, env=with_this_checkout(), capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert "4 cases, 1 of them measured alone, 2 rounds" in done.stdout
