"""The devices that a project is measured on: which they are, and how this process has them for itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from regress import config as configuration
from regress.errors import NothingMeasured, RegressError
from regress.project import Project
from regress.session.fitness import without_device

if TYPE_CHECKING:  # what measures is imported where it is needed: many commands only read
    from regress.run.execute import Watcher
    from regress.run.gpus import Gpu


class Devices:
    """The GPUs that were named, else the first one; none where the project is measured on something else."""

    def __init__(self, project: Project) -> None:
        self._config, self._request, self._clocks = project.config, project.request, project.cache.parent / "clocks"

    @cached_property
    def named(self) -> tuple[Gpu, ...]:
        """The GPUs that were named to be measured on, ordered by UUID; empty where none was: then it is the first one."""
        if not self._request.gpus:
            return ()
        from regress.measure.backend import DeviceError
        from regress.run import gpus

        try:
            return gpus.named(self._request.gpus, gpus.shown(self._config.settings.device))
        except DeviceError as error:
            fix = without_device(str(error))
            raise NothingMeasured("there is no GPU to measure on", why=str(error), fix=fix) from None

    @contextlib.contextmanager
    def held(self, watcher: Watcher) -> Iterator[str]:
        """Has the measured GPUs for this process alone while the block runs, with their clocks locked if that was asked for;
        yields in words what was locked, else nothing. Nothing is held where there is no GPU.

        They are held in the order of their UUIDs, so that of two who wait for the same ones each gets all of them in the end.
        Clocks that a run which was killed has left locked are given back in any case.
        """
        from regress.run import clocks, device_lock

        clocks.restore_left(self._clocks, watcher.note)
        uuids, without = self._uuids()
        with contextlib.ExitStack() as held:
            for uuid in uuids:
                own = configuration.lock_dir(self._config)
                held.enter_context(device_lock.held(uuid, own, watcher.note, self._request.wait_lock))
            words: list[str] = []
            if self._request.lock_clocks:
                if not uuids:
                    raise RegressError("there are no clocks to lock", why=without, fix="leave --lock-clocks out")
                words += [held.enter_context(clocks.locked(uuid, self._clocks, watcher.note)) for uuid in uuids]
                for word in dict.fromkeys(words):
                    watcher.note(word)
            yield "; ".join(dict.fromkeys(words))

    def _uuids(self) -> tuple[list[str], str]:
        """UUIDs of the GPUs that are measured on, in order; empty if there is none, and then why."""
        from regress.measure.backend import DeviceError
        from regress.measure.backend.cuda import CudaBackend

        device = self._config.settings.device
        if device not in ("auto", "cuda"):
            return [], f"the device is set to {device}"
        if self.named:
            return [gpu.uuid for gpu in self.named], ""
        try:
            return [str(CudaBackend().facts()["gpu_uuid"])], ""  # asking opens no context
        except DeviceError as error:
            return [], str(error)

    @property
    def uuids(self) -> tuple[str, ...]:
        """UUIDs of the devices that are measured on, scripted ones too: what belongs to one card is not another's."""
        from regress.run.gpus import scripted

        known = [gpu.uuid for gpu in self.named] or self._uuids()[0]
        return tuple(known) or ((scripted(),) if self._config.settings.device == "fake" else ())

    def require_gpu(self, what: str) -> None:
        """Raise NothingMeasured, which says that nothing can be done `what`, where no GPU of NVIDIA's is measured on."""
        uuids, why = self._uuids()
        if not uuids:
            chosen = self._config.settings.device not in ("auto", "cuda")
            fix = "--device cuda on a machine with a GPU" if chosen else without_device(why)
            raise NothingMeasured(f"there is no GPU {what}", why=why, fix=fix)
