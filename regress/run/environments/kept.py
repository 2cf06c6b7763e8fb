"""Builds that are kept: folders named by a key of what went into them, the least recently used thrown away."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from regress.files import locked
from regress.run.gpus import architectures

BUILD_VARIABLES = (
    *("CC", "CXX", "CPPFLAGS", "CFLAGS", "CXXFLAGS", "LDFLAGS", "CMAKE_ARGS", "CMAKE_BUILD_TYPE"),
    *("CUDACXX", "CUDAHOSTCXX", "CUDAFLAGS", "CUDAARCHS", "CUDA_HOME", "CUDA_PATH", "TORCH_CUDA_ARCH_LIST"),
    *("NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS", "RUSTFLAGS"),
)
"""What a shell may have set that makes another build of the same files."""
LOCK = ".lock"


def key_of(inputs: Mapping[str, str], *more: str) -> str:
    """The key of a build: its input files with the ids of their content, whatever else decides what comes out, the compilers'
    variables, and the architecture of the GPUs that are there: where nobody names one, a build is for these."""
    around = [f"{name}={os.environ[name]}" for name in BUILD_VARIABLES if name in os.environ]
    around.append(architectures())
    parts = [f"{name} {inputs[name]}" for name in sorted(inputs)]
    return hashlib.sha256("\0".join([*parts, "", *more, "", *around]).encode(errors="surrogateescape")).hexdigest()


@dataclass(frozen=True)
class BuildStore:
    """Folders below `root`, by key, of at most `limit_bytes` together."""

    root: Path
    limit_bytes: int

    @contextlib.contextmanager
    def used(self, key: str) -> Iterator[Path | None]:
        """The folder of the key, or None; it stays for as long as the block runs."""
        with self._locked(shared=True):
            folder = self.root / key
            there = folder.is_dir()
            if there:
                os.utime(folder)
            yield folder if there else None

    def keep(self, key: str, fill: Callable[[Path], None]) -> None:
        """Keep what `fill` puts into the folder that it is given. What alone is more than the limit is not kept."""
        if not self.limit_bytes:
            return
        self.root.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=self.root, prefix="."))
        try:
            fill(fresh)
            with self._locked(shared=False):
                shutil.rmtree(self.root / key, ignore_errors=True)
                fresh.rename(self.root / key)
                os.utime(self.root / key)
                self._trim()
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def _trim(self) -> None:
        folders = [path for path in self.root.iterdir() if path.is_dir() and not path.name.startswith(".")]
        total = 0
        for folder in sorted(folders, key=lambda path: path.stat().st_mtime_ns, reverse=True):
            size = sum(file.lstat().st_size for file in folder.rglob("*") if not file.is_dir())
            if total + size > self.limit_bytes:
                shutil.rmtree(folder, ignore_errors=True)
            else:
                total += size

    @contextlib.contextmanager
    def _locked(self, *, shared: bool) -> Iterator[None]:
        self.root.mkdir(parents=True, exist_ok=True)
        with locked(self.root / LOCK, shared=shared):
            yield
