"""The modules of a suite, and what looks like one and is left out: a line for each, because Python says nothing."""

from __future__ import annotations

import ast
import os
import pkgutil
from types import ModuleType
from typing import Callable, Iterator, List, Optional, Tuple

from .wire import SuiteProblem, writable

Told = Tuple[str, str]
"""The name of a file or folder, and why it is left out."""
_MOST_BYTES = 1 << 20
"""Of a file that is looked through for benchmarks."""


def children(package: ModuleType, problems: List[SuiteProblem], is_benchmark: Callable[[str], bool]) -> Iterator[str]:
    """The names of the modules in a package, in order. What is left out there is added to `problems`; `is_benchmark` tells by
    the name of a function or class."""
    folders = [str(folder) for folder in getattr(package, "__path__", [])]
    names = [name for _, name, _ in pkgutil.iter_modules(folders)]
    for folder in folders:
        for entry, why in _left_out(folder, names, is_benchmark):
            where = writable(f"{package.__name__.replace('.', '/')}/{entry}")
            problems.append(SuiteProblem(where, f"left out: {why}", fatal=False))
    yield from (name for name in names if not any(_stray(folder, name) for folder in folders))


def _stray(folder: str, name: str) -> Optional[Told]:
    """What has the name of a module there without being one; None if it is a module, or nothing is there."""
    path = os.path.join(folder, name)
    if os.path.isfile(os.path.join(path, "__init__.py")) or os.path.isfile(f"{path}.py"):
        return None
    if os.path.lexists(f"{path}.py"):
        return f"{name}.py", "it is not a file, or a broken link"
    if os.path.isfile(f"{path}.pyc"):
        return f"{name}.pyc", "it was compiled from a file that is gone; remove it"
    return None


def _left_out(folder: str, names: List[str], is_benchmark: Callable[[str], bool]) -> Iterator[Told]:
    for name in names:
        stray, path = _stray(folder, name), os.path.join(folder, name)
        if stray is not None:
            yield stray
        elif os.path.isfile(os.path.join(path, "__init__.py")) and os.path.lexists(f"{path}.py"):
            yield f"{name}.py", f"Python imports the folder {name}/ of the same name; rename one of them"
    for entry in sorted(os.listdir(folder) if os.path.isdir(folder) else []):
        path, (stem, ending) = os.path.join(folder, entry), os.path.splitext(entry)
        if entry.startswith((".", "__")) or stem in names:
            continue
        if ending == ".py" and os.path.isfile(path) and _holds_benchmarks(path, is_benchmark):
            yield entry, "Python cannot import a file with a dot in its name; rename it"
        elif os.path.isdir(path) and any(_holds_benchmarks(source, is_benchmark) for source in _sources(path)):
            yield f"{entry}/", "it has no __init__.py, so nothing in it is imported; add an empty one"


def _sources(folder: str) -> List[str]:
    paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".py")]
    return [path for path in paths if os.path.isfile(path)]


def _holds_benchmarks(path: str, is_benchmark: Callable[[str], bool]) -> bool:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return any(map(is_benchmark, _defined(ast.parse(file.read(_MOST_BYTES)).body)))
    except (OSError, ValueError, SyntaxError, RecursionError):  # which nobody could import
        return False


def _defined(body: List[ast.stmt]) -> Iterator[str]:
    """Names of the functions that a module defines, by itself or in its classes. Not what stands in a text: a script may write
    suites."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from _defined(node.body)
