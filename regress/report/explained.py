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
    format_value,
)

KERNELS = ("kernel", "before", "after", "difference", "launches", "what", "matched by", "operator")
ALIGNS = "lrrrrlll"
_FEW = 12
"""Kernels, files and commits that are shown unless verbose."""
_NAME = 60


def explained(report: Report, style: Style) -> list[str]:
    """A section for each, the sentence first."""
    lines = []
    for account in report.explained:
        color = "bold red" if _slower(account) else "bold green"
        lines += [f"  {paint(sentence(account), color, style)}", *block(account, style), ""]
    return lines


def sentences(report: Report, style: Style) -> list[str]:
    return [sentence(account) for account in report.explained]


def sentence(account: Explained) -> str:
    """ "softmax.cudatime_fwd: 9.4 % slower: a fusion was lost (high confidence)"."""
    return f"{visible(str(account.case))} is {amount(account)}: {why(account)}"


def why(account: Explained) -> str:
    """ "a fusion was lost (high confidence)", or that none is known."""
    return _cause(account) or ("it could not be profiled" if account.explanation is None else "no cause is recognized")


def because(report: Report, *shown: Comparison) -> str:
    """ "because a fusion was lost (high confidence)", of the first of these that a cause is known of, or else of another case
    of their benchmark that moved in the same way, which is named. Empty if none is known."""
    known = [(account.comparison, cause) for account in report.explained if (cause := _cause(account))]
    about = {(comparison.case, comparison.metric.name) for comparison in shown}
    alike = {(comparison.case.name, comparison.metric.name, comparison.verdict) for comparison in shown}
    own = (f"because {cause}" for comparison, cause in known if (comparison.case, comparison.metric.name) in about)
    others = (
        f"{visible(str(comparison.case))}: because {cause}"
        for comparison, cause in known
        if (comparison.case.name, comparison.metric.name, comparison.verdict) in alike
    )
    return next(itertools.chain(own, others), "")


def _cause(account: Explained) -> str:
    """The likeliest cause and how sure it is; empty if none is known."""
    causes = account.explanation.causes if account.explanation is not None else ()
    return f"{visible(causes[0].text)} ({causes[0].confidence} confidence)" if causes else ""


def amount(account: Explained) -> str:
    """ "9.4 % slower", "2.1 times as slow"."""
    ratio, host = account.comparison.ratio or 1.0, account.comparison.metric.kind == "host"
    where = " on the host" if host else ""
    if ratio >= 2:
        return f"{format_number(ratio)} times as slow{where}"
    return f"{format_percent(abs(ratio - 1))} {'slower' if ratio > 1 else 'faster'}{where}"


def block(account: Explained, style: Style) -> list[str]:
    """All of it but the sentence, as lines."""
    explanation = account.explanation
    lines: list[str] = []
    if explanation is not None:
        rows = [(name, amount, "  ".join(filter(None, more))) for name, amount, *more in part_rows(account)]
        lines += [f"    {line}" for line in align(rows)]
        lines += [f"  also {visible(one.text)} ({one.confidence} confidence)" for one in explanation.causes[1:]]
        lines += _kernels(explanation, style)
    lines += [f"  {paint('doubt', 'yellow', style)} {visible(text)}" for text in account.warnings]
    lines += _listed("file", "files", [visible(name) for name in account.files], style)
    commits = [f"{one.short} {cut(visible(one.subject), _NAME)}" for one in reversed(account.commits)]
    lines += _listed("commit", "commits", commits, style)
    sides = (("base", account.base), ("head", account.head))
    if style.verbose:
        lines += [f"  trace {name} {visible(trace)}" for name, side in sides if side for trace in side.traces]
    return lines


# -- where it went -------------------------------------------------------------------------------------------------------


def part_rows(account: Explained) -> list[tuple[str, str, str, str]]:
    """The parts of the difference, what they add up to, and beside it the other of the measured and the profiled one: name,
    amount, share, and what else there is to say."""
    explanation, compared = account.explanation, account.comparison
    assert explanation is not None
    parts = account.parts
    before, after = format_pair(explanation.base_s, explanation.head_s, "s")
    sums = [("a call, profiled", explanation.difference_s, f"{before} -> {after}{_range(account)}")]
    base, head = compared.base, compared.head
    if base is not None and head is not None:
        before, after = format_pair(base.center, head.center, "s")
        change = f"{format_change(compared.ratio)} ({format_interval(compared.low, compared.high)})"
        how = f"{compared.metric.name} without a profiler, {base.n}+{head.n} rounds"
        row = ("measured", account.measured_s or 0.0, f"{before} -> {after}, {change}, {how}")
        sums.insert(0 if account.whole_s == account.measured_s else 1, row)
    texts = format_sum(tuple(parts.values()), *(whole for _, whole, _ in sums), unit="s")
    shares = [_share(part, account.whole_s) for part in parts.values()]
    words = [_between(explanation) if name == "the rest" else "" for name in parts]
    return [
        *zip(parts, texts, shares, words, strict=False),
        *((name, text, "", more) for (name, _, more), text in zip(sums, texts[len(parts) :], strict=True)),
    ]


def _between(explanation: Explanation) -> str:
    """What the kernels and copies do not make up of a time of the device."""
    before, after = (count(number) for number in explanation.launches)
    launches = before if before == after else f"{before} -> {after}"
    return f"between launches ({launches} a call), and what a profile does not show"


def _share(part: float, whole: float | None) -> str:
    return f"{round(100 * part / whole)} %" if whole else ""


def _range(account: Explained) -> str:
    """Between which values the profiles of a side lie."""
    words = []
    for side in (account.base, account.head):
        if side is None or len(side.calls_s) < 2:
            return ""
        words.append(" to ".join(format_pair(min(side.calls_s), max(side.calls_s), "s")))
    return f" ({words[0]}; {words[1]})"


# -- kernels -------------------------------------------------------------------------------------------------------------


def _kernels(explanation: Explanation, style: Style) -> list[str]:
    rows = _kernel_rows(explanation, style)
    if not rows:
        return []
    lines = ["", *table([titles(*KERNELS), *rows], ALIGNS, style)]
    left = len(explanation.kernels) + len(explanation.copies) - len(rows)
    lines += [f"    {left} more with little or no change (-v lists them)"] if left else []
    return [*lines, *_configurations(explanation), ""]


def _kernel_rows(explanation: Explanation, style: Style) -> list[Row]:
    """Kernels and copies; unless verbose those that changed."""
    shown = sorted((*explanation.kernels, *explanation.copies), key=lambda kernel: -abs(kernel.difference_s))
    if not style.verbose:
        shown = [kernel for kernel in shown if kernel.kind != "same"][:_FEW]
    return [_row(kernel) for kernel in shown]


def _row(kernel: KernelDiff) -> Row:
    use = kernel.head or kernel.base
    assert use is not None
    before, after = format_pair(
        kernel.base.seconds if kernel.base else None, kernel.head.seconds if kernel.head else None, "s"
    )
    launches = [count(one.launches) if one else "0" for one in (kernel.base, kernel.head)]
    worse = kernel.difference_s > 0
    cells = (
        visible(use.label),
        before,
        after,
        format_sum((), kernel.difference_s, unit="s")[0],
        " -> ".join(launches) if launches[0] != launches[1] else launches[0],
        kernel.kind,
        kernel.matched if kernel.base and kernel.head else "",
        visible(" ".join([*use.operators[:1], use.shapes]).strip()),
    )
    changed = kernel.kind != "same"
    mark = ("+" if worse else "-") if changed else " "
    return Row(cells, mark, ("red" if worse else "green") if changed else "", accent=3)


def count(number: float) -> str:
    return format_value(number, "count")


def _configurations(explanation: Explanation) -> Iterator[str]:
    """Of those that were replaced or take longer: what they were before, launch configuration, registers, shared memory."""
    for kernel in explanation.kernels:
        lines = configuration_lines(kernel)
        if lines and kernel.head is not None:
            yield f"    {visible(kernel.head.label)}"
            yield from (f"      {line}" for line in lines)


def configuration_lines(kernel: KernelDiff) -> list[str]:
    """Of a kernel that was replaced or takes longer, what of it changed and what did not; else empty."""
    one, other = kernel.base, kernel.head
    if (
        one is None
        or other is None
        or kernel.kind not in ("slower", "replaced", "more launches")
        or kernel.difference_s <= 0
    ):
        return []
    return [*was_line(kernel), *align(list(_configuration(one, other)))]


def was_line(kernel: KernelDiff) -> list[str]:
    """What ran in its place; empty if it was the same one, or none."""
    one, other = kernel.base, kernel.head
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
    listed = [f"  {word if at == 0 else '':7} {line}" for at, line in enumerate(shown)]
    return [
        *listed,
        *([f"          {more_with_v(len(lines) - len(shown))}"] if len(lines) > len(shown) else []),
    ]


def _slower(account: Explained) -> bool:
    return (account.comparison.ratio or 1.0) > 1
