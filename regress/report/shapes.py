"""Which keys the objects of the JSON document have: those of the fields of their types, but for SHAPES.

DOCUMENTS says what each command gives. The docstrings of what is derived are descriptions in the schema.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args, get_type_hints

from regress.model import (
    Acknowledgement,
    AnchorCheck,
    Bisection,
    Breakage,
    Built,
    CallProfile,
    Case,
    Changed,
    ChangePoint,
    Commit,
    Comparison,
    Contender,
    Contrast,
    Duration,
    Explained,
    Explanation,
    Failure,
    Implementations,
    KernelDiff,
    Measurement,
    Metered,
    Metric,
    Probe,
    ProfiledSide,
    Report,
    Reviewed,
    SelfCheck,
    Shift,
    Side,
    Standing,
    Summary,
    Throughput,
)
from regress.report.explained import sentence
from regress.report.summary import again

VERSION = 1
"""Raised when a key is removed, renamed or changes its meaning."""


# -- what is derived -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Error:
    """A failed case of one side; or a problem of the suite, or why there is nothing else, for which side, name and params are
    null."""

    kind: str
    """suite for a part of the suite that gave no benchmark, stopped where nothing could be measured or read; else error,
    timeout, oom or signal."""
    message: str
    where: str
    detail: str
    side: Literal["base", "head"] | None = None
    name: str | None = None
    params: tuple[str, ...] | None = None
    fatal: bool = True


def _errors(report: Report, _: Report) -> list[Error]:
    """Why there is nothing else, problems of the suite and failures of cases; a case that failed in several metrics is named
    once a side."""
    errors = []
    if report.error is not None:
        said = (("why", report.error.why), ("fix", report.error.fix))
        detail = "\n".join(f"{word}: {text}" for word, text in said if text)
        errors.append(Error("stopped", report.error.what, "", detail))
    errors += [
        Error("suite", problem.message, problem.where, problem.detail, fatal=problem.fatal)
        for problem in report.problems
    ]
    errors += dict.fromkeys(
        Error(failure.kind, failure.message, failure.where, failure.detail, side, case.name, case.params)
        for case, side, failure in _failures(report)
        if failure is not None and failure.kind != "skipped"
    )
    return errors


def _failures(report: Report) -> Iterator[tuple[Case, Literal["base", "head"], Failure | None]]:
    for comparison in report.comparisons:
        yield comparison.case, "base", comparison.base_failure
        yield comparison.case, "head", comparison.head_failure
    rows: tuple[CallProfile | Metered | Measurement | Breakage, ...]
    rows = (*report.profiled, *report.metered, *report.measurements, *report.breakages)
    for row in rows:
        yield row.case, "head", row.failure


def _schema(report: Report, _: Report) -> str:
    """Command and version."""
    return f"regress.{report.command}/{VERSION}"


def _environment(report: Report, _: Report) -> str | None:
    """Of the head; of the base if there is no head."""
    side = report.head or report.base
    return side.environment if side else None


def _remark(report: Report, _: Report) -> str | None:
    """What is said instead of counts where nothing had to be judged: nothing affected."""
    return report.remark or None


def _bisections(report: Report, _: Report) -> tuple[Bisection, ...]:
    """The searches for the commits of what is new, with --bisect."""
    return tuple(bisection for bisection, _ in report.bisected)


def _itself(report: Report, _: Report) -> Report | None:
    """What --aa found: a check of the head against itself."""
    return report if report.aa is not None else None


def _center(summary: Summary | None) -> float | None:
    return summary.center if summary else None


def _rounds(summary: Summary | None) -> int:
    return summary.n if summary else 0


def _base(comparison: Comparison, report: Report) -> float | None:
    """Centre of the round values, in the unit."""
    return _center(comparison.base)


def _head(comparison: Comparison, report: Report) -> float | None:
    """Centre of the round values, in the unit."""
    return _center(comparison.head)


def _both_rounds(comparison: Comparison, report: Report) -> tuple[int, int]:
    """Rounds that gave a value."""
    return _rounds(comparison.base), _rounds(comparison.head)


def _throughputs(comparison: Comparison, report: Report) -> tuple[Throughput | None, Throughput | None] | None:
    both = comparison.base_throughput, comparison.head_throughput
    return both if any(both) else None


def _own_value(measured: Measurement | Contender, report: Report) -> float | None:
    """Centre of the round values, in the unit."""
    return _center(measured.summary)


def _own_rounds(measured: Measurement | Contender, report: Report) -> int:
    """Rounds that gave a value."""
    return _rounds(measured.summary)


def _params(contender: Contender, report: Report) -> tuple[str, ...]:
    return contender.case.params


def _repro(shown: Comparison | Measurement, report: Report) -> str:
    """Shell command that measures or compares this case again."""
    return again(report, shown.case)


def _first(breakage: Breakage, report: Report) -> str:
    """Full hash of the first commit that was measured and gave no number."""
    return breakage.first.sha


def _cases(self_check: SelfCheck, report: Report) -> int:
    """How many."""
    return len(self_check.cases)


def _metric(explained: Explained, report: Report) -> Metric:
    return explained.comparison.metric


def _sentence(explained: Explained, report: Report) -> str:
    return sentence(explained)


def _parts(explained: Explained, report: Report) -> tuple[tuple[str, float], ...]:
    """What the difference is made of, in seconds a call: of a time of the device they add up to `measured_s` (`the rest` is the
    gaps between launches, and what a profile does not show), else to the explanation's `difference_s`."""
    return tuple(explained.parts.items())


# -- tables --------------------------------------------------------------------------------------------------------------

Source = str | Callable[..., Any]
"""What a key holds: a field or property, or what a function makes of the value and the report."""


@dataclass(frozen=True)
class Shape:
    """Where an object of the document differs from its type."""

    renamed: Mapping[str, str] = field(default_factory=dict)
    """Field -> key."""
    without: tuple[str, ...] = ()
    """Keys that it does not have."""
    beside: tuple[str, ...] = ()
    """Fields whose own keys stand among the object's; those of cases and metrics always do."""
    derived: Mapping[str, Source] = field(default_factory=dict)
    """Keys that are not fields, or hold something else."""
    blank: tuple[str, ...] = ()
    """Keys that are null where the value is empty."""
    labelled: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Keys whose tuples are objects, with the keys of their items."""
    plain: tuple[str, ...] = ()
    """Keys in whose value every object has the fields of its type."""


_INTERVAL = ("ratio", "low", "high", "n")
_SIDES = ("base", "head")
_BESIDE = (Case, Metric)

SHAPES: dict[type, Shape] = {
    Acknowledgement: Shape(renamed={"pattern": "benchmark"}, blank=("metric", "since", "seen", "link", "line")),
    AnchorCheck: Shape(blank=("label",), labelled={"together": _INTERVAL}),
    Breakage: Shape(derived={"first": _first}, blank=("device",)),
    Built: Shape(blank=("log", "reason", "fix")),
    Changed: Shape(beside=("point",), blank=("device",)),
    ChangePoint: Shape(renamed={"moved": "verdict"}, without=("way",), blank=("recovered_by", "undoes")),
    Commit: Shape(without=("beside", "parents")),
    Comparison: Shape(
        without=(
            *("counts_from", "unreached", "unconfirmed"),
            *("base_failure", "head_failure", "base_throughput", "head_throughput"),
        ),
        derived={
            "base": _base,
            "head": _head,
            "base_summary": "base",
            "head_summary": "head",
            "n": _both_rounds,
            "throughput": _throughputs,
            "repro": _repro,
        },
        labelled={"n": _SIDES, "sessions": _SIDES, "throughput": _SIDES},
    ),
    Contender: Shape(
        renamed={"name": "implementation"},
        without=("case",),
        derived={"params": _params, "value": _own_value, "n": _own_rounds},
    ),
    Contrast: Shape(renamed={"rounds": "n"}),
    Duration: Shape(derived={"seconds": "seconds"}),
    Explained: Shape(
        without=("comparison",),
        derived={"case": "case", "metric": _metric, "sentence": _sentence, "measured_s": "measured_s", "parts": _parts},
        labelled={"parts": ("name", "seconds")},
    ),
    Explanation: Shape(
        renamed={"syncs": "synchronizations"},
        derived={"difference_s": "difference_s", "unexplained_s": "unexplained_s"},
        labelled={"synchronizations": _SIDES, "launches": _SIDES},
    ),
    Implementations: Shape(renamed={"names": "implementations"}, blank=("size",)),
    KernelDiff: Shape(derived={"difference_s": "difference_s"}),
    Measurement: Shape(derived={"value": _own_value, "n": _own_rounds, "repro": _repro}),
    Metric: Shape(renamed={"name": "metric"}, without=("exact",)),
    Probe: Shape(beside=("commit",)),
    ProfiledSide: Shape(without=("timeline",)),
    Report: Shape(
        blank=("across", "device", "drift_since", "recorded"),
        labelled={
            "suggestions": ("word", "command"),
            "covered": ("cases", "of"),
            "geomean": _INTERVAL,
            "noise_floor": ("median", "largest", "case"),
            "finer": ("rounds", "min_detectable"),
            "block": ("where", "text"),
            "questions": ("question", "answer"),
        },
        plain=("difference",),
    ),
    Reviewed: Shape(beside=("entry",), blank=("why", "fix")),
    SelfCheck: Shape(derived={"cases": _cases}),
    Shift: Shape(without=("changes",), derived={"benchmarks": "benchmarks", "new": "new"}, blank=("device",)),
    Side: Shape(beside=("commit",), without=("name", "beside")),
    Standing: Shape(derived={"outcome": "outcome", "fastest": "fastest"}, blank=("fastest",)),
    Summary: Shape(without=("center", "n")),
}
"""A type that is not here has its fields as they are. `reasons` are one sentence everywhere, called `reason`."""


def _same(*names: str) -> dict[str, Source]:
    return {name: name for name in names}


ENVELOPE: dict[str, Source] = {
    "schema": _schema,
    "errors": _errors,
    **_same("exit_code", "exit_codes", "warnings", "suggestions", "recorded", "duration_s"),
}
"""What every document has."""
_VERDICT: dict[str, Source] = {"verdict": "state", "remark": _remark}
_MEASURED = _same("base", "head", "machine", "device", "imported", "policy", "cases", "counts") | {
    "environment": _environment
}
_JUDGED = {
    **_MEASURED,
    **_VERDICT,
    **_same("covered", "geomean", "noise_floor", "min_detectable", "finer", "last_aa", "acknowledged"),
    **_same("across", "acknowledgements"),
    "benchmarks": "comparisons",
}
_EXPLAINED = _JUDGED | _same("explained")
_FASTEST = _MEASURED | _same("implementations")

ITSELF: dict[str, Source] = _JUDGED | {"summary": "aa", "fineness": "fineness"}
"""What a check of a side against itself has, inside another document."""

DOCUMENTS: dict[str, dict[str, Source]] = {
    "check": _EXPLAINED,
    "explain": _EXPLAINED,
    "compare": _JUDGED,
    "run": _FASTEST | {"benchmarks": "measurements"} | _same("durations"),
    "fastest": _FASTEST,
    "gate": _JUDGED | _same("questions", "drift", "drift_since", "changes"),
    "sweep": _VERDICT
    | _same("machine", "device", "cases", "changes", "shifts", "breakages", "anchors")
    | {"bisections": _bisections},
    "bisect": _VERDICT | _same("base", "head", "machine", "device", "bisection"),
    "list": {"benchmarks": "listed"},
    "doctor": {"checks": "checks", "aa": _itself},
    "init": _same("checks", "cases", "counts", "block"),
    "build": {"builds": "builds"},
    "merge": _same("changes", "shifts", "breakages") | {"folders": "merged"},
    "ack": _same("remark", "acknowledgements"),
    "profiled": _MEASURED | {"verdict": "state", "profiles": "profiled", "difference": "profiled_difference"},
    "metered": _MEASURED | {"verdict": "state", "metered": "metered"},
    "config": _same("settings"),
}
"""Command -> what its document has beyond the envelope; a command that is not here has the envelope only."""


# -- keys ----------------------------------------------------------------------------------------------------------------


class Key(NamedTuple):
    """One key of an object."""

    name: str
    source: Source
    kind: Any
    """The type of what it holds."""
    beside: bool
    """Its own keys stand in its place."""
    blank: bool
    labels: tuple[str, ...]
    plain: bool


@functools.cache
def keys(kind: type, plain: bool = False) -> tuple[Key, ...]:
    """The keys of the objects of a dataclass; `plain`: its fields."""
    shape = Shape() if plain else SHAPES.get(kind, Shape())
    sources: dict[str, Source] = {
        shape.renamed.get(attribute.name, attribute.name): attribute.name for attribute in dataclasses.fields(kind)
    }
    kept = {name: source for name, source in sources.items() if name not in shape.without}
    return tuple(_key(kind, shape, name, source, plain) for name, source in (kept | {**shape.derived}).items())


def report_keys(sources: Mapping[str, Source]) -> tuple[Key, ...]:
    """The keys of a document that has these."""
    return tuple(_key(Report, SHAPES[Report], name, source, False) for name, source in sources.items())


def _key(kind: type, shape: Shape, name: str, source: Source, plain: bool) -> Key:
    held = _type_of(kind, source)
    beside = not plain and (held in _BESIDE or name in shape.beside)
    plain = plain or name in shape.plain
    if source == "reasons":
        name, held = "reason", str
    return Key(name, source, held, beside, name in shape.blank, shape.labelled.get(name, ()), plain)


def _type_of(kind: type, source: Source) -> Any:
    """What a field or property of the type holds, or a function gives."""
    if not isinstance(source, str):
        return get_type_hints(source)["return"]
    member = getattr(kind, source, None)
    return get_type_hints(member.fget)["return"] if isinstance(member, property) else _hints(kind)[source]


_hints = functools.cache(get_type_hints)


def is_list(kind: Any) -> bool:
    """Whether the type is a tuple of any number of items."""
    return Ellipsis in get_args(kind)
