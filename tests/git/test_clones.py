"""Clones of projects that are known by their address: real git, file:// addresses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regress.errors import NoRepository, RevisionError
from regress.git import Clone, open_repository
from tests.git.conftest import Project, half_made

ROOT = Path(__file__).parents[2]


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def clone(project: Project, tmp_path: Path, notes: list[str]) -> Clone:
    project.commit("one")
    project.git("tag", "v1")
    project.git("branch", "side")
    return Clone(f"file://{project.root}", tmp_path / "cache" / "repository.git", notes.append)


def test_a_project_is_cloned_once_with_all_branches_and_tags(clone: Clone, notes: list[str]) -> None:
    for _ in range(2):
        repository = open_repository(clone)
        assert (repository.root, repository.is_bare) == (clone.place, True)
        assert repository.resolve("v1") == repository.resolve("side") == repository.resolve("HEAD")
        assert (repository.default_branch(), repository.head_words) == ("main", "branch main")
    assert notes == [f"cloning {clone.address}, once; it is kept in {clone.place}"]


def test_fetching_follows_branches_tags_and_what_head_is(project: Project, clone: Clone) -> None:
    old = open_repository(clone).resolve("main").sha
    project.git("branch", "-m", "main", "trunk")
    project.git("branch", "-D", "side")
    project.commit("two")
    new = project.git("rev-parse", "HEAD")
    project.git("tag", "-f", "v1")
    repository = open_repository(clone)
    assert repository.resolve("HEAD").sha == old
    repository.fetch()
    assert [repository.resolve(name).sha for name in ("HEAD", "trunk", "v1")] == [new] * 3
    assert repository.current_branch() == "trunk"
    assert repository.newest_of("side") == repository.newest_of("main") == []


def test_a_clone_is_fetched_also_while_another_process_makes_a_worktree_of_it(
    project: Project, clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = open_repository(clone)
    slept = half_made(clone.place, repository.resolve("main").sha, monkeypatch)
    new = project.commit("two")
    repository.fetch()
    assert repository.resolve("main").sha == new
    assert len(slept) == 1


def test_a_named_commit_that_is_not_there_is_fetched_and_one_that_is_nowhere_is_unknown(
    project: Project, clone: Clone, notes: list[str]
) -> None:
    repository = open_repository(clone)
    new = project.commit("two")
    with pytest.raises(RevisionError, match="unknown revision"):
        open_repository(Clone(clone.address, clone.place, notes.append, fetches=False)).resolve(new)
    assert repository.resolve(new).sha == new
    for _ in range(2):
        with pytest.raises(RevisionError, match="unknown revision") as caught:
            repository.resolve("nowhere")
        assert caught.value.fix == f"see git -C {clone.place} log --oneline --all"
    assert notes.count(f"fetching {clone.address}") == 1  # once a command is enough


def test_an_address_that_cannot_be_reached_is_said_with_the_way_on(project: Project, clone: Clone) -> None:
    open_repository(clone)
    project.root.rename(project.root.with_name("gone"))
    with pytest.raises(RevisionError, match="unknown revision") as caught:
        open_repository(clone).resolve("v2")
    assert f"cannot fetch {clone.address}" in caught.value.why
    assert "--no-fetch to use what is here" in caught.value.fix
    with pytest.raises(NoRepository, match="cannot clone") as refused:
        open_repository(Clone(clone.address, clone.place.with_name("other.git"), print))
    assert "--no-fetch" not in refused.value.fix
    with pytest.raises(NoRepository, match="there is no clone"):
        open_repository(Clone(clone.address, clone.place.with_name("other.git"), print, fetches=False))


@pytest.mark.parametrize(
    ("err", "what"),
    [
        ("fatal: unable to access 'https://me:token@x.example/p/': Could not resolve host: x.example", "no network"),
        (
            "fatal: could not read Username for 'https://x.example': terminal prompts disabled",
            "git has no permission to read it",
        ),
        (
            "git@x.example: Permission denied (publickey).\nfatal: Could not read from remote repository.",
            "git has no permission to read it",
        ),
    ],
)
def test_what_git_says_of_an_address_is_told_without_the_token(err: str, what: str) -> None:
    told = Clone("https://me:token@x.example/p", Path("/nowhere/repository.git"), print)._error("clone", err)
    assert told.what.startswith("cannot clone https://x.example/p: ")
    assert what in told.what
    assert "token" not in told.what + told.why + told.fix


def test_a_shallow_clone_is_not_taken(project: Project, clone: Clone, tmp_path: Path) -> None:
    project.commit("two")
    project.git("clone", "-q", "--depth", "1", clone.address, str(tmp_path / "shallow"))
    wanted = Clone(f"file://{tmp_path / 'shallow'}", clone.place, print)
    with pytest.raises(NoRepository, match="is a shallow clone"):
        open_repository(wanted)
    assert not clone.place.exists()


def test_two_processes_make_one_clone(clone: Clone) -> None:
    code = (
        "import sys; from pathlib import Path; from regress.git import Clone, open_repository\n"
        f"print(open_repository(Clone({clone.address!r}, Path({str(clone.place)!r}), print)).resolve('v1').short)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [
        subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    printed = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert "".join(printed).count("cloning") == 1


def test_ctrl_c_while_cloning_leaves_nothing_half(clone: Clone, tmp_path: Path) -> None:
    """A git that never comes to an end stands in for a large project. What it says is more than a pipe holds, so it goes on
    once somebody reads it: a signal that came earlier would meet a driver that still starts it."""
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "git"
    fake.write_text(
        f'#!/bin/sh\nfor folder; do :; done; mkdir -p "$folder/objects"\ntrap "touch {ended}; exit 1" TERM INT\n'
        f"head -c 200000 /dev/zero\ntouch {begun}\nwhile :; do sleep 0.05; done\n"
    )
    fake.chmod(0o755)
    code = (
        "from pathlib import Path; from regress.git import Clone\n"
        f"Clone({clone.address!r}, Path({str(clone.place)!r}), print).ready()\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{fake.parent}:{os.environ['PATH']}"}
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=env,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while not begun.exists():
        assert process.poll() is None
        time.sleep(0.02)
    assert clone.place.with_suffix(".new").is_dir()
    process.send_signal(signal.SIGINT)
    assert process.wait() != 0
    assert ended.exists()  # git was not left behind
    assert [path.name for path in clone.place.parent.iterdir()] == ["repository.lock"]
    assert open_repository(clone).resolve("v1")
