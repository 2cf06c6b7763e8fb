"""A report as one versioned JSON document: `"schema": "regress.check/1"`, described by regress.check.schema.json.

Numbers are in base units (seconds, bytes, ratios head/base, relative changes); what is missing, NaN or infinite is null.
Keys are sorted and the text is ASCII, so that equal reports give equal bytes. Within one version keys are only added.
"""

from __future__ import annotations

import dataclasses
import importlib.resources
import json
import math
from collections.abc import Mapping
from typing import Any

from regress.model import Report
from regress.report.shapes import DOCUMENTS, ENVELOPE, ITSELF, Key, is_list, keys, report_keys
from regress.text.style import Style


def render(report: Report, style: Style) -> str:
    """The document as text, ending with a newline. The style changes nothing."""
    return json.dumps(document(report), indent=2, sort_keys=True, allow_nan=False) + "\n"


def document(report: Report) -> dict[str, Any]:
    """The document as dicts, lists, strings, finite numbers, booleans and None."""
    envelope = _object(report, report_keys(ENVELOPE), report)
    if report.command == "profile":  # the export itself; a schema of its own describes it
        return envelope | (dict(_value(report.profile, report)) if report.profile is not None else {})
    return envelope | _object(report, report_keys(DOCUMENTS.get(report.command, {})), report)


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) that every document of this version fulfils."""
    text = importlib.resources.files("regress.report").joinpath("regress.check.schema.json").read_text("utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def _object(value: Any, own: tuple[Key, ...], report: Report) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key in own:
        held = getattr(value, key.source) if isinstance(key.source, str) else key.source(value, report)
        if key.source == "reasons":
            held = "; ".join(held)
        if key.blank and not held:
            held = None
        if key.labels and held is not None:
            held = _labelled(held, key)
        done = _value(held, report, key.plain)
        if key.beside:
            fields |= done
        else:
            fields[key.name] = done
    return fields


def _labelled(held: tuple[Any, ...], key: Key) -> Any:
    if is_list(key.kind):
        return [dict(zip(key.labels, item, strict=True)) for item in held]
    return dict(zip(key.labels, held, strict=True))


def _value(value: Any, report: Report, plain: bool = False) -> Any:
    """The value in terms that JSON has: NaN and infinities are null, what has no counterpart is its text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Report):
        return _object(value, report_keys(ITSELF), report)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _object(value, keys(type(value), plain), report)
    if isinstance(value, Mapping):
        return {str(key): _value(item, report, plain) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_value(item, report, plain) for item in value]
    return str(value)
