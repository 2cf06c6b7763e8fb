"""Opening a repository, its history, what has changed in it, and the base of a comparison."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from regress.errors import RegressError, RevisionError
from regress.git import open_repository
from regress.git.running import output
from tests.git.conftest import DAY, Project, refusal

ROOT = Path(__file__).parents[2]


def test_a_repository_is_found_from_a_folder_in_it(project: Project) -> None:
    inner = project.root / "src" / "deep"
    inner.mkdir(parents=True)
    assert open_repository(inner).root == project.root


def test_a_folder_outside_git_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RegressError, match="not in a git repository"):
        open_repository(tmp_path)
    with pytest.raises(RegressError, match="there is no folder"):
        open_repository(tmp_path / "nowhere")


def test_a_bare_repository_has_commits_and_no_changes(project: Project, tmp_path: Path) -> None:
    sha = project.commit("first")
    project.git("clone", "-q", "--bare", ".", "../bare.git")
    for place in ("bare.git", "bare.git/refs"):
        bare = open_repository(tmp_path / place)
        assert (bare.root, bare.is_bare, bare.changed_files()) == (tmp_path / "bare.git", True, [])
    assert bare.resolve("HEAD").sha == sha
    assert not open_repository(project.root).is_bare
    assert (bare.worktrees.get(bare.resolve("HEAD"), tmp_path / "trees") / ".git").exists()


def test_a_repository_of_another_user_is_refused_with_the_command_that_allows_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(RegressError, match="refuses") as caught:
        project.open()
    assert caught.value.fix == f"git config --global --add safe.directory {project.root}"


def test_a_machine_without_git_is_told_so(project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = f"from pathlib import Path; from regress.git import open_repository; open_repository(Path({str(project.root)!r}))"
    env = {"PYTHONPATH": str(ROOT), "PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stderr.rstrip().endswith("RegressError: there is no git")
    project.open()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RegressError, match="there is no git"):
        project.open()


def test_the_module_imports_no_git_library() -> None:
    code = "import sys, regress.git, regress.config; print([m for m in ('git', 'json5', 'numpy', 'asv') if m in sys.modules])"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.check_output([sys.executable, "-c", code], env=env, text=True) == "[]\n"


def test_variables_of_a_hook_do_not_lead_elsewhere(
    project: Project, trees: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.commit("one")
    other = Project(tmp_path / "other")
    other.commit("other")
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.root / ".git" / "index"))
    repository = project.open()
    head = repository.resolve("HEAD")
    assert head.subject == "one"
    repository.worktrees.get(head, trees)
    assert not repository.is_dirty()


# -- history -------------------------------------------------------------------------------------------------------------


def test_g6_order_follows_the_graph_and_not_the_clock(project: Project) -> None:
    project.commit("root")
    project.git("checkout", "-q", "-b", "side")
    project.clock -= 100 * DAY  # a wrong clock: dated long before its parent
    project.commit("side", side="1")
    project.git("checkout", "-q", "main")
    project.clock += 300 * DAY
    project.commit("main", code="2")
    project.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    project.clock -= 250 * DAY
    project.commit("after", code="3")
    repository = project.open()
    commits = repository.commits("HEAD")
    order = {commit.sha: index for index, commit in enumerate(commits)}
    assert [commits[0].subject, commits[-1].subject] == ["root", "after"]
    assert len(commits) == 5
    assert all(order[parent] < order[commit.sha] for commit in commits for parent in commit.parents)
    assert {commit.subject for commit in repository.commits("side..HEAD")} == {"main", "merge", "after"}
    assert repository.commits("HEAD..HEAD") == []
    assert repository.merge_base("side", "main").subject == "side"


def test_a_range_with_an_unknown_end_names_that_end(project: Project) -> None:
    project.commit("one")
    with pytest.raises(RevisionError, match="unknown revision 'v9'"):
        project.open().commits("v9..main")


@pytest.mark.parametrize(
    "text", ["naïve ⚡ «测试»", "it's \"quoted\" & 'so'", "</script></td>-->", "tab\tand\x1f", "%H %x00"]
)
def test_g9_any_text_in_a_subject_or_an_author_comes_through(project: Project, text: str) -> None:
    name = "A " + text.replace("<", "").replace(">", "") + " B"  # git itself takes <> out of names, and trims them
    project.git("config", "user.name", name)
    project.commit(text)
    commit = project.open().resolve("HEAD")
    assert (commit.subject, commit.author) == (text, name)


def test_g9_bytes_that_are_no_utf8_do_not_stop_anything(project: Project) -> None:
    project.git("config", "i18n.commitEncoding", "ISO-8859-1")
    project.commit("caf\xe9".encode("latin-1"))
    assert project.open().resolve("HEAD").subject == "café"
    project.git("config", "i18n.commitEncoding", "UTF-8")
    project.git("tag", "before")
    (project.root / os.fsdecode(b"caf\xe9.txt")).write_text("x")
    project.git("branch", b"br\xe9nch")
    repository = project.open()
    assert repository.changed_files() == ["caf�.txt"]
    project.commit("broken XY")
    # `git commit` mends such bytes; other writers of commits do not.
    raw = subprocess.check_output(["git", "cat-file", "commit", "HEAD"], cwd=project.root).replace(b"XY", b"\xff\xfe")
    write = ["git", "hash-object", "-t", "commit", "-w", "--literally", "--stdin"]
    sha = subprocess.check_output(write, cwd=project.root, input=raw).decode().strip()
    assert repository.resolve(sha).subject == "broken ��"
    assert repository.changed_between("before", "HEAD") == ["caf�.txt", "code.py"]
    assert refusal(repository, "nosuch").fix


# -- changes -------------------------------------------------------------------------------------------------------------


def test_changes_are_tracked_and_untracked_files_but_not_ignored_ones(project: Project) -> None:
    project.commit("one", code="1", old="a long enough text to look like a rename\n" * 9)
    (project.root / ".gitignore").write_text("*.so\n")
    project.commit("two")
    project.git("config", "status.showUntrackedFiles", "no")
    project.git("config", "status.renames", "true")
    (project.root / "built.so").write_text("x")
    (project.root / "new folder").mkdir()
    (project.root / "new folder" / "é.py").write_text("x")
    project.git("mv", "old.py", "moved.py")
    assert sorted(project.open().changed_files()) == ["moved.py", "new folder/é.py", "old.py"]


def test_asking_for_changes_does_not_write_the_users_index(project: Project) -> None:
    project.commit("one", code="1")
    os.utime(project.root / "code.py", (1, 1))
    index = project.root / ".git" / "index"
    before = index.read_bytes()
    assert not project.open().is_dirty()
    assert index.read_bytes() == before


def test_g11_our_own_results_are_no_change(project: Project) -> None:
    first = project.commit("one", code="1")
    results = project.root / "history"
    (results / "box").mkdir(parents=True)
    (results / "box" / "1.json").write_text("{}")
    repository = project.open()
    assert repository.is_dirty()
    assert not repository.is_dirty([results])
    assert repository.default_base([results]) == ("HEAD~1", "HEAD~1")
    second = project.commit("results only", code="1")
    assert repository.changed_between(first, second) == ["history/box/1.json"]
    assert repository.changed_between(first, second, [results]) == []
    (project.root / "history.py").write_text("named alike")
    assert repository.changed_files([results]) == ["history.py"]


def test_g11_commits_of_results_alone_are_left_out(project: Project) -> None:
    results = project.root / "history [1]"  # a name that is no pattern

    def record(subject: str, **code: str) -> str:
        results.mkdir(exist_ok=True)
        (results / "1.json").write_text(subject)
        return project.commit(subject, **(code or {"code": "1"}))

    first = project.commit("one", code="1")
    record("results only")
    both = record("code and results", code="2")
    project.git("checkout", "-q", "-b", "side")
    side = project.commit("side", other="1")
    project.git("checkout", "-q", "main")
    record("more results", code="2")
    project.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    merge = project.git("rev-parse", "HEAD")
    last = project.commit("last", code="3")
    repository = project.open()
    assert len(repository.commits("HEAD")) == 7
    commits = repository.commits("HEAD", [results, project.root / "report", project.root.parent])
    assert [commit.sha for commit in commits] == [first, both, side, merge, last]
    assert [commit.sha for commit in repository.commits(f"{both}..HEAD", [results])] == [side, merge, last]


def test_g5_a_commit_that_was_rebased_away_is_held_by_nothing(project: Project) -> None:
    project.commit("one", code="1")
    gone = project.commit("two", code="2")
    repository = project.open()
    assert repository.is_kept(repository.resolve(gone))
    project.git("reset", "-q", "--hard", "HEAD~1")
    assert not repository.is_kept(repository.resolve(gone))
    project.git("tag", "kept", gone)
    assert repository.is_kept(repository.resolve(gone))
    project.git("tag", "-d", "kept")
    project.git("checkout", "-q", "--detach", gone)
    assert repository.is_kept(repository.resolve(gone))


# -- the default base ----------------------------------------------------------------------------------------------------


def test_the_base_on_the_default_branch_is_the_parent(project: Project) -> None:
    project.commit("one")
    project.commit("two")
    assert project.open().default_base() == ("HEAD~1", "HEAD~1")


def test_g4_the_base_of_uncommitted_changes_is_head(project: Project) -> None:
    project.commit("one", code="1")
    repository = project.open()
    assert not repository.is_dirty()
    (project.root / "code.py").write_text("2")
    assert repository.is_dirty()
    assert repository.default_base()[0] == "HEAD"


def test_what_git_does_not_know_changes_no_base(project: Project) -> None:
    project.commit("one", code="1")
    project.commit("two", code="2")
    (project.root / "left-by-a-build.txt").write_text("")
    repository = project.open()
    assert repository.is_dirty()
    assert repository.default_base() == ("HEAD~1", "HEAD~1")
    (project.root / "code.py").write_text("3")
    assert repository.default_base()[0] == "HEAD"


def test_beside_the_first_commit_there_is_what_git_does_not_know(project: Project) -> None:
    project.commit("one", code="1")
    repository = project.open()
    assert repository.default_base() == ("HEAD~1", "HEAD~1"), "nothing to compare with, as is said where it is resolved"
    (project.root / "bench.py").write_text("2")
    assert repository.default_base()[0] == "HEAD"


def test_the_base_of_a_branch_without_commits_is_the_parent(project: Project) -> None:
    project.commit("one")
    project.commit("two")
    project.git("checkout", "-q", "-b", "fresh")
    assert project.open().default_base() == ("HEAD~1", "HEAD~1")


def test_the_newer_of_the_local_and_the_remote_default_branch_counts(project: Project, tmp_path: Path) -> None:
    project.commit("one")
    project.git("clone", "-q", ".", "../clone")
    project.root = tmp_path / "clone"
    unpushed = project.commit("two")
    project.git("checkout", "-q", "-b", "work")
    project.commit("three")
    assert project.open().default_base() == (unpushed, "merge base with main")


def test_init_default_branch_comes_before_the_usual_names(project: Project) -> None:
    project.commit("one")
    project.git("branch", "stem")
    assert project.open().default_branch() == "main"
    project.git("config", "init.defaultBranch", "stem")
    assert project.open().default_branch() == "stem"
    project.git("config", "init.defaultBranch", "gone")
    assert project.open().default_branch() == "main"


def test_unrelated_histories_have_no_merge_base(project: Project) -> None:
    project.commit("one")
    project.git("checkout", "-q", "--orphan", "island")
    project.commit("alone")
    repository = project.open()
    with pytest.raises(RevisionError, match="HEAD and main have no common commit"):
        repository.default_base()
    with pytest.raises(RevisionError, match="main and island have no common commit"):
        repository.merge_base("main", "island")


# -- the working tree as a commit ----------------------------------------------------------------------------------------


def test_a_snapshot_is_the_tree_as_it_is(project: Project) -> None:
    head = project.commit("first", kept="1", changed="1", deleted="1")
    (project.root / "results").mkdir()
    (project.root / "results" / "r.json").write_text("ours")
    (project.root / ".gitignore").write_text("ignored.py\n")
    for name, text in {"changed": "2", "new": "é", "ignored": "x"}.items():
        (project.root / f"{name}.py").write_text(text)
    (project.root / "deleted.py").unlink()
    (project.root / "staged.py").write_text("3")
    project.git("add", "staged.py")
    before = project.git("status", "--porcelain", "--branch")
    repository = project.open()
    made = repository.snapshot([project.root / "results", Path("/elsewhere")])
    assert project.git("ls-tree", "-r", "--name-only", made).split() == [
        ".gitignore", "changed.py", "kept.py", "new.py", "staged.py"]  # fmt: skip
    assert project.git("show", f"{made}:new.py") == "é"
    assert project.git("rev-parse", f"{made}~1") == head
    assert repository.snapshot([project.root / "results"]) == made, "the same content is the same commit"
    assert project.git("status", "--porcelain", "--branch") == before
    assert project.git("branch", "--contains", made) == ""
    (project.root / "new.py").write_text("4")
    assert repository.snapshot([project.root / "results"]) != made


def test_a_snapshot_leaves_out_what_git_ignores_and_tracks_all_the_same(project: Project) -> None:
    """As results are that somebody has added by force."""
    project.commit("one", code="1")
    (project.root / ".gitignore").write_text(".asv\n")
    (project.root / ".asv" / "results").mkdir(parents=True)
    (project.root / ".asv" / "results" / "a.json").write_text("1")
    project.git("add", "--force", ".asv", ".gitignore")
    project.git("commit", "-qm", "results")
    (project.root / ".asv" / "results" / "a.json").write_text("2")
    (project.root / "code.py").write_text("2")
    made = project.open().snapshot([project.root / ".asv" / "results", project.root / "known.toml"])
    assert project.git("show", f"{made}:.asv/results/a.json") == "1"
    assert project.git("show", f"{made}:code.py") == "2"


def test_a_snapshot_where_the_configuration_is_below_the_top(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.commit("first")
    (project.root / "sub").mkdir()
    (project.root / "top.py").write_text("")
    monkeypatch.chdir(project.root / "sub")
    made = project.open().snapshot([project.root / "sub" / "history"])
    assert "top.py" in project.git("ls-tree", "--name-only", made)


def lost(project: Project) -> None:
    for path in (project.root / ".git" / "objects").glob("??/*"):
        path.unlink()


def cut(project: Project) -> None:
    for path in (project.root / ".git" / "objects").glob("??/*"):
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:9])


@pytest.mark.parametrize("damage", [lost, cut])
def test_a_damaged_repository_is_not_an_empty_one(project: Project, damage: Callable[[Project], None]) -> None:
    project.commit("first")
    project.git("pack-refs", "--all")
    repository = project.open()
    damage(project)
    for ask in (lambda: repository.resolve("HEAD"), lambda: repository.commits("HEAD"), repository.changed_files,
                lambda: repository.newest_of("main"), repository.default_base):  # fmt: skip
        with pytest.raises(RegressError) as caught:
            ask()
        assert "is damaged" in caught.value.what, caught.value.what
        assert "fsck" in caught.value.fix


def test_what_is_not_here_is_not_damage(project: Project) -> None:
    sha = project.commit("first")
    project.git("tag", "tree", f"{sha}^{{tree}}")
    repository = project.open()
    assert not repository.has("f" * 40)
    assert repository.newest_of("nowhere") == repository.newest_of("tree") == []


def test_what_git_refuses_is_said_in_its_words_with_the_command(project: Project) -> None:
    project.commit("one")
    with pytest.raises(RegressError) as caught:
        output(project.root, "show", "--quiet", "no such thing")
    assert caught.value.what == f"git show failed in {project.root}"
    assert caught.value.why.startswith("fatal: ambiguous argument 'no such thing'")
    assert caught.value.fix == f"see what git says: git -C {project.root} show --quiet 'no such thing'"
