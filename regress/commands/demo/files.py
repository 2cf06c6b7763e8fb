"""The files of the demo repository, commit by commit. Nothing here writes to the disk or knows git."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from string import Template

from .story import FIRST, STORY, Edit, StoryStep

TEMPLATES = Path(__file__).with_name("first-commit")

Tree = dict[str, str]
"""The text of each file by its path in the repository."""

_MEASURED = "Timings are measured on this machine's CUDA device."
_SCRIPTED = """\
**Timings here are scripted, not measured.** This repository was made for a machine without a CUDA device, so its tensors
have no numbers in them: `tinynn/tensor.py` states what each operation would cost, and `regress` adds the costs up on a virtual
clock. Where there is a CUDA device, `regress demo` writes the same library on torch, and it is measured."""


def commits(count: int, scripted: bool) -> Iterator[tuple[StoryStep, Tree]]:
    """The `count` commits, oldest first, each with all of its files. `count` is at least `len(STORY) + 1`."""
    tree = first_tree(scripted)
    yield FIRST, tree
    for step in steps(count - 1):
        for edit in step.edits:
            tree = edited(tree, edit)
        yield step, tree


def steps(count: int) -> list[StoryStep]:
    """The story, with unchanged commits spread over it until there are `count`."""
    # None between the last two: HEAD and what it is compared with stay the same however many there are.
    gaps = len(STORY) - 1
    share, left = divmod(count - len(STORY), gaps)
    extra = unchanged()
    told: list[StoryStep] = []
    for index, step in enumerate(STORY):
        if index < gaps:
            told += itertools.islice(extra, share + (index < left))
        told.append(step)
    return told


def unchanged() -> Iterator[StoryStep]:
    """Commits without end that change nothing that can be measured: each adds a row to a table in the documentation."""
    last = "| --- | --- | --- |\n"
    for number in itertools.count():
        name = ("softmax", "layer_norm", "gelu", "residual")[number % 4]
        rows, columns = 128 * (number // 4 + 1), (512, 1024, 2048)[number % 3]
        row = f"| {name} | {rows} x {columns} | {2 * rows * columns} |\n"
        yield StoryStep(f"docs: size of {name} at {rows} x {columns}", edits=(Edit("docs/sizes.md", last, last + row),))
        last = row


def edited(tree: Tree, edit: Edit) -> Tree:
    """The tree after one edit. Raises ValueError where the edit does not fit: then the story is wrong."""
    if not edit.old:
        if edit.path in tree:
            raise ValueError(f"{edit.path} is there already")
        return {**tree, edit.path: edit.new}
    if tree[edit.path].count(edit.old) != 1:
        raise ValueError(f"{edit.path}: expected exactly once: {edit.old!r}")
    return {**tree, edit.path: tree[edit.path].replace(edit.old, edit.new)}


def first_tree(scripted: bool) -> Tree:
    """The files of the first commit: what both devices share, and what is the device's own."""
    tree = {**_templates("common"), **_templates("scripted" if scripted else "torch")}
    # A template with this name would be obeyed by git where it stands.
    tree[".gitignore"] = tree.pop("gitignore")
    timings = _SCRIPTED if scripted else _MEASURED
    tree["README.md"] = Template(tree["README.md"]).substitute(timings=timings, planted=_planted_rows())
    return tree


def _templates(folder: str) -> Tree:
    paths = sorted((TEMPLATES / folder).rglob("*.txt"))
    return {
        path.relative_to(TEMPLATES / folder).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
        for path in paths
    }


def _planted_rows() -> str:
    rows = []
    for step in STORY:
        if step.planted:
            names = sorted({f"`{planted.benchmark}`" for planted in step.planted})
            rows.append(f"| {step.subject} | {' '.join(names)} | {step.effect} |")
    return "\n".join(rows)
