"""Limits of cost, up to which edges collapse, for numbers of vertices."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Floating

#: Logarithm of the ratio up to which limits are extrapolated.
FARTHEST = 1.0


def interpolated_limit(limits: Floating, counts: NDArray[np.number], wanted: float) -> float:
    """Return the limit at which about ``wanted`` vertices are left, from rising limits (K,) and their counts (K,)."""
    if len(limits) == 1 or wanted <= 0:
        return float(limits[-1])
    x, y = np.log(limits), -np.log(np.maximum(counts, 0.5))
    goal = -math.log(wanted)
    place = int(np.clip(np.searchsorted(y, goal), 1, len(y) - 1))
    slope = max((y[place] - y[place - 1]) / (x[place] - x[place - 1]), 1e-6)
    step = np.clip((goal - y[place]) / slope, -FARTHEST, FARTHEST)
    return float(np.exp(x[place] + step))
