"""What every format comes to, and what all of them need: names, parameters, schemas."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from regress.model import Failure, Measured, writable
from regress.stats.summary import median

T = TypeVar("T")

_REPLACED = str.maketrans('()"', "[]'")
"""What ends the name of a case for who reads `name(params)`, and what no file name may have."""
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class Raw:
    """A file as it was read, and what its JSON says; None where it is none."""

    data: bytes
    content: Any
    path: Path
    mapping: Mapping[str, Any] = field(default_factory=dict)
    """What stands where, where the author declares that."""
    wrong: str = ""
    """Why it is no JSON."""


@dataclass(frozen=True)
class Given:
    """One case as a document has it: values of one run of the suite, with their samples where it has them."""

    name: str
    """Parts of it between dots, like that of a benchmark; without the parameters."""
    values: Mapping[str, Measured] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    """asv's texts by the names of the parameters."""
    metric: str = "wall_time"
    """What the case is about."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True)
class Document:
    """What a suite has written of one run."""

    cases: tuple[Given, ...]
    source: str = ""
    """The program that was run, as names of benchmarks begin with it; empty where the names of the cases say it all."""
    started_at: float = 0.0
    """Seconds since the epoch; 0 where it does not say."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Of the whole run: device, versions."""
    flags: tuple[str, ...] = ()
    """Doubts about all of it, in words."""
    needs_device: bool = False
    further: tuple[bytes, ...] = ()
    """What stood in files beside it."""
    format: str = ""
    digest: str = ""
    """Of all that was read: another document has another one."""


def struct(content: Any, kind: type[T]) -> T:
    """What was parsed as an object of that schema. Raises ValueError, which names the place."""
    try:
        return msgspec.convert(content, kind, strict=True)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def known_version(version: str, known: Sequence[str], what: str) -> None:
    """Raise ValueError where a version is none of those that are known, by their beginnings."""
    if not any(version == other or version.startswith(f"{other}.") for other in known):
        raise ValueError(f"{what} {version or 'without a version'}, and known are {', '.join(known)}")


def name_of(text: str) -> str:
    """A name that asv's files, file names of its pages and ours can hold: without blanks, slashes, brackets of parameters."""
    text = re.sub(r"^(\./)+", "", writable(text).strip())
    text = re.sub(r"[/\\]+", ".", text).translate(_REPLACED)
    return re.sub(r"[\s\x00-\x1f|?*]+", "_", text).strip(".") or "_"


def stem_of(program: str) -> str:
    """The name of a program without its folder and ending."""
    return name_of(re.split(r"[/\\]", program)[-1].removesuffix(".exe"))


def param(value: Any) -> str:
    """A parameter as asv writes it. What reads like a number is one: most formats have all of them as text."""
    if isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d*)?([eE][-+]?\d+)?", value):
        return value
    return repr(writable(value) if isinstance(value, str) else value)


def measured(samples: Sequence[float], unit: str = "s", value: float | None = None) -> Measured:
    """The samples of one run, whose median speaks for it where no other value is given."""
    own = [float(sample) for sample in samples]
    return Measured(median(own) if value is None else float(value), own, unit=unit)
