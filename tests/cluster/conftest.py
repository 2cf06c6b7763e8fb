"""A Slurm that the tests of this folder share."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.site import Site, why_not


@pytest.fixture(scope="module")
def _site() -> Iterator[Site]:
    if why := why_not():
        pytest.skip(why)
    # A socket's path has to be short; and what Slurm has started may still write there when it is removed.
    with tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        site = Site(Path(folder) / "site", {"a1": ("a100", 2), "h1": ("h100", 1), "h2": ("h100", 1)})
        try:
            yield site
        finally:
            site.stop()


@pytest.fixture
def site(_site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Slurm's commands are about it."""
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, _site.variables[name])
    return _site
