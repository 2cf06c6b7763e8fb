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
    for found in report.implementations:
        own = table(rows(found, style, mark="*"), aligns(found), style)
        lines += [f"  {paint(title(found), 'bold', style)}", *own]
        lines += [f"  {line}" for line in (*crossovers(found), *reasons(found, style))]
        lines.append("")
    return lines


def sentences(report: Report) -> list[str]:
    """The answers alone, a line for each crossover, or if there is no size for each combination."""
    return [f"{visible(found.name)}: {line}" for found in report.implementations for line in _answers(found)]


def title(found: Implementations) -> str:
    return f"{visible(found.name)}: implementations by {metric_words(found.metric.name)}"


def aligns(found: Implementations) -> str:
    return f"l{'r' * len(found.names)}l"


def rows(found: Implementations, style: Style, mark: str = "") -> list[Row]:
    """The rows, below the titles of their columns. The fastest one's time bears the mark; of what has no time stands how it
    failed."""
    names = ", ".join(map(visible, found.param_names))
    heads = titles(names, *(f"{visible(name)}{_beside(mark, False)}" for name in found.names), "fastest")
    return [heads, *(_row(each, found, style, mark) for each in found.standings)]


def crossovers(found: Implementations) -> list[str]:
    """ "fastest by n: triton up to 512, torch from 1024", for each combination of the parameters that are left."""
    return [f"fastest by {visible(found.size)}{_of(each, found)}: {visible(each.words)}" for each in found.crossovers]


def reasons(found: Implementations, style: Style) -> list[str]:
    """Why implementations are not told apart where that is not for their times; unless verbose a few."""
    every = [f"{_params(each)}{visible(reason)}" for each in found.standings for reason in each.reasons]
    shown = every if style.verbose else every[:_FEW]
    left = len(every) - len(shown)
    return [*shown, *([more_with_v(left)] if left else [])]


# -- parts ---------------------------------------------------------------------------------------------------------------


def _row(standing: Standing, found: Implementations, style: Style, mark: str) -> Row:
    by_name = {each.name: each for each in standing.contenders}
    values = [by_name[name].summary if name in by_name else None for name in found.names]
    texts = format_alike([each.center if each else None for each in values], visible(found.metric.unit))
    cells = [
        f"{text if text != MISSING else _absent(by_name.get(name))}{_beside(mark, name == standing.fastest)}"
        for name, text in zip(found.names, texts, strict=True)
    ]
    accent = found.names.index(standing.fastest) + 1 if standing.fastest else None
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


def _answers(found: Implementations) -> Iterator[str]:
    if found.size:
        yield from crossovers(found)
    else:
        yield from (f"{_params(each)}{_verdict(each, Style())}" for each in found.standings)


def _of(crossover: Crossover, found: Implementations) -> str:
    pairs = zip(found.rest_names, crossover.params, strict=True)
    return "".join(f", {visible(name)} {visible(value)}" for name, value in pairs)


def _params(standing: Standing) -> str:
    return f"{', '.join(map(visible, standing.params))}: " if standing.params else ""
