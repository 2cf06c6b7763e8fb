"""The invoking checkout while it is measured: its benchmark files measure every side, and it may be a side itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from regress.run.environments import Prepared
from regress.session import Session

T = TypeVar("T")


class Checkout:
    """What of the checkout takes part in a measurement of these sides, as it is when this is made."""

    def __init__(self, session: Session, sides: Sequence[Prepared]) -> None:
        self._session, self._sides = session, sides
        self._measures_all = not session.request.own_suite
        self._suite = session.config.benchmark_dir.resolve()
        self._stamps, self._texts = _stamps(self._python_files()), self._read()
        self._changed: list[str] = []
        self._tree = self._changes() if any(side.side.dirty for side in sides) else None

    def changed_suite(self) -> list[str]:
        """The benchmark files that have changed since; what is measured from then on is no result of the suite as it was, also
        when they change back. Cheap enough to be asked after every round: it looks at the files that were there."""
        if not self._changed and (stamps := _stamps(self._stamps)) != self._stamps:
            self._stamps = stamps  # of a file that was only touched, the text is the same
            self._changed = _differing(self._texts, self._read())
        return self._changed

    def warnings(self) -> list[str]:
        """Where the checkout is not what the commits of the sides have, or no longer what it was."""
        warnings = []
        if changed := self.changed_suite() or _differing(self._texts, self._read()):
            warnings.append(f"benchmark files changed during the run: {', '.join(changed)}")
        if self._tree is not None and (changed := _differing(self._tree, self._changes())):
            warnings.append(
                f"the working tree changed during the run: {', '.join(changed)}; its rounds may mix several states"
            )
        if self._is_other_tree():
            in_place = self._sides[-1].tree == self._session.repository.root
            warnings.append(
                "the working tree changed during the run: measure again"
                if in_place
                else "the working tree has changes; the commit itself was measured, from a worktree"
            )
        root = self._session.repository.root
        if not self._measures_all:
            return warnings
        if suite := [name for name in self._changes() if (root / name).is_relative_to(self._suite)]:
            warnings.append(
                f"both sides use the working tree's benchmark files, with uncommitted changes: {', '.join(suite)}"
            )
        return warnings

    def _is_other_tree(self) -> bool:
        """Whether the tree has changes, from the start or by now, that are not in the commit which was measured for it."""
        head = self._sides[-1].side
        here = self._session.repository.resolve("HEAD").sha
        return not head.dirty and here == head.commit.sha and self._session.is_dirty()

    def _changes(self) -> Mapping[str, tuple[int, int]]:
        """The stamps of the files of the tree that differ from HEAD."""
        repository = self._session.repository
        names = repository.changed_files(self._session.own_paths)
        return {name: _stamp(repository.root / name) for name in names}

    def _python_files(self) -> list[Path]:
        """The benchmark files that all sides are measured with; none where each side has its own."""
        return sorted(filter(Path.is_file, self._suite.rglob("*.py"))) if self._measures_all else []

    def _read(self) -> Mapping[str, bytes]:
        """The files of the suite by name, from its folder."""
        return {str(path.relative_to(self._suite)): path.read_bytes() for path in self._python_files()}


def _stamps(paths: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    return {path: _stamp(path) for path in paths}


def _stamp(path: Path) -> tuple[int, int]:
    """When the file was written last, and its size; nothing if there is none."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def _differing(before: Mapping[str, T], now: Mapping[str, T]) -> list[str]:
    return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
