"""Kernel of :mod:`normalmesh.jumps.attaching`: where the steps between two parts are even."""

from normalmesh.runtime.kernels import kernel


@kernel
def even_stretches(starts, steps, lengths, tolerance, support, first, last):
    """Find for each border the steps, within a tolerance of each other, of the edges with the largest length together.

    Edges ``starts[b]:starts[b + 1]`` of border b are in the order of their ``steps`` (K,). Fill the length in
    ``support`` (B,), and the edges ``first[b]:last[b]``.
    """
    for b in range(support.size):
        support[b], first[b], last[b] = 0.0, starts[b], starts[b]
        total, i = 0.0, starts[b]
        for j in range(starts[b], starts[b + 1]):
            total += lengths[j]
            while steps[j] - steps[i] > tolerance:
                total -= lengths[i]
                i += 1
            if total > support[b]:
                support[b], first[b], last[b] = total, i, j + 1
