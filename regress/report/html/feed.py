"""The feed of a report: an Atom 1.0 document (RFC 4287) with an entry for each regression that is open, and for each case that
stopped giving numbers."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from html import escape
from urllib.parse import quote, urlencode
from uuid import NAMESPACE_URL, uuid5

from regress.pages import Event, PageBroken, PageCommit, PageIndex
from regress.report.rows import metric_words
from regress.report.xml import document, inert
from regress.text.style import cut, visible
from regress.text.wording import first_of
from regress.units import format_change, format_interval, format_pair

FEED = "feed.xml"
ATOM = "http://www.w3.org/2005/Atom"
MOST_ENTRIES = 100
"""Entries, the newest first."""
TITLE = 160
"""Columns."""
NAMED = 10
"""Benchmarks of those that moved at once."""


@dataclass(frozen=True)
class Known:
    """An event that the feed has had. It keeps its id when its range gets narrower, so that a reader shows it once."""

    id: str
    about: str
    """Benchmark and metric, or case and kind of failure."""
    good: str
    """PageCommit.sha of the newest commit that was not to blame when the feed first had it."""
    last: str
    """PageCommit.sha of the newest commit that might be."""


@dataclass(frozen=True)
class _Item:
    """The content of an entry."""

    about: str
    good: int
    first: int
    last: int
    title: str
    paragraphs: tuple[str, ...]
    commands: tuple[str, ...]
    link: str


def feed(index: PageIndex, known: Sequence[Known]) -> tuple[str, tuple[Known, ...]]:
    """The document, and what the next one has to know; `known` is what the last one left."""
    items = sorted((*_regressions(index), *_shifts(index), *_stopped(index)), key=lambda item: -item.first)
    told, forgotten = _identified(index, items, known)
    root = ElementTree.Element("feed", xmlns=ATOM)
    _text(root, "title", f"{index.project}: regressions")
    _text(root, "id", _urn(index.project, "feed"))
    _text(root, "updated", _date(index.commits[-1]))
    _text(ElementTree.SubElement(root, "author"), "name", index.project)
    ElementTree.SubElement(root, "link", rel="alternate", type="text/html", href=f"{index.address}index.html")
    if index.address:
        ElementTree.SubElement(root, "link", rel="self", type="application/atom+xml", href=index.address + FEED)
    ElementTree.SubElement(root, "generator", version=index.version).text = "regress"
    for item, identified in list(zip(items, told, strict=True))[:MOST_ENTRIES]:
        _entry(root, index, item, identified.id)
    return document(root), (*told, *forgotten)


def _entry(root: ElementTree.Element, index: PageIndex, item: _Item, id: str) -> None:
    """An entry has the date of its commit, so that it is the same whenever and wherever the feed is written."""
    entry = ElementTree.SubElement(root, "entry")
    _text(entry, "title", cut(visible(item.title), TITLE))
    _text(entry, "id", id)
    _text(entry, "updated", _date(index.commits[item.first]))
    ElementTree.SubElement(entry, "link", rel="alternate", type="text/html", href=index.address + item.link)
    content = [f"<p>{escape(visible(paragraph))}</p>" for paragraph in item.paragraphs if paragraph]
    content += [f"<pre>{escape(visible(command))}</pre>" for command in item.commands]
    _text(entry, "content", "".join(content), type="html")


def _text(parent: ElementTree.Element, tag: str, text: str, **attributes: str) -> None:
    ElementTree.SubElement(parent, tag, attributes).text = inert(text)


def _date(commit: PageCommit) -> str:
    """As in RFC 3339, whose years have four digits."""
    try:
        at = datetime.fromtimestamp(commit.date, timezone.utc)
    except (OverflowError, ValueError, OSError):
        at = datetime.fromtimestamp(0, timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


# -- ids -----------------------------------------------------------------------------------------------------------------


def _identified(index: PageIndex, items: Sequence[_Item], known: Sequence[Known]) -> tuple[list[Known], list[Known]]:
    """The items as they are known from now on, and known ones that are not among them, which may be open again one day."""
    at = {commit.sha: number for number, commit in enumerate(index.commits)}
    left = [old for old in known if old.good in at and old.last in at]
    told, seen = [], Counter(old.id for old in left)
    for item in items:
        entry = next(
            (
                old
                for old in left
                if old.about == item.about and max(at[old.good], item.good) < min(at[old.last], item.last)
            ),
            None,
        )
        if entry is not None:
            left.remove(entry)
        else:
            entry = _new(index, item, seen)
        told.append(entry)
    return told, left


def _new(index: PageIndex, item: _Item, seen: Counter[str]) -> Known:
    """Its id depends on its first commit alone, so that other machines that write the report choose the same."""
    good, first, last = (index.commits[at].sha for at in (item.good, item.first, item.last))
    id = _urn(index.project, item.about, first)
    seen[id] += 1
    if seen[id] > 1:
        id = _urn(index.project, item.about, first, str(seen[id]))
    return Known(id, item.about, good, last)


def _urn(*words: str) -> str:
    return uuid5(NAMESPACE_URL, inert("\0".join(words))).urn


# -- what it tells -------------------------------------------------------------------------------------------------------


def _regressions(index: PageIndex) -> Iterator[_Item]:
    for event in (candidate for candidate in index.open if candidate.shift is None):
        name, params = index.entries[event.benchmark].name, event.params
        case = f"{name}({params})" if params else name
        what, first = metric_words(event.metric), index.commits[event.first]
        change = "from zero" if event.ratio is None else format_change(event.ratio)
        before, after = format_pair(event.before, event.after, event.unit)
        interval = f" (95 %: {format_interval(event.low, event.high)})" if event.low != event.high else ""
        yield _Item(
            f"{name} {event.metric}",
            event.good,
            event.first,
            event.last,
            f"{change} {what}: {name if event.cases > 1 else case}, since {_named(first)}",
            (
                f"{case}: {what} {before} -> {after}, {change}{interval}",
                _reach(index, event),
                _blamed(index, event),
                *event.reasons,
                event.note,
            ),
            tuple(event.commands.values()),
            _link(index, name, event.place, c=params, metric=event.metric, change=first.sha),
        )


def _shifts(index: PageIndex) -> Iterator[_Item]:
    """Many benchmarks that moved at once are one entry, which blames nobody."""
    for number in sorted({event.shift for event in index.open if event.shift is not None}):
        shift, own = index.shifts[number], [event for event in index.open if event.shift == number]
        names = sorted({index.entries[event.benchmark].name for event in own})
        place, first = index.places[shift.place].label, min(event.first for event in own)
        yield _Item(
            f"many in {index.places[shift.place].id}",
            shift.good,
            first,
            shift.last,
            f"{shift.benchmarks} benchmarks moved at once on {place}, since {_named(index.commits[first])}",
            (*shift.reasons, first_of(names, NAMED)),
            (),
            "index.html",
        )


def _stopped(index: PageIndex) -> Iterator[_Item]:
    for broken in index.stopped:
        if broken.good is None:
            continue
        name, first = index.entries[broken.benchmark].name, index.commits[broken.first]
        case = f"{name}({broken.params})" if broken.params else name
        yield _Item(
            f"{case} {broken.kind}",
            broken.good,
            broken.first,
            broken.first,
            f"stopped giving numbers ({broken.kind}): {name if broken.cases > 1 else case}, since {_named(first)}",
            (
                f"{broken.cases} cases, such as {case}" if broken.cases > 1 else case,
                _on(
                    index,
                    [case.place for case in index.broken if case.good is not None and _case(case) == _case(broken)],
                ),
                broken.message.partition("\n")[0],
                f"last value at {_named(index.commits[broken.good])}",
            ),
            (),
            _link(index, name, broken.place, c=broken.params),
        )


def _reach(index: PageIndex, event: Event) -> str:
    """In how many cases, and where; empty if there is only one of each."""
    cases = f"{event.cases} of {event.of_cases} cases" if event.cases > 1 else ""
    return "; ".join(filter(None, (cases, _on(index, event.places))))


def _on(index: PageIndex, places: Iterable[int]) -> str:
    return f"on {', '.join(index.places[place].label for place in places)}" if len(index.places) > 1 else ""


def _case(broken: PageBroken) -> tuple[int, str, bool]:
    return broken.benchmark, broken.params, broken.open


def _blamed(index: PageIndex, event: Event) -> str:
    """The commit to blame, or the listed ones that may be, the newest first."""
    suspects = [commit if isinstance(commit, PageCommit) else index.suspects[commit] for commit in event.suspects]
    if event.suspects_n == 1 and suspects:
        return _by(suspects[0])
    listed = "; ".join(map(_by, reversed(suspects)))
    return f"one of {event.suspects_n} commits: {listed}{'; …' if event.suspects_n > len(suspects) else ''}"


def _by(commit: PageCommit) -> str:
    return f"{_named(commit)} ({commit.author})" if commit.author else _named(commit)


def _named(commit: PageCommit) -> str:
    return f"{commit.sha[:8]} {commit.subject}"


def _link(index: PageIndex, name: str, place: int, **query: str) -> str:
    """A link to the page of a benchmark, as the scripts write it."""
    where = {"at": index.places[place].id} if len(index.places) > 1 else {}
    query = {key: value for key, value in {**query, **where}.items() if value}
    words = urlencode(query, errors="replace")
    return f"index.html#/b/{quote(name, safe='', errors='replace')}" + (f"?{words}" if words else "")
