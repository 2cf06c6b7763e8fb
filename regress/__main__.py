"""The command, and `python -m regress`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; Ctrl-C while that is still being loaded ends it like any other. On a system that lacks what
    measuring is made of (fork, flock), a line says so."""
    if sys.platform != "linux":
        sys.stderr.write(
            f"error: regress needs Linux, and this is {sys.platform}\n"
            "why:   it forks the processes that measure, and locks files and GPUs as Linux does\n"
            "fix:   run it on Linux; on Windows in WSL 2, elsewhere in a container or a virtual machine\n"
        )
        sys.exit(2)
    try:
        from regress.cli import main as command

        command()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
