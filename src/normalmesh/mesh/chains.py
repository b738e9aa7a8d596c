"""Chains: lines of connected edges between junctions, free ends and fixed vertices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Bool, Int, Integer
from normalmesh.mesh._chains import trace_chains


@dataclass(frozen=True, eq=False)
class Chains:
    """Chains of edges, in the order of their first vertices."""

    starts: Int  # (C + 1,) chain c has the vertices vertices[starts[c] : starts[c + 1]]
    vertices: Int  # (K,) along the chains; a loop ends with its first vertex
    edges: Int  # (K,) that lead to each vertex, −1 for the first vertex of a chain

    @classmethod
    def of(cls, ends: Integer, fixed: Bool) -> Chains:
        """Trace edges (E, 2) between vertices, of which chains do not run through the ``fixed`` (N,) ones."""
        return cls(*trace_chains(np.ascontiguousarray(ends, np.int64), fixed))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, chain: int) -> Int:
        """Return the vertices of a chain."""
        return self.vertices[self.starts[chain] : self.starts[chain + 1]]

    @property
    def chain_of_edge(self) -> Int:
        """Return the chain (E,) that each edge belongs to."""
        along = self.edges >= 0
        chain = np.repeat(np.arange(len(self)), np.diff(self.starts))[along]
        of_edge = np.empty(len(chain), np.int64)
        of_edge[self.edges[along]] = chain
        return of_edge

    def free_ends(self, fixed: Bool) -> Int:
        """Count the ends (C,) of each chain that meet neither another chain nor a ``fixed`` (N,) vertex."""
        along = self.edges >= 0
        # The vertices before and after each edge.
        degree = np.bincount(self.vertices[along], minlength=len(fixed))
        degree += np.bincount(self.vertices[:-1][along[1:]], minlength=len(fixed))
        free = (degree == 1) & ~fixed
        first, last = self.vertices[self.starts[:-1]], self.vertices[self.starts[1:] - 1]
        return free[first].astype(np.int64) + free[last]
