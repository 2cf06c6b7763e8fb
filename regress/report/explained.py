"""Where differences come from: a sentence of cause, where the time went, the kernels, and what was changed.

The parts of a difference are printed in one scale with the digits of the smallest, so that the eye can add them up.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from regress.model import Comparison, Explained, Explanation, KernelDiff, KernelUse, Report
from regress.text.style import Style, cut, paint, visible
from regress.text.table import Row, align, table, titles
from regress.text.wording import more_with_v
from regress.units import (
    format_bytes,
    format_change,
    format_interval,
    format_number,
    format_pair,
    format_percent,
    format_sum,
    format_time,
)

KERNELS = ("kernel", "before", "after", "difference", "launches", "what", "matched by", "operator")
ALIGNS = "lrrrrlll"
_FEW = 12
"""Kernels, files and commits that are shown unless verbose."""
_NAME = 60


def explained(report: Report, style: Style) -> list[str]:
    """A section for each, the sentence first."""
    lines = []
    for each in report.explained:
        color = "bold red" if _slower(each) else "bold green"
        lines += [f"  {paint(sentence(each), color, style)}", *block(each, style), ""]
    return lines


def sentences(report: Report, style: Style) -> list[str]:
    return [sentence(each) for each in report.explained]


def sentence(each: Explained) -> str:
    """ "softmax.cudatime_fwd: 9.4 % slower: a fusion was lost (high confidence)"."""
    return f"{visible(str(each.case))} is {amount(each)}: {why(each)}"


def why(each: Explained) -> str:
    """ "a fusion was lost (high confidence)", or that none is known."""
    return _cause(each) or ("it could not be profiled" if each.explanation is None else "no cause is recognized")


def because(report: Report, *shown: Comparison) -> str:
    """ "because a fusion was lost (high confidence)", of the first of these that a cause is known of, or else of another case
    of their benchmark that moved in the same way, which is named. Empty if none is known."""
    known = [(each.comparison, found) for each in report.explained if (found := _cause(each))]
    about = {(each.case, each.metric.name) for each in shown}
    alike = {(each.case.name, each.metric.name, each.verdict) for each in shown}
    own = (f"because {found}" for each, found in known if (each.case, each.metric.name) in about)
    others = (
        f"{visible(str(each.case))}: because {found}"
        for each, found in known
        if (each.case.name, each.metric.name, each.verdict) in alike
    )
    return next(itertools.chain(own, others), "")


def _cause(each: Explained) -> str:
    """The likeliest cause and how sure it is; empty if none is known."""
    causes = each.explanation.causes if each.explanation is not None else ()
    return f"{visible(causes[0].text)} ({causes[0].confidence} confidence)" if causes else ""


def amount(each: Explained) -> str:
    """ "9.4 % slower", "2.1 times as slow"."""
    ratio, host = each.comparison.ratio or 1.0, each.comparison.metric.kind == "host"
    where = " on the host" if host else ""
    if ratio >= 2:
        return f"{format_number(ratio)} times as slow{where}"
    return f"{format_percent(abs(ratio - 1))} {'slower' if ratio > 1 else 'faster'}{where}"


def block(each: Explained, style: Style) -> list[str]:
    """All of it but the sentence, as lines."""
    found = each.explanation
    lines: list[str] = []
    if found is not None:
        rows = [(name, amount, "  ".join(filter(None, more))) for name, amount, *more in part_rows(each)]
        lines += [f"    {line}" for line in align(rows)]
        lines += [f"  also {visible(one.text)} ({one.confidence} confidence)" for one in found.causes[1:]]
        lines += _kernels(found, style)
    lines += [f"  {paint('doubt', 'yellow', style)} {visible(text)}" for text in each.warnings]
    lines += _listed("file", "files", [visible(name) for name in each.files], style)
    commits = [f"{one.short} {cut(visible(one.subject), _NAME)}" for one in reversed(each.commits)]
    lines += _listed("commit", "commits", commits, style)
    sides = (("base", each.base), ("head", each.head))
    if style.verbose:
        lines += [f"  trace {name} {visible(trace)}" for name, side in sides if side for trace in side.traces]
    return lines


# -- where it went -------------------------------------------------------------------------------------------------------


def part_rows(each: Explained) -> list[tuple[str, str, str, str]]:
    """The parts of the difference, what they add up to, and beside it the other of the measured and the profiled one: name,
    amount, share, and what else there is to say."""
    found, compared = each.explanation, each.comparison
    assert found is not None
    parts = each.parts
    before, after = format_pair(found.base_s, found.head_s, "s")
    sums = [("a call, profiled", found.difference_s, f"{before} -> {after}{_range(each)}")]
    base, head = compared.base, compared.head
    if base is not None and head is not None:
        before, after = format_pair(base.center, head.center, "s")
        change = f"{format_change(compared.ratio)} ({format_interval(compared.low, compared.high)})"
        how = f"{compared.metric.name} without a profiler, {base.n}+{head.n} rounds"
        row = ("measured", each.measured_s or 0.0, f"{before} -> {after}, {change}, {how}")
        sums.insert(0 if each.whole_s == each.measured_s else 1, row)
    texts = format_sum(tuple(parts.values()), *(whole for _, whole, _ in sums), unit="s")
    shares = [_share(part, each.whole_s) for part in parts.values()]
    words = [_between(found) if name == "the rest" else "" for name in parts]
    return [
        *zip(parts, texts, shares, words, strict=False),
        *((name, text, "", more) for (name, _, more), text in zip(sums, texts[len(parts) :], strict=True)),
    ]


def _between(found: Explanation) -> str:
    """What the kernels and copies do not make up of a time of the device."""
    before, after = (count(number) for number in found.launches)
    launches = before if before == after else f"{before} -> {after}"
    return f"between launches ({launches} a call), and what a profile does not show"


def _share(part: float, whole: float | None) -> str:
    return f"{round(100 * part / whole)} %" if whole else ""


def _range(each: Explained) -> str:
    """Between which values the profiles of a side lie."""
    words = []
    for side in (each.base, each.head):
        if side is None or len(side.calls_s) < 2:
            return ""
        words.append(" to ".join(format_pair(min(side.calls_s), max(side.calls_s), "s")))
    return f" ({words[0]}; {words[1]})"


# -- kernels -------------------------------------------------------------------------------------------------------------


def _kernels(found: Explanation, style: Style) -> list[str]:
    rows = _kernel_rows(found, style)
    if not rows:
        return []
    lines = ["", *table([titles(*KERNELS), *rows], ALIGNS, style)]
    left = len(found.kernels) + len(found.copies) - len(rows)
    lines += [f"    {left} more with little or no change (-v lists them)"] if left else []
    return [*lines, *_configurations(found), ""]


def _kernel_rows(found: Explanation, style: Style) -> list[Row]:
    """Kernels and copies; unless verbose those that changed."""
    shown = sorted((*found.kernels, *found.copies), key=lambda each: -abs(each.difference_s))
    if not style.verbose:
        shown = [each for each in shown if each.kind != "same"][:_FEW]
    return [_row(each) for each in shown]


def _row(each: KernelDiff) -> Row:
    use = each.head or each.base
    assert use is not None
    before, after = format_pair(each.base.seconds if each.base else None, each.head.seconds if each.head else None, "s")
    launches = [count(one.launches) if one else "0" for one in (each.base, each.head)]
    worse = each.difference_s > 0
    cells = (
        visible(use.label),
        before,
        after,
        format_sum((), each.difference_s, unit="s")[0],
        " -> ".join(launches) if launches[0] != launches[1] else launches[0],
        each.kind,
        each.matched if each.base and each.head else "",
        visible(" ".join([*use.operators[:1], use.shapes]).strip()),
    )
    changed = each.kind != "same"
    mark = ("+" if worse else "-") if changed else " "
    return Row(cells, mark, ("red" if worse else "green") if changed else "", accent=3)


def count(number: float) -> str:
    return str(round(number)) if number == round(number) else format_number(number)


def _configurations(found: Explanation) -> Iterator[str]:
    """Of those that were replaced or take longer: what they were before, launch configuration, registers, shared memory."""
    for each in found.kernels:
        lines = configuration_lines(each)
        if lines and each.head is not None:
            yield f"    {visible(each.head.label)}"
            yield from (f"      {line}" for line in lines)


def configuration_lines(each: KernelDiff) -> list[str]:
    """Of a kernel that was replaced or takes longer, what of it changed and what did not; else empty."""
    one, other = each.base, each.head
    if (
        one is None
        or other is None
        or each.kind not in ("slower", "replaced", "more launches")
        or each.difference_s <= 0
    ):
        return []
    return [*was_line(each), *align(list(_configuration(one, other)))]


def was_line(each: KernelDiff) -> list[str]:
    """What ran in its place; empty if it was the same one, or none."""
    one, other = each.base, each.head
    return [f"was {visible(one.label)}"] if one and other and one.name != other.name else []


def _configuration(base: KernelUse, head: KernelUse) -> Iterator[tuple[str, str]]:
    rows: tuple[tuple[str, Any, Any, Callable[[Any], str]], ...] = (
        ("grid", base.grid, head.grid, size_words),
        ("block", base.block, head.block, size_words),
        ("registers", base.registers, head.registers, str),
        ("shared memory", base.shared_bytes, head.shared_bytes, format_bytes),
        ("occupancy", base.occupancy, head.occupancy, format_percent),
        ("time a launch", _launch_s(base), _launch_s(head), format_time),
    )
    for name, one, other, words in rows:
        if one is not None or other is not None:
            before, after = ("-" if value is None else words(value) for value in (one, other))
            yield name, before if before == after else f"{before} -> {after}"


def size_words(size: tuple[int, int, int]) -> str:
    """Of a grid or block: "128 x 1 x 1"."""
    return " x ".join(map(str, size))


def _launch_s(use: KernelUse) -> float | None:
    return use.seconds / use.launches if use.launches else None


# -- what was changed ----------------------------------------------------------------------------------------------------


def _listed(one: str, several: str, lines: Sequence[str], style: Style) -> list[str]:
    shown = lines if style.verbose else lines[:_FEW]
    word = one if len(lines) == 1 else several
    found = [f"  {word if at == 0 else '':7} {line}" for at, line in enumerate(shown)]
    return [
        *found,
        *([f"          {more_with_v(len(lines) - len(shown))}"] if len(lines) > len(shown) else []),
    ]


def _slower(each: Explained) -> bool:
    return (each.comparison.ratio or 1.0) > 1
