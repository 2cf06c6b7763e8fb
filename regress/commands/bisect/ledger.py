"""What bisections that were not ended have measured so far, in one small file of the cache: the next one goes on from there.

    {"format": 1, "bisections": {KEY: {"ends": {...}, "probes": [[SHA, {...}]], "verified": [...]}}}

KEY is whatever makes a bisection another one. It is written after every few rounds; what is ended is taken out.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from regress.compare.ends import Kind, Pair
from regress.history.kept import StateFile
from regress.model import Contrast

FILE = "bisect.json"
FORMAT = 1
NAME = "bisections"


@dataclass(frozen=True)
class Judged:
    """Two commits that were measured in turn and judged: both ends, or a range that was to be verified."""

    contrast: Contrast
    pairs: tuple[Pair, ...]
    kind: Kind | None = None
    """How the change can be looked for; None if there is none."""
    failure: str = ""
    """How a case fails that does."""
    good: str = ""
    """Of a verified range: the full hashes of its ends."""
    bad: str = ""
    seconds: tuple[float, float] = (0.0, 0.0)
    """What making a commit ready has taken, and a pair of rounds."""


@dataclass(frozen=True)
class Probed:
    """What was measured of a commit in turn with the good end, or why it was skipped."""

    pairs: tuple[Pair, ...] = ()
    skipped: str = ""


@dataclass(frozen=True)
class Entries:
    """All that one bisection has measured."""

    ends: Judged | None = None
    probes: Mapping[str, Probed] = field(default_factory=dict)
    """By full hash, in the order of the first measurement."""
    verified: tuple[Judged, ...] = ()

    @property
    def pairs(self) -> int:
        """How many were measured in all."""
        return len(self.measured)

    @property
    def measured(self) -> list[Pair]:
        """The pairs of rounds, of whichever commits."""
        judged = [*self.verified, *([self.ends] if self.ends is not None else [])]
        parts = [*(judgement.pairs for judgement in judged), *(probe.pairs for probe in self.probes.values())]
        return [pair for pairs in parts for pair in pairs]


@dataclass(frozen=True)
class _Written:
    """Entries as they are on disk."""

    ends: Judged | None
    probes: tuple[tuple[str, Probed], ...]
    verified: tuple[Judged, ...]


class SavedBisection:
    """The entries of one bisection, kept on disk with every change."""

    def __init__(self, cache: Path, about: Sequence[str]) -> None:
        self._key = hashlib.sha256(repr(tuple(about)).encode(errors="surrogatepass")).hexdigest()[:24]
        self._kept = StateFile(cache / FILE, NAME, _Written, FORMAT)
        self.entries = _entries(self._kept.read().get(self._key))

    def ends(self, measured: Judged) -> None:
        self._write(replace(self.entries, ends=measured))

    def probe(self, sha: str, probed: Probed) -> None:
        self._write(replace(self.entries, probes={**self.entries.probes, sha: probed}))

    def verified(self, measured: Judged) -> None:
        self._write(replace(self.entries, verified=(*self.entries.verified, measured)))

    def forget(self) -> None:
        """Nothing of it is kept on disk from now on."""
        if self._key in self._kept.read():
            with self._kept.changing() as entries:
                entries.pop(self._key, None)

    def restart(self) -> None:
        self.forget()
        self.entries = Entries()

    def _write(self, entries: Entries) -> None:
        with self._kept.changing() as every:
            every[self._key] = _Written(
                _finite(entries.ends) if entries.ends is not None else None,
                tuple(entries.probes.items()),
                tuple(map(_finite, entries.verified)),
            )
        self.entries = entries


def _finite(judged: Judged) -> Judged:
    """The same in terms of JSON: an interval may reach to infinity."""
    ratio, low, high = (
        value if value is None or math.isfinite(value) else None
        for value in (judged.contrast.ratio, judged.contrast.low, judged.contrast.high)
    )
    return replace(judged, contrast=replace(judged.contrast, ratio=ratio, low=low, high=high))


def _entries(kept: _Written | None) -> Entries:
    """Empty where nothing is kept, or no measurement: then all is measured again."""
    entries = Entries(kept.ends, dict(kept.probes), kept.verified) if kept is not None else Entries()
    good = all(math.isfinite(value) for pair in entries.measured for value in (pair.base, pair.head))
    return entries if good else Entries()
