"""Where differences come from, kept beside the results of their head.

    ROOT/MACHINE/COMMIT8-ENV.explained.jsonl    a line for each base, case and metric: the newest one

A line is a KeptExplanation without what has its default, and holds what a reader needs of it: the causes, where the time went,
and the kernels that changed. Traces stay in the cache, files and commits in git. A line that cannot be read, because a later
version has written it, is kept as it is.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from regress.history import disk, loading
from regress.history.json_text import loads
from regress.history.results_file import file_stem, is_seconds, shortened
from regress.history.store import LOCK_TIMEOUT_S, folder_of, for_merging
from regress.model import Comparison, Explained, Explanation, KeptExplanation, KernelDiff, KernelUse, ProfiledSide

ENDING = ".explained.jsonl"
FORMAT = 1
DIGITS = 6
MOST_KERNELS = 20
"""How many of the kernels and copies that changed are kept."""
MOST_LETTERS = 300
"""Of a kernel's name, which has its template arguments, and of what it was launched for."""


# -- writing -------------------------------------------------------------------------------------------------------------


def keep_explanation(root: Path, kept: KeptExplanation) -> Path:
    """Keep it, replacing an older one of the same sides, case and metric. Raises StoreError."""
    path = folder_of(root, kept.machine) / (file_stem(kept.head, kept.environment) + ENDING)
    line = {
        "format": FORMAT,
        **_lean(dataclasses.replace(kept, found=_kept(kept.found))),
        "date": round(kept.date, 3),
    }
    new = json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    with disk.locked(root, LOCK_TIMEOUT_S):
        disk.replace_file(path, united_explanations([for_merging(path, bytes) or b"", new]))
    return path


def united_explanations(parts: Iterable[bytes]) -> bytes:
    """The lines of several files in one: of each base, head, case and metric the newest, whatever the order of the files."""
    newest: dict[str, tuple[float, bytes]] = {}
    for text in (line for part in parts for line in part.split(b"\n")):
        try:
            line = loads(text)
        except ValueError:
            continue
        key, dated = _key(line) or text.decode(), (_date(line), text)
        newest[key] = max(newest.get(key, dated), dated)
    return b"".join(newest[key][1] + b"\n" for key in sorted(newest))


def _key(line: Any) -> str:
    """The sides, case and metric it explains; empty if this version cannot tell."""
    try:
        about = line["found"]["comparison"]
        return json.dumps([line["head"], line["environment"], about["case"], about["metric"]["name"], line["base"]])
    except (KeyError, TypeError):
        return ""


def _date(line: Any) -> float:
    date = line.get("date") if isinstance(line, dict) else None
    return float(date) if date is not None and is_seconds(date) else 0.0


def _kept(explained: Explained) -> Explained:
    """The part of it that is kept."""
    seen = explained.comparison
    about = Comparison(
        seen.case,
        seen.metric,
        seen.verdict,
        base=seen.base,
        head=seen.head,
        ratio=seen.ratio,
        low=seen.low,
        high=seen.high,
    )
    base, head = (
        ProfiledSide(side.calls_s, ()) if side is not None else None for side in (explained.base, explained.head)
    )
    explanation = _fewer(explained.explanation) if explained.explanation is not None else None
    return Explained(about, explanation, base, head, warnings=explained.warnings, shown=explained.shown)


def _fewer(explanation: Explanation) -> Explanation:
    changed = [kernel for kernel in (*explanation.kernels, *explanation.copies) if kernel.kind != "same"]
    kept = sorted(changed, key=lambda kernel: -abs(kernel.difference_s))[:MOST_KERNELS]
    kernels, copies = (
        tuple(_cut(kernel) for kernel in group if any(kernel is one for one in kept))
        for group in (explanation.kernels, explanation.copies)
    )
    return dataclasses.replace(explanation, kernels=kernels, copies=copies, warnings=())


def _cut(kernel: KernelDiff) -> KernelDiff:
    return dataclasses.replace(kernel, base=_named(kernel.base), head=_named(kernel.head))


def _named(use: KernelUse | None) -> KernelUse | None:
    if use is None:
        return None
    name, short, shapes = (text[:MOST_LETTERS] for text in (use.name, use.short, use.shapes))
    operators = tuple(text[:MOST_LETTERS] for text in use.operators[:1])
    return dataclasses.replace(use, name=name, short=short, shapes=shapes, operators=operators, dtypes="")


def _lean(value: Any) -> Any:
    """In JSON's terms, without fields that have their default; numbers that JSON lacks as strings."""
    if dataclasses.is_dataclass(value):
        named = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {field.name: _lean(own) for field, own in named if own != field.default}
    if isinstance(value, (list, tuple)):
        return [_lean(item) for item in value]
    if isinstance(value, float):
        return shortened(value, DIGITS) if math.isfinite(value) else str(value)
    return value


# -- reading -------------------------------------------------------------------------------------------------------------


def explanations_in(root: Path) -> Iterator[KeptExplanation]:
    """All explanations kept below `root`, except unreadable ones."""
    for folder, machine in loading.machine_folders(root):
        for path in files_of_explanations(folder):
            for text in (loading.read(path, bytes, []) or b"").split(b"\n"):
                kept = _read(text)
                if kept is not None and kept.machine == machine:
                    yield kept


def files_of_explanations(folder: Path) -> list[Path]:
    """Those of one machine."""
    return sorted(path for path in folder.glob(f"*{ENDING}") if path.name[0] != ".")


def _read(text: bytes) -> KeptExplanation | None:
    try:
        line = loads(text)
        kept = msgspec.convert(line, KeptExplanation, strict=False) if line["format"] == FORMAT else None
        return kept if kept is not None and is_seconds(kept.date) else None
    except (ValueError, KeyError, TypeError, msgspec.ValidationError):
        return None
