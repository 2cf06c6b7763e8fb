"""Values from the ratios between them: one value for each item, such that all ratios are met as well as can be.

Each ratio is right to some percent, and a value that is multiplied up along a chain of them is wrong by the square root of its
length: a year of ratios to the night before drifts by 8 to 16 %. So all ratios there are count at once, also those to items far
back, by weighted least squares on the logarithms (the Gauss-Markov estimate, as levelling does with differences of height).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Ratio(NamedTuple):
    """The logarithm of an item's value over another's, and its weight: one over the variance."""

    item: int
    to: int
    log_ratio: float
    weight: float


def values_from(ratios: Iterable[Ratio]) -> dict[int, tuple[float, int]]:
    """By item: the logarithm of its value over that of the last item that ratios link it with, directly or by way of others,
    and which one that is. Items are numbered in their order; weights are positive."""
    import numpy
    from scipy.sparse import coo_array, csgraph
    from scipy.sparse.linalg import spsolve

    every = [ratio for ratio in ratios if ratio.item != ratio.to]
    if not every:
        return {}
    items = sorted({item for ratio in every for item in (ratio.item, ratio.to)})
    place = {item: at for at, item in enumerate(items)}
    ends = numpy.array([(place[ratio.item], place[ratio.to]) for ratio in every], dtype=numpy.int32)
    logs, weights = (numpy.array([ratio[column] for ratio in every]) for column in (2, 3))
    shape = len(items), len(items)
    linked = coo_array((weights, (ends[:, 0], ends[:, 1])), shape=shape)
    parts, part_of = csgraph.connected_components(linked, directed=False)
    last = numpy.zeros(parts, dtype=int)
    numpy.maximum.at(last, part_of, numpy.arange(len(items)))
    free = numpy.flatnonzero(last[part_of] != numpy.arange(len(items)))
    # The normal equations: the Laplacian of the graph, without the items whose value is given.
    rows = numpy.concatenate([ends[:, 0], ends[:, 1], ends[:, 0], ends[:, 1]])
    columns = numpy.concatenate([ends[:, 0], ends[:, 1], ends[:, 1], ends[:, 0]])
    laplacian = coo_array((numpy.concatenate([weights, weights, -weights, -weights]), (rows, columns)), shape=shape)
    right = numpy.zeros(len(items))
    numpy.add.at(right, ends[:, 0], weights * logs)
    numpy.add.at(right, ends[:, 1], -weights * logs)
    solved = numpy.zeros(len(items))
    solved[free] = spsolve(laplacian.tocsc()[free][:, free], right[free])
    return {item: (float(solved[at]), items[last[part_of[at]]]) for item, at in place.items()}
