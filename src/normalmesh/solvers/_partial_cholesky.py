"""Kernels of :mod:`normalmesh.solvers.partial_cholesky`."""

from normalmesh.runtime.kernels import inner, kernel


@inner(forceinline=True)
def _touches(s, active, pattern, blocks):
    """Return whether block s holds an active unknown, or a neighbour of one."""
    for j in range(blocks.start[s], blocks.stop[s]):
        v = blocks.order[j]
        if active[v]:
            return True
        for e in range(pattern.indptr[v], pattern.indptr[v + 1]):
            if active[pattern.indices[e]]:
                return True
    return False


@kernel
def mark_changing(active, candidates, pattern, elimination, changing):
    """Mark those candidates in ``changing`` (B,), false before, that change if the rows of active unknowns (n,) do.

    They hold an active unknown or a neighbour of one, or lie above such a block. Candidates are blocks, ascending, with
    all blocks above them.
    """
    for s in candidates:
        if not changing[s]:
            changing[s] = _touches(s, active, pattern, elimination.blocks)
        above = elimination.tree.parent[s]
        if changing[s] and above >= 0:
            changing[above] = True
