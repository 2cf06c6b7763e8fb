"""Sides made ready: where code is imported from, with which interpreter, and what is built when."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from regress import config as configuration
from regress.config import Config
from regress.errors import BuildFailed, NothingMeasured, RegressError
from regress.git import Repository, open_repository
from regress.model import Side
from regress.run.environments import Prepared, identity_of, prepare
from regress.run.environments.kept import BuildStore
from regress.run.environments.tree import import_roots, matters
from regress.run.servers import Died
from regress.run.starting import NotStarted, starting
from tests.conftest import Project, ended, start

KERNEL = "import regress_scripted as d\ndef work(): d.kernel('k', {seconds})\n"
SUITE = "import proj\ndef cudatime_work(): proj.work()\n"


class Bench:
    """A project, and what `prepare` makes of its commits."""

    def __init__(self, p: Project, cache: Path) -> None:
        self.p, self.cache = p, cache
        self.notes: list[str] = []

    @property
    def config(self) -> Config:
        return configuration.load(None, self.p.root)

    @property
    def repository(self) -> Repository:
        return open_repository(self.p.root)

    def side(self, revision: str = "HEAD", name: str = "head", dirty: bool = False) -> Side:
        return Side(name, self.repository.resolve(revision), revision, dirty=dirty)

    def prepare(self, revision: str = "HEAD", name: str = "head", dirty: bool = False) -> Prepared:
        side = self.side(revision, name, dirty)
        return prepare(side, self.config, self.repository, self.cache, self.notes.append)

    def settings(self, **settings: object) -> None:
        path = self.p.root / "asv.conf.json"
        data = json.loads(path.read_text())
        data["regress"].update(settings)
        path.write_text(json.dumps(data))


@pytest.fixture
def bench(project: Callable[..., Project], tmp_path: Path) -> Callable[..., Bench]:
    """Makes a Bench whose project has one commit with these files; keyword arguments are settings."""

    def make(files: dict[str, str] | None = None, **settings: object) -> Bench:
        p = project(**settings)
        p.commit(files or {"proj/__init__.py": ""})
        return Bench(p, tmp_path / "cache")

    return make


# -- what is imported ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "subdir", "package_dir", "expected"),
    [
        (["proj/__init__.py"], "", "", "."),
        (["src/proj/__init__.py", "docs/conf.py"], "", "", "src"),
        (["src/main.c", "src/kernels/k.cu", "proj/__init__.py"], "", "", "."),
        (["python/proj/__init__.py"], "", "python", "python"),
        (["src/proj/__init__.py", "lib/proj/__init__.py"], "", "lib", "lib"),
        (["bindings/proj/__init__.py", "src/proj/__init__.py"], "bindings", "", "bindings"),
        (["bindings/src/proj/__init__.py"], "bindings", "", "bindings/src"),
        (["bindings/python/proj/__init__.py"], "bindings", "python", "bindings/python"),
    ],
)
def test_where_the_project_is_imported_from(
    bench: Callable[..., Bench], tmp_path: Path, files: list[str], subdir: str, package_dir: str, expected: str
) -> None:
    tree = tmp_path / "tree"
    for name in files:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("")
    config = bench(package_dir=package_dir).config
    assert import_roots(tree, replace(config, repo_subdir=subdir)) == (tree / expected,)


def test_a_package_dir_that_is_not_there_is_named(bench: Callable[..., Bench]) -> None:
    with pytest.raises(RegressError, match=r"'python' is not a folder of this commit") as raised:
        bench(package_dir="python").prepare()
    assert "worktrees" in raised.value.why


def test_a_commit_is_a_worktree_and_changes_are_the_tree_itself(bench: Callable[..., Bench]) -> None:
    b = bench({"proj/__init__.py": "old"})
    sha = b.p.git("rev-parse", "HEAD")
    b.p.write({"proj/__init__.py": "new"})
    clean, dirty = b.prepare(), b.prepare(dirty=True)
    assert clean.tree.name == sha
    assert clean.tree.is_relative_to(b.cache / "worktrees")
    assert (clean.tree / "proj" / "__init__.py").read_text() == "old"
    assert dirty.tree == b.p.root
    assert dirty.import_roots == (b.p.root,)


def test_the_sides_code_comes_before_what_pythonpath_has(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/first", "", "/second"]))
    b = bench({"src/proj/__init__.py": ""})
    prepared = b.prepare()
    assert prepared.variables["PYTHONPATH"].split(os.pathsep) == [str(prepared.tree / "src"), "/first", "/second"]
    assert prepared.variables["HOME"] == os.environ["HOME"]
    monkeypatch.delenv("PYTHONPATH")
    assert b.prepare().variables["PYTHONPATH"] == str(prepared.tree / "src"), "and never the current folder"


@pytest.mark.parametrize(
    ("version", "name"), [("3.9.1", "worktree-py3.9"), ("3.12.0rc1", "worktree-py3.12"), ("3.13", "worktree-py3.13")]
)
def test_the_name_of_the_environment(bench: Callable[..., Bench], version: str, name: str) -> None:
    assert identity_of(bench().prepare(), version).name == name


@pytest.mark.parametrize("layout", ["", "src/", "bindings/", "python/"])
def test_both_sides_import_their_own_code_in_every_layout(project: Callable[..., Project], layout: str) -> None:
    p = project(check_rounds=2, package_dir="python" if layout == "python/" else "")
    if layout == "bindings/":
        config = json.loads((p.root / "asv.conf.json").read_text())
        p.write({"asv.conf.json": json.dumps({**config, "repo_subdir": "bindings"})})
    p.commit({f"{layout}proj/__init__.py": KERNEL.format(seconds=50e-6), "benchmarks/b.py": SUITE})
    p.commit({f"{layout}proj/__init__.py": KERNEL.format(seconds=75e-6)})
    p.write({"README": "changes here make no difference to the two commits"})
    report = json.loads(p.regress("check", "HEAD~1", "HEAD", "--quick", "--format", "json").out)
    (timed,) = [row for row in report["benchmarks"] if row["metric"] == "gpu_time"]
    assert (timed["base"], timed["head"]) == (pytest.approx(50e-6, rel=0.02), pytest.approx(75e-6, rel=0.02))


# -- the interpreter -----------------------------------------------------------------------------------------------------


def test_the_interpreter_is_ours_or_the_one_that_is_set(
    bench: Callable[..., Bench], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    b = bench()
    assert b.prepare().python == sys.executable
    local = b.p.root / ".venv" / "bin" / "python"
    local.parent.mkdir(parents=True)
    local.symlink_to(sys.executable)
    b.settings(python=".venv/bin/python")
    assert b.prepare().python == str(local), "not resolved: the link is what makes it that environment's"
    b.settings(python="python")
    monkeypatch.setenv("PATH", os.pathsep.join([str(local.parent), "/usr/bin", "/bin"]))
    assert b.prepare().python == str(local)


@pytest.mark.parametrize(
    ("python", "why"),
    [("/nowhere/bin/python", "/nowhere/bin/python is not an executable file"), ("python9.9", "no python9.9 on PATH")],
)
def test_an_interpreter_that_is_not_there_is_5(bench: Callable[..., Bench], python: str, why: str) -> None:
    b = bench(python=python)
    with pytest.raises(NothingMeasured) as raised:
        b.prepare()
    assert (raised.value.what, raised.value.why) == (f"there is no interpreter {python}", why)
    result = b.p.regress("list")
    assert (result.code, result.out) == (5, "")
    assert result.err.startswith(f"error: there is no interpreter {python}\n")


def test_an_interpreter_that_is_no_python_is_5(bench: Callable[..., Bench]) -> None:
    result = bench(python="/bin/false").p.regress("list")
    assert (result.code, result.out) == (5, "")
    assert result.err.startswith("error: no process could be started for head")


def environment_with(folder: Path, installed: str) -> Path:
    """A virtual environment in which this line is run at every start, as editable installs do; its interpreter."""
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "editable.pth").write_text(installed + "\n")
    return folder / "bin" / "python"


FINDER = """
import importlib.util, sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "proj":
            return importlib.util.spec_from_file_location(name, {elsewhere!r} + "/proj/__init__.py")
sys.meta_path.insert(0, Finder)
"""


def test_an_editable_install_does_not_win_over_the_worktree(project: Callable[..., Project], tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "proj").mkdir(parents=True)
    (elsewhere / "proj" / "__init__.py").write_text(KERNEL.format(seconds=1e-3))
    by_path = environment_with(tmp_path / "by-path", str(elsewhere))
    p = project(run_rounds=2, python=str(by_path))
    p.commit({"proj/__init__.py": KERNEL.format(seconds=50e-6), "benchmarks/b.py": SUITE})
    result = p.regress("run", "--format", "json")
    assert result.code == 0, result.err
    (timed,) = [row for row in json.loads(result.out)["benchmarks"] if row["metric"] == "gpu_time"]
    assert timed["value"] == pytest.approx(50e-6, rel=0.02)

    by_hook = environment_with(tmp_path / "by-hook", "import editable_finder")
    (packages,) = (tmp_path / "by-hook").glob("lib/python*/site-packages")
    (packages / "editable_finder.py").write_text(FINDER.format(elsewhere=str(elsewhere)))
    config = json.loads((p.root / "asv.conf.json").read_text())
    config["regress"]["python"] = str(by_hook)
    sha = p.commit({"asv.conf.json": json.dumps(config)})
    result = p.regress("run")
    assert (result.code, result.out) == (5, "")
    error, why, fix = result.err.splitlines()[-3:]
    assert error == f"error: head {sha[:8]} would not be measured: proj was imported from elsewhere"
    assert why.startswith(f"why:   {elsewhere}/proj/__init__.py is outside ")
    assert fix == f"fix:   {by_hook} -m pip uninstall proj"


# -- builds --------------------------------------------------------------------------------------------------------------


def counting(tmp_path: Path) -> tuple[str, Callable[[], int]]:
    """A build command that leaves a line outside the tree each time it runs, and how often that was."""
    log = tmp_path / "builds.log"
    log.touch()
    return f"echo built >> '{log}'", lambda: len(log.read_text().splitlines())


def test_a_commit_is_built_once(bench: Callable[..., Bench], tmp_path: Path) -> None:
    build, count = counting(tmp_path)
    b = bench(build=[build, "touch proj/made"])
    first = b.prepare("HEAD", "base")
    assert count() == 1
    assert b.notes == [f"building {first.side.label}: {command}" for command in (build, "touch proj/made")]
    assert (first.tree / "proj" / "made").exists()
    again = b.prepare("HEAD", "head")
    assert count() == 1
    assert again.build_s == pytest.approx(first.build_s, abs=1e-3), "what it took is still known"
    b.p.commit({"README": "1"})
    b.prepare()
    assert count() == 2, "another commit has a build of its own"
    b.prepare("HEAD~1")
    assert count() == 2


def test_it_is_built_again_when_the_commands_or_the_interpreter_change(
    bench: Callable[..., Bench], tmp_path: Path
) -> None:
    build, count = counting(tmp_path)
    b = bench(build=build)
    b.prepare()
    b.settings(build=[build, "true"])
    b.prepare()
    assert count() == 2
    other = tmp_path / "python"
    other.symlink_to(sys.executable)
    b.settings(python=str(other))
    b.prepare()
    assert count() == 3
    b.prepare()
    assert count() == 3


def test_what_was_built_is_put_back_when_the_worktree_was_made_anew(
    bench: Callable[..., Bench], tmp_path: Path
) -> None:
    build, count = counting(tmp_path)
    b = bench(build=[build, "echo 7 > proj/made; ln -s made proj/link"])
    tree = b.prepare().tree
    (tree / "proj" / "__init__.py").write_text("someone's change")
    assert (b.prepare().tree / "proj" / "__init__.py").read_text() == ""
    assert count() == 1
    assert (tree / "proj" / "made").read_text() == "7\n"
    assert (tree / "proj" / "link").is_symlink()


def test_builds_of_equal_inputs_are_one(bench: Callable[..., Bench], tmp_path: Path) -> None:
    build, count = counting(tmp_path)
    b = bench({"proj/__init__.py": "", "kernels/k.cu": "1"}, build=[build, "cp kernels/k.cu proj/made"])
    b.settings(build_inputs=["kernels/"])
    b.prepare()
    b.p.commit({"proj/__init__.py": "changed = True"})
    assert (b.prepare().tree / "proj" / "made").read_text() == "1"
    assert (count(), b.notes) == (1, b.notes[:2]), "the code that is built did not change"
    b.p.commit({"kernels/k.cu": "2"})
    assert (b.prepare().tree / "proj" / "made").read_text() == "2"
    assert count() == 2
    b.p.commit({"proj/made": "by hand"})
    assert b.prepare().tree.joinpath("proj/made").read_text() == "2", "what is kept never replaces a file of the commit"
    assert count() == 3
    b.settings(build_inputs=["kernel/"])
    with pytest.raises(NothingMeasured, match="is an input of its build") as raised:
        b.prepare()
    assert raised.value.why == "build_inputs has kernel/"


@pytest.mark.parametrize("changed", ["variable", "environment", "command", "card"])
def test_another_build_of_the_same_files_meets_nothing_of_the_first(
    bench: Callable[..., Bench], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    build, count = counting(tmp_path)
    b = bench(build=[build, "touch first$CFLAGS"], environments={"e": {"variables": {"CFLAGS": "-O3"}}})
    b.prepare()
    if changed == "variable":
        monkeypatch.setenv("CFLAGS", "-O3")
    elif changed in ("command", "card"):
        b.settings(build=[build, "touch first-O3"])
    if changed == "card":
        b.prepare()
        monkeypatch.setattr("regress.run.environments.kept.architectures", lambda: "9.0")
    side = replace(b.side(), environment="e" if changed == "environment" else "")
    tree = prepare(side, b.config, b.repository, b.cache, b.notes.append).tree
    made = 3 if changed == "card" else 2
    assert (count(), [path.name for path in tree.glob("first*")]) == (made, ["first-O3"])


def test_what_is_kept_has_a_limit(tmp_path: Path) -> None:
    kept = BuildStore(tmp_path / "kept", limit_bytes=2500)

    def there(key: str) -> bool:
        with kept.used(key) as folder:
            return folder is not None

    def keep(key: str, size: int = 1000) -> None:
        def fill(folder: Path) -> None:
            (folder / "file").write_bytes(b"x" * size)

        kept.keep(key, fill)
        for path in kept.root.iterdir():  # file systems do not all tell apart what follows at once
            os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns - 10**9))

    keep("a")
    keep("b")
    assert there("a")
    keep("c")
    assert [there(key) for key in "abc"] == [True, False, True], "b was used the longest time ago"
    keep("d", size=3000)
    assert [there(key) for key in "acd"] == [True, True, False], "it alone is more than the limit"


def test_a_build_that_is_in_use_is_not_replaced_by_another(
    bench: Callable[..., Bench], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of two runs at once whose configurations build one base in two ways."""
    monkeypatch.setattr("regress.run.environments.builds._LOCK_TRIES", 2)
    build, count = counting(tmp_path)
    b = bench(build=[build, "touch first"])
    used, again = b.prepare(), b.prepare()
    b.settings(build=[build, "touch second"])
    with pytest.raises(RegressError, match="cannot be built now") as raised:
        b.prepare()
    assert str(used.tree) in raised.value.why
    assert ((used.tree / "first").exists(), count()) == (True, 1)
    del used, again  # as when their processes end
    assert [path.name for path in b.prepare().tree.glob("*d")] == ["second"]


def test_what_a_build_is_given(bench: Callable[..., Bench], tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    command = (
        f'"$PYTHON" -c "import os, sys; print(sys.executable, os.getcwd())" > "{seen}"; command -v python >> "{seen}"'
    )
    local = tmp_path / "bin" / "python"
    local.parent.mkdir()
    local.symlink_to(sys.executable)
    prepared = bench(build=command, python=str(local)).prepare()
    first, second = seen.read_text().splitlines()
    assert first.split()[1] == str(prepared.tree)
    assert Path(first.split()[0]).samefile(sys.executable)
    assert second == str(local), "a plain python in a build is the one under test"


@pytest.mark.parametrize(("name", "kind"), [("base", NothingMeasured), ("head", BuildFailed)])
def test_a_failing_build_says_what_it_printed_and_where_its_log_is(
    bench: Callable[..., Bench], name: str, kind: type[RegressError]
) -> None:
    b = bench(build=["echo fine", "echo kernel.cu:7: error >&2; exit 4", "touch never"])
    with pytest.raises(kind) as raised:
        b.prepare("HEAD", name)
    error, side = raised.value, b.side()
    assert error.what == f"{name} {side.label} does not build: echo kernel.cu:7: error >&2; exit 4"
    assert error.why == "exit code 4: kernel.cu:7: error"
    log = Path(error.fix.rpartition("log: ")[2])
    assert log.read_text() == "fine\nkernel.cu:7: error\n"
    (tree,) = (b.cache / "worktrees").glob(f"*/{side.commit.sha}")
    assert error.fix.startswith(f"cd {tree} && ")
    assert not (tree / "never").exists()
    b.settings(build="true")
    b.prepare("HEAD", name)


def test_a_silent_failure_is_not_explained_by_what_another_command_printed(bench: Callable[..., Bench]) -> None:
    b = bench(build=["echo all is well", "exit 3"])
    for _ in range(2):  # the log of the first attempt is kept
        with pytest.raises(BuildFailed) as raised:
            b.prepare()
        assert raised.value.why == "exit code 3, and nothing was printed"


def test_a_failed_build_is_tried_again(bench: Callable[..., Bench], tmp_path: Path) -> None:
    switch = tmp_path / "switch"
    b = bench(build=f"test -e '{switch}'")
    with pytest.raises(BuildFailed):
        b.prepare()
    switch.touch()
    b.prepare()


def test_a_build_that_ends_by_a_signal_says_so(bench: Callable[..., Bench]) -> None:
    with pytest.raises(BuildFailed) as raised:
        bench(build="kill -9 $$").prepare()
    assert raised.value.why == "ended by signal 9, and nothing was printed"


def test_a_build_that_hangs_is_ended_with_all_it_started(bench: Callable[..., Bench], tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    b = bench(build=f"sleep 600 & echo $! > '{pid}'; echo waiting; wait", build_timeout_s=2)
    with pytest.raises(BuildFailed) as raised:
        b.prepare()
    assert raised.value.why == "timed out after 2 s: waiting"
    assert ended(int(pid.read_text()))


def test_ctrl_c_ends_a_build_with_all_it_started(bench: Callable[..., Bench], tmp_path: Path) -> None:
    started = tmp_path / "started"
    b = bench(build=f"sleep 600 & echo $! > '{started}.new' && mv '{started}.new' '{started}'; wait")
    with start(b.p.root, "list") as process:
        while not started.exists():
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    assert err.split()[-1] == "interrupted"
    assert ended(int(started.read_text()))


def test_two_processes_that_want_one_build_build_once(bench: Callable[..., Bench], tmp_path: Path) -> None:
    build, count = counting(tmp_path)
    b = bench({"proj/__init__.py": KERNEL.format(seconds=1e-4), "benchmarks/b.py": SUITE}, build=["sleep 0.5", build])
    processes = [start(b.p.root, "list", "-q") for _ in range(2)]
    assert [process.communicate(timeout=120)[0] for process in processes] == ["b.cudatime_work\n"] * 2
    assert count() == 1


BUILD_EXTENSION = """
from pathlib import Path
seconds = Path("kernel.cu").read_text()
Path("proj/_ext.py").write_text("import regress_scripted as d\\ndef work(): d.kernel('k', " + seconds + ")\\n")
"""


def test_a_built_extension_is_imported_from_the_worktree_on_both_sides(
    project: Callable[..., Project], tmp_path: Path
) -> None:
    build, count = counting(tmp_path)
    p = project(check_rounds=2, build=[build, "python build_extension.py"])
    p.commit(
        {
            "proj/__init__.py": "from proj._ext import work\n",
            "build_extension.py": BUILD_EXTENSION,
            "kernel.cu": "50e-6",
            "benchmarks/b.py": SUITE,
            ".gitignore": "__pycache__/\nproj/_ext.py\n",
        }
    )
    p.commit({"kernel.cu": "65e-6"})
    for _ in range(2):
        result = p.regress("check", "HEAD~1", "--format", "json")
        assert result.code == 1, result.err
        (timed,) = [row for row in json.loads(result.out)["benchmarks"] if row["metric"] == "gpu_time"]
        assert (timed["verdict"], timed["ratio"]) == ("regressed", pytest.approx(1.3, rel=0.03))
        assert count() == 2, "once a side, and a second check finds both built"
    assert not (p.root / "proj" / "_ext.py").exists(), "nothing is built in the user's own tree"


def test_what_rounds_import_stays_compiled(bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the environment forbids Python to write bytecode: every round would compile torch anew."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    made = bench()
    prepared = made.prepare()
    code = "import sys; print(sys.dont_write_bytecode, sys.pycache_prefix)"
    done = subprocess.run(
        [prepared.python, "-c", code], env=prepared.variables, capture_output=True, text=True, check=True
    )
    forbidden, prefix = done.stdout.split()
    assert forbidden == "False"
    assert made.cache in Path(prefix).parents


def test_a_disk_that_is_nearly_full_keeps_nothing_compiled(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a compiled file would fail every later import of it."""
    made = bench()
    half = made.cache / "pycache" / "half.pyc"
    half.parent.mkdir(parents=True)
    half.touch()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 20))
    variables = made.prepare().variables
    assert (variables["PYTHONDONTWRITEBYTECODE"], "PYTHONPYCACHEPREFIX" in variables) == ("1", False)
    assert not half.parent.exists()


def test_a_compiled_file_that_is_incomplete_is_named_with_the_command_that_removes_it(
    bench: Callable[..., Bench],
) -> None:
    made = bench()
    with pytest.raises(NotStarted) as raised, starting(made.prepare()):
        raise Died(1, "Traceback (most recent call last):\nEOFError: marshal data too short")
    assert raised.value.fix == f"rm -r {made.cache / 'pycache'}"


def test_benchmarks_are_told_what_asv_tells_them(project: Callable[..., Project]) -> None:
    """Both sides are forked from one process, and each has its own commit."""
    p = project(check_rounds=2)
    wanted = {"ASV": "true", "ASV_PROJECT": "proj", "ASV_CONF_DIR": str(p.root), "ASV_ENV_TYPE": "existing"}
    suite = f"import os\nfor name, value in {wanted!r}.items(): assert os.environ[name] == value, name\n"
    suite += "import proj\ndef track_own(): return int(os.environ['ASV_COMMIT'] == proj.SHA())\n"
    ask = "import subprocess, pathlib\ndef SHA(): return subprocess.run(['git', 'rev-parse', 'HEAD'], capture_output=True, "
    ask += "text=True, cwd=pathlib.Path(__file__).parent).stdout.strip()\n"
    p.commit({"proj/__init__.py": ask, "benchmarks/b.py": suite})
    p.commit({"NEWS": "1"})
    done = p.regress("check", "HEAD~1", "HEAD", "--format", "json")
    (benchmark,) = json.loads(done.out)["benchmarks"]
    assert (benchmark["base"], benchmark["head"]) == (1, 1), done.err


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("docs/logo.png", {}, False),
        ("logo.png", {}, False),
        ("data/big.bin", {}, False),
        ("proj/weights.bin", {}, True),
        ("tests/answer.npz", {"build": ["make"]}, False),
        ("data/big.bin", {"build": ["make"]}, False),
        ("third/lib", {}, False),
        ("third/lib", {"build": ["make"]}, True),
        ("docs/theme", {"build": ["make"]}, False),
        ("third/lib", {"build": ["make"], "build_inputs": ["proj/"]}, False),
        ("third/lib", {"build": ["make"], "build_inputs": ["third/lib/include/"]}, True),
        ("data/big.bin", {"build": ["make"], "build_inputs": ["data/"]}, True),
    ],
)
def test_only_what_is_imported_or_built_has_to_be_there(
    bench: Callable[..., Bench], name: str, settings: dict[str, object], expected: bool
) -> None:
    b = bench(**settings)
    b.p.write({"proj/__init__.py": "", "third/lib/here.c": "", "docs/theme/here": "", "tests/__init__.py": ""})
    assert matters(b.p.root, name, b.config) is expected


def test_a_picture_that_is_not_here_is_a_line_and_what_is_imported_an_error(bench: Callable[..., Bench]) -> None:
    b = bench()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 5\n"
    b.p.commit({"proj/__init__.py": "", "docs/logo.png": pointer, ".gitattributes": "*.png filter=lfs\n"})
    assert any("docs/logo.png of the commit's files are not here" in warning for warning in b.prepare().warnings)
    b.p.commit({"proj/icon.png": pointer})
    with pytest.raises(RegressError, match="Git LFS") as caught:
        b.prepare()
    assert "proj/icon.png" in caught.value.why
