"""Attaching: parts that are cut off completely are joined to others where the steps between them are even.

The normals say nothing of the distance of a part that floats. Along the outline of something in front of something
else, the step hardly ever stays the same; along a fold it is the same everywhere. So a part belongs where it can be
closed along the greatest length.
"""

from __future__ import annotations

import numpy as np

from normalmesh.array_types import Bool, Float, Int
from normalmesh.jumps._attaching import even_stretches
from normalmesh.jumps.robust_solver import RobustSolver
from normalmesh.mesh.components import components

#: Length (px) along which steps must be even, at least, and its share of all edges between two parts: less is chance.
MIN_LENGTH, SHARE = 20.0, 0.1


def attached(solver: RobustSolver, is_open: Bool, tolerance: float) -> Bool:
    """Return the open edges (E,) of a solved surface without those where parts that float are attached.

    ``tolerance`` (px) is that of even steps.
    """
    pairs, lengths = solver.system.pairs, solver.system.lengths
    part = components(pairs[~is_open], len(solver.offsets)).astype(np.int64)
    areas = np.bincount(part, solver.system.means.areas)
    edges = np.flatnonzero(is_open)
    edges = edges[part[pairs[edges, 0]] != part[pairs[edges, 1]]]
    misfits = solver.misfits()[edges]
    group, shift = np.arange(len(areas)), np.zeros(len(areas))
    result = is_open.copy()
    while True:
        first, second = part[pairs[edges]].T
        steps = misfits + shift[second] - shift[first]
        found = _stretches(group[first], group[second], steps, lengths[edges], tolerance)
        done = set[int]()
        for joined, (one, other), by in found:
            if {one, other} & done:
                continue
            done |= {one, other}
            result[edges[joined]] = False
            # The smaller group moves.
            moving, staying, by = (one, other, by) if areas[one] < areas[other] else (other, one, -by)
            shift[group == moving] += by
            areas[staying] += areas[moving]
            group[group == moving] = staying
        if not done:
            return result


def _stretches(
    one: Int, other: Int, steps: Float, lengths: Float, tolerance: float
) -> list[tuple[Int, tuple[int, int], float]]:
    """Return where two groups may be joined, the longest stretch first: edges (K,), both groups, and the step there.

    Edges are given by the groups (K,) of their faces, and by the steps (K,) from the first group to the other one.
    """
    low, high = np.minimum(one, other), np.maximum(one, other)
    steps = np.where(one == low, steps, -steps)
    order = np.lexsort((steps, high, low))
    order = order[low[order] != high[order]]
    starts = np.flatnonzero((np.diff(low[order], prepend=-1) != 0) | (np.diff(high[order], prepend=-1) != 0))
    support, (first, last) = np.empty(len(starts)), np.empty((2, len(starts)), np.int64)
    total = np.add.reduceat(lengths[order], starts) if len(starts) else support
    starts = np.append(starts, len(order))
    even_stretches(starts, steps[order], lengths[order], tolerance, support, first, last)
    enough = np.flatnonzero((support > MIN_LENGTH) & (support > SHARE * total))
    found = []
    for border in enough[np.argsort(-support[enough], kind="stable")].tolist():
        joined = order[first[border] : last[border]]
        ends = int(low[joined[0]]), int(high[joined[0]])
        found.append((joined, ends, float(np.median(steps[joined]))))
    return found
