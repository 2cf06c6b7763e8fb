"""Programs as benchmarks: what a run of one comes to, and what of its cases that comes to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from regress.measure.wire import Program, Proposal, Suite, Task
from regress.model import PROGRAM, Benchmark, Commit, Protocol, Round, Settings, Side
from regress.run.deadline import ENDLESS
from regress.run.environments import Prepared
from regress.run.plan import unimportable
from regress.run.programs import Programs
from regress.run.starting import Starter
from tests.conftest import ended

WRITES = 'cp results.json "$1"'


def document(**medians: float) -> str:
    """What hyperfine would write of commands that took these seconds."""
    return json.dumps(
        {"results": [{"command": name, "median": value, "times": [value]} for name, value in medians.items()]}
    )


class Head:
    """One side: a folder with what its program does and writes."""

    def __init__(self, tree: Path, name: str = "head") -> None:
        tree.mkdir(parents=True)
        self.tree, self.programs = tree, Programs(60.0)
        self.side = Prepared(
            Side(name, Commit("0" * 40, "", "", 0.0), ""), tree, "python3", (tree,), {"PATH": "/usr/bin:/bin"}
        )
        self.starter = Starter(tree, tree, Settings(discover_timeout_s=20.0))

    def write(self, does: str = WRITES, **medians: float) -> None:
        (self.tree / "bench.sh").write_text(does)
        (self.tree / "results.json").write_text(document(**medians))

    def discovered(self, *programs: Program) -> Suite:
        return self.programs.discovered(self.starter, self.side, Suite([], [], programs=list(programs)))

    def visits(self, suite: Suite, order: int = 0, protocol: Protocol | None = None) -> list[Proposal | Round]:
        benchmarks = {benchmark.name: benchmark for benchmark in suite.benchmarks}
        tasks = [
            Task(benchmark.name, [axis[0] for axis in benchmark.params], "head", order, protocol)
            for benchmark in benchmarks.values()
        ]
        runs = self.programs.apart(tasks, benchmarks)
        return [reply for run in runs for _, reply in self.programs.visit(self.starter, self.side, run, ENDLESS)]

    def rounds(self, suite: Suite, order: int = 0) -> dict[str, Round]:
        rounds = self.visits(suite, order, Protocol("wall_time", process=PROGRAM))
        return {round.name: round for round in rounds if isinstance(round, Round)}


@pytest.fixture
def head(tmp_path: Path) -> Iterator[Head]:
    made = Head(tmp_path / "tree")
    yield made
    made.starter.close()


SORT = Program("tools.Sort", ["sh", "bench.sh", "{output}"], "hyperfine", version="1", declared={"tags": ["io"]})


def named(suite: Suite) -> dict[str, Benchmark]:
    return {benchmark.name: benchmark for benchmark in suite.benchmarks}


def test_the_cases_are_those_of_the_first_run_which_is_the_unmeasured_visit(head: Head) -> None:
    head.write(f"echo run >> runs; {WRITES}", small=1.0, big=2.0)
    suite = head.discovered(SORT)
    assert list(named(suite)) == ["tools.Sort.small", "tools.Sort.big"]
    small = named(suite)["tools.Sort.small"]
    assert (small.program, small.version, small.declared, small.metric) == (
        "tools.Sort",
        "1",
        {"tags": ["io"]},
        "wall_time",
    )
    proposals = head.visits(suite, -1)
    assert [proposal.protocol and proposal.protocol.process for proposal in proposals] == [PROGRAM, PROGRAM]
    assert (head.tree / "runs").read_text() == "run\n"
    head.write(WRITES, small=3.0, big=4.0)
    rounds = head.rounds(suite)
    assert {name: records.values["wall_time"].value for name, records in rounds.items()} == {
        "tools.Sort.small": 3.0,
        "tools.Sort.big": 4.0,
    }
    assert {round.process for round in rounds.values()} != {0}
    assert all(round.duration_s > 0 for round in rounds.values())


def test_what_a_program_lists_is_not_run_to_find_its_cases(head: Head) -> None:
    head.write("exit 9")
    (head.tree / "list").write_text("BM_sort/n:8\nBM_sort/n:16\n")
    suite = head.discovered(replace(SORT, format="google-benchmark", list_command=["cat", "list"]))
    assert suite.problems == []
    assert named(suite)["tools.Sort.BM_sort"].params == [["8", "16"]]
    (reply,) = head.visits(suite, -1)
    assert reply.failure is not None
    assert reply.failure.message == "ended with exit code 9"


def test_parameters_are_words_of_the_command_and_axes_of_its_cases(head: Head) -> None:
    head.write('sed "s/1.5/$2/g" results.json > "$1"', copy=1.5)
    command = ["sh", "bench.sh", "{output}", "{n}"]
    suite = head.discovered(replace(SORT, command=command, params=[["2", "4"]], param_names=["n"]))
    copy = named(suite)["tools.Sort.copy"]
    assert (copy.params, copy.param_names) == ([["2", "4"]], ["n"])
    task = Task("tools.Sort.copy", ["4"], "head", 0, Protocol("wall_time"))
    ((_, reply),) = head.programs.visit(head.starter, head.side, [task], ENDLESS)
    assert isinstance(reply, Round)
    assert reply.values["wall_time"].value == 4.0


def test_its_folder_environment_and_output_are_the_programs_own(head: Head) -> None:
    (head.tree / "sub").mkdir()
    head.write()
    program = replace(SORT, command=["sh", "-c", 'echo "$WHAT"'], cwd="sub", env={"WHAT": document(here=2.5)})
    assert list(named(head.discovered(program))) == ["tools.Sort.here"]  # what it prints is the document


@pytest.mark.parametrize(
    "does, kind, message",
    [
        ("echo no luck >&2; exit 3", "error", "ended with exit code 3: no luck"),
        ("kill -SEGV $$", "signal", "failed (signal 11, SIGSEGV)"),
        ("true", "error", "it wrote nothing to {output}"),
        ('head -c 20 results.json > "$1"', "error", "its output is not a document of hyperfine: "),
        ("sleep 600", "timeout", "took longer than 3 s"),
    ],
)
def test_a_run_that_goes_wrong_is_a_failure_of_all_its_cases(head: Head, does: str, kind: str, message: str) -> None:
    head.write(WRITES, small=1.0, big=2.0)
    suite = head.discovered(replace(SORT, timeout_s=3.0 if kind == "timeout" else 20.0))
    head.write(does, small=1.0, big=2.0)
    rounds = head.rounds(suite)
    failures = [round.failure for round in rounds.values()]
    assert len(failures) == 2
    for failure in failures:
        assert failure is not None
        assert (failure.kind, failure.message[: len(message)]) == (kind, message)
    assert all(not round.values for round in rounds.values())


def test_all_that_a_late_program_started_is_ended(head: Head) -> None:
    head.write(WRITES, small=1.0)
    suite = head.discovered(replace(SORT, timeout_s=3.0))
    head.write("sleep 600 & echo $! > child; wait", small=1.0)
    (round_,) = head.rounds(suite).values()
    assert round_.failure is not None
    assert ended(int((head.tree / "child").read_text()))


def test_a_case_that_is_missing_from_a_run_fails_alone(head: Head) -> None:
    head.write(WRITES, small=1.0, big=2.0)
    suite = head.discovered(SORT)
    head.write(f"{WRITES}; echo big is broken >&2; exit 1", small=1.0)
    rounds = head.rounds(suite)
    assert rounds["tools.Sort.small"].values["wall_time"].value == 1.0
    failure = rounds["tools.Sort.big"].failure
    assert failure is not None
    assert failure.message == "the program did not report this case: ended with exit code 1: big is broken"


def test_what_worked_on_the_other_side_and_is_missing_here_has_failed(head: Head, tmp_path: Path) -> None:
    """Where the program says that something went wrong; where it does not, the case is gone, as a function is."""
    base = Head(tmp_path / "base", "base")
    try:
        base.write(WRITES, small=1.0, big=2.0)
        had = named(base.discovered(SORT))
    finally:
        base.starter.close()
    for does, lost in ((f"{WRITES}; exit 1", {"tools.Sort.big"}), ("exit 1", {"tools.Sort.small", "tools.Sort.big"})):
        head.programs = Programs(60.0)
        head.write(does, small=1.0)
        failures = unimportable(head.discovered(SORT), had)
        assert set(failures) == lost
        assert all(failure.message == "ended with exit code 1" for _, failure in failures.values())
    head.programs = Programs(60.0)
    head.write(WRITES, small=1.0)
    assert unimportable(head.discovered(SORT), had) == {}


@pytest.mark.parametrize(
    "change, message",
    [
        ({"command": ["./build/sort"]}, "./build/sort cannot be run on 00000000: no such file or directory; "),
        (
            {"cwd": "native"},
            "sh cannot be run on 00000000: no such file or directory, because there is no folder native; ",
        ),
        ({"format": "csv"}, "there is no format 'csv'; known are google-benchmark, "),
        ({"list_command": ["true"]}, "its output is not a document of hyperfine: hyperfine lists no cases"),
    ],
)
def test_a_program_that_cannot_be_asked_is_a_problem_of_the_suite(
    head: Head, change: dict[str, object], message: str
) -> None:
    head.write(WRITES, small=1.0)
    suite = head.discovered(replace(SORT, **change))  # type: ignore[arg-type]
    assert suite.benchmarks == []
    (problem,) = suite.problems
    assert (problem.where, problem.fatal, problem.program) == ("tools.Sort", True, True)
    assert problem.message.startswith(message)


def test_files_that_the_program_named_after_the_output_are_read(head: Head) -> None:
    """cutlass_profiler appends the kind of its operations, and writes a file for each."""
    head.write('cp results.json "$1.gemm.csv"; sed s/small/large/ results.json > "$1.conv2d.csv"', small=1.0)
    assert list(named(head.discovered(SORT))) == ["tools.Sort.large", "tools.Sort.small"]


def test_what_stands_where_is_declared_by_the_class(head: Head) -> None:
    head.write()
    mapping = {"cases": "results", "name": "command", "values": {"wall_time": ["median", "s"]}}
    (head.tree / "results.json").write_text(document(small=1.0))
    assert list(named(head.discovered(replace(SORT, format="json", mapping=mapping)))) == ["tools.Sort.small"]


def test_a_side_is_asked_once_whoever_asks(head: Head) -> None:
    """Lanes of several GPUs have their programs in common."""
    head.write(f"echo run >> runs; {WRITES}", small=1.0)
    assert head.discovered(SORT) is head.discovered(SORT)
    assert (head.tree / "runs").read_text() == "run\n"
