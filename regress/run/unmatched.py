"""What was named and is not there: names, tags, `covers` and settings that match nothing, each with what is near."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from regress.errors import NothingMeasured
from regress.model import Benchmark, Settings, declared_words
from regress.run.plan import Selection, cases_of, covers, select
from regress.text.wording import first_of, near_names, nearest, quoted

NEAR = 3
MOST_PATTERNS = 10
"""Patterns of `covers` that are told of."""


def unmatched(benchmarks: Sequence[Benchmark], selection: Selection, settings: Settings) -> list[str]:
    """A warning for each that matches none of the suite's benchmarks, or of `covers` no file of the repository."""
    return [
        *names_unmatched(benchmarks, selection),
        *_settings_unmatched(benchmarks, settings),
        *_covers_unmatched(benchmarks, selection),
        *_odd_directions(benchmarks),
    ]


def nothing_matches(selection: Selection, searched: str, names: Iterable[str]) -> NothingMeasured:
    """The error where no benchmark of these names matches what was asked for; `searched` says where they were found."""
    known, most = list(names), max(1, NEAR // max(1, len(selection.patterns)))
    near = dict.fromkeys(name for pattern in selection.patterns for name in near_names(pattern, known, most))
    return NothingMeasured(
        f"no benchmark matches {selection.words}",
        why=searched,
        fix=f"did you mean {' or '.join(map(quoted, near))}? regress list has all names" if near else "regress list",
    )


def names_unmatched(benchmarks: Sequence[Benchmark], selection: Selection) -> list[str]:
    """The same of what was asked for by name and tag. Where nothing at all matches, there is an error to say so."""
    if selection.known:
        return []
    names = [benchmark.name for benchmark in benchmarks]
    told = [
        f"no benchmark matches {pattern!r}{_told(near_names(pattern, names))}"
        for pattern in selection.patterns
        if not select(benchmarks, Selection((pattern,)))
    ]
    tags = dict.fromkeys(tag for benchmark in benchmarks for tag in declared_words(benchmark, "tags"))
    return told + [
        f"no benchmark has the tag {tag!r}{_told(nearest(tag, tags, NEAR))}"
        for tag in selection.tags
        if tag not in tags
    ]


def _settings_unmatched(benchmarks: Sequence[Benchmark], settings: Settings) -> Iterator[str]:
    """Patterns of settings match from the beginning of a case's name, as asv's do; those of `cuda` anywhere in it."""
    cases = [str(case) for benchmark in benchmarks for case in cases_of(benchmark)]
    by_setting: Mapping[str, Iterable[str]] = {
        "critical": settings.critical,
        "thresholds": settings.thresholds,
        "gate_thresholds": settings.gate_thresholds,
    }
    for setting, patterns in by_setting.items():
        for pattern in patterns:
            if not any(map(re.compile(pattern).match, cases)):
                yield _of_setting(setting, pattern, benchmarks)
    for pattern in settings.cuda:
        if not any(re.search(pattern, benchmark.name) for benchmark in benchmarks):
            yield _of_setting("cuda", pattern, benchmarks)


def _of_setting(setting: str, pattern: str, benchmarks: Iterable[Benchmark]) -> str:
    near = near_names(pattern, (benchmark.name for benchmark in benchmarks))
    return f'"{setting}" has {pattern!r}, which matches no benchmark{_told(near)}'


def _covers_unmatched(benchmarks: Iterable[Benchmark], selection: Selection) -> Iterator[str]:
    if selection.files is None:
        return
    by_pattern: dict[str, list[str]] = {}
    for benchmark in benchmarks:
        for pattern in declared_words(benchmark, "covers"):
            names = by_pattern.setdefault(pattern, [])
            if benchmark.name not in names:
                names.append(benchmark.name)
    dead = {
        pattern: names
        for pattern, names in by_pattern.items()
        if not any(covers(pattern, one) for one in selection.files)
    }
    folders = {f"{one.rpartition('/')[0]}/" for one in selection.files if "/" in one}
    for pattern, names in list(dead.items())[:MOST_PATTERNS]:
        near = _told(nearest(pattern.replace(".", "/"), {*folders, *selection.files}, NEAR))
        yield f"{first_of(names)}: covers = {pattern!r} matches no file of the repository, so it is measured{near}"
    if len(dead) > MOST_PATTERNS:
        yield f"{len(dead) - MOST_PATTERNS} more patterns of `covers` match no file of the repository"


def _odd_directions(benchmarks: Iterable[Benchmark]) -> Iterator[str]:
    for benchmark in benchmarks:
        better = benchmark.declared.get("better", "unknown")
        if better not in ("lower", "higher", "unknown"):
            yield f'{benchmark.name}: better = {better!r} is not a direction; fix: "lower" or "higher"'


def _told(near: Sequence[str]) -> str:
    return f"; near it: {', '.join(near)}" if near else ""
