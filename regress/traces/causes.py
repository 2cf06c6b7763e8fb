"""What a difference between two profiles most likely comes from: simple rules over the kernel difference, each a sentence.

The rules speak of what the head has and the base has not; for the other way they are asked again with the sides in each other's
place, and say the opposite. A profile is one run, with the host slowed down: what it says of small changes of time is no
verdict, so the rules about times keep quiet below the threshold.
"""

from __future__ import annotations

from collections.abc import Callable

from regress.model import Cause, Confidence, Explanation, KernelDiff, KernelUse
from regress.text.wording import first_of
from regress.traces.change import OrientedChange
from regress.traces.names import fills, is_simple, on_tensor_cores, precision, short
from regress.units import format_bytes, format_change, format_time, format_value

SMALL_COPY_BYTES = 4096
"""A copy to the host that is there for its value, not for its data."""
MAIN_SHARE = 0.5
"""A part is what a difference comes from if it is at least that share of it."""
ONE_WAIT = 0.5
"""Waits a call from which on the host waits once more: a mean of calls that may differ."""
SOME = 0.1
"""Below that share, a part is no cause worth a sentence."""
ALIKE = 0.03
"""Kernels that became slower by ratios this close share one reason."""
FEW = 3
"""Kernels that must agree before it is no accident."""

_ORDER: dict[Confidence, int] = {"high": 0, "medium": 1, "low": 2}


def causes(explanation: Explanation, threshold: float) -> tuple[Cause, ...]:
    """The recognized causes, the most likely first. `threshold` is the relative change of a time that counts."""
    forth = OrientedChange(explanation, True, threshold)
    back = forth.turned()
    return (*_told(forth), *_told(back)) if forth.more() else (*_told(back), *_told(forth))


def _told(change: OrientedChange) -> list[Cause]:
    told = [cause for cause in (rule(change) for rule in RULES) if cause is not None]
    return sorted(told, key=lambda cause: _ORDER[cause.confidence])


# -- rules ---------------------------------------------------------------------------------------------------------------


def _synchronization(change: OrientedChange) -> Cause | None:
    before, after = change.explanation.syncs
    if after - before < ONE_WAIT:
        return None
    small = [
        kernel.head
        for kernel in change.explanation.copies
        if kernel.head and _came(kernel) and _for_its_value(kernel.head)
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


def _memset(change: OrientedChange) -> Cause | None:
    sets = [kernel for kernel in change.explanation.copies if kernel.head and _is_set(kernel.head)]
    filled = [kernel for kernel in change.new if kernel.head and fills(kernel.head.name)]
    kernels = [kernel for kernel in (*sets, *filled) if _came(kernel)]
    part_s = sum(kernel.difference_s for kernel in kernels)
    if not kernels or kernels[0].head is None or change.share(part_s) < SOME:
        return None
    use = kernels[0].head
    size = f" of {format_bytes(use.bytes / use.launches)}" if use.bytes else ""
    what = "memset" if kernels[0] in sets else "kernel that fills memory"
    text = change.say(
        f"a {what}{size} was added{_within(use)}: {format_time(part_s)} a call more",
        f"a {what}{size} was dropped{_within(use)}: {format_time(part_s)} a call less",
    )
    return Cause("memset", text, _sure(change.share(part_s)))


def _copies(change: OrientedChange) -> Cause | None:
    kernels = [
        kernel
        for kernel in change.explanation.copies
        if kernel.head and _came(kernel) and not _is_set(kernel.head) and not _for_its_value(kernel.head)
    ]
    part_s = sum(kernel.difference_s for kernel in kernels)
    if not kernels or change.share(part_s) < MAIN_SHARE or kernels[0].head is None:
        return None
    use = kernels[0].head
    text = change.say("copies were added", "copies were dropped")
    return Cause("copies", f"{text}: {use.name}, {format_bytes(use.bytes)} a call{_within(use)}", "high")


def _fusion(change: OrientedChange) -> Cause | None:
    """One or a few kernels that are not simple became more launches, of simple ones mostly."""
    gone = [kernel.base for kernel in change.gone if kernel.base]
    new = [kernel.head for kernel in change.new if kernel.head and not fills(kernel.head.name)]
    simple = [use for use in new if is_simple(use.name)]
    many, few = sum(use.launches for use in new), sum(use.launches for use in gone)
    fused = [use for use in gone if "fused" in use.name or not is_simple(use.name)]
    by_name = any("fused" in use.name for use in fused)
    part_s = sum(kernel.difference_s for kernel in (*change.new, *change.gone))
    if not fused or many <= few or len(simple) < (1 if by_name else 2) or change.share(part_s) < SOME:
        return None
    what = first_of([short(fused[0].name), *gone[1:]])  # of the others only their number is said
    text = change.say(
        f"a fusion was lost: {what} became {_number(many)} launches a call",
        f"a fusion was gained: {what} does what {_number(many)} launches a call did",
    )
    return Cause("fusion", text, "high" if len(simple) >= max(FEW, MAIN_SHARE * len(new)) else "medium")


def _added(change: OrientedChange) -> Cause | None:
    """Kernels that replaced no other; around a wait, others run on the host, which another rule covers."""
    waits = abs(change.explanation.syncs[1] - change.explanation.syncs[0]) >= ONE_WAIT
    new = [kernel.head for kernel in change.new if kernel.head and not fills(kernel.head.name)]
    part_s = sum(use.seconds for use in new)
    if waits or change.gone or not new or change.share(part_s) < MAIN_SHARE:
        return None
    use, what = new[0], first_of(short(kernel.name) for kernel in new)
    text = change.say(
        f"{what} was added{_within(use)}: {format_time(part_s)} a call more",
        f"{what} was dropped{_within(use)}: {format_time(part_s)} a call less",
    )
    return Cause("added kernel", text, "high")


def _precision(change: OrientedChange) -> Cause | None:
    """A product, or an attention, on another path of the hardware."""
    for before, after in _changed_paths(change):
        if change.share(after.seconds - before.seconds) < SOME:
            continue
        names = (
            f"{short(before.name)} → {short(after.name)}"
            if change.grew
            else f"{short(after.name)} → {short(before.name)}"
        )
        where = f"{_within(after)}: {names}"
        types = _type_of(before), _type_of(after)
        words = precision(before.name), precision(after.name)
        first, second = types if all(types) else words
        if all(types) and first != second:
            old, new = (first, second) if change.grew else (second, first)
            return Cause("precision", f"computed in {new} instead of {old}{where}", "high")
        if words == ("TF32", "float32"):
            text = change.say("TF32 was switched off for this product", "TF32 is used for this product now")
            return Cause("precision", text + where, "high")
        if on_tensor_cores(before.name) is True and on_tensor_cores(after.name) is False:
            text = change.say("this product left the tensor cores", "this product uses the tensor cores now")
            return Cause("precision", text + where, "high")
        if first and second and first != second:
            old, new = (first, second) if change.grew else (second, first)
            return Cause("precision", f"computed in {new} instead of {old}{where}", "medium")
    return None


def _replaced(change: OrientedChange) -> Cause | None:
    if _precision(change):
        return None
    for before, after in _changed_paths(change):
        if change.share(after.seconds - before.seconds) < MAIN_SHARE:
            continue
        one, other = (before, after) if change.grew else (after, before)
        return Cause(
            "replaced kernel", f"{short(other.name)} runs instead of {short(one.name)}{_within(after)}", "medium"
        )
    return None


def _changed_paths(change: OrientedChange) -> list[tuple[KernelUse, KernelUse]]:
    """Kernels of one operator that were replaced, one by one, or one by several: then with the longest of them."""
    pairs = [
        (kernel.base, kernel.head)
        for kernel in change.explanation.kernels
        if kernel.kind in ("replaced", "slower", "faster")
    ]
    changed = [(base, head) for base, head in pairs if base and head and base.name != head.name]
    for gone in change.gone:
        for new in change.new:
            if gone.base and new.head and gone.base.operators[:1] == new.head.operators[:1] != ():
                changed.append((gone.base, new.head))
                break
    return sorted(changed, key=lambda pair: pair[0].seconds - pair[1].seconds)


def _clock(change: OrientedChange) -> Cause | None:
    """Everything slower by one ratio, with as much to do as before."""
    pairs = [(kernel.base, kernel.head) for kernel in change.explanation.kernels]
    same = [(base, head) for base, head in pairs if base and head and base.shapes == head.shapes]
    ratios = [head.seconds / base.seconds for base, head in same if base.seconds > 0]
    if len(ratios) < max(FEW, len(pairs)) or min(ratios) < 1 + change.threshold:
        return None
    if max(ratios) > (1 + ALIKE) * min(ratios):
        return None
    ratio = sum(ratios) / len(ratios) if change.grew else len(ratios) / sum(ratios)
    text = (
        f"all {len(ratios)} kernels changed by the same {format_change(ratio)}: the clock or other work on the device"
    )
    return Cause("clock", text, "medium")


def _slower(change: OrientedChange) -> Cause | None:
    if _clock(change):
        return None
    for kernel in change.explanation.kernels:
        if (
            kernel.kind in ("slower", "more launches")
            and change.share(kernel.difference_s) >= MAIN_SHARE
            and kernel.base
            and kernel.head
        ):
            base, head = (kernel.base, kernel.head) if change.grew else (kernel.head, kernel.base)
            if kernel.kind == "more launches":
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


def _host(change: OrientedChange) -> Cause | None:
    """Only the idle time grew, the device does what it did, and the host does not wait for it more often."""
    kinds = {kernel.kind for kernel in (*change.explanation.kernels, *change.explanation.copies)}
    same_work = (
        not kinds & {"new", "gone", "replaced", "more launches"}
        and change.explanation.syncs[1] <= change.explanation.syncs[0]
    )
    explanation, smaller_s = change.explanation, min(change.explanation.base_s, change.explanation.head_s)
    if (
        not same_work
        or explanation.difference_s <= change.threshold * smaller_s
        or explanation.idle_s < MAIN_SHARE * explanation.difference_s
    ):
        return None
    text = change.say(
        f"the device waits {format_time(explanation.idle_s)} a call longer for the host, and does the same work as before",
        f"the device waits {format_time(explanation.idle_s)} a call less for the host, and does the same work as before",
    )
    # How long the host takes under a profiler varies from run to run by itself: only a large growth is beyond doubt.
    return Cause("host", text, _sure(explanation.idle_s / smaller_s) if smaller_s > 0 else "high")


RULES: tuple[Callable[[OrientedChange], Cause | None], ...] = (
    _synchronization,
    _memset,
    _copies,
    _precision,
    _fusion,
    _added,
    _clock,
    _slower,
    _host,
    _replaced,
)


# -- words ---------------------------------------------------------------------------------------------------------------


def _came(diff: KernelDiff) -> bool:
    return diff.kind in ("new", "more launches") and diff.difference_s > 0


def _for_its_value(copy: KernelUse) -> bool:
    """Whether it is a small copy to the host."""
    return "DtoH" in copy.name and copy.bytes <= SMALL_COPY_BYTES * copy.launches


def _is_set(use: KernelUse) -> bool:
    return use.name.startswith("Memset")


def _configuration(base: KernelUse, head: KernelUse) -> str:
    """What of its launch changed."""
    rows: tuple[tuple[str, object, object], ...] = (
        ("shapes", base.shapes or None, head.shapes or None),
        ("grid", base.grid, head.grid),
        ("block", base.block, head.block),
        ("registers", base.registers, head.registers),
        ("shared memory", base.shared_bytes, head.shared_bytes),
    )
    changed = [f"{word} {one} → {other}" for word, one, other in rows if one != other and None not in (one, other)]
    return "; " + ", ".join(changed) if changed else ""


def _within(use: KernelUse) -> str:
    return f" in {use.operators[0]}" if use.operators else ""


_TYPES = (
    ("BFloat16", "bfloat16"),
    ("Half", "float16"),
    ("Float8", "float8"),
    ("double", "float64"),
    ("float", "float32"),
)


def _type_of(use: KernelUse) -> str:
    """The type of the first argument of its operator that is of floating point, in the words of names.precision."""
    words = (word for dtype in use.dtypes.split(", ") for part, word in _TYPES if part in dtype)
    return next(words, "")


def _times(number: float) -> str:
    return "once" if number == 1 else f"{_number(number)} times"


def _number(value: float) -> str:
    return format_value(value, "count")


def _sure(share: float) -> Confidence:
    return "high" if share >= MAIN_SHARE else "medium" if share >= SOME else "low"
