"""Changes that somebody has seen, which are no alarm: the entries of the acknowledgement file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

AckKind = Literal["accepted", "noise", "quarantine", "known"]
ACK_KINDS: tuple[AckKind, ...] = ("accepted", "noise", "quarantine", "known")
NEXT_TAG, LIFTED = "next tag", "lifted"
"""Until when an acknowledgement applies, other than the name of a tag or a date."""


@dataclass(frozen=True)
class Acknowledgement:
    """An entry of the acknowledgement file: what cases do was seen by somebody, who says why it is no alarm."""

    pattern: str
    """Exact name of a benchmark or case, else a regular expression."""
    kind: AckKind
    """`accepted`: worse up to a level. `noise`: listed, but proof of nothing. `quarantine`: measured and listed apart.
    `known`: changes of the history up to the commit `seen` are no news; nothing else."""
    reason: str
    metric: str = ""
    """Empty: all of them."""
    level: float | None = None
    """For `accepted`: the highest accepted value, as a ratio to the value at `since`."""
    value: float | None = None
    """For `accepted`, if the value at `since` is zero and has no ratio: the highest accepted value, in the metric's unit."""
    since: str = ""
    """A commit before the change."""
    seen: str = ""
    """A commit that has the change; for `accepted`, where its level was measured."""
    until: str = NEXT_TAG
    """NEXT_TAG, LIFTED (until the entry is removed), the name of a tag, or a date."""
    link: str = ""
    line: int = field(default=0, compare=False)
    """The line in the file where it begins; 0 if unknown."""

    @property
    def until_words(self) -> str:
        return {NEXT_TAG: "until the next tag", LIFTED: "until it is lifted"}.get(self.until, f"until {self.until}")

    @property
    def words(self) -> str:
        """ "accepted until v1.6: fused in #412"."""
        return f"{self.kind} {self.until_words}: {self.reason}"


@dataclass(frozen=True)
class Reviewed:
    """An acknowledgement and its state for the head that is judged."""

    entry: Acknowledgement
    state: Literal["active", "expired", "unused"]
    why: str = ""
    """Since when it has expired, or why it is unused."""
    fix: str = ""
