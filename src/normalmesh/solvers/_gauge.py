"""Kernels of :mod:`normalmesh.solvers.gauge`."""

from normalmesh.runtime.kernels import kernel


@kernel
def component_sums(first, last, component, values, sums):
    """Fill ``sums`` (P, C), zero before, with the sums of values (n,) over components, in P pieces of the vectors."""
    pieces = sums.shape[0]
    for piece in range(first, last):
        for v in range(piece * values.size // pieces, (piece + 1) * values.size // pieces):
            sums[piece, component[v]] += values[v]
