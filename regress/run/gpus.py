"""The GPUs of this host that were named to be measured on at once, and the cores that each of them has for itself."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regress.errors import RegressError
from regress.measure.backend import DeviceError, cuda, fake
from regress.run.nvml import module, opened

ALL = "all"
WORD_BITS = 64
"""NVML gives the cores near a device as a mask in words of this size."""
SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


@dataclass(frozen=True)
class Gpu:
    """A GPU by its UUID, and the processors that its processes are kept to; empty: they may run anywhere."""

    uuid: str
    cpus: frozenset[int] = frozenset()


def visible(gpus: Iterable[Gpu]) -> str:
    """The GPUs as CUDA_VISIBLE_DEVICES names them."""
    return ",".join(gpu.uuid for gpu in gpus)


def shown(kind: str) -> list[str]:
    """The UUIDs of the GPUs that there are to be named, in CUDA's order, where the setting `device` is of that kind. Raises
    DeviceError if there is none, RegressError for a kind of device that has no UUIDs."""
    if kind == "fake":
        return list(fake.UUIDS)
    if kind not in ("auto", "cuda"):
        raise RegressError("--gpus names CUDA devices", why=f"the device is set to {kind}", fix="leave --gpus out")
    return cuda.visible_uuids()


def scripted() -> str:
    """The UUID of the scripted device that is measured on where none is named."""
    return str(fake.FakeBackend().facts()["gpu_uuid"])


@functools.cache
def architectures() -> str:
    """The compute capabilities that a compiler here finds for itself, of all GPUs that are shown; empty if there is none."""
    with contextlib.suppress(DeviceError):
        return " ".join(sorted(set(cuda.visible_architectures())))
    return ""


def named(words: Sequence[str], shown: Sequence[str], nvml: Any = None) -> tuple[Gpu, ...]:
    """The GPUs of these words, ordered by UUID: each a number as CUDA counts, a UUID or its beginning, or `all`.

    `nvml` is the module to ask for the processors near a GPU (pynvml). One GPU alone may use them all. Raises RegressError for
    a word that names none.
    """
    uuids = sorted({uuid for word in words for uuid in _meant(word, shown)})
    if len(uuids) < 2:
        return tuple(map(Gpu, uuids))
    return tuple(map(Gpu, uuids, shares([_near(uuid, nvml) for uuid in uuids], allowed())))


def _meant(word: str, shown: Sequence[str]) -> list[str]:
    if word == ALL:
        return list(shown)
    meant = [uuid for number, uuid in enumerate(shown) if word in (str(number), uuid)]
    meant = meant or [uuid for uuid in shown if word and uuid.startswith(word)]
    if len(meant) == 1:
        return meant
    raise RegressError(
        f"{word!r} names {'several GPUs' if meant else 'no GPU'}",
        why=f"there are {', '.join(f'{number} ({uuid})' for number, uuid in enumerate(shown))}",
        fix=f"name one of them, or --gpus {ALL}",
    )


def allowed() -> frozenset[int]:
    """The processors that this process may run on; empty if the system does not say."""
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()


def _near(uuid: str, nvml: Any = None) -> frozenset[int]:
    """The processors near the GPU; empty if nobody knows."""
    with contextlib.suppress(Exception):  # no NVML, one that is too old, a container: all mean that nothing is known
        api = nvml if nvml is not None else module()
        with opened(api):
            words = -(-(os.cpu_count() or 1) // WORD_BITS)
            mask = api.nvmlDeviceGetCpuAffinity(api.nvmlDeviceGetHandleByUUID(uuid), words)
        return frozenset(
            index * WORD_BITS + bit for index, word in enumerate(mask) for bit in range(WORD_BITS) if word >> bit & 1
        )
    return frozenset()


def shares(
    near: Sequence[frozenset[int]], usable: frozenset[int], core_of: Callable[[int], int] | None = None
) -> list[frozenset[int]]:
    """The processors of each GPU: of those near it that are usable, its share beside the other GPUs that are near the same.

    Cores are given whole, all threads of one together. If there are fewer cores than GPUs, they share all of them. If
    nothing is known to be near, everything is.
    """
    wanted = [own & usable or usable for own in near]
    parts = list(wanted)
    for group in set(wanted):
        members = [index for index, own in enumerate(wanted) if own == group]
        cores = _cores(group, core_of or _core)
        if len(cores) < len(members):
            continue
        for place, index in enumerate(members):
            first, end = (len(cores) * edge // len(members) for edge in (place, place + 1))
            parts[index] = frozenset().union(*cores[first:end])
    return parts


def _cores(cpus: Collection[int], core_of: Callable[[int], int]) -> list[frozenset[int]]:
    """The processors by core, in the order of the cores."""
    by_core: dict[int, set[int]] = {}
    for cpu in sorted(cpus):
        by_core.setdefault(core_of(cpu), set()).add(cpu)
    return [frozenset(by_core[core]) for core in sorted(by_core)]


def _core(cpu: int) -> int:
    """The first processor of the core that this one is a thread of."""
    try:
        return int(Path(SIBLINGS.format(cpu)).read_text().replace("-", ",").partition(",")[0])
    except (OSError, ValueError):
        return cpu
