"""Histories that are made for one thing: a repository, and files as asv writes them, of any values."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regress.commands.report import report
from regress.pages import PageIndex, PageSite
from regress.report.progress import Progress
from regress.session import Request

QUIET = Progress(None)
COMMANDS = ("check", "bisect", "explain", "ack")
START, DAY = 1_767_000_000, 86_400

Values = Sequence[float | None]
"""One a commit; None where nothing was measured."""


class Made:
    """A repository of `n` commits in one line, a day apart, and what is recorded of them."""

    def __init__(self, root: Path, n: int, settings: Mapping[str, Any] | None = None) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")
        config = {"version": 1, "project": "made", "repo": ".", "branches": ["main"], "results_dir": "history"}
        (root / "asv.conf.json").write_text(json.dumps({**config, "regress": dict(settings or {})}))
        stream = "".join(
            f"commit refs/heads/main\nmark :{at + 1}\ncommitter Ada <a@example.org> {START + at * DAY} +0000\n"
            f"data {len(f'change {at}')}\nchange {at}\n\n"
            for at in range(n)
        )
        self.git("fast-import", "--quiet", text=stream)
        self.shas = self.git("rev-list", "--reverse", "main").split()
        self._entries: dict[str, Any] = {}

    def git(self, *words: str, text: str | None = None) -> str:
        who = ("-c", "user.name=Ada", "-c", "user.email=a@example.org")
        done = subprocess.run(
            ["git", *who, *words], cwd=self.root, input=text, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def record(
        self,
        lines: Mapping[str, Values],
        *,
        machine: str = "box",
        unit: str = "seconds",
        shas: Sequence[str] | None = None,
        facts: Mapping[str, str] | None = None,
        declared: Mapping[str, Any] | None = None,
    ) -> Made:
        """What asv has of these benchmarks on a machine, one value a commit."""
        folder = self.root / "history" / machine
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "machine.json").write_text(json.dumps({"machine": machine, "version": 1, **(facts or {})}))
        for name in lines:
            kind = "time" if unit == "seconds" else "track"
            self._entries[name] = {
                "name": name, "unit": unit, "type": kind, "params": [], "param_names": [], "version": "1",
                "code": "", **(declared or {}),
            }  # fmt: skip
        (self.root / "history" / "benchmarks.json").write_text(json.dumps({**self._entries, "version": 2}))
        for at, sha in enumerate(shas or self.shas):
            rows = {
                name: [[values[at]], [], "1", START * 1000 + at]
                for name, values in lines.items()
                if values[at] is not None
            }
            path = folder / f"{sha[:8]}-py3.12.json"
            if rows:
                content = json.loads(path.read_text())["results"] if path.exists() else {}
                path.write_text(json.dumps(_file(sha, at, machine, {**content, **rows})))
        return self

    def site(self) -> PageSite:
        return report(Request(self.root), QUIET, None, COMMANDS)[0]

    def index(self) -> PageIndex:
        site = self.site()
        return site.index([leaf.make()[1] for leaf in site.leaves])[0]


def _file(sha: str, at: int, machine: str, rows: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "commit_hash": sha,
        "env_name": "py3.12",
        "date": (START + at * DAY) * 1000,
        "params": {"machine": machine, "python": "3.12"},
        "python": "3.12",
        "requirements": {},
        "env_vars": {},
        "result_columns": ["result", "params", "version", "started_at"],
        "results": dict(rows),
        "durations": {},
        "version": 2,
    }


def noisy(*levels: tuple[int, float], noise: float = 0.002) -> list[float]:
    """So many values at each level, with a little noise that is always the same."""
    wobble = (0.3, -0.8, 1.0, -0.1, 0.6, -1.0, 0.1, -0.5, 0.9, -0.3, 0.7)
    return [value * (1 + noise * wobble[at % len(wobble)]) for n, value in levels for at in range(n)]
