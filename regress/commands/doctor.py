"""`regress doctor`: is this machine fit to measure? Each check says what it found and what to do about it."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from regress.commands.session import Request, Session, counted
from regress.errors import RegressError
from regress.measure.backend import Backend, DeviceError, choose
from regress.measure.backend.torch_events import built_for
from regress.model import Check, Report
from regress.run.execute import Watcher, discover

FREE_BYTES = 2 << 30
"""Under this much free space a worktree or a build may not fit."""


def doctor(request: Request, watcher: Watcher) -> Report:
    """Look at Python, the device, the repository, the suite and the places where results go."""
    device = choose("auto")
    facts = device.facts()
    checks = [_python(), *_device(device, facts), *_frameworks(str(facts.get("cuda", ""))), *_cpu()]
    try:
        session = Session(request)
        checks.append(Check("configuration", "ok", str(session.config.path)))
        checks += _repository(session)
        if all(check.state != "fail" for check in checks):
            checks += _suite(session, watcher)
        checks += _places(session)
    except RegressError as error:
        checks.append(Check("configuration", "fail", _what(error), error.fix))
    failed = any(check.state == "fail" for check in checks)
    return Report(
        command="doctor", exit_codes=(5,) if failed else (0,), state="FAIL" if failed else "PASS", checks=tuple(checks)
    )


def _python() -> Check:
    return Check("Python", "ok", f"{platform.python_version()} on {platform.system()} {platform.release()}")


def _device(device: Backend, facts: Mapping[str, Any]) -> Iterator[Check]:
    if not device.has_device:
        yield Check(
            "CUDA device",
            "warn",
            f"{device.why_no_device}; CUDA cases will be skipped, CPU cases are measured",
            "install the NVIDIA driver, or run on a machine with a GPU",
        )
        return
    if "gpu_uuid" not in facts:  # only the suite's own torch can tell what it is
        yield Check("device", "ok", "an AMD device, timed by torch's events")
        return
    driver = f", driver {facts['driver']}" if "driver" in facts else ""
    yield Check("CUDA device", "ok", f"{facts['gpu']} ({facts['gpu_uuid']}), CUDA {facts['cuda']}{driver}")
    yield from _others_on_device(facts["gpu_uuid"])


def _others_on_device(uuid: str) -> Iterator[Check]:
    import pynvml

    try:
        pynvml.nvmlInit()
        device = pynvml.nvmlDeviceGetHandleByUUID(uuid)  # by index it would be the first of all, hidden ones too
        others = [each.pid for each in pynvml.nvmlDeviceGetComputeRunningProcesses(device) if each.pid != os.getpid()]
        pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        yield Check(
            "NVML",
            "warn",
            f"cannot be asked: {error}; other processes on the device, its temperature and slowdowns will not be noticed",
            "install the libnvidia-ml of the driver (in a container: NVIDIA_DRIVER_CAPABILITIES=compute,utility)",
        )
        return
    if others:
        pids = ", ".join(map(str, others))
        yield Check(
            "other processes", "warn", f"on the device: {pids}; they disturb every timing", "end them before measuring"
        )
    else:
        yield Check("other processes", "ok", "none on the device")


def _frameworks(driver_cuda: str) -> Iterator[Check]:
    """The frameworks of this environment; `driver_cuda` is the newest CUDA that the driver knows."""
    import importlib.metadata

    for name in ("torch", "cupy", "jax"):
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        yield _torch(version, driver_cuda) if name == "torch" else Check(name, "ok", version)


def _torch(version: str, driver_cuda: str) -> Check:
    try:
        kind, built = built_for()
    except DeviceError as error:
        return Check("torch", "warn", f"{version}, but {error}", "pip install --force-reinstall torch")
    if not kind:
        what = f"{version} is built for the CPU only: its CUDA cases will fail"
        return Check("torch", "warn", what, "pip install --force-reinstall torch")
    # Within a major version a driver runs what is built for a newer one.
    if kind == "cuda" and driver_cuda and int(built.split(".")[0]) > int(driver_cuda.split(".")[0]):
        what = f"{version} is built for CUDA {built}, and the driver knows CUDA {driver_cuda} only: its CUDA cases will fail"
        return Check("torch", "warn", what, "update the NVIDIA driver, or install a torch for an older CUDA")
    return Check("torch", "ok", f"{version}, built for {'ROCm' if kind == 'hip' else 'CUDA'} {built}")


def _cpu() -> Iterator[Check]:
    cpus = os.cpu_count() or 1
    try:
        busy = os.getloadavg()[0]
    except OSError:
        return
    if busy > 0.5 * cpus:
        yield Check(
            "CPU load",
            "warn",
            f"{busy:.1f} on {cpus} CPUs: host and wall times will be noisy",
            "stop what else is running",
        )
    else:
        yield Check("CPU load", "ok", f"{busy:.1f} on {cpus} CPUs")


def _repository(session: Session) -> Iterator[Check]:
    try:
        repository = session.repository
    except RegressError as error:
        yield Check("repository", "fail", _what(error), error.fix)
        return
    try:
        revision, how = repository.default_base(session.own_paths)
        base = repository.resolve(revision)
    except RegressError as error:
        yield Check("repository", "warn", _what(error), error.fix)
        return
    yield Check("repository", "ok", f"{repository.root}; a check would compare with {base.short} ({how})")


def _suite(session: Session, watcher: Watcher) -> Iterator[Check]:
    try:
        side = session.prepare(session.tree_side("head"), watcher)
        found = discover(session.job((side,), 1), side)
    except RegressError as error:
        yield Check("suite", "fail", _what(error), error.fix)
        return
    on_device = sum(each.needs_device for each in found.benchmarks)
    fatal = [each for each in found.problems if each.fatal]
    for problem in fatal:
        yield Check("suite", "fail", f"{problem.where}: {problem.message}", "mend that import")
    if not found.benchmarks:
        yield Check(
            "suite", "fail", f"no benchmark in {session.config.benchmark_dir}", "write one: docs/first-benchmark.md"
        )
    elif not fatal:
        yield Check("suite", "ok", f"{counted(len(found.benchmarks), 'benchmark')}, {on_device} of them on the device")


def _places(session: Session) -> Iterator[Check]:
    places: dict[str, Callable[[], Path]] = {
        "cache": lambda: session.cache,
        "results": lambda: session.config.results_dir,
        "temporary files": lambda: Path(tempfile.gettempdir()),
    }
    for name, place in places.items():
        yield _place(name, place())


def _place(name: str, folder: Path) -> Check:
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    if not existing.is_dir():
        return Check(
            name, "fail", f"{folder} cannot be made: {existing} is no folder", f"mv {existing} {existing}.other"
        )
    if not os.access(existing, os.W_OK):
        return Check(name, "fail", f"{folder} cannot be written", f"chmod u+w {existing}")
    free = shutil.disk_usage(existing).free
    if free < FREE_BYTES:
        return Check(name, "warn", f"{folder} has {free / 2**30:.1f} GiB free", "make room, or set cache_dir")
    return Check(name, "ok", f"{folder}, {free / 2**30:.0f} GiB free")


def _what(error: RegressError) -> str:
    return f"{error.what} ({error.why})" if error.why else error.what
