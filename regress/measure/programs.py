"""Programs of the suite: classes that name a command which measures by itself, in place of functions that are called.

Nothing is run here. The driver runs a program in the folder of each side, and reads what it has written.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from types import ModuleType
from typing import Any, Iterator, List, Sequence

from .suite import DECIDING, is_plain, source_of
from .wire import Program, SuiteProblem

MEANING = ("command", "format", "list_command", "cwd", "env", "params", "param_names", "mapping")
"""Attributes that say what is run, and how what it writes is read: with other ones it is another benchmark."""


def programs_in(module: ModuleType, folder: str, problems: List[SuiteProblem]) -> Iterator[Program]:
    """The programs that classes of a module name; what is wrong with others goes to the problems."""
    for name, owner in list(vars(module).items()):
        named = inspect.isclass(owner) and not name.startswith("_") and owner.__module__ == module.__name__
        if not named or not hasattr(owner, "command") or not hasattr(owner, "format"):
            continue
        where = f"{module.__name__}.{name}"
        try:
            yield _program(where.partition(".")[2] or name, owner, folder)
        except Exception as error:  # whatever stands in a suite
            problems.append(SuiteProblem(where, f"its program cannot be run: {error}", name=where.partition(".")[2]))


def _program(name: str, owner: Any, folder: str) -> Program:
    command, listing = _words(owner, "command"), _words(owner, "list_command")
    params = _axes(getattr(owner, "params", []))
    names = list(getattr(owner, "param_names", [])) or [f"param{i + 1}" for i in range(len(params))]
    if not command:
        raise ValueError("its command is empty")
    if len(names) != len(params):
        raise ValueError(f"it has {len(params)} params and {len(names)} param_names")
    env = getattr(owner, "env", {})
    if not isinstance(env, dict) or not all(isinstance(word, str) for pair in env.items() for word in pair):
        raise ValueError("its env is not a dict of strings")
    timeout, (file, line) = getattr(owner, "timeout", None), source_of(owner, folder)
    declared = {attribute: getattr(owner, attribute, None) for attribute in DECIDING}
    return Program(
        name=name,
        command=command,
        format=str(owner.format),
        list_command=listing,
        cwd=str(getattr(owner, "cwd", "")),
        env=env,
        params=params,
        param_names=[str(param) for param in names],
        mapping=dict(getattr(owner, "mapping", {})),
        timeout_s=float(timeout) if isinstance(timeout, (int, float)) else None,
        version=_version(owner),
        declared={attribute: value for attribute, value in declared.items() if value is not None and is_plain(value)},
        file=file,
        line=line,
    )


def _words(owner: Any, name: str) -> List[str]:
    words = getattr(owner, name, [])
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"its {name} is not a list of words")
    return list(words)


def _axes(params: Any) -> List[List[str]]:
    """The parameters as words of a command; as in asv one list of values is one parameter."""
    if not isinstance(params, (list, tuple)):
        raise ValueError("its params are not a list")
    axes: Sequence[Any] = params if params and all(isinstance(axis, (list, tuple)) for axis in params) else [params]
    texts = [[str(value) for value in axis] for axis in axes if axis]
    if any(len(set(axis)) < len(axis) for axis in texts):
        raise ValueError("a parameter has the same value twice")
    return texts


def _version(owner: Any) -> str:
    """The author's, or a word for what is run and how it is read: asv compares versions as it compares code."""
    declared = getattr(owner, "version", None)
    if isinstance(declared, (str, int, float)):
        return str(declared)
    meaning = {name: getattr(owner, name, None) for name in MEANING}
    return hashlib.sha256(json.dumps(meaning, sort_keys=True, default=str).encode()).hexdigest()
