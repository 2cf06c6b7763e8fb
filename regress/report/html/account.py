"""An explanation in the words and numbers of a page: of its own page, and of a report's."""

from __future__ import annotations

from typing import Any

from regress.model import Explained, Explanation, KernelDiff
from regress.pages import Shard
from regress.report.explained import configuration_lines, count, part_rows, sentence, was_line
from regress.report.html.page import script_of


def shard_script(shard: Shard) -> str:
    """The script of a benchmark's page, which has explanations in words."""
    accounts = [{**vars(kept), "found": account(kept.found)} for kept in shard.accounts]
    return script_of("shard", shard.name, {**vars(shard), "accounts": accounts})


def account(explained: Explained) -> dict[str, Any]:
    """Why, where the time went, the kernels, and what speaks against it."""
    explanation = explained.explanation
    return {
        "sentence": sentence(explained),
        "parts": _parts(explained),
        "also": [f"{one.text} ({one.confidence} confidence)" for one in explanation.causes[1:]] if explanation else [],
        "kernels": kernels_of(explanation) if explanation is not None else [],
        "warnings": list(explained.warnings),
    }


def kernels_of(explanation: Explanation) -> list[dict[str, Any]]:
    """Its kernels and copies, the largest difference first."""
    diffs = (*explanation.kernels, *explanation.copies)
    return [_kernel(kernel) for kernel in sorted(diffs, key=lambda kernel: -abs(kernel.difference_s))]


def _parts(explained: Explained) -> list[tuple[str, str, str, str, float | None]]:
    """The rows, each with its share; the sums have none."""
    explanation = explained.explanation
    if explanation is None:
        return []
    whole = explained.whole_s
    shares = [part / whole if whole else 0.0 for part in explained.parts.values()]
    rows = part_rows(explained)
    return [(*row, share) for row, share in zip(rows, [*shares, *[None] * (len(rows) - len(shares))], strict=True)]


def _kernel(kernel: KernelDiff) -> dict[str, Any]:
    use = kernel.head or kernel.base
    assert use is not None
    launches = [count(one.launches) if one else "0" for one in (kernel.base, kernel.head)]
    return {
        "name": use.name,
        "label": use.label,
        "kind": kernel.kind,
        "before_s": kernel.base.seconds if kernel.base else None,
        "after_s": kernel.head.seconds if kernel.head else None,
        "difference_s": kernel.difference_s,
        "launches": " → ".join(dict.fromkeys(launches)),
        "matched": kernel.matched if kernel.base and kernel.head else "",
        "operator": " ".join([*use.operators[:1], use.shapes]).strip(),
        "more": configuration_lines(kernel) or was_line(kernel),
    }
