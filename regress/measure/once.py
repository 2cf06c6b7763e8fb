"""A case in a plain process without pipes to a driver: for nsys, ncu, compute-sanitizer, a debugger.

What the case prints is printed. Of our own there is one line on stderr.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import tempfile

from .backend import DeviceError, choose
from .company import Company
from .failures import failure_of
from .project import ProjectCode
from .visit import Visitor
from .wire import Failure, Once, Open, Ran, SetupCache
from .worker import Imported, set_up_cache

FAILED, NOTHING = 3, 5
"""Exit codes, as those of the driver."""


def run(opening: Open, asked: Once) -> int:
    """Run it and say how it went; the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a visit takes whatever a case raises for its failure
    task = asked.task
    name = f"{task.name}({', '.join(task.params)})" if task.params else task.name
    ran = _ran(opening, asked)
    if ran.failure is None:
        calls = "1 call" if asked.calls == 1 else f"{asked.calls} calls"
        _say(f"{calls} of {name}, {1e6 * ran.seconds:.3g} us each")
        return 0
    if ran.failure.detail:
        sys.stderr.write(ran.failure.detail.rstrip("\n") + "\n")
    _say(f"{name}: {ran.failure.message}")
    return NOTHING if ran.failure.kind == "skipped" else FAILED


def _ran(opening: Open, asked: Once) -> Ran:
    home = os.getcwd()
    try:
        imported = Imported(opening)
        backend = imported.backend or choose(opening.device)
    except DeviceError as error:
        return Ran(failure=Failure("skipped", str(error)))
    except Exception as error:
        return Ran(failure=failure_of(error, [opening.suite_dir]))
    visitor = Visitor(imported.suite, backend, opening.seed, home, Company(backend))
    code = ProjectCode(opening.import_roots, imported.suite.package, opening.named_in)
    if not asked.setup_cache:
        ran = visitor.once(asked)
    else:
        with tempfile.TemporaryDirectory(prefix="regress-cache-") as folder:
            cached = set_up_cache(imported.suite, SetupCache(asked.task.name, folder), opening.seed)
            os.chdir(home)
            ran = Ran(failure=cached.failure) if cached.failure is not None else visitor.once(_in(asked, folder))
    foreign = code.foreign()
    if foreign is not None:
        module, file = foreign
        return Ran(
            failure=Failure("skipped", f"{module} was imported from {file}, which is not the code that was asked for")
        )
    broken = visitor.broken()
    if broken is not None and ran.failure is None:
        return Ran(failure=Failure("error", f"the device context is lost: {broken}"))
    return ran


def _in(asked: Once, folder: str) -> Once:
    return dataclasses.replace(asked, task=dataclasses.replace(asked.task, cache_dir=folder))


def _say(text: str) -> None:
    sys.stderr.write(f"regress: {text}\n")
    sys.stderr.flush()
