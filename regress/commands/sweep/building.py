"""The builds of a group, several at once."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from regress.children import start
from regress.config import environment as environment_of
from regress.run.execute import Watcher
from regress.session import Session
from regress.text.wording import counted


def build(session: Session, revisions: Sequence[str], environment: str, watcher: Watcher) -> None:
    """Build several commits at once; preparing them finds what they have built, and says what is wrong with what has not.

    Each in a process of the program: Ctrl-C interrupts only the main thread of a process, and there it ends the build that is
    under way, with all that it has started."""
    if not session.config.settings.build or environment_of(session.config, environment).asv or len(revisions) < 2:
        return
    file = session.request.config_file
    options = ["-q", *(["--config", str(file.resolve())] if file is not None else [])]
    options += ["--env", environment] if environment else []
    cache = session.request.overrides.get("cache_dir")  # a node's, whatever the configuration says
    options += ["--cache-dir", cache] if cache else []
    cores = max(2, os.cpu_count() or 2)
    watcher.note(f"building {counted(len(revisions), 'commit')}")
    waiting, running = list(revisions), list[subprocess.Popen[bytes]]()
    try:
        while waiting or running:
            while waiting and len(running) < cores:
                words = [sys.executable, "-m", "regress", "build", waiting.pop(0), *options]
                folder, null = session.request.start, subprocess.DEVNULL
                running.append(
                    start(words, alone=False, end=_interrupt, cwd=folder, stdin=null, stdout=null, stderr=null)
                )
            running[0].wait()
            running = [process for process in running if process.poll() is None]
    finally:
        for process in running:
            _interrupt(process)
        for process in running:
            process.wait()


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    """It ends with all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
