"""Where the program reads and writes, and everything that counts with who chose it."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regress.config.configuration import ASV_KEYS, Config
from regress.config.repository import git_dir, git_top, project_of
from regress.errors import ConfigError, without_password
from regress.model import Cluster, Environment, Setting


def cache_dir(config: Config) -> Path:
    """Folder for worktrees, builds and results of checks: one a repository, shared by its linked worktrees, or an address.

    Under the setting `cache_dir`, else $REGRESS_CACHE_DIR, else $XDG_CACHE_HOME/regress, else ~/.cache/regress.
    """
    if config.repo is None:
        name, known_by = project_of(config.address), config.address.encode()
    else:
        top = git_top(config.repo) or config.repo
        git = git_dir(top)
        name, known_by = git.parent.name if git.name == ".git" else git.name, os.fsencode(git)
    return _cache_base(config)[0] / f"{name}-{hashlib.sha256(known_by).hexdigest()[:8]}"


def clone_dir(config: Config) -> Path:
    """Folder of the clone of a project that is known by its address; it need not be there."""
    return cache_dir(config) / "repository.git"


def _cache_base(config: Config) -> tuple[Path, str]:
    """The folder above the caches of all repositories, and who chose it."""
    if config.settings.cache_dir:
        source = config.sources.get("cache_dir", "default")
        return (config.root / _expanded(config.settings.cache_dir, '"cache_dir"')).resolve(), source
    return _usual_cache(config.start)


def cache_in_tree(config: Config) -> tuple[str, Path, str]:
    """Of a cache in the repository's working tree: its folder from the top, the folder above all caches, and who chose that;
    empty strings where it is elsewhere."""
    folder, source = _cache_base(config)
    top = git_top(config.repo) if config.repo is not None else None
    inside = top is not None and folder.is_relative_to(top) and not folder.is_relative_to(git_dir(top))
    return (folder.relative_to(top).as_posix(), folder, source) if top is not None and inside else ("", folder, "")


def usual_cache() -> Path:
    """The folder above all caches, unless a configuration names another one."""
    return _usual_cache(Path.cwd())[0]


def _usual_cache(start: Path) -> tuple[Path, str]:
    if os.environ.get("REGRESS_CACHE_DIR"):
        given = _expanded(os.environ["REGRESS_CACHE_DIR"], "$REGRESS_CACHE_DIR")
        return (start / given).resolve(), "$REGRESS_CACHE_DIR"
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if shared.is_absolute():  # a relative one is invalid and to be ignored, says the XDG specification
        return (shared / "regress").resolve(), "$XDG_CACHE_HOME"
    return _expanded("~/.cache/regress", "the folder of the cache").resolve(), "default"


def _expanded(text: str, what: str) -> Path:
    """The path, with "~" as the user's folder. Raises ConfigError if the user has none."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ConfigError(
            f"{what} is {text}, and there is no such home folder",
            why="$HOME is not set and the user has no entry in /etc/passwd, or there is no user of that name",
            fix="set HOME, or for the cache REGRESS_CACHE_DIR, to a folder that you can write to",
        ) from None


def lock_dir(config: Config) -> Path:
    """Folder of this node with the locks of its GPUs."""
    return _lock_dir(config)[0]


def _lock_dir(config: Config) -> tuple[Path, str]:
    """The folder, and who chose it. The default is the same for all users: the folder for temporary files is not ($TMPDIR)."""
    if config.settings.lock_dir:
        return (config.root / _expanded(config.settings.lock_dir, '"lock_dir"')).resolve(), config.sources["lock_dir"]
    return Path("/tmp/regress-locks"), "default"


def environments_dir(config: Config) -> Path:
    """Folder for environments that asv makes for us: below `env_dir` where asv.conf.json has one, else in the cache."""
    given = config.asv.get("env_dir")
    if isinstance(given, str) and given:
        return (config.root / _expanded(given, '"env_dir"')).resolve() / "regress"
    return cache_dir(config) / "environments"


def acks_file(config: Config) -> Path:
    """The acknowledgement file; it need not be there."""
    return (config.root / _expanded(config.settings.acks, '"acks"')).resolve()


def own_paths(config: Config) -> tuple[Path, ...]:
    """Folders and files that we write: what changes in them is no change of the project.

    The configuration is one of them, as that of the checkout counts for whatever commit is measured.
    """
    return (*written_folders(config), config.path, config.root / ".gitignore", acks_file(config))


def written_folders(config: Config) -> tuple[Path, ...]:
    """The folders among `own_paths`."""
    return (*own_places(config).values(), cache_dir(config), environments_dir(config))


def own_places(config: Config) -> dict[str, Path]:
    report = (config.root / config.settings.report_dir).resolve()
    return {"results_dir": config.results_dir, "html_dir": config.html_dir, "report_dir": report}


def check_places(config: Config) -> None:
    """Refuse folders of results that hold the code, because files in them do not count as changes."""
    for name, folder in own_places(config).items():
        for what, other in (("repository", config.repo), ("suite", config.benchmark_dir)):
            if other is not None and other.is_relative_to(folder):
                fix = f'give "{name}" a folder of its own'
                raise ConfigError(
                    f'"{name}" in {config.path} is {folder}', why=f"that folder holds the {what}", fix=fix
                )
    report = own_places(config)["report_dir"]
    if report.is_relative_to(config.html_dir):
        why = f"asv publish empties html_dir, {config.html_dir}"
        raise ConfigError(
            f'"report_dir" in {config.path} is {report}', why=why, fix='give "report_dir" a folder outside it'
        )


def effective(config: Config) -> tuple[Setting, ...]:
    """Every setting and where it came from: the asv keys that we use, then our settings; paths resolved."""
    values: dict[str, Any] = {name: getattr(config, name, None) for name in ASV_KEYS}
    values["repo"] = config.repo or without_password(config.address)
    values["default_benchmark_timeout"] = config.default_benchmark_timeout_s
    values |= {field.name: getattr(config.settings, field.name) for field in dataclasses.fields(config.settings)}
    values |= own_places(config) | {"cache_dir": cache_dir(config), "lock_dir": lock_dir(config)}
    sources = config.sources | {"cache_dir": _cache_base(config)[1], "lock_dir": _lock_dir(config)[1]}
    return tuple(Setting(name, _plain(value), sources[name]) for name, value in values.items())


def _plain(value: Any) -> Any:
    """In JSON's terms: a path as a string, a tuple as a list."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Environment):
        value = {name: item for name, item in dataclasses.asdict(value).items() if item and name != "name"}
    if isinstance(value, Cluster):
        value = dataclasses.asdict(value) if value.kinds else {}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return list(value) if isinstance(value, tuple) else value
