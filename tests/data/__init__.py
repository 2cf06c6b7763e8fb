"""Recorded data for the tests.

h200_demo   `regress demo d --cuda --commits 30` (repository.bundle), and what `regress sweep ALL --machine h200` recorded of it
            on an H200 in 3:08: real kernels, two rounds a commit (history.tar.gz, which is d/history)
"""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

H200_DEMO = Path(__file__).parent / "h200_demo"


def h200_demo(folder: Path) -> Path:
    """The demo's repository with its recorded history, in a folder that is made."""
    bundle = H200_DEMO / "repository.bundle"
    subprocess.run(["git", "clone", "-q", "-b", "main", str(bundle), str(folder)], check=True)
    with tarfile.open(H200_DEMO / "history.tar.gz") as archive:
        # Set here, as Python before 3.11.4 and 3.10.12 knows no argument for it.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)
    return folder
