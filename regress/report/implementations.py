"""Implementations side by side: a row for each combination of the other parameters, and where the fastest changes."""

from __future__ import annotations

from collections.abc import Iterator

from regress.model import Contender, Crossover, Implementations, Report, Standing
from regress.report.rows import metric_words
from regress.text.style import Style, paint, visible
from regress.text.table import Row, table, titles
from regress.text.wording import more_with_v
from regress.units import MISSING, format_alike, format_change, format_interval

_FEW = 3
"""Reasons that are shown without -v."""


def implementations(report: Report, style: Style) -> list[str]:
    """A table for each benchmark; below it the crossovers, and what speaks against telling implementations apart."""
    lines: list[str] = []
    for operation in report.implementations:
        own = table(rows(operation, style, mark="*"), aligns(operation), style)
        lines += [f"  {paint(title(operation), 'bold', style)}", *own]
        lines += [f"  {line}" for line in (*crossovers(operation), *reasons(operation, style))]
        lines.append("")
    return lines


def sentences(report: Report) -> list[str]:
    """The answers alone, a line for each crossover, or if there is no size for each combination."""
    return [
        f"{visible(operation.name)}: {line}" for operation in report.implementations for line in _answers(operation)
    ]


def title(operation: Implementations) -> str:
    return f"{visible(operation.name)}: implementations by {metric_words(operation.metric.name)}"


def aligns(operation: Implementations) -> str:
    return f"l{'r' * len(operation.names)}l"


def rows(operation: Implementations, style: Style, mark: str = "") -> list[Row]:
    """The rows, below the titles of their columns. The fastest one's time bears the mark; of what has no time stands how it
    failed."""
    names = ", ".join(map(visible, operation.param_names))
    heads = titles(names, *(f"{visible(name)}{_beside(mark, False)}" for name in operation.names), "fastest")
    return [heads, *(_row(standing, operation, style, mark) for standing in operation.standings)]


def crossovers(operation: Implementations) -> list[str]:
    """ "fastest by n: triton up to 512, torch from 1024", for each combination of the parameters that are left."""
    return [
        f"fastest by {visible(operation.size)}{_of(crossover, operation)}: {visible(crossover.words)}"
        for crossover in operation.crossovers
    ]


def reasons(operation: Implementations, style: Style) -> list[str]:
    """Why implementations are not told apart where that is not for their times; unless verbose a few."""
    every = [f"{_params(standing)}{visible(reason)}" for standing in operation.standings for reason in standing.reasons]
    shown = every if style.verbose else every[:_FEW]
    left = len(every) - len(shown)
    return [*shown, *([more_with_v(left)] if left else [])]


# -- parts ---------------------------------------------------------------------------------------------------------------


def _row(standing: Standing, operation: Implementations, style: Style, mark: str) -> Row:
    by_name = {contender.name: contender for contender in standing.contenders}
    values = [by_name[name].summary if name in by_name else None for name in operation.names]
    texts = format_alike([summary.center if summary else None for summary in values], visible(operation.metric.unit))
    cells = [
        f"{text if text != MISSING else _absent(by_name.get(name))}{_beside(mark, name == standing.fastest)}"
        for name, text in zip(operation.names, texts, strict=True)
    ]
    accent = operation.names.index(standing.fastest) + 1 if standing.fastest else None
    return Row(
        (", ".join(map(visible, standing.params)), *cells, _verdict(standing, style)), color="green", accent=accent
    )


def _beside(mark: str, marked: bool) -> str:
    """The mark, or the room for it."""
    return f" {mark if marked else ' ' * len(mark)}" if mark else ""


def _absent(contender: Contender | None) -> str:
    return contender.failure.kind if contender is not None and contender.failure is not None else MISSING


def _verdict(standing: Standing, style: Style) -> str:
    """ "triton, then compiled +6.4 %"; "no difference shown: torch, triton"."""
    if standing.outcome == "alone":
        return f"only {visible(standing.leaders[0])}"
    if not standing.fastest:
        return ": ".join(filter(None, (standing.outcome, ", ".join(map(visible, standing.leaders)))))
    after = standing.next
    if after is None or after.ratio is None:
        return visible(standing.fastest)
    interval = f" ({format_interval(after.low, after.high)})" if style.verbose else ""
    return f"{visible(standing.fastest)}, then {visible(after.name)} {format_change(after.ratio)}{interval}"


def _answers(operation: Implementations) -> Iterator[str]:
    if operation.size:
        yield from crossovers(operation)
    else:
        yield from (f"{_params(standing)}{_verdict(standing, Style())}" for standing in operation.standings)


def _of(crossover: Crossover, operation: Implementations) -> str:
    pairs = zip(operation.rest_names, crossover.params, strict=True)
    return "".join(f", {visible(name)} {visible(value)}" for name, value in pairs)


def _params(standing: Standing) -> str:
    return f"{', '.join(map(visible, standing.params))}: " if standing.params else ""
