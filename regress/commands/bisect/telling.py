"""What a bisection says: on the way, and in the end."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from regress.commands.bisect.ledger import Judged, Probed
from regress.commands.bisect.search import CommitSearch
from regress.compare.bisection import DOUBT, CandidateRange, Search
from regress.model import Bisection, Case, Commit, Probe
from regress.text.wording import counted
from regress.units import format_change, format_duration, format_interval, format_percent

SUREST = 0.999
"""Nothing that rests on a model of noise is called surer."""


def bisection(line: CommitSearch, case: Case, merges: Sequence[Commit] = ()) -> Bisection:
    """The search as far as it is."""
    ends = line.ends
    start = Bisection(case, line.good, line.commits[-1], len(line.commits), merges=tuple(merges))
    if ends is None:
        return start
    change = ends.contrast
    if ends.kind is None:
        return Bisection(case, line.good, line.commits[-1], len(line.commits), change, merges=tuple(merges))
    search = line.state()
    place, verified = _place(line, search)
    confirmed = line.confirmed is not None
    sure = search.mass(place)
    return Bisection(
        case=case,
        good=line.good,
        bad=line.commits[-1],
        candidates=len(line.commits),
        change=change,
        probes=tuple(probes(line)),
        found=line.commits[place.good + 1 : place.bad + 1],
        parent=line.commit_at(place.good),
        step=verified.contrast if verified is not None else None,
        confirmed=confirmed,
        confidence=sure if search.exact else min(sure, SUREST),
        merges=tuple(merges),
        reasons=tuple(_reasons(line, search, place)),
    )


def _place(line: CommitSearch, search: Search) -> tuple[CandidateRange, Judged | None]:
    """What was found, or is left, and what verifying it gave."""
    if line.confirmed is not None:
        return line.confirmed
    place = search.best()[0] if search.is_sure else search.likely()
    return place, next((judgement for verified, judgement in reversed(line.verified) if verified == place), None)


def _reasons(line: CommitSearch, search: Search, place: CandidateRange) -> Iterator[str]:
    if search.is_split:
        yield "the change came in several steps; this is the largest one found"
    skipped = [at for at in range(place.good + 1, place.bad) if at in search.untestable]
    if skipped:
        yield f"{counted(len(skipped), 'commit')} of them cannot be measured"


def probes(line: CommitSearch) -> Iterator[Probe]:
    """Each probe with what was known after it, as if they had been measured one after the other."""
    so_far: dict[str, Probed] = {}
    final = line.state()
    for sha, probed in line.probes.items():
        so_far[sha] = probed
        search = line.state(so_far)
        yield _probe(line, sha, probed, search, final)


def _probe(line: CommitSearch, sha: str, probed: Probed, search: Search, final: Search) -> Probe:
    at = next(at for at, commit in enumerate(line.commits) if commit.sha == sha)
    commit, left = line.commits[at], search.likely(1 - DOUBT)
    count = left.bad - left.good
    if probed.skipped:
        return Probe(commit, "skipped", left=count, reason=probed.skipped)
    standing = final.standing(at)
    ratio = low = high = None
    if line.ends is not None and line.ends.kind == "noisy":
        ratio, low, high = (math.exp(value) for value in (standing.change, standing.low, standing.high))
    elif line.ends is not None and line.ends.kind == "exact":
        pair = probed.pairs[-1]
        ratio = low = high = pair.head / pair.base if pair.base else None
    return Probe(commit, standing.state, ratio, low, high, len(probed.pairs), count)


# -- on the way ----------------------------------------------------------------------------------------------------------


def estimate(line: CommitSearch) -> str:
    """What the search will take: "64 commits: about 6 builds and 40 rounds, about 2 min"."""
    ends, search = line.ends, line.state()
    assert ends is not None
    builds, pairs = search.expected()
    pairs += 6 if not search.exact else 1
    prepare_s, pair_s = ends.seconds
    took = format_duration(builds * prepare_s + pairs * pair_s, rough=True)
    rounds = counted(2 * pairs, "round")
    return f"{counted(len(line.commits), 'commit')}: about {counted(builds, 'build')} and {rounds}, about {took}"


def probe_words(probe: Probe) -> str:
    """ "9d41e770 Fuse the passes: +9.6 % (+9.1 … +10.1), bad; 16 commits left"."""
    what = f"{probe.commit.short} {probe.commit.subject}"
    if probe.state == "skipped":
        return f"{what}: skipped, {probe.reason}; {counted(probe.left, 'commit')} left"
    change = ""
    if probe.ratio is not None:
        inside = f" ({format_interval(probe.low, probe.high)})" if probe.low != probe.high else ""
        change = f"{format_change(probe.ratio)}{inside}, "
    return f"{what}: {change}{probe.state}; {counted(probe.left, 'commit')} left"


def remark(result: Bisection, *, interrupted: bool) -> str:
    """What the last line says: the commit or the range, and how sure."""
    if result.change is None:
        return "the ends were not measured"
    if not result.found:
        return "nothing to bisect: " + no_change(result)
    last = result.found[-1]
    author = f" ({last.author})" if last.author else ""
    if len(result.found) == 1:
        what = f"{last.short} {last.subject}{author}"
    else:
        what = f"one of {len(result.found)} commits, {result.found[0].short} to {last.short}"
    sure = "" if result.confidence is None else f", {_sure(result.confidence)}"
    how = "confirmed" if result.confirmed else "not confirmed"
    return f"{what}{sure}, {how}" if not interrupted else f"{what} so far{sure}"


def _sure(confidence: float) -> str:
    return "certain" if confidence >= 0.9999 else f"{format_percent(math.floor(confidence * 1000) / 1000)} sure"


def no_change(result: Bisection) -> str:
    """Why there is nothing to look for."""
    change = result.change
    assert change is not None
    words = [str(change.verdict)]
    if change.ratio is not None:
        inside = f" ({format_interval(change.low, change.high)})" if change.low is not None and not change.exact else ""
        words.append(f"{format_change(change.ratio)}{inside}")
    metric = change.metric.name.replace("_", " ")
    return f"{metric} of {result.good.short} and {result.bad.short}: {', '.join([*words, *change.reasons])}"
