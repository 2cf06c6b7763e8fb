"""Every row of the table in docs/exit-codes.md, on a real run of the command line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest

from regress.compare.budget import Budget
from tests.conftest import Project, inside, interrupted, start, with_this_checkout
from tests.traces.exports import export

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "exit-codes.md").read_text().partition("| code | when |")[2]
ROWS = re.findall(r"^\| (\d+) \| (.+?) \|$", TABLE, re.MULTILINE)

CODE = "import regress_scripted as d\ndef work(): d.kernel('k', {seconds})\ndef other(): d.kernel('o', 80e-6)\n"
FAST, SLOW = CODE.format(seconds=50e-6), CODE.format(seconds=60e-6)
FAILING = CODE.format(seconds=50e-6).replace("work(): d", "work(): d.nothing; d")
BOTH_FAIL = CODE.format(seconds=50e-6).replace("(): d", "(): d.nothing; d")
SUITE = "import proj\ndef cudatime_work(): proj.work()\ndef cudatime_other(): proj.other()\n"
UNPROFILED = "import sys\n" + SLOW.replace(
    "work(): d", "work(): '_regress_measure.profiling' in sys.modules and d.nothing; d"
)
SKIPPING = """
class Skipping:
    critical = {critical}
    def setup(self):
        if hasattr(proj, "GONE"): raise NotImplementedError
    def track_skipping(self): return 5
"""
CRITICAL = SUITE + "cudatime_other.critical = True\n"

NOISY = """
def track_noisy():
    from pathlib import Path
    mark = Path({mark!r})
    seen = len(mark.read_text()) if mark.exists() else 0
    mark.write_text("x" * (seen + 1))
    return 100.0 + 30 * (seen % 2)
"""
"""Two values in turn, both of them on both sides."""

Make = Callable[..., Project]
Run = Callable[[Make], int]

RUNS: dict[str, Run] = {}
"""What a row says -> the exit code of a run of which it holds."""


def row(when: str) -> Callable[[Run], Run]:
    def add(run: Run) -> Run:
        RUNS[when] = run
        return run

    return add


def two(make: Make, base: str = FAST, head: str = FAST, suite: str = SUITE, **settings: object) -> Project:
    """A project of two commits."""
    p = make(**{"check_rounds": 2, "run_rounds": 2, **settings})
    p.commit({"proj/__init__.py": base, "benchmarks/b.py": suite})
    p.commit({"proj/__init__.py": head})
    return p


def noisy(make: Make, suite: str) -> Project:
    """A project of two commits whose last benchmark stays undecided."""
    p = two(make, suite=suite)
    p.commit({"benchmarks/c.py": NOISY.format(mark=str(p.root.parent / "mark"))})
    return p


def code(p: Project, *arguments: str) -> int:
    result = p.regress(*arguments, "-q") if arguments[0] not in ("export", "report", "once") else p.regress(*arguments)
    assert "Traceback" not in result.err
    return result.code


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_the_table(row: tuple[str, str], project: Make) -> None:
    assert RUNS[row[1]](project) == int(row[0])


def test_nothing_is_tested_that_the_table_does_not_say() -> None:
    assert {when for _, when in ROWS} == set(RUNS)


# -- check ---------------------------------------------------------------------------------------------------------------


@row("`check`: nothing regressed")
def _(make: Make) -> int:
    return code(two(make), "check")


@row("`check`: a benchmark fails on both sides, which the report lists")
def _(make: Make) -> int:
    return code(two(make, FAILING, FAILING), "check")


@row("`check`: a benchmark is undecided, and no more than half of them are")
def _(make: Make) -> int:
    p = noisy(make, SUITE)
    assert '"undecided": 1' in p.regress("check", "--format", "json").out
    return code(p, "check")


@row("`check --quick`: it decides nothing")
def _(make: Make) -> int:
    return code(two(make), "check", "--quick")


@row("`check`: most benchmarks are undecided, or were not reached in time")
def _(make: Make) -> int:
    p = noisy(make, SUITE)
    result = p.regress("check", "-b", "noisy")
    assert "UNDECIDED  covered 0 of 1 case: 1 undecided" in result.out
    return result.code


@row("`check`: what looked worse could not be confirmed before the budget ended")
def _(make: Make) -> int:
    p = two(make, head=SLOW, check_rounds=0)
    with patch.object(Budget, "confirmable", lambda budget, suspects: []):
        result = inside(p, "check", "HEAD~1", "HEAD")
    assert "large, but not confirmed before measuring ended" in result.out
    assert "UNDECIDED  2 cases: 1 undecided, 1 unchanged" in result.out
    return result.code


@row("`check`: nothing was reached before the budget ended")
def _(make: Make) -> int:
    result = two(make, check_rounds=0).regress("check", "--budget", "0.01")
    assert "  2 not reached before measuring ended (-v lists them)" in result.out
    assert "NOTHING  covered 0 of 2 cases: 2 undecided" in result.out
    return result.code


@row("`check --affected`: nothing affected")
def _(make: Make) -> int:
    p = make()
    p.commit(
        {"proj/__init__.py": FAST, "benchmarks/b.py": SUITE + "cudatime_work.covers = cudatime_other.covers = 'lib/'\n"}
    )
    p.commit({"docs/a.md": ""})
    return code(p, "check", "--affected")


@row("`check`: something regressed")
def _(make: Make) -> int:
    return code(two(make, head=SLOW), "check")


@row("any command: usage, an option or an argument that does not exist")
def _(make: Make) -> int:
    p = two(make)
    assert {code(p, command, "--nowhere") for command in ("run", "sweep", "compare", "report", "merge", "build")} == {2}
    return code(p, "check", "--nowhere")


@row("any command: the configuration is missing, or says something unknown")
def _(make: Make) -> int:
    p = two(make, time_treshold=0.1)
    assert code(p, "check") == 2
    (p.root / "asv.conf.json").unlink()
    return code(p, "run")


@row("`check`: an unknown revision, or one without a parent")
def _(make: Make) -> int:
    p = two(make)
    assert code(p, "check", "HEAD~2") == 2
    return code(p, "check", "nowhere")


@row("`check`: a benchmark fails on head that worked on base")
def _(make: Make) -> int:
    return code(two(make, head=FAILING), "check")


@row("`check`: however many fail")
def _(make: Make) -> int:
    many = "class Many:\n    params = list(range(256))\n    def track_n(self, n): import proj; return proj.n() and n\n"
    p = make(check_rounds=2, process="fresh")
    p.commit({"proj/__init__.py": "def n(): return 1\n", "benchmarks/b.py": many})
    p.commit({"proj/__init__.py": "def n(): raise ValueError\n"})
    result = p.regress("check", "--format", "json")
    assert json.loads(result.out)["counts"] == {"failed": 256}
    return result.code


@row("`check`: head does not build")
def _(make: Make) -> int:
    p = two(make, build="test ! -f broken")
    p.commit({"broken": ""})
    return code(p, "check")


@row("`check`: a benchmark file cannot be imported")
def _(make: Make) -> int:
    p = two(make)
    p.commit({"benchmarks/broken.py": "import nowhere_at_all\n"})
    return code(p, "check")


@row("`check --strict`: a benchmark fails on both sides")
def _(make: Make) -> int:
    return code(two(make, FAILING, FAILING), "check", "--strict")


@row("`check --strict`: a benchmark is undecided")
def _(make: Make) -> int:
    return code(two(make), "check", "--strict", "--quick")


@row("`check --prove`: a benchmark was not proven in time not to be slower")
def _(make: Make) -> int:
    return code(noisy(make, SUITE), "check", "--prove")


@row("`check`: a critical benchmark is undecided")
def _(make: Make) -> int:
    return code(two(make, suite=CRITICAL), "check", "--quick")


@row("`check --prove`: a benchmark gave a number on base and is skipped on head")
def _(make: Make) -> int:
    suite = f"{SUITE}{SKIPPING.format(critical=False)}"
    p = two(make, head=FAST + "GONE = True\n", suite=suite, check_rounds=6)
    assert (code(p, "check"), code(p, "check", "--prove", "-b", "cudatime")) == (0, 0)
    return code(p, "check", "--prove")


@row("`check`: a critical benchmark is skipped on head, is gone, or cannot be measured on this machine")
def _(make: Make) -> int:
    missing = f"{SUITE}def cudatime_two(): pass\ncudatime_two.gpus, cudatime_two.critical = 2, True\n"
    assert code(two(make, name="missing", suite=missing), "check") == 4
    gone = two(make, name="gone", suite=f"{SUITE}def track_gone(): return 5\ntrack_gone.critical = True\n")
    gone.commit({"benchmarks/b.py": SUITE})
    assert code(gone, "check", "HEAD~1", "HEAD", "--suite", "own") == 4
    return code(two(make, head=FAST + "GONE = True\n", suite=f"{SUITE}{SKIPPING.format(critical=True)}"), "check")


@row("`check`: a critical benchmark fails on both sides")
def _(make: Make) -> int:
    return code(two(make, suite=f"{SUITE}def track_no(): 1 / 0\ntrack_no.critical = True\n"), "check")


@row("`check`: no benchmark matches")
def _(make: Make) -> int:
    return code(two(make), "check", "-b", "nothing")


@row("`check`: no environment")
def _(make: Make) -> int:
    return code(two(make, python="/nowhere/python"), "check")


@row("`check`: base does not build")
def _(make: Make) -> int:
    p = two(make, build="test ! -f broken")
    p.commit({"broken": ""})
    p.commit({})
    p.git("rm", "-q", "broken")
    p.commit({})
    return code(p, "check")


@row("`check`: there is no device, and every benchmark needs one")
def _(make: Make) -> int:
    return code(two(make, device="cpu"), "check")


@row("`check`: nothing gives a value on both sides, whatever else holds")
def _(make: Make) -> int:
    p = two(make, BOTH_FAIL, BOTH_FAIL)
    assert json.loads(p.regress("check", "--strict", "--format", "json").out)["exit_codes"] == [5, 3]
    return code(p, "check")


@row("any command: interrupted; what was measured is kept")
def _(make: Make) -> int:
    p = make(check_rounds=2)
    mark = p.root.parent / "mark"
    suite = f"import pathlib, proj, time\n{SUITE}def setup():\n    pathlib.Path({str(mark)!r}).touch()\n    time.sleep(0.2)\n"
    p.commit({"proj/__init__.py": FAST, "benchmarks/b.py": suite})
    p.commit({})
    done = interrupted(start(p.root, "check", "--rounds", "200", "--format", "json"), mark)
    assert json.loads(done.out)["verdict"] == "INTERRUPTED"
    return done.code


# -- gate ----------------------------------------------------------------------------------------------------------------


@row("`check --explain`: as `check`, whether or not it can be explained")
def _(make: Make) -> int:
    assert code(two(make, head=SLOW, name="explained"), "check", "--explain") == 1
    return code(two(make, head=UNPROFILED), "check", "--explain")


@row("`explain`: explained, whichever way it changed")
def _(make: Make) -> int:
    p = two(make, head=SLOW)
    assert code(p, "explain", "b.cudatime_work", "HEAD", "HEAD~1") == 0
    return code(p, "explain", "b.cudatime_work", "HEAD~1")


@row("`explain`: it fails on head")
def _(make: Make) -> int:
    return code(two(make, head=FAILING), "explain", "b.cudatime_work", "HEAD~1")


@row("`explain`: the difference does not reproduce")
def _(make: Make) -> int:
    return code(two(make), "explain", "b.cudatime_work", "HEAD~1")


@row("`explain`: it changed, but cannot be profiled")
def _(make: Make) -> int:
    return code(two(make, head=UNPROFILED), "explain", "b.cudatime_work", "HEAD~1")


@row("`gate`: what regressed is acknowledged")
def _(make: Make) -> int:
    p = two(make, head=SLOW)
    assert code(p, "gate", "HEAD~1") == 1
    assert code(p, "ack", "b.cudatime_work", "--reason", "known") == 0
    return code(p, "gate", "HEAD~1")


@row("`gate`: as `check`, or drifted since the last release, or open in the history")
def _(make: Make) -> int:
    p = two(make, head=SLOW)
    p.git("tag", "v1", "HEAD~1")
    p.commit({"NEWS": "more"})
    assert code(p, "sweep", "ALL") in (0, 1)
    assert code(p, "check", "HEAD~1") == 0
    return code(p, "gate", "HEAD~1")


@row("`gate`: the head does not descend from the release that drift is compared with")
def _(make: Make) -> int:
    p = two(make, gate_release="HEAD")
    return code(p, "gate", "HEAD~1", "HEAD~1")


# -- bisect --------------------------------------------------------------------------------------------------------------


def bisected(p: Project, good: str, bad: str) -> int:
    return code(p, "bisect", "b.cudatime_work", good, bad)


@row("`bisect`: the commit is found and confirmed")
def _(make: Make) -> int:
    return bisected(two(make, head=SLOW), "HEAD~1", "HEAD")


@row("`bisect`: BAD does not come after GOOD")
def _(make: Make) -> int:
    return bisected(two(make, head=SLOW), "HEAD", "HEAD~1")


@row("`bisect`: BAD does not build")
def _(make: Make) -> int:
    p = two(make, build="test ! -f broken")
    p.commit({"broken": ""})
    return bisected(p, "HEAD~1", "HEAD")


@row("`bisect`: not down to one commit")
def _(make: Make) -> int:
    p = two(make, build="test ! -f broken")
    p.commit({"proj/__init__.py": SLOW, "broken": ""})
    (p.root / "broken").unlink()
    p.commit({"NEWS": "mended"})
    return bisected(p, "HEAD~2", "HEAD")


@row("`bisect`: the budget ended before both ends were measured")
def _(make: Make) -> int:
    result = two(make, head=SLOW).regress("bisect", "cudatime_work", "HEAD~1", "HEAD", "--budget", "0.01")
    assert "ended before both ends were measured" in result.out
    assert "go on" in result.out
    return result.code


@row("`bisect`: GOOD and BAD do not differ")
def _(make: Make) -> int:
    return bisected(two(make), "HEAD~1", "HEAD")


# -- the others ----------------------------------------------------------------------------------------------------------


@row("`compare`: as `check`")
def _(make: Make) -> int:
    p = two(make, head=SLOW)
    assert code(p, "check", "--record") == 1
    assert code(p, "compare", "HEAD", "HEAD~1") == 0, "an improvement"
    return code(p, "compare", "HEAD~1", "HEAD")


@row("`compare`: what looks worse was recorded in a single session on one side")
def _(make: Make) -> int:
    p = two(make, head=SLOW)
    assert [code(p, "run", revision) for revision in ("HEAD~1", "HEAD")] == [0, 0]
    return code(p, "compare", "HEAD~1", "HEAD")


@row("`compare`: one of the two commits has no results on this machine")
def _(make: Make) -> int:
    p = two(make)
    assert code(p, "run", "HEAD", "--machine", "another") == code(p, "run", "HEAD~1") == 0
    return code(p, "compare", "HEAD~1", "HEAD")


@row("`fastest`: nothing is recorded, or no benchmark has several implementations")
def _(make: Make) -> int:
    p = two(make)
    assert code(p, "fastest") == 5
    assert code(p, "run") == 0
    return code(p, "fastest")


@row("`run`: everything is measured, or does not apply here")
def _(make: Make) -> int:
    skipped = "def no(): raise NotImplementedError\ndef cudatime_none(): pass\ncudatime_none.setup = no\n"
    return code(two(make, suite=f"{SUITE}{skipped}"), "run")


@row("`run`: a benchmark fails; the rest is measured")
def _(make: Make) -> int:
    return code(two(make, head=FAILING), "run")


@row("`run`: everything fails")
def _(make: Make) -> int:
    return code(two(make, head=BOTH_FAIL), "run")


@row("`sweep`: measured, or nothing to measure, and no regression or failure is new")
def _(make: Make) -> int:
    p = two(make)
    assert code(p, "sweep", "ALL") == 0
    return code(p, "sweep", "ALL")


@row("`sweep`: a regression is new")
def _(make: Make) -> int:
    p = two(make)
    for at, head in enumerate((FAST, FAST, SLOW, SLOW, SLOW, SLOW)):
        p.commit({"proj/__init__.py": head, "NEWS": str(at)})
    first = code(p, "sweep", "ALL")
    p.commit({"NEWS": "more"})
    assert code(p, "sweep", "NEW") == 0, "it is known by now"
    return first


@row("`sweep`: a commit cannot be built or measured; the others are measured")
def _(make: Make) -> int:
    p = two(make, build="test ! -f broken")
    p.commit({"broken": ""})
    p.git("rm", "-q", "broken")
    p.commit({})
    return code(p, "sweep", "ALL")


@row("`sweep`: a benchmark stopped giving numbers, which was not known before")
def _(make: Make) -> int:
    p = two(make, head=FAILING)
    first = code(p, "sweep", "ALL")
    p.commit({"NEWS": "more"})
    assert code(p, "sweep", "NEW") == 0, "it is known by now"
    return first


@row("`sweep`: a benchmark file cannot be imported with the newest commit's code")
def _(make: Make) -> int:
    p = two(make)
    p.commit({"benchmarks/broken.py": "import nowhere\n"})
    return code(p, "sweep", "ALL")


@row("`sweep`: the budget ended before a commit gave a number")
def _(make: Make) -> int:
    result = two(make).regress("sweep", "ALL", "--budget", "0.01")
    assert "ended before a commit had given a number" in result.err + result.out
    return result.code


@row("`sweep`: nothing could be measured")
def _(make: Make) -> int:
    return code(two(make, device="cpu"), "sweep", "ALL")


@row("`build`: a commit does not build; the others do")
def _(make: Make) -> int:
    p = two(make, build="test ! -f broken")
    assert code(p, "build", "HEAD") == 0
    p.commit({"broken": ""})
    return code(p, "build", "HEAD~1", "HEAD")


@row("`merge`: the results would be mixed with others; nothing is written")
def _(make: Make) -> int:
    p = two(make)
    code(p, "run", "--machine", "gpu-1")
    shard = p.root.parent / "shard"
    shard.mkdir()
    (p.root / "history").rename(shard / "history")
    code(p, "run", "--machine", "gpu-1")
    machine = shard / "history" / "gpu-1" / "machine.json"
    machine.write_text(json.dumps({**json.loads(machine.read_text()), "cpu": "another", "arch": "other"}))
    return code(p, "merge", str(shard / "history"))


def shard_of(make: Make, then: str) -> tuple[Project, str]:
    """A project of six commits that is another one from the third on, and the folder in which they are recorded."""
    p = make()
    p.commit({"proj/__init__.py": FAST, "benchmarks/b.py": SUITE})
    for at in range(1, 6):
        p.commit({"proj/__init__.py": FAST if at < 3 else then, "NEWS": str(at)})
    shard = str(p.root.parent / "shard")
    p.regress("sweep", "ALL", "--into", shard)
    return p, shard


@row("`merge`: a regression is new")
def _(make: Make) -> int:
    p, shard = shard_of(make, SLOW)
    return code(p, "merge", shard)


@row("`merge`: a case stopped giving numbers")
def _(make: Make) -> int:
    p, shard = shard_of(make, FAILING)
    return code(p, "merge", shard)


@row("`sweep --on`: the cluster takes no job of any kind")
def _(make: Make) -> int:
    p = two(make)
    config = json.loads((p.root / "asv.conf.json").read_text())
    kinds = {"h100": {"partition": "no-such-partition"}}
    config["regress"]["cluster"] = {"shared": str(p.root.parent / "shared"), "kinds": kinds}
    p.write({"asv.conf.json": json.dumps(config)})
    return code(p, "sweep", "ALL", "--on", "h100")


@row("`merge`: a file cannot be read; the rest is merged")
def _(make: Make) -> int:
    p = two(make)
    code(p, "run")
    shard = p.root.parent / "shard"
    (p.root / "history").rename(shard)
    (folder,) = (path for path in shard.iterdir() if path.is_dir())
    (folder / "11111111-worktree.json").write_text("not JSON")
    return code(p, "merge", str(shard))


@row("`export`, `report`: nothing is recorded, or nothing matches")
def _(make: Make) -> int:
    p = two(make)
    assert code(p, "report") == 5
    code(p, "run")
    return code(p, "export", "--csv", "-b", "nothing")


@row("`profile`: a case is profiled, or an export shown")
def _(make: Make) -> int:
    p = two(make)
    export(p.root / "run.json", 1)
    assert code(p, "profile", "run.json") == 0
    return code(p, "profile", "cudatime_work")


@row("`profile`: a case fails; the rest is profiled")
def _(make: Make) -> int:
    return code(two(make, FAST, FAILING), "profile", "cudatime")


@row("`profile`, `once`: no case matches, or none can be run here")
def _(make: Make) -> int:
    p = two(make, suite=SUITE + "def timeraw_text(): return 'pass'\n")
    for words in (["profile", "nothing"], ["profile", "timeraw_text"], ["once", "nothing"]):
        assert code(p, *words) == 5
    return code(p, "once", "b.timeraw_text")


@row("`profile --ncu`: there is no GPU or no ncu, or it may not read the counters")
def _(make: Make) -> int:
    return code(two(make), "profile", "cudatime_work", "--ncu")


@row("`once`: the case was called")
def _(make: Make) -> int:
    return code(two(make), "once", "b.cudatime_work")


@row("`once`: several cases match")
def _(make: Make) -> int:
    return code(two(make), "once", "cudatime")


@row("`once`: the case fails")
def _(make: Make) -> int:
    return two(make, FAST, FAILING).regress("once", "b.cudatime_work").code  # it prints the case's traceback


@row("`list`, `init`: a benchmark file cannot be imported")
def _(make: Make) -> int:
    p = two(make)
    p.commit({"benchmarks/broken.py": "import nowhere_at_all\n"})
    assert code(p, "init") == 3
    return code(p, "list")


@row("`list`: there is no benchmark, or no benchmark matches")
def _(make: Make) -> int:
    p = two(make)
    assert code(p, "list", "-b", "nothing") == 5
    p.commit({"benchmarks/b.py": ""})
    return code(p, "list")


@row("`init`: every case fails")
def _(make: Make) -> int:
    return code(two(make, BOTH_FAIL, BOTH_FAIL), "init")


@row("`doctor`: the machine is not fit to measure")
def _(make: Make) -> int:
    return code(two(make, python="/nowhere/python"), "doctor")


# -- several at once -----------------------------------------------------------------------------------------------------


def test_of_several_the_first_in_the_order_counts(project: Make) -> None:
    p = project(check_rounds=2)
    suite = SUITE + "def cudatime_third(): proj.third()\ncudatime_third.critical = True\n"
    third = "def third(): d.kernel('t', {})\n"
    p.commit({"proj/__init__.py": FAST + third.format("70e-6"), "benchmarks/b.py": suite})
    noisy = third.format("70e-6 * random.Random(os.getpid()).uniform(1, 3)")
    p.commit({"proj/__init__.py": f"import os, random\n{SLOW}{noisy}".replace("other(): d", "other(): d.nothing; d")})
    result = p.regress("check", "--format", "json")
    document = json.loads(result.out)
    assert (result.code, document["exit_codes"][:2]) == (1, [1, 3])
    assert document["exit_code"] == 1


def test_being_told_to_end_is_an_interruption(project: Make) -> None:
    p = project()
    mark = p.root.parent / "mark"
    p.commit({"benchmarks/b.py": f"import pathlib, time\npathlib.Path({str(mark)!r}).touch()\ntime.sleep(600)\n"})
    assert interrupted(start(p.root, "list"), mark, signal.SIGTERM).code == 130


def test_a_lost_terminal_is_an_interruption(project: Make) -> None:
    """As when a connection breaks: nothing can be printed any more, and what was measured is kept."""
    p = project()
    mark = p.root.parent / "mark"
    p.commit({"benchmarks/b.py": f"import pathlib, time\npathlib.Path({str(mark)!r}).touch()\ntime.sleep(600)\n"})
    terminal, end = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "regress", "list"],
        cwd=p.root,
        env=with_this_checkout(),
        stdout=end,
        stderr=end,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # nohup has it ignored
    )
    while not mark.exists():
        assert process.poll() is None
        time.sleep(0.02)
    os.close(end)
    os.close(terminal)
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=120) == 130


@pytest.mark.slow
def test_a_benchmark_file_that_was_not_asked_for_fails_nothing(project: Make) -> None:
    p = two(project, sweep_rounds=2)
    p.commit({"benchmarks/stale.py": "import gone\ndef time_old(): pass\n"})
    asked = (["list"], ["run"], ["check", "HEAD~1"], ["sweep", "HEAD~1"])
    assert [code(p, *words) for words in asked] == [3, 3, 3, 3]
    for words in (["list"], ["run"], ["check", "HEAD~1"], ["sweep", "HEAD~2"]):
        done = p.regress(*words, "-b", "work")
        assert done.code == 0, done.err
        assert "not selected, and cannot be imported: stale; regress list says why" in done.out + done.err
