"""Who is told of what is new: a command of the user's, once, with the document on its stdin."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from regress.run.shell import shell

TIMEOUT_S = 60.0


def tell(command: str, document: str) -> str:
    """Run the command in this folder. Returns what went wrong, or nothing."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out:
        given.write(document.encode())
        given.seek(0)
        try:
            wrong = shell(command, Path.cwd(), dict(os.environ), out, TIMEOUT_S, given)
        except KeyboardInterrupt:
            wrong = "interrupted"
        out.seek(0)
        said = out.read().decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(said) if line.strip()), "")
    return ": ".join(filter(None, [wrong, last])) if wrong else ""
