"""The schemas of the documents, made from the types and tables that write them: `python -m regress.report.schema`.

A description is the docstring of a type, of its attribute, or of the property or function that a key is derived by.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import re
import textwrap
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from regress.model import Report
from regress.profiles import SCHEMA, Profile
from regress.report.shapes import DOCUMENTS, ENVELOPE, ITSELF, VERSION, Key, is_list, keys, report_keys

Schema = dict[str, Any]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_LIMITS: Mapping[str, Schema] = {
    "schema": {"pattern": rf"^regress\.[a-z-]+/{VERSION}$"},
    "exit_codes": {"minItems": 1},
}
"""What the types of the envelope's keys do not say."""
_SIMPLE = {str: "string", Path: "string", bool: "boolean", int: "integer", type(None): "null"}


def check() -> Schema:
    """The schema of everything that a report becomes."""
    walk = _Walk(finite=False)
    envelope = walk.object(report_keys(ENVELOPE), Report)
    for name, limit in _LIMITS.items():
        envelope["properties"][name] |= limit
    bodies: dict[str, tuple[Schema, list[str]]] = {}
    for command, sources in DOCUMENTS.items():
        body = walk.object(report_keys(sources), Report)
        bodies.setdefault(json.dumps(body), (body, []))[1].append(f"regress.{command}/{VERSION}")
    return {
        "$schema": _DRAFT,
        "title": f"regress: documents of --format json, version {VERSION}",
        "description": "Times are seconds, sizes bytes, a ratio is head/base. A number that is missing, NaN or infinite is "
        "null. Within a version keys may be added.",
        **envelope,
        "allOf": [{"if": {"properties": {"schema": {"enum": names}}}, "then": body} for body, names in bodies.values()],
        "$defs": dict(sorted(walk.definitions.items())),
    }


def profile() -> Schema:
    """The schema of what GPUProfiler exports."""
    walk = _Walk(finite=True)
    schema = walk.object(keys(Profile), Profile)
    schema["properties"]["schema"] = {"const": SCHEMA}
    return {
        "$schema": _DRAFT,
        "title": "regress: export of GPUProfiler, version 1",
        "description": "Times are seconds, sizes bytes; unknown values are null. Within a version keys may be added.",
        **schema,
        "$defs": dict(sorted(walk.definitions.items())),
    }


def text(schema: Schema) -> str:
    """A schema as its file has it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


class _Walk:
    """From types to schemas; `definitions` gets a definition of every dataclass on the way."""

    def __init__(self, finite: bool) -> None:
        self.finite = finite
        """Whether a number is always one: elsewhere NaN and infinities are written as null."""
        self.definitions: dict[str, Schema] = {}

    def object(self, own: Iterable[Key], of: type) -> Schema:
        properties: dict[str, Schema] = {}
        for key in own:
            if key.beside:
                properties |= self.object(keys(key.kind), key.kind)["properties"]
            else:
                properties[key.name] = self.property(key, of)
        return {"type": "object", "required": sorted(properties), "properties": properties}

    def property(self, key: Key, of: type) -> Schema:
        schema = self.labelled(key) if key.labels else self.any(key.kind, key.plain)
        described = _attribute(of, key.source) if isinstance(key.source, str) else key.source.__doc__
        schema = _or_null(schema) if key.blank else schema
        return schema | ({"description": _plain(described)} if described else {})

    def labelled(self, key: Key) -> Schema:
        kind, *others = _options(key.kind)
        if is_list(kind):
            return {"type": "array", "items": self.parts(key.labels, get_args(kind)[0])}
        schema = self.parts(key.labels, kind)
        return _or_null(schema) if others else schema

    def parts(self, labels: tuple[str, ...], kind: Any) -> Schema:
        properties = {label: self.any(part) for label, part in zip(labels, get_args(kind), strict=True)}
        return {"type": "object", "required": sorted(properties), "properties": properties}

    def any(self, kind: Any, plain: bool = False) -> Schema:
        options = _options(kind)
        if len(options) > 1:
            return functools.reduce(_either, (self.any(option, plain) for option in options))
        if kind is Any:
            return {}
        if kind is float:
            return {"type": "number" if self.finite else ["number", "null"]}
        if kind in _SIMPLE:
            return {"type": _SIMPLE[kind]}
        if get_origin(kind) is Literal:
            return {"enum": list(get_args(kind))}
        if kind is Report:
            return self.object(report_keys(ITSELF), Report)
        if is_dataclass(kind) and isinstance(kind, type):
            return {"$ref": f"#/$defs/{self.defined(kind, plain)}"}
        return self.container(kind, plain)

    def container(self, kind: Any, plain: bool) -> Schema:
        if isinstance(kind, type) and issubclass(kind, Enum):
            return {"enum": [member.value for member in kind]}
        inner = get_args(kind)
        if get_origin(kind) in (tuple, list):
            if is_list(kind) or get_origin(kind) is list:
                return {"type": "array", "items": self.any(inner[0], plain)}
            items = [self.any(argument, plain) for argument in inner]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        if inner[1] is Any:
            return {"type": "object"}
        return {"type": "object", "additionalProperties": self.any(inner[1], plain)}

    def defined(self, kind: type, plain: bool) -> str:
        own = keys(kind, plain)
        is_same = own == tuple(key._replace(plain=plain) for key in keys(kind))
        name = kind.__name__ if is_same else f"Plain{kind.__name__}"
        if name not in self.definitions:
            self.definitions[name] = {}  # the type may hold others of its own kind
            described = {"description": _plain(kind.__doc__)} if kind.__doc__ else {}
            self.definitions[name] = described | self.object(own, kind)
        return name


def _options(kind: Any) -> tuple[Any, ...]:
    """The types of a union, what is null last."""
    if get_origin(kind) not in (typing.Union, types.UnionType):
        return (kind,)
    return tuple(sorted(get_args(kind), key=lambda option: option is type(None)))


def _either(one: Schema, other: Schema) -> Schema:
    if set(one) == set(other) == {"type"}:
        words = [word for schema in (one, other) for word in _list(schema["type"])]
        return {"type": list(dict.fromkeys(words))}
    if "enum" in one and other == {"type": "null"}:
        return {"enum": [*one["enum"], None]}
    return {"anyOf": [*one.get("anyOf", [one]), other]}


def _or_null(schema: Schema) -> Schema:
    return _either(schema, {"type": "null"})


def _list(words: str | list[str]) -> list[str]:
    return [words] if isinstance(words, str) else words


def _attribute(kind: type, name: str) -> str | None:
    """The docstring of an attribute or property."""
    held = getattr(kind, name, None)
    return held.__doc__ if isinstance(held, property) else _attributes(kind).get(name)


@functools.cache
def _attributes(kind: type) -> dict[str, str]:
    """The strings below the attributes of a class in its source."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(node, ast.ClassDef)
    described = {}
    for line, below in zip(node.body, node.body[1:], strict=False):
        if isinstance(line, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            assert isinstance(line.target, ast.Name)
            described[line.target.id] = str(below.value.value)
    return described


def _plain(docstring: str) -> str:
    return re.sub(r"\bNone\b", "null", " ".join(docstring.split()))


_FOLDER = Path(__file__).parents[1]
FILES = {
    _FOLDER / "report" / "regress.check.schema.json": check,
    _FOLDER / "report" / "regress.profile.schema.json": profile,
}

if __name__ == "__main__":
    for path, made in FILES.items():
        path.write_text(text(made()), encoding="utf-8", newline="\n")
