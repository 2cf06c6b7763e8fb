"""State of the process that a case must not pass on to the next: snapshots of it, threads that still work, seeds, and compile
caches in memory."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import re
import signal
import sys
import threading
import time
import warnings
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set

from .channel import FIRST_FD

STANDARD = (0, 1, 2)
GENERATORS = ("numpy", "torch", "cupy")
"""Modules with a random generator of their own."""
LOOK_S = 0.05
"""How long a thread that is new is watched. A pool that waits for work costs a case this much, and is no one's trouble."""
BUSY_SHARE = 0.1


class ProcessSetting(NamedTuple):
    """One setting of the interpreter or the process that the next case would notice."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], object]


def _umask() -> int:
    now = os.umask(0o077)
    os.umask(now)
    return now


SETTINGS = [
    ProcessSetting("sys.path", lambda: list(sys.path), lambda path: sys.path.__setitem__(slice(None), path)),
    ProcessSetting("the garbage collector", gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
    ProcessSetting("the recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
    ProcessSetting("the switch interval", sys.getswitchinterval, sys.setswitchinterval),
    ProcessSetting("the trace function", sys.gettrace, sys.settrace),
    ProcessSetting("the profile function", sys.getprofile, sys.setprofile),
    ProcessSetting("the umask", _umask, os.umask),
]
BINDING = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"}
"""Variables that have the first parallel region bind the thread that enters it, as their user wants."""
if sys.platform == "linux" and BINDING.isdisjoint(os.environ):
    SETTINGS.append(
        ProcessSetting("the processors", lambda: os.sched_getaffinity(0), lambda those: os.sched_setaffinity(0, those))
    )


@contextlib.contextmanager
def restored(home: str, start: str = "") -> Iterator[List[str]]:
    """Run the block in the folder `start`, and put back what a case changed there: environment, settings, working directory,
    timers, filters of warnings and streams. The list holds, once it is closed, the names of what others would have noticed."""
    environment, settings = dict(os.environ), [setting.read() for setting in SETTINGS]
    streams = sys.stdin, sys.stdout, sys.stderr
    start = start or home
    os.chdir(start)
    changed: List[str] = []
    standard = [_kept(descriptor) for descriptor in STANDARD]
    try:
        with warnings.catch_warnings():  # put back without a word: many modules set some when they are imported
            yield changed
    finally:
        for descriptor, kept in zip(STANDARD, standard):
            if not _is_open(descriptor):
                changed.append(f"file descriptor {descriptor}")
                os.dup2(kept, descriptor)
            os.close(kept)
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        now = dict(os.environ)
        changed += [f"${name}" for name in sorted({*now, *environment}) if now.get(name) != environment.get(name)]
        if now != environment:
            os.environ.clear()
            os.environ.update(environment)
        for setting, before in zip(SETTINGS, settings):
            if setting.read() != before:
                changed.append(setting.name)
                setting.write(before)
        sys.stdin, sys.stdout, sys.stderr = (_usable(stream, fd) for fd, stream in enumerate(streams))
        changed += ["the working directory"] if not _is_in(start) else []
        os.makedirs(home, exist_ok=True)
        os.chdir(home)


def _is_in(folder: str) -> bool:
    """Whether it is the working directory."""
    try:
        return os.path.samefile(os.curdir, folder)
    except OSError:  # one of them has been removed
        return False


def _kept(descriptor: int) -> int:
    """A copy of the descriptor, out of the way of who closes "all" small ones. One that the suite's import has closed leads
    nowhere."""
    if not _is_open(descriptor):
        nowhere = os.open(os.devnull, os.O_RDWR)
        if nowhere != descriptor:  # not the lowest that was free
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_FD)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _usable(stream: Any, fd: int) -> Any:
    """The stream, or where a case closed it, one that leads nowhere."""
    return open(os.devnull, "r" if fd == 0 else "w") if stream is None or stream.closed else stream


def seed(value: int, names: Sequence[str] = GENERATORS) -> None:
    """Seed Python's generator, and those of the frameworks that are loaded."""
    random.seed(value)
    for name in names:
        module = sys.modules.get(name)
        if module is None:
            continue
        if name == "torch":
            if hasattr(module, "manual_seed"):
                module.manual_seed(value)
        elif hasattr(module, "random"):
            module.random.seed(value)


class AtImport(importlib.abc.MetaPathFinder):
    """Does something with modules of these names at the moment they are imported, before any other code can use them."""

    def __init__(self, names: Sequence[str], act: Callable[[str], None]) -> None:
        self._names, self._act = names, act

    def find_spec(self, name: str, path: Any, target: Any = None) -> Optional[importlib.machinery.ModuleSpec]:
        if name not in self._names:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            spec.loader = _Acting(spec.loader, name, self._act)
        return spec


class _Acting(importlib.abc.Loader):
    def __init__(self, loader: Any, name: str, act: Callable[[str], None]) -> None:
        self._loader, self._name, self._act = loader, name, act

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        # The module keeps its own loader: packages look their data files up through it.
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._act(self._name)


def forget_compilations() -> None:
    """Start torch.compile afresh: its limit of recompilations counts over all cases of the process, and a case that stays
    under it by itself would fail for what earlier ones compiled."""
    utilities = sys.modules.get("torch._dynamo.utils")
    if utilities is not None and any(utilities.counters.values()):
        sys.modules["torch"].compiler.reset()


@contextlib.contextmanager
def at_work() -> Iterator[List[str]]:
    """The list holds, once this is closed, the threads that were started meanwhile and are still working. Nothing but the end
    of the process ends them."""
    known = set(threading.enumerate())
    names: List[str] = []
    try:
        yield names
    finally:
        names += _busy(set(threading.enumerate()) - known)


def _busy(threads: Set[threading.Thread]) -> List[str]:
    before = _wanted_s(threads)
    if not before:
        return []
    time.sleep(LOOK_S)
    after = _wanted_s(threads)
    return sorted(name for name in after if after[name] - before.get(name, 0.0) > BUSY_SHARE * LOOK_S)


def _wanted_s(threads: Set[threading.Thread]) -> Dict[str, float]:
    """By name, without the numbers that Python counts up, the seconds for which threads have run or waited for a processor.
    Empty if the system does not tell; Linux does."""
    seconds: Dict[str, float] = {}
    for thread in threads:
        with contextlib.suppress(OSError, ValueError):  # it has ended
            with open(f"/proc/self/task/{thread.native_id}/schedstat") as file:
                ran_ns, waited_ns, _ = map(int, file.read().split())
            name = re.sub(r"[-_]\d+", "", thread.name)
            seconds[name] = seconds.get(name, 0.0) + (ran_ns + waited_ns) * 1e-9
    return seconds
