"""An explanation in the words and numbers of a page: of its own page, and of a report's."""

from __future__ import annotations

from typing import Any

from regress.model import Explained, Explanation, KernelDiff
from regress.pages import Shard
from regress.report.explained import configuration_lines, count, part_rows, sentence, was_line
from regress.report.html.page import script_of


def shard_script(shard: Shard) -> str:
    """The script of a benchmark's page, which has explanations in words."""
    accounts = [{**vars(each), "found": account(each.found)} for each in shard.accounts]
    return script_of("shard", shard.name, {**vars(shard), "accounts": accounts})


def account(each: Explained) -> dict[str, Any]:
    """Why, where the time went, the kernels, and what speaks against it."""
    found = each.explanation
    return {
        "sentence": sentence(each),
        "parts": _parts(each),
        "also": [f"{one.text} ({one.confidence} confidence)" for one in found.causes[1:]] if found else [],
        "kernels": kernels_of(found) if found is not None else [],
        "warnings": list(each.warnings),
    }


def kernels_of(found: Explanation) -> list[dict[str, Any]]:
    """Its kernels and copies, the largest difference first."""
    diffs = (*found.kernels, *found.copies)
    return [_kernel(each) for each in sorted(diffs, key=lambda each: -abs(each.difference_s))]


def _parts(each: Explained) -> list[tuple[str, str, str, str, float | None]]:
    """The rows, each with its share; the sums have none."""
    found = each.explanation
    if found is None:
        return []
    whole = each.whole_s
    shares = [part / whole if whole else 0.0 for part in each.parts.values()]
    rows = part_rows(each)
    return [(*row, share) for row, share in zip(rows, [*shares, *[None] * (len(rows) - len(shares))], strict=True)]


def _kernel(each: KernelDiff) -> dict[str, Any]:
    use = each.head or each.base
    assert use is not None
    launches = [count(one.launches) if one else "0" for one in (each.base, each.head)]
    return {
        "name": use.name,
        "label": use.label,
        "kind": each.kind,
        "before_s": each.base.seconds if each.base else None,
        "after_s": each.head.seconds if each.head else None,
        "difference_s": each.difference_s,
        "launches": " → ".join(dict.fromkeys(launches)),
        "matched": each.matched if each.base and each.head else "",
        "operator": " ".join([*use.operators[:1], use.shapes]).strip(),
        "more": configuration_lines(each) or was_line(each),
    }
