"""Collectives between two GPUs by size and dtype, with NCCL.

Throughput is the bus bandwidth: what each link has to carry whatever the algorithm, as nccl-tests reckon it.
"""

from __future__ import annotations

import os

import torch
import torch.distributed as dist

from .common import DEVICE, itemsize

GATHER = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
SCATTER = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
"""By their names of today, or those that older versions of torch have."""

tags = ("collectives",)
ranks = 2
timeout = 60.0
SIZES = [1 << 16, 1 << 20, 1 << 26]
"""Bytes of the larger buffer of a rank."""
DTYPES = ["float32", "bfloat16"]


class Collective:
    """A process group, and a buffer of that many bytes: one part for each rank; each link carries `parts` of them."""

    params = [SIZES, DTYPES]
    param_names = ["bytes", "dtype"]
    parts = ranks - 1

    def setup(self, nbytes: int, dtype: str) -> None:
        if "RANK" not in os.environ:
            raise NotImplementedError("needs several ranks: regress starts them")
        if not dist.is_available():
            raise NotImplementedError("this torch has no torch.distributed")
        rank = int(os.environ["LOCAL_RANK"])
        if DEVICE == "cuda":
            torch.cuda.set_device(rank)
        dist.init_process_group("nccl" if DEVICE == "cuda" else "gloo")
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.x = torch.zeros(nbytes // itemsize(dtype), device=DEVICE, dtype=getattr(torch, dtype))
        self.part = torch.empty_like(self.x[: len(self.x) // self.size])

    def bytes(self, nbytes: int, dtype: str) -> int:
        return nbytes * self.parts // ranks


class AllReduce(Collective):
    parts = 2 * (ranks - 1)

    def cudatime_all_reduce(self, nbytes: int, dtype: str) -> None:
        dist.all_reduce(self.x)


class AllGather(Collective):
    def cudatime_all_gather(self, nbytes: int, dtype: str) -> None:
        GATHER(self.x, self.part)


class ReduceScatter(Collective):
    def cudatime_reduce_scatter(self, nbytes: int, dtype: str) -> None:
        SCATTER(self.part, self.x)


class Broadcast(Collective):
    parts = ranks

    def cudatime_broadcast(self, nbytes: int, dtype: str) -> None:
        dist.broadcast(self.x, 0)


class PeerToPeer(Collective):
    """From each rank to the next, all at once."""

    parts = ranks

    def setup(self, nbytes: int, dtype: str) -> None:
        super().setup(nbytes, dtype)
        self.y = torch.empty_like(self.x)

    def cudatime_send_receive(self, nbytes: int, dtype: str) -> None:
        to, source = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        operations = [dist.P2POp(dist.isend, self.x, to), dist.P2POp(dist.irecv, self.y, source)]
        for request in dist.batch_isend_irecv(operations):
            request.wait()
