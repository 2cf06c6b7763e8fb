"""The copy of a project that nodes read: real git."""

from __future__ import annotations

from pathlib import Path

import pytest

from regress.errors import RegressError
from regress.git import checkout, publish
from regress.git.mirrors import TREES
from tests.git.conftest import Project


def published(p: Project, shared: Path, name: str = "key") -> str:
    sha = p.git("rev-parse", "HEAD")
    publish(p.open(), sha, shared / "repository.git", name)
    return sha


def test_clones_of_one_project_share_a_copy_and_another_project_is_refused(project: Project, tmp_path: Path) -> None:
    project.commit("one")
    first = published(project, tmp_path / "shared")
    project.git("clone", "-q", ".", str(tmp_path / "clone"))
    clone: Project = Project.__new__(Project)
    clone.root, clone.clock = tmp_path / "clone", project.clock
    clone.commit("two")
    second = published(clone, tmp_path / "shared", "other")
    for sha in (first, second):
        _, tree = checkout(tmp_path / "shared" / "repository.git", sha, tmp_path / "scratch")
        assert (tree / "code.py").is_file()

    other = Project(tmp_path / "other")
    other.commit("another root")
    with pytest.raises(RegressError) as raised:
        published(other, tmp_path / "shared")
    assert raised.value.what == f"{tmp_path / 'shared'} is the folder of another project"
    assert raised.value.fix.endswith(f'"shared": "{tmp_path}/shared/other"')
    assert project.git("--git-dir", str(tmp_path / "shared" / "repository.git"), "rev-parse", "main") == second
    assert not list((tmp_path / "shared").glob(".mirror-*"))


def test_a_node_keeps_the_clones_of_two_projects_apart(project: Project, tmp_path: Path) -> None:
    other = Project(tmp_path / "other")
    held = []
    for own in (project, other, project):
        sha = own.commit("one")
        published(own, tmp_path / own.root.name / "shared")
        held.append(checkout(tmp_path / own.root.name / "shared" / "repository.git", sha, tmp_path / "scratch"))
    assert all(repository.resolve("main") and (tree / "code.py").is_file() for repository, tree in held)
    assert held[0][0].root == held[2][0].root != held[1][0].root


def test_a_node_keeps_few_worktrees_of_runs_that_are_over(project: Project, tmp_path: Path) -> None:
    shas = [project.commit(f"commit {at}") for at in range(TREES + 2)]
    published(project, tmp_path / "shared")
    trees = [checkout(tmp_path / "shared" / "repository.git", sha, tmp_path / "scratch")[1] for sha in shas]
    assert [tree.is_dir() for tree in trees] == [False] * 2 + [True] * TREES


def test_a_commit_on_no_branch_is_there_where_it_is_asked_for(project: Project, tmp_path: Path) -> None:
    project.commit("one")
    lost = project.commit("rebased away")
    project.git("reset", "-q", "--hard", "HEAD~1")
    head, mirror = project.git("rev-parse", "HEAD"), tmp_path / "shared" / "repository.git"
    publish(project.open(), head, mirror, "key", [head, lost])
    repository, _ = checkout(mirror, head, tmp_path / "scratch")
    assert repository.resolve(lost).subject == "rebased away"
    assert project.git("--git-dir", str(mirror), "for-each-ref", "--format=%(refname)", "refs/regress").split() == [
        "refs/regress/key",
        f"refs/regress/key-{lost}",
    ]


def test_of_two_that_publish_at_once_both_do(project: Project, tmp_path: Path) -> None:
    """Another one has moved a branch of the copy, when git is about to move it: its hook runs right before."""
    project.commit("one")
    published(project, tmp_path / "shared")
    mirror = tmp_path / "shared" / "repository.git"
    head = project.commit("two")
    hook = mirror / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nrm $0 && git update-ref refs/heads/main {head}\n")
    hook.chmod(0o755)
    published(project, tmp_path / "shared", "other")
    assert not hook.exists()
    refs = project.git("--git-dir", str(mirror), "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    assert {f"refs/heads/main {head}", f"refs/regress/other {head}"} < set(refs)
