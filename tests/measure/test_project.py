"""Whose code is measured: names of the project, and where they came from."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from regress.measure.project import ProjectCode


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (
        "proj/__init__.py",
        "single.py",
        "setup.py",
        "benchmarks/__init__.py",
        "docs/guide.md",
        "random.py",
        "space/inner.py",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


def load(monkeypatch: pytest.MonkeyPatch, name: str, file: str) -> None:
    module = types.ModuleType(name)
    module.__file__ = file
    monkeypatch.setitem(sys.modules, name, module)


def test_code_of_the_side_is_accepted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = ProjectCode([str(root)], "benchmarks")
    assert code.imported() == []
    load(monkeypatch, "proj", str(root / "proj" / "__init__.py"))
    load(monkeypatch, "single", str(root / "single.py"))
    load(monkeypatch, "proj.part", str(root / "proj" / "part.py"))
    assert code.imported() == ["proj/__init__.py", "single.py"]
    assert code.foreign() is None


@pytest.mark.parametrize("name", ["proj", "single", "space"])
def test_code_from_elsewhere_is_named(root: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    load(monkeypatch, name, f"/elsewhere/{name}.py")
    assert ProjectCode([str(root)], "benchmarks").foreign() == (name, f"/elsewhere/{name}.py")


def test_what_another_commit_calls_its_package_is_the_project_s_too(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The side does not have it yet, or in another folder: what is installed under that name is not its code."""
    other = tmp_path_factory.mktemp("other")
    (other / "later").mkdir()
    (other / "later" / "__init__.py").write_text("")
    load(monkeypatch, "later", "/site-packages/later/__init__.py")
    assert ProjectCode([str(root)], "benchmarks").foreign() is None
    code = ProjectCode([str(root)], "benchmarks", [str(other)])
    assert code.foreign() == ("later", "/site-packages/later/__init__.py")


@pytest.mark.parametrize("name", ["benchmarks", "docs", "setup", "random"])
def test_what_is_no_package_of_the_project_may_come_from_anywhere(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    load(monkeypatch, name, f"/elsewhere/{name}.py")
    assert ProjectCode([str(root)], "benchmarks").foreign() is None


def test_a_link_to_the_side_is_the_side(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path_factory.mktemp("links") / "side"
    link.symlink_to(root)
    load(monkeypatch, "proj", str(link / "proj" / "__init__.py"))
    assert ProjectCode([str(root)], "benchmarks").foreign() is None
