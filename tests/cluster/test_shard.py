"""What a node does before and after it measures."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from regress.cluster.plan import GROUP, Plan, Task
from regress.cluster.runs import Attempt, End, Run, costs_of, create
from regress.commands.shard import _first_of_all, require_alike, shard
from regress.commands.sweep.building import build
from regress.errors import NothingMeasured, RegressError, StoreError
from regress.git import publish
from regress.history import Store
from regress.history.kept import read, write
from regress.model import Kind
from regress.session import Request, Session
from tests.cluster.test_following import Place_, Told, place
from tests.commands.test_cluster import local
from tests.conftest import Project

__all__ = ["place"]


def test_a_node_that_is_another_machine_says_so_before_it_measures(place: Place_) -> None:
    path = place.run.folder / "h100" / "machine.json"
    require_alike(place.run, place.session, "h100")
    own = read(path, dict[str, str])
    assert own is not None
    require_alike(place.run, place.session, "h100")
    write(path, {**own, "cpu": "Another CPU"})
    with pytest.raises(NothingMeasured, match="differs from earlier nodes of kind h100") as raised:
        require_alike(place.run, place.session, "h100")
    assert raised.value.why == f"cpu is {own['cpu']!r} here, and 'Another CPU' there"
    assert '"constraint"' in raised.value.fix


def test_of_two_nodes_that_are_first_at_once_one_is(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    assert _first_of_all(path, {"cpu": "one"}) == {"cpu": "one"}
    assert _first_of_all(path, {"cpu": "other"}) == {"cpu": "one"}, "it had seen no file, and one was there by then"
    assert [file.name for file in tmp_path.iterdir()] == ["machine.json"]


def test_what_a_node_cannot_do_is_the_end_of_its_attempt_and_stands_in_the_log(
    place: Place_, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGRESS_SCRATCH", str(tmp_path / "scratch"))
    with pytest.raises(RegressError):
        shard(place.run.folder, "h100", 0, Told())  # nobody has published the project
    (attempt,) = place.run.attempts("h100", 0)
    assert attempt.end is not None
    assert (attempt.end.code, attempt.end.is_whole) == (2, False)
    assert attempt.end.error is not None
    assert "repository.git" in attempt.end.error[0] + attempt.end.error[1]


def test_a_shared_disk_that_fills_up_ends_the_attempt_and_names_what_it_could_not_write(
    place: Place_, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even its end can be written then: it is a death, which three tries may outlive."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("regress.commands.shard._measured", lambda *_: End(0))
    monkeypatch.setattr("regress.history.kept.os.fsync", full)
    monkeypatch.setattr(Run, "begin", lambda run, kind, number, job: Attempt(0, run.folder / kind, None, None))
    with pytest.raises(StoreError) as raised:
        shard(place.run.folder, "h100", 0, Told())
    assert str(place.run.folder / "h100" / "end.json") in raised.value.what
    assert raised.value.why.startswith("no space left on device")
    assert not (place.run.folder / "h100" / "end.json").exists()


def test_a_node_builds_where_it_looks_for_the_build(
    project: Callable[..., Project], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = project(build=["touch built"], cache_dir="of the configuration")
    shas = [p.commit({"NEWS": str(at)}) for at in range(2)]
    session = Session(Request(p.root, overrides={"cache_dir": str(tmp_path / "node")}))
    build(session, shas, "", Told())
    marks = [tree / "built" for sha in shas for tree in tmp_path.glob(f"node/*/worktrees/*/{sha}")]
    assert [mark.exists() for mark in marks] == [True, True]


@pytest.mark.slow
def test_a_task_of_many_commits_has_the_anchor_in_each_group(
    project: Callable[..., Project], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGRESS_SCRATCH", str(tmp_path / "scratch"))
    p, shas = local(project, [50e-6] * (GROUP + 3))
    session, anchor = Session(Request(p.root)), shas[-1]
    publish(session.repository, anchor, tmp_path / "repository.git", "key")
    task = Task(0, tuple(shas), anchor)
    run = create(tmp_path, Plan("key", "", anchor, "asv.conf.json", {"h100": (task,)}))
    shard(run.folder, "h100", 0, Told())
    (attempt,) = run.attempts("h100", 0)
    assert attempt.end is not None
    assert (attempt.end.code, attempt.end.measured, attempt.end.cases) == (0, len(shas), 2)
    store = Store(attempt.results)
    by_run = {
        sha: Counter(round.run for recorded in store.load(sha, "h100").recorded for round in recorded.rounds)
        for sha in shas
    }
    assert [sorted(by_run[sha].values()) for sha in shas] == [*[[4]] * (GROUP + 2), [4, 4]], "two rounds of two cases"
    assert set().union(*by_run.values()) == set(by_run[anchor]), "what was in turn was so with the anchor"
    costs = costs_of(tmp_path, Kind("h100"))
    assert costs is not None
    assert costs.start_s > 0
    assert costs.case_s > 0
