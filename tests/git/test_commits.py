"""Which commits of a history lie beside its line, on graphs drawn by hand; and on one of git's."""

from __future__ import annotations

from pathlib import Path

import pytest

from regress.git.commits import histories, off_the_line, shallow
from regress.model import Commit
from tests.git.conftest import Project


def history(drawn: str) -> list[Commit]:
    """The commits of "a, b(a), M(b c)": the parents in brackets, the first one first."""
    commits = []
    for word in drawn.split(", "):
        sha, _, parents = word.rstrip(")").partition("(")
        commits.append(Commit(sha, "", "", 0.0, tuple(parents.split())))
    return commits


@pytest.mark.parametrize(
    ("drawn", "beside"),
    [
        pytest.param("a, b(a), c(b)", "", id="without a merge"),
        pytest.param("a, m(a), n(m), s(a), t(s), M(n t), o(M)", "s t", id="the line went on meanwhile"),
        pytest.param("a, s(a), t(s), M(a t), u(M), N(M u), o(N)", "", id="what was merged began at the line's end"),
        pytest.param("a, d(a), e(d), M(a e), f(e), g(f), N(M g), h(g), O(N h)", "", id="a line of merges alone"),
        pytest.param("a, d(a), M(a d), h(M), e(d), N(h e)", "e", id="a line of merges with a fix of its own"),
        pytest.param("a, m(a), s(a), X(s m), t(X), M(m t), n(M)", "s X t", id="the branch had merged the line"),
        pytest.param("a, s(a), x(s), y(s), N(x y), M(a N)", "y", id="a merge within what was merged"),
        pytest.param("a, m(a), r(a), s(a), M(m s)", "s", id="another end"),
        pytest.param("m(gone), s(gone), M(m s), n(M)", "s", id="a beginning that is not there"),
        pytest.param("a, b(a), s(a), t(a), M(b s t)", "s t", id="three parents"),
    ],
)
def test_what_lies_beside_the_line(drawn: str, beside: str) -> None:
    assert off_the_line(history(drawn)) == set(beside.split())


@pytest.mark.parametrize(
    ("drawn", "first", "lines"),
    [
        pytest.param("a, b(a), c(b)", "c", ["a b c"], id="one end"),
        pytest.param("a, b(a), r(a), s(r), c(b)", "c s", ["a b c", "a r s"], id="two branches, mixed by their dates"),
        pytest.param("a, b(a), r(a), s(r), c(b)", "s", ["a r s", "a b c"], id="the named one first"),
        pytest.param(
            "a, m(a), s(a), M(m s), r(s), q(r)", "M q", ["a m s* M", "a s r q"], id="beside one, on the other"
        ),
        pytest.param("a, b(a), x, y(x)", "b y", ["a b", "x y"], id="nothing in common"),
    ],
)
def test_each_end_has_a_history_of_its_own(drawn: str, first: str, lines: list[str]) -> None:
    """What lies beside its line has a star."""
    shown = [
        " ".join(commit.sha + "*" * commit.beside for commit in own) for own in histories(history(drawn), first.split())
    ]
    assert shown == lines


def test_the_commits_of_a_history_say_whether_they_lie_beside_its_line(project: Project) -> None:
    project.commit("first")
    project.git("checkout", "-q", "-b", "side")
    project.commit("aside", aside="1")
    project.git("checkout", "-q", "-")
    project.commit("on", on="1")
    project.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    commits = project.open().commits("HEAD")
    assert [(commit.subject, commit.beside) for commit in commits] == [
        ("first", False),
        ("on", False),
        ("aside", True),
        ("merge", False),
    ]
    assert commits[2] == project.open().resolve("side"), "it is the same commit"


def test_a_clone_that_is_fetched_in_full_while_it_is_looked_at_is_not_shallow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shallow").write_text(f"{'a' * 40}\n")
    read_text = Path.read_text

    def fetched(path: Path) -> str:
        path.unlink()
        return read_text(path)

    monkeypatch.setattr(Path, "read_text", fetched)
    assert shallow(tmp_path) == set()
