"""Rounds are forked from a process that has imported the suite, where that works, and begin afresh where it does not."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from regress.run import processes
from regress.run.servers import started_in
from tests.conftest import ended
from tests.run.test_execute import Bench, failures, good

COUNTED = """
import pathlib
with open({marks!r}, "a") as marks:
    marks.write("imported ")
import regress_scripted as device
def cudatime_a(): device.kernel("k", 50e-6)
def time_b(): device.host(100e-6)
def peakmem_c(): return bytearray(1 << 20)
"""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize(("process", "imports"), [("auto", 2 * (3 + 4)), ("fresh", 2 * (1 + 2 * 4))])
def test_a_suite_is_imported_once_a_side_and_origin(bench: Bench, process: str, imports: int) -> None:
    """Once to find the benchmarks, and once in each of the two origins of rounds. Beside that, each of the four visits of
    `peakmem_c` imports it: its process has to be of its own from the start."""
    marks = bench.root / "marks"
    bench.write(COUNTED.format(marks=str(marks)), base="", head="")
    measured = bench.run(rounds=3, settings={"process": process})
    assert failures(measured) == {}
    assert marks.read_text().count("imported") == imports
    kind = "fork" if process == "auto" else process
    protocols = {round.name: round.protocol for round in measured.rounds}
    assert {name: protocol and protocol.process for name, protocol in protocols.items()} == {
        "b.cudatime_a": kind,
        "b.time_b": kind,
        "b.peakmem_c": "fresh",
    }
    together = [round for round in measured.rounds if round.name != "b.peakmem_c"]
    assert len({round.process for round in together}) == 2 * 3, "a process a round and side"
    assert measured.warnings == ["the suite imports nothing of this repository: it measures installed packages only"]


def test_values_do_not_depend_on_how_a_process_begins(bench: Bench) -> None:
    suite = """
import os, random, sys, tempfile, zlib
def track_names(): return zlib.crc32(str(sorted(name for name in os.environ if name != "TMPDIR")).encode())
def track_hash(): return hash("text")
def track_draw(): return random.random()
def track_folders():
    home = os.environ["TMPDIR"]
    return int(tempfile.gettempdir() == home and os.path.samefile(os.getcwd(), os.path.join(home, "cwd")))
def track_input(): return len(sys.stdin.read())
def track_session(): return int(os.getsid(0) == os.getpid() == os.getpgrp())
"""
    bench.write(suite)
    values = [
        {round.name: round.values["value"].value for round in bench.run(1, settings={"process": process}).rounds}
        for process in ("auto", "fresh")
    ]
    assert values[0] == values[1]
    assert values[0]["b.track_folders"] == values[0]["b.track_session"] == 1


def test_a_suite_that_opens_a_runtime_at_import_is_named(bench: Bench) -> None:
    suite = """
import sys, types
bridge = types.ModuleType("jax._src.xla_bridge")
bridge._backends = {"cpu": object()}
sys.modules[bridge.__name__] = bridge
def track_x(): return 1
"""
    bench.write(suite, base="", head="")
    measured = bench.run()
    assert good(measured) == {"b.track_x": 2}
    assert {round.protocol.process for round in measured.rounds if round.protocol} == {"fresh"}
    assert measured.warnings[0] == (
        "every round imports the suite again instead of forking, which is slower: "
        "benchmarks.b initializes a backend of JAX when it is imported"
    )


def test_a_suite_whose_import_starts_a_thread_is_not_forked(bench: Bench) -> None:
    """A fork does not have the thread, and waits for it for ever."""
    bench.write(
        """
import queue, threading
asked, done = queue.Queue(), queue.Queue()
def work():
    while True: done.put(2 * asked.get())
threading.Thread(target=work, name="worker", daemon=True).start()
def track_x():
    asked.put(3)
    return done.get()
"""
    )
    measured = bench.run()
    assert good(measured) == {"b.track_x": 2}
    assert "benchmarks.b starts the thread worker when it is imported" in measured.warnings[0]


@pytest.mark.parametrize(
    ("at_import", "why"),
    [
        (
            "matrix.__matmul__ = lambda self, other: time.sleep(600)",
            "a matrix product of NumPy hangs in a forked process",
        ),
        (
            "matrix.__matmul__ = lambda self, other: os.kill(os.getpid(), 11)",
            "ends a forked process: failed (signal 11",
        ),
        ("matrix.__matmul__ = lambda self, other: 1 / 0", "a matrix product of NumPy fails in a forked process: Zero"),
    ],
)
def test_a_fork_that_does_not_work_is_not_measured_with(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, at_import: str, why: str
) -> None:
    """Found out on one side, and then neither side is forked."""
    monkeypatch.setattr(processes, "PROBE_STEP_S", 0.5)
    suite = f"""
import os, sys, time, types
import proj
class matrix: pass
{at_import}
if proj.broken:
    sys.modules["numpy"] = types.ModuleType("numpy")
    sys.modules["numpy"].ones = lambda shape: matrix()
def track_x(): return 1
"""
    bench.write(suite, base="broken = False", head="broken = True")
    measured = bench.run()
    assert good(measured) == {"b.track_x": 2}
    assert {round.protocol.process for round in measured.rounds if round.protocol} == {"fresh"}
    assert why in measured.warnings[0]


REGION = """
import torch
torch.ones(1 << 22).exp().sum()
def track_threads(): return torch.get_num_threads()
def time_region(): torch.ones(1 << 20).exp().sum()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sets", "process"), [("", "fork-serial"), ("import torch\ntorch.set_num_threads(2)\n", "fresh")]
)
def test_a_parallel_region_at_import_is_found_out(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, sets: str, process: str
) -> None:
    """libgomp's threads are gone in a child, which waits for them for ever in its first parallel region. It runs serially then,
    unless the suite itself wants more threads."""
    torch = pytest.importorskip("torch")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one processor: no region is parallel")
    monkeypatch.setattr(processes, "PROBE_STEP_S", 5.0)
    bench.write(sets + REGION, base="", head="")
    measured = bench.run(rounds=1, settings={"device": "cpu"})
    assert failures(measured) == {}
    assert {round.protocol.process for round in measured.rounds if round.protocol} == {process}
    counts = {round.values["value"].value for round in measured.rounds if "value" in round.values}
    assert counts == {2 if sets else torch.get_num_threads()}
    blamed = "a parallel region of torch hangs in a forked process; benchmarks.b started threads"
    assert any(blamed in warning for warning in measured.warnings) is (process == "fresh")


@pytest.mark.slow
def test_a_forked_process_has_as_many_threads_as_a_fresh_one(bench: Bench) -> None:
    pytest.importorskip("torch")
    bench.write(
        "import torch\ndef track_threads(): return torch.get_num_threads()\n"
        "def time_region(): torch.ones(1 << 20).exp().sum()\n"
    )
    values = []
    for process in ("auto", "fresh"):
        measured = bench.run(rounds=1, settings={"process": process, "device": "cpu"})
        assert failures(measured) == {}
        assert {round.protocol.process for round in measured.rounds if round.protocol} == {"fork", "fresh"} - {
            "fresh" if process == "auto" else "fork"
        }
        values.append({round.name: round for round in measured.rounds}["b.track_threads"].values["value"].value)
    assert values[0] == values[1]


LATE = """
import triton
def track_compiles():
    import triton.compiler
    return 1
def track_other(): return 2
"""
MARK = "with open({marks!r}, 'a') as marks: marks.write('imported ')\n"
SPOILS = "import sys, types\nsys.modules['jax._src.xla_bridge'] = types.SimpleNamespace(_backends={'cpu': 1})\n"


@pytest.mark.parametrize(("compiler", "imports"), [("", 2), (SPOILS, 2 + 3)])
def test_what_a_visit_imports_late_no_round_has_to_import(bench: Bench, compiler: str, imports: int) -> None:
    """Once by the unmeasured visit and once by the parent. Where that leaves the parent unfit, it is started again without, and
    each of the three rounds imports it."""
    bench.write(LATE)
    marks, package = bench.root / "marks", bench.root / "head" / "triton"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "compiler.py").write_text(MARK.format(marks=str(marks)) + compiler)
    measured = bench.run(rounds=3)
    assert good(measured) == {"b.track_compiles": 3, "b.track_other": 3}
    assert {round.protocol.process for round in measured.rounds if round.protocol} == {"fork"}
    assert marks.read_text().count("imported") == imports
    assert measured.warnings == []


def test_what_a_late_import_changes_is_not_the_case_s(bench: Bench) -> None:
    """The process that forks has imported the module before the first round, which finds nothing changed."""
    bench.write(LATE)
    package = bench.root / "head" / "triton"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "compiler.py").write_text("import os\nos.environ['TRITON_PTXAS_PATH'] = 'here'\n")
    measured = bench.run(rounds=2)
    assert good(measured) == {"b.track_compiles": 2, "b.track_other": 2}
    assert len({round.process for round in measured.rounds}) == 2, "a process a round"
    assert all("leaves" not in round.facts for round in measured.rounds)


def test_what_the_import_has_started_lives_for_all_rounds(bench: Bench) -> None:
    """And streams that it has closed do not keep the server from forking."""
    bench.write(
        """
import os, subprocess, sys
helper = subprocess.Popen(["sleep", "600"])
sys.stdout.close()
def track_helper(): return int(open(f"/proc/{helper.pid}/stat").read().rpartition(")")[2].split()[0] in "SR")
"""
    )
    measured = bench.run(rounds=3)
    assert failures(measured) == {}
    assert {round.values["value"].value for round in measured.rounds} == {1.0}
    assert {round.protocol.process for round in measured.rounds if round.protocol} == {"fork"}


@pytest.mark.slow
def test_a_killed_parent_is_started_again(bench: Bench) -> None:
    bench.write(
        """
import os, signal
def track_a(): return 1
def track_b():
    os.kill(os.getppid(), signal.SIGKILL)
    return 2
def track_c(): return 3
"""
    )
    measured = bench.run(rounds=3)
    assert failures(measured) == {}
    assert good(measured) == {"b.track_a": 3, "b.track_b": 3, "b.track_c": 3}


def test_what_changes_its_process_is_named_and_runs_alone(bench: Bench) -> None:
    bench.write(
        """
import os, sys
def track_a(): return 1
def track_leaves():
    os.environ["LEFT"] = "1"
    sys.setrecursionlimit(5000)
    os.chdir("/")
    return 2
def track_z(): return int("LEFT" not in os.environ)
"""
    )
    measured = bench.run(rounds=2)
    by_name = {
        name: [round for round in measured.rounds if round.name == f"b.track_{name}"] for name in ("a", "leaves", "z")
    }
    names = ["$LEFT", "the recursion limit", "the working directory"]
    for plain, leaving, last in zip(by_name["a"], by_name["leaves"], by_name["z"], strict=True):
        assert plain.process == last.process != leaving.process
        assert leaving.facts["leaves"] == names
        assert leaving.flags == [f"changes {', '.join(names)} and does not restore it; regress did"]
        assert plain.flags == last.flags == []
        assert last.values["value"].value == 1


def test_settings_of_the_process_are_put_back_for_the_next_case(bench: Bench) -> None:
    bench.write(
        """
import os, sys, warnings
import numpy
def track_a_changes():
    os.umask(0o777)
    sys.setswitchinterval(1.0)
    sys.setprofile(lambda *event: None)
    numpy.seterr(all="raise")
    warnings.simplefilter("error")
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return 1
def track_sees():
    open("readable", "w").close()
    open("readable").close()
    numpy.ones(2) / numpy.zeros(2)
    warnings.warn("only a warning")
    return len(os.sched_getaffinity(0)) + (sys.getprofile() is not None) + sys.getswitchinterval()
"""
    )
    measured = bench.run(rounds=1)
    assert failures(measured) == {}
    values = {round.name: round for round in measured.rounds}
    assert values["b.track_sees"].values["value"].value == len(os.sched_getaffinity(0)) + sys.getswitchinterval()
    left = ["numpy_errors", "the switch interval", "the profile function", "the umask"]
    processors = ["the processors"] if len(os.sched_getaffinity(0)) > 1 else []
    assert values["b.track_a_changes"].facts["leaves"] == [*left, *processors]


def test_threads_that_a_case_leaves_at_work_end_before_the_next(bench: Bench) -> None:
    bench.write(
        """
import threading
from concurrent.futures import ThreadPoolExecutor
def spin():
    while True: sum(range(1000))
def threads(): return [each.name for each in threading.enumerate()]
def track_a_waits():
    global pool
    pool = ThreadPoolExecutor(1)
    return pool.submit(len, "a").result()
def track_b_works():
    threading.Thread(target=spin).start()
    return 1
def track_c_works_and_fails():
    threading.Thread(target=spin, daemon=True).start()
    raise ValueError("no")
def track_d_sees(): return sum("spin" in each for each in threads())
"""
    )
    measured = bench.run(rounds=2)
    assert good(measured) == {"b.track_a_waits": 2, "b.track_b_works": 2, "b.track_d_sees": 2}
    by_name = {round.name: round for round in measured.rounds}
    assert by_name["b.track_d_sees"].values["value"].value == 0
    assert by_name["b.track_a_waits"].process == by_name["b.track_d_sees"].process != by_name["b.track_b_works"].process
    told = ["leaves threads running (Thread (spin)): they ended with its process"]
    assert by_name["b.track_b_works"].flags == by_name["b.track_c_works_and_fails"].flags == told
    assert by_name["b.track_a_waits"].flags == by_name["b.track_d_sees"].flags == []


def test_what_a_failing_case_changes_is_named_too(bench: Bench, tmp_path: Path) -> None:
    visits = tmp_path / "visits"
    bench.write(
        f"""
import os, pathlib
visits = pathlib.Path({str(visits)!r})
def track_a(): return int("LEFT" not in os.environ)
def track_fails():
    os.environ["LEFT"] = "1"
    raise ValueError("no")
def track_fails_later():
    os.environ["LEFT"] = "1"
    visits.write_text(visits.read_text() + "x" if visits.exists() else "x")
    if len(visits.read_text()) > 1:
        raise ValueError("not again")
class Skipped:
    def setup(self):
        os.environ["LEFT"] = "1"
        raise NotImplementedError
    def track_it(self): return 1
"""
    )
    measured = bench.run(rounds=2)
    for name in ("b.track_fails", "b.track_fails_later", "b.Skipped.track_it"):
        told = [round for round in measured.rounds if round.name == name and round.failure]
        assert told, name
        for round in told:
            assert round.facts["leaves"] == ["$LEFT"]
            assert round.flags == ["changes $LEFT and does not restore it; regress did"]
    assert {round.values["value"].value for round in measured.rounds if round.name == "b.track_a"} == {1}


def test_each_round_has_an_order_of_its_own_and_both_sides_the_same(bench: Bench) -> None:
    bench.write("".join(f"def track_{name}(): return 1\n" for name in "abcdefgh"), base="", head="")
    measured = bench.run(rounds=3)
    orders = {
        (side, order): [round.name for round in measured.of(side) if round.order == order]
        for side in ("base", "head")
        for order in range(3)
    }
    assert all(orders["base", order] == orders["head", order] for order in range(3))
    assert len({tuple(names) for names in orders.values()}) == 3


@pytest.mark.parametrize("process", ["auto", "fresh"])
def test_however_much_is_printed_the_end_is_kept(bench: Bench, process: str) -> None:
    bench.write(
        """
import os, signal
def track_talks():
    for _ in range(200): os.write(1, b"x" * 100_000)
    return 1
def track_talks_and_dies():
    for _ in range(200): os.write(2, b"y" * 100_000)
    os.write(2, b"the last words")
    os.kill(os.getpid(), signal.SIGSEGV)
"""
    )
    measured = bench.run(rounds=1, settings={"process": process})
    assert good(measured) == {"b.track_talks": 1}
    failure = failures(measured)["b.track_talks_and_dies"]
    assert failure.message == "failed (signal 11, SIGSEGV)"
    assert "the last words" in failure.detail
    assert " earlier bytes omitted]" in failure.detail.splitlines()[0]
    assert len(failure.detail) < 5_000


def test_a_child_in_a_session_of_its_own_ends_with_the_round(bench: Bench) -> None:
    bench.write(
        f"""
import subprocess
def track_leaves_a_daemon():
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    with open({str(bench.root / "pids")!r}, "a") as pids:
        pids.write(f"{{child.pid}}\\n")
    return 1
"""
    )
    assert failures(bench.run(rounds=1)) == {}
    pids = [int(line) for line in (bench.root / "pids").read_text().splitlines()]
    assert pids
    assert all(map(ended, pids))


@pytest.mark.parametrize("process", ["auto", "fresh"])
def test_files_that_a_case_leaves_end_with_the_round(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, process: str
) -> None:
    scratch = bench.root / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    bench.write(
        """
import os, tempfile
class Cached:
    def setup_cache(self): return tempfile.mkstemp()[1]
    def track_cache(self, cache): return 1
def track_leaves():
    open("here", "w").close()
    open(os.path.join(tempfile.mkdtemp(), "there"), "w").close()
    os.mkfifo(os.path.join(tempfile.gettempdir(), "pipe"))
    return len(os.listdir(tempfile.gettempdir()))
"""
    )
    assert failures(bench.run(rounds=2, settings={"process": process})) == {}
    (own,) = scratch.iterdir()  # this process's, which goes with it
    assert os.listdir(own) == []


@pytest.mark.parametrize("process", ["auto", "fresh"])
def test_closed_descriptors_are_put_back_for_the_next_case(bench: Bench, process: str) -> None:
    bench.write(
        """
import os
def track_closes():
    for descriptor in (0, 1, 2): os.close(descriptor)
    return 1
def track_prints():
    os.write(1, b"out")
    os.write(2, b"err")
    return len(os.read(0, 1)) + 1
"""
    )
    measured = bench.run(rounds=2, settings={"process": process})
    assert failures(measured) == {}
    closing = [round for round in measured.rounds if round.name == "b.track_closes"]
    assert closing[0].facts["leaves"] == [f"file descriptor {descriptor}" for descriptor in (0, 1, 2)]
    assert {round.values["value"].value for round in measured.rounds} == {1.0}


@pytest.mark.parametrize("process", ["auto", "fresh"])
@pytest.mark.slow
def test_descriptors_that_the_import_closes_lead_nowhere(bench: Bench, process: str) -> None:
    bench.write(
        """
import os
os.close(0)
os.close(2)
def track_reads():
    os.write(2, b"err")
    return len(os.read(0, 1)) + 1
"""
    )
    measured = bench.run(settings={"process": process})
    assert failures(measured) == {}
    assert good(measured) == {"b.track_reads": 2}


def test_a_torch_that_is_initialized_at_import_is_named(bench: Bench) -> None:
    bench.write(
        """
import sys, types
sys.modules["torch"] = types.SimpleNamespace(cuda=types.SimpleNamespace(is_initialized=lambda: True))
def track_x(): return 1
"""
    )
    measured = bench.run()
    assert good(measured) == {"b.track_x": 2}
    assert "benchmarks.b initializes CUDA when it is imported" in measured.warnings[0]


def test_only_what_was_started_in_a_folder_is_found(tmp_path: Path) -> None:
    def sleeping(folder: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["sleep", "600"], env={**os.environ, "TMPDIR": str(folder)}, start_new_session=True)

    own, other = sleeping(tmp_path / "own"), sleeping(tmp_path / "own-2")
    try:
        while not Path(f"/proc/{own.pid}/environ").read_bytes():
            time.sleep(0.01)  # while a program is loaded, it has no environment
        assert started_in(tmp_path / "own") == [own.pid]
        assert started_in(tmp_path) == []
    finally:
        for process in (own, other):
            process.kill()
            process.wait()
