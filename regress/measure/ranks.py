"""The processes that visit a case together, one a rank: where they meet, and what they agree on.

A collective ends only when every rank has entered it, so all of them have to make the same calls: whatever decides on the next
one (a time, a count, whether there are enough samples) is the largest that any rank has seen. They meet through the driver, not
through the process group of the suite: it sees who has come and who has not, and which of them have died. By itself a process
is the only rank, and all of this costs nothing.
"""

from __future__ import annotations

import contextlib
import faulthandler
import math
import os
import sys
from typing import Any, Dict, List, Optional, Tuple

from .channel import Channel
from .wire import STACK_SIGNAL, Meeting, Meets, Rank

HOST = "127.0.0.1"
VISIBLE = "CUDA_VISIBLE_DEVICES"


class Ranks:
    """This process among the ranks; `number` is its own. Without a channel it is the only one."""

    def __init__(self, rank: Rank = Rank(), channel: Optional[Channel] = None) -> None:  # noqa: B008  # frozen
        self.number, self.size, self._channel = rank.number, rank.size, channel

    @property
    def several(self) -> bool:
        return self.size > 1

    def most(self, where: str, *values: float) -> List[float]:
        """The largest of each value over all ranks, once all of them have come here; NaN where one of them has that. Raises
        EOFError where the driver has gone."""
        if self._channel is None:
            return list(values)
        self._channel.send(Meets(where, [float(value) for value in values]))
        answer = self._channel.receive()
        if not isinstance(answer, Meeting):
            raise EOFError("the driver has gone")
        return [_largest(column) for column in zip(*answer.values)]

    def longest(self, where: str, seconds: float) -> float:
        """The same of one value."""
        return self.most(where, seconds)[0]

    def any(self, where: str, told: bool) -> bool:
        """Whether it is so on any rank."""
        return bool(self.longest(where, told))

    def meet(self, where: str) -> None:
        """Wait until all ranks have come here."""
        self.most(where)


ALONE = Ranks()


def _largest(values: Tuple[float, ...]) -> float:
    return math.nan if any(map(math.isnan, values)) else max(values)


def join(rank: Rank) -> None:
    """Make this process a rank: what torchrun sets in the environment of one of a single node, and a way for the driver to ask
    what it is doing."""
    if rank.size < 2:
        return
    os.environ.update(variables(rank))
    with contextlib.suppress(ValueError, OSError, AttributeError):  # standard error has no descriptor
        faulthandler.register(STACK_SIGNAL, all_threads=True, chain=False)


def variables(rank: Rank) -> Dict[str, str]:
    """As torchrun sets them. All ranks see the same devices, as many as they share."""
    number, size = str(rank.number), str(rank.size)
    shown = os.environ.get(VISIBLE, ",".join(map(str, range(rank.gpus))))
    return {
        VISIBLE: ",".join(shown.split(",")[: rank.gpus]),
        "RANK": number,
        "LOCAL_RANK": number,
        "GROUP_RANK": "0",
        "WORLD_SIZE": size,
        "LOCAL_WORLD_SIZE": size,
        "MASTER_ADDR": HOST,
        "MASTER_PORT": str(rank.port),
    }


def leave_process_group() -> None:
    """Destroy torch's process group where the benchmark has left it."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()
