"""Every way to name a commit, a release or a moment, and what is said where there is none."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from regress.errors import RevisionError
from regress.git import open_repository
from regress.model import Settings
from tests.git.conftest import DAY, Project, refusal

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


def test_git_is_asked_once_for_a_whole_sha_and_each_time_for_a_name(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, repository = project.commit("one"), project.open()
    head = repository.resolve("HEAD")
    with monkeypatch.context() as patch:
        patch.setattr("regress.git.repository.resolve", lambda *words: pytest.fail(f"asked for {words}"))
        assert repository.resolve(first) == head
    second = project.commit("two")
    assert repository.resolve("HEAD").sha == second


def test_tags_of_both_kinds_by_their_commits(project: Project) -> None:
    assert project.commit("first")
    assert project.open().releases.all() == {}
    project.git("tag", "v1")
    project.git("tag", "-a", "-m", "annotated", "release/ü")
    for name in ("v1\u2028x", "v1\u0085y"):
        project.git("tag", name)
    first, second = project.git("rev-parse", "HEAD"), project.commit("second")
    project.git("tag", "v2")
    assert project.open().releases.all() == {first: ("release/ü", "v1", "v1\u0085y", "v1\u2028x"), second: ("v2",)}


@pytest.mark.parametrize(
    "name", ["v1", "1.2", "2.4.0rc1", "v2.0.0-rc.1", "jax-v0.4.30", "release/1.2", "13.0.0a1.dev3"]
)
def test_a_version_is_a_release(project: Project, name: str) -> None:
    first = project.commit("first")
    project.git("tag", name)
    assert open_repository(project.root, Settings().release_tags).releases.all() == {first: (name,)}


@pytest.mark.parametrize("name", ["ciflow/inductor/12345", "viable/strict/1762", "nightly", "nightly-2026-03-03", "v"])
def test_what_a_service_marks_commits_with_is_no_release(project: Project, name: str) -> None:
    project.commit("first")
    project.git("tag", name)
    project.git("tag", "-a", "-m", "annotated", "v1")
    second = project.commit("second")
    project.git("tag", f"{name}x")
    repository = open_repository(project.root, Settings().release_tags)
    assert list(repository.releases.all().values()) == [("v1",)]
    assert repository.last_release(project.commit("third")) == "v1"
    assert repository.last_release(second) == "v1"


def test_a_release_of_a_branch_of_its_own_stands_where_that_left(project: Project) -> None:
    """As release branches have it: the tags are on no commit of the main line."""
    first, second = project.commit("first"), project.commit("second")
    project.git("checkout", "-q", "-b", "maintenance")
    for name in ("v1.0rc1", "v1.0", "v1.0.1"):
        project.commit(f"prepare {name}")
        project.git("tag", name)
    project.git("checkout", "-q", "main")
    third = project.commit("third")
    project.git("tag", "v0.9", first)
    project.git("merge", "-q", "-X", "ours", "--no-ff", "-m", "back", "maintenance~1")
    project.git("tag", "v2.0", third)
    repository = project.open()
    line = repository.commits("HEAD")
    merged = project.git("rev-parse", "v1.0")
    assert repository.releases.of(line)[first] == ("v0.9",)
    assert repository.releases.of(line)[merged] == ("v1.0", "v1.0.1"), "what was merged is in the line"
    before = [commit for commit in line if commit.sha in (first, second, third)]
    stand = {first: ("v0.9",), second: ("v1.0rc1", "v1.0", "v1.0.1")}
    assert repository.releases.of(before) == {**stand, third: ("v2.0",)}
    assert repository.releases.of(before[:-1]) == {first: ("v0.9",)}, "what came later is none of its releases"
    assert repository.releases.of(()) == {}


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
    assert error.what == "HEAD~1 is before the first commit"
    assert error.fix
    assert refusal(repository, "HEAD^").what == "HEAD^ is before the first commit"


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
        moment = repository.date_of(words)
        assert moment is not None
        assert abs(now - seconds - moment) < 7300, "a change of the clocks may lie between"


@pytest.mark.parametrize("words", ["v9", "3f2c1ab", "main", "HEAD~3", "the day after", "1.4", ""])
def test_what_names_no_moment_is_not_taken_for_now(project: Project, words: str) -> None:
    project.commit("one")
    assert open_repository(project.root).date_of(words) is None
