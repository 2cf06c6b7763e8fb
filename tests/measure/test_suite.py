"""Discovery and failures, in a process of their own for each suite: importing a suite changes the interpreter."""

from __future__ import annotations

import json
import os
import py_compile
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
import dataclasses, json, sys
from regress.measure.suite import Suite
benchmarks, problems = Suite(sys.argv[1], {}).discover()
print(json.dumps([[dataclasses.asdict(each) for each in found] for found in (benchmarks, problems)]))
"""


def discover(folder: Path, files: dict[str, str]) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    suite = folder / "benchmarks"
    suite.mkdir(exist_ok=True)
    for name, text in {"__init__.py": "", **files}.items():
        (suite / name).parent.mkdir(parents=True, exist_ok=True)
        (suite / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(suite)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    benchmarks, problems = json.loads(done.stdout.splitlines()[-1])
    return {benchmark["name"]: benchmark for benchmark in benchmarks}, problems


def test_names_types_units_and_metrics(tmp_path: Path) -> None:
    text = """
class Group:
    params = [[1, 2], ["a"]]
    param_names = ["n", "kind"]
    number = 3
    def time_t(self, n, kind): pass
    def cudatime_c(self, n, kind): pass
    def peakmem_p(self, n, kind): pass
def mem_m(): return []
def track_v(): return 1
track_v.unit = "GB/s"
track_v.tags = ["core"]
track_v.helper = len
def timeraw_r(): return ""
def CudaTime_Big(): pass
def helper(): pass
"""
    benchmarks, problems = discover(tmp_path, {"a.py": text, "sub/__init__.py": "", "sub/b.py": "def time_x(): pass"})
    assert problems == []
    facts = {
        name: (benchmark["type"], benchmark["unit"], benchmark["metric"], benchmark["needs_device"])
        for name, benchmark in benchmarks.items()
    }
    assert facts == {
        "a.Group.time_t": ("time", "seconds", "wall_time", False),
        "a.Group.cudatime_c": ("time", "seconds", "gpu_time", True),
        "a.Group.peakmem_p": ("peakmemory", "bytes", "peak_rss", False),
        "a.mem_m": ("memory", "bytes", "object_size", False),
        "a.track_v": ("track", "GB/s", "value", False),
        "a.timeraw_r": ("time", "seconds", "wall_time", False),
        "a.CudaTime_Big": ("time", "seconds", "gpu_time", True),
        "sub.b.time_x": ("time", "seconds", "wall_time", False),
    }
    assert benchmarks["a.Group.time_t"]["declared"] == {"number": 3}
    assert benchmarks["a.track_v"]["declared"] == {"tags": ["core"]}, "what JSON cannot hold is left out"
    assert benchmarks["a.Group.time_t"]["params"] == [["1", "2"], ["'a'"]]


@pytest.mark.parametrize("value", ["None", "3", "['GB', 's']", "len"])
def test_a_unit_or_type_that_is_no_text_is_none(tmp_path: Path, value: str) -> None:
    text = f"def track_v(): return 1\ntrack_v.unit = {value}\ntrack_v.type = {value}\n"
    benchmarks, problems = discover(tmp_path, {"a.py": text})
    assert problems == []
    described = benchmarks["a.track_v"]
    assert (described["unit"], described["asv"].get("unit", "unit"), type(described["type"])) == ("unit", "unit", str)


def test_a_module_that_cannot_be_imported_costs_only_itself(tmp_path: Path) -> None:
    files = {
        "bad_syntax.py": "x = 1\ndef time_x(:\n",
        "bad_import.py": "import json\nimport does_not_exist\n",
        "exits.py": "import sys\nsys.exit(3)\n",
        "good.py": "def time_x(): pass\n",
    }
    benchmarks, problems = discover(tmp_path, files)
    assert list(benchmarks) == ["good.time_x"]
    places = {
        Path(problem["where"].split(":")[0]).name: (problem["where"].split(":")[1], problem["message"])
        for problem in problems
    }
    assert places["bad_syntax.py"][0] == "2"
    assert places["bad_import.py"] == ("2", "ModuleNotFoundError: No module named 'does_not_exist'")
    assert places["exits.py"] == ("2", "SystemExit: 3")
    assert all(problem["fatal"] for problem in problems)


def test_a_base_class_that_cannot_be_made_is_a_line_and_its_child_runs(tmp_path: Path) -> None:
    text = """
import abc
class Base:
    def __init__(self, size): self.size = size
    def time_x(self): pass
    def time_y(self): pass
class Abstract(abc.ABC):
    @abc.abstractmethod
    def make(self): ...
    def time_z(self): pass
class Child(Base, Abstract):
    def __init__(self): super().__init__(3)
    def make(self): pass
"""
    benchmarks, problems = discover(tmp_path, {"a.py": text})
    assert sorted(benchmarks) == ["a.Child.time_x", "a.Child.time_y", "a.Child.time_z"]
    said = {problem["where"]: problem["message"] for problem in problems}
    assert set(said) == {"benchmarks.a.Base", "benchmarks.a.Abstract"}
    assert not any(problem["fatal"] for problem in problems)
    assert "missing 1 required positional argument" in said["benchmarks.a.Base"]
    assert said["benchmarks.a.Abstract"].startswith("skipped: TypeError: Can't instantiate abstract class Abstract")


def test_of_two_benchmarks_of_one_name_the_second_is_a_line(tmp_path: Path) -> None:
    text = """
class Base:
    def time_x(self): pass
    time_x.benchmark_name = "kept.time_x"
class Child(Base): pass
def timed(function):
    def wrapper(): function()  # without functools.wraps
    return wrapper
@timed
def time_y(): pass
@timed
def time_z(): pass
"""
    benchmarks, problems = discover(tmp_path, {"a.py": text, "b.py": "from benchmarks.a import Base"})
    assert list(benchmarks) == ["kept.time_x", "a.wrapper"]
    assert {problem["where"]: problem["message"] for problem in problems} == {
        "benchmarks.a.Child.time_x": (
            "skipped: benchmarks.a.Base.time_x is kept.time_x already, by its benchmark_name or __name__"
        ),
        "benchmarks.a.time_z": "skipped: benchmarks.a.time_y is a.wrapper already, by its benchmark_name or __name__",
    }
    assert not any(problem["fatal"] for problem in problems)


def test_the_benchmark_of_a_name_is_the_one_that_is_described(tmp_path: Path) -> None:
    """Also for a process that is asked for it before it has discovered anything."""
    program = """
import sys
from regress.measure.suite import Suite
suite = Suite(sys.argv[1], {})
print(type(suite.get("a.Base.time_x")._attr_sources[1]).__name__, [each.name for each in suite.discover()[0]])
"""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").write_text("")
    (tmp_path / "benchmarks" / "a.py").write_text(
        "class Base:\n"
        "    def time_x(self): pass\n"
        "    time_x.benchmark_name = 'a.Base.time_x'\n"
        "class Child(Base): pass\n"
    )
    words = [sys.executable, "-c", program, str(tmp_path / "benchmarks")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "Base ['a.Base.time_x']\n"


def test_an_address_in_a_parameter_is_stripped(tmp_path: Path) -> None:
    text = "class A:\n    params = [[object(), object()]]\n    def time_x(self, o): pass\n"
    benchmarks, _ = discover(tmp_path, {"a.py": text})
    assert benchmarks["a.A.time_x"]["params"] == [["<object object> (0)", "<object object> (1)"]]


def test_a_long_text_of_a_parameter_is_shortened_to_one_of_its_own(tmp_path: Path) -> None:
    text = "class A:\n    params = ['x' * 2_000_000 + end for end in 'ab']\n    def time_x(self, s): pass\n"
    benchmarks, _ = discover(tmp_path, {"a.py": text})
    (texts,) = benchmarks["a.A.time_x"]["params"]
    assert benchmarks["a.A.time_x"]["asv"]["params"] == [texts]
    assert len(set(texts)) == 2
    assert all(row.startswith("'xxx") and "2000003 characters" in row and len(row) < 200 for row in texts)


def test_a_plugin_that_is_installed_is_not_imported(tmp_path: Path) -> None:
    """An installed copy of this package must not supply the types: the worker's own are the only ones."""
    program = PROGRAM.replace("print", "assert 'asv_bench_regress' not in sys.modules; print")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").write_text("")
    subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "benchmarks")], cwd=ROOT, check=True, capture_output=True
    )


@pytest.mark.parametrize(
    ("name", "file"),
    [("a.Group.time_t", "a"), ("sub.b.time_x", "sub.b"), ("a.pretty.time_named", "a")],
)
def test_one_benchmark_is_found_without_importing_the_rest(tmp_path: Path, name: str, file: str) -> None:
    suite = tmp_path / "benchmarks"
    (suite / "sub").mkdir(parents=True)
    for path, text in {
        "__init__.py": "",
        "a.py": "class Group:\n    def time_t(self): pass\n"
        "def time_named(): pass\ntime_named.benchmark_name = 'a.pretty.time_named'\n",
        "sub/__init__.py": "",
        "sub/b.py": "def time_x(): pass\n",
        "other.py": "",
    }.items():
        (suite / path).write_text(text)
    program = (
        "import sys; from regress.measure.suite import Suite\n"
        f"assert Suite(sys.argv[1], {{}}).get({name!r}).name == {name!r}\n"
        "print(sorted(each for each in sys.modules if each.startswith('benchmarks.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(suite)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = done.stdout.strip()
    assert f"benchmarks.{file}" in loaded
    if name != "a.pretty.time_named":
        assert "benchmarks.other" not in loaded


A_BENCHMARK = "def time_f(): pass\n"


@pytest.mark.parametrize(
    ("files", "where", "why"),
    [
        ({"b.py": A_BENCHMARK, "b/__init__.py": ""}, "b.py", "Python imports the folder b/ of the same name"),
        ({"sub/b.py": "class TimeAll:\n    pass\n"}, "sub/", "it has no __init__.py"),
        ({"b.v2.py": "async def track_f(): pass\n"}, "b.v2.py", "Python cannot import a file with a dot in its name"),
        ({"b.py/notes": ""}, "b.py", "it is not a file"),
        ({"sub/__init__.py": "", "sub/c.py/notes": ""}, "sub/c.py", "it is not a file"),
    ],
)
def test_what_looks_like_a_module_and_is_none_is_told(
    tmp_path: Path, files: dict[str, str], where: str, why: str
) -> None:
    benchmarks, problems = discover(tmp_path, {"good.py": A_BENCHMARK, **files})
    assert set(benchmarks) == {"good.time_f"}
    (told,) = problems
    assert (told["where"], told["fatal"]) == (f"benchmarks/{where}", False)
    assert why in told["message"]


def test_what_is_no_benchmark_is_left_out_without_a_word(tmp_path: Path) -> None:
    files = {
        "data/make.py": "def make(): pass\n",
        "notes.old.py": "X = 1\n",
        ".#good.py": A_BENCHMARK,
        "readme.txt": "def time_f()",
    }
    benchmarks, problems = discover(tmp_path, {"good.py": A_BENCHMARK, **files})
    assert (set(benchmarks), problems) == ({"good.time_f"}, [])


def test_links_to_nowhere_pipes_and_what_was_compiled_of_a_file_that_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "gone.py").symlink_to("nowhere.py")
    os.mkfifo(folder / "pipe.py")
    source = tmp_path / "old.py"
    source.write_text(A_BENCHMARK)
    py_compile.compile(str(source), cfile=str(folder / "old.pyc"))
    benchmarks, problems = discover(tmp_path, {"good.py": A_BENCHMARK})
    assert set(benchmarks) == {"good.time_f"}
    assert {(problem["where"], problem["fatal"]) for problem in problems} == {
        ("benchmarks/gone.py", False),
        ("benchmarks/pipe.py", False),
        ("benchmarks/old.pyc", False),
    }


def test_a_benchmark_without_cases_or_without_a_name_of_its_type_is_told(tmp_path: Path) -> None:
    text = (
        "def track_empty(a, b): return 1\ntrack_empty.params = [[1], []]\ntrack_empty.param_names = ['a', 'b']\n"
        "class Named:\n    def time_sum(self): pass\n    time_sum.benchmark_name = 'sums.of numbers'\n"
        "def helper(): pass\nhelper.benchmark_name = 'x'\n"
        "def time_skipped(): pass\ntime_skipped.benchmark_name = 'x'\ntime_skipped.skip_benchmark = True\n"
    )
    benchmarks, problems = discover(tmp_path, {"b.py": text + A_BENCHMARK})
    assert set(benchmarks) == {"b.time_f"}
    assert {problem["where"]: problem["message"] for problem in problems} == {
        "benchmarks.b.track_empty": "left out: it has no cases, because there are no values of b",
        "benchmarks.b.Named.time_sum": "left out: its benchmark_name is 'sums.of numbers', and 'of numbers' begins like "
        "no type; begin it like time_sum",
    }


@pytest.mark.parametrize(
    "line", ["from itertools import repeat", "import re as number", "from time import sleep as warmup_time"]
)
def test_what_is_imported_under_the_name_of_an_attribute_is_named(tmp_path: Path, line: str) -> None:
    text = f"{line}\ndef time_f(): pass\ndef track_g(): return 1\n"
    benchmarks, problems = discover(tmp_path, {"b.py": text})
    assert set(benchmarks) == {"b.track_g"}, "what has no use for it goes on"
    (told,) = problems
    assert "taken for the benchmark's own" in told["message"]
    assert line.rpartition(" ")[2] in told["message"]


PROGRAMS = """
import dataclasses, json, sys
from regress.measure.suite import Suite
suite = Suite(sys.argv[1], {})
_, problems = suite.discover()
print(json.dumps([[dataclasses.asdict(each) for each in found] for found in (suite.programs, problems)]))
"""


def test_classes_that_name_a_command_are_programs(tmp_path: Path) -> None:
    suite = tmp_path / "benchmarks"
    suite.mkdir()
    (suite / "__init__.py").write_text("")
    (suite / "native.py").write_text(
        """
class _Base:
    command, format = ["build/x"], "nvbench"
class Axpy(_Base):
    command = ("build/axpy", "--json", "{output}", "{n}")
    params, param_names = [8, 16], ["n"]
    timeout, tags, env = 90, ["gpu"], {"A": "b"}
class Text:
    command, format = "build/axpy", "nvbench"
class Doubled:
    command, format, params = ["x"], "nvbench", [["a", "a"]]
class Other:
    command = ["no format"]
"""
    )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAMS, str(suite)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    (axpy,), problems = json.loads(done.stdout)
    assert (axpy["name"], axpy["format"], axpy["command"][0]) == ("native.Axpy", "nvbench", "build/axpy")
    assert (axpy["params"], axpy["param_names"], axpy["timeout_s"]) == ([["8", "16"]], ["n"], 90.0)
    assert (axpy["declared"], axpy["env"]) == ({"tags": ["gpu"]}, {"A": "b"})
    assert (axpy["file"], axpy["line"]) == ("benchmarks/native.py", 4)
    assert {problem["name"]: problem["message"] for problem in problems} == {
        "native.Text": "its program cannot be run: its command is not a list of words",
        "native.Doubled": "its program cannot be run: a parameter has the same value twice",
    }
