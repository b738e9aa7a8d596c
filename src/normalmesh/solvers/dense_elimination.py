"""Elimination of some unknowns of a dense symmetric system, assembled from several condensed ones.

Fronts of several thousand unknowns are eliminated by the kernels of the sparse factorisation, on several threads.
Results do not depend on their number.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from normalmesh.array_types import Float, Integer
from normalmesh.errors import NormalMeshError
from normalmesh.runtime.threads import in_parallel
from normalmesh.solvers._dense_elimination import (
    Front,
    add_to_front,
    eliminate_next,
    packed_length,
    substitute_front,
    subtract_next,
)
from normalmesh.solvers._fronts import PIVOTS, ROWS


def eliminated(parts: Iterable[tuple[Integer, Float]], extra: Float, beyond: int) -> tuple[Float, Float]:
    """Assemble a system of ``own + beyond`` unknowns and eliminate the first ``own`` of them.

    ``parts`` are, for each condensed system, the places (b,) of its unknowns and its triangle (b (b + 1) / 2,).
    ``extra`` (own,) is added to the diagonal of the unknowns that are eliminated. Return their factor, the panel (own,
    -own % 4 + own + beyond, rounded up to a multiple of four) for :func:`forward` and :func:`backward`, and the upper
    triangle (beyond (beyond + 1) / 2,) of the matrix of those that stay.
    """
    own = extra.size
    lead, deep = -own % 4, beyond + -beyond % 4
    front = Front(np.zeros((own, lead + own + deep)), np.zeros((deep, deep)))
    for places, triangle in parts:
        add_to_front(triangle, places, front)
    front.panel[np.arange(own), lead + np.arange(own)] += extra
    _eliminate(front)
    return front.panel, np.concatenate([np.empty(0), *(front.update[i, i:beyond] for i in range(beyond))])


def _eliminate(front: Front) -> None:
    """Eliminate the own rows of a front, in place."""
    own, columns = front.panel.shape
    packed = np.empty(packed_length(columns))
    in_update = -(-len(front.update) // ROWS)
    for start in range(-(-own % 4), own, PIVOTS):
        bad = eliminate_next(front.panel, start, packed)
        if bad >= 0:
            raise NormalMeshError(
                f"the matrix is not positive definite: pivot {bad} of {own} dense ones is not positive"
            )
        blocks = -(-max(own - start - PIVOTS, 0) // ROWS) + in_update
        in_parallel(subtract_next, blocks, start, front, packed, grain=1)


def forward(panel: Float, right_side: Float) -> tuple[Float, Float]:
    """Return the forward-substituted right-hand side (own,), and what is left of it for the others (beyond,)."""
    own, lead = len(panel), -len(panel) % 4
    values = np.zeros(panel.shape[1])
    values[lead : lead + right_side.size] = right_side
    substitute_front(True, panel, values)
    return values[lead : lead + own], values[lead + own : lead + right_side.size]


def backward(panel: Float, substituted: Float, beyond: Float) -> Float:
    """Return the unknowns (own,) that were eliminated, given the others (beyond,)."""
    own, lead = len(panel), -len(panel) % 4
    values = np.zeros(panel.shape[1])
    values[lead : lead + own], values[lead + own : lead + own + beyond.size] = substituted, beyond
    substitute_front(False, panel, values)
    return values[lead : lead + own]
