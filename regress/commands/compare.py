"""`regress compare`: the verdicts of `check` from recorded results; nothing is measured.

On request it compares two places, machines or environments, with each other. What differs there is neither better nor worse by
any commit: it has changed, and the exit code says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from regress.acks import acknowledged
from regress.acks.project import review, unsteady
from regress.commands.check import suggestions, with_verdicts
from regress.compare import compare, finer, overall, renames
from regress.errors import Exit, NothingMeasured, RevisionError
from regress.history import Loaded, Recorded, Store, left_out
from regress.model import Benchmark, Case, Commit, Comparison, Report, Round, Side, Verdict
from regress.run.plan import Selection, select
from regress.run.unmatched import names_unmatched, nothing_matches
from regress.session import Request, Session
from regress.text.wording import counted, quoted
from regress.trends import past_of
from regress.trends.cards import as_the_mean_card

OFF_BRANCH = "off-branch"
"""What a commit is that no branch and no tag holds any more: it was rebased away."""
SHORTEST_SHA = 4
"""Digits that git asks for too."""
BY_NATURE = ("gpu_uuid", "sm_clock_hz")
"""Facts of a round that always differ between two places, and would make everything incomparable."""


class From(NamedTuple):
    """Whose results are taken of a side; None for the usual ones."""

    machine: str | None = None
    environment: str | None = None


def compare_recorded(
    request: Request,
    base: str,
    head: str,
    environment: str | None = None,
    sources: tuple[From, From] = (From(), From()),
) -> Report:
    """Judge the recorded results of `head` against those of `base`, on this machine unless `sources` say otherwise.

    Raises NothingMeasured where one of them has none (a baseline from another host is no baseline), where they have no
    environment in common or several, and where no benchmark matches.
    """
    session = Session(request)
    sources = _filled(session, sources, environment)
    store = Store(session.config.results_dir)
    sides = recorded_side(session, store, "base", base), recorded_side(session, store, "head", head)
    warnings = list(session.warnings)
    results = [store.load(side.commit.sha, source.machine) for side, source in zip(sides, sources, strict=True)]
    warnings += [left.words for left in left_out(file for loaded in results for file in loaded.skipped)]
    before, after = _pair(sides, results, sources, session, store)
    across = _across(before, after)
    warnings += [f"{recorded.source.name}: {note}" for recorded in (before, after) for note in recorded.notes]
    selection = session.selection()
    now = {old: new for new, old in renames(after.benchmarks, before.benchmarks).items()}
    base_rounds, head_rounds = selected(before, selection, now), selected(after, selection)
    if selection.words and not (base_rounds or head_rounds):
        known = {*before.benchmarks, *after.benchmarks}
        raise nothing_matches(selection, f"searched in the results of {sides[0].label} and {sides[1].label}", known)
    warnings += names_unmatched([*before.benchmarks.values(), *after.benchmarks.values()], selection)
    settings = session.config.settings
    # What git no longer has cannot be measured again.
    again = "check" if all(session.repository.has(side.commit.sha) for side in sides) else "compare"
    defined = {**_still_there(session, sides[1], before.benchmarks), **after.benchmarks}
    if across:
        base_rounds, head_rounds = map(_anywhere, (base_rounds, head_rounds))
    else:
        base_rounds, head_rounds = _on_like_cards(session, after, base_rounds, head_rounds)
    comparisons = compare(base_rounds, head_rounds, defined, settings, before.benchmarks)
    if across:
        comparisons = tuple(map(_of_places, comparisons))
    else:
        # What is recorded may be a part of the suite, so what matches none of it may match something.
        comparisons, _ = acknowledged(comparisons, review(session, sides[1]), sides[0], whole=False)
    summed = overall(comparisons, settings, strict=request.strict)
    one_machine = before.machine.name == after.machine.name
    base_side, head_side = (
        replace(
            side,
            environment=recorded.environment,
            revision=side.revision if one_machine else f"{side.revision}, on {recorded.machine.name}",
        )
        for side, recorded in zip(sides, (before, after), strict=True)
    )
    if not across:
        warnings += session.doubtful_order(*sides)
        warnings += unsteady(session, base_side, head_side, comparisons)
    report = Report(
        command="compare",
        base=base_side,
        head=head_side,
        machine=after.machine if one_machine else None,
        across=across,
        plan=f"{counted(summed.cases, 'case')}, recorded earlier",
        finer=finer(comparisons, settings),
        warnings=tuple(warnings),
        options=_options(sources) if across else ("--environment", environment) if environment else (),
        suggestions=()
        if across
        else (
            *suggestions(again, base_side, head_side, comparisons),
            *(_telling(base_side, head_side, comparisons) if again == "check" else ()),
        ),
    )
    report = with_verdicts(report, comparisons, summed, settings, request.strict)
    if across and summed.exit_codes[0] != Exit.NOTHING:
        return replace(report, exit_codes=(Exit.PASSED,), state="")
    return report


def _telling(base: Side, head: Side, comparisons: Sequence[Comparison]) -> list[tuple[str, str]]:
    """What measures in turn what looks changed and was recorded in sessions apart."""
    open_ = {
        str(comparison.case)
        for comparison in comparisons
        if comparison.alone and comparison.gates and comparison.verdict is Verdict.UNDECIDED
    }
    only = ("-b", *open_) if len(open_) == 1 else ()
    words = quoted("regress", "check", base.commit.short, head.commit.short, *only)
    return [("check", words)] if open_ else []


def _filled(session: Session, sources: tuple[From, From], environment: str | None) -> tuple[From, From]:
    """The same with this machine, and with the environment of both, where nothing else is said."""
    base, head = (From(source.machine or session.machine.name, source.environment or environment) for source in sources)
    return base, head


def _across(before: Recorded, after: Recorded) -> str:
    """Which places are compared, in words: as far as they differ, the head's against the base's; empty where they do not."""
    parts = [(recorded.machine.name, recorded.environment) for recorded in (after, before)]
    told = [part for part in (0, 1) if parts[0][part] != parts[1][part]]
    return " against ".join(" ".join(place[part] for part in told) for place in parts) if told else ""


def _anywhere(rounds: Iterable[Round]) -> list[Round]:
    """The rounds, as if all had been taken in one place and in one session: two machines have none in common."""
    return [
        replace(round, run="", facts={name: value for name, value in round.facts.items() if name not in BY_NATURE})
        for round in rounds
    ]


def _on_like_cards(
    session: Session, recorded: Recorded, base: list[Round], head: list[Round]
) -> tuple[list[Round], list[Round]]:
    """The rounds; of cases that no card has measured on both sides those of the mean card, as far as the history tells."""
    cards = [_cards(base), _cards(head)]
    apart = {name for name in cards[0].keys() & cards[1].keys() if cards[0][name].isdisjoint(cards[1][name])}
    if not apart:
        return base, head
    root, settings = session.config.results_dir, session.config.settings
    where = settings, recorded.machine.name, recorded.environment
    every = [
        Commit(unknown.commit_sha, "", "", unknown.date) for unknown in past_of(root, session.cache, (), *where).unknown
    ]
    past = past_of(root, session.cache, every, *where)
    series = [one_series for name in past.names if name in apart for one_series in past.series(name)]
    corrected = []
    for side, own in (("base", base), ("head", head)):
        known = as_the_mean_card((round for round in own if round.name in apart), series, side)
        corrected.append([*(round for round in own if round.name not in apart), *known])
    return corrected[0], corrected[1]


def _cards(rounds: Iterable[Round]) -> dict[str, set[str]]:
    """By benchmark, which cards have measured it."""
    cards: dict[str, set[str]] = {}
    for round in rounds:
        cards.setdefault(round.name, set()).add(str(round.facts.get("gpu_uuid", "")))
    return cards


def _of_places(comparison: Comparison) -> Comparison:
    """What differs between two places, which is no commit's doing."""
    moved = comparison.verdict in (Verdict.REGRESSED, Verdict.IMPROVED)
    return replace(
        comparison, verdict=Verdict.CHANGED if moved else comparison.verdict, critical=False, unconfirmed=False
    )


def _options(sources: tuple[From, From]) -> tuple[str, ...]:
    """What asks for the same places again."""
    base, head = sources
    named = [("--base-machine", base.machine), ("--head-machine", head.machine)]
    named += [("--base-env", base.environment), ("--head-env", head.environment)]
    return tuple(word for name, value in named if value for word in (name, value))


def _still_there(session: Session, head: Side, benchmarks: Mapping[str, Benchmark]) -> dict[str, Benchmark]:
    """Those whose function the head's file has: where nothing is recorded for one, it was not selected, and is not gone."""
    texts: dict[str, str] = {}
    for file in {benchmark.file for benchmark in benchmarks.values() if benchmark.file}:
        path = session.config.benchmark_dir.parent / file
        texts[file] = session.repository.content(head.commit.sha, path) or ""
    return {
        name: benchmark
        for name, benchmark in benchmarks.items()
        if re.search(rf"\bdef\s+{re.escape(name.rpartition('.')[2])}\b", texts.get(benchmark.file, ""))
    }


def recorded_side(session: Session, store: Store, name: str, revision: str) -> Side:
    """The side of a revision; of a commit that git no longer knows, too, where results name it. One that was rebased away says
    so. Raises RevisionError where there is neither."""
    try:
        side = session.revision_side(name, revision)
    except RevisionError:
        wanted = revision.lower()
        matching = {
            commit.commit_sha: commit.date for commit in store.commits() if commit.commit_sha.startswith(wanted)
        }
        if len(wanted) < SHORTEST_SHA or len(matching) != 1:
            raise
        ((sha, date),) = matching.items()
        return Side(name, Commit(sha, "", "", date), f"{revision}, {OFF_BRANCH}")
    kept = session.repository.is_kept(side.commit)
    return side if kept else replace(side, revision=f"{revision}, {OFF_BRANCH}")


def _pair(
    sides: tuple[Side, Side],
    results: Sequence[Loaded],
    sources: tuple[From, From],
    session: Session,
    store: Store,
) -> tuple[Recorded, Recorded]:
    """The results of both sides in the environments that are named, or in the one that they have in common; of two machines
    that have none in common, in the only one of each."""
    for side, loaded, source in zip(sides, results, sources, strict=True):
        if not loaded.recorded:
            raise missing(side, loaded, session, store, source.machine)
    by_environment = [{recorded.environment: recorded for recorded in loaded.recorded} for loaded in results]
    common = sorted(set(by_environment[0]) & set(by_environment[1]))
    apart = not common and sources[0].machine != sources[1].machine
    usual = [sorted(own) for own in by_environment] if apart else [common, common]
    named = [
        source.environment or (own[0] if len(own) == 1 else "") for source, own in zip(sources, usual, strict=True)
    ]
    before, after = (own.get(name) for own, name in zip(by_environment, named, strict=True))
    if before is not None and after is not None:
        return before, after
    asked = next((source.environment for source in sources if source.environment), None)
    raise _apart([side.label for side in sides], [sorted(names) for names in by_environment], common, asked)


def _apart(labels: list[str], names: list[list[str]], common: list[str], environment: str | None) -> NothingMeasured:
    """The error where the environments of both sides do not decide what to compare."""
    both = " and ".join(labels)
    if environment is not None:
        what = f"{both} do not both have results in {environment}"
    elif common:
        what = f"{both} have results in several environments"
    else:
        what = f"{both} have no environment in common"
    why = "; ".join(
        f"{label} is recorded in {', '.join(environments)}" for label, environments in zip(labels, names, strict=True)
    )
    if common:
        fix = quoted("regress", "compare", *labels, "--environment", common[0])
    else:
        fix = quoted("regress", "check", *labels, "--record")
    return NothingMeasured(what, why=why, fix=fix)


def missing(side: Side, loaded: Loaded, session: Session, store: Store, on: str | None = None) -> NothingMeasured:
    """The error where nothing is recorded for a side on a machine, this one unless another is named."""
    machine, label = on or session.machine.name, side.label
    where = f"this machine ({machine})" if machine == session.machine.name else machine
    what = ("no baseline" if side.name == "base" else f"no results of {label}") + f" on {where}"
    for file in loaded.skipped:
        return NothingMeasured(what, why=f"{file.path} cannot be used: {file.why}", fix=file.fix)
    recorded = store.commits(machine)
    elsewhere = sorted({commit.machine for commit in store.commits() if commit.commit_sha == side.commit.sha})
    if elsewhere and on not in (None, session.machine.name):
        fix = f"--{side.name}-machine {elsewhere[0]}"
        return NothingMeasured(what, why=f"{label} was measured on {', '.join(elsewhere)}", fix=fix)
    if elsewhere:
        why = f"{label} was measured on {', '.join(elsewhere)}: values from another machine are not a baseline"
    else:
        why = f"nothing is recorded for {label}"
    if recorded:
        nearest = min(recorded, key=lambda commit: abs(commit.date - side.commit.date))
        why += f"; nearest in time is {nearest.commit_sha[:8]}"
    else:
        why += f"; nothing is recorded on {machine} in {session.config.results_dir}"
    here = session.repository.has(side.commit.sha)
    return NothingMeasured(what, why=why, fix=f"regress run {label}" if here else "name a commit that is recorded here")


def selected(recorded: Recorded, selection: Selection, now: Mapping[str, str] | None = None) -> list[Round]:
    """The rounds of the cases that match; `now` are the new names of benchmarks that were renamed since."""
    names = {name: (now or {}).get(name, name) for name in recorded.benchmarks}
    benchmarks = [replace(benchmark, name=names[benchmark.name]) for benchmark in recorded.benchmarks.values()]
    wanted = set(select(benchmarks, selection))
    return [
        round for round in recorded.rounds if Case(names.get(round.name, round.name), tuple(round.params)) in wanted
    ]
