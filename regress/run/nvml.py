"""NVML, NVIDIA's management library, as the driver's side asks it. The measuring code asks it without any package."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


def module() -> Any:
    """The package that wraps it; imported late, as few runs need it."""
    import pynvml

    return pynvml


@contextlib.contextmanager
def opened(api: Any) -> Iterator[None]:
    """Between its nvmlInit and nvmlShutdown. Raises NVMLError of `api` where it cannot be asked."""
    api.nvmlInit()
    try:
        yield
    finally:
        with contextlib.suppress(api.NVMLError):
            api.nvmlShutdown()
