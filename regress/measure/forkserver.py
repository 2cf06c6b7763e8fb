"""A process that imports a suite once and forks a worker for each round, so that no round pays for the import.

Such processes of several sides may be forked themselves from one that has imported only the frameworks: their zygote. Then the
frameworks are at the same addresses on all sides. Two separate interpreters differ by up to 13 % in the time of a loop, as
long as they live, depending on where their memory lies.

It opens no device and calls no benchmark: neither a CUDA context nor threads survive a fork. Its children find its imports in
memory, frozen (`gc.freeze`), so that a child's collections neither walk nor copy them.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import platform
import signal
import socket
import sys
import tempfile
import threading
import warnings
from typing import Any, List, Optional, Set, Tuple

from .channel import Channel, moved, receive_descriptors
from .failures import failure_of
from .paths import arranged
from .project import ProjectCode
from .state import AtImport
from .wire import Broken, Discover, Fork, Forked, Importing, Open, Opened, Preload, Preloaded, Reap, Reaped
from .wire import Suite as SuiteMessage
from .worker import Imported, converse, installed

SHIP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder with this code, which is first on the path."""
NOT_INITIALIZED = 3
"""What the CUDA driver answers before `cuInit`."""
PR_SET_CHILD_SUBREAPER = 36
WITHOUT_CUDA = "PYTORCH_NVML_BASED_CUDA_CHECK"
"""With it `torch.cuda.is_available()`, which many suites ask while they are imported, asks NVML and initializes nothing."""
RTLD_NOLOAD = getattr(os, "RTLD_NOLOAD", 0)


class ForkServer:
    """Imports the suite when it is asked to discover it, and forks on demand. `zygote` is what this process was forked from."""

    def __init__(
        self, channel: Channel, opening: Open, connection: socket.socket, zygote: Optional[ForkServer] = None
    ) -> None:
        self._channel, self._opening, self._connection = channel, opening, connection
        self._set: bool = WITHOUT_CUDA not in os.environ if zygote is None else zygote._set
        os.environ.update(opening.variables)
        os.environ.setdefault(WITHOUT_CUDA, "1")
        if zygote is not None:
            sys.path[:] = arranged(sys.path, SHIP)
            _tell_frameworks()
        self._torch_threads: int = 0 if zygote is None else zygote._torch_threads
        """torch's own number of threads, if it is kept at one."""
        if opening.one_thread and "torch" not in sys.modules:
            sys.meta_path.insert(0, AtImport(("torch",), self._keep_serial))
        self._imported = Imported(opening)
        installed()
        self._importing = ""
        self._unforkable = ""
        self._workers: Set[int] = set()
        self._helpers: Set[int] = set()
        """Processes that the suite's import has started: they are there for all rounds."""
        _adopt_orphans()
        self._threads = _threads()
        self._started: List[str] = []
        """Modules whose import has started threads."""
        channel.send(Opened(os.getpid(), {"python": platform.python_version()}))

    def run(self) -> int:
        """Answer until the driver closes the pipe; the exit code. Comes back in each forked worker too, with its own."""
        command = self._channel.receive()
        while command is not None:
            if isinstance(command, Discover):
                self._discover()
            elif isinstance(command, Fork):
                child = self._fork(command)
                if child is not None:
                    return self._as_child(command, *child)
            elif isinstance(command, Preload):
                self._preload(command)
            elif isinstance(command, Reap):
                self._channel.send(Reaped(self._reap(command.pid)))
            else:
                raise ValueError(f"unknown command {type(command).__name__}")
            command = self._channel.receive()
        return 0

    def _as_child(self, command: Fork, channel: Channel, more: List[int]) -> int:
        """What a forked process does; `more` are the descriptors that not every child has."""
        opening = channel.receive()
        if opening is None:
            return 0
        if command.serves:
            return ForkServer(channel, opening, socket.socket(fileno=moved(more[0])), self).run()
        return converse(channel, opening, self._imported, [command.seat, *more] if more else ())

    # -- import ----------------------------------------------------------------------------------------------------------

    def _discover(self) -> None:
        variables, known = dict(os.environ), set(sys.modules)
        try:
            benchmarks, problems = self._imported.suite.discover(self._announce)
            self._inspect_discovered()
        except Exception as error:  # the driver must learn why
            self._channel.send(Broken(failure_of(error, [self._opening.suite_dir])))
            return
        self._settle()
        own = ProjectCode(self._opening.import_roots, "", self._opening.named_in).names | {self._imported.suite.package}
        new = [name for name in sys.modules if name not in known]
        outside = [name for name in new if name.partition(".")[0] not in own]
        set_now = {name: value for name, value in os.environ.items() if variables.get(name) != value}
        self._channel.send(
            SuiteMessage(
                benchmarks,
                problems,
                self._unforkable,
                self._started,
                outside,
                sorted(own),
                set_now,
                self._imported.suite.programs,
            )
        )

    def _preload(self, command: Preload) -> None:
        """Import what children imported late, or what all sides import. What cannot be imported here, they import
        themselves."""
        for module in command.modules:
            self._importing = module
            with contextlib.suppress(Exception):
                importlib.import_module(module)
            for name in command.without:
                if name in sys.modules:
                    self._unforkable = self._unforkable or f"{module} imports {name}, which is the project's"
        self._inspect()
        self._settle()
        self._channel.send(Preloaded(self._unforkable))

    def _settle(self) -> None:
        gc.collect()
        gc.freeze()
        self._helpers = _children()

    def _announce(self, module: str) -> None:
        self._inspect_discovered()
        self._importing = module
        self._channel.send(Importing(module))

    def _inspect_discovered(self) -> None:
        """Side effects of importing the suite's last module. Its benchmarks may wait for a thread of it; no trial would show
        that, and in a fork they would wait forever."""
        self._inspect()
        alive = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
        if alive and not self._unforkable:
            threads = "the threads" if len(alive) > 1 else "the thread"
            self._unforkable = f"{self._importing} starts {threads} {', '.join(alive)} when it is imported"

    def _inspect(self) -> None:
        """What the import of the last module has done to this process."""
        opened = _opened()
        if opened and not self._unforkable:
            self._unforkable = f"{self._importing} initializes {opened} when it is imported"
        threads = _threads()
        if threads > self._threads and self._importing:
            self._started.append(self._importing)
        self._threads = threads

    def _keep_serial(self, name: str) -> None:
        """Keep torch at one thread: a parallel region of the import starts none then, which a child would wait for."""
        torch: Any = sys.modules[name]
        self._torch_threads = torch.get_num_threads()
        torch.set_num_threads(1)

    # -- fork ------------------------------------------------------------------------------------------------------------

    def _fork(self, command: Fork) -> Optional[Tuple[Channel, List[int]]]:
        """Fork; the child gets its channel and what else it is given, the parent None."""
        descriptors = receive_descriptors(self._connection, command.descriptors)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # the suite may have closed it, or put its own there
                stream.flush()  # or the child would print it again
        with warnings.catch_warnings():
            # JAX and Python warn of every fork beside threads. Whether this one works is tried before anything is measured.
            warnings.simplefilter("ignore")
            pid = os.fork()
        if pid:
            for descriptor in descriptors:
                os.close(descriptor)
            self._workers.add(pid)
            self._channel.send(Forked(pid))
            return None
        os.setsid()
        self._connection.close()
        read, write, log, *more = descriptors
        for descriptor in (1, 2):
            os.dup2(log, descriptor)
        os.close(log)
        os.environ["TMPDIR"] = command.home
        tempfile.tempdir = None  # the import may have asked for it
        os.chdir(os.path.join(command.home, "cwd"))
        if not command.serves:
            self._give_back()
        return Channel(read, write), more

    def _give_back(self) -> None:
        """Kept only from the imports."""
        if self._set:
            os.environ.pop(WITHOUT_CUDA, None)
        torch: Any = sys.modules.get("torch")
        if self._torch_threads and torch is not None and torch.get_num_threads() == 1:  # else the suite has set it
            torch.set_num_threads(self._torch_threads)

    def _reap(self, pid: int) -> Optional[int]:
        """Exit code of a worker; None while it runs. What it leaves behind is ours by now, and ends with it."""
        code = _ended(pid)
        if code is not None:
            self._workers.discard(pid)
            known = self._workers | self._helpers
            left = _children() - known
            while left:
                for orphan in left:
                    with contextlib.suppress(ProcessLookupError, PermissionError, ChildProcessError):
                        os.kill(orphan, signal.SIGKILL)
                        os.waitpid(orphan, 0)
                known |= left  # what cannot be ended is not tried again
                left = _children() - known
        return code


def _tell_frameworks() -> None:
    """Have those that read the folder of their compile cache when they are imported read it again."""
    jax: Any = sys.modules.get("jax")
    numba: Any = sys.modules.get("numba.core.config")
    with contextlib.suppress(Exception):  # of another version
        if jax is not None:
            jax.config.update("jax_compilation_cache_dir", os.environ.get("JAX_COMPILATION_CACHE_DIR"))
    with contextlib.suppress(Exception):
        if numba is not None:
            numba.reload_config()


def _adopt_orphans() -> None:
    """Become the parent of processes that workers leave behind, even in another session. Linux only."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _children() -> Set[int]:
    """Processes whose parent this one is; none if there is no /proc."""
    children, own = set(), str(os.getpid())
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                with open(f"/proc/{name}/stat") as stat:
                    if stat.read().rpartition(")")[2].split()[1] == own:
                        children.add(int(name))
    return children


def _ended(pid: int) -> Optional[int]:
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    if not ended:
        return None
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _opened() -> str:
    """The runtime that this process has initialized and that does not survive a fork; empty if there is none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1", mode=RTLD_NOLOAD)
    except OSError:  # nobody has loaded it
        driver = None
    if driver is not None and driver.cuDeviceGetCount(ctypes.byref(ctypes.c_int())) != NOT_INITIALIZED:
        return "CUDA"
    torch: Any = sys.modules.get("torch")
    with contextlib.suppress(Exception):  # a torch of another kind, or one whose import failed half way
        if torch is not None and torch.cuda.is_initialized():
            return "CUDA"
    bridge: Any = sys.modules.get("jax._src.xla_bridge")
    return "a backend of JAX" if getattr(bridge, "_backends", None) else ""


def _threads() -> int:
    """How many threads this process has; 0 if that cannot be read."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 0
