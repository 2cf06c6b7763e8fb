"""Settings with every default, the environments that they name, and a setting as `config` prints it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from regress.model.measurement import Better

DEFAULT_ENVIRONMENT = "worktree"
EXISTING = "existing"
"""asv's type of an interpreter that is there already, in which asv installs nothing."""


@dataclass(frozen=True)
class Environment:
    """Where a side's code runs: which interpreter, with which variables, and the commit's own tree, a built wheel, or the
    commit installed by asv."""

    name: str = DEFAULT_ENVIRONMENT
    python: str = ""
    """Interpreter under test; empty: the one of the setting `python`."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of its processes, added to those of regress."""
    wheel: str = ""
    """A wheel to measure instead of the commit's tree: a path relative to the configuration."""
    fetch: str = ""
    """A shell command that puts such a wheel into the folder $WHEELS, as `pip download` does; run once."""
    asv: str = ""
    """An environment of asv's: its type (`virtualenv`), type and Python (`virtualenv:3.12`), or its name in the matrix."""

    @property
    def installs(self) -> bool:
        """Whether each side is installed in a separate environment, with its requirements."""
        return bool(self.asv) and not self.asv.startswith(EXISTING)


@dataclass(frozen=True)
class Kind:
    """Nodes of one kind in a cluster: what a job on one of them asks for. Its name is the machine's in the history."""

    name: str
    partition: str = ""
    gres: str = ""
    """As Slurm has it: "gpu:h100:1". A job measures on all GPUs that it names."""
    time_s: float = 3600.0
    """How long a job may take; in the file `time`, such as "1h"."""
    at_most: int = 8
    """How many jobs run at once."""
    constraint: str = ""
    account: str = ""
    qos: str = ""
    reservation: str = ""
    exclusive: bool = False
    """Whether a job has its node for itself; else what the host's clock reads is noise."""
    build: bool = False
    """Whether a node of the kind looks the suite over before a sweep, as the driver's host cannot build it."""
    options: tuple[str, ...] = ()
    """Further options of sbatch, as they are."""
    setup: tuple[str, ...] = ()
    """Lines of shell that a job begins with, after those of the cluster."""

    @property
    def gpus(self) -> int:
        """How many GPUs a job has."""
        count = self.gres.rpartition(":")[2]
        return int(count) if count.isdigit() else 1


@dataclass(frozen=True)
class Cluster:
    """Where a command with `--on` measures: the kinds of nodes, and what reaches them."""

    engine: str = "slurm"
    """slurm, or local (processes of this host)."""
    shared: str = ""
    """Folder that all nodes see under this path; empty, for `local` only: one in the cache."""
    scratch: str = ""
    """Folder of a node, which its shell expands ("/local/$USER"), and which may be lost at any time; empty: one in /tmp, or
    for `local` in the cache."""
    setup: tuple[str, ...] = ()
    """Lines of shell that every job begins with."""
    kinds: Mapping[str, Kind] = field(default_factory=dict)

    @property
    def shared_kinds(self) -> frozenset[str]:
        """Kinds on whose nodes other jobs may run beside ours."""
        return frozenset(name for name, kind in self.kinds.items() if not kind.exclusive)


THRESHOLD_KINDS = ("time", "host", "memory")
"""Kinds of metrics that have a threshold each among the settings."""


@dataclass(frozen=True)
class Settings:
    """Every threshold and switch, with its default. The key `regress` of asv.conf.json sets them by these names.

    A threshold is a relative change (0.05 is 5 %), a time is in seconds, a size in bytes.
    """

    # deciding
    time_threshold: float = 0.05
    memory_threshold: float = 0.10
    host_threshold: float = 0.05
    host_apart_threshold: float = 0.20
    """Of host time, where the sides did not take their windows in turn, as in recorded results."""
    change_threshold: float = 0.02
    """Smallest change of level that a history lists; the thresholds above decide what is worth an alert."""
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Thresholds of some benchmarks: by a regular expression for the start of a case's name, and there by metric or by kind
    (THRESHOLD_KINDS). The last expression that matches and has the metric applies."""
    critical: tuple[str, ...] = ()
    """Regular expressions for the start of a case's name: critical cases, besides the benchmarks that declare it."""
    gate_thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What a release may lose against the one before it, as `thresholds` say it; they count after those, in `gate` only."""
    gate_release: str = ""
    """The release that `gate` compares the recorded history with; empty: the newest one before the head."""
    release_tags: str = r"(?:[\w./-]*[-_/](?=v?\d+\.))?v?\d+(?:\.\d+)*(?:[-._+]?[A-Za-z][\w.+-]*)?"
    """Which tags are releases: a regular expression of the whole name. The usual one takes v1, 2.4.0rc1 and jax-v0.4.30, and
    leaves out what services mark commits with, such as ciflow/inductor/12345."""
    gates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Further metrics that gate: by a regular expression for the start of a case's name."""
    alpha: float = 0.05
    paired_alpha: float = 0.01
    """The same for sides that took windows in turn."""
    confidence: float = 0.95
    time_floor_s: float = 0.2e-6
    host_floor_s: float = 0.2e-6
    host_apart_floor_s: float = 2e-6
    memory_floor_bytes: int = 64 * 1024
    good_rounds: float = 0.8
    """Below this share of rounds that gave a value, the case has failed; below this share of rounds that were not throttled,
    nothing is claimed of it."""
    clock_tolerance: float = 0.01
    """If the SM clocks of the sides differ by more than this, relatively, their times are not compared."""
    budget_s: float = 600.0
    """Seconds after which a check in steps stops measuring, including unmeasured visits; undecided cases are reported so."""
    # measuring
    device: str = "auto"
    """auto, cuda, cpu, or fake (the scripted device)."""
    process: str = "auto"
    """How the process of a round starts: auto (forked from one that has imported the suite, if a trial succeeds), or fresh (a
    new interpreter that imports everything again)."""
    in_turn: bool = True
    """Whether processes of both sides take windows of the host's clock in turn, on one core; else one side is measured after
    the other."""
    seed: int = 0
    better: Mapping[str, Better] = field(default_factory=dict)
    """Which direction is better, by regular expression, searched in names: of tracked numbers that do not say it themselves."""
    cuda: tuple[str, ...] = ()
    """Regular expressions, searched in names: `time_*` benchmarks that are measured under the device protocol."""
    check_rounds: int = 0
    """Rounds a side of a check, for every case; 0: in steps, as many as each case needs."""
    run_rounds: int = 5
    sweep_rounds: int = 2
    memory_rounds: int = 2
    """Rounds a side that probe memory too."""
    discover_timeout_s: float = 120.0
    build_timeout_s: float = 1800.0
    # environment
    build: tuple[str, ...] = ()
    """Shell commands run once in each worktree before it is measured, e.g. "python setup.py build_ext --inplace"."""
    build_inputs: tuple[str, ...] = ()
    """Files that a build depends on, as `covers` names them: commits that agree in them share a build. Empty: all files."""
    build_cache_bytes: int = 10 * 2**30
    """Size of the build cache; the least recently used build is removed first."""
    worktrees: int = 20
    """Worktrees kept for each environment; the least recently used is removed first."""
    package_dir: str = ""
    """Folder of the importable code inside the repository; detected for flat and src/ layouts."""
    python: str = ""
    """Interpreter under test; empty: the one that runs regress."""
    env_key: tuple[str, ...] = ("requirements*.txt", "environment*.yml", "uv.lock", "poetry.lock", "pdm.lock")
    """Files that list what the interpreter needs; a pattern without a slash matches a file's name in any folder."""
    environment: str = ""
    """Default environment of a side; empty: asv's if `environment_type` names one, else worktree."""
    environments: Mapping[str, Environment] = field(default_factory=dict)
    """Further environments by name, for `--base-env`, `--head-env` and `--env`."""
    cluster: Cluster = field(default_factory=Cluster)
    """Where a command with `--on` measures."""
    # places
    machine: str = ""
    """Name of this machine in results_dir; empty: asv's own machine file, else the host's name."""
    cache_dir: str = ""
    lock_dir: str = ""
    """Folder of this node that all who measure on its GPUs share; empty: /tmp/regress-locks."""
    report_dir: str = "report"
    report_url: str = ""
    """Address under which the report is published; the links of its feed begin with it."""
    notify_command: str = ""
    """Shell command that is run once where a sweep found something new, with the JSON document on its stdin."""
    acks: str = "regress-acks.toml"
    """The acknowledgement file, from the folder of the configuration."""


@dataclass(frozen=True)
class Setting:
    """One effective setting as `config` prints it."""

    name: str
    value: Any
    source: str
