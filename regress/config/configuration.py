"""Config, and the keys of asv's that we use."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regress.model import Settings

ASV_KEYS = (
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
OTHER_ASV_KEYS = (
    "version",
    "project_url",
    "pythons",
    "matrix",
    "exclude",
    "include",
    "env_dir",
    "hash_length",
    "environment_type",
    "install_timeout",
    "dvcs",
    "regressions_first_commits",
    "plugins",
    "conda_channels",
    "conda_environment_file",
    "build_cache_size",
    "wheel_cache_size",
    "build_command",
    "install_command",
    "uninstall_command",
    "launch_method",
)
"""The keys that asv reads beside those."""


@dataclass(frozen=True)
class Config:
    """What one asv.conf.json says, with paths resolved."""

    path: Path
    root: Path
    """Folder of the file; relative paths in it start here."""
    start: Path
    """Folder that the command was started in; a relative $REGRESS_CACHE_DIR starts here."""
    repo: Path | None
    """The local repository; None if the project is cloned from its address."""
    address: str
    """The address to clone; empty for a local repository."""
    repo_subdir: str
    project: str
    branches: tuple[str, ...]
    """Empty: the default branch."""
    benchmark_dir: Path
    results_dir: Path
    html_dir: Path
    default_benchmark_timeout_s: float
    show_commit_url: str
    """The prefix of a commit's page, to which its sha is appended; empty if there is none."""
    regressions_thresholds: dict[str, float]
    """asv's: relative change by regular expression of names. Among the settings' `thresholds` too, for times."""
    settings: Settings
    asv: dict[str, Any]
    """The whole file as parsed, less the key "regress": environments, matrix, pythons, plugins."""
    sources: dict[str, str] = field(default_factory=dict)
    """Who set each of our settings and each of asv's keys that we use: "default", "asv.conf.json" or "command line"."""
    warnings: tuple[str, ...] = ()
