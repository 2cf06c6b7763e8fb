"""`regress ack`: adds to the acknowledgement file, takes from it, and lists it."""

from __future__ import annotations

import contextlib
import datetime
import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from regress import acks
from regress.acks.project import recorded_cases, review
from regress.config import acks_file
from regress.errors import RegressError
from regress.history import last_verdicts
from regress.history.disk import locked, replace_file
from regress.model import LIFTED, NEXT_TAG, AckKind, Acknowledgement, Changed, Report, Reviewed, Verdict
from regress.session import Request, Session, check_metric
from regress.text.wording import counted, near_names, quoted
from regress.trends.events import by_event, events_on

SHA_DIGITS = 12
EVERYTHING = "."
"""The pattern that any name matches."""
LOCK_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class AckRequest:
    """What the user wants to be acknowledged; what is empty or None is found out."""

    pattern: str
    kind: AckKind
    reason: str
    metric: str = ""
    until: str = ""
    link: str = ""
    level: float | None = None
    since: str = ""
    replace: bool = False


def ack(request: Request, wanted: AckRequest) -> Report:
    """Write an entry; of the kind accepted, one for each metric that regressed. The level comes from the last check on this
    machine that found it regressed, else from what is open in the recorded history. A case that has not regressed but stopped
    giving numbers is known from now on.

    Raises RegressError for an unknown benchmark, an existing entry, and if there is no level.
    """
    session = Session(request)
    path = acks_file(session.config)
    entries = acks.read(path)
    matched = _matched(session, wanted.pattern)
    check_metric(wanted.metric)
    until = _until(wanted)
    entry = Acknowledgement(wanted.pattern, wanted.kind, wanted.reason, wanted.metric, until=until, link=wanted.link)
    if wanted.kind == "accepted":
        new = _with_levels(session, entry, wanted, matched)
    else:
        new = [replace(entry, since=_sha(session, wanted.since or "HEAD"))]
    of_metric = {known.metric: known for known in acks.named(entries, entry.pattern)}
    old = [of_metric[added.metric] for added in new if added.metric in of_metric]
    if old and not wanted.replace:
        what = f"{path.name}:{old[0].line} has {entry.pattern} already: {old[0].words}"
        raise RegressError(what, why="a case can have one entry", fix="run it again with --replace")
    _change(path, lambda text: _with_entries(text, new, path.name))
    done = "replaced in" if len(old) == len(new) else "added to"
    written = [Reviewed(added, "active") for added in new]
    return _written(session, path, written, f"{done} {path.name}: commit it with the change it is about")


def ack_all_open(request: Request, reason: str, link: str = "") -> Report:
    """Write an entry for all regressions of the history that are open, and for what stopped giving numbers: what came up to
    the newest commit with results is known. Where something is tentative there, up to the commit before that, so that it is
    told once it is sure.

    Raises RegressError where nothing is open.
    """
    session = Session(request)
    path = acks_file(session.config)
    line = session.line("HEAD", session.recorded())
    names = {case.name for case in recorded_cases(session)}
    events = events_on(session, line, names, machine=None)
    changes = [change for change in events.changes if change.point.large]
    place = {commit.sha: at for at, commit in enumerate(line)}
    unsure = [place[change.point.good] for change in changes if change.point.state == "tentative"]
    up_to = min(unsure, default=len(line) - 1)
    opened = [change for change in changes if change.point.is_open and place[change.point.blamed[-1]] <= up_to]
    broken = [
        breakage
        for breakage in events.breakages
        if breakage.acknowledged is None and place[breakage.first.sha] <= up_to
    ]
    if not opened and not broken:
        what = "no regression is open, and no case has stopped giving numbers"
        raise RegressError(what, why="neither on this machine nor on another", fix="regress report")
    seen = max(
        [place[change.point.blamed[-1]] for change in opened] + [place[breakage.first.sha] for breakage in broken]
    )
    entry = Acknowledgement(EVERYTHING, "known", reason, seen=line[seen].sha[:SHA_DIGITS], until=LIFTED, link=link)
    _change(path, lambda text: _with_entries(text, [entry], path.name))
    regressions = sum(any(change in opened for change in own) for own in by_event(changes, line))
    words = [counted(regressions, "regression")] * bool(regressions)
    words += [f"{counted(len(broken), 'case')} without a number"] * bool(broken)
    remark = f"{' and '.join(words)} up to {line[seen].short} known, in {path.name}; later changes raise an alarm"
    return _written(session, path, [Reviewed(entry, "active")], remark)


def remove(request: Request, pattern: str, metric: str) -> Report:
    """Take the entry out of the file, with the comments right above it. Raises RegressError if there is none, or several."""
    session = Session(request)
    path = acks_file(session.config)
    entries = acks.read(path)
    matching = acks.named(entries, pattern, metric)
    if not matching:
        near = near_names(pattern, (entry.pattern for entry in entries), 1)
        fix = quoted("regress", "ack", "--remove", near[0]) if near else "regress ack --list"
        why = f"it has {', '.join(entry.pattern for entry in entries) or 'none at all'}"
        raise RegressError(f"{path.name} has no entry for {pattern}", why=why, fix=fix)
    if len(matching) > 1:
        why = "one for " + ", one for ".join(entry.metric or "all metrics" for entry in matching)
        raise RegressError(
            f"{path.name} has {len(matching)} entries for {pattern}", why=why, fix="name one with --metric"
        )
    _change(path, lambda text: acks.removed(text, matching[0], path.name))
    return _written(session, path, [], f"{pattern}: removed from {path.name}")


def listed(request: Request) -> Report:
    """The entries of the file as they stand for the working tree."""
    session = Session(request)
    head = session.tree_side("head")
    reviewed = review(session, head).entries_of(recorded_cases(session))
    states = [entry.state for entry in reviewed]
    words = ", ".join(f"{states.count(word)} {word}" for word in ("active", "expired", "unused") if word in states)
    name = acks_file(session.config).name
    return Report(
        command="ack",
        head=head,
        acknowledgements=reviewed,
        remark=f"{name}: {words}" if reviewed else f"{name}: nothing is acknowledged",
        warnings=session.warnings,
    )


def _written(session: Session, path: Path, entries: list[Reviewed], remark: str) -> Report:
    root = session.repository.root
    name = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    return Report(
        command="ack",
        acknowledgements=tuple(entries),
        remark=remark,
        warnings=session.warnings,
        suggestions=(("commit", quoted("git", "add", name)),),
    )


def _change(path: Path, change: Callable[[str], str]) -> None:
    """Write what `change` makes of the file's text. Raises StoreError, with nothing changed."""
    with locked(path.parent, LOCK_TIMEOUT_S):
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        replace_file(path, change(text).encode())


def _with_entries(text: str, new: Sequence[Acknowledgement], name: str) -> str:
    """The text with each entry, in the place of the one about the same."""
    for entry in new:
        old = next(
            (other for other in acks.named(acks.parse(text, name), entry.pattern) if other.metric == entry.metric), None
        )
        text = acks.replaced(text, old, entry, name) if old else acks.added(text, entry, name)
    return text


# -- what the entry says -------------------------------------------------------------------------------------------------


def _matched(session: Session, pattern: str) -> frozenset[str]:
    """The cases that a pattern is about, as -b takes it. Raises RegressError if there is none."""
    cases = {str(case): case.name for case in recorded_cases(session)}
    cases |= {case: case.partition("(")[0] for case, _ in last_verdicts(session.cache, session.machine.name)}
    if not cases:
        why = f"there are no checks on this machine, and no results in {session.config.results_dir}"
        raise RegressError("no benchmark is known here", why=why, fix="regress check")
    exact = frozenset(case for case, name in cases.items() if pattern in (case, name))
    with contextlib.suppress(re.error):
        matching = exact or frozenset(case for case in cases if re.search(pattern, case))
        if matching:
            return matching
    near = near_names(pattern, [*cases, *cases.values()], 1)
    why = f"{counted(len(cases), 'case')} from checks on this machine and recorded results, none of which matches"
    fix = quoted("regress", "ack", near[0]) + " …" if near else quoted("regress", "check", "-b", pattern)
    raise RegressError(f"no benchmark {pattern} is known here", why=why, fix=fix)


def _until(wanted: AckRequest) -> str:
    words = wanted.until or (LIFTED if wanted.kind == "quarantine" else NEXT_TAG)
    try:
        until = acks.until_of(words)
    except ValueError:
        why = f'expected a tag, a date such as 2026-03-31, "{NEXT_TAG}" or "{LIFTED}"'
        raise RegressError(f"--until {words!r} is neither a tag nor a date", why=why, fix="--until v1.6") from None
    with contextlib.suppress(ValueError):
        if datetime.date.fromisoformat(until) < datetime.date.today():
            raise RegressError(f"--until {until} is over already", fix="name a later day")
    return until


def _sha(session: Session, revision: str) -> str:
    return session.repository.resolve(revision).sha[:SHA_DIGITS]


def _with_levels(
    session: Session, entry: Acknowledgement, wanted: AckRequest, cases: Collection[str]
) -> list[Acknowledgement]:
    """The entry for each metric that regressed, with what is accepted of it, and since when."""
    if wanted.level is not None:
        since = _sha(session, wanted.since or _before(session))
        return [replace(entry, level=wanted.level, since=since)]
    since = session.repository.resolve(wanted.since).sha if wanted.since else ""
    worst: dict[str, Regressed] = {}
    for regression in regressed(session, cases, entry.metric, since):
        worst.setdefault(regression.metric, regression)
    if not worst and not entry.metric and (broken := _last_breakage(session, cases)):
        # There is no level to accept: it is known, up to the commit that has it.
        return [replace(entry, kind="known", seen=broken[:SHA_DIGITS], until=entry.until if wanted.until else LIFTED)]
    if not worst:
        words = [f"in {entry.metric}"] * bool(entry.metric) + [f"since {wanted.since}"] * bool(since)
        what = " ".join([f"{entry.pattern} has not regressed", *words])
        raise RegressError(
            what,
            why="the last check and the recorded results show no regression, so there is no level to accept",
            fix=f"{quoted('regress', 'check', '-b', entry.pattern)}, or name it: --level +9% --since REV",
        )
    return [_with_level(session, entry, regression) for regression in worst.values()]


def _last_breakage(session: Session, cases: Collection[str]) -> str:
    """The newest commit since which one of these cases stopped giving numbers; empty where all do."""
    line = session.repository.commits("HEAD")
    place = {commit.sha: at for at, commit in enumerate(line)}
    names = {case.partition("(")[0] for case in cases}
    breakages = events_on(session, line, names, machine=None).breakages
    own = [
        breakage.first.sha for breakage in breakages if breakage.acknowledged is None and str(breakage.case) in cases
    ]
    return max(own, key=place.__getitem__, default="")


def _with_level(session: Session, entry: Acknowledgement, worst: Regressed) -> Acknowledgement:
    entry = replace(entry, metric=worst.metric, since=worst.since[:SHA_DIGITS], seen=worst.seen[:SHA_DIGITS])
    if worst.ratio is None:
        return replace(entry, value=worst.value)
    there = review(session, session.tree_side("head")).accepted_at(worst.since, entry)
    if there is None or there.level is None:
        return replace(entry, level=_digits(worst.ratio))
    # What was accepted before is in the value that it was measured against: the level is one, since then.
    return replace(entry, level=_digits(worst.ratio * there.level), since=there.since or entry.since)


def _before(session: Session) -> str:
    """A commit before the change, where nothing says which: what a check would take as base."""
    return session.repository.default_base(session.own_paths)[0]


def _digits(ratio: float) -> float:
    return float(f"{ratio:.5g}")


@dataclass(frozen=True)
class Regressed:
    """A case that is slower, or uses more memory, at the commit `seen` than at `since`."""

    case: str
    metric: str
    since: str
    seen: str
    """Empty where what was measured is no commit."""
    ratio: float | None
    """None where the value was zero."""
    value: float

    @property
    def size(self) -> float:
        return abs(math.log(self.ratio)) if self.ratio else math.inf


def regressed(session: Session, cases: Collection[str], metric: str = "", since: str = "") -> list[Regressed]:
    """The regressions of these cases, in that metric or in any that gates, since that commit or any; the worst first."""
    for source in (_last_checked, _recorded):
        regressions = [
            regression
            for regression in source(session, cases)
            if metric in ("", regression.metric) and (not since or regression.since.startswith(since))
        ]
        if regressions:
            return sorted(regressions, key=lambda regression: -regression.size)
    return []


def _last_checked(session: Session, cases: Collection[str]) -> list[Regressed]:
    return [
        Regressed(case, metric, last.base, last.head, last.ratio, last.value)
        for (case, metric), last in last_verdicts(session.cache, session.machine.name).items()
        if case in cases and last.verdict is Verdict.REGRESSED
    ]


def _recorded(session: Session, cases: Collection[str]) -> list[Regressed]:
    """What is open in the recorded history of the checkout, on any machine."""
    names = {case.partition("(")[0] for case in cases}
    changes = events_on(session, session.repository.commits("HEAD"), names, machine=None).changes
    return [_of(change) for change in _last_of_each(changes) if str(change.case) in cases]


def _last_of_each(changes: Iterable[Changed]) -> Collection[Changed]:
    """Of each series the newest regression that is open."""
    newest = {}
    for change in changes:
        if change.point.is_open:
            newest[change.case, change.metric.name, change.machine, change.environment, change.device] = change
    return newest.values()


def _of(changed: Changed) -> Regressed:
    point = changed.point
    return Regressed(str(changed.case), changed.metric.name, point.good, point.first, point.ratio, point.after)
