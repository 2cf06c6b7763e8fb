"""Lanes: contexts that make the frameworks in use work on another stream each."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, ContextManager, Dict, List, Sequence

Lane = ContextManager[object]

STRIDE = 4
"""Of this many streams that are made, one serves as a lane. Neighbours share a level: on an H100, the mean over 8 neighbours
still varied by 1.5 to 2.4 % from process to process for kernels under 5 us, over every fourth of 32 by 1.0 to 1.4 %."""


def make_lanes(count: int, frameworks: Sequence[str]) -> List[Lane]:
    """As many lanes for the frameworks in use, the current stream the first of them; only that one where a framework cannot be
    given another stream."""
    here: Lane = contextlib.nullcontext()
    makers = [_MAKERS.get(name) for name in frameworks]
    if not makers or None in makers:
        return [here]
    streams = [_Lane(makers) for _ in range(STRIDE * (count - 1))]
    return [here, *streams[STRIDE - 1 :: STRIDE]]


class _Lane:
    """One stream, current in all the frameworks while the context is open. It can be opened again and again."""

    def __init__(self, makers: List[Any]) -> None:
        first, *others = makers
        self._contexts: List[Lane] = []
        handle = first(self._contexts, 0)
        for make in others:
            make(self._contexts, handle)
        self._open = contextlib.ExitStack()

    def __enter__(self) -> None:
        for context in self._contexts:
            self._open.enter_context(context)

    def __exit__(self, *_: object) -> None:
        self._open.close()


def _torch(contexts: List[Lane], handle: int) -> int:
    cuda = sys.modules["torch"].cuda
    stream = cuda.ExternalStream(handle) if handle else cuda.Stream()
    contexts.append(cuda.stream(stream))
    return int(stream.cuda_stream)


def _cupy(contexts: List[Lane], handle: int) -> int:
    cuda = sys.modules["cupy"].cuda
    stream = cuda.ExternalStream(handle) if handle else cuda.Stream(non_blocking=True)
    contexts.append(stream)
    return int(stream.ptr)


_MAKERS: Dict[str, Callable[[List[Lane], int], int]] = {"torch": _torch, "cupy": _cupy}
