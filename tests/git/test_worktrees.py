"""Worktrees: made, kept, mended and removed."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from regress.errors import RegressError
from regress.git import open_repository
from tests.git.conftest import Project, half_made

ROOT = Path(__file__).parents[2]


def test_a_worktree_is_made_once_and_kept_with_what_was_built_in_it(project: Project, trees: Path) -> None:
    first = project.commit("one", code="1")
    project.commit("two", code="2")
    tree = project.open().worktrees.get(project.open().resolve(first), trees)
    assert tree.parent.parent == trees
    assert tree.name == first
    assert (tree / "code.py").read_text() == "1"
    (tree / "built.so").write_text("x")
    repository = project.open()
    assert repository.worktrees.get(repository.resolve(first), trees) == tree
    assert (tree / "built.so").exists()
    assert (project.root / "code.py").read_text() == "2"
    assert project.git("branch", "--list") == "* main"


def _break_file(tree: Path) -> None:
    (tree / "code.py").write_text("tampered")


def _lose_file(tree: Path) -> None:
    (tree / "code.py").unlink()


def _lose_link(tree: Path) -> None:
    (tree / ".git").unlink()


def _break_link(tree: Path) -> None:
    (tree / ".git").write_text("junk")


def _lose_tree(tree: Path) -> None:
    subprocess.run(["rm", "-rf", str(tree)], check=True)


def _move_head(tree: Path) -> None:
    subprocess.run(["git", "-C", str(tree), "commit", "-q", "--allow-empty", "-m", "x"], check=True)


def _as_killed(tree: Path) -> None:
    (tree.parent / f"{tree.name}.lock").write_text("")


@pytest.mark.parametrize(
    "damage",
    [_break_file, _lose_file, _lose_link, _break_link, _lose_tree, _move_head, _as_killed],
    ids=lambda f: f.__name__,
)
def test_a_broken_worktree_is_made_again(project: Project, trees: Path, damage: object) -> None:
    sha = project.commit("one", code="1")
    repository = project.open()
    commit = repository.resolve(sha)
    tree = repository.worktrees.get(commit, trees)
    (tree / "built.so").write_text("x")
    assert callable(damage)
    damage(tree)
    assert repository.worktrees.get(commit, trees) == tree
    assert (tree / "code.py").read_text() == "1"
    assert not (tree / "built.so").exists()
    assert project.git("-C", str(tree), "rev-parse", "HEAD") == sha
    assert project.git("worktree", "list").count(sha) == 1


def test_a_worktree_inside_the_repository_is_not_taken_for_it(project: Project) -> None:
    project.commit("one", code="1")
    repository = project.open()
    head = repository.resolve("HEAD")
    tree = repository.worktrees.get(head, project.root / "cache")
    (tree / ".git").unlink()  # from here git finds the repository around it, at the same commit and unchanged
    (tree / "code.py").unlink()
    assert (repository.worktrees.get(head, project.root / "cache") / "code.py").exists()


def test_a_worktree_that_is_never_clean_is_still_reused(project: Project, trees: Path) -> None:
    # Files committed with CRLF before "text=auto" came differ from their commit in every checkout.
    (project.root / "dos.txt").write_bytes(b"a\r\nb\r\n")
    project.commit("one")
    (project.root / ".gitattributes").write_text("* text=auto\n")
    project.git("add", ".gitattributes")
    project.git("commit", "-q", "-m", "two")
    repository = project.open()
    head = repository.resolve("HEAD")
    tree = repository.worktrees.get(head, trees)
    os.utime(tree / "dos.txt")
    kept = repository.worktrees.get(head, trees)
    (kept / "built.so").write_text("x")
    assert (repository.worktrees.get(head, trees) / "built.so").exists()


def test_a_worktree_that_another_process_is_making_is_waited_for(
    project: Project, trees: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git fails, whatever it is to do, where the entry of any worktree is there in part."""
    sha = project.commit("one", code="1")
    slept = half_made(project.root / ".git", sha, monkeypatch)
    repository = project.open()
    assert (repository.worktrees.get(repository.resolve(sha), trees) / "code.py").read_text() == "1"
    assert len(slept) == 1


def test_processes_that_ask_at_once_get_the_same_worktree(project: Project, trees: Path, tmp_path: Path) -> None:
    for index in range(30):
        (project.root / f"file{index}.py").write_text("x")
    sha = project.commit("one")
    made = tmp_path / "made"
    code = (
        "import sys; from pathlib import Path; import regress.git as git; from regress.git.worktrees import Worktrees\n"
        "make = Worktrees._make\n"
        f"Worktrees._make = lambda *a: (open({str(made)!r}, 'a').write('x'), make(*a))[1]\n"
        f"r = git.open_repository(Path({str(project.root)!r}))\n"
        f"print(r.worktrees.get(r.resolve('HEAD'), Path({str(trees)!r}))); sys.stdout.flush(); sys.stdin.read()\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    running = [
        subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    printed = [process.stdout.readline() for process in running if process.stdout is not None]
    # By now all three hold it: none waited for another to end.
    for process in running:
        process.communicate()
    assert [process.returncode for process in running] == [0, 0, 0]
    assert printed == [f"{next(trees.glob(f'*/{sha}'))}\n"] * 3
    assert made.read_text() == "x"
    assert project.git("worktree", "list").count(sha) == 1


def test_a_worktree_in_use_is_neither_made_again_nor_removed(
    project: Project, trees: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regress.git.worktrees._LOCK_TRIES", 2)
    project.commit("one", code="1")
    repository = project.open()
    commit = repository.resolve("HEAD")
    open_repository(project.root).worktrees.get(commit, trees)
    user = open_repository(project.root)
    tree = user.worktrees.get(commit, trees)  # reused, not made
    (tree / "code.py").write_text("changed")
    with pytest.raises(RegressError, match="in use and was changed"):
        repository.worktrees.get(commit, trees)
    assert (tree / "code.py").read_text() == "changed"
    assert repository.worktrees.trim(trees, 0) == []
    del user  # as when its process ends
    assert repository.worktrees.get(commit, trees) == tree
    assert (tree / "code.py").read_text() == "1"


def test_a_maker_that_was_interrupted_leaves_nothing(
    project: Project, trees: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.commit("one", code="1")
    repository = project.open()
    commit = repository.resolve("HEAD")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    (repository.worktrees.get(commit, trees) / "code.py").write_text("changed")
    with monkeypatch.context() as patched:
        patched.setattr("regress.git.worktrees.Worktrees.lacking", interrupt)
        with pytest.raises(KeyboardInterrupt):
            repository.worktrees.get(commit, trees)
    assert not list(trees.glob(f"*/{commit.sha}"))
    assert project.git("worktree", "list").count("\n") == 0
    with next(trees.glob(f"*/{commit.sha}.lock")).open("rb") as lock:
        assert lock.read() == b""
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert (repository.worktrees.get(commit, trees) / "code.py").exists()


def test_worktrees_are_removed_but_for_those_to_keep(project: Project, trees: Path) -> None:
    shas = [project.commit(subject) for subject in ("one", "two", "three")]
    repository = project.open()
    made = [repository.worktrees.get(repository.resolve(sha), trees) for sha in shas]
    repository.worktrees.get(repository.resolve(shas[1]), trees)
    assert repository.worktrees.trim(trees, 1) == [], "all are in use here"
    repository.worktrees.release()
    assert sorted(repository.worktrees.trim(trees, 1)) == sorted([made[0], made[2]])
    assert [path.exists() for path in made] == [False, True, False]
    assert project.git("worktree", "list").count(str(trees)) == 1
    assert repository.worktrees.get(repository.resolve(shas[0]), trees).is_dir()


def test_worktrees_of_the_user_are_left_alone(project: Project, trees: Path, tmp_path: Path) -> None:
    project.commit("one")
    project.git("worktree", "add", "-q", "-b", "away", "../away")
    (tmp_path / "away").rename(tmp_path / "unmounted")
    repository = project.open()
    repository.worktrees.get(repository.resolve("HEAD"), trees)
    repository.worktrees.release()
    repository.worktrees.trim(trees, 0)
    (tmp_path / "unmounted").rename(tmp_path / "away")
    assert project.git("-C", "../away", "rev-parse", "--abbrev-ref", "HEAD") == "away"


def test_a_worktree_can_be_made_from_a_linked_worktree(project: Project, trees: Path, tmp_path: Path) -> None:
    project.commit("one", code="1")
    project.git("worktree", "add", "-q", "-b", "linked", "../linked")
    repository = open_repository(tmp_path / "linked")
    assert repository.common_dir == project.root / ".git"
    assert repository.git_dir != repository.common_dir
    assert (repository.worktrees.get(repository.resolve("linked"), trees) / "code.py").read_text() == "1"


def test_a_folder_that_cannot_be_made_is_named(project: Project, tmp_path: Path) -> None:
    project.commit("one")
    (tmp_path / "file").write_text("")
    repository = project.open()
    with pytest.raises(RegressError, match="cannot make") as caught:
        repository.worktrees.get(repository.resolve("HEAD"), tmp_path / "file" / "trees")
    assert "cache_dir" in caught.value.fix


def test_g10_hooks_do_not_run(project: Project, trees: Path, tmp_path: Path) -> None:
    project.commit("one")
    hook = project.root / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    project.git("checkout", "-q", "-b", "other")
    assert (tmp_path / "ran").exists()  # it works
    (tmp_path / "ran").unlink()
    repository = project.open()
    repository.worktrees.get(repository.resolve("HEAD"), trees)
    assert not (tmp_path / "ran").exists()


def test_g10_ignored_files_of_the_working_tree_are_not_copied(project: Project, trees: Path) -> None:
    (project.root / ".gitignore").write_text("*.so\n")
    project.commit("one")
    (project.root / "big.so").write_text("x")
    repository = project.open()
    assert not (repository.worktrees.get(repository.resolve("HEAD"), trees) / "big.so").exists()


POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 5\n"


def test_g10_lfs_pointers_are_refused_with_the_command_that_fetches(project: Project, trees: Path) -> None:
    (project.root / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    (project.root / "real.bin").write_text("content")
    (project.root / "data.bin").write_text(POINTER)
    sha = project.commit("one", pointer=POINTER)  # a pointer.py is just a text that looks like one
    repository = project.open()
    with pytest.raises(RegressError, match="Git LFS") as caught:
        repository.worktrees.get(repository.resolve("HEAD"), trees)
    assert caught.value.why.startswith("data.bin ")
    assert caught.value.fix == f"git lfs install && git lfs fetch origin {sha}"
    assert not list(trees.glob(f"*/{sha}"))
    project.git("rm", "-q", "-f", "data.bin")
    project.commit("two")
    assert (repository.worktrees.get(repository.resolve("HEAD"), trees) / "pointer.py").exists()


def test_g10_a_pointer_that_does_not_matter_is_left_and_told(project: Project, trees: Path) -> None:
    (project.root / ".gitattributes").write_text("*.bin filter=lfs\n")
    (project.root / "data.bin").write_text(POINTER)
    project.commit("one")
    repository = project.open()
    tree = repository.worktrees.get(repository.resolve("HEAD"), trees, lambda tree, name: name != "data.bin")
    assert repository.worktrees.lacking(tree) == ["data.bin"]
    with pytest.raises(RegressError, match="Git LFS"):  # who needs it is not handed a tree without it
        repository.worktrees.get(repository.resolve("HEAD"), trees)


def test_g10_an_lfs_filter_that_fails_is_told_as_such(project: Project, trees: Path) -> None:
    (project.root / ".gitattributes").write_text("*.bin filter=lfs\n")
    (project.root / "data.bin").write_text(POINTER)
    project.commit("one")
    project.git("config", "filter.lfs.smudge", "git-lfs-is-not-here smudge -- %f")
    project.git("config", "filter.lfs.required", "true")
    repository = project.open()
    with pytest.raises(RegressError, match="Git LFS"):
        repository.worktrees.get(repository.resolve("HEAD"), trees)


# -- submodules ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def with_module(project: Project, tmp_path: Path) -> Project:
    """A project whose last commit adds a submodule; the user has a copy of it, and its origin is away."""
    origin = Project(tmp_path / "origin")
    origin.commit("library", lib="1")
    project.commit("one")
    project.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(origin.root), "third/lib")
    project.commit("two")
    origin.root.rename(tmp_path / "away")
    return project


def test_g7_a_submodule_comes_from_the_users_copy_without_a_network(with_module: Project, trees: Path) -> None:
    repository = with_module.open()
    config = (with_module.root / ".git" / "config").read_bytes()
    before = repository.worktrees.get(repository.resolve("HEAD~1"), trees)
    after = repository.worktrees.get(repository.resolve("HEAD"), trees)
    assert not (before / "third").exists()
    assert (after / "third" / "lib" / "lib.py").read_text() == "1"
    assert (with_module.root / ".git" / "config").read_bytes() == config
    (after / "third" / "lib" / "built.so").write_text("x")
    assert (repository.worktrees.get(repository.resolve("HEAD"), trees) / "third" / "lib" / "built.so").exists()
    repository.worktrees.release()
    assert len(repository.worktrees.trim(trees, 0)) == 2
    assert with_module.git("worktree", "list").count("\n") == 0


def test_g7_lfs_pointers_in_a_submodule_are_refused_too(project: Project, trees: Path, tmp_path: Path) -> None:
    origin = Project(tmp_path / "origin")
    (origin.root / ".gitattributes").write_text("*.bin filter=lfs\n")
    (origin.root / "data.bin").write_text(POINTER)
    origin.commit("weights")
    project.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(origin.root), "third/lib")
    sha = project.commit("two")
    repository = project.open()
    with pytest.raises(RegressError, match="Git LFS") as caught:
        repository.worktrees.get(repository.resolve("HEAD"), trees)
    assert caught.value.why.startswith("third/lib/data.bin is a Git LFS pointer")
    assert caught.value.fix == "git lfs install && git -C third/lib lfs fetch --all"
    assert not list(trees.glob(f"*/{sha}"))


def test_g7_a_submodule_that_cannot_be_had_is_an_error(with_module: Project, trees: Path) -> None:
    subprocess.run(["rm", "-rf", str(with_module.root / ".git" / "modules")], check=True)
    repository = with_module.open()
    with pytest.raises(RegressError, match="cannot check out the submodules") as caught:
        repository.worktrees.get(repository.resolve("HEAD"), trees)
    assert "origin" in caught.value.why
    assert not any(path.is_dir() for path in trees.glob("*/*"))


def test_g7_the_other_submodules_are_there_where_one_cannot_be_had(with_module: Project, trees: Path) -> None:
    other = Project(with_module.root.parent / "other")
    other.commit("docs", page="1")
    with_module.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.root), "third/zdocs")
    with_module.commit("three")
    subprocess.run(["rm", "-rf", str(with_module.root / ".git" / "modules" / "third" / "lib")], check=True)
    repository = with_module.open()
    tree = repository.worktrees.get(repository.resolve("HEAD"), trees, lambda tree, name: name != "third/lib")
    assert repository.worktrees.lacking(tree) == ["third/lib"]
    assert (tree / "third" / "zdocs" / "page.py").read_text() == "1"


def test_g7_a_copy_that_is_too_old_is_followed_by_the_origin(with_module: Project, trees: Path, tmp_path: Path) -> None:
    (tmp_path / "away").rename(tmp_path / "origin")
    origin = tmp_path / "origin"
    (origin / "lib.py").write_text("2")
    with_module.git("-C", str(origin), "commit", "-q", "-a", "-m", "newer")
    newer = with_module.git("-C", str(origin), "rev-parse", "HEAD")
    with_module.git("update-index", "--cacheinfo", f"160000,{newer},third/lib")
    with_module.git("commit", "-q", "-m", "three")
    with_module.git("config", "--global", "protocol.file.allow", "always")
    repository = with_module.open()
    tree = repository.worktrees.get(repository.resolve("HEAD"), trees)
    assert (tree / "third" / "lib" / "lib.py").read_text() == "2"


def test_two_nodes_with_disks_of_their_own_at_one_path_leave_each_other_alone(project: Project, trees: Path) -> None:
    shas = [project.commit(subject) for subject in ("one", "two")]
    disks = [trees.with_name("first"), trees.with_name("second")]
    for disk, sha in zip(disks, shas, strict=True):
        tree = project.open().worktrees.get(project.open().resolve(sha), trees)
        project.open().worktrees.get(project.open().resolve(shas[0]), trees)
        trees.rename(disk)  # the other node does not see it
    for disk, sha in zip(disks, shas, strict=True):
        disk.rename(trees)
        (tree,) = trees.glob(f"*/{sha}")
        assert project.git("-C", str(tree), "status", "--porcelain") == ""
        assert project.git("-C", str(tree), "rev-parse", "HEAD") == sha
        (tree / "built.so").write_text("x")
        assert project.open().worktrees.get(project.open().resolve(sha), trees) == tree
        assert (tree / "built.so").exists(), "it is reused"
        trees.rename(disk)


# -- which worktrees are kept --------------------------------------------------------------------------------------------


def test_the_worktrees_that_were_used_last_are_kept(project: Project, trees: Path) -> None:
    repository = project.open()
    commits = [repository.resolve(project.commit(str(number))) for number in range(4)]
    for age, commit in enumerate([commits[0], commits[1], commits[2], commits[0], commits[3]]):
        tree = repository.worktrees.get(commit, trees)
        os.utime(tree.with_name(tree.name + ".lock"), (age, age))
    other = project.open()
    other.worktrees.get(commits[1], trees)
    os.utime(tree.with_name(f"{commits[1].sha}.lock"), (0, 0))
    repository.worktrees.release()
    assert repository.worktrees.trim(trees, 2) == [tree.with_name(commits[2].sha)], "another process is in the oldest"
    assert sorted(path.name for path in tree.parent.iterdir() if path.is_dir()) == sorted(
        commits[index].sha for index in (0, 1, 3)
    )
