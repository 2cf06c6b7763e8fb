"""State of the process that a case must not pass on to the next: snapshots of it, seeds, and compile caches in memory."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import signal
import sys
from typing import Any, Callable, Iterator, List, Optional, Sequence

from .channel import FIRST_FD

STANDARD = (0, 1, 2)
GENERATORS = ("numpy", "torch", "cupy")
"""Modules with a random generator of their own."""


@contextlib.contextmanager
def restored(home: str, start: str = "") -> Iterator[List[str]]:
    """Run the block in the folder `start`, and put back what a case changed there: environment, path, working directory,
    collector, recursion limit, timers and streams. The list holds, once it is closed, the names of what others would have
    noticed."""
    environment, path = dict(os.environ), list(sys.path)
    collecting, depth = gc.isenabled(), sys.getrecursionlimit()
    streams = sys.stdin, sys.stdout, sys.stderr
    start = start or home
    os.chdir(start)
    changed: List[str] = []
    standard = [_kept(descriptor) for descriptor in STANDARD]
    try:
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
        changed += ["sys.path"] if sys.path != path else []
        sys.path[:] = path
        changed += ["the garbage collector"] if gc.isenabled() != collecting else []
        (gc.enable if collecting else gc.disable)()
        changed += ["the recursion limit"] if sys.getrecursionlimit() != depth else []
        sys.setrecursionlimit(depth)
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
    """A copy of the descriptor, out of the way of who closes "all" small ones."""
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
