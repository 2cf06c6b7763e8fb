"""The recording of rounds as they arrive."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from regress.errors import NoDevice
from regress.history import Store, keep_explanation
from regress.model import DEFAULT_ENVIRONMENT, Benchmark, Explained, KeptExplanation, Machine, Round, Side
from regress.run.environments import Identity, Prepared, identity_of
from regress.run.execute import JobResult
from regress.session import Session
from regress.session.checkout import Checkout
from regress.session.fitness import lost
from regress.text.wording import counted

DEVICE_FACTS = ("gpu", "gpu_uuid", "driver", "cuda", "torch_built")
"""Facts of a worker that describe the machine; they are kept in machine.json."""


def complete(session: Session, side: Side, identity: Identity) -> None:
    """Write asv's files of a commit whose rounds were kept by a process that was killed before it could."""
    store, machine = Store(session.config.results_dir), session.machine
    if not store.is_unfinished(side, machine, identity.name):
        return
    results = store.load(side.commit.sha, machine.name, identity.name).recorded
    told = {
        key: str(value) for result in results for round in result.rounds for key, value in round.facts.items() if value
    }
    store.finish(
        side,
        replace(machine, facts={**machine.facts, **{key: told[key] for key in DEVICE_FACTS if key in told}}),
        identity.name,
        python=identity.python,
        benchmarks={},
        requirements=identity.requirements or None,
        env_vars=identity.env_vars or None,
    )


class Recorder:
    """Stores each round as it arrives, and asv's files at the end. A dirty side is not a commit's result: it is not kept.
    No more is what `--quick` sees: a first call says that something runs, and would be pooled with what was measured."""

    def __init__(self, session: Session, root: Path, prepared: tuple[Prepared, ...]) -> None:
        self._store = Store(root, session.cache / "samples")
        self._run = session.run
        self._prepared = {side.side.name: side for side in prepared}
        sides = {side.side.name: side.side for side in prepared if not side.side.dirty}
        self._sides = {} if session.request.quick else sides
        self._machine = session.machine
        self._uuids = ", ".join(gpu.uuid for gpu in session.devices.named)
        self._identities: dict[str, Identity] = {}
        self._recorded = self._store.machine_facts(self._machine.name)
        self._checkout = Checkout(session, prepared)
        self._kept = False
        self._unfit = 0
        """Rounds that were not kept because the benchmark files had changed."""
        self.root = root

    @property
    def machine(self) -> Machine:
        """This machine, with what the workers said about its device."""
        return self._machine

    @property
    def recorded(self) -> str:
        """Where rounds were kept; empty while none was."""
        return str(self.root) if self._kept else ""

    def take(self, round: Round, facts: Mapping[str, Any], benchmark: Benchmark) -> None:
        """Keep one round; it is on disk when this returns. Raises NoDevice where numbers of the CPU would be filed
        under a machine with a device: a benchmark that takes what is there would go on with another series' values."""
        kind = self._prepared[round.side].environment
        usual = kind.name == DEFAULT_ENVIRONMENT  # another one's torch is its own, and so are its series
        what, why, fix = lost(self._recorded, facts, round.facts.get("loaded", ()) if usual else ())
        if what:
            raise NoDevice(
                f"{self._machine.name} is recorded as a machine with {what}, but none is used now",
                why=f"{why}; numbers of the CPU are not filed under a device's",
                fix=f"{fix}; or --machine NAME for a separate entry",
            )
        python = str(facts.get("python", "")) or "unknown"
        identity = self._identities.setdefault(round.side, identity_of(self._prepared[round.side], python))
        known = {**round.facts, **facts}
        device = {key: str(known[key]) for key in DEVICE_FACTS if known.get(key) and (usual or key != "torch_built")}
        if self._uuids:  # of the machine, whichever of them this round was on
            device["gpu_uuid"] = self._uuids
        self._machine = replace(self._machine, facts={**self._machine.facts, **device})
        side = self._sides.get(round.side)
        if side is None:
            return
        if self._checkout.changed_suite():
            self._unfit += 1
        else:
            named = replace(round, run=self._run)
            self._store.append(side, self._machine, identity.name, named, facts, benchmark)
            self._kept = True

    def finish(self, measured: JobResult) -> None:
        """Write asv's files for each side that has rounds."""
        for name, side in self._sides.items():
            identity = self._identities.get(name)
            if identity is not None:
                self._store.finish(
                    side,
                    self._machine,
                    identity.name,
                    python=identity.python,
                    benchmarks=measured.benchmarks[name],
                    requirements=identity.requirements or None,
                    env_vars=identity.env_vars or None,
                )

    def keep(self, explained: Explained) -> None:
        """Keep what a difference comes from beside the results of the head, where the code alone makes it: both sides are
        commits, in one environment, and the benchmark files are still those that were measured."""
        base, head = (self._sides.get(name) for name in ("base", "head"))
        if explained.explanation is None or base is None or head is None or base.commit == head.commit:
            return
        environment = self.named(head).environment
        if self.named(base).environment == environment and not self._checkout.changed_suite():
            shas = base.commit.sha, head.commit.sha
            keep_explanation(self.root, KeptExplanation(*shas, self._machine.name, environment, time.time(), explained))

    def warnings(self) -> list[str]:
        """What of the invoking checkout was not as the commits say, or did not stay as it was."""
        warnings = self._checkout.warnings()
        if self._unfit:
            warnings.append(
                f"not recorded, because benchmark files changed during the run: {counted(self._unfit, 'round')}"
            )
        return warnings

    def named(self, side: Side) -> Side:
        """The side with the environment it was measured in."""
        identity = self._identities.get(side.name)
        return replace(side, environment=identity.name) if identity is not None else side
