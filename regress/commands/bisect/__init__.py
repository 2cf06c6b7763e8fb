"""`regress bisect`: the commit that made a case slower or fail, or use more memory, among those between a good and a bad one.

meter    two commits measured in turn
ledger   what was measured, kept for the next time
search   a line of commits, searched
past     what recorded rounds say of where to begin
telling  what is said on the way and in the end
"""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Sequence
from dataclasses import replace

from regress.commands.bisect.ledger import SavedBisection
from regress.commands.bisect.meter import Meter
from regress.commands.bisect.past import recorded_weights
from regress.commands.bisect.search import CommitSearch
from regress.commands.bisect.telling import bisection, estimate, probe_words, probes, remark
from regress.errors import Exit, NothingMeasured, RegressError, StoreError
from regress.git import line_between, merged_by
from regress.history import keep_confirmed
from regress.model import Bisection, Case, Commit, Contrast, Report
from regress.run.execute import Watcher, discover
from regress.run.plan import cases_of
from regress.run.problems import where_searched
from regress.session import Request, Session, check_metric
from regress.text.wording import counted, first_of, near_names, quoted
from regress.units import format_duration

NEAR = 3
"""Names that a message offers."""


def bisect(
    request: Request,
    words: str,
    good: str,
    bad: str,
    watcher: Watcher,
    *,
    metric: str = "",
    environment: str = "",
    budget_s: float = math.inf,
    restart: bool = False,
) -> Report:
    """Find the commit after `good`, up to `bad`, that changed the case which `words` name, in `metric` (empty: the worst one
    that gates). Where a bisection was interrupted it goes on, unless `restart` is set.
    """
    start = time.monotonic()
    check_metric(metric)
    session = Session(request)
    sides = session.revision_side("base", good, "", environment), session.revision_side("head", bad, "", environment)
    commits = [side.commit for side in sides]
    run = _Bisect(session, watcher, metric, environment, start + budget_s, restart)
    line = line_between(session.repository, commits[0], commits[1], session.own_paths, [words, *run.options])
    if not line:
        why = "the commits between them touch only results and reports"
        raise NothingMeasured(
            f"{commits[0].short} and {commits[1].short} have the same code", why=why, fix="name others"
        )
    run.result = Bisection(Case(words), commits[0], line[-1], len(line))
    try:
        run.choose_case(words, commits[0], line[-1])
        run.search(commits[0], line)
    except KeyboardInterrupt:
        run.interrupted = True
    code = run.exit_code
    run.keep()
    if code in (Exit.PASSED, Exit.NOTHING):
        run.forget()
    result, options = run.result, run.options
    unmeasured = code == Exit.NOTHING and result.change is None
    over = (code == Exit.UNDECIDED or unmeasured) and not result.confirmed and time.monotonic() > start + budget_s
    return Report(
        command="bisect",
        exit_codes=(code,),
        state=code.word if code else "FOUND",
        base=sides[0],
        head=sides[1],
        machine=run.meter.machine,
        device=run.meter.device,
        plan=", ".join(filter(None, [run.plan, run.recorded])),
        bisection=result,
        remark=f"the budget of {format_duration(budget_s)} ended before both ends were measured"
        if over and unmeasured
        else remark(result, interrupted=code == Exit.INTERRUPTED),
        warnings=tuple(run.meter.warnings),
        suggestions=tuple(_suggestions(result, code, [str(result.case), good, bad], options, run.again, over=over)),
        options=tuple(options),
        recorded=run.meter.recorded,
        duration_s=time.monotonic() - start,
    )


class _Bisect:
    """One bisection: the line between both ends, and those of merges on it. Attributes say how far it is."""

    def __init__(
        self, session: Session, watcher: Watcher, metric: str, environment: str, end_s: float, restart: bool
    ) -> None:
        self._session, self._watcher = session, watcher
        self._asked, self._environment, self._end_s, self._restart = metric, environment, end_s, restart
        self._metric = metric
        """The one that is looked at, once it is known."""
        self.meter = Meter(session, watcher, environment)
        self.result: Bisection
        self.interrupted = False
        self.plan = self.recorded = ""
        self._versions: dict[Case, str] = {}
        self._ledgers: list[SavedBisection] = []

    # -- what is looked for ----------------------------------------------------------------------------------------------

    def choose_case(self, words: str, good: Commit, bad: Commit) -> None:
        """Find the case in the suite, as it is with the bad end's code, or else with the good end's."""
        cases: dict[Case, str] = {}
        for name, commit in (("head", bad), ("base", good)):
            prepared, _ = self.meter.prepare(commit, name)
            suite = discover(self.meter.job(prepared), prepared, self._watcher)
            cases.update((case, benchmark.code) for benchmark in suite.benchmarks for case in cases_of(benchmark))
            try:
                self.meter.case = one_case(words, list(cases))
                break
            except NothingMeasured as error:
                if name == "base" and any(problem.fatal for problem in suite.problems):
                    why = where_searched(self._session.config.benchmark_dir, suite.problems)
                    raise NothingMeasured(error.what, why=why, fix=error.fix) from None
                if name == "base":
                    raise
        self._versions = cases

    def search(
        self, good: Commit, commits: Sequence[Commit], merges: tuple[Commit, ...] = (), outer: Contrast | None = None
    ) -> bool:
        """Search a line, and then what the merge has brought along that was found there; whether its ends differ, as the
        `outer` ones do."""
        line = CommitSearch(self.meter, self._ledger(good, commits[-1]), good, commits, self._told, self._end_s)
        try:
            ends = line.measure_ends(self._metric)
            if ends is None or ends.kind is None:
                return False
            if outer is not None and ends.contrast.verdict is not outer.verdict:
                return False
            if outer is None:
                self._metric = ends.contrast.metric.name
                self.plan = estimate(line)
                self._weigh(line)
            self._watcher.note(estimate(line))
            self._watcher.start(line.state().expected()[0], "bisecting")
            line.search()
        finally:
            self.interrupted = self.interrupted or line.interrupted
            if outer is None or (line.ends is not None and line.ends.contrast.verdict is outer.verdict):
                self.result = bisection(line, self.meter.case, merges)
        if line.confirmed is not None and len(self.result.found) == 1:
            self._enter(self.result)
        return True

    def _enter(self, outer: Bisection) -> None:
        """Where it is a merge that was found, look whether it was brought along, and by which commit."""
        (merge,) = outer.found
        assert outer.parent is not None
        assert outer.change is not None
        if len(merge.parents) < 2:
            return
        for base, parent in merged_by(self._session.repository, merge, outer.parent):
            inner = line_between(self._session.repository, base, parent, self._session.own_paths)
            if not inner:
                continue
            self._watcher.note(f"{merge.short} is a merge: looking into the {counted(len(inner), 'commit')} it merged")
            if self.search(base, inner, (*outer.merges, merge), outer.change):
                return
        if not self.interrupted:
            self.result = replace(outer, reasons=(*outer.reasons, "a merge: its branch alone does not show the change"))

    def _ledger(self, good: Commit, bad: Commit) -> SavedBisection:
        case, request = self.meter.case, self._session.request
        version = self._versions.get(case, "")
        machine = self._session.machine.name
        about = (
            str(case),
            version,
            self._metric,
            good.sha,
            bad.sha,
            self._environment,
            machine,
            *self._session.devices.uuids,
            str(request.own_suite),
        )
        ledger = SavedBisection(self._session.cache, about)
        if self._restart:
            ledger.restart()
        elif ledger.entries.ends is not None:
            self._watcher.note(f"resuming: {counted(len(ledger.entries.probes), 'commit')} probed before")
        self._ledgers.append(ledger)
        return ledger

    def forget(self) -> None:
        for ledger in self._ledgers:
            ledger.forget()

    def keep(self) -> None:
        """Keep for the history what was confirmed: the change between the ends, and the step of the commit that did it."""
        result = self.result
        parts = [(result.change, result.good, result.bad)]
        if result.confirmed and result.parent is not None:
            parts.append((result.step, result.parent, result.found[-1]))
        for contrast, base, head in parts:
            if contrast is not None:
                claim = (result.case, contrast.metric, contrast.verdict, contrast.ratio)
                with contextlib.suppress(StoreError):
                    keep_confirmed(
                        self._session.cache, self._session.machine.name, "bisect", base.sha, head.sha, [claim]
                    )

    def _weigh(self, line: CommitSearch) -> None:
        """Begin where recorded rounds say, if there are any."""
        search, ends = line.state(), line.ends
        if search.exact or ends is None:
            return
        commits = [line.good, *line.commits]
        name, case = ends.contrast.metric.name, self.meter.case
        weights, known = recorded_weights(
            self._session, commits, case, name, self.meter.recorded_as or None, search.size, search.sd[0]
        )
        if weights:
            line.weights = weights
            self.recorded = f"starting from the recorded rounds of {counted(known, 'commit')}"

    # -- what came of it -------------------------------------------------------------------------------------------------

    @property
    def exit_code(self) -> Exit:
        result = self.result
        if self.interrupted:
            return Exit.INTERRUPTED
        if not result.found:
            return Exit.NOTHING
        return Exit.PASSED if result.confirmed and len(result.found) == 1 else Exit.UNDECIDED

    @property
    def options(self) -> list[str]:
        """Words that ask for the same again."""
        machine = self._session.request.overrides.get("machine")
        named = (("--metric", self._asked), ("--env", self._environment), ("--machine", machine))
        words = [word for name, value in named if value for word in (name, value)]
        return [*words, *self._session.again]

    @property
    def again(self) -> list[str]:
        """Words that a check in the same way needs."""
        named = [word for option in ("--base-env", "--head-env") for word in (option, self._environment)]
        return [*(named if self._environment else []), *self._session.again]

    def _told(self, line: CommitSearch, commit: Commit) -> None:
        probe = next(candidate for candidate in probes(line) if candidate.commit == commit)
        self._watcher.note(probe_words(probe))
        self._watcher.advance(commit.short)


def _suggestions(
    result: Bisection, code: Exit, words: Sequence[str], options: Sequence[str], again: Sequence[str], *, over: bool
) -> list[tuple[str, str]]:
    again_words = quoted("regress", "bisect", *words, *options)
    if code == Exit.INTERRUPTED or over:
        return [("go on", again_words)]
    if code == Exit.UNDECIDED and not result.confirmed:
        return [("again", f"{again_words} --restart")]
    if result.confirmed and result.parent is not None:
        ends = result.parent.short, result.found[-1].short
        return [("again", quoted("regress", "check", *ends, *again, "-b", str(result.case)))]
    return []


# -- the case ------------------------------------------------------------------------------------------------------------


def one_case(words: str, cases: Sequence[Case]) -> Case:
    """The case of that name; the only one of the benchmark of that name; or the only one that the regular expression matches.

    Raises NothingMeasured if there is none, RegressError where there are several.
    """
    for matching in (
        [case for case in cases if str(case) == words],
        [case for case in cases if case.name == words],
        _matching(words, cases),
    ):
        if len(matching) == 1:
            return matching[0]
        if matching:
            raise RegressError(
                f"{words!r} is {len(matching)} cases; bisect takes one",
                why=first_of(matching, NEAR),
                fix=f"name one: {quoted(str(matching[0]))}",
            )
    near = near_names(words, [*map(str, cases), *(case.name for case in cases)], NEAR)
    raise NothingMeasured(
        f"there is no case {words!r}",
        why=f"the suite has {len(cases)} cases, and no similar name"
        if not near
        else "it is neither a name nor a pattern that matches",
        fix="name " + " or ".join(near) if near else "regress list",
    )


def _matching(words: str, cases: Sequence[Case]) -> list[Case]:
    try:
        pattern = re.compile(words)
    except re.error:
        return []
    return [case for case in cases if pattern.search(str(case))]
