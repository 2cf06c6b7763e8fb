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

    explanation: Explanation
    grew: bool
    threshold: float

    def share(self, part_s: float) -> float:
        """Of all that changed in the device's work, up and down."""
        whole = sum(abs(kernel.difference_s) for kernel in (*self.explanation.kernels, *self.explanation.copies))
        return part_s / whole if whole > 0 else 0.0

    def say(self, grew: str, shrank: str) -> str:
        return grew if self.grew else shrank

    @property
    def new(self) -> list[KernelDiff]:
        return [kernel for kernel in self.explanation.kernels if kernel.kind == "new"]

    @property
    def gone(self) -> list[KernelDiff]:
        return [kernel for kernel in self.explanation.kernels if kernel.kind == "gone"]

    def more(self) -> bool:
        """Whether the head takes more: on the device if that changed, because a profiler slows down the host; otherwise in
        total."""
        rows = (*self.explanation.kernels, *self.explanation.copies)
        before = sum(kernel.base.seconds for kernel in rows if kernel.base)
        after = sum(kernel.head.seconds for kernel in rows if kernel.head)
        if abs(after - before) > self.threshold * min(before, after):
            return after > before
        return self.explanation.difference_s >= 0

    def turned(self) -> OrientedChange:
        """The other way round."""
        explanation = self.explanation
        turned = replace(
            explanation,
            base_s=explanation.head_s,
            head_s=explanation.base_s,
            kernels_s=-explanation.kernels_s,
            copies_s=-explanation.copies_s,
            idle_s=-explanation.idle_s,
            kernels=tuple(_turned(kernel) for kernel in explanation.kernels),
            copies=tuple(_turned(kernel) for kernel in explanation.copies),
            syncs=(explanation.syncs[1], explanation.syncs[0]),
            launches=(explanation.launches[1], explanation.launches[0]),
        )
        return replace(self, explanation=turned, grew=not self.grew)


def _turned(diff: KernelDiff) -> KernelDiff:
    return replace(diff, base=diff.head, head=diff.base, kind=_OPPOSITE.get(diff.kind, diff.kind))
