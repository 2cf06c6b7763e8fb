"""Compile caches of the processes under test: folders of their own, so that no side meets what the other one compiled.

A cache that is keyed by a name alone (`TORCH_EXTENSIONS_DIR`) would hand the base's binary to the head, and one that outlives
the run would fix a draw of autotuning for good.
"""

from __future__ import annotations

from pathlib import Path

VARIABLES = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TORCH_EXTENSIONS_DIR": "torch_extensions",
    "TRITON_CACHE_DIR": "triton",
    "CUDA_CACHE_PATH": "cuda",
    "CUPY_CACHE_DIR": "cupy",
    "NUMBA_CACHE_DIR": "numba",
    "JAX_COMPILATION_CACHE_DIR": "jax",
}
"""Environment variable -> folder."""


LOCK = "lock"
"""What torch calls the file that says that an extension is being built."""


def release_locks(root: Path) -> None:
    """Remove what a process left behind that was killed during a build: the next one would wait for it forever."""
    for folder in root.rglob(VARIABLES["TORCH_EXTENSIONS_DIR"]):
        for lock in folder.rglob(LOCK):
            lock.unlink(missing_ok=True)


def compile_caches(root: Path) -> dict[str, str]:
    """The environment that puts every known compile cache below `root`."""
    return {variable: str(root / folder) for variable, folder in VARIABLES.items()}
