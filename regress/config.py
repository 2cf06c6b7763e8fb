"""The configuration: asv.conf.json with our settings under its key "regress".

asv's own keys keep asv's meaning and defaults, and relative paths are relative to the file's folder; keys that neither
knows are left to asv, which keeps them in silence. Under "regress" nothing is silent: an unknown key is an error.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import os
import re
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regress.errors import ConfigError
from regress.model import DEFAULT_ENVIRONMENT, EXISTING, METRICS, THRESHOLD_KINDS, Environment, Setting, Settings

__all__ = [
    "Config",
    "acks_file",
    "cache_dir",
    "effective",
    "environment",
    "environments_dir",
    "find",
    "load",
    "lock_dir",
    "own_paths",
    "with_overrides",
]

_FILE_NAMES = ("asv.conf.json", "asv.conf.jsonc")
_USUAL_FOLDERS = ("benchmarks", "asv_bench")
_ASV_TYPES = ("virtualenv", "uv", "conda", "mamba", "rattler", EXISTING)
"""Types of environments that asv has or had; a plugin of asv's may bring others."""
_ASV_KEYS = (
    "project",
    "repo",
    "repo_subdir",
    "branches",
    "benchmark_dir",
    "results_dir",
    "html_dir",
    "default_benchmark_timeout",
    "show_commit_url",
    "regressions_thresholds",
)


@dataclass(frozen=True)
class Config:
    """What one asv.conf.json says, with paths resolved."""

    path: Path
    root: Path
    """Folder of the file; relative paths in it start here."""
    repo: Path
    repo_subdir: str
    project: str
    branches: tuple[str, ...]
    """Empty: the default branch."""
    benchmark_dir: Path
    results_dir: Path
    html_dir: Path
    default_benchmark_timeout_s: float
    show_commit_url: str
    """What a commit's sha is appended to; empty if there is none."""
    regressions_thresholds: dict[str, float]
    """asv's: relative change by regular expression of names. Among the settings' `thresholds` too, for times."""
    settings: Settings
    asv: dict[str, Any]
    """The whole file as parsed, less the key "regress": environments, matrix, pythons, plugins."""
    sources: dict[str, str] = field(default_factory=dict)
    """Who set each of our settings and each of asv's keys that we use: "default", "asv.conf.json" or "command line"."""
    warnings: tuple[str, ...] = ()


# -- reading -------------------------------------------------------------------------------------------------------------


def load(path: Path | None, start: Path) -> Config:
    """The configuration in `path`, or if that is None the nearest one from `start` up to the top of its git repository.

    Where no folder on the way has one, benchmarks/ and asv_bench/ under the top are looked at. Raises ConfigError.
    """
    found = _find(path, start.resolve())
    data = _parse(found)
    warnings = _check_version(found, data)
    ours = data.pop("regress", {})
    if not isinstance(ours, dict):
        raise ConfigError(
            f'"regress" in {found} is {_shown(ours)}', why="expected an object", fix='write "regress": {…}'
        )
    read = _Reader(found, data)
    repo, doubts = _repository(read)
    thresholds = read.thresholds()
    config = Config(
        path=found,
        root=found.parent,
        repo=repo,
        repo_subdir=read.text("repo_subdir", ""),
        project=read.text("project", "project"),
        branches=read.branches(),
        benchmark_dir=read.folder("benchmark_dir", "benchmarks"),
        results_dir=read.folder("results_dir", "results"),
        html_dir=read.folder("html_dir", "html"),
        default_benchmark_timeout_s=read.seconds("default_benchmark_timeout", 60.0),
        show_commit_url=read.text("show_commit_url", "#").removeprefix("#"),  # asv's "#" is a link to nowhere
        regressions_thresholds=thresholds,
        settings=_with_asvs(thresholds, _settings(Settings(), ours, found.name)),
        asv=data,
        sources=_sources(found.name, ours, data),
        warnings=(*warnings, *doubts),
    )
    _check_places(config)
    return config


def with_overrides(config: Config, **settings: Any) -> Config:
    """The configuration with settings from the command line; those that are None were not given. Raises ConfigError."""
    given = {name: value for name, value in settings.items() if value is not None}
    for name in given.keys() & {"cache_dir", "report_dir"}:
        given[name] = os.path.abspath(given[name])  # in a shell a path is relative to where one is, not to the file
    changed = dataclasses.replace(
        config,
        settings=_settings(config.settings, given, "command line"),
        sources=config.sources | dict.fromkeys(given, "command line"),
    )
    _check_places(changed)
    return changed


def find(start: Path) -> Path | None:
    """The nearest configuration as `load` looks for it; None where there is none. Raises ConfigError where there are two."""
    start = start.resolve()
    top = _git_top(start) or start
    for folder in (start, *start.parents):
        found = _in_folder(folder)
        if found is not None:
            return _placed(found)
        if folder == top:
            break
    usual = [found for found in (_in_folder(top / name) for name in _USUAL_FOLDERS) if found is not None]
    if len(usual) > 1:
        raise _two(usual)
    return _placed(usual[0]) if usual else None


def _find(path: Path | None, start: Path) -> Path:
    if path is None:
        found = find(start)
        if found is None:
            raise ConfigError(
                f"there is no asv.conf.json in {start}",
                why=f"nor above it up to {_git_top(start) or start}, "
                f"nor in {' or '.join(name + '/' for name in _USUAL_FOLDERS)} there",
                fix="regress init, or name it with --config FILE",
            )
        return found
    found = _in_folder(path) if path.is_dir() else path
    if found is None or not found.is_file():
        raise ConfigError(f"there is no file {path}", why="it was named with --config", fix="--config FILE")
    return _placed(found)


def _placed(found: Path) -> Path:
    """The absolute path. Of a link, that of the link: its folder is where relative paths start, as in asv."""
    return found.parent.resolve() / found.name


def _in_folder(folder: Path) -> Path | None:
    found = [folder / name for name in _FILE_NAMES if (folder / name).is_file()]
    if len(found) > 1:
        raise _two(found)
    return found[0] if found else None


def _two(found: list[Path]) -> ConfigError:
    why = " and ".join(str(each) for each in found)
    return ConfigError("there are two configurations", why=why, fix=f"name one: --config {found[0]}")


def _parse(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}", why=str(error), fix="make it a readable UTF-8 file") from error
    try:
        data = json.loads(text)  # json5 takes a hundred times as long, and most files need none of it
    except ValueError:
        data = _parse_json5(path, text)
    if not isinstance(data, dict):
        raise ConfigError(f"{path} holds {_shown(data)}", why="expected an object", fix="begin with { and end with }")
    return data


def _parse_json5(path: Path, text: str) -> Any:
    import json5

    try:
        return json5.loads(text)
    except ValueError as error:
        place = re.fullmatch(r"<string>:(\d+) (.*) at column (\d+)", str(error), re.DOTALL)
        line, why, column = place.groups() if place else ("1", str(error), "1")
        why = why.replace("\n", "end of line")
        raise ConfigError(f"{path}:{line}:{column} is not JSON5", why=why, fix=f"correct line {line}") from error


def _with_asvs(thresholds: Mapping[str, float], settings: Settings) -> Settings:
    """The settings with asv's thresholds before ours, which then count more. Of several that match asv takes the largest."""
    asvs = {pattern: {"time": thresholds[pattern]} for pattern in sorted(thresholds, key=lambda each: thresholds[each])}
    own = {pattern: {**asvs.pop(pattern, {}), **by_metric} for pattern, by_metric in settings.thresholds.items()}
    return dataclasses.replace(settings, thresholds={**asvs, **own})


def _sources(name: str, ours: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, str]:
    given = {*ours, *(["thresholds"] if data.get("regressions_thresholds") else [])}
    settings = {each.name: name if each.name in given else "default" for each in dataclasses.fields(Settings)}
    return {key: name if key in data else "default" for key in _ASV_KEYS} | settings


def _check_version(path: Path, data: dict[str, Any]) -> list[str]:
    version = data.get("version")
    if version is None:
        return [f'{path.name} has no "version": 1, without which asv will not read it']
    if version != 1:
        raise ConfigError(f"{path} has version {_shown(version)}", why="this program knows version 1", fix="asv update")
    return []


class _Reader:
    """asv's keys of one file, each checked for the type that asv expects but does not check."""

    def __init__(self, path: Path, data: Mapping[str, Any]) -> None:
        self.path, self.data = path, data

    def error(self, name: str, value: Any, expected: str) -> ConfigError:
        return ConfigError(
            f'"{name}" in {self.path} is {_shown(value)}', why=f"expected {expected}", fix=f'correct "{name}"'
        )

    def text(self, name: str, default: str) -> str:
        value = self.data.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.error(name, value, "a string")
        return value

    def folder(self, name: str, default: str) -> Path:
        return (self.path.parent / (self.text(name, default) or default)).resolve()

    def seconds(self, name: str, default: float) -> float:
        value = self.data.get(name, default)
        if not _is_number(value) or not value > 0:
            raise self.error(name, value, "a number of seconds above 0")
        return float(value)

    def branches(self) -> tuple[str, ...]:
        value = self.data.get("branches", [None])
        if not isinstance(value, list) or not value or not all(each is None or isinstance(each, str) for each in value):
            raise self.error("branches", value, 'a list of names, such as ["main"]')
        return tuple(each for each in value if each)

    def thresholds(self) -> dict[str, float]:
        value = self.data.get("regressions_thresholds", {})
        if not isinstance(value, dict) or not all(_is_number(each) and each > 0 for each in value.values()):
            raise self.error("regressions_thresholds", value, "numbers above 0 by regular expression of names")
        _check_patterns("regressions_thresholds", value, self.path.name)
        return {name: float(each) for name, each in value.items()}


def _check_places(config: Config) -> None:
    """Refuse folders of results that hold the code: what lies in them does not count as a change."""
    for name, folder in _own_places(config).items():
        for what, other in (("repository", config.repo), ("suite", config.benchmark_dir)):
            if other.is_relative_to(folder):
                fix = f'give "{name}" a folder of its own'
                raise ConfigError(
                    f'"{name}" in {config.path} is {folder}', why=f"that folder holds the {what}", fix=fix
                )
    report = _own_places(config)["report_dir"]
    if report.is_relative_to(config.html_dir):
        why = f"asv publish empties html_dir, {config.html_dir}"
        raise ConfigError(
            f'"report_dir" in {config.path} is {report}', why=why, fix='give "report_dir" a folder outside it'
        )


# -- the repository ------------------------------------------------------------------------------------------------------


def _repository(read: _Reader) -> tuple[Path, list[str]]:
    """The local repository that "repo" means, and doubts about it."""
    value = read.text("repo", "")
    if not value:
        raise ConfigError(
            f'{read.path} has no "repo"', why="asv needs it too", fix='add "repo": "." (relative to the file)'
        )
    path = (read.path.parent / value).resolve()
    if path.is_dir():
        return path, []
    if not re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+://|[^/\\]+@[^/\\]+:", value):
        raise ConfigError(f'"repo" in {read.path} is {value!r}', why=f"there is no folder {path}", fix='correct "repo"')
    top = _git_top(read.path.parent)
    if top is None or _project_of(value) not in {top.name, *map(_project_of, _remotes(top))}:
        raise ConfigError(
            f'"repo" in {read.path} is the address {value}',
            why="regress measures in a local repository, and this one is another"
            if top
            else "regress needs a local one",
            fix=f'git clone {value}, then set "repo" to the folder',
        )
    return top, [f'"repo" is {value}; taken is this clone of it, {top}, and nothing is fetched']


def _project_of(address: str) -> str:
    """Last part of an address: a fork has another owner but the same name."""
    return re.split(r"[/:\\]", address.rstrip("/"))[-1].removesuffix(".git")


def _git_top(folder: Path) -> Path | None:
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def _git_dir(top: Path) -> Path:
    """The git folder of a repository; for linked worktrees and submodules too, and one for all linked worktrees."""
    place = top / ".git"
    if place.is_file():
        place = (top / place.read_text(encoding="utf-8").removeprefix("gitdir:").strip()).resolve()
        shared = place / "commondir"
        if shared.is_file():
            place = place / shared.read_text(encoding="utf-8").strip()
    return place.resolve()


def _remotes(top: Path) -> list[str]:
    try:
        text = (_git_dir(top) / "config").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return re.findall(r"^\s*url\s*=\s*(\S+)", text, re.MULTILINE)


# -- settings ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rule:
    """Which values a setting may have, beyond its type; `expected` says it to the user."""

    accepts: Callable[[Any], bool]
    expected: str


_SHARE = _Rule(lambda value: 0 < value < 1, "a number between 0 and 1")
_RULES = {
    r".*_threshold": _Rule(lambda value: 0 < value <= 1, 'a relative change above 0 and up to 1, such as 0.05 or "5%"'),
    r"alpha|confidence": _SHARE,
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
    r"device": _Rule(
        lambda value: value in ("auto", "cuda", "torch", "cpu", "fake"), '"auto", "cuda", "torch", "cpu" or "fake"'
    ),
    r"report_dir": _Rule(bool, "the name of a folder"),
    r"acks": _Rule(bool, "the name of a file"),
}
"""By regular expression of the setting's name. The first that matches the whole name counts."""

_PATTERNS = frozenset({"critical", "cuda", "gate_thresholds", "release_tags", "thresholds"})
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
    Mapping[str, Environment]: 'environments by name, such as {"next": {"python": "envs/next/bin/python"}}',
}


def _settings(base: Settings, given: Mapping[str, Any], source: str) -> Settings:
    """`base` with the values in `given` after checks."""
    kinds = typing.get_type_hints(Settings)
    values = {}
    for name, value in given.items():
        if name not in kinds:
            raise _unknown(name, list(kinds), source)
        values[name] = _checked(name, value, kinds[name], source)
    return dataclasses.replace(base, **values)


def _unknown(name: str, known: list[str], source: str) -> ConfigError:
    near = difflib.get_close_matches(name.lower().replace("-", "_"), known, n=1)
    fix = f'write "{near[0]}"' if near else "remove it, or write one of these"
    return ConfigError(f'unknown setting "{name}" ({source})', why="known are " + ", ".join(sorted(known)), fix=fix)


def _checked(name: str, value: Any, kind: Any, source: str) -> Any:
    rule = next((rule for pattern, rule in _RULES.items() if re.fullmatch(pattern, name)), None)
    converted = _converted(name, value, kind)
    if converted is None or (rule is not None and not rule.accepts(converted)):
        expected = rule.expected if rule is not None else _TYPES[kind]
        raise ConfigError(
            f'"{name}" is {_shown(value)} ({source})', why=f"expected {expected}", fix=f'correct "{name}"'
        )
    if name in _PATTERNS:
        _check_patterns(name, [converted] if isinstance(converted, str) else converted, source)
    return converted


def _check_patterns(name: str, patterns: Iterable[str], source: str) -> None:
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ConfigError(
                f'"{name}" has {_shown(pattern)} ({source})',
                why=f"it is no regular expression: {error}",
                fix="correct that pattern",
            ) from error


def _converted(name: str, value: Any, kind: Any) -> Any:
    """The value in the setting's type; None if it has another."""
    if kind is float:
        if name.endswith("_threshold"):
            return _relative(value)
        return float(value) if _is_number(value) else None
    if kind == tuple[str, ...]:
        listed = [value] if isinstance(value, str) else value
        good = isinstance(listed, (list, tuple)) and all(isinstance(each, str) and each.strip() for each in listed)
        return tuple(listed) if good else None
    if kind == Mapping[str, Mapping[str, float]]:
        return _by_pattern(name, value)
    if kind == Mapping[str, Environment]:
        return {key: _environment(key, each) for key, each in value.items()} if isinstance(value, dict) else None
    return value if type(value) is kind else None  # exactly: True is an int too


def _relative(value: Any) -> float | None:
    """A relative change: 0.05 or "5%"."""
    if isinstance(value, str):
        percent = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*%\s*", value)
        return float(percent[1]) / 100 if percent else None
    return float(value) if _is_number(value) else None


def _by_pattern(name: str, value: Any) -> dict[str, dict[str, float]] | None:
    """Thresholds by pattern and metric; None where the value is something else. Raises ConfigError for an unknown metric."""
    if not isinstance(value, Mapping) or not all(isinstance(each, Mapping) for each in value.values()):
        return None
    found: dict[str, dict[str, float]] = {}
    for pattern, by_metric in value.items():
        for metric, given in by_metric.items():
            if metric not in _METRICS:
                near = difflib.get_close_matches(metric, _METRICS, n=1)
                raise ConfigError(
                    f'"{name}" has {_shown({pattern: {metric: given}})}',
                    why=f"there is no metric {metric}; known are {', '.join(_METRICS)}",
                    fix=f'write "{near[0]}"' if near else "take one of these",
                )
            change = _relative(given)
            if change is None or not 0 < change <= 1:
                return None
            found.setdefault(pattern, {})[metric] = change
    return found


def _environment(name: str, value: Any) -> Environment:
    """The environment of an entry. Raises ConfigError where the entry is none."""
    where = f'environment "{name}"'
    if not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", name) or name == DEFAULT_ENVIRONMENT:
        raise ConfigError(
            f"{where} cannot have this name",
            why=f'a name is letters, digits, "_", ".", "+" and "-", and not {DEFAULT_ENVIRONMENT}, the one without a name',
            fix="rename it",
        )
    known = [each.name for each in dataclasses.fields(Environment) if each.name != "name"]
    given = value if isinstance(value, dict) else {"": value}
    for key, each in given.items():
        good = isinstance(each, dict) and all(isinstance(text, str) for text in each.values())
        if key not in known or not (good if key == "variables" else isinstance(each, str)):
            raise ConfigError(
                f"{where} has {_shown({key: each} if key else each)}",
                why=f"expected {', '.join(known)}: strings, and for variables an object of strings",
                fix=f"correct {where}",
            )
    if given.get("wheel") and given.get("fetch"):
        raise ConfigError(f"{where} has both a wheel and a command that fetches one", why="one of them is measured",
                          fix='leave "wheel" or "fetch" out')  # fmt: skip
    other = next((key for key in ("python", "wheel", "fetch") if given.get(key)), "")
    if given.get("asv") and other:
        raise ConfigError(f'{where} has both "asv" and "{other}"', why="asv brings interpreter and code",
                          fix=f'leave "asv" or "{other}" out')  # fmt: skip
    return Environment(name, **given)


def environment(config: Config, name: str) -> Environment:
    """The environment of that name, also as it is recorded (with `-py3.12` behind it); without a name the usual one. Raises
    ConfigError where there is none.

    A name that begins with a type of asv's is asv's: whether asv has it shows when it is made.
    """
    asv_type = str(config.asv.get("environment_type") or "")
    # An existing interpreter has no commit installed by asv: what it is there, a worktree is for us.
    name = name or config.settings.environment or (DEFAULT_ENVIRONMENT if asv_type in ("", EXISTING) else asv_type)
    plain = re.sub(r"-py[\d.]+$", "", name)
    if plain == DEFAULT_ENVIRONMENT:
        return Environment()
    found = config.settings.environments.get(name) or config.settings.environments.get(plain)
    if found is None and re.split("[-:]", name)[0] in {*_ASV_TYPES, asv_type}:
        return Environment(name, asv=name)
    if found is None:
        known = sorted(config.settings.environments)
        raise ConfigError(
            f"there is no environment {name}",
            why=f"the configuration has {', '.join(known)}" if known else "the configuration has no environments",
            fix='add it to "environments" under "regress" in asv.conf.json',
        )
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 60 else text[:59] + "…"


# -- places --------------------------------------------------------------------------------------------------------------


def cache_dir(config: Config) -> Path:
    """Folder for worktrees, builds and results of checks: one a repository, shared by its linked worktrees.

    Under the setting `cache_dir`, else $REGRESS_CACHE_DIR, else $XDG_CACHE_HOME/regress, else ~/.cache/regress.
    """
    top = _git_top(config.repo) or config.repo
    git_dir = _git_dir(top)
    name = git_dir.parent.name if git_dir.name == ".git" else top.name
    return _cache_base(config)[0] / f"{name}-{hashlib.sha256(os.fsencode(git_dir)).hexdigest()[:8]}"


def _cache_base(config: Config) -> tuple[Path, str]:
    """The folder above the caches of all repositories, and who chose it."""
    if config.settings.cache_dir:
        source = config.sources.get("cache_dir", "default")
        return (config.root / Path(config.settings.cache_dir).expanduser()).resolve(), source
    return _usual_cache()


def usual_cache() -> Path:
    """The folder above all caches, where no configuration says another one."""
    return _usual_cache()[0]


def _usual_cache() -> tuple[Path, str]:
    if os.environ.get("REGRESS_CACHE_DIR"):
        return Path(os.environ["REGRESS_CACHE_DIR"]).expanduser().resolve(), "$REGRESS_CACHE_DIR"
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if shared.is_absolute():  # a relative one is invalid and to be ignored, says the XDG specification
        return (shared / "regress").resolve(), "$XDG_CACHE_HOME"
    return (Path.home() / ".cache" / "regress").resolve(), "default"


def lock_dir(config: Config) -> Path:
    """Folder of this node with the locks of its GPUs."""
    return _lock_dir(config)[0]


def _lock_dir(config: Config) -> tuple[Path, str]:
    """The folder, and who chose it. The default is the same for all users: the folder for temporary files is not ($TMPDIR)."""
    if config.settings.lock_dir:
        return (config.root / Path(config.settings.lock_dir).expanduser()).resolve(), config.sources["lock_dir"]
    return Path("/tmp/regress-locks"), "default"


def environments_dir(config: Config) -> Path:
    """Folder for environments that asv makes for us: below `env_dir` where asv.conf.json has one, else in the cache."""
    given = config.asv.get("env_dir")
    if isinstance(given, str) and given:
        return (config.root / Path(given).expanduser()).resolve() / "regress"
    return cache_dir(config) / "environments"


def acks_file(config: Config) -> Path:
    """The acknowledgement file; it need not be there."""
    return (config.root / Path(config.settings.acks).expanduser()).resolve()


def own_paths(config: Config) -> tuple[Path, ...]:
    """Folders that we write, and the acknowledgement file: what changes in them is no change of the project."""
    return (*_own_places(config).values(), acks_file(config), cache_dir(config), environments_dir(config))


def _own_places(config: Config) -> dict[str, Path]:
    report = (config.root / config.settings.report_dir).resolve()
    return {"results_dir": config.results_dir, "html_dir": config.html_dir, "report_dir": report}


def effective(config: Config) -> tuple[Setting, ...]:
    """Everything that counts and where it came from: the keys of asv's that we use, then our settings; paths resolved."""
    values: dict[str, Any] = {name: getattr(config, name, None) for name in _ASV_KEYS}
    values["default_benchmark_timeout"] = config.default_benchmark_timeout_s
    values |= {each.name: getattr(config.settings, each.name) for each in dataclasses.fields(config.settings)}
    values |= _own_places(config) | {"cache_dir": cache_dir(config), "lock_dir": lock_dir(config)}
    sources = config.sources | {"cache_dir": _cache_base(config)[1], "lock_dir": _lock_dir(config)[1]}
    return tuple(Setting(name, _plain(value), sources[name]) for name, value in values.items())


def _plain(value: Any) -> Any:
    """As JSON has it: a path as a string, a tuple as a list."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Environment):
        value = {name: each for name, each in dataclasses.asdict(value).items() if each and name != "name"}
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return list(value) if isinstance(value, tuple) else value
