"""Is this machine fit to measure? Each check says what it found and what to do about it."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from regress.config import find, usual_cache
from regress.errors import Exit, RegressError
from regress.measure.backend import DeviceError, choose
from regress.measure.backend.base import Backend
from regress.measure.backend.torch_events import built_for
from regress.measure.windows import agreement
from regress.model import GPU_FRAMEWORKS, Check, Report
from regress.run import nvml
from regress.run.execute import Watcher, discover
from regress.session import Request, Session
from regress.session.fitness import device_checks, torch_checks
from regress.text.wording import counted

NOISY = 0.02
"""From here on the pairs of a first look are too few for most host times."""
FREE_BYTES = 2 << 30
"""Under this much free space a worktree or a build may not fit."""


def doctor(request: Request, watcher: Watcher) -> Report:
    """Look at Python, the device, the repository, the suite and the places where results go; outside a project at the machine
    alone."""
    kind = "auto"
    with contextlib.suppress(RegressError):  # what is wrong is a check of its own
        kind = Session(request).config.settings.device
    checks = [_python(), *_device(kind)]
    try:
        if request.config_file is None and find(request.start) is None:
            where = f"none in {request.start} or above, so only the machine was checked"
            fix = "regress init in a git repository, or, to see it work, regress demo d && cd d"
            checks.append(Check("project", "warn", where, fix))
            checks += _places(usual_cache(), None)
            return _report(checks)
        session = Session(request)
        checks.append(Check("configuration", "ok", str(session.config.path)))
        for warning in session.config.warnings:
            what, _, fix = warning.partition("; fix: ")
            checks.append(Check("configuration", "warn", what, fix))
        checks += _repository(session)
        if all(check.state != "fail" for check in checks):
            checks += _suite(session, watcher)
        checks += _places(session.cache, session.config.results_dir)
    except RegressError as error:
        checks.append(Check("configuration", "fail", error.cause, error.fix))
    return _report(checks)


def _report(checks: list[Check]) -> Report:
    failed = any(check.state == "fail" for check in checks)
    return Report(
        command="doctor",
        exit_codes=(Exit.NOTHING if failed else Exit.PASSED,),
        state="FAIL" if failed else "PASS",
        checks=tuple(checks),
    )


def _python() -> Check:
    return Check("Python", "ok", f"{platform.python_version()} on {platform.system()} {platform.release()}")


def _device(kind: str) -> Iterator[Check]:
    """What the suite is measured on, which the configuration names, and with what."""
    if kind == "fake":
        facts: dict[str, Any] = {"scripted": True}
    else:
        device = choose("auto")
        facts = {**device.facts(), **_torch()}
        if not device.has_device:
            facts["no_device"] = device.why_no_device
    yield from (*device_checks(facts), *_others_on_device(facts), *_frameworks(facts), *_cpu())
    if kind != "fake":
        yield _host_clock()


def _others_on_device(facts: Mapping[str, Any]) -> Iterator[Check]:
    if "driver" not in facts:
        return
    api = nvml.module()
    try:
        with nvml.opened(api):
            device = api.nvmlDeviceGetHandleByUUID(facts["gpu_uuid"])  # an index would count hidden ones too
            others = [
                process.pid
                for process in api.nvmlDeviceGetComputeRunningProcesses(device)
                if process.pid != os.getpid()
            ]
    except api.NVMLError as error:
        yield Check("other processes", "warn", f"cannot be asked for: {error}", "nvidia-smi lists them")
        return
    if others:
        pids = ", ".join(map(str, others))
        yield Check(
            "other processes", "warn", f"on the device: {pids}; they disturb every timing", "stop them before measuring"
        )
    else:
        yield Check("other processes", "ok", "none on the device")


def _frameworks(facts: Mapping[str, Any]) -> Iterator[Check]:
    """The frameworks of this environment."""
    yield from torch_checks(facts)
    for name in GPU_FRAMEWORKS:
        if name != "torch" and (version := _version(name)):
            yield Check(name, "ok", version)


def _torch() -> dict[str, Any]:
    """The installed torch, as a process under test speaks of it."""
    version = _version("torch")
    if not version:
        return {}
    try:
        return {"torch": version, "torch_built": " ".join(filter(None, built_for()))}
    except DeviceError:
        return {"torch": version}


def _version(distribution: str) -> str:
    import importlib.metadata

    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


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
            "stop other programs",
        )
    else:
        yield Check("CPU load", "ok", f"{busy:.1f} on {cpus} CPUs")


def _host_clock() -> Check:
    """What host and wall times can be compared to here, by a loop that both sides share."""
    agreed = agreement(Backend())
    where = f"on CPU {agreed.core}" if agreed.core is not None else "on whatever CPU"
    in_turn, apart = 100 * agreed.in_turn, 100 * agreed.apart
    words = f"windows in turn {where} agree to {in_turn:.2g} %, one after the other to {apart:.2g} %"
    if agreed.core is None:
        why = "processes cannot choose their CPU here"
        return Check("host's clock", "warn", f"{words}: {why}", "allow sched_setaffinity in the container's profile")
    if not agreed.knows_preemption:
        why = "the kernel does not report when others had the CPU"
        return Check(
            "host's clock", "warn", f"{words}: {why}", "a kernel with CONFIG_SCHED_INFO has /proc/self/schedstat"
        )
    if agreed.in_turn > NOISY:
        why = "host and wall times need many pairs"
        return Check("host's clock", "warn", f"{words}: {why}", "stop other programs")
    return Check("host's clock", "ok", words)


def _repository(session: Session) -> Iterator[Check]:
    try:
        repository = session.repository
    except RegressError as error:
        yield Check("repository", "fail", error.cause, error.fix)
        return
    try:
        revision, how = repository.default_base(session.own_paths)
        base = repository.resolve(revision)
    except RegressError as error:
        yield Check("repository", "warn", error.cause, error.fix)
        return
    yield Check("repository", "ok", f"{repository.root}; a check would compare with {base.short} ({how})")


def _suite(session: Session, watcher: Watcher) -> Iterator[Check]:
    try:
        side = session.prepare(session.tree_side("head"), watcher)
        suite = discover(session.job((side,), 1), side, watcher)
    except RegressError as error:
        yield Check("suite", "fail", error.cause, error.fix)
        return
    on_device = sum(benchmark.needs_device for benchmark in suite.benchmarks)
    fatal = [problem for problem in suite.problems if problem.fatal]
    for problem in fatal:
        yield Check("suite", "fail", f"{problem.where}: {problem.message}", "fix that import")
    if not suite.benchmarks:
        yield Check(
            "suite", "fail", f"no benchmark in {session.config.benchmark_dir}", "write one: docs/first-benchmark.md"
        )
    elif not fatal:
        yield Check("suite", "ok", f"{counted(len(suite.benchmarks), 'benchmark')}, {on_device} of them on the device")


def _places(cache: Path, results: Path | None) -> Iterator[Check]:
    """Where we write: the cache, the results of a project, and files that nobody keeps."""
    places = {"cache": cache, **({"results": results} if results is not None else {})}
    places["temporary files"] = Path(tempfile.gettempdir())
    for name, variable in (("shared", "REGRESS_SHARED"), ("scratch", "REGRESS_SCRATCH")):
        if folder := os.environ.get(variable):  # we are on a node
            places[name] = Path(folder)
    for name, place in places.items():
        yield _place(name, place)


def _place(name: str, folder: Path) -> Check:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir():
        return Check(
            name, "fail", f"{folder} cannot be created: {existing} is not a folder", f"mv {existing} {existing}.other"
        )
    if not os.access(existing, os.W_OK):
        return Check(name, "fail", f"{folder} cannot be written", f"chmod u+w {existing}")
    free = shutil.disk_usage(existing).free
    if free < FREE_BYTES:
        return Check(name, "warn", f"{folder} has {free / 2**30:.1f} GiB free", "make room, or set cache_dir")
    return Check(name, "ok", f"{folder}, {free / 2**30:.0f} GiB free")
