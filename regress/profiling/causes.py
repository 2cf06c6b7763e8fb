"""What a difference between two profiles most likely comes from: simple rules over the kernel difference, each a sentence.

The rules speak of what one side has and the other has not, so they are asked for the way in which the device's work grew; where
it shrank, the sides change places first, and the sentence is turned round. A profile is one run: what it says of small changes
of time is no verdict, so the rules about times keep quiet below the threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from regress.model import Cause, Confidence, DiffKind, Explanation, KernelDiff, KernelUse
from regress.profiling.names import fills, is_simple, on_tensor_cores, precision, short
from regress.units import format_bytes, format_change, format_number, format_time

SMALL_COPY_BYTES = 4096
"""A copy to the host that is there for its value, not for its data."""
MOST = 0.5
"""A part is what a difference comes from if it is at least that share of it."""
SOME = 0.1
"""Below that share, a part is no cause worth a sentence."""
ALIKE = 0.03
"""Kernels that became slower by ratios this close share one reason."""
FEW = 3
"""Kernels that must agree before it is no accident."""

_ORDER: dict[Confidence, int] = {"high": 0, "medium": 1, "low": 2}


def causes(found: Explanation, threshold: float) -> tuple[Cause, ...]:
    """The causes that can be told, the surest first. `threshold` is the relative change of time that counts."""
    moved = abs(found.difference_s) > threshold * min(found.base_s, found.head_s)
    grew = (found.difference_s if moved else found.kernels_s + found.copies_s) >= 0
    change = _Change(found if grew else _mirrored(found), grew, moved, threshold)
    told = [cause for cause in (rule(change) for rule in RULES) if cause is not None]
    return tuple(sorted(told, key=lambda cause: _ORDER[cause.confidence]))


@dataclass(frozen=True)
class _Change:
    """An explanation turned so that the head does more, and whether it was so, or the other way round."""

    found: Explanation
    grew: bool
    moved: bool
    """Whether the whole call changed by more than the threshold."""
    threshold: float

    def share(self, part_s: float) -> float:
        """Of what grew; a call that waits for the host hides what the device does more."""
        parts = (self.found.kernels_s, self.found.copies_s, self.found.idle_s)
        whole = max(self.found.difference_s, sum(part for part in parts if part > 0))
        return part_s / whole if whole > 0 else 0.0

    def say(self, grew: str, shrank: str) -> str:
        return grew if self.grew else shrank

    @property
    def new(self) -> list[KernelDiff]:
        return [each for each in self.found.kernels if each.kind == "new"]

    @property
    def gone(self) -> list[KernelDiff]:
        return [each for each in self.found.kernels if each.kind == "gone"]


def _mirrored(found: Explanation) -> Explanation:
    return replace(
        found,
        base_s=found.head_s,
        head_s=found.base_s,
        kernels_s=-found.kernels_s,
        copies_s=-found.copies_s,
        idle_s=-found.idle_s,
        kernels=tuple(mirrored(each) for each in found.kernels),
        copies=tuple(mirrored(each) for each in found.copies),
        syncs=(found.syncs[1], found.syncs[0]),
    )


def mirrored(diff: KernelDiff) -> KernelDiff:
    """The same with base and head in each other's place."""
    return replace(diff, base=diff.head, head=diff.base, kind=_OPPOSITE.get(diff.kind, diff.kind))


_OPPOSITE: dict[DiffKind, DiffKind] = {
    "new": "gone",
    "gone": "new",
    "slower": "faster",
    "faster": "slower",
    "more launches": "fewer launches",
    "fewer launches": "more launches",
}


# -- rules ---------------------------------------------------------------------------------------------------------------


def _synchronization(change: _Change) -> Cause | None:
    before, after = change.found.syncs
    if after - before < MOST:
        return None
    small = [
        each.head
        for each in change.found.copies
        if each.head is not None
        and each.kind in ("new", "more launches")
        and "DtoH" in each.head.name
        and each.head.bytes <= SMALL_COPY_BYTES * each.head.launches
    ]
    why = ""
    if small:
        size = format_bytes(small[0].bytes / small[0].launches)
        why = f", for a copy of {size} to the host{_within(small[0])}"
    text = change.say(
        f"the host waits for the device {_times(after - before)} a call more{why}",
        f"the host no longer waits for the device {_times(after - before)} a call{why}",
    )
    return Cause("synchronization", text, "high" if small else "medium")


def _memset(change: _Change) -> Cause | None:
    sets = [each for each in change.found.copies if each.head and _is_set(each.head) and each.difference_s > 0]
    filled = [each for each in change.new if each.head and fills(each.head.name)]
    found = [each for each in (*sets, *filled) if each.kind in ("new", "more launches")]
    if not found:
        return None
    use = found[0].head
    assert use is not None
    size = f" of {format_bytes(use.bytes / use.launches)}" if use.bytes else ""
    what = "memset" if found[0] in sets else "kernel that fills memory"
    part_s = sum(each.difference_s for each in found)
    text = change.say(
        f"a {what}{size} was added{_within(use)}: {format_time(part_s)} a call more",
        f"a {what}{size} was dropped{_within(use)}: {format_time(part_s)} a call less",
    )
    return Cause("memset", text, _sure(change.share(part_s)))


def _copies(change: _Change) -> Cause | None:
    found = [
        each
        for each in change.found.copies
        if each.head and not _is_set(each.head) and each.kind in ("new", "more launches") and each.difference_s > 0
    ]
    part_s = sum(each.difference_s for each in found)
    if not found or change.share(part_s) < MOST or found[0].head is None:
        return None
    use = found[0].head
    text = change.say("copies were added", "copies were dropped")
    return Cause("copies", f"{text}: {use.name}, {format_bytes(use.bytes)} a call{_within(use)}", "high")


def _fusion(change: _Change) -> Cause | None:
    """One or a few kernels became many simple ones."""
    simple = [each for each in change.new if each.head and is_simple(each.head.name)]
    many = sum(each.head.launches for each in change.new if each.head)
    few = sum(each.base.launches for each in change.gone if each.base)
    part_s = sum(each.difference_s for each in (*change.new, *change.gone))
    if not change.gone or len(simple) < 2 or many <= few or change.share(part_s) < SOME:
        return None
    what = short(change.gone[0].base.name) if change.gone[0].base else ""
    others = f" and {len(change.gone) - 1} more" if len(change.gone) > 1 else ""
    text = change.say(
        f"a fusion was lost: {what}{others} became {_number(many)} launches a call, most of them of simple kernels",
        f"a fusion was gained: {what}{others} does what {_number(many)} launches a call did",
    )
    return Cause("fusion", text, "high" if len(simple) >= MOST * len(change.new) and len(simple) >= FEW else "medium")


def _precision(change: _Change) -> Cause | None:
    """A product, or an attention, on another path of the hardware."""
    for before, after in _changed_paths(change):
        if change.share(after.seconds - before.seconds) < SOME:
            continue
        old, new = precision(before.name), precision(after.name)
        lost = on_tensor_cores(before.name) is True and on_tensor_cores(after.name) is False
        names = (
            f"{short(before.name)} → {short(after.name)}"
            if change.grew
            else f"{short(after.name)} → {short(before.name)}"
        )
        if old == "TF32" and new == "float32":
            text = change.say("TF32 was switched off for this product", "TF32 is used for this product now")
            return Cause("precision", f"{text}{_within(after)}: {names}", "high")
        if lost:
            text = change.say("this product left the tensor cores", "this product uses the tensor cores now")
            return Cause("precision", f"{text}{_within(after)}: {names}", "high")
        if old and new and old != new:
            first, second = (old, new) if change.grew else (new, old)
            return Cause("precision", f"computed in {second} instead of {first}{_within(after)}: {names}", "medium")
    return None


def _replaced(change: _Change) -> Cause | None:
    for before, after in _changed_paths(change):
        part_s = after.seconds - before.seconds
        if change.share(part_s) < MOST:
            continue
        one, other = (before, after) if change.grew else (after, before)
        text = f"{short(other.name)} runs in place of {short(one.name)}{_within(after)}"
        return Cause("replaced kernel", text, "medium")
    return None


def _changed_paths(change: _Change) -> list[tuple[KernelUse, KernelUse]]:
    """Kernels of one operator that were replaced, one by one, or one by several: then with the longest of them."""
    pairs = [(each.base, each.head) for each in change.found.kernels if each.kind in ("replaced", "slower", "faster")]
    found = [(base, head) for base, head in pairs if base and head and base.name != head.name]
    for gone in change.gone:
        for new in change.new:
            if gone.base and new.head and gone.base.operators[:1] == new.head.operators[:1] != ():
                found.append((gone.base, new.head))
                break
    return sorted(found, key=lambda pair: pair[0].seconds - pair[1].seconds)


def _clock(change: _Change) -> Cause | None:
    """Everything slower by one ratio."""
    pairs = [(each.base, each.head) for each in change.found.kernels]
    ratios = [head.seconds / base.seconds for base, head in pairs if base and head and base.seconds > 0]
    if not change.moved or len(ratios) < max(FEW, len(pairs)) or min(ratios) < 1 + change.threshold:
        return None
    if max(ratios) > (1 + ALIKE) * min(ratios):
        return None
    ratio = sum(ratios) / len(ratios) if change.grew else len(ratios) / sum(ratios)
    text = (
        f"all {len(ratios)} kernels changed by the same {format_change(ratio)}: the clock or other work on the device"
    )
    return Cause("clock", text, "medium")


def _slower(change: _Change) -> Cause | None:
    if _clock(change):
        return None
    for each in change.found.kernels:
        if (
            each.kind in ("slower", "more launches")
            and change.share(each.difference_s) >= MOST
            and each.base
            and each.head
        ):
            base, head = (each.base, each.head) if change.grew else (each.head, each.base)
            if each.kind == "more launches":
                text = (
                    f"{short(head.name)} is launched {_times(head.launches)} a call instead of {_times(base.launches)}"
                )
                return Cause("more launches", text, "high")
            ratio = format_change(head.seconds / base.seconds) if base.seconds else "-"
            text = (
                f"{short(head.name)} takes {format_time(head.seconds)} instead of {format_time(base.seconds)} ({ratio})"
            )
            return Cause("slower kernel", text + _configuration(base, head), "medium")
    return None


def _host(change: _Change) -> Cause | None:
    """Only the idle time grew, the device does what it did, and the host does not wait for it more often."""
    kinds = {each.kind for each in (*change.found.kernels, *change.found.copies)}
    same_work = (
        not kinds & {"new", "gone", "replaced", "more launches"} and change.found.syncs[1] <= change.found.syncs[0]
    )
    if not change.moved or not same_work or change.share(change.found.idle_s) < MOST:
        return None
    text = change.say(
        f"the device waits {format_time(change.found.idle_s)} a call longer for the host, and does the same work as before",
        f"the device waits {format_time(change.found.idle_s)} a call less for the host, and does the same work as before",
    )
    # How long the host takes under a profiler varies from run to run by itself: only a large growth is beyond doubt.
    growth = change.found.idle_s / change.found.base_s if change.found.base_s > 0 else 1.0
    return Cause("host", text, _sure(growth))


RULES: tuple[Callable[[_Change], Cause | None], ...] = (
    _synchronization,
    _memset,
    _copies,
    _precision,
    _fusion,
    _clock,
    _slower,
    _host,
    _replaced,
)


# -- words ---------------------------------------------------------------------------------------------------------------


def _is_set(use: KernelUse) -> bool:
    return use.name.startswith("Memset")


def _configuration(base: KernelUse, head: KernelUse) -> str:
    """What of its launch changed."""
    rows = (
        ("grid", base.grid, head.grid),
        ("block", base.block, head.block),
        ("registers", base.registers, head.registers),
        ("shared memory", base.shared_bytes, head.shared_bytes),
    )
    changed = [f"{word} {one} → {other}" for word, one, other in rows if one != other and None not in (one, other)]
    return "; " + ", ".join(changed) if changed else ""


def _within(use: KernelUse) -> str:
    return f" in {use.operators[0]}" if use.operators else ""


def _times(number: float) -> str:
    return "once" if number == 1 else f"{_number(number)} times"


def _number(value: float) -> str:
    return format_number(value) if value != round(value) else str(round(value))


def _sure(share: float) -> Confidence:
    return "high" if share >= MOST else "medium" if share >= SOME else "low"
