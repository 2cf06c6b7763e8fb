"""The kernel difference: the kernels of two timelines matched one to one, and where the difference of a call's time went.

Kernels match by name; the rest by name without template arguments, if both were launched for the same operator; then by the
operator and shapes they were launched for, and then by their place between matched kernels. The last two only pair equal
numbers: if one kernel became five, it is gone and five are new, which is clearer than one pair and four new ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from regress.model import DiffKind, Explanation, KernelDiff, KernelUse, Matched
from regress.traces.causes import causes
from regress.traces.names import short
from regress.traces.timeline import Timeline
from regress.traces.totals import by_copy, by_kernel, totals
from regress.units import format_time

PROFILER_SHARE = 0.1
"""Of a call, from which on what the profiler does itself spoils the idle time."""

Pair = tuple[KernelUse, KernelUse, Matched]


def explain(base: Timeline, head: Timeline, threshold: float) -> Explanation:
    """Where the difference between two timelines of the same case went, in seconds a call.

    `threshold` is the relative change of a time that counts: of a kernel to be slower or faster, of a call to have a cause."""
    before, after = totals(base), totals(head)
    explanation = Explanation(
        base_s=before.span_s,
        head_s=after.span_s,
        kernels_s=after.kernels_s - before.kernels_s,
        copies_s=after.copies_s - before.copies_s,
        idle_s=after.idle_s - before.idle_s,
        kernels=kernel_diffs(base, head, threshold),
        copies=copy_diffs(base, head, threshold),
        syncs=(before.synchronizations, after.synchronizations),
        launches=(_launched(base), _launched(head)),
        warnings=_warnings(base, head),
    )
    return replace(explanation, causes=causes(explanation, threshold))


def _launched(timeline: Timeline) -> float:
    return sum(kernel.launches for kernel in (*by_kernel(timeline), *by_copy(timeline)))


def kernel_diffs(base: Timeline, head: Timeline, threshold: float) -> tuple[KernelDiff, ...]:
    """The kernels of both, matched, the largest difference first."""
    return _diffs(_in_order(base), _in_order(head), threshold, by_name_only=False)


def copy_diffs(base: Timeline, head: Timeline, threshold: float) -> tuple[KernelDiff, ...]:
    """The ways of copying of both, matched by name, the largest difference first."""
    return _diffs(list(by_copy(base)), list(by_copy(head)), threshold, by_name_only=True)


def _in_order(timeline: Timeline) -> list[KernelUse]:
    """The kernels in the order of their first launch."""
    uses = {use.name: use for use in by_kernel(timeline)}
    return [uses[name] for name in dict.fromkeys(launch.name for launch in timeline.launches)]


def _diffs(
    base: list[KernelUse], head: list[KernelUse], threshold: float, by_name_only: bool
) -> tuple[KernelDiff, ...]:
    pairs, gone, new = match(base, head, by_name_only)
    diffs = [KernelDiff(one, other, how, _kind(one, other, how, threshold)) for one, other, how in pairs]
    diffs += [KernelDiff(use, None, "nothing", "gone") for use in gone]
    diffs += [KernelDiff(None, use, "nothing", "new") for use in new]
    return tuple(sorted(diffs, key=lambda kernel: (-abs(kernel.difference_s), _name(kernel))))


def _name(diff: KernelDiff) -> str:
    return min(use.name for use in (diff.base, diff.head) if use is not None)


def _kind(base: KernelUse, head: KernelUse, how: Matched, threshold: float) -> DiffKind:
    if how in ("operator", "position"):
        return "replaced"
    if head.launches != base.launches:
        return "more launches" if head.launches > base.launches else "fewer launches"
    if head.seconds > (1 + threshold) * base.seconds:
        return "slower"
    if base.seconds > (1 + threshold) * head.seconds:
        return "faster"
    return "same"


# -- matching ------------------------------------------------------------------------------------------------------------


def match(
    base: list[KernelUse], head: list[KernelUse], by_name_only: bool = False
) -> tuple[list[Pair], list[KernelUse], list[KernelUse]]:
    """Pairs, and the rest of either side. Each kernel is in at most one pair; both lists are in order of launch."""
    pairs: list[Pair] = []
    left, right = list(base), list(head)

    def pair_off(how: Matched, key: Callable[[KernelUse], Hashable | None], as_many: bool) -> None:
        matched = [(one, other, how) for one, other in _pairs(left, right, key, as_many)]
        pairs.extend(matched)
        taken = {id(use) for one, other, _ in matched for use in (one, other)}
        left[:] = [use for use in left if id(use) not in taken]
        right[:] = [use for use in right if id(use) not in taken]

    pair_off("name", lambda use: use.name, False)
    if not by_name_only:
        pair_off("template", lambda use: (short(use.name), use.operators[:1]), False)
        pair_off("operator", lambda use: (use.operators[0], use.shapes) if use.operators else None, True)
        place = _places(base, head, pairs)
        pair_off("position", lambda use: place[id(use)], True)
    return pairs, left, right


def _pairs(
    base: list[KernelUse], head: list[KernelUse], key: Callable[[KernelUse], Hashable | None], as_many: bool
) -> list[tuple[KernelUse, KernelUse]]:
    """Those of one key paired in order; with `as_many`, only where both sides have equally many. A key of None matches none."""
    groups: dict[Hashable, tuple[list[KernelUse], list[KernelUse]]] = defaultdict(lambda: ([], []))
    for side, uses in enumerate((base, head)):
        for use in uses:
            value = key(use)
            if value is not None:
                groups[value][side].append(use)
    return [
        pair
        for ones, others in groups.values()
        if not as_many or len(ones) == len(others)
        for pair in zip(ones, others, strict=False)
    ]


def _places(base: Sequence[KernelUse], head: Sequence[KernelUse], pairs: list[Pair]) -> dict[int, Hashable]:
    """For each kernel without a partner, the pairs before and after it, in the order of its own side."""
    number = {id(use): index for index, (one, other, _) in enumerate(pairs) for use in (one, other)}
    places: dict[int, Hashable] = {}
    for uses in (base, head):
        before: int | None = None
        waiting: list[int] = []
        for use in [*uses, None]:
            mine = number.get(id(use)) if use is not None else None
            if use is not None and mine is None:
                waiting.append(id(use))
                continue
            places.update((item, (before, mine)) for item in waiting)
            before, waiting = mine, []
    return places


# -- the rest ------------------------------------------------------------------------------------------------------------


def _warnings(base: Timeline, head: Timeline) -> tuple[str, ...]:
    lines = []
    for side, timeline in (("base", base), ("head", head)):
        lines += [f"{side}: {text}" for text in timeline.gaps_in_record]
        sums = totals(timeline)
        if sums.profiler_s > PROFILER_SHARE * sums.span_s:
            own, whole = format_time(sums.profiler_s), format_time(sums.span_s)
            lines.append(
                f"{side}: the profiler itself took {own} of {whole} a call: profile more calls, leave out the first"
            )
    if base.device and head.device and base.device != head.device:
        lines.append(f"base ran on {base.device} and head on {head.device}: their times do not compare")
    return tuple(lines)
