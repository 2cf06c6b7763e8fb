"""Real repositories, made for each test."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from regress.errors import RevisionError
from regress.git import Repository, open_repository

DAY = 86400


class Project:
    """A git repository that a test writes to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = 1_700_000_000
        root.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str | bytes) -> str:
        env = {**os.environ, "GIT_AUTHOR_DATE": f"{self.clock} +0000", "GIT_COMMITTER_DATE": f"{self.clock} +0000"}
        done = subprocess.run(["git", *arguments], cwd=self.root, env=env, check=True, capture_output=True)
        return done.stdout.decode("utf-8", "replace").strip()

    def commit(self, subject: str | bytes, **files: str) -> str:
        """Commit `files` (name without dot-py: content) a day after the last commit; its sha."""
        self.clock += DAY
        for name, content in (files or {"code": repr(subject)}).items():
            (self.root / f"{name}.py").write_text(content)
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")

    def open(self) -> Repository:
        return open_repository(self.root)


@pytest.fixture(autouse=True)
def _plain_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """git as on a fresh machine, with a name to commit under."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    config = tmp_path / "gitconfig"
    config.write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    return tmp_path / "trees"


def refusal(repository: Repository, revision: str) -> RevisionError:
    """What resolving it is refused with."""
    with pytest.raises(RevisionError) as caught:
        repository.resolve(revision)
    return caught.value


def half_made(git_dir: Path, sha: str, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Another process has begun to make a worktree of the repository, and goes on while one sleeps; how long one has slept."""
    entry, slept = git_dir / "worktrees" / "other", list[float]()
    entry.mkdir(parents=True)
    for name, content in {"gitdir": "/elsewhere/.git\n", "HEAD": f"{sha}\n", "commondir": ""}.items():
        (entry / name).write_text(content)

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        (entry / "commondir").write_text("../..\n")

    monkeypatch.setattr(time, "sleep", sleep)
    return slept
