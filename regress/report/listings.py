"""The tables of the commands that judge nothing: run, list, doctor, init, build, merge, ack, config."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from regress.model import (
    METRICS,
    Built,
    Case,
    Check,
    Duration,
    Failure,
    Fineness,
    Listed,
    Measurement,
    Merged,
    Report,
    Reviewed,
    Setting,
    Verdict,
)
from regress.profiles.lines import bottleneck_lines, operation_lines
from regress.report.failures import case_lines, verdict_of
from regress.report.rows import metric_words, throughput_words
from regress.text.style import Style, paint, visible
from regress.text.table import Layout, Row, table, titles
from regress.units import format_change, format_duration, format_estimate, format_pair, format_percent, format_time

MEASURED = "lrlrrll"
"""How the columns of measured values are aligned."""

_CHECK_MARKS = {"ok": (" ", "green"), "warn": ("?", "yellow"), "fail": ("!", "bold red")}


def measurements(report: Report, style: Style) -> list[str]:
    """Values of `run` with their intervals, then what failed."""
    rows = measured(report, style)
    lines = [*table(rows, MEASURED, style), ""] if rows else []
    for title, blocks in unmeasured(report, style):
        lines += [f"  {paint(title, 'bold', style)}", *(line for part in blocks for line in part), ""]
    return lines


def durations(report: Report, style: Style) -> list[str]:
    """Where the time of a run has gone, the slowest benchmarks first."""
    spent = report.durations
    if spent is None:
        return []
    told = len(spent.slowest)
    title = f"slowest {told} of {spent.of}" if told < spent.of else "slowest"
    heading = titles(title, "total", "setup_cache", "setup", "trial runs", "rounds", "cases")
    lines = table([heading, *map(_duration, spent.slowest)], "lrrrrrr", style)
    built = f"{_took(spent.build_s)} to build, " if spent.build_s else ""
    return [*lines, f"  plus {built}{_took(spent.beside_s)} to start processes and import the suite", ""]


def _duration(duration: Duration) -> Row:
    parts = (duration.setup_cache_s, duration.setup_s, duration.first_visits_s, duration.rounds_s)
    seconds = (_took(duration.seconds), *(_took(part) if part else "" for part in parts))
    return Row((visible(duration.name), *seconds, str(duration.cases)))


def _took(seconds: float) -> str:
    return format_time(seconds) if seconds < 1 else format_duration(seconds)


def measured(report: Report, style: Style) -> list[Row]:
    """The rows of values, below their titles; aligned as MEASURED says."""
    values = [
        measurement
        for measurement in report.measurements
        if measurement.summary is not None and (measurement.primary or style.verbose)
    ]
    if not values:
        return []
    declared = "throughput" if any(measurement.throughput is not None for measurement in values) else ""
    heading = titles("measured", "value", declared, "rounds", "spread", "", "")
    return [heading, *map(_measurement, values)]


def unmeasured(report: Report, style: Style) -> Iterator[tuple[str, list[list[str]]]]:
    """What failed, and what was skipped: a title, and the lines of each case."""
    failed: dict[Case, Failure] = {}
    for measurement in report.measurements:
        if measurement.failure is not None:
            failed.setdefault(measurement.case, measurement.failure)
    for verdict in (Verdict.FAILED, Verdict.SKIPPED):
        blocks = [case_lines(case, own, style) for case, own in failed.items() if verdict_of(own) is verdict]
        if blocks:
            yield verdict.value, blocks


def listed(report: Report, style: Style) -> list[str]:
    """Cases of `list`; quiet: their names alone, for a script."""
    if not report.listed:
        return []
    if style.quiet:
        return [visible(str(entry.case)) for entry in report.listed]
    heading = titles("case", "metric", "device", "cost", "tags")
    return [*table([heading, *map(_listed, report.listed)], "lllrl", style), ""]


def checks(report: Report, style: Style) -> list[str]:
    """Lines of `doctor` and `init`, each with what to do about it; quiet: without those that are well."""
    shown = [check for check in report.checks if not (style.quiet and check.state == "ok")]
    return _noted([(_check(check), "", check.fix) for check in shown], "lll", style)


def fineness(report: Report, style: Style) -> list[str]:
    """How fine each case was measured in an A/A check, the noisiest first."""
    if not report.fineness:
        return []
    heading = titles("precision", "rounds", "spread", "noise floor", "smallest detectable", "")
    return [*table([heading, *map(_fineness, report.fineness)], "lrrrrl", style), ""]


def builds(report: Report, style: Style) -> list[str]:
    """What `build` made of each side, and where the log is; quiet: what failed."""
    shown = [built for built in report.builds if not (style.quiet and built.state != "failed")]
    several = len({built.side.environment for built in shown}) > 1
    return _noted([(_built(built, several), built.reason, built.fix) for built in shown], "lllrll", style)


def merged(report: Report, style: Style) -> list[str]:
    """What `merge` took from each folder; quiet: nothing, the last line has the sum."""
    if not report.merged or style.quiet:
        return []
    source = "file" if report.command == "import" else "folder"
    heading = titles(source, "machines", "commits", "rounds added", "already present")
    return [*table([heading, *map(_merged, report.merged)], "llrrr", style), ""]


def acknowledgements(report: Report, style: Style) -> list[str]:
    """Entries of `ack`, each with its state; what judges tells of them in warnings."""
    if report.command != "ack" or not report.acknowledgements:
        return []
    heading = titles("acknowledged", "kind", "level", "metric", "until", "state", "reason")
    rows = [(_reviewed(reviewed), reviewed.why, reviewed.fix) for reviewed in report.acknowledgements]
    return _noted([(heading, "", ""), *rows], "llrllll", style)


def block(report: Report, style: Style) -> list[str]:
    """What `init` would have added to the configuration, as it stands there."""
    if report.block is None:
        return []
    where, text = report.block
    title = paint(f"add to {visible(where)}", "bold", style)
    return [f"  {title}", "", *(visible(line) for line in text.splitlines()), ""]


def settings(report: Report, style: Style) -> list[str]:
    """Effective settings of `config` and where each came from."""
    if not report.settings:
        return []
    heading = titles("setting", "value", "from")
    return [*table([heading, *map(_setting, report.settings)], "lll", style), ""]


def profile(report: Report, style: Style) -> list[str]:
    """The profile of a report that is about nothing else: operations, then bottlenecks."""
    export = report.profile
    if export is None or report.command != "profile":
        return []
    lines = [*operation_lines(export.operations, style), ""]
    if export.bottlenecks:
        title = f"  {paint('bottlenecks', 'bold', style)}"
        lines += [title, *bottleneck_lines(export.bottlenecks, style), ""]
    return lines


def _noted(rows: Sequence[tuple[Row, str, str]], aligns: str, style: Style) -> list[str]:
    """Rows as lines, each with the reason and the fix below it, where there are any."""
    layout = Layout.of([row for row, _, _ in rows], aligns, style)
    lines: list[str] = []
    for row, why, fix in rows:
        lines += layout.lines(row, style)
        lines += [f"    {word}: {visible(text)}" for word, text in (("why", why), ("fix", fix)) if text]
    return [*lines, ""] if lines else []


# -- rows ----------------------------------------------------------------------------------------------------------------


def _measurement(measurement: Measurement) -> Row:
    summary = measurement.summary
    assert summary is not None
    value = format_estimate(summary.center, summary.low, summary.high, visible(measurement.metric.unit))
    spread = "exact" if measurement.metric.exact else format_percent(summary.spread) if summary.n > 1 else ""
    flags = ", ".join(visible(flag) for flag in measurement.flags)
    name = visible(str(measurement.case))
    words = throughput_words(measurement.throughput)
    return Row((name, value, words, str(summary.n), spread, metric_words(measurement.metric.name), flags))


def _listed(entry: Listed) -> Row:
    device = "CPU" if not entry.needs_device else "GPU" if entry.gpus == 1 else f"{entry.gpus} GPUs"
    device += f", {entry.ranks} ranks" if entry.ranks > 1 else ""
    cost = "" if entry.cost_s is None else _took(entry.cost_s)
    tags = ", ".join(visible(tag) for tag in entry.tags)
    return Row((visible(str(entry.case)), metric_words(entry.metric), device, cost, tags))


def _check(check: Check) -> Row:
    mark, color = _CHECK_MARKS[check.state]
    return Row((check.state, visible(check.name), visible(check.found)), mark, color, accent=0)


def _fineness(item: Fineness) -> Row:
    mark, color = item.verdict.look
    spread = "exact" if item.spread is None else format_percent(item.spread)
    limits = ("" if value is None else format_percent(value) for value in (item.noise, item.min_detectable))
    name = visible(str(item.case))
    return Row((name, str(item.rounds), spread, *limits, metric_words(item.metric.name)), mark, color)


def _built(built: Built, several: bool) -> Row:
    mark, color = ("!", "bold red") if built.state == "failed" else (" ", "green")
    took = format_duration(built.seconds) if built.seconds else ""
    environment = visible(built.side.environment) if several else ""
    log = "" if built.state == "failed" else visible(built.log)  # the fix of what failed names it
    side = visible(built.side.label), visible(built.side.commit.subject)
    return Row((built.state, *side, took, environment, log), mark, color, accent=0)


def _reviewed(reviewed: Reviewed) -> Row:
    entry = reviewed.entry
    unit = METRICS[entry.metric].unit if entry.metric in METRICS else ""
    value = "" if entry.value is None else format_pair(entry.value, entry.value, unit)[0]
    level = value if entry.level is None else format_change(entry.level)
    metric = metric_words(entry.metric) if entry.metric else "all"
    reason = "  ".join(filter(None, (visible(entry.reason), visible(entry.link))))
    mark, color = (" ", "") if reviewed.state == "active" else ("?", "yellow")
    return Row(
        (visible(entry.pattern), entry.kind, level, metric, visible(entry.until), reviewed.state, reason), mark, color
    )


def _merged(part: Merged) -> Row:
    numbers = (str(number) for number in (part.commits, part.added, part.known))
    return Row((visible(part.folder), visible(", ".join(part.machines)), *numbers))


def _setting(setting: Setting) -> Row:
    return Row((visible(setting.name), visible(_literal(setting.value)), visible(setting.source)))


def _literal(value: Any) -> str:
    """The value as it would stand in asv.conf.json."""
    return json.dumps(value, ensure_ascii=False, default=str)
