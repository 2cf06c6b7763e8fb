"""A report as one versioned JSON document: `"schema": "regress.check/1"`, described by regress.check.schema.json.

Numbers are in base units (seconds, bytes, ratios head/base, relative changes); what is missing, NaN or infinite is null.
Keys are sorted and the text is ASCII, so that equal reports give equal bytes. Within one version keys are only added.
"""

from __future__ import annotations

import dataclasses
import importlib.resources
import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from regress.model import (
    Acknowledgement,
    AnchorCheck,
    Bisection,
    Breakage,
    Built,
    CallProfile,
    Case,
    Changed,
    Commit,
    Comparison,
    Contender,
    Contrast,
    Durations,
    Explained,
    Explanation,
    Failure,
    Fineness,
    Implementations,
    KernelDiff,
    Listed,
    Measurement,
    Metered,
    Metric,
    Move,
    ProfiledSide,
    Report,
    Reviewed,
    Samples,
    SelfCheck,
    Shift,
    Side,
    Standing,
    Summary,
    Throughput,
)
from regress.report.explained import sentence
from regress.report.style import Style
from regress.report.summary import again

__all__ = ["VERSION", "document", "render", "schema"]

VERSION = 1
"""Raised when a key is removed, renamed or changes its meaning."""


def render(report: Report, style: Style) -> str:
    """The document as text, ending with a newline. The style changes nothing."""
    return json.dumps(document(report), indent=2, sort_keys=True, allow_nan=False) + "\n"


def document(report: Report) -> dict[str, Any]:
    """The document as dicts, lists, strings, finite numbers, booleans and None."""
    body = _BODIES.get(report.command)
    data = _envelope(report) | (body(report) if body else {})
    clean: dict[str, Any] = _clean(data)
    return clean


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) that every document of this version fulfils."""
    text = importlib.resources.files("regress.report").joinpath("regress.check.schema.json").read_text("utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


# -- documents -----------------------------------------------------------------------------------------------------------


def _envelope(report: Report) -> dict[str, Any]:
    """What every document has."""
    return {
        "schema": f"regress.{report.command}/{VERSION}",
        "exit_code": report.exit_codes[0] if report.exit_codes else 0,
        "exit_codes": report.exit_codes,
        "warnings": report.warnings,
        "errors": list(_errors(report)),
        "suggestions": [{"word": word, "command": command} for word, command in report.suggestions],
        "recorded": report.recorded or None,
        "duration_s": report.duration_s,
    }


def _measured(report: Report) -> dict[str, Any]:
    """What the documents about measurements share."""
    side = report.head or report.base
    return {
        "base": _side(report.base),
        "head": _side(report.head),
        "machine": {"name": report.machine.name, "facts": report.machine.facts} if report.machine else None,
        "environment": side.environment if side else None,
        "device": report.device or None,
        "imported": {name: list(files) for name, files in report.imported.items()},
        "policy": report.policy,
        "cases": report.cases,
        "counts": report.counts,
    }


def _judged(report: Report) -> dict[str, Any]:
    geomean = dict(zip(("ratio", "low", "high", "n"), report.geomean, strict=True)) if report.geomean else None
    noise = dict(zip(("median", "largest", "case"), report.noise_floor, strict=True)) if report.noise_floor else None
    return _measured(report) | {
        "verdict": report.state,
        "remark": report.remark or None,
        "across": report.across or None,
        "covered": dict(zip(("cases", "of"), report.covered, strict=True)) if report.covered else None,
        "geomean": geomean,
        "noise_floor": noise,
        "min_detectable": report.min_detectable,
        "finer": dict(zip(("rounds", "min_detectable"), report.finer, strict=True)) if report.finer else None,
        "last_aa": _aa(report.last_aa),
        "acknowledged": report.acknowledged,
        "acknowledgements": [_reviewed(each) for each in report.acknowledgements],
        "benchmarks": [_comparison(report, each) for each in report.comparisons],
    }


def _explain(report: Report) -> dict[str, Any]:
    return _judged(report) | {"explained": [_explained(each) for each in report.explained]}


def _run(report: Report) -> dict[str, Any]:
    return _fastest(report) | {
        "benchmarks": [_measurement(report, each) for each in report.measurements],
        "durations": _durations(report.durations),
    }


def _durations(found: Durations | None) -> dict[str, Any] | None:
    if found is None:
        return None
    slowest = [{**dataclasses.asdict(each), "seconds": each.seconds} for each in found.slowest]
    return {"slowest": slowest, "of": found.of, "build_s": found.build_s, "beside_s": found.beside_s}


def _fastest(report: Report) -> dict[str, Any]:
    return _measured(report) | {"implementations": [_implementations(each) for each in report.implementations]}


def _sweep(report: Report) -> dict[str, Any]:
    return {
        "verdict": report.state,
        "remark": report.remark or None,
        "machine": {"name": report.machine.name, "facts": report.machine.facts} if report.machine else None,
        "device": report.device or None,
        "cases": report.cases,
        "changes": [_changed(each) for each in report.changes],
        "shifts": [_shift(each) for each in report.shifts],
        "breakages": [_broken(each) for each in report.breakages],
        "anchors": [_anchor(each) for each in report.anchors],
        "bisections": [_bisection(found) for found, _ in report.bisected],
    }


def _gate(report: Report) -> dict[str, Any]:
    return _judged(report) | {
        "drift": [_comparison(report, each) for each in report.drift],
        "drift_since": report.drift_since or None,
        "changes": [_changed(each) for each in report.changes],
    }


def _bisect(report: Report) -> dict[str, Any]:
    found = report.bisection
    return {
        "verdict": report.state,
        "remark": report.remark or None,
        "base": _side(report.base),
        "head": _side(report.head),
        "machine": {"name": report.machine.name, "facts": report.machine.facts} if report.machine else None,
        "device": report.device or None,
        "bisection": _bisection(found) if found is not None else None,
    }


def _list(report: Report) -> dict[str, Any]:
    return {"benchmarks": [_listed(each) for each in report.listed]}


def _checks(report: Report) -> list[dict[str, Any]]:
    return [{"name": each.name, "state": each.state, "found": each.found, "fix": each.fix} for each in report.checks]


def _doctor(report: Report) -> dict[str, Any]:
    return {"checks": _checks(report), "aa": _itself(report) if report.aa is not None else None}


def _itself(report: Report) -> dict[str, Any]:
    return _judged(report) | {"summary": _aa(report.aa), "fineness": [_fineness(each) for each in report.fineness]}


def _aa(found: SelfCheck | None) -> dict[str, Any] | None:
    return None if found is None else {**dataclasses.asdict(found), "cases": len(found.cases)}


def _fineness(each: Fineness) -> dict[str, Any]:
    return {
        **_identity(each),
        "verdict": each.verdict.value,
        "rounds": each.rounds,
        "spread": each.spread,
        "noise": each.noise,
        "min_detectable": each.min_detectable,
    }


def _init(report: Report) -> dict[str, Any]:
    block = dict(zip(("where", "text"), report.block, strict=True)) if report.block else None
    return {"checks": _checks(report), "cases": report.cases, "counts": report.counts, "block": block}


def _build(report: Report) -> dict[str, Any]:
    return {"builds": [_built(each) for each in report.builds]}


def _profile(report: Report) -> dict[str, Any]:
    """The export itself; its own schema describes it (regress/profiling)."""
    return dataclasses.asdict(report.profile) if report.profile is not None else {}


def _profiled(report: Report) -> dict[str, Any]:
    return _measured(report) | {
        "verdict": report.state,
        "profiles": [_of_case(each) for each in report.profiled],
        "difference": _difference(report),
    }


def _metered(report: Report) -> dict[str, Any]:
    return _measured(report) | {"verdict": report.state, "metered": [_of_case(each) for each in report.metered]}


def _difference(report: Report) -> dict[str, Any] | None:
    """Between two profiles that were held against each other."""
    found = report.profiled_difference
    return None if found is None else dataclasses.asdict(found)


def _of_case(each: CallProfile | Metered) -> dict[str, Any]:
    named = {"name": each.case.name, "params": list(each.case.params)}
    failure = _failure(each.failure) if each.failure is not None else None
    values = dataclasses.asdict(each) | {"failure": failure}
    return named | {key: value for key, value in values.items() if key != "case"}


def _merge(report: Report) -> dict[str, Any]:
    return {"folders": [dataclasses.asdict(each) for each in report.merged]}


def _ack(report: Report) -> dict[str, Any]:
    return {"remark": report.remark, "acknowledgements": [_reviewed(each) for each in report.acknowledgements]}


def _config(report: Report) -> dict[str, Any]:
    settings = [{"name": each.name, "value": each.value, "source": each.source} for each in report.settings]
    return {"settings": settings}


_BODIES: dict[str, Callable[[Report], dict[str, Any]]] = {
    "check": _explain,
    "explain": _explain,
    "compare": _judged,
    "run": _run,
    "fastest": _fastest,
    "gate": _gate,
    "sweep": _sweep,
    "bisect": _bisect,
    "list": _list,
    "doctor": _doctor,
    "init": _init,
    "build": _build,
    "merge": _merge,
    "ack": _ack,
    "profile": _profile,
    "profiled": _profiled,
    "metered": _metered,
    "config": _config,
}
"""Command -> what its document has beyond the envelope; a command that is not here has the envelope only."""


# -- parts ---------------------------------------------------------------------------------------------------------------


def _side(side: Side | None) -> dict[str, Any] | None:
    if side is None:
        return None
    return {
        "sha": side.commit.sha,
        "subject": side.commit.subject,
        "author": side.commit.author,
        "date": side.commit.date,
        "revision": side.revision,
        "environment": side.environment,
        "dirty": side.dirty,
    }


def _commit(commit: Commit) -> dict[str, Any]:
    return {"sha": commit.sha, "subject": commit.subject, "author": commit.author, "date": commit.date}


def _bisection(found: Bisection) -> dict[str, Any]:
    return {
        "name": found.case.name,
        "params": found.case.params,
        "good": _commit(found.good),
        "bad": _commit(found.bad),
        "candidates": found.candidates,
        "change": _contrast(found.change),
        "probes": [{**_commit(each.commit), **{name: getattr(each, name) for name in _PROBE}} for each in found.probes],
        "found": [_commit(each) for each in found.found],
        "parent": _commit(found.parent) if found.parent is not None else None,
        "step": _contrast(found.step),
        "confirmed": found.confirmed,
        "confidence": found.confidence,
        "merges": [_commit(each) for each in found.merges],
        "reason": "; ".join(found.reasons),
    }


_PROBE = ("state", "ratio", "low", "high", "pairs", "left", "reason")


def _contrast(each: Contrast | None) -> dict[str, Any] | None:
    if each is None:
        return None
    return {
        **_metric(each.metric),
        "verdict": each.verdict.value,
        "before": each.before,
        "after": each.after,
        "ratio": each.ratio,
        "low": each.low,
        "high": each.high,
        "exact": each.exact,
        "n": each.rounds,
        "reason": "; ".join(each.reasons),
    }


def _comparison(report: Report, each: Comparison) -> dict[str, Any]:
    return {
        **_identity(each),
        "base": each.base.center if each.base else None,
        "head": each.head.center if each.head else None,
        "base_summary": _summary(each.base),
        "head_summary": _summary(each.head),
        "n": {"base": each.base.n if each.base else 0, "head": each.head.n if each.head else 0},
        "ratio": each.ratio,
        "low": each.low,
        "high": each.high,
        "p": each.p,
        "p_adjusted": each.p_adjusted,
        "verdict": each.verdict.value,
        "reason": "; ".join(each.reasons),
        "exact": each.exact,
        "gates": each.gates,
        "critical": each.critical,
        "threshold": each.threshold,
        "noise": each.noise,
        "min_detectable": each.min_detectable,
        "pairs": dataclasses.asdict(each.pairs) if each.pairs is not None else None,
        "base_samples": _samples(each.base_samples),
        "head_samples": _samples(each.head_samples),
        "throughput": _throughputs(each.base_throughput, each.head_throughput),
        "repro": again(report, each.case),
        "acknowledged": _acknowledgement(each.acknowledged),
    }


def _acknowledgement(entry: Acknowledgement | None) -> dict[str, Any] | None:
    if entry is None:
        return None
    optional = ("metric", "since", "seen", "link")
    return {
        "benchmark": entry.pattern,
        "kind": entry.kind,
        "level": entry.level,
        "value": entry.value,
        "until": entry.until,
        "reason": entry.reason,
        "line": entry.line or None,
        **{name: getattr(entry, name) or None for name in optional},
    }


def _reviewed(each: Reviewed) -> dict[str, Any]:
    found = _acknowledgement(each.entry) or {}
    return {**found, "state": each.state, "why": each.why or None, "fix": each.fix or None}


def _changed(each: Changed) -> dict[str, Any]:
    point = each.point
    return {
        **_identity(each),
        "machine": each.machine,
        "environment": each.environment,
        "device": each.device or None,
        "first": point.first,
        "good": point.good,
        "blamed": [_commit(one) for one in each.blamed],
        "before": point.before,
        "after": point.after,
        "ratio": point.ratio,
        "low": point.low,
        "high": point.high,
        "verdict": point.moved.value,
        "large": point.large,
        "threshold": point.threshold,
        "state": point.state,
        "recovered_by": point.recovered_by or None,
        "undoes": point.undoes or None,
        "reason": "; ".join(point.reasons),
        "acknowledged": _acknowledgement(point.acknowledged),
        "new": each.new,
    }


def _shift(each: Shift) -> dict[str, Any]:
    return {
        "machine": each.machine,
        "environment": each.environment,
        "device": each.device or None,
        "good": each.good,
        "blamed": [_commit(one) for one in each.blamed],
        "benchmarks": each.benchmarks,
        "reason": "; ".join(each.reasons),
        "new": each.new,
    }


def _broken(each: Breakage) -> dict[str, Any]:
    return {
        "name": each.case.name,
        "params": each.case.params,
        "machine": each.machine,
        "environment": each.environment,
        "device": each.device or None,
        "first": each.first.sha,
        "good": each.good,
        "blamed": [_commit(one) for one in each.blamed],
        "failure": _failure(each.failure),
        "new": each.new,
    }


def _explained(each: Explained) -> dict[str, Any]:
    return {
        **_identity(each.comparison),
        "sentence": sentence(each),
        "measured_s": each.measured_s,
        "parts": [{"name": name, "seconds": seconds} for name, seconds in each.parts.items()],
        "shown": each.shown,
        "explanation": _explanation(each.explanation) if each.explanation is not None else None,
        "base": _profiled_side(each.base),
        "head": _profiled_side(each.head),
        "files": each.files,
        "commits": [
            {"sha": one.sha, "subject": one.subject, "author": one.author, "date": one.date} for one in each.commits
        ],
        "warnings": each.warnings,
    }


def _explanation(found: Explanation) -> dict[str, Any]:
    return {
        **{name: getattr(found, name) for name in ("base_s", "head_s", "difference_s")},
        **{name: getattr(found, name) for name in ("kernels_s", "copies_s", "idle_s", "unexplained_s")},
        "kernels": [_kernel_diff(each) for each in found.kernels],
        "copies": [_kernel_diff(each) for each in found.copies],
        "synchronizations": {"base": found.syncs[0], "head": found.syncs[1]},
        "launches": {"base": found.launches[0], "head": found.launches[1]},
        "causes": [dataclasses.asdict(each) for each in found.causes],
        "warnings": found.warnings,
    }


def _kernel_diff(each: KernelDiff) -> dict[str, Any]:
    return {
        "base": dataclasses.asdict(each.base) if each.base else None,
        "head": dataclasses.asdict(each.head) if each.head else None,
        "difference_s": each.difference_s,
        "matched": each.matched,
        "kind": each.kind,
    }


def _profiled_side(side: ProfiledSide | None) -> dict[str, Any] | None:
    return None if side is None else {"calls_s": side.calls_s, "traces": side.traces}


def _measurement(report: Report, each: Measurement) -> dict[str, Any]:
    return {
        **_identity(each),
        "value": each.summary.center if each.summary else None,
        "summary": _summary(each.summary),
        "n": each.summary.n if each.summary else 0,
        "samples": _samples(each.samples),
        "throughput": _throughput(each.throughput),
        "primary": each.primary,
        "flags": each.flags,
        "failure": _failure(each.failure) if each.failure else None,
        "repro": again(report, each.case),
    }


def _anchor(each: AnchorCheck) -> dict[str, Any]:
    return {
        "commit": _commit(each.commit),
        "beside": _commit(each.beside),
        "label": each.label or None,
        "recorded_at": each.recorded_at,
        "cases": each.cases,
        "within": each.within,
        "drifted": each.drifted,
        "moved": [{**_identity(move), "ratio": move.ratio, "p": move.p} for move in each.moved],
        "together": dict(zip(("ratio", "low", "high", "n"), each.together, strict=True)) if each.together else None,
    }


def _implementations(found: Implementations) -> dict[str, Any]:
    return {
        "name": found.name,
        **_metric(found.metric),
        "implementations": found.names,
        "param_names": found.param_names,
        "size": found.size or None,
        "standings": [_standing(each) for each in found.standings],
        "crossovers": [dataclasses.asdict(each) for each in found.crossovers],
    }


def _standing(each: Standing) -> dict[str, Any]:
    return {
        "params": each.params,
        "outcome": each.outcome,
        "fastest": each.fastest or None,
        "leaders": each.leaders,
        "reason": "; ".join(each.reasons),
        "contenders": [_contender(one) for one in each.contenders],
    }


def _contender(each: Contender) -> dict[str, Any]:
    return {
        "implementation": each.name,
        "params": each.case.params,
        "value": each.summary.center if each.summary else None,
        "summary": _summary(each.summary),
        "n": each.summary.n if each.summary else 0,
        "failure": _failure(each.failure) if each.failure else None,
        **{name: getattr(each, name) for name in ("ratio", "low", "high", "p_adjusted")},
    }


def _identity(each: Comparison | Measurement | Fineness | Changed | Move) -> dict[str, Any]:
    return {
        "name": each.case.name,
        "params": each.case.params,
        **_metric(each.metric),
    }


def _metric(metric: Metric) -> dict[str, Any]:
    return {"metric": metric.name, "unit": metric.unit, "kind": metric.kind, "better": metric.better}


def _summary(summary: Summary | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    return {"low": summary.low, "high": summary.high, "confidence": summary.confidence, "spread": summary.spread}


def _samples(samples: Samples | None) -> dict[str, Any] | None:
    return None if samples is None else dataclasses.asdict(samples)


def _throughputs(base: Throughput | None, head: Throughput | None) -> dict[str, Any] | None:
    return {"base": _throughput(base), "head": _throughput(head)} if base or head else None


def _throughput(throughput: Throughput | None) -> dict[str, Any] | None:
    return None if throughput is None else dataclasses.asdict(throughput)


def _listed(each: Listed) -> dict[str, Any]:
    return {
        "name": each.case.name,
        "params": each.case.params,
        "metric": each.metric,
        "needs_device": each.needs_device,
        "tags": each.tags,
        "cost_s": each.cost_s,
        "gpus": each.gpus,
        "ranks": each.ranks,
    }


def _built(each: Built) -> dict[str, Any]:
    return {
        "side": _side(each.side),
        "state": each.state,
        "seconds": each.seconds,
        "log": each.log or None,
        "reason": each.reason or None,
        "fix": each.fix or None,
    }


def _errors(report: Report) -> Iterator[dict[str, Any]]:
    """Why there is nothing else, problems of the suite and failures of cases; a case that failed in several metrics is named
    once a side."""
    if report.error is not None:
        why, fix = report.error.why, report.error.fix
        yield {
            "kind": "stopped",
            "side": None,
            "name": None,
            "params": None,
            "message": report.error.what,
            "where": "",
            "detail": "\n".join(f"{word}: {text}" for word, text in (("why", why), ("fix", fix)) if text),
            "fatal": True,
        }
    for problem in report.problems:
        yield {
            "kind": "suite",
            "side": None,
            "name": None,
            "params": None,
            "message": problem.message,
            "where": problem.where,
            "detail": problem.detail,
            "fatal": problem.fatal,
        }
    seen = set()
    for case, side, failure in _failures(report):
        if failure.kind != "skipped" and (case, side, failure) not in seen:
            seen.add((case, side, failure))
            yield {"side": side, "name": case.name, "params": case.params, "fatal": True, **_failure(failure)}


def _failures(report: Report) -> Iterator[tuple[Case, str, Failure]]:
    for comparison in report.comparisons:
        for side, failure in (("base", comparison.base_failure), ("head", comparison.head_failure)):
            if failure is not None:
                yield comparison.case, side, failure
    profiles: tuple[CallProfile | Metered, ...] = (*report.profiled, *report.metered)
    for profile in profiles:
        if profile.failure is not None:
            yield profile.case, "head", profile.failure
    for measurement in report.measurements:
        if measurement.failure is not None:
            yield measurement.case, "head", measurement.failure
    for broken in report.breakages:
        yield broken.case, "head", broken.failure


def _failure(failure: Failure) -> dict[str, Any]:
    return {"kind": failure.kind, "message": failure.message, "where": failure.where, "detail": failure.detail}


def _clean(value: Any) -> Any:
    """The value in terms that JSON has: NaN and infinities are null, what has no counterpart is its text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _clean(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(each) for each in value]
    return str(value)
