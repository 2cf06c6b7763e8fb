"""What is said of rounds that were measured: warnings, and what they were measured on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from regress.config import Config
from regress.errors import NothingMeasured
from regress.measure.wire import Ceilings
from regress.model import GPU_FRAMEWORKS, Round
from regress.session.fitness import complaints, without_device
from regress.text.wording import counted

if TYPE_CHECKING:
    from regress.run.execute import Job, JobResult

SCRIPTED = "the device is scripted: times are simulated, not measured"


def remarks(config: Config, measured: JobResult, job: Job, ceilings: Ceilings) -> list[str]:
    """What the reader should know about how it was measured."""
    told = [text for side in job.sides for text in side.warnings]
    texts = [*config.warnings, *dict.fromkeys(told), *measured.warnings]
    if ceilings.failure is not None:
        texts.append(f"some shares of the device's peak are unknown: {ceilings.failure.message}")
    skipped = {(round.name, *round.params) for round in measured.rounds if needs_device(round)}
    if skipped:
        facts: Mapping[str, Any] = next(iter(measured.facts.values()), {})
        why = str(facts.get("no_device", "no device"))
        texts.append(f"{len(skipped)} CUDA cases were skipped: {why}; fix: {without_device(why)}")
    if any(map(_on_device, measured.rounds)):
        torch = any(round.failure is not None or "torch" in round.facts.get("loaded", ()) for round in measured.rounds)
        texts += dict.fromkeys(complaint for facts in measured.facts.values() for complaint in complaints(facts, torch))
    beside = {(round.name, *round.params) for round in measured.rounds if "beside" in round.facts}
    if beside:
        several = f"{counted(len(beside), 'case')} measured together with other GPUs"
        texts.append(f"host_time and wall_time are left out of {several}: they share the host")
    if any(facts.get("scripted") for facts in measured.facts.values()):
        texts.append(SCRIPTED)
    return texts


def require_values(measured: JobResult) -> None:
    """Raise NothingMeasured where not one round gave a value for want of a device."""
    if any(round.values for round in measured.rounds) or measured.interrupted:
        return
    refused = [round for round in measured.rounds if needs_device(round)]
    if refused and len(refused) == len(measured.rounds):
        cases = len({(round.name, *round.params) for round in refused})
        failure = refused[0].failure
        assert failure is not None
        raise NothingMeasured(
            f"none of the {cases} cases could be measured",
            why=f"every one of them {failure.message}",
            fix=without_device(failure.message),
        )


def _on_device(round: Round) -> bool:
    """Whether a device may have had a part in the round, or should have had."""
    return round.protocol is None or round.protocol.metric == "gpu_time" or "torch" in round.facts.get("loaded", ())


def needs_device(round: Round) -> bool:
    """Whether it was skipped for want of a device."""
    return (
        round.failure is not None and round.failure.kind == "skipped" and "needs a CUDA device" in round.failure.message
    )


def device_uuid(measured: JobResult) -> str:
    """UUID of the device that was there to measure on, as processes or (AMD) rounds name it; empty where there was none."""
    named = [*measured.facts.values(), *(round.facts for round in measured.rounds)]
    return next((str(facts["gpu_uuid"]) for facts in named if facts.get("gpu_uuid")), "")


def throttled(measured: JobResult) -> list[str]:
    """The warning that the device slowed itself down, and in how many cases."""
    slowed = [round for round in measured.rounds if round.facts.get("throttled")]
    if not slowed:
        return []
    reasons = dict.fromkeys(str(reason) for round in slowed for reason in round.facts["throttled"])
    cases = len({(round.name, *round.params) for round in slowed})
    return [f"throttled ({', '.join(reasons)}): {counted(cases, 'case')} measured while the device was throttled"]


def imported_by(measured: JobResult) -> dict[str, tuple[str, ...]]:
    """By side: the files that the project's packages were imported from, a file each."""
    told = [(round.side, round.facts.get("project_files", ())) for round in measured.rounds]
    told += [(side, facts.get("project_files", ())) for side, facts in measured.facts.items()]
    sides = dict.fromkeys(side for side, _ in told)
    return {name: tuple(sorted({file for side, files in told if side == name for file in files})) for name in sides}


def device_line(facts: Mapping[str, Any], rounds: list[Round]) -> str:
    """One line about what was measured on: GPU, driver, CUDA, frameworks, SM clock."""
    parts = []
    if "gpu" in facts:
        parts.append(str(facts["gpu"]))
    parts += [f"{word} {facts[name]}" for name, word in (("driver", "driver"), ("cuda", "CUDA")) if name in facts]
    loaded = {name for round in rounds for name in round.facts.get("loaded", ())}
    parts += [f"{name} {facts[name]}" for name in GPU_FRAMEWORKS if name in facts and name in loaded]
    parts += [f"Python {facts['python']}"] if "python" in facts else []
    clocks = sorted(round.facts["sm_clock_hz"] for round in rounds if "sm_clock_hz" in round.facts)
    if clocks:
        parts.append(f"SM clock {clocks[len(clocks) // 2] / 1e6:.0f} MHz")
    return "  ".join(parts)
