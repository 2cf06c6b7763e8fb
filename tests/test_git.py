"""Revisions, changes and worktrees, on real repositories made for each test."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regress.errors import RegressError, RevisionError
from regress.git import Repository, open_repository
from regress.model import Settings

ROOT = Path(__file__).parents[1]
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
    with pytest.raises(RevisionError) as caught:
        repository.resolve(revision)
    return caught.value


# -- opening -------------------------------------------------------------------------------------------------------------


def test_a_repository_is_found_from_a_folder_in_it(project: Project) -> None:
    inner = project.root / "src" / "deep"
    inner.mkdir(parents=True)
    assert open_repository(inner).root == project.root


def test_a_folder_outside_git_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RegressError, match="not in a git repository"):
        open_repository(tmp_path)
    with pytest.raises(RegressError, match="there is no folder"):
        open_repository(tmp_path / "nowhere")


def test_a_bare_repository_is_refused(project: Project, tmp_path: Path) -> None:
    project.git("clone", "-q", "--bare", ".", "../bare.git")
    with pytest.raises(RegressError, match="bare") as caught:
        open_repository(tmp_path / "bare.git")
    assert caught.value.fix.startswith(f"git clone {tmp_path / 'bare.git'}")


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
    repository.worktree(head, trees)
    assert not repository.is_dirty()


# -- revisions -----------------------------------------------------------------------------------------------------------


def test_g1_the_default_branch_has_any_name(project: Project, tmp_path: Path) -> None:
    project.git("checkout", "-q", "-b", "develop")
    project.commit("one")
    project.git("clone", "-q", ".", "../clone")
    project.root = tmp_path / "clone"  # has origin/HEAD -> origin/develop, and nothing called main
    project.git("checkout", "-q", "-b", "work/on-this")
    project.commit("two")
    project.commit("three")
    repository = project.open()
    assert repository.default_branch() == "develop"
    assert repository.current_branch() == "work/on-this"
    revision, how = repository.default_base()
    assert (repository.resolve(revision).subject, how) == ("one", "merge base with develop")


def test_g1_a_detached_head_a_slash_and_the_name_of_a_file(project: Project) -> None:
    first = project.commit("one", code="1")
    project.git("branch", "feature/x")
    project.git("branch", "code.py")
    second = project.commit("two", code="2")
    project.git("checkout", "-q", "--detach")
    third = project.commit("three", code="3")
    repository = project.open()
    assert repository.current_branch() is None
    assert repository.resolve("feature/x").sha == first
    assert repository.resolve("code.py").sha == first
    assert [commit.sha for commit in repository.commits("code.py..HEAD")] == [second, third]
    assert repository.default_base() == (second, "merge base with main")


def test_g2_every_way_to_name_a_commit(project: Project) -> None:
    first = project.commit("one")
    project.git("tag", "light")
    project.git("tag", "-a", "v1.0", "-m", "annotated")
    second = project.commit("two")
    repository = project.open()
    for name in ("HEAD~1", "HEAD^", "light", "v1.0", first[:7], "main~", ":/one", "HEAD^{/one}", "main@{1}"):
        commit = repository.resolve(name)
        assert (commit.sha, commit.subject) == (first, "one"), name
    head = repository.resolve("HEAD")
    assert head.parents == (first,)
    assert (head.sha, head.author, head.date) == (second, "Ada", 1_700_000_000 + 2 * DAY)


def test_tags_of_both_kinds_by_their_commits(project: Project) -> None:
    assert project.commit("first")
    assert project.open().releases() == {}
    project.git("tag", "v1")
    project.git("tag", "-a", "-m", "annotated", "release/ü")
    first, second = project.git("rev-parse", "HEAD"), project.commit("second")
    project.git("tag", "v2")
    assert project.open().releases() == {first: ("release/ü", "v1"), second: ("v2",)}


@pytest.mark.parametrize(
    "name", ["v1", "1.2", "2.4.0rc1", "v2.0.0-rc.1", "jax-v0.4.30", "release/1.2", "13.0.0a1.dev3"]
)
def test_a_version_is_a_release(project: Project, name: str) -> None:
    first = project.commit("first")
    project.git("tag", name)
    assert open_repository(project.root, Settings().release_tags).releases() == {first: (name,)}


@pytest.mark.parametrize("name", ["ciflow/inductor/12345", "viable/strict/1762", "nightly", "nightly-2026-03-03", "v"])
def test_what_a_service_marks_commits_with_is_no_release(project: Project, name: str) -> None:
    project.commit("first")
    project.git("tag", name)
    project.git("tag", "-a", "-m", "annotated", "v1")
    second = project.commit("second")
    project.git("tag", f"{name}x")
    repository = open_repository(project.root, Settings().release_tags)
    assert list(repository.releases().values()) == [("v1",)]
    assert repository.last_release(project.commit("third")) == "v1"
    assert repository.last_release(second) == "v1"


def test_the_last_release_is_the_nearest_of_the_ancestors(project: Project) -> None:
    first, repository = project.commit("first"), project.open()
    project.git("tag", "v1")
    assert repository.last_release(first) is None
    assert repository.last_release(first, itself=True) == "v1"
    second = project.commit("second")
    project.git("tag", "-a", "-m", "annotated", "v2")
    assert repository.last_release(second) == "v1"
    assert repository.last_release(project.commit("third")) == "v2"


def test_ancestors_are_those_that_are_here(project: Project) -> None:
    first, second = project.commit("first"), project.commit("second")
    repository = project.open()
    assert repository.is_ancestor(first, second)
    assert repository.is_ancestor(first, first)
    assert not repository.is_ancestor(second, first)
    assert not repository.is_ancestor("0" * 40, second)


def test_a_file_is_read_as_a_commit_has_it(project: Project, tmp_path: Path) -> None:
    first = project.commit("first", acks="ä\n")
    second = project.commit("second", acks="b\n")
    repository = project.open()
    file = repository.root / "acks.py"
    assert [repository.content(sha, file) for sha in (first, second)] == ["ä", "b"]
    assert repository.content(first, file.with_name("none.py")) is None
    assert repository.content(first, tmp_path.parent / "acks.py") is None


def test_g2_a_time_before_the_reflog_is_refused(project: Project) -> None:
    project.commit("one")
    yesterday = project.clock + DAY // 2
    project.commit("two")
    repository = project.open()
    assert repository.resolve(f"main@{{{yesterday} +0000}}").subject == "one"
    assert "before the reflog" in refusal(repository, "main@{2001-01-01}").what


def test_a_date_needs_a_reflog_that_reaches_back(project: Project, tmp_path: Path) -> None:
    project.commit("one")
    subprocess.run(["git", "clone", "-q", project.root, tmp_path / "clone"], check=True)  # its reflog begins now
    error = refusal(open_repository(tmp_path / "clone"), "main@{yesterday}")
    assert "only goes back to" in error.why


def test_g3_a_shallow_clone_has_no_parent(project: Project, tmp_path: Path) -> None:
    for subject in ("one", "two", "three"):
        project.commit(subject)
    project.git("clone", "-q", "--depth", "2", f"file://{project.root}", "../shallow")
    project.root = tmp_path / "shallow"
    repository = project.open()
    assert repository.resolve("HEAD~1").subject == "two"
    error = refusal(repository, "HEAD~2")
    assert error.what == "HEAD~2: no parent in this shallow clone"
    assert error.fix == "git fetch --deepen 1"
    assert refusal(repository, "HEAD~1~3").fix == "git fetch --deepen 3"
    project.git("fetch", "-q", "--deepen", "1")
    assert repository.resolve("HEAD~2").subject == "one"


def test_g3_the_first_commit_has_no_parent(project: Project) -> None:
    project.commit("one")
    repository = project.open()
    assert repository.default_base() == ("HEAD~1", "HEAD~1")
    error = refusal(repository, "HEAD~1")
    assert error.what == "HEAD~1: the first commit has no parent"
    assert error.fix
    assert refusal(repository, "HEAD^").what == "HEAD^: the first commit has no parent"


def test_g3_a_second_parent_that_is_not_there(project: Project) -> None:
    project.commit("one")
    project.commit("two")
    assert refusal(project.open(), "HEAD^2").what == "HEAD^2: no parent number 2"


def test_an_empty_repository_has_no_commit(project: Project) -> None:
    assert "no commit yet" in refusal(project.open(), "HEAD").what
    assert "no commit yet" in refusal(project.open(), "HEAD~1").what


@pytest.mark.parametrize(
    "wrong, fix",
    [
        ("v1.O", "name v1.0"),
        ("mian~1", "name main~1"),
        ("theirs", "name origin/theirs"),
        ("zzzzzz", "git fetch --tags, or see git log --oneline --all"),
    ],
)
def test_an_unknown_revision_gets_near_names(project: Project, tmp_path: Path, wrong: str, fix: str) -> None:
    project.commit("one")
    project.git("tag", "v1.0")
    project.git("branch", "theirs")
    project.git("clone", "-q", ".", "../clone")
    error = refusal(open_repository(tmp_path / "clone"), wrong)
    assert error.what == f"unknown revision {wrong!r}"
    assert error.fix == fix


@pytest.mark.parametrize("text", ["--output=x", "-1", "", " "])
def test_an_option_is_no_revision(project: Project, text: str) -> None:
    project.commit("one")
    assert "is not a revision" in refusal(project.open(), text).what
    with pytest.raises(RevisionError, match="is not a revision"):
        project.open().commits(text)


def test_a_range_and_a_file_are_no_commit(project: Project) -> None:
    project.commit("one", code="1")
    assert "is a range" in refusal(project.open(), "HEAD..main").what
    assert "unknown" in refusal(project.open(), "HEAD:code.py").what


def test_an_ambiguous_sha_is_called_so(project: Project) -> None:
    prefixes = [project.commit("one")[:4]]
    while len(set(prefixes)) == len(prefixes):  # git reads no fewer than four digits: commit until two begin alike
        sha = project.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", f"number {len(prefixes)}")
        prefixes.append(sha[:4])
    twice = next(prefix for prefix in prefixes if prefixes.count(prefix) > 1)
    assert "is ambiguous" in refusal(project.open(), twice).what


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
    found = repository.commits("HEAD", [results, project.root / "report", project.root.parent])
    assert [each.sha for each in found] == [first, both, side, merge, last]
    assert [each.sha for each in repository.commits(f"{both}..HEAD", [results])] == [side, merge, last]


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


# -- worktrees -----------------------------------------------------------------------------------------------------------


def test_a_worktree_is_made_once_and_kept_with_what_was_built_in_it(project: Project, trees: Path) -> None:
    first = project.commit("one", code="1")
    project.commit("two", code="2")
    tree = project.open().worktree(project.open().resolve(first), trees)
    assert tree == trees / first
    assert (tree / "code.py").read_text() == "1"
    (tree / "built.so").write_text("x")
    repository = project.open()
    assert repository.worktree(repository.resolve(first), trees) == tree
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
    tree = repository.worktree(commit, trees)
    (tree / "built.so").write_text("x")
    assert callable(damage)
    damage(tree)
    assert repository.worktree(commit, trees) == tree
    assert (tree / "code.py").read_text() == "1"
    assert not (tree / "built.so").exists()
    assert project.git("-C", str(tree), "rev-parse", "HEAD") == sha
    assert project.git("worktree", "list").count(sha) == 1


def test_a_worktree_inside_the_repository_is_not_taken_for_it(project: Project) -> None:
    project.commit("one", code="1")
    repository = project.open()
    head = repository.resolve("HEAD")
    tree = repository.worktree(head, project.root / "cache")
    (tree / ".git").unlink()  # from here git finds the repository around it, at the same commit and unchanged
    (tree / "code.py").unlink()
    assert (repository.worktree(head, project.root / "cache") / "code.py").exists()


def test_a_worktree_that_is_never_clean_is_still_reused(project: Project, trees: Path) -> None:
    # Files committed with CRLF before "text=auto" came differ from their commit in every checkout.
    (project.root / "dos.txt").write_bytes(b"a\r\nb\r\n")
    project.commit("one")
    (project.root / ".gitattributes").write_text("* text=auto\n")
    project.git("add", ".gitattributes")
    project.git("commit", "-q", "-m", "two")
    repository = project.open()
    head = repository.resolve("HEAD")
    tree = repository.worktree(head, trees)
    os.utime(tree / "dos.txt")
    kept = repository.worktree(head, trees)
    (kept / "built.so").write_text("x")
    assert (repository.worktree(head, trees) / "built.so").exists()


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
        f"print(r.worktree(r.resolve('HEAD'), Path({str(trees)!r}))); sys.stdout.flush(); sys.stdin.read()\n"
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
    assert printed == [f"{trees / sha}\n"] * 3
    assert made.read_text() == "x"
    assert project.git("worktree", "list").count(sha) == 1


def test_a_worktree_in_use_is_neither_made_again_nor_removed(
    project: Project, trees: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regress.git.worktrees._LOCK_TRIES", 2)
    project.commit("one", code="1")
    repository = project.open()
    commit = repository.resolve("HEAD")
    open_repository(project.root).worktree(commit, trees)
    user = open_repository(project.root)
    tree = user.worktree(commit, trees)  # reused, not made
    (tree / "code.py").write_text("changed")
    with pytest.raises(RegressError, match="in use and was changed"):
        repository.worktree(commit, trees)
    assert (tree / "code.py").read_text() == "changed"
    assert repository.remove_worktrees(trees) == []
    del user  # as when its process ends
    assert repository.worktree(commit, trees) == tree
    assert (tree / "code.py").read_text() == "1"


def test_a_maker_that_was_interrupted_leaves_nothing(
    project: Project, trees: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.commit("one", code="1")
    repository = project.open()
    commit = repository.resolve("HEAD")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    (repository.worktree(commit, trees) / "code.py").write_text("changed")
    with monkeypatch.context() as patched:
        patched.setattr("regress.git.worktrees.Worktrees._refuse_pointers", interrupt)
        with pytest.raises(KeyboardInterrupt):
            repository.worktree(commit, trees)
    assert not (trees / commit.sha).exists()
    assert project.git("worktree", "list").count("\n") == 0
    with (trees / f"{commit.sha}.lock").open("rb") as lock:
        assert lock.read() == b""
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert (repository.worktree(commit, trees) / "code.py").exists()


def test_worktrees_are_removed_but_for_those_to_keep(project: Project, trees: Path) -> None:
    shas = [project.commit(subject) for subject in ("one", "two", "three")]
    repository = project.open()
    made = [repository.worktree(repository.resolve(sha), trees) for sha in shas]
    assert sorted(repository.remove_worktrees(trees, keep=[shas[1]])) == sorted([made[0], made[2]])
    assert [path.exists() for path in made] == [False, True, False]
    assert project.git("worktree", "list").count(str(trees)) == 1
    assert repository.worktree(repository.resolve(shas[0]), trees).is_dir()


def test_worktrees_of_the_user_are_left_alone(project: Project, trees: Path, tmp_path: Path) -> None:
    project.commit("one")
    project.git("worktree", "add", "-q", "-b", "away", "../away")
    (tmp_path / "away").rename(tmp_path / "unmounted")
    repository = project.open()
    repository.worktree(repository.resolve("HEAD"), trees)
    repository.remove_worktrees(trees)
    (tmp_path / "unmounted").rename(tmp_path / "away")
    assert project.git("-C", "../away", "rev-parse", "--abbrev-ref", "HEAD") == "away"


def test_a_worktree_can_be_made_from_a_linked_worktree(project: Project, trees: Path, tmp_path: Path) -> None:
    project.commit("one", code="1")
    project.git("worktree", "add", "-q", "-b", "linked", "../linked")
    repository = open_repository(tmp_path / "linked")
    assert repository.common_dir == project.root / ".git"
    assert repository.git_dir != repository.common_dir
    assert (repository.worktree(repository.resolve("linked"), trees) / "code.py").read_text() == "1"


def test_a_folder_that_cannot_be_made_is_named(project: Project, tmp_path: Path) -> None:
    project.commit("one")
    (tmp_path / "file").write_text("")
    repository = project.open()
    with pytest.raises(RegressError, match="cannot make") as caught:
        repository.worktree(repository.resolve("HEAD"), tmp_path / "file" / "trees")
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
    repository.worktree(repository.resolve("HEAD"), trees)
    assert not (tmp_path / "ran").exists()


def test_g10_ignored_files_of_the_working_tree_are_not_copied(project: Project, trees: Path) -> None:
    (project.root / ".gitignore").write_text("*.so\n")
    project.commit("one")
    (project.root / "big.so").write_text("x")
    repository = project.open()
    assert not (repository.worktree(repository.resolve("HEAD"), trees) / "big.so").exists()


POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 5\n"


def test_g10_lfs_pointers_are_refused_with_the_command_that_fetches(project: Project, trees: Path) -> None:
    (project.root / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    (project.root / "real.bin").write_text("content")
    (project.root / "data.bin").write_text(POINTER)
    sha = project.commit("one", pointer=POINTER)  # a pointer.py is just a text that looks like one
    repository = project.open()
    with pytest.raises(RegressError, match="Git LFS") as caught:
        repository.worktree(repository.resolve("HEAD"), trees)
    assert caught.value.why.startswith("data.bin ")
    assert caught.value.fix == f"git lfs install && git lfs fetch origin {sha}"
    assert not (trees / sha).exists()
    project.git("rm", "-q", "-f", "data.bin")
    project.commit("two")
    assert (repository.worktree(repository.resolve("HEAD"), trees) / "pointer.py").exists()


def test_g10_an_lfs_filter_that_fails_is_told_as_such(project: Project, trees: Path) -> None:
    (project.root / ".gitattributes").write_text("*.bin filter=lfs\n")
    (project.root / "data.bin").write_text(POINTER)
    project.commit("one")
    project.git("config", "filter.lfs.smudge", "git-lfs-is-not-here smudge -- %f")
    project.git("config", "filter.lfs.required", "true")
    repository = project.open()
    with pytest.raises(RegressError, match="Git LFS"):
        repository.worktree(repository.resolve("HEAD"), trees)


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
    before = repository.worktree(repository.resolve("HEAD~1"), trees)
    after = repository.worktree(repository.resolve("HEAD"), trees)
    assert not (before / "third").exists()
    assert (after / "third" / "lib" / "lib.py").read_text() == "1"
    assert (with_module.root / ".git" / "config").read_bytes() == config
    (after / "third" / "lib" / "built.so").write_text("x")
    assert (repository.worktree(repository.resolve("HEAD"), trees) / "third" / "lib" / "built.so").exists()
    assert len(repository.remove_worktrees(trees)) == 2
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
        repository.worktree(repository.resolve("HEAD"), trees)
    assert caught.value.why.startswith("third/lib/data.bin is a Git LFS pointer")
    assert caught.value.fix == "git lfs install && git -C third/lib lfs fetch --all"
    assert not (trees / sha).exists()


def test_g7_a_submodule_that_cannot_be_had_is_an_error(with_module: Project, trees: Path) -> None:
    subprocess.run(["rm", "-rf", str(with_module.root / ".git" / "modules")], check=True)
    repository = with_module.open()
    with pytest.raises(RegressError, match="cannot check out the submodules") as caught:
        repository.worktree(repository.resolve("HEAD"), trees)
    assert "origin" in caught.value.why
    assert not any(path.is_dir() for path in trees.iterdir())


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
    tree = repository.worktree(repository.resolve("HEAD"), trees)
    assert (tree / "third" / "lib" / "lib.py").read_text() == "2"


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


def test_a_snapshot_where_the_configuration_is_below_the_top(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.commit("first")
    (project.root / "sub").mkdir()
    (project.root / "top.py").write_text("")
    monkeypatch.chdir(project.root / "sub")
    made = project.open().snapshot([project.root / "sub" / "history"])
    assert "top.py" in project.git("ls-tree", "--name-only", made)


# -- which worktrees are kept --------------------------------------------------------------------------------------------


def test_the_worktrees_that_were_used_last_are_kept(project: Project, trees: Path) -> None:
    repository = project.open()
    commits = [repository.resolve(project.commit(str(number))) for number in range(4)]
    for age, commit in enumerate([commits[0], commits[1], commits[2], commits[0], commits[3]]):
        tree = repository.worktree(commit, trees)
        os.utime(tree.with_name(tree.name + ".lock"), (age, age))
    other = project.open()
    other.worktree(commits[1], trees)
    os.utime(trees / f"{commits[1].sha}.lock", (0, 0))
    assert repository.trim_worktrees(trees, 2) == [trees.resolve() / commits[2].sha], "another process is in the oldest"
    assert sorted(path.name for path in trees.iterdir() if path.is_dir()) == sorted(
        commits[index].sha for index in (0, 1, 3)
    )


# -- dates ---------------------------------------------------------------------------------------------------------------


def test_words_that_name_a_moment(project: Project) -> None:
    project.commit("one")
    repository = open_repository(project.root)
    assert repository.date_of("2026-01-20T00:00:00+00:00") == 1768867200.0
    now = time.time()
    for words, seconds in {
        "30 days ago": 30 * 86400,
        "2.weeks": 14 * 86400,
        "1 hour": 3600,
        "yesterday": 86400,
    }.items():
        found = repository.date_of(words)
        assert found is not None
        assert abs(now - seconds - found) < 7300, "a change of the clocks may lie between"


@pytest.mark.parametrize("words", ["v9", "3f2c1ab", "main", "HEAD~3", "the day after", "1.4", ""])
def test_what_names_no_moment_is_not_taken_for_now(project: Project, words: str) -> None:
    project.commit("one")
    assert open_repository(project.root).date_of(words) is None
