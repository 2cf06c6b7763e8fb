"""One command in one job of a cluster: what it prints comes here, Ctrl-C goes there, and its exit code is ours."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from regress.cluster.engine import Attached, engine_of, placed, prelude
from regress.config import kinds_of
from regress.errors import ConfigError, Exit
from regress.model import Cluster, Kind
from regress.session import Request, Session


def away(request: Request, words: Sequence[str], on: str, several: bool) -> int:
    """Run `regress` with these words, less `--on`, on a node of that kind, in this folder; its exit code. `several`: whether
    the command measures on several GPUs where it is told to.

    Raises ConfigError where there is no such kind, NothingMeasured where the cluster takes no such job.
    """
    session = Session(request)
    kinds = kinds_of(session.config.settings.cluster, on)
    cluster = placed(session.config.settings.cluster, session.cache)
    if len(kinds) != 1:
        names = ", ".join(kind.name for kind in kinds)
        raise ConfigError(
            f"{on} is {names}", why="this command is one job, on a node of one kind", fix=f"--on {kinds[0].name}"
        )
    (kind,) = kinds
    job = in_this_folder(cluster, kind, there(words, kind, several))
    request.note(f"waiting for a node of kind {kind.name}")
    name = f"regress-{os.getpid()}-{time.time_ns() % 10**6}"
    return waited(engine_of(cluster).attach(kind, job, name), request.note)


def in_this_folder(cluster: Cluster, kind: Kind, words: Sequence[str]) -> str:
    """The text of a job that runs `regress` with these words in this folder, which the node has to see."""
    program = [sys.executable, "-m", "regress", *words]
    came = f'echo "on ${{SLURMD_NODENAME:-$(hostname)}} after $(($(date +%s) - {int(time.time())})) s" >&2'
    return "\n".join(
        [came, *prelude(cluster, kind), f"cd {shlex.quote(str(Path.cwd()))}", f"exec {shlex.join(program)}"]
    )


def there(words: Sequence[str], kind: Kind, several: bool) -> list[str]:
    """The words as the node gets them: without `--on`, with the kind as the machine's name, on all GPUs of the job."""
    node_words: list[str] = []
    left = iter(words)
    for word in left:
        if word == "--on":
            next(left, None)
        elif not word.startswith("--on="):
            node_words.append(word)
    given = {word.partition("=")[0] for word in node_words}
    node_words += [] if "--machine" in given else ["--machine", kind.name]
    return node_words + (["--gpus", "all"] if several and kind.gpus > 1 and "--gpus" not in given else [])


def waited(attached: Attached, note: Callable[[str], None]) -> int:
    """Wait for the end of a job: its exit code. The first Ctrl-C is passed on, so that what was measured is reported; the
    second ends the job."""
    asked = 0
    while True:
        try:
            code = attached.wait()
        except KeyboardInterrupt:
            asked += 1
            if asked == 1:
                note("the job was asked to end; press Ctrl-C again to cancel it")
                attached.interrupt()
            else:
                attached.cancel()
            continue
        return Exit.INTERRUPTED if asked > 1 or (asked and code not in tuple(Exit)) else code
