"""Exponentials and logarithms that are the same with all releases of NumPy, whose own differ in the last bit."""

from __future__ import annotations

import numpy as np

from normalmesh.array_types import Float
from normalmesh.runtime._exponential import fill_exponentials, fill_logarithms


def exp(values: Float, out: Float | None = None) -> Float:
    """Return e to the power of each value, in ``out``, a contiguous array, if it is given."""
    result = np.empty(np.shape(values)) if out is None else out
    assert result.flags.c_contiguous
    fill_exponentials(np.ravel(values).astype(float, copy=False), np.ravel(result))
    return result


def log(values: Float) -> Float:
    """Return the natural logarithm of each value."""
    result = np.empty(np.shape(values))
    fill_logarithms(np.ravel(values).astype(float, copy=False), np.ravel(result))
    return result
