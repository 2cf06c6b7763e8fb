"""A project with a C extension, built by a real compiler: each side runs its own compiled code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.test_check import document
from tests.conftest import Project, regress

HEADER = Path(sysconfig.get_path("include")) / "Python.h"
needs_compiler = pytest.mark.skipif(
    not (shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0]) and HEADER.is_file()),
    reason="needs a C compiler and the headers of Python",
)
pytestmark = needs_compiler

BUILD = "$PYTHON setup.py -q build_ext --inplace"
NATIVE = f"proj/_native{sysconfig.get_config_var('EXT_SUFFIX')}"
C = """
#include <Python.h>
static PyObject *answer(PyObject *self, PyObject *none) {{ return PyLong_FromLong({value}); }}
static PyMethodDef methods[] = {{{{"answer", answer, METH_NOARGS, NULL}}, {{NULL}}}};
static struct PyModuleDef module = {{PyModuleDef_HEAD_INIT, "_native", NULL, -1, methods}};
PyMODINIT_FUNC PyInit__native(void) {{ return PyModule_Create(&module); }}
"""
SUITE = "import proj\ndef track_answer(): return proj.answer()\n"
FILES = {
    "proj/__init__.py": "from proj._native import answer\n",
    "setup.py": "from setuptools import Extension, setup\n"
    "setup(name='proj', version='1', packages=['proj'], ext_modules=[Extension('proj._native', ['src_c/native.c'])])\n",
    "benchmarks/b.py": SUITE,
    ".gitignore": "__pycache__/\n*.so\nbuild/\n*.egg-info/\n",
}


def values(p: Project, *words: str) -> tuple[float, float]:
    """The tracked value of base and head."""
    result = regress(p.root, "check", *words, "--quick", "--format", "json", timeout_s=400)
    (row,) = document(result)["benchmarks"]
    return row["base"], row["head"]


def compiled(p: Project, *values: object) -> None:
    """A commit for each value that the C code returns."""
    for value in values:
        p.commit({**FILES, "src_c/native.c": C.format(value=value)})


def test_each_side_runs_its_own_compiled_code(project: Callable[..., Project]) -> None:
    p = project(build=[BUILD], build_inputs=["src_c/", "setup.py"])
    compiled(p, 41, 42)
    first = p.regress("check", "--quick")
    assert first.err.count("building ") == 2
    assert values(p) == (41, 42)
    p.commit({"proj/more.py": ""})
    assert "building " not in p.regress("check", "--quick").err, "the C code is what it was"
    assert values(p, "HEAD~2", "HEAD") == (41, 42)
    assert not (p.root / NATIVE).exists()


def test_a_base_that_does_not_compile_is_shown_with_its_command(project: Callable[..., Project]) -> None:
    p = project(build=[BUILD])
    compiled(p, "undeclared", 42)
    result = p.regress("check")
    assert result.code == 5
    error, why, fix = result.err.splitlines()[-3:]
    assert error == f"error: base {p.git('rev-parse', 'HEAD~1')[:8]} does not build: {BUILD}"
    assert why.startswith("why:   exit code 1: ")
    assert "undeclared" in Path(fix.rpartition("log: ")[2]).read_text()


@pytest.mark.parametrize(
    ("build", "fix"),
    [
        ([], 'set the command that builds it: "build" under "regress" in asv.conf.json'),
        (["true"], 'correct "build" under "regress" in asv.conf.json, it does not make the file: true'),
    ],
)
def test_a_base_that_is_not_built_is_refused_with_the_setting(
    project: Callable[..., Project], build: list[str], fix: str
) -> None:
    p = project(build=build)
    compiled(p, 42)
    (p.root / NATIVE).write_bytes(b"")
    p.write({"proj/more.py": ""})
    p.git("add", "proj/more.py")
    result = p.regress("check")
    assert result.code == 5
    assert f"has no built extension: {NATIVE}" in result.err
    assert result.err.splitlines()[-1] == f"fix:   {fix}"


def test_a_clean_tree_that_is_built_is_measured_in_place(project: Callable[..., Project], tmp_path: Path) -> None:
    """Without a build, nothing else would bring its extension."""
    p = project()
    compiled(p, 42)
    build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(build, cwd=p.root, check=True, capture_output=True)
    result = p.regress("run", "--machine", "box")
    assert result.code == 0, result.err
    sha = p.git("rev-parse", "HEAD")[:8]
    assert f"head {sha} was measured in the working tree, as it is built there" in result.out
    assert list((p.root / "history" / "box").glob(f"{sha}-*.json")), "it is the commit's result"

    source = p.root / "src_c" / "native.c"
    os.utime(source, (source.stat().st_atime, (p.root / NATIVE).stat().st_mtime + 5))
    assert "has no built extension" in p.regress("run", "--quick").err, "it may be of an older source"
