"""The tasks of a run that are in: their results on the way into the history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from regress.cluster.runs import End, Run, Taken
from regress.cluster.states import TaskState
from regress.commands.sweep.done import Done, Suite
from regress.errors import StoreError
from regress.history import Merging, SkippedFile, add_confirmed
from regress.history.kept import read
from regress.run.execute import Watcher
from regress.session import Session
from regress.text.wording import counted, quoted


class Arrivals:
    """What has arrived of a run, by kind and task ("h100/3")."""

    def __init__(self, run: Run, session: Session, watcher: Watcher) -> None:
        self._run, self._session, self._watcher = run, session, watcher
        self.ends: dict[str, End] = {}
        """Of the tasks that are in."""
        self.refused: dict[str, StoreError] = {}
        """Why results of tasks that are in may not be mixed with the history."""
        self._skipped: list[SkippedFile] = []

    def take(self, states: Sequence[TaskState]) -> None:
        """Take what has ended into the history, each task once: which attempt counts is written down before."""
        taken = self._run.taken
        new = {
            f"{task.kind}/{task.task}": Taken(task.attempt.number)
            for task in states
            if task.state == "in" and task.attempt is not None and f"{task.kind}/{task.task}" not in taken
        }
        if new:
            self._run.take(new)
        counts = {**taken, **new}
        for name in [name for name in counts if name not in self.ends]:
            end = read(self._run.folder / f"{name}.{counts[name].attempt}" / "end.json", End)
            self.ends[name] = end or End(0)
            self._watcher.advance(f"{name} is in")
        due = {name: count for name, count in counts.items() if not count.merged and name not in self.refused}
        if due:
            self._merge({name: self._results(name, count) for name, count in due.items()})
            for name in due:
                self._note_tried(name.partition("/")[0], self.ends[name])
            merged = {name: replace(count, merged=True) for name, count in due.items() if name not in self.refused}
            self._run.take(merged)

    def warnings(self) -> list[str]:
        """What of it is not in the history."""
        warnings = [f"not merged: {file.path}: {file.why}; fix: {file.fix}" for file in self._skipped]
        for name, error in self.refused.items():
            words = f"{name.replace('/', ' ')} was not merged: {error.what}: {error.why}; fix: {error.fix}"
            results = self._results(name, self._run.taken[name])
            then = f"; then {quoted('regress', 'merge', results)}" if results.is_dir() else ""
            warnings.append(words + then)
        return warnings

    def _results(self, name: str, taken: Taken) -> Path:
        return self._run.folder / f"{name}.{taken.attempt}" / "results"

    def _merge(self, folders: Mapping[str, Path]) -> None:
        """Merge them, at once where all may be; where one is refused one by one, so that the others get in."""
        there = {name: folder for name, folder in folders.items() if folder.is_dir()}
        for name in folders.keys() - there.keys():
            self._require_none(name, folders[name])
        if not there:
            return
        try:
            merging = Merging(self._session.config.results_dir, list(there.values()))
        except StoreError as error:
            if len(there) == 1:
                self.refused.update(dict.fromkeys(there, error))
            else:
                for name, folder in there.items():
                    self._merge({name: folder})
            return
        for result in merging.results:
            merging.take(*result)
            self._run.lead()  # a sign of life: they may be many
        merging.finish()
        self._skipped += merging.skipped

    def _require_none(self, name: str, folder: Path) -> None:
        """Refuse a task without results, unless it is a pair, whose check is no result of either commit."""
        kind, _, number = name.partition("/")
        measured = self.ends[name].measured
        if measured and not self._run.task(kind, int(number)).pair:
            why = f"the task has measured {counted(measured, 'commit')}, and somebody may have removed them"
            fix = quoted("ls", "-la", folder.parent)
            self.refused[name] = StoreError(f"there is no folder {folder}", why=why, fix=fix)

    def _note_tried(self, kind: str, end: End) -> None:
        """Remember what was confirmed, and what did not build or commits do not have: that is not tried without end."""
        session = self._session.of(kind)
        if end.confirmed:
            add_confirmed(session.cache, kind, end.confirmed)
        if end.tried:
            Done(session, Suite(self._run.plan.recorded_in), retry=False).take(end.tried)
