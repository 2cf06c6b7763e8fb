"""What a fork may have broken, tried: a forked process that hangs or fails here must not measure."""

from __future__ import annotations

import sys
from typing import Any, Callable, Optional

from .backend import Backend, DeviceBackend
from .wire import Trying

ELEMENTS = 1 << 18
"""Enough for every framework to share the work out to all its threads."""
SIDE = 256


def tried(backend: Optional[Backend], say: Callable[[Any], None]) -> None:
    """Run a parallel region, a backward pass and small device work with the frameworks that are loaded, and announce each.

    A region that ran in the parent with several threads left a pool without threads to its children: libgomp waits for them
    forever. Without a backend nothing is tried on the device. Raises what the frameworks raise.
    """
    numpy: Any = sys.modules.get("numpy")
    torch: Any = sys.modules.get("torch")
    if numpy is not None and hasattr(numpy, "ones"):
        say(Trying("a matrix product of NumPy"))
        square = numpy.ones((SIDE, SIDE))
        square @ square
    if torch is not None and hasattr(torch, "ones"):
        say(Trying("a parallel region of torch"))
        torch.ones(ELEMENTS).exp().sum().item()
        say(Trying("a backward pass of torch"))
        weight = torch.ones(SIDE, SIDE, requires_grad=True)
        (weight @ weight).sum().backward()
    if isinstance(backend, DeviceBackend):
        if torch is not None and hasattr(torch, "cuda") and torch.cuda.is_available():
            say(Trying("device work of torch"))
            torch.ones(1, device="cuda").add_(1).item()
        say(Trying("device work"))
        backend.spin(10e-6)
        backend.synchronize()
