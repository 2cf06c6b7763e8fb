"""From a file to a Config: asv's keys, each checked, and our settings."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regress.config.configuration import ASV_KEYS, OTHER_ASV_KEYS, Config
from regress.config.finding import locate, parse
from regress.config.places import check_places
from regress.config.repository import repository
from regress.config.settings import settings_with
from regress.config.values import check_patterns, is_number, shown
from regress.errors import ConfigError
from regress.model import Settings
from regress.text.wording import nearest, reason

ALIKE = 0.8
"""From here on a key may be another one, misspelt."""


def load(path: Path | None, start: Path) -> Config:
    """The configuration in `path`, or if that is None the nearest one from `start` up to the top of its git repository.

    If no folder on the way has one, benchmarks/ and asv_bench/ under the top are searched. Raises ConfigError.
    """
    file = locate(path, start.resolve())
    try:
        return _read(file, start.resolve(), *parse(file))
    except OSError as error:  # a name of 500 letters, a loop of links
        why = reason(error)
        raise ConfigError(
            f"{file} names {error.filename}", why=f"it cannot be looked at: {why}", fix="correct that name"
        ) from error


def _read(file: Path, start: Path, data: dict[str, Any], doubts: list[str]) -> Config:
    doubts = [*doubts, *_check_version(file, data), *_misspelt(file.name, data)]
    ours = data.pop("regress", {})
    if not isinstance(ours, dict):
        raise ConfigError(f'"regress" in {file} is {shown(ours)}', why="expected an object", fix='write "regress": {…}')
    read = _Reader(file, data)
    repo, address, taken = repository(file, read.required("repo"))
    thresholds = read.thresholds()
    config = Config(
        path=file,
        root=file.parent,
        start=start,
        repo=repo,
        address=address,
        repo_subdir=read.text("repo_subdir", ""),
        project=read.text("project", "project"),
        branches=read.branches(),
        benchmark_dir=read.folder("benchmark_dir", "benchmarks"),
        results_dir=read.folder("results_dir", "results"),
        html_dir=read.folder("html_dir", "html"),
        default_benchmark_timeout_s=read.seconds("default_benchmark_timeout", 60.0),
        show_commit_url=read.text("show_commit_url", "#").removeprefix("#"),  # asv's "#" is a link to nowhere
        regressions_thresholds=thresholds,
        settings=_with_asvs(thresholds, settings_with(Settings(), ours, file.name)),
        asv=data,
        sources=_sources(file.name, ours, data),
        warnings=(*doubts, *taken),
    )
    check_places(config)
    return config


def with_overrides(config: Config, **settings: Any) -> Config:
    """The configuration with settings from the command line; those that are None were not given. Raises ConfigError."""
    given = {name: value for name, value in settings.items() if value is not None}
    for name in given.keys() & {"cache_dir", "report_dir"}:
        given[name] = os.path.abspath(given[name])  # in a shell a path is relative to where one is, not to the file
    changed = dataclasses.replace(
        config,
        settings=settings_with(config.settings, given, "command line"),
        sources=config.sources | dict.fromkeys(given, "command line"),
    )
    check_places(changed)
    return changed


def _with_asvs(thresholds: Mapping[str, float], settings: Settings) -> Settings:
    """The settings with asv's thresholds before ours, which then count more. Of several that match asv takes the largest."""
    asvs = {pattern: {"time": thresholds[pattern]} for pattern in sorted(thresholds, key=lambda name: thresholds[name])}
    own = {pattern: {**asvs.pop(pattern, {}), **by_metric} for pattern, by_metric in settings.thresholds.items()}
    return dataclasses.replace(settings, thresholds={**asvs, **own})


def _sources(name: str, ours: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, str]:
    given = {*ours, *(["thresholds"] if data.get("regressions_thresholds") else [])}
    settings = {field.name: name if field.name in given else "default" for field in dataclasses.fields(Settings)}
    return {key: name if key in data else "default" for key in ASV_KEYS} | settings


def _check_version(path: Path, data: dict[str, Any]) -> list[str]:
    version = data.get("version")
    if version is None:
        return [f'{path.name} has no "version": 1, without which asv will not read it']
    if version != 1:
        raise ConfigError(f"{path} has version {shown(version)}", why="this program knows version 1", fix="asv update")
    return []


def _misspelt(name: str, data: Mapping[str, Any]) -> list[str]:
    """Warnings of keys that are spelt almost like one that is missing. Any other key may be that of a plugin of asv's."""
    known = {*ASV_KEYS, *OTHER_ASV_KEYS, "regress"}
    missing = sorted(known - data.keys())
    near = {key: nearest(key.lower(), missing, alike=ALIKE) for key in data if key not in known}
    return [
        f'{name} has "{key}", which neither asv nor regress reads; fix: write "{likely[0]}"'
        for key, likely in near.items()
        if likely
    ]


class _Reader:
    """asv's keys of one file, each checked for the type that asv expects but does not check."""

    def __init__(self, path: Path, data: Mapping[str, Any]) -> None:
        self.path, self.data = path, data

    def error(self, name: str, value: Any, expected: str) -> ConfigError:
        return ConfigError(
            f'"{name}" in {self.path} is {shown(value)}', why=f"expected {expected}", fix=f'correct "{name}"'
        )

    def text(self, name: str, default: str) -> str:
        value = self.data.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.error(name, value, "a string")
        return value

    def required(self, name: str) -> str:
        value = self.text(name, "")
        if not value:
            meant = next((key for key in self.data if key != name and nearest(key.lower(), [name], alike=ALIKE)), "")
            fix = f'write "{name}" for "{meant}"' if meant else f'add "{name}": "." (relative to the file)'
            raise ConfigError(f'{self.path} has no "{name}"', why="asv needs it too", fix=fix)
        return value

    def folder(self, name: str, default: str) -> Path:
        return (self.path.parent / (self.text(name, default) or default)).resolve()

    def seconds(self, name: str, default: float) -> float:
        value = self.data.get(name, default)
        if not is_number(value) or not value > 0:
            raise self.error(name, value, "a number of seconds above 0")
        return float(value)

    def branches(self) -> tuple[str, ...]:
        value = self.data.get("branches", [None])
        if (
            not isinstance(value, list)
            or not value
            or not all(branch is None or isinstance(branch, str) for branch in value)
        ):
            raise self.error("branches", value, 'a list of names, such as ["main"]')
        return tuple(branch for branch in value if branch)

    def thresholds(self) -> dict[str, float]:
        value = self.data.get("regressions_thresholds", {})
        if not isinstance(value, dict) or not all(
            is_number(threshold) and threshold > 0 for threshold in value.values()
        ):
            raise self.error("regressions_thresholds", value, "numbers above 0 by regular expression of names")
        check_patterns("regressions_thresholds", value, self.path.name)
        return {name: float(threshold) for name, threshold in value.items()}
