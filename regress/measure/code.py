"""What of the suite's own code a benchmark uses: its function, what that refers to in its module and in other modules of the
suite, and data files that it names.

Two benchmarks with the same of it are the same, whatever comments, docstrings and layout say. It is found without running
anything: names are followed from definition to definition, and a module that is used as a whole counts as a whole.
"""

from __future__ import annotations

import ast
import hashlib
import os
from typing import Dict, Iterator, List, Optional, Set, Tuple

SPECIAL = frozenset({"setup", "teardown", "setup_cache"})
"""Names of a module that its benchmarks take without saying so."""
SAID_ELSEWHERE = frozenset(
    {
        *(
            "params",
            "param_names",
            "timeout",
            "number",
            "repeat",
            "rounds",
            "processes",
            "warmup_time",
            "min_run_count",
        ),
        *("sample_time", "tags", "covers", "threshold", "critical", "better", "was", "unit", "pretty_name", "version"),
    }
)
"""Attributes that are compared by their values, or only decide on results."""
BENCHMARK = ("time", "timeraw", "track", "mem", "peakmem", "cudatime", "cudacold")
MOST_DATA = 10_000
"""Files of a suite's folder that are looked at."""
Names = Set[str]


class Code:
    """The code of a suite's folder, each file read once."""

    def __init__(self, folder: str) -> None:
        self._folder, self._package = folder, os.path.basename(folder)
        self._modules: Dict[str, Optional[_Module]] = {}
        self._data: Optional[Dict[str, List[str]]] = None

    def used_by(self, file: str, name: str, function: str) -> Dict[str, str]:
        """By file, named from the suite's folder: a word for what is used of it by that class or function in a file, of whose
        methods that function is one. Empty if its source is not to be found."""
        start = os.path.relpath(os.path.realpath(file), os.path.realpath(self._folder))
        module = self._module(start)
        if module is None or name not in module.defined:
            return {}
        by_path: Dict[str, _Used] = {}
        self._follow(start, {name, *SPECIAL}, function, by_path)
        return {path: used.word() for path, used in sorted(by_path.items())}

    # -- following names -------------------------------------------------------------------------------------------------

    def _follow(self, path: str, names: Optional[Names], function: str, by_path: Dict[str, _Used]) -> None:
        """Add what these names (None: all) stand for in a file, and all that they refer to."""
        module = self._module(path)
        if module is None:
            return
        used = by_path.setdefault(path, _Used())
        waiting = list(names if names is not None else module.defined)
        for at in module.effects:
            waiting += used.take(at, _dump(module.body[at]), _names(module.body[at]))
        while waiting:
            name = waiting.pop()
            for at in module.defined.get(name, ()):
                node = module.body[at]
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    for alias in node.names:
                        if name in (alias.asname or alias.name.partition(".")[0], "*") or alias.name == "*":
                            used.take(at, f"{name} {_dump(alias)}", set())
                            self._follow_import(path, node, alias, name, function, by_path)
                else:
                    kept = _without_others(node, function)
                    waiting += used.take(at, _dump(kept), _names(kept))
                    for text in _texts(kept):
                        for data in self._data_files().get(os.path.basename(text), ()):
                            by_path.setdefault(data, _Used()).take(0, _digest(os.path.join(self._folder, data)), set())

    def _follow_import(
        self, path: str, node: ast.stmt, alias: ast.alias, name: str, function: str, by_path: Dict[str, _Used]
    ) -> None:
        if isinstance(node, ast.Import):
            target, wanted = self._file(alias.name.split(".")), None
        else:
            assert isinstance(node, ast.ImportFrom)
            parts = os.path.dirname(path).split(os.sep) if os.path.dirname(path) else []
            base = [self._package, *parts[: len(parts) - node.level + 1]] if node.level else []
            where = [*base, *(node.module.split(".") if node.module else [])]
            whole = self._file([*where, alias.name])
            target = whole or self._file(where)
            wanted = None if whole else {name if alias.name == "*" else alias.name}
        if target is not None and (wanted is not None or target not in by_path):
            known = by_path.get(target)
            if known is None or wanted is None or not wanted <= known.asked:
                by_path.setdefault(target, _Used()).asked |= wanted or set()
                self._follow(target, wanted, function, by_path)

    # -- files -----------------------------------------------------------------------------------------------------------

    def _file(self, parts: List[str]) -> Optional[str]:
        """The file of a module of the suite, relative to its folder; None if the module is not the suite's."""
        if len(parts) < 2 or parts[0] != self._package:
            return None
        stem = os.path.join(*parts[1:])
        paths = (f"{stem}.py", os.path.join(stem, "__init__.py"))
        return next((path for path in paths if os.path.isfile(os.path.join(self._folder, path))), None)

    def _module(self, path: str) -> Optional[_Module]:
        if path not in self._modules:
            try:
                with open(os.path.join(self._folder, path), "rb") as file:
                    self._modules[path] = _Module(ast.parse(file.read()))
            except (OSError, SyntaxError, ValueError):
                self._modules[path] = None
        return self._modules[path]

    def _data_files(self) -> Dict[str, List[str]]:
        """Files of the suite's folder that are no code, by their names without a folder."""
        if self._data is None:
            self._data, seen = {}, 0
            for folder, folders, names in os.walk(self._folder):
                folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
                seen += len(names)
                if seen > MOST_DATA:
                    break
                for name in (one for one in names if not one.endswith((".py", ".pyc"))):
                    path = os.path.relpath(os.path.join(folder, name), self._folder)
                    self._data.setdefault(name, []).append(path)
        return self._data


class _Module:
    """The statements of a module, and which of them define what."""

    def __init__(self, tree: ast.Module) -> None:
        self.body = [statement for statement in tree.body if not _is_docstring(statement) and not _is_main(statement)]
        self.defined: Dict[str, List[int]] = {}
        self.effects: List[int] = []
        """Statements that define nothing: what they do, they do for all."""
        for at, node in enumerate(self.body):
            names = set(_defined(node))
            for name in names:
                self.defined.setdefault(name, []).append(at)
            if not names:
                self.effects.append(at)


class _Used:
    """What of a file is used, by the place of the statement."""

    def __init__(self) -> None:
        self.parts: Dict[Tuple[int, str], None] = {}
        self.asked: Names = set()

    def take(self, at: int, text: str, names: Names) -> Names:
        """The names it refers to, if it is new."""
        if (at, text) in self.parts:
            return set()
        self.parts[at, text] = None
        return names

    def word(self) -> str:
        text = "\n".join(text for _, text in sorted(self.parts))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


# -- statements ----------------------------------------------------------------------------------------------------------


def _defined(node: ast.stmt) -> Iterator[str]:
    """The names that a statement gives a meaning to, as far as a module can tell."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0]
    elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for part in ast.walk(target):
                if isinstance(part, ast.Attribute) and part.attr in SAID_ELSEWHERE:
                    yield f".{part.attr}"  # of a benchmark: nobody asks for it
                    break
                if isinstance(part, ast.Name):
                    yield part.id
    else:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                yield from _defined(child)
            elif isinstance(child, ast.ExceptHandler):
                for inner in child.body:
                    yield from _defined(inner)


def _without_others(node: ast.stmt, function: str) -> ast.stmt:
    """A class without the benchmarks that it has besides, and without what is compared by its value."""
    if not isinstance(node, ast.ClassDef):
        return node
    kept = [statement for statement in node.body if not _is_other(statement, function)]
    return ast.ClassDef(
        name=node.name, bases=node.bases, keywords=node.keywords, body=kept, decorator_list=node.decorator_list
    )


def _is_other(node: ast.stmt, function: str) -> bool:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        kind = node.name.partition("_")[0].lower()
        return node.name != function and (kind in BENCHMARK or _camel(node.name))
    named = {name.rpartition(".")[2] for name in _defined(node)}
    return bool(named) and named <= SAID_ELSEWHERE


def _camel(name: str) -> bool:
    """asv's other spelling: TimeSomething."""
    starts = [prefix.capitalize() for prefix in BENCHMARK]
    return any(name.startswith(start) and name[len(start) : len(start) + 1].isupper() for start in starts)


def _names(node: ast.AST) -> Names:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _texts(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and 0 < len(part.value) < 256:
            yield part.value


def _dump(node: ast.AST) -> str:
    """The node as text, the same for every version of Python and every layout; without docstrings."""
    fields: List[str] = []
    for name, value in ast.iter_fields(node):
        if name in ("type_comment", "kind", "ctx", "type_params") or value is None or value == []:
            continue
        if isinstance(value, list):
            items = value[1:] if name == "body" and _is_docstring(value[0]) else value
            texts = [_dump(item) if isinstance(item, ast.AST) else repr(item) for item in items]
            fields.append(f"{name}=[{','.join(texts)}]")
        else:
            fields.append(f"{name}={_dump(value) if isinstance(value, ast.AST) else repr(value)}")
    return f"{type(node).__name__}({','.join(fields)})"


def _is_docstring(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_main(node: ast.stmt) -> bool:
    """Whether it is what a module does as a script only."""
    test = node.test if isinstance(node, ast.If) else None
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _digest(path: str) -> str:
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                digest.update(block)
    except OSError:
        return "unreadable"
    return digest.hexdigest()
