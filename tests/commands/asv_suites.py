"""Suites whose configuration is asv's own: environments that asv makes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.conftest import Project

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
NAME = f"virtualenv-py{PYTHON}"
CODE = """
import os
import regress_scripted as d
def work(): d.kernel("k", {seconds} * int(os.environ.get("FACTOR", "1")))
"""
SUITE = "import proj\ndef cudatime_work(): proj.work()\n"
FILES = {
    "benchmarks/b.py": SUITE,
    "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
    '[project]\nname = "proj"\nversion = "1"\n[tool.setuptools]\npackages = ["proj"]\n',
}
BUILD = "python -m pip wheel --no-deps --no-build-isolation -w {build_cache_dir} {build_dir}"


def configure(p: Project, environments: Path, **asv: Any) -> Project:
    """Set keys of asv's. Whoever names one folder shares the environments in it: they are costly."""
    config = json.loads((p.root / "asv.conf.json").read_text())
    more: Mapping[str, Any] = {"env_dir": str(environments), "environment_type": "virtualenv", **asv}
    p.write({"asv.conf.json": json.dumps({**config, **more})})
    return p


def committed(project: Callable[..., Project], environments: Path, **asv: Any) -> Project:
    """A Project with the suite and the code in one commit; keyword arguments are keys of asv's."""
    p = configure(project(), environments, **asv)
    p.commit({**FILES, "proj/__init__.py": CODE.format(seconds=50e-6)})
    return p
