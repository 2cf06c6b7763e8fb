"""Our settings: which there are, and which values each may have."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regress.choices import DEVICES
from regress.config.cluster import read_cluster
from regress.config.environments import read_environment
from regress.config.values import check_patterns, is_number, shown
from regress.errors import ConfigError
from regress.model import METRICS, THRESHOLD_KINDS, Better, Cluster, Environment, Settings
from regress.text.wording import correction


@dataclass(frozen=True)
class _Rule:
    """Which values a setting may have, beyond its type; `expected` says it to the user."""

    accepts: Callable[[Any], bool]
    expected: str


_SHARE = _Rule(lambda value: 0 < value < 1, "a number between 0 and 1")
RULES = {
    r".*_threshold": _Rule(lambda value: 0 < value <= 1, 'a relative change above 0 and up to 1, such as 0.05 or "5%"'),
    r"(paired_)?alpha|confidence": _SHARE,
    r"clock_tolerance": _Rule(lambda value: 0 <= value < 1, "a relative difference from 0 to below 1, such as 0.01"),
    r"good_rounds": _Rule(lambda value: 0 < value <= 1, "a share above 0 and up to 1"),
    r".*_floor_s": _Rule(lambda value: value >= 0, "a number of seconds, 0 or more"),
    r".*_timeout_s|budget_s": _Rule(lambda value: value > 0, "a number of seconds above 0"),
    r".*_bytes": _Rule(lambda value: value >= 0, "a number of bytes, 0 or more"),
    r"memory_rounds": _Rule(lambda value: value >= 0, "0 or more"),
    r"check_rounds": _Rule(
        lambda value: value == 0 or value >= 2, "0 (in steps), or 2 or more, as one round shows no spread"
    ),
    r"(run|sweep)_rounds": _Rule(lambda value: value >= 2, "2 or more, as one round shows no spread"),
    r"worktrees": _Rule(lambda value: value >= 2, "2 or more, one for each side"),
    r"seed": _Rule(lambda value: value >= 0, "0 or more"),
    r"process": _Rule(lambda value: value in ("auto", "fresh"), '"auto" or "fresh"'),
    r"device": _Rule(DEVICES.__contains__, f"one of {', '.join(DEVICES)}"),
    r"report_dir": _Rule(bool, "the name of a folder"),
    r"report_url": _Rule(
        lambda value: value.startswith(("https://", "http://")) or not value, "an address that begins with https://"
    ),
    r"acks": _Rule(bool, "the name of a file"),
}
"""By regular expression of the setting's name. The first that matches the whole name counts."""

_PATTERNS = frozenset({"better", "critical", "cuda", "gate_thresholds", "gates", "release_tags", "thresholds"})
"""Settings that are regular expressions, or are by one."""

_METRICS = (*THRESHOLD_KINDS, "value", *METRICS)
"""What a threshold can be about: a kind of metrics, a tracked number, or one metric."""


_TYPES = {
    float: "a number",
    int: "a whole number",
    str: "a string",
    bool: "true or false",
    tuple[str, ...]: "a string or a list of strings",
    Mapping[
        str, Mapping[str, float]
    ]: 'changes above 0 and up to 1 by pattern and metric, such as {"ops.*": {"gpu_time": "3%"}}',
    Mapping[str, Better]: 'lower or higher by pattern, such as {"^io\\\\.track_": "higher"}',
    Mapping[str, tuple[str, ...]]: 'metrics by pattern, such as {"ops.*": ["host_time"]}',
    Mapping[str, Environment]: 'environments by name, such as {"next": {"python": "envs/next/bin/python"}}',
}


def settings_with(base: Settings, given: Mapping[str, Any], source: str) -> Settings:
    """`base` with the values in `given` after checks."""
    kinds = typing.get_type_hints(Settings)
    values = {}
    for name, value in given.items():
        if name not in kinds:
            raise _unknown(name, list(kinds), source)
        values[name] = _checked(name, value, kinds[name], source)
    return dataclasses.replace(base, **values)


def _unknown(name: str, known: list[str], source: str) -> ConfigError:
    fix = correction(name.lower().replace("-", "_"), known, "remove it, or write one of these")
    return ConfigError(f'unknown setting "{name}" ({source})', why="known are " + ", ".join(sorted(known)), fix=fix)


def _checked(name: str, value: Any, kind: Any, source: str) -> Any:
    rule = next((rule for pattern, rule in RULES.items() if re.fullmatch(pattern, name)), None)
    converted = _converted(name, value, kind)
    if converted is None or (rule is not None and not rule.accepts(converted)):
        expected = rule.expected if rule is not None else _TYPES[kind]
        raise ConfigError(f'"{name}" is {shown(value)} ({source})', why=f"expected {expected}", fix=f'correct "{name}"')
    if name in _PATTERNS:
        check_patterns(name, [converted] if isinstance(converted, str) else converted, source)
    return converted


def _converted(name: str, value: Any, kind: Any) -> Any:
    """The value in the setting's type; None if it has another."""
    if kind is float:
        if name.endswith("_threshold"):
            return _relative(value)
        return float(value) if is_number(value) else None
    if kind == tuple[str, ...]:
        listed = [value] if isinstance(value, str) else value
        good = isinstance(listed, (list, tuple)) and all(isinstance(item, str) and item.strip() for item in listed)
        return tuple(listed) if good else None
    if kind == Mapping[str, Mapping[str, float]]:
        return _by_pattern(name, value)
    if kind == Mapping[str, Better]:
        good = isinstance(value, dict) and all(direction in ("lower", "higher") for direction in value.values())
        return dict(value) if good else None
    if kind == Mapping[str, tuple[str, ...]]:
        return _metrics_by_pattern(name, value)
    if kind == Mapping[str, Environment]:
        return {key: read_environment(key, item) for key, item in value.items()} if isinstance(value, dict) else None
    if kind is Cluster:
        return read_cluster(value)
    return value if type(value) is kind else None  # exactly: True is an int too


def _relative(value: Any) -> float | None:
    """A relative change: 0.05 or "5%"."""
    if isinstance(value, str):
        percent = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*%\s*", value)
        return float(percent[1]) / 100 if percent else None
    return float(value) if is_number(value) else None


def _by_pattern(name: str, value: Any) -> dict[str, dict[str, float]] | None:
    """Thresholds by pattern and metric; None if the value is something else. Raises ConfigError for an unknown metric."""
    if not isinstance(value, Mapping) or not all(isinstance(by_metric, Mapping) for by_metric in value.values()):
        return None
    thresholds: dict[str, dict[str, float]] = {}
    for pattern, by_metric in value.items():
        for metric, given in by_metric.items():
            _check_metric(name, metric, {pattern: {metric: given}}, _METRICS)
            change = _relative(given)
            if change is None or not 0 < change <= 1:
                return None
            thresholds.setdefault(pattern, {})[metric] = change
    return thresholds


def _metrics_by_pattern(name: str, value: Any) -> dict[str, tuple[str, ...]] | None:
    """Names of metrics by pattern; None if the value is something else. Raises ConfigError for an unknown metric."""
    if not isinstance(value, Mapping):
        return None
    by_pattern: dict[str, tuple[str, ...]] = {}
    for pattern, given in value.items():
        metrics = _converted(name, given, tuple[str, ...])
        if metrics is None:
            return None
        for metric in metrics:
            _check_metric(name, metric, {pattern: given}, tuple(METRICS))
        by_pattern[pattern] = metrics
    return by_pattern


def _check_metric(name: str, metric: str, given: Any, known: Sequence[str]) -> None:
    if metric not in known:
        raise ConfigError(
            f'"{name}" has {shown(given)}',
            why=f"there is no metric {metric}; known are {', '.join(known)}",
            fix=correction(metric, known, "take one of these"),
        )
