"""The difference of two profiles for the rules, oriented so that they look for what the head has more of."""

from __future__ import annotations

from dataclasses import dataclass, replace

from regress.model import DiffKind, Explanation, KernelDiff

_OPPOSITE: dict[DiffKind, DiffKind] = {
    "new": "gone",
    "gone": "new",
    "slower": "faster",
    "faster": "slower",
    "more launches": "fewer launches",
    "fewer launches": "more launches",
}


@dataclass(frozen=True)
class OrientedChange:
    """An explanation oriented so that the rules find what the head has more of, and whether it is the true head."""

    found: Explanation
    grew: bool
    threshold: float

    def share(self, part_s: float) -> float:
        """Of all that changed in the device's work, up and down."""
        whole = sum(abs(each.difference_s) for each in (*self.found.kernels, *self.found.copies))
        return part_s / whole if whole > 0 else 0.0

    def say(self, grew: str, shrank: str) -> str:
        return grew if self.grew else shrank

    @property
    def new(self) -> list[KernelDiff]:
        return [each for each in self.found.kernels if each.kind == "new"]

    @property
    def gone(self) -> list[KernelDiff]:
        return [each for each in self.found.kernels if each.kind == "gone"]

    def more(self) -> bool:
        """Whether the head takes more: on the device if that changed, because a profiler slows down the host; otherwise in
        total."""
        rows = (*self.found.kernels, *self.found.copies)
        before = sum(each.base.seconds for each in rows if each.base)
        after = sum(each.head.seconds for each in rows if each.head)
        if abs(after - before) > self.threshold * min(before, after):
            return after > before
        return self.found.difference_s >= 0

    def turned(self) -> OrientedChange:
        """The other way round."""
        found = self.found
        turned = replace(
            found,
            base_s=found.head_s,
            head_s=found.base_s,
            kernels_s=-found.kernels_s,
            copies_s=-found.copies_s,
            idle_s=-found.idle_s,
            kernels=tuple(_turned(each) for each in found.kernels),
            copies=tuple(_turned(each) for each in found.copies),
            syncs=(found.syncs[1], found.syncs[0]),
            launches=(found.launches[1], found.launches[0]),
        )
        return replace(self, found=turned, grew=not self.grew)


def _turned(diff: KernelDiff) -> KernelDiff:
    return replace(diff, base=diff.head, head=diff.base, kind=_OPPOSITE.get(diff.kind, diff.kind))
