"""What a driver does of all that can happen to its tasks, with an engine that says what the test wants."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from regress.cluster.engine import Attached, Gone, Place, Queued, Refused
from regress.cluster.plan import Plan, Task
from regress.cluster.runs import STALE_S, Attempt, Driver, End, Run, create, find, started
from regress.commands.sweep import following, progress
from regress.commands.sweep.done import FILE, Done, Suite, Tried
from regress.commands.sweep.following import Followed, alone, follow
from regress.history import Store
from regress.history.kept import StateFile, write
from regress.model import Case, Kind
from regress.session import Request, Session
from tests.conftest import Project
from tests.history.samples import BOX, ENV, OTHER_SHA, SHA, benchmark, side, taken

H100 = Kind("h100")


class Told:
    """What people are told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.done = 0

    def start(self, total: int, title: str) -> None:
        self.total = total

    def advance(self, text: str, steps: int = 1) -> None:
        self.done += steps

    def note(self, text: str) -> None:
        self.notes.append(text)


@dataclass
class Scripted:
    """An engine that does one step each time it is asked: a function of the test."""

    run: Run
    steps: Iterator[Mapping[Place, Queued] | None]
    ends: dict[Place, Gone] = field(default_factory=dict)
    submitted: list[tuple[str, tuple[int, ...], tuple[str, ...]]] = field(default_factory=list)
    cancelled: list[Any] = field(default_factory=list)
    refuses: tuple[str, ...] = ()
    silent: int = 0
    """How many times it does not answer before it takes a job."""

    def submit(self, run: Run, kind: Kind, tasks: Sequence[int], exclude: Sequence[str] = ()) -> str | None:
        if self.silent:
            self.silent -= 1
            return None
        if kind.name in self.refuses:
            raise Refused("Slurm takes no job of kind h100", why="Invalid account", fix='correct "h100"')
        self.submitted.append((kind.name, tuple(tasks), tuple(exclude)))
        return str(len(self.submitted))

    def queued(self, run: Run) -> Mapping[Place, Queued] | None:
        return next(self.steps)

    def gone(self, run: Run, kind: str, task: int, job: str) -> Gone:
        return self.ends.get((kind, task), Gone("unknown"))

    def cancel(self, run: Run, places: Sequence[Place] | None = None) -> None:
        self.cancelled.append(places)

    def to_end(self, run: Run) -> str:
        return "scancel"

    def attach(self, kind: Kind, text: str, name: str) -> Attached:
        raise NotImplementedError


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "POLL_S", (0.0, 0.0))
    monkeypatch.setattr(following, "LATE_S", 0.0)


@dataclass
class Place_:
    """A run of some tasks, its project's session, and who is told."""

    run: Run
    session: Session
    told: Told

    def follow(self, engine: Scripted, kinds: Sequence[Kind] = (H100,), **how: Any) -> Followed:
        with alone(self.run, self.told):
            return follow(self.run, kinds, engine, self.session, self.told, **how)

    def attempt(self, task: int = 0, job: str = "1", node: str = "node7", end: End | None = None) -> Attempt:
        made = self.run.begin("h100", task, job)
        write(made.folder / "began.json", {"node": node, "job": job})
        if end is not None:
            self.end(made, end)
        return made

    def end(self, attempt: Attempt, end: End) -> None:
        if end.is_whole:
            store = Store(attempt.results)
            machine = type(BOX)("h100", BOX.facts)
            for order in range(2):
                at = 100.0 * attempt.number + order
                round = taken(benchmark().name, order=order, started_at=at, gpu_time=1e-3 + at * 1e-9)
                store.append(side(), machine, ENV, round, {"gpu_uuid": f"of {attempt.folder.name}"}, benchmark())
            store.finish(side(), machine, ENV, python="3.12", benchmarks={benchmark().name: benchmark()})
        write(attempt.folder / "end.json", end)

    @property
    def rounds(self) -> int:
        recorded = Store(self.session.config.results_dir).load(SHA, "h100").recorded
        return sum(len(result.rounds) for result in recorded)


@pytest.fixture
def place(project: Any, tmp_path: Path) -> Place_:
    p: Project = project()
    p.commit({"proj/__init__.py": ""})
    plan = Plan("key", "regress sweep --on h100", "", "asv.conf.json", {"h100": (Task(0, (SHA,)),)}, recorded_in=ENV)
    return Place_(create(tmp_path, plan), Session(Request(p.root)), Told())


WAITS = {("h100", 0): Queued("waiting", "Resources")}
RUNS = {("h100", 0): Queued("running", node="node7")}


def test_what_is_new_is_submitted_and_what_has_ended_is_merged_once(place: Place_) -> None:
    def steps() -> Iterator[Any]:
        yield {}
        yield WAITS
        made = place.attempt()
        yield RUNS
        place.end(made, End(0))
        yield {}

    engine = Scripted(place.run, steps())
    followed = place.follow(engine)
    assert engine.submitted == [("h100", (0,), ())]
    assert (followed.came["h100"], followed.warnings, place.rounds, followed.settled) == (1, [], 2, True)
    assert place.told.notes[0] == "h100: 1 wait, 0 of 1 in"
    again = place.follow(Scripted(place.run, iter([{}])))
    assert (again.came["h100"], place.rounds) == (1, 2)


def test_a_kind_that_is_refused_is_said_and_nothing_is_lost(place: Place_) -> None:
    engine = Scripted(place.run, iter([{}]), refuses=("h100",))
    with pytest.raises(Refused, match="takes no job"):
        place.follow(engine)
    assert place.run.submitted == ()
    assert place.told.notes == ['h100: Slurm takes no job of kind h100: Invalid account; fix: correct "h100"']


def test_of_two_kinds_the_other_goes_on_where_one_is_refused(place: Place_, tmp_path: Path) -> None:
    tasks = {"a100": (Task(0, (SHA,)),), "h100": (Task(0, (SHA,)),)}
    place.run = create(tmp_path / "two", Plan("key", "", "", "asv.conf.json", tasks))

    def steps() -> Iterator[Any]:
        yield {}
        place.attempt(end=End(0))
        yield {}

    followed = place.follow(Scripted(place.run, steps(), refuses=("a100",)), [Kind("a100"), H100])
    assert followed.came == {"h100": 1}
    assert "a100: Slurm takes no job" in followed.warnings[0]
    assert not followed.settled, "the same command tries it again"


@pytest.mark.parametrize("silent", [0, 2])
def test_slurm_that_does_not_answer_is_waited_for(place: Place_, monkeypatch: pytest.MonkeyPatch, silent: int) -> None:
    """Neither when it is asked, nor when it is given a job."""
    monkeypatch.setattr(progress, "TELL_S", 0.0)

    def steps() -> Iterator[Any]:
        yield from [{}] * (1 + silent)
        yield None
        yield None
        place.attempt(end=End(0))
        yield {}

    engine = Scripted(place.run, steps(), silent=silent)
    followed = place.follow(engine)
    assert (followed.came, followed.settled, len(engine.submitted)) == ({"h100": 1}, True, 1)
    assert any(note.startswith("no answer for ") for note in place.told.notes)


def test_one_look_at_a_slurm_that_does_not_answer_waits_for_nothing(place: Place_) -> None:
    followed = place.follow(Scripted(place.run, iter([None])), waits=False)
    assert followed.warnings == ["the cluster does not answer; the same command tries again"]
    assert not followed.settled


@pytest.mark.parametrize(
    ("gone", "words"),
    [
        (Gone("failed", "node7 went down"), "node7 went down"),
        (Gone("failed", "it ran out of memory on node7"), "it ran out of memory on node7"),
        (Gone("unknown"), "it ended without a message"),
    ],
)
def test_what_died_is_begun_again_whole_by_another_attempt(place: Place_, gone: Gone, words: str) -> None:
    def steps() -> Iterator[Any]:
        yield {}
        place.attempt()
        yield {}
        place.attempt(job="2", end=End(0))
        yield {}

    engine = Scripted(place.run, steps(), ends={("h100", 0): gone})
    followed = place.follow(engine)
    assert engine.submitted == [("h100", (0,), ()), ("h100", (0,), ())]
    assert f"h100 0: {words}; begun again (2 of 3)" in place.told.notes
    assert (followed.came["h100"], followed.given_up, place.rounds) == (1, 0, 2)


def test_a_node_on_which_two_attempts_died_gets_no_third_and_the_last_error_is_told(place: Place_) -> None:
    error = End(2, error=("the disk is full", "no space left on device", "df -h /shared"))

    def steps() -> Iterator[Any]:
        yield {}
        for job in "123":
            place.attempt(job=job, end=error)
            yield {}

    place.run.log("h100", 0).write_text("error: the disk is full\nwhy:   no space left on device\nfix:   df -h\n")
    engine = Scripted(place.run, steps(), ends={("h100", 0): Gone("ended")})
    followed = place.follow(engine)
    assert [entry[2] for entry in engine.submitted] == [(), (), ("node7",)]
    (warning,) = followed.warnings
    assert warning == f"h100 0 was given up after 3 attempts: the disk is full    # log: {place.run.log('h100', 0)}"
    assert (followed.given_up, place.rounds, followed.settled) == (1, 0, True)


def test_what_slurm_has_requeued_is_not_submitted_by_us(place: Place_) -> None:
    """Preempted: told to end, and begun again by Slurm itself."""

    def steps() -> Iterator[Any]:
        yield {}
        place.attempt(end=End(130))
        yield WAITS
        place.attempt(end=End(0))
        yield {}

    engine = Scripted(place.run, steps())
    followed = place.follow(engine)
    assert (len(engine.submitted), followed.came["h100"], place.rounds) == (1, 1, 2)
    assert not any("begun again" in note for note in place.told.notes), "nothing died"


@pytest.mark.parametrize("late_s", [0.0, 0.02])
@pytest.mark.parametrize("begun", [False, True])
def test_what_was_cancelled_is_said_and_the_same_command_submits_it_again(
    place: Place_, begun: bool, late_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its end might be written and not be seen yet, which the next driver waits for too."""
    monkeypatch.setattr(following, "LATE_S", late_s)

    def steps() -> Iterator[Any]:
        yield {}
        if begun:
            place.attempt(end=End(130))
        yield from itertools.repeat({})

    gone = {("h100", 0): Gone("cancelled")} if begun else {}  # one that waited is unknown to Slurm afterwards
    followed = place.follow(Scripted(place.run, steps(), ends=gone))
    assert (followed.cancelled, followed.warnings) == (1, ["1 task was cancelled; the same command submits them again"])
    assert find(place.run.folder.parents[1], "key") is not None

    def later() -> Iterator[Any]:
        while not engine.submitted:
            yield {}
        place.attempt(job="1", end=End(0))
        yield {}

    engine = Scripted(place.run, later(), ends=gone)
    assert place.follow(engine).came == {"h100": 1}
    assert len(engine.submitted) == 1


def test_commits_that_cannot_be_measured_are_named_and_not_tried_without_end(place: Place_) -> None:
    end = End(
        3, measured=1, failed={"f" * 40: ("it does not build", "exit code 2", "")}, tried={"f" * 40: {"x b": "1"}}
    )

    def steps() -> Iterator[Any]:
        yield {}
        place.attempt(end=end)
        yield {}

    followed = place.follow(Scripted(place.run, steps()))
    log = place.run.log("h100", 0)
    assert followed.warnings == [f"h100: ffffffff was left out: it does not build: exit code 2    # log: {log}"]
    assert StateFile(place.session.cache / FILE, "commits", dict[str, Tried]).read() == {"f" * 40: {"x b": "1"}}


def test_a_commit_that_builds_on_no_node_is_given_up_after_three_sweeps(
    place: Place_, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = Suite(ENV, {benchmark().name: benchmark()}, (Case(benchmark().name),), 2)
    lacking = []
    for number in range(3):
        with monkeypatch.context() as patched:
            patched.setenv("REGRESS_CACHE_DIR", str(tmp_path / f"node{number}"))
            node = Done(Session(place.session.request), suite, retry=True)
            node.unbuilt(OTHER_SHA, "nvcc fails")
        place.run = create(tmp_path / str(number), place.run.plan)
        place.attempt(end=End(3, measured=1, tried=node.tried))
        place.follow(Scripted(place.run, iter([{}])))
        lacking.append(bool(Done(place.session, suite, retry=False).missing(OTHER_SHA)))
    assert lacking == [True, True, False]


def test_what_is_killed_between_two_writes_merges_the_same_attempt_again(place: Place_, monkeypatch: Any) -> None:
    """A late second attempt that is whole too must not come in beside the first."""

    def steps() -> Iterator[Any]:
        yield {}
        place.attempt(end=End(0))
        yield {}

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("regress.commands.sweep.arrivals.Merging.finish", killed)
        assert place.follow(Scripted(place.run, steps())).interrupted
    place.attempt(job="1", end=End(0))
    assert place.follow(Scripted(place.run, iter([{}]))).came == {"h100": 1}
    assert place.rounds == 2


def test_a_second_driver_waits_for_the_first(place: Place_, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Driver(socket.gethostname(), os.getppid(), started(os.getppid()))
    write(place.run.folder / "driver.json", other)
    place.attempt(end=End(0))
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        (place.run.folder / "driver.json").unlink()

    monkeypatch.setattr("regress.commands.sweep.following.time.sleep", nap)
    followed = place.follow(Scripted(place.run, iter([{}])))
    assert place.told.notes[0] == f"{place.run.name} is followed by {other.words}: waiting until it ends"
    assert (len(naps), followed.came["h100"]) == (1, 1)


def test_a_number_that_another_process_has_by_now_is_no_driver(place: Place_) -> None:
    write(place.run.folder / "driver.json", Driver(socket.gethostname(), os.getppid(), "before the last start"))
    assert place.run.lead() is None


def test_a_driver_on_another_host_is_alive_by_the_clock_of_the_disk(
    place: Place_, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = place.run.folder / "driver.json", Driver("login2", 1)
    write(path, other)
    with monkeypatch.context() as patched:
        patched.setattr("time.time", lambda: path.stat().st_mtime + 3600)  # our clock is ahead
        assert place.run.lead() == other
    os.utime(path, (0, path.stat().st_mtime - 2 * STALE_S))
    assert place.run.lead() is None


def test_a_driver_that_was_taken_for_dead_ends_and_says_who_follows(place: Place_) -> None:
    other = Driver("login2", 1)

    def steps() -> Iterator[Any]:
        yield {}
        write(place.run.folder / "driver.json", other)
        yield WAITS

    followed = place.follow(Scripted(place.run, steps()))
    assert (followed.interrupted, followed.settled) == (True, False)
    assert followed.warnings == [f"{place.run.name} is followed by 1 on login2 by now, which reports what comes of it"]


def test_results_that_may_not_be_mixed_are_left_out_with_the_command_that_takes_them(place: Place_) -> None:
    """Two nodes that came at once may both have passed for the first of their kind."""
    tasks = {"h100": (Task(0, (SHA,)), Task(1, (SHA,)))}
    place.run = create(place.run.folder / "two", Plan("key", "", "", "asv.conf.json", tasks))
    place.attempt(end=End(0))
    odd = place.attempt(1, end=End(0))
    facts = odd.results / "h100" / "machine.json"
    facts.write_text(facts.read_text().replace("Some CPU", "Another CPU"))
    followed = place.follow(Scripted(place.run, iter([{}])))
    assert (place.rounds, followed.settled, followed.given_up) == (2, True, 1)
    (warning,) = followed.warnings
    assert warning.startswith(f"h100 1 was not merged: cannot merge {odd.results}: its h100 is another machine")
    assert warning.endswith(f"; then regress merge {odd.results}")


def test_results_that_are_gone_are_no_results_that_are_in(place: Place_) -> None:
    shutil.rmtree(place.attempt(end=End(0, measured=1)).results)
    followed = place.follow(Scripted(place.run, iter([{}])))
    assert followed.given_up == 1
    assert "h100 0 was not merged: there is no folder" in followed.warnings[0]


def test_what_is_tried_again_says_nothing_of_what_was_found_before(place: Place_) -> None:
    one, other = Case("b.one"), Case("b.other")
    suite = Suite(ENV, {case.name: benchmark(case.name) for case in (one, other)}, (one, other), 2)
    Done(place.session, suite, retry=False).absent(SHA, [one])
    again = Done(place.session, suite, retry=True)
    again.absent(SHA, [other])
    assert again.missing(SHA) == {one: 2}
    assert Done(place.session, suite, retry=False).missing(SHA) == {}


def test_what_was_found_of_commits_is_kept_before_a_task_counts_as_merged(
    place: Place_, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = Run.take

    def killed(run: Run, taken: Mapping[str, Any]) -> None:
        if any(count.merged for count in taken.values()):
            raise KeyboardInterrupt
        take(run, taken)

    place.attempt(end=End(3, tried={SHA: {"env b.gone": "v1"}}))
    with monkeypatch.context() as patched:
        patched.setattr(Run, "take", killed)
        assert place.follow(Scripted(place.run, iter([{}]))).interrupted
    kept = StateFile(place.session.cache / FILE, "commits", dict[str, Tried]).read()
    assert kept == {SHA: {"env b.gone": "v1"}}


def test_after_the_budget_nothing_begins_and_what_runs_is_waited_for(place: Place_, tmp_path: Path) -> None:
    tasks = {"h100": (Task(0, (SHA,)), Task(1, (SHA,)))}
    place.run = create(tmp_path / "two", Plan("key", "", "", "asv.conf.json", tasks))
    waits = {**RUNS, ("h100", 1): Queued("waiting")}

    def steps() -> Iterator[Any]:
        yield {}
        made = place.attempt()
        yield waits
        place.end(made, End(0))
        yield {}

    engine = Scripted(place.run, steps())
    clock = [0.0]

    def sleep(seconds: float) -> None:
        clock[0] = 1e6  # the budget ends between the first look and the second

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("regress.commands.sweep.following.time.monotonic", lambda: clock[0])
        patched.setattr("regress.commands.sweep.following.time.sleep", sleep)
        followed = place.follow(engine, end_s=5000.0)
    assert engine.cancelled == [[("h100", 1)]]
    assert (followed.came["h100"], followed.cancelled) == (1, 0)


def test_without_waiting_there_is_one_look(place: Place_) -> None:
    engine = Scripted(place.run, iter([{}]))
    followed = place.follow(engine, waits=False)
    assert (engine.submitted, followed.came, followed.settled) == ([("h100", (0,), ())], {}, False)


def test_people_are_told_in_a_line_a_kind_how_far_it_is(place: Place_, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(progress, "TELL_S", 0.0)
    tasks = {"h100": tuple(Task(number, (SHA,)) for number in range(6))}
    place.run = create(tmp_path / "six", Plan("key", "", "", "asv.conf.json", tasks))
    some = {("h100", 1): Queued("running"), ("h100", 2): Queued("running")}
    some |= {("h100", number): Queued("waiting", "Resources") for number in (3, 4, 5)}

    def steps() -> Iterator[Any]:
        yield {}
        place.attempt(end=End(0, took_s=600.0))
        yield some
        raise KeyboardInterrupt

    followed = place.follow(Scripted(place.run, steps()))
    assert place.told.notes == ["h100: 6 wait, 0 of 6 in", "h100: 3 wait (Resources), 2 run, 1 of 6 in; about 30 min"]
    assert (followed.interrupted, place.told.done) == (True, 1)


class Slots(Scripted):
    """An engine that starts a task on one of four slots when it is asked and one is free, as `local` does."""

    def __init__(self, place: Place_, takes_s: Sequence[float], clock: list[float]) -> None:
        super().__init__(place.run, iter(()))
        self._place, self._takes_s, self._clock = place, takes_s, clock
        self._running: dict[int, float] = {}

    def queued(self, run: Run) -> Mapping[Place, Queued]:
        ended = [task for task, end_s in self._running.items() if end_s <= self._clock[0]]
        for task in ended:
            del self._running[task]
            self._place.attempt(task, end=End(0))
        begun = {int(path.name.partition(".")[0]) for path in run.folder.glob("h100/*.*/")} | self._running.keys()
        waiting = [task for _, tasks, _ in self.submitted for task in tasks if task not in begun]
        for task in waiting[: 4 - len(self._running)]:
            self._running[task] = self._clock[0] + self._takes_s[task]
        left = [task for task in waiting if task not in self._running]
        states = {("h100", task): Queued("running") for task in self._running}
        return states | {("h100", task): Queued("waiting") for task in left}


@pytest.mark.parametrize("scale_s", [2.0, 20.0, 600.0])
def test_twelve_jobs_on_four_slots_take_little_longer_than_they_must(
    place: Place_, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scale_s: float
) -> None:
    takes_s = [scale_s * share for share in (1.0, 0.9, 1.1, 1.0, 1.2, 0.8, 1.0, 1.0, 0.9, 1.1, 1.0, 1.0)]
    place.run = create(
        tmp_path / "twelve",
        Plan("key", "", "", "asv.conf.json", {"h100": tuple(Task(number, (SHA,)) for number in range(12))}),
    )
    clock = [0.0]
    monkeypatch.setattr(following, "POLL_S", (0.5, 30.0))
    monkeypatch.setattr("regress.commands.sweep.following.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(
        "regress.commands.sweep.following.time.sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds)
    )
    followed = place.follow(Slots(place, takes_s, clock))
    assert followed.came == {"h100": 12}
    assert clock[0] <= 1.3 * sum(takes_s) / 4, "of which 0.1 are no fault of ours: the last row is uneven"
