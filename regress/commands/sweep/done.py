"""What of a sweep is measured already, and what cannot be measured: neither is tried again.

    {"format": 1, "commits": {SHA: {"build KEY": [times, why]}}}        builds that failed
    {"format": 1, "commits": {SHA: {"ENVIRONMENT NAME": version}}}      benchmarks or cases that the commit does not have

both in one small file of the cache. A build is given up after TRIES sweeps, as it may be the machine that could not do it; it
is tried again once the commands that make it are others, and a benchmark once it is another.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from regress.compare.pairing import code_differs
from regress.history import Store
from regress.history.kept import StateFile
from regress.model import Batch, Benchmark, Case, Round
from regress.run.execute import JobResult
from regress.session import Session
from regress.session.remarks import needs_device

FILE = "sweep.json"

Tried = tuple[int, str] | str
"""How often a build failed, and why; or the version of a benchmark that a commit does not have."""
TRIES = 3


@dataclass(frozen=True)
class Suite:
    """What of the suite a sweep measures, as the newest commit has it."""

    environment: str = ""
    """As it is recorded."""
    benchmarks: Mapping[str, Benchmark] = field(default_factory=dict)
    """By name."""
    cases: tuple[Case, ...] = ()
    """Those that are wanted."""
    rounds: int = 0
    """Of each case."""

    @property
    def names(self) -> frozenset[str]:
        """The benchmarks that cases are wanted of."""
        return frozenset(case.name for case in self.cases)


class Done:
    """What is known of each commit on this machine: which cases of the suite it has results of."""

    def __init__(self, session: Session, suite: Suite, retry: bool) -> None:
        self._session, self.environment = session, suite.environment
        self._benchmarks, self._cases, self._rounds, self._retry = suite.benchmarks, suite.cases, suite.rounds, retry
        self._store = Store(session.config.results_dir)
        self._cards = session.devices.uuids
        self._kept = StateFile(session.cache / FILE, "commits", dict[str, Tried])
        build = repr((session.config.settings.build, session.config.settings.env_key, suite.environment))
        self._build = "build " + hashlib.sha256(build.encode()).hexdigest()[:16]
        self.tried = {} if retry else self._kept.read()
        """By full hash: what did not build, or is not there; with `retry` of this sweep alone."""
        self._failed: dict[str, set[Case]] = {}
        """By commit: what has failed in this sweep, and is not tried again in it."""

    def missing(self, sha: str) -> dict[Case, int]:
        """The rounds that the commit lacks of each case; empty where it has all it can have."""
        known = self.tried.get(sha, {})
        if _times(known.get(self._build)) >= TRIES:
            return {}
        had, hopeless = self._had(sha)
        return {
            case: self._rounds - had[case]
            for case in self._cases
            if had[case] < self._rounds
            and case not in hopeless
            and case not in self._failed.get(sha, ())
            and self._benchmarks[case.name].version
            not in (known.get(self._absent(name)) for name in (case.name, str(case)))
        }

    def _had(self, sha: str) -> tuple[Counter[Case], set[Case]]:
        """How many rounds of ours, of the benchmarks as they are now, the commit has, and which cases failed in one.

        Rounds of two cards are no whole: what was only begun on another card than today's is measured again, whole.

        What was skipped for want of a device has not failed where nothing else was measured: the driver may have been broken.
        """
        had: Counter[tuple[Case, str]] = Counter()
        failed: set[Case] = set()
        without_device: set[Case] = set()
        for recorded in self._store.load(sha, self._session.machine.name, self.environment).recorded:
            for round in recorded.rounds:
                definition, wanted = recorded.benchmarks.get(round.name), self._benchmarks.get(round.name)
                if definition is None or wanted is None or code_differs(definition, wanted) or not _ours(round):
                    continue
                case = Case(round.name, tuple(round.params))
                had[case, str(round.facts.get("gpu_uuid", ""))] += round.failure is None
                if round.failure is not None and not self._retry:
                    (without_device if needs_device(round) else failed).add(case)
        most: Counter[Case] = Counter()
        for (case, card), rounds in had.items():
            if rounds >= self._rounds or card in ("", *self._cards):
                most[case] = max(most[case], rounds)
        return most, failed | without_device if had.total() else failed

    def unbuilt(self, sha: str, why: str) -> None:
        """The commit did not build in this sweep."""
        times = _times(self.tried.get(sha, {}).get(self._build))
        self._remember(sha, {self._build: (times + 1, why)})

    def take(self, tried: Mapping[str, Mapping[str, Tried]]) -> None:
        """Add what others have found of the same cases elsewhere, each once."""
        for sha, entries in tried.items():
            for key, entry in entries.items():
                if key == self._build and not isinstance(entry, str):
                    self.unbuilt(sha, entry[1])
                else:
                    self._remember(sha, {key: entry})

    def failed(self, sha: str, rounds: Iterable[Round]) -> None:
        """These rounds of the commit were tried in this sweep: a case that failed in one is not tried again."""
        cases = {Case(round.name, tuple(round.params)) for round in rounds if round.failure is not None}
        self._failed.setdefault(sha, set()).update(cases)

    def absent(self, sha: str, cases: Iterable[Case]) -> None:
        """The commit does not have these cases: a file cannot be imported with its code, or parameters depend on it."""
        lacking = set(cases)
        whole = {case.name for case in lacking} - {case.name for case in self._cases if case not in lacking}
        names = {case.name if case.name in whole else str(case): case.name for case in lacking}
        self._remember(sha, {self._absent(word): self._benchmarks[name].version for word, name in names.items()})

    def _absent(self, name: str) -> str:
        return f"{self.environment} {name}"

    def _remember(self, sha: str, entries: Mapping[str, Tried]) -> None:
        if not entries:
            return
        with self._kept.changing() as commits:
            commits[sha] = {**commits.get(sha, {}), **entries}
        self.tried = {**self.tried, sha: {**self.tried.get(sha, {}), **entries}}


class Missing:
    """The rounds that commits lack, once, as far as there is time until `end_s` of the monotonic clock."""

    def __init__(self, missing: Mapping[Case, int], rounds: int, end_s: float) -> None:
        self.end_s = end_s
        self._missing, self._first, self._asked = missing, rounds - max(missing.values()), False

    def next(self, measured: JobResult) -> Batch | None:
        cases = {case for side in measured.cases.values() for case in side if case in self._missing}
        asked, self._asked = self._asked, True
        return None if asked or not cases else Batch({case: self._missing[case] for case in cases}, self._first)


def _times(entry: Tried | None) -> int:
    """How often a build failed."""
    return entry[0] if isinstance(entry, tuple) else 0


def _ours(round: Round) -> bool:
    """Whether it was measured by us, and not by asv in its own way."""
    return round.protocol is None or round.protocol.harness > 0
