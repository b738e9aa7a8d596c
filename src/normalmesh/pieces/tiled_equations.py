"""TiledEquations: the equations of the normals of all tiles, to which a prior adds its terms."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_matrix

from normalmesh.array_types import Float, Integer
from normalmesh.engine.runner import Run
from normalmesh.integration.prior_correction import Solve
from normalmesh.pieces.elimination import TiledSystem
from normalmesh.pieces.merge_plan import MergeTree
from normalmesh.pieces.tile_elements import Elements, Partition
from normalmesh.solvers.gauge import Gauge


@dataclass(frozen=True, eq=False)
class TiledEquations:
    """Equations of which only the edges are in memory; see :class:`.prior_correction.Equations`.

    Attributes
    ----------
    elements : Elements
        Edges alone.
    part : (M,) int
        Connected part of each face.
    tile : (M,) int
        The tile of each face.
    centroids : (M, 2)
    tree : MergeTree
    run : Run
        Engine. Names of stages are those of :class:`.TiledSystem`.
    """

    elements: Elements
    part: Integer
    tile: Integer
    centroids: Float
    tree: MergeTree
    run: Run

    def diagonal(self) -> Float:
        """Return the diagonal (M,) of the matrix."""
        return self.elements.diagonal()

    def missing(self, x: Float) -> Float:
        """Return right-hand side minus matrix times x (M,)."""
        first, second = self.elements.pairs.T
        flow = self.elements.weights * (x[first] - x[second] + self.elements.steps)
        return np.subtract(*(np.bincount(faces, flow, len(x)) for faces in (second, first)), dtype=np.float64)

    def restricted(self, chosen: Integer) -> TiledEquations:
        """Return the equations of some faces (k,), ascending, which are all of some parts."""
        number = np.full(len(self.part), -1)
        number[chosen] = np.arange(len(chosen))
        pairs, weights, steps = self.elements.pairs, self.elements.weights, self.elements.steps
        kept = number[pairs[:, 0]] >= 0
        elements = Elements.of_edges(number[pairs[kept]], weights[kept], steps[kept], len(chosen))
        return replace(
            self,
            elements=elements,
            part=self.part[chosen],
            tile=self.tile[chosen],
            centroids=self.centroids[chosen],
        )

    def with_terms(self, rows: csr_matrix, weights: Float) -> Solve:
        """Return what solves the system with terms ``Σ weight (row · x)²``, which each part has some of."""
        elements = replace(self.elements, rows=rows, row_weights=weights, row_values=np.zeros(len(weights)))
        _, part = np.unique(self.part, return_inverse=True)
        gauge = Gauge(part.astype(np.int32), np.zeros(int(part.max()) + 1, np.bool_))
        system = TiledSystem(Partition(elements, self.tile, self.centroids, gauge), self.tree, self.run)
        return lambda right: system.solve(right).x
