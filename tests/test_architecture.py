"""The layout holds: who imports whom, what the measuring code may use, and what `--help` may not load."""

from __future__ import annotations

import ast
import importlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import regress.model

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "regress"

LAYERS: dict[str, tuple[str, ...]] = {
    "stats": (),
    "units": (),
    "errors": (),
    "children": (),
    "choices": (),
    "files": (),
    "sharing": (),
    "measure": (),
    "model": ("errors", "stats", "measure", "profiles"),
    "text": (),
    "profiles": ("errors", "files", "text", "units"),
    "profiler": ("profiles", "traces", "measure", "text"),
    "config": ("text", "model", "choices", "errors", "files"),
    "git": ("text", "model", "errors", "children", "files"),
    "history": ("sharing", "text", "model", "errors", "files"),
    "project": ("text", "model", "errors", "config", "git", "history"),
    "acks": ("text", "model", "errors", "files", "config", "history", "project"),
    "compare": ("text", "model", "errors", "stats", "units"),
    "trends": ("model", "stats", "history", "project", "acks", "compare"),
    "traces": ("text", "model", "profiles", "errors", "files", "units"),
    "importers": ("text", "choices", "model", "errors", "files", "stats"),
    "asv_plugin": ("measure",),
    "run": (
        "text",
        "children",
        "choices",
        "model",
        "errors",
        "files",
        "config",
        "stats",
        "git",
        "history",
        "importers",
        "measure",
    ),
    "cluster": ("model", "errors", "children", "files", "config", "git", "history"),
    "session": (
        "text",
        "model",
        "units",
        "errors",
        "config",
        "history",
        "measure",
        "project",
        "compare",
        "trends",
        "run",
        "traces",
    ),
    "pages": ("text", "model", "stats", "units", "errors", "git", "history", "project", "acks", "compare", "trends"),
    "report": ("files", "sharing", "text", "choices", "model", "pages", "profiles", "errors", "units"),
    "commands": (
        "text",
        *(
            "stats",
            "units",
            "errors",
            "children",
            "measure",
            "model",
            "pages",
            "profiles",
            "traces",
            "config",
            "project",
            "acks",
            "git",
        ),
        *("history", "compare", "trends", "run", "cluster", "importers", "session"),
    ),
    "cli": (
        "text",
        "choices",
        "commands",
        "session",
        "run",
        "report",
        "model",
        "pages",
        "profiles",
        "errors",
        "project",
    ),
}
"""Part of the package -> the parts it may import. `measure` is imported by others for its wire and types only, see below."""

MEASURE_DOORS = {"wire", "stopping", "bench_types", "backend", "windows"}
"""What the driver may import of `measure`: the messages, when there is enough, the types for asv's plugin, and for `doctor` the
device and how well windows agree."""

ONE_DOOR = ("model", "config", "git")
"""Packages of whose files nobody outside knows."""

HEAVY = {"numpy", "scipy", "torch", "asv", "git", "rich", "json5", "jinja2", "pynvml"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def scripts() -> list[Path]:
    return [path for path in sorted((PACKAGE / "report" / "html").rglob("*.js")) if "vendor" not in path.parts]


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path, names: bool = False) -> list[tuple[int, str]]:
    """(level, module) of every import of a file, wherever it stands; with `names` (level, module.name)."""
    taken = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            taken += [(0, name.name) for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if base == "regress" or names:
                taken += [(node.level, f"{base}.{name.name}") for name in node.names]
            else:
                taken.append((node.level, base))
    return taken


def test_every_part_of_the_package_has_its_place() -> None:
    assert {part_of(path) for path in modules()} - {"__init__", "__main__"} == set(LAYERS)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    part = part_of(path)
    if part in ("__init__", "__main__"):
        return
    for level, module in imports(path):
        words = module.split(".")
        if level or words[0] != "regress" or len(words) < 2 or words[1] == "__version__":
            continue
        assert words[1] == part or words[1] in LAYERS[part], f"{part} may not import {module}"
        if words[1] == "measure" and part != "measure":
            assert words[2] in MEASURE_DOORS, f"{part} may not import {module}"


@pytest.mark.parametrize("part", ONE_DOOR)
def test_parts_with_one_door(part: str) -> None:
    """Outside, all is imported from the package; inside, from the file that has it: there is no circle."""
    offered = importlib.import_module(f"regress.{part}").__all__
    tests = sorted((ROOT / "tests").rglob("*.py")) if part == "model" else []  # those of the others look inside
    for path in (*modules(), *tests):
        for _, taken in imports(path, names=True):
            module, _, name = taken.rpartition(".")
            if taken.startswith(f"regress.{part}."):
                inside = path.is_relative_to(PACKAGE / part)
                good = module != f"regress.{part}" if inside else module == f"regress.{part}" and name in offered
                assert good, f"{path} has {name} of {module}"


def test_the_model_hands_on_all_its_nouns() -> None:
    nouns = set(regress.model.__all__)
    for path in sorted((PACKAGE / "model").glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            names = [node.name] if isinstance(node, (ast.ClassDef, ast.FunctionDef)) else []
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
            names += [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
            assert {name for name in names if not name.startswith("_")} <= nouns, path


@pytest.mark.parametrize("path", sorted((PACKAGE / "measure").rglob("*.py")), ids=lambda path: path.name)
def test_the_measuring_code_runs_anywhere(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 9))
    for level, module in imports(path):
        top = module.split(".")[0]
        known = top in sys.stdlib_module_names or top in ("asv_runner", "pympler")  # what asv itself puts there
        assert level or known, f"{module} is not there in every environment"


def test_heavy_packages_are_imported_inside_functions() -> None:
    for path in modules():
        for node in ast.parse(path.read_text()).body:
            names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name.split(".")[0] not in HEAVY, path


def test_what_a_verdict_is_stands_in_one_table() -> None:
    """A list of verdicts elsewhere would have to be looked through for each new one."""
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            items: list[ast.expr | None] = []
            if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
                items = [*node.elts]
            elif isinstance(node, ast.Dict):
                items = node.keys
            named = [item for item in items if item is not None and ast.unparse(item).startswith("Verdict.")]
            assert len(named) <= 3 or path == PACKAGE / "model" / "comparison.py", f"{path}: give Verdict a trait"


def test_words_to_choose_from_stand_in_one_place() -> None:
    from regress.choices import DEVICES, FORMATS

    for words in (DEVICES, tuple(FORMATS)):
        for path in modules():
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
                    held = {item.value for item in node.elts if isinstance(item, ast.Constant)}
                    assert not set(words) <= held or path == PACKAGE / "choices.py", (
                        f"{path} has the words of choices.py"
                    )


IDIOMS = {
    "held against": "compared with",
    "hungrier": "uses more memory",
    "to be had": "available",
    "so many": "the name of the number",
    "anew": "again",
    "by nature": "always, normally",
    "could have told": "would have detected",
    "give or take": "plus or minus",
    "number any more": "stopped giving numbers",
    "the like": "similar",
}
"""Phrases that a native reader has to read twice, and what an engineer says."""


def test_the_program_and_its_pages_speak_plainly() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    for path in (*modules(), *pages, *scripts()):
        text = " ".join(path.read_text(encoding="utf-8").lower().split())
        idioms = {idiom: plain for idiom, plain in IDIOMS.items() if re.search(rf"\b{idiom}\b", text)}
        assert not idioms, f"{path.relative_to(ROOT)} has {idioms}"


IDLE_NAMES = ("each", "found")
"""Names that say nothing of what they hold. Fields may have them."""


def test_locals_say_what_they_hold() -> None:
    for path in modules():
        tree = ast.parse(path.read_text())
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        fields = {part.target for node in classes for part in node.body if isinstance(part, ast.AnnAssign)}
        for node in ast.walk(tree):
            if isinstance(node, ast.arg):
                assert node.arg not in IDLE_NAMES, f"{path}:{node.lineno}: call it what it holds"
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in fields:
                assert node.id not in IDLE_NAMES, f"{path}:{node.lineno}: call it what it holds"


IDLE = "|".join(IDLE_NAMES)
IDLE_IN_SCRIPTS = re.compile(rf"const (?:{IDLE})\b|(?<![.\w])(?:{IDLE})\b(?= ?=[^=]|[\w\s,\[\]{{}}]*\) =>)")
"""One of them where a script declares it, alone or among the parameters of a function."""


def test_locals_of_scripts_say_what_they_hold() -> None:
    for path in scripts():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            assert not IDLE_IN_SCRIPTS.search(line), f"{path}:{number}: call it what it holds"


DOORS = {"asv": "run/environments/asv.py", "pynvml": "run/nvml.py", "fcntl": "files.py"}
"""What comes from outside -> the one module that imports it. The measuring code is a program of its own."""


@pytest.mark.parametrize("name", DOORS)
def test_what_comes_from_outside_has_one_door(name: str) -> None:
    importers = {
        str(path.relative_to(PACKAGE))
        for path in modules()
        if part_of(path) != "measure" and any(entry[1].split(".")[0] == name for entry in imports(path))
    }
    assert importers == {DOORS[name]}


OWN_PROGRAM = {
    "cluster/engine.py": "a node runs its task",
    "commands/away.py": "a node runs the command",
    "commands/sweep/building.py": "each build is interrupted, and ends what it has started, in a process of its own",
}
"""What starts `python -m regress` -> why a call would not do."""


def test_a_command_calls_others_and_does_not_start_them() -> None:
    started = set()
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            words = [ast.unparse(item) for item in node.elts] if isinstance(node, (ast.List, ast.Tuple)) else []
            if ("'-m'", "'regress'") in itertools.pairwise(words):
                started.add(str(path.relative_to(PACKAGE)))
    assert started == set(OWN_PROGRAM)


def test_the_renderers_know_the_nouns_of_pages_only() -> None:
    """What makes them of a history reads results and asks git."""
    for path in sorted((PACKAGE / "report").rglob("*.py")):
        assert not [module for _, module in imports(path) if module.startswith("regress.pages.")], path
    nouns = [module for _, module in imports(PACKAGE / "pages" / "__init__.py") if module.startswith("regress.")]
    assert nouns == ["regress.model"]


def test_only_the_command_line_prints_and_exits() -> None:
    for path in modules():
        if part_of(path) in ("__main__", "cli", "measure"):  # the worker is a program of its own
            continue
        if path == PACKAGE / "profiler" / "core.py":  # `print_summary` is called by a program to print
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in {"print", "sys.exit", "exit", "click.echo", "os._exit"}, f"{path}: {called}"


def test_every_package_is_shipped() -> None:
    """The list in pyproject.toml is written by hand, because of the plugin that is mapped to another name."""
    text = (ROOT / "pyproject.toml").read_text()
    listed = set(re.findall(r'^    "((?:regress|asv_bench_regress)[\w.]*)",$', text, re.MULTILINE))
    there = {".".join(path.parent.relative_to(ROOT).parts) for path in PACKAGE.rglob("__init__.py")}
    plugin = {name.replace("regress.asv_plugin", "asv_bench_regress") for name in there if "asv_plugin" in name}
    assert listed == there | plugin


def test_what_is_imported_into_a_program_loads_nothing_heavy() -> None:
    code = (
        "import sys, regress.profiler\n"
        "print([name for name in ('numpy', 'scipy', 'torch', 'cupy', 'msgspec', 'asv_runner') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, click.testing; from regress.cli import regress\n"
        "assert click.testing.CliRunner().invoke(regress, ['--help']).exit_code == 0\n"
        "print([name for name in ('numpy', 'scipy', 'torch', 'asv', 'asv_runner', 'git', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


MADE_UP = {
    "verdict": (
        {
            "model/comparison.py": {
                '    UNCHANGED = "unchanged"\n': '    UNCHANGED = "unchanged"\n    MADE_UP = "made-up"\n',
                "_TRAITS = {\n": '_TRAITS = {\n    Verdict.MADE_UP: VerdictTraits(10, "$", "cyan", compared=True),\n',
            },
        },
        """
        from dataclasses import replace
        from regress.compare.overall import overall
        from regress.model import Settings, Verdict
        from tests.report import sample

        one = replace(sample.check().comparisons[0], verdict=Verdict.MADE_UP)
        found = overall([one], Settings())
        report = replace(sample.check(), comparisons=(one,), counts=found.counts)
        for format in FORMATS:
            text = render(report, Style(verbose=True), format)
            assert "made-up" in text or format == "github", text
        """,
    ),
    "format": (
        {
            "choices.py": {"FORMATS = {\n": 'FORMATS = {\n    "made-up": "regress.report.made_up",\n'},
            "report/made_up.py": {"": "def render(report, style):\n    return f'{report.command} made up\\n'\n"},
        },
        """
        assert render(Report("check"), Style(), "made-up") == "check made up\\n"
        assert "made-up" in CliRunner().invoke(regress, ["check", "--help"]).output
        """,
    ),
    "backend": (
        {
            "choices.py": {"DEVICES = (": 'DEVICES = ("made-up", '},
            "measure/backend/made_up.py": {"": "from .base import Backend\n\nclass MadeUp(Backend):\n    pass\n"},
            "measure/backend/__init__.py": {
                '    if kind == "cpu":\n': '    if kind == "made-up":\n        from .made_up import MadeUp\n'
                '        return MadeUp()\n    if kind == "cpu":\n'
            },
        },
        """
        from regress.config import with_overrides, load
        from regress.measure.backend import choose

        assert type(choose("made-up")).__name__ == "MadeUp"
        Path("asv.conf.json").write_text('{"version": 1, "repo": ".", "regress": {"device": "made-up"}}')
        assert load(None, Path.cwd()).settings.device == "made-up"
        assert "made-up" in CliRunner().invoke(regress, ["check", "--help"]).output
        """,
    ),
}
"""What may be added -> the files of the package that are touched, each with the texts in place of others, and how it shows."""

USED = """
from pathlib import Path
from click.testing import CliRunner
from regress.choices import FORMATS
from regress.cli import regress
from regress.model import Report
from regress.report import render
from regress.text.style import Style
"""


@pytest.mark.parametrize("kind", MADE_UP)
def test_what_is_new_touches_few_files(tmp_path: Path, kind: str) -> None:
    """A made-up one works once these files are changed: nothing else lists what there is. For a verdict the further file is the
    place that says when it applies."""
    changes, shown = MADE_UP[kind]
    copied = tmp_path / "regress"
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__", "js", "vendor"))
    for file, texts in changes.items():
        path = copied / file
        text = path.read_text() if path.exists() else ""
        for old, new in texts.items():
            assert old in text, f"{file} is another one by now: {old}"
            text = text.replace(old, new, 1)
        path.write_text(text)
    code = USED + textwrap.dedent(shown)
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
