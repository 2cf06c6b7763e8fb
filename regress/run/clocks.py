"""Locking the clocks of a GPU while it is measured, and giving them back whatever happens.

A lock belongs to the device and outlives the process that made it. Before the first one is made, the device is written into a
file in the cache, which this process holds locked; the file is emptied once the clocks are given back. A file that says
something and that nobody holds was left by a run that was killed: the next run gives those clocks back.

The SM clock is locked at the default application clock; where the driver reports none (it is deprecated since CUDA 13), at the
limit that NVML calls TDP, the clock that the device can hold within its rated power.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from regress.errors import RegressError
from regress.files import lock, open_file, read_bytes
from regress.run.nvml import module, opened
from regress.text.wording import quoted

ENDING = ".clocks"


@contextlib.contextmanager
def locked(uuid: str, folder: Path, note: Callable[[str], None], nvml: Any = None) -> Iterator[str]:
    """Locks the SM and memory clocks of a device while the block runs; yields in words what was locked.

    `folder` is where runs of this machine keep what they have locked, `note` takes what the user should know, `nvml` is the
    module to use (pynvml). The clocks go back to the driver's own choice: NVML does not tell of an earlier lock. Raises
    RegressError where they cannot be locked, and leaves them then as they were.
    """
    api = nvml if nvml is not None else module()
    with _opened(api), _claimed(folder / (uuid + ENDING)) as claim:
        if claim is None:
            raise RegressError(
                f"the clocks of {uuid} are locked by another regress",
                why="it releases them when it ends, which would be in the middle of this run",
                fix="wait until it has ended, or leave --lock-clocks out",
            )
        device = _device(api, uuid)
        claim.write(uuid)
        refused = False
        try:
            try:
                sm = _lock_sm(api, device, uuid)
            except RegressError:
                refused = True
                raise
            yield ", ".join((sm, _lock_memory(api, device, uuid)))
        finally:
            # Whatever happened but a refusal may have locked something: Ctrl-C may come right behind the call that did.
            failure = _reset(api, device)
            if failure and not refused:
                note(_left_locked(uuid, failure))
            else:
                claim.clear()


def restore_left(folder: Path, note: Callable[[str], None], nvml: Any = None) -> None:
    """Gives back the clocks that killed runs have left locked, and says which, and what it could not give back."""
    for path in sorted(folder.glob("*" + ENDING)):
        try:
            # It is not held to see that: a run that is about to lock these clocks would be refused.
            if _is_empty(path):
                continue
            with _claimed(path) as claim:
                uuid = claim.read() if claim is not None else ""
                if claim is not None and uuid:  # else its run goes on, or has given the clocks back
                    words = _restored(nvml if nvml is not None else module(), uuid, claim)
                    if words:
                        note(words)
        except RegressError as error:
            note(_left_locked(path.name.removesuffix(ENDING), error.why))


def _restored(api: Any, uuid: str, claim: _Claim) -> str:
    """Give back the clocks of one device; what came of it, in words. Empty if another machine has the device: the cache
    may be shared."""
    with _opened(api):
        try:
            device = api.nvmlDeviceGetHandleByUUID(uuid)
        except api.NVMLError:
            return ""
        failure = _reset(api, device)
    if failure:
        return _left_locked(uuid, failure)
    claim.clear()
    return f"the clocks of {uuid} were still locked by a run that was killed; released now"


def _left_locked(uuid: str, failure: str) -> str:
    freeing = " && ".join(_command(uuid, option) for option in ("-rgc", "-rmc"))
    return f"the clocks of {uuid} may still be locked ({failure}); an administrator can release them: {freeing}"


# -- NVML ----------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _opened(api: Any) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(opened(api))
        except api.NVMLError as error:
            raise RegressError(
                "the clocks cannot be locked", why=f"NVML: {error}", fix="regress doctor, or leave --lock-clocks out"
            ) from None
        yield


def _device(api: Any, uuid: str) -> Any:
    try:
        return api.nvmlDeviceGetHandleByUUID(uuid)
    except api.NVMLError as error:
        raise RegressError(
            f"the clocks of {uuid} cannot be locked",
            why=f"NVML does not find the device: {error}",
            fix="leave --lock-clocks out",
        ) from None


def _lock_sm(api: Any, device: Any, uuid: str) -> str:
    clock = _default_clock(api, device, api.NVML_CLOCK_GRAPHICS)
    limit = clock or api.NVML_CLOCK_LIMIT_ID_TDP
    try:
        api.nvmlDeviceSetGpuLockedClocks(device, limit, limit)
    except api.NVMLError as error:
        raise _refused(api, error, uuid, f"-lgc {clock or 'MHZ'}") from None
    return (
        f"SM clock locked at {clock} MHz (default application clock)" if clock else "SM clock locked at the TDP limit"
    )


def _lock_memory(api: Any, device: Any, uuid: str) -> str:
    """Devices before Ampere, and those with one memory clock, cannot do it; then the SM clock alone is locked."""
    try:
        clock = _default_clock(api, device, api.NVML_CLOCK_MEM) or api.nvmlDeviceGetMaxClockInfo(
            device, api.NVML_CLOCK_MEM
        )
        api.nvmlDeviceSetMemoryLockedClocks(device, clock, clock)
    except api.NVMLError as error:
        if error.value == api.NVML_ERROR_NO_PERMISSION:
            raise _refused(api, error, uuid, "-lmc MHZ") from None
        return f"memory clock left alone ({error})"
    return f"memory clock locked at {clock} MHz"


def _default_clock(api: Any, device: Any, kind: int) -> int | None:
    """The default application clock in MHz; None if it is not reported."""
    function = getattr(api, "nvmlDeviceGetDefaultApplicationsClock", None)
    if function is None:
        return None
    try:
        return int(function(device, kind)) or None
    except api.NVMLError:
        return None


def _reset(api: Any, device: Any) -> str:
    """Give both clocks back to the driver; what went wrong, else empty. A device that cannot lock a clock need not free it."""
    failures, needless = [], (api.NVML_ERROR_NOT_SUPPORTED, api.NVML_ERROR_FUNCTION_NOT_FOUND)
    for reset in (api.nvmlDeviceResetGpuLockedClocks, api.nvmlDeviceResetMemoryLockedClocks):
        try:
            reset(device)
        except api.NVMLError as error:
            if error.value not in needless:
                failures.append(str(error))
    return "; ".join(dict.fromkeys(failures))


def _refused(api: Any, error: Exception, uuid: str, option: str) -> RegressError:
    denied = getattr(error, "value", None) == api.NVML_ERROR_NO_PERMISSION
    why = f"{error}: only an administrator may change clocks" if denied else f"the driver refuses: {error}"
    fix = f"{_command(uuid, option)} by an administrator, or leave --lock-clocks out"
    return RegressError(f"the clocks of {uuid} cannot be locked", why=why, fix=fix)


def _command(uuid: str, option: str) -> str:
    return f"sudo nvidia-smi -i {uuid} {option}"


# -- who has locked what -------------------------------------------------------------------------------------------------


class _Claim:
    """A file that this process holds; its content is what is locked, so an empty one says that nothing is."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, uuid: str) -> None:
        self.clear()
        os.pwrite(self._descriptor, json.dumps({"uuid": uuid, "pid": os.getpid()}).encode(), 0)
        os.fsync(self._descriptor)

    def read(self) -> str:
        """The device; empty if nothing is locked, or a writer was killed before anything was."""
        try:
            return str(json.loads(os.pread(self._descriptor, 4096, 0))["uuid"])
        except (ValueError, KeyError, TypeError):
            return ""

    def clear(self) -> None:
        os.ftruncate(self._descriptor, 0)


def _is_empty(path: Path) -> bool:
    """Whether nothing is locked by the file. What cannot be read is another matter, which taking it tells."""
    with contextlib.suppress(OSError):
        return not read_bytes(path)
    return False


@contextlib.contextmanager
def _claimed(path: Path) -> Iterator[_Claim | None]:
    """Holds the file alone while the block runs; None if another process does. The kernel frees it when one is killed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = open_file(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
    except OSError as error:
        raise RegressError(f"cannot use {path}", why=str(error), fix=quoted("rm", "-f", path)) from None
    try:
        yield _Claim(descriptor) if lock(descriptor, wait=False) else None
    finally:
        os.close(descriptor)
