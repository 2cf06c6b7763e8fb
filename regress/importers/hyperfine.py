"""hyperfine's JSON (`--export-json FILE`), which names no version: what it has to have is looked at.

A command is a case; what `--parameter-scan` and `--parameter-list` put in are its parameters. Each run is a sample.
"""

from __future__ import annotations

import re

import msgspec

from regress.importers.document import Document, Given, Raw, measured, name_of, param, struct
from regress.model import Failure, Measured


class _Result(msgspec.Struct):
    command: str
    median: float
    times: list[float] | None = None
    user: float | None = None
    system: float | None = None
    memory_usage_byte: list[float] | None = None
    exit_codes: list[int | None] | None = None
    parameters: dict[str, str] | None = None


class _Written(msgspec.Struct):
    results: list[_Result]


def knows(raw: Raw) -> bool:
    """Whether it is such a document."""
    content = raw.content
    results = content.get("results") if isinstance(content, dict) else None
    return isinstance(results, list) and all(isinstance(result, dict) and "command" in result for result in results)


def read(raw: Raw) -> Document:
    """The document. Raises ValueError."""
    return Document(tuple(map(_given, struct(raw.content, _Written).results)), "hyperfine")


def _given(result: _Result) -> Given:
    name, params = result.command, result.parameters or {}
    for key, value in params.items():
        name = re.sub(rf"(?<![\w.]){re.escape(value)}(?![\w.])", f"{{{key}}}", name) if value else name
    texts = {key: param(value) for key, value in params.items()}
    failed = [code for code in result.exit_codes or () if code != 0]
    if failed:
        how = f"exit code {failed[0]}" if failed[0] is not None else "a signal"
        failure = Failure("error", f"{len(failed)} of {len(result.exit_codes or ())} runs ended with {how}")
        return Given(name_of(name), {}, texts, failure=failure)
    values = {"wall_time": measured(result.times) if result.times else Measured(result.median, [])}
    for metric, seconds in (("user_time", result.user), ("system_time", result.system)):
        if seconds is not None:
            values[metric] = Measured(seconds, [seconds])
    if result.memory_usage_byte:
        values["peak_rss"] = measured(result.memory_usage_byte, "B")
    return Given(name_of(name), values, texts)
