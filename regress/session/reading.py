"""How far the reading of recorded results is, told to who watches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regress.run.execute import Watcher


def reading(watcher: Watcher) -> Callable[[int, int], None]:
    """Takes how many bytes are read, and how many there are; tells it by the MiB, and less than one not at all."""
    told = -1

    def tell(read: int, wanted: int) -> None:
        nonlocal told
        if told < 0:
            if wanted >> 20:
                watcher.start(wanted >> 20, "reading results, MiB")
            told = 0
        if read >> 20 > told:
            watcher.advance("", (read >> 20) - told)
            told = read >> 20

    return tell
