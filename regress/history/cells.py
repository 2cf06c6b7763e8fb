"""Rounds to rows of asv's file: which rounds of a case belong together, and what asv keeps of them.

What asv keeps of a list of values are median, quartiles, and a 99 % interval of the median. They follow the definitions of
asv_runner 0.3 (`asv_runner.statistics.compute_stats`), so that asv's pages and its comparison treat our files like its own.
Verdicts never come from here.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from regress.history.names import further_name, further_version, own_metric_of
from regress.history.results_file import (
    COLUMNS,
    Cell,
    Row,
    axes_of,
    cells_of,
    merged_axes,
    row_from,
    shortened,
    too_many,
)
from regress.history.sidecar import Kept
from regress.model import DECLARED_SAMPLING, METRICS, PROTOCOL_IDENTITY, Benchmark, Protocol, Round


def newest_alike(kept: Iterable[Kept]) -> tuple[dict[str, list[Kept]], list[str]]:
    """The rounds of each benchmark that may be pooled, and a note for each benchmark that has others too.

    `kept` are in the order measured. The newest round decides: of a benchmark, rounds with its version and declared sampling;
    of a case, rounds measured in its way with the same packages installed. A failed round of an earlier run does not count
    once a later run has visited the case.
    """
    groups: dict[str, list[Kept]] = {}
    for record in kept:
        groups.setdefault(record.round.name, []).append(record)
    alike: dict[str, list[Kept]] = {}
    notes = []
    for name, group in groups.items():
        cases: dict[tuple[str, ...], list[Kept]] = {}
        unlike = []
        for record in group:
            if differences := _differences(record, group[-1]):
                unlike.append(differences)
            else:
                cases.setdefault(tuple(record.round.params), []).append(record)
        alike[name] = []
        for case in cases.values():
            of_one_way = _of_one_way(case)
            unlike += [["protocol"]] * (len(case) - len(of_one_way))
            under_one = _of_one_installation(of_one_way)
            unlike += [["packages installed"]] * (len(of_one_way) - len(under_one))
            alike[name] += [
                record for record in under_one if record.round.failure is None or record.round.run == case[-1].round.run
            ]
        if unlike:
            what = ", ".join(dict.fromkeys(word for words in unlike for word in words))
            notes.append(
                f"{name}: {len(unlike)} older rounds were measured differently (other {what}) and are left out"
            )
    return alike, notes


def _differences(record: Kept, newest: Kept) -> list[str]:
    """How that round's benchmark differs from the newest one; empty if they are the same benchmark."""
    if _code(record, newest) != _code(newest, record):
        return ["version"]
    names = (name for name in DECLARED_SAMPLING if record.sampling.get(name) != newest.sampling.get(name))
    return [f"declared {name}" for name in names]


def _code(record: Kept, other: Kept) -> str:
    """The identity of both: the code if it is known for both, else asv's version."""
    known = (
        record.benchmark is not None and other.benchmark is not None and record.benchmark.uses and other.benchmark.uses
    )
    return record.benchmark.code if known and record.benchmark is not None else record.version


def _of_one_way(case: Sequence[Kept]) -> list[Kept]:
    ways = [_way(record.round.protocol) for record in case if record.round.protocol is not None]
    return [record for record in case if record.round.protocol is None or _way(record.round.protocol) == ways[-1]]


def _of_one_installation(case: Sequence[Kept]) -> list[Kept]:
    """Rounds with the same packages as the newest one that lists them; rounds that list none are kept."""
    known = [record.round.facts.get("installed") for record in case]
    newest = next(filter(None, reversed(known)), None)
    return [record for record, own in zip(case, known, strict=True) if own in (None, newest)]


def _way(protocol: Protocol) -> tuple[Any, ...]:
    """What makes two rounds of a case comparable; how long was sampled does not."""
    return tuple(getattr(protocol, name) for name in PROTOCOL_IDENTITY)


# -- rows ----------------------------------------------------------------------------------------------------------------


def rows_of(
    benchmark: Benchmark,
    rounds: Sequence[Round],
    old: Mapping[str, Row],
    visited: Collection[tuple[str, ...]] = (),
) -> dict[str, Row]:
    """The rows of a benchmark: its own, and one for each further metric. `old` are the file's current rows.

    Cells of an old row of the same version stay if no round has visited the case; they are matched by parameter values.
    `visited` are cases of rounds that are no longer among these: their cells came from those rounds, and are removed too.
    """
    own = own_metric_of(benchmark, rounds)
    cases: dict[tuple[str, ...], list[Round]] = {}
    for round in rounds:
        cases.setdefault(tuple(round.params), []).append(round)
    started = [round.started_at for round in rounds if round.started_at]
    started_ms = int(min(started) * 1000) if started else None
    duration_s = shortened(math.fsum(round.duration_s for round in rounds), 5)

    def row(name: str, version: str, metric: str, duration_s: float | None) -> Row:
        before = old.get(name, {})
        if recorded_later(before.get("started_at"), rounds):
            return before
        if before.get("version") not in (None, version):
            before = {}
        stay = {params: cell for params, cell in cells_of(before).items() if params not in visited}
        points = ([[value] for value in params] for params in cases)
        axes = merged_axes(benchmark.params, *points, axes_of(before))
        if too_many(axes, len(cases)):
            axes, stay = merged_axes(benchmark.params, *points), {}
        cells = {**stay, **{params: _cell(case, metric) for params, case in cases.items()}}
        others = {column: value for column, value in before.items() if column == "profile" or column not in COLUMNS}
        return row_from(axes, cells, version=version, started_at=started_ms, duration=duration_s, **others)

    rows = {benchmark.name: row(benchmark.name, benchmark.version, own, duration_s)}
    for metric in dict.fromkeys(metric for round in rounds for metric in round.values if metric != own):
        name = further_name(benchmark.name, metric)
        # asv adds durations up, and one round gave all metrics: the benchmark's own row has the whole
        rows[name] = row(name, further_version(benchmark.version, metric), metric, None)
    return rows


def recorded_later(started_ms: float | None, rounds: Iterable[Round]) -> bool:
    """Whether asv began to measure a row after the newest of these rounds; a round without a time (0) is ignored."""
    newest = max(round.started_at for round in rounds)
    return newest > 0 and (started_ms or 0) > newest * 1000


def _cell(rounds: Sequence[Round], metric: str) -> Cell:
    """A case's cell: the median of its rounds. Values that are not numbers (NaN, infinite) are in the sidecar only."""
    measured = [(round.values[metric].value, round.protocol) for round in rounds if metric in round.values]
    values = [value for value, _ in measured if math.isfinite(value)]
    if values:
        ordered = sorted(values)
        low, high = median_interval(ordered)
        stats = {
            "ci_99_a": low,
            "ci_99_b": high,
            "q_25": quantile(ordered, 0.25),
            "q_75": quantile(ordered, 0.75),
            "number": _calls(metric, measured[-1][1]),
            "repeat": len(values),
        }
        return Cell(quantile(ordered, 0.5), values, stats)
    skipped = all(round.failure is not None and round.failure.kind == "skipped" for round in rounds)
    return Cell(math.nan if skipped else None)


def _calls(metric: str, protocol: Protocol | None) -> int:
    """Calls that one sample of the metric spans."""
    if protocol is None or metric not in METRICS or METRICS[metric].kind not in ("time", "host"):
        return 1
    if protocol.short_windows and metric == "host_time" != protocol.metric:
        return protocol.host_calls
    return protocol.wall_calls if metric == "wall_time" != protocol.metric else protocol.calls


TAIL = 0.005
"""Probability on either side of the 99 % interval."""


def quantile(ordered: Sequence[float], q: float) -> float:
    """The quantile of sorted values, interpolated between neighbours (Hyndman and Fan's type 7)."""
    position = (len(ordered) - 1) * q
    below = math.floor(position)
    part = position - below
    if part == 0:
        return ordered[below]
    return (1 - part) * ordered[below] + part * ordered[below + 1]


def median_interval(ordered: Sequence[float]) -> tuple[float, float]:
    """A 99 % interval of the median of sorted values; infinite on both sides for a single one.

    From 8 values on it is between two order statistics (binomial, without assumptions). Below that, no order statistic is far
    enough out, so the tails of the posterior under Laplace-distributed noise are used, but never inside the values.
    """
    n = len(ordered)
    if n == 1:
        return -math.inf, math.inf
    below, outermost = 0.0, -1
    for k in range(n):
        below += math.comb(n, k) / 2**n
        if below > TAIL:
            break
        outermost = k
    if outermost >= 0:
        return ordered[outermost], ordered[n - 1 - outermost]
    # Scaled by a power of two, which is exact: sums and quotients of what a float can hold may be more or less than it can.
    power = math.frexp(max(map(abs, ordered)))[1]
    scaled = [math.ldexp(value, -power) for value in ordered]
    mirrored = [-value for value in reversed(scaled)]
    return _unscaled(_laplace_low(scaled), power), _unscaled(-_laplace_low(mirrored), power)


def _unscaled(value: float, power: int) -> float:
    try:
        return math.ldexp(value, power)
    except OverflowError:
        return math.copysign(math.inf, value)


def _laplace_low(y: Sequence[float]) -> float:
    """The 0.5 % quantile of the posterior p(m | y) ~ S(m)^-n, S(m) = sum |y_i - m|, or the smallest value if that is lower.

    S is linear between neighbours, with slope 2k - n above k values, so the integral over each piece is known. Lengths are in
    units of S at the median, where S is smallest: no power of it can overflow.
    """
    n, nu = len(y), len(y) - 1
    unit = _distances(y, quantile(y, 0.5))
    if unit == 0:
        return y[0]
    s = [_distances(y, value) / unit for value in y]
    left, right = math.pow(s[0], -nu) / (nu * n), math.pow(s[-1], -nu) / (nu * n)
    total = left + right
    for k in range(1, n):
        slope = 2 * k - n
        if slope == 0:
            total += (y[k] - y[k - 1]) / unit * math.pow(s[k], -n)
        else:
            total += (math.pow(s[k - 1], -nu) - math.pow(s[k], -nu)) / (nu * slope)
    wanted = TAIL * total
    if wanted >= left:
        return y[0]
    return y[0] - (math.pow(nu * n * wanted, -1 / nu) - s[0]) * unit / n


def _distances(values: Sequence[float], point: float) -> float:
    return math.fsum(abs(value - point) for value in values)
