"""The releases of a repository: its tags, and where in a history they are."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from regress.git.commits import log
from regress.git.running import output, text
from regress.model import Commit


class Releases:
    """The releases of the repository at `root`: the tags whose whole name matches the regular expression."""

    def __init__(self, root: Path, tags: str) -> None:
        self._root, self._tags = root, re.compile(tags)

    def all(self) -> dict[str, tuple[str, ...]]:
        """Names of the tags of each commit that was released, by its full hash."""
        out = output(
            self._root, "for-each-ref", "--format=%(objectname) %(*objectname) %(refname:strip=2)", "refs/tags"
        )
        releases: dict[str, tuple[str, ...]] = {}
        for line in filter(None, text(out).split("\n")):  # a name may have other ends of lines in it
            own, peeled, name = line.split(" ", 2)
            if self._tags.fullmatch(name):
                releases[peeled or own] = (*releases.get(peeled or own, ()), name)
        return releases

    def of(self, line: Sequence[Commit]) -> dict[str, tuple[str, ...]]:
        """Names of the releases of a history, given from its beginning, by the full hash of their place in it, the newest name
        last: the tagged commit or, if it was tagged on a separate branch, the last commit before that branch left."""
        if not line:
            return {}
        tagged = self.all()
        releases: dict[str, tuple[str, ...]] = {}
        for sha, at in self.places(line, tagged).items():
            there = line[at].sha
            if sha == there or at < len(line) - 1:  # else it has all of the line
                releases[there] = (*releases.get(there, ()), *tagged[sha])
        return {sha: tuple(sorted(names, key=_version)) for sha, names in releases.items()}

    def places(self, line: Sequence[Commit], shas: Collection[str]) -> dict[str, int]:
        """Where each of these commits is in a history, given from its beginning: the index of the commit, or of the last one
        before its branch left. Commits without a common ancestor are left out."""
        place = {commit.sha: at for at, commit in enumerate(line)}
        aside = [sha for sha in shas if sha not in place]
        parents: dict[str, tuple[str, ...]] = {}
        if aside:
            parents = {commit.sha: commit.parents for commit in log(self._root, *aside, f"^{line[-1].sha}")}
        there = {sha: _where_it_left(sha, parents, place) for sha in shas}
        return {sha: place[start] for sha, start in there.items() if start is not None}


def _where_it_left(sha: str, parents: Mapping[str, Sequence[str]], place: Mapping[str, int]) -> str | None:
    """The newest commit of a history that is an ancestor of `sha`; `parents` are those of the commits outside the history."""
    seen, waiting, common = {sha}, [sha], []
    while waiting:
        current = waiting.pop()
        if current in place:
            common.append(current)
            continue
        new = [one for one in parents.get(current, ()) if one not in seen]
        seen.update(new)
        waiting += new
    return max(common, key=place.__getitem__, default=None)


def _version(name: str) -> tuple[list[int], bool, str]:
    """The key by which names of releases are sorted: their numbers, and 1.0rc1 before 1.0."""
    numbers = re.search(r"\d+(?:\.\d+)*", name)
    rest = name[numbers.end() :] if numbers else ""
    return [int(part) for part in numbers[0].split(".")] if numbers else [], not re.match(r"[-._]?[A-Za-z]", rest), name
