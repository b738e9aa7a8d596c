"""Kernels of :mod:`normalmesh.runtime.exponential`."""

import numpy as np

from normalmesh.runtime.kernels import kernel


@kernel
def fill_exponentials(values, result):
    """Fill ``result`` (N,) with e to the power of the values (N,)."""
    for i in range(values.size):
        result[i] = np.exp(values[i])


@kernel
def fill_logarithms(values, result):
    """Fill ``result`` (N,) with the natural logarithms of the values (N,)."""
    for i in range(values.size):
        result[i] = np.log(values[i])
