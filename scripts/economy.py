"""How much code there is, and what of it may be in the way: `python scripts/economy.py [COMMIT]`, by default the working tree.

lines, files     of Python in regress/
twice            names of classes that more than one module defines
imported once    modules that exactly one other module of the package imports
each, found      functions with a local of that name, which says nothing of what it holds
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "regress"
IDLE_NAMES = ("each", "found")


def sources(commit: str) -> dict[str, str]:
    """The text of every module by its name: of that commit, or of the working tree."""
    if not commit:
        files = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in (ROOT / PACKAGE).rglob("*.py")}
    else:
        done = subprocess.run(["git", "archive", commit, PACKAGE], cwd=ROOT, capture_output=True, check=True)
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            held = [(member.name, archive.extractfile(member)) for member in archive if member.name.endswith(".py")]
            files = {name: file.read().decode() for name, file in held if file is not None}
    return {name.removesuffix(".py").replace("/", ".").removesuffix(".__init__"): text for name, text in files.items()}


def imported(module: str, is_package: bool, tree: ast.AST, known: set[str]) -> Iterator[str]:
    """The modules of the package that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in known)
        elif isinstance(node, ast.ImportFrom):
            parents = module.split(".")[: len(module.split(".")) - node.level + is_package] if node.level else []
            base = ".".join([*parents, *filter(None, [node.module])])
            for name in node.names:
                whole = f"{base}.{name.name}"
                yield whole if whole in known else base


def functions_with(name: str, tree: ast.AST) -> int:
    """How many functions bind that name, in a comprehension or otherwise."""
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return sum(
        any(
            isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
            for node in ast.walk(function)
        )
        for function in functions
    )


def counts(commit: str) -> dict[str, int]:
    """What is counted, in the order in which it is shown."""
    texts = sources(commit)
    trees = {module: ast.parse(text) for module, text in texts.items()}
    packages = {module for module in texts if any(other.startswith(f"{module}.") for other in texts)}
    importers: Counter[str] = Counter()
    for module, tree in trees.items():
        importers.update(set(imported(module, module in packages, tree, set(texts))) - {module})
    classes = Counter(node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {
        "lines": sum(text.count("\n") for text in texts.values()),
        "files": len(texts),
        "class names twice": sum(number > 1 for number in classes.values()),
        "modules imported once": sum(importers[module] == 1 for module in texts),
        **{f"functions with {name}": sum(functions_with(name, tree) for tree in trees.values()) for name in IDLE_NAMES},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="*", metavar="COMMIT", help="a column each, beside the working tree")
    columns = [*parser.parse_args().commits, ""]
    rows = [counts(commit) for commit in columns]
    print("  ".join(["".ljust(22), *(f"{commit or 'working tree':>12}" for commit in columns)]))
    for name in rows[0]:
        print("  ".join([name.ljust(22), *(f"{row[name]:>12,}" for row in rows)]))


if __name__ == "__main__":
    main()
