"""A new git repository, made with plain git so that the same files give the same commits everywhere."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from regress.errors import RegressError

from .files import Tree

_PLAIN = {
    "core.autocrlf": "false",
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.hooksPath": os.devnull,
    "commit.gpgSign": "false",
    "gc.auto": "0",
    "i18n.commitEncoding": "utf-8",
}
"""What the user's configuration must not decide here. Ignoring its file is not enough: `~/.config/git/ignore` and `attributes`
are read all the same, and gits before 2.32 do not know GIT_CONFIG_GLOBAL."""


class DemoRepository:
    """A repository being written, one commit after the other, on the branch `main`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tree: Tree = {}
        folder.mkdir(parents=True, exist_ok=True)
        # Without a template there are no hooks.
        self._git("init", "--quiet", "--template=")
        # `init --initial-branch` is newer than the oldest git in use.
        self._git("symbolic-ref", "HEAD", "refs/heads/main")

    def commit(self, tree: Tree, message: str, author: tuple[str, str], date_s: int) -> str:
        """Write the files of `tree` and commit them, by that author (name, address) at that time; files are never removed.

        Returns the sha.
        """
        for path, text in tree.items():
            if self._tree.get(path) != text:
                file = self._folder / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8", newline="\n")
        self._tree = tree
        who: dict[str, str] = {}
        for role in ("AUTHOR", "COMMITTER"):
            who |= {
                f"GIT_{role}_NAME": author[0],
                f"GIT_{role}_EMAIL": author[1],
                f"GIT_{role}_DATE": f"{date_s} +0000",
            }
        self._git("add", "--all")
        self._git("commit", "--quiet", "--no-verify", "--file=-", input=message, **who)
        return self._git("rev-parse", "HEAD").strip()

    def _git(self, *arguments: str, input: str = "", **variables: str) -> str:
        options = [word for key, value in _PLAIN.items() for word in ("-c", f"{key}={value}")]
        # A caller's GIT_DIR or GIT_INDEX_FILE, as in a hook, would name another repository.
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        environment |= {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            **variables,
        }
        try:
            done = subprocess.run(
                ["git", *options, *arguments],
                cwd=self._folder,
                env=environment,
                input=input,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
            )
        except FileNotFoundError as error:
            raise RegressError("git was not found", why=str(error), fix="install git and put it on PATH") from error
        if done.returncode != 0:
            why = (done.stderr.strip() or done.stdout.strip()).split("\n")[0]
            raise RegressError(f"git {arguments[0]} failed in {self._folder}", why=why, fix="try another folder")
        return done.stdout
