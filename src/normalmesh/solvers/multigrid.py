"""Multigrid by aggregation, for graphs of any shape: the preconditioner of large systems.

Aggregates are connected, so that cracks and holes of a mask do not matter. Constant interpolation makes coarse graphs
too stiff. If aggregates are whole 2×2 cells, the factor is known, and corrections are enlarged by it. Otherwise, as far
as the work allows, two steps of conjugate gradients determine their length (the K-cycle of Notay, "An aggregation-based
algebraic multigrid method", 2010).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix, diags

from normalmesh.array_types import Float32, Int32
from normalmesh.runtime.threads import in_parallel
from normalmesh.solvers._multigrid import (
    Aggregates,
    GraphArrays,
    aggregate_cells,
    aggregate_pairs,
    diagonal_of,
    galerkin,
    members_of,
    multiply_graph,
    prolong,
    restrict_residual,
    smooth,
)
from normalmesh.solvers.cholesky import Cholesky
from normalmesh.solvers.conjugate_gradients import VECTOR_GRAIN, dot
from normalmesh.solvers.gauge import Gauge

#: Factors by which corrections are enlarged. Constant interpolation over square cells doubles the energy of smooth
#: corrections. For pairs by strength, on graphs with uneven weights, there is no common factor.
_ENLARGED_CELLS, _ENLARGED_PAIRS = np.float32(1.9), np.float32(1.0)

_REGULAR = 3.0  # unknowns an aggregate, on average, from which on cells count as whole
_MAX_PIECES = 64  # of a sweep: unknowns are smoothed in sequence within a piece, in parallel across pieces
_MIN_PIECE = 2048  # unknowns of a piece
_BOTTOM = 4000  # unknowns that are solved directly
_REPEATED_WORK = 0.35  # a level is visited twice if that costs at most this share of a sweep over the finest one


@dataclass(frozen=True)
class Graph:
    """A symmetric matrix with −weights beside the diagonal and rows that sum to ``excess``."""

    indptr: Int32
    indices: Int32
    weights: Float32
    excess: Float32

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return self.excess.size

    @classmethod
    def of(cls, matrix: csr_matrix) -> Graph:
        """Return the graph of a symmetric matrix (n, n)."""
        diagonal = matrix.diagonal()
        beside = matrix - diags(diagonal, format="csr")
        beside.eliminate_zeros()
        excess = diagonal + np.asarray(beside.sum(axis=1)).ravel()
        # Rounding errors of rows that sum to zero would tie down the coarse levels.
        # Rows of a positive definite matrix may also sum to less than zero, but no graph is definite then.
        excess[excess < 1e-12 * diagonal] = 0
        # Cotangents of obtuse angles are negative. Without them the graph is still close, and safe to aggregate.
        beside.data = np.minimum(beside.data, 0)
        beside.eliminate_zeros()
        return cls(beside.indptr, beside.indices, (-beside.data).astype(np.float32), excess.astype(np.float32))


@dataclass(frozen=True)
class _Level:
    graph: GraphArrays
    aggregate: Int32
    aggregates: Aggregates
    repeated: bool  # whether this level is solved by two steps of conjugate gradients

    def smooth(self, b: Float32, before: Float32, *, backwards: bool) -> Float32:
        """Return the result (n,) of a Gauss–Seidel sweep."""
        x = np.empty_like(b)
        pieces = max(1, min(_MAX_PIECES, b.size // _MIN_PIECE))
        grain = max(1, pieces * VECTOR_GRAIN // b.size)
        in_parallel(smooth, pieces, pieces, self.graph, b, before, x, backwards, grain=grain)
        return x

    def restrict_residual(self, b: Float32, x: Float32) -> Float32:
        """Return the sums (m,) of b − A x over the aggregates."""
        coarse = np.empty(self.aggregates.indptr.size - 1, np.float32)
        in_parallel(restrict_residual, coarse.size, self.graph, b, x, self.aggregates, coarse, grain=VECTOR_GRAIN)
        return coarse

    def multiply(self, x: Float32) -> Float32:
        """Return A x (n,)."""
        product = np.empty_like(x)
        in_parallel(multiply_graph, x.size, self.graph, x, product, grain=VECTOR_GRAIN)
        return product


class Multigrid:
    """A hierarchy of coarser and coarser graphs.

    Aggregates are parts of 2×2 ``cells`` (n, 2), given by row and column, that strong edges connect; without cells,
    pairs of pairs of strongly coupled unknowns. ``finest`` is the number of unknowns of the system that is solved, if
    ``graph`` is itself a coarse one.
    """

    def __init__(self, graph: Graph, cells: Int32 | None = None, finest: int | None = None) -> None:
        self.levels: list[_Level] = []
        self._enlarged = _ENLARGED_PAIRS if cells is None else _ENLARGED_CELLS
        work = finest or graph.size
        visits = 1
        while graph.size > _BOTTOM:
            aggregate, coarse, coarse_cells = _coarsened(graph, cells)
            if not 0 < coarse.size <= 0.9 * graph.size:
                break
            regular = cells is not None and graph.size > _REGULAR * coarse.size
            repeated = not regular and 2 * visits * graph.size <= _REPEATED_WORK * work
            visits *= 2 if repeated else 1
            diagonal = diagonal_of(graph.indptr, graph.weights, graph.excess)
            arrays = GraphArrays(graph.indptr, graph.indices, graph.weights, diagonal)
            self.levels.append(_Level(arrays, aggregate, members_of(aggregate, coarse.size), repeated))
            graph, cells = coarse, coarse_cells
        self._bottom = _bottom(graph, cells)

    def solve(self, b: Float32, depth: int = 0) -> Float32:
        """Return an approximate solution (n,) for the right-hand side b (n,) on the graph ``depth`` levels down."""
        if depth == len(self.levels):
            return self._bottom.solve(b.astype(np.float64)).astype(np.float32)
        # One cycle, or two combined by conjugate gradients.
        level = self.levels[depth]
        x = self.cycle(b, depth)
        if not level.repeated:
            return x
        first_product = level.multiply(x)
        energy, slope = dot(x, first_product), dot(x, b)
        if energy <= 0:
            return x
        rest = b - np.float32(slope / energy) * first_product
        if dot(rest, rest) <= 0.0625 * dot(b, b):
            return np.float32(slope / energy) * x
        y = self.cycle(rest, depth)
        product = level.multiply(y)
        mixed, other_slope = dot(y, first_product), dot(y, rest)
        other_energy = dot(y, product) - mixed**2 / energy
        if other_energy <= 0:
            return np.float32(slope / energy) * x
        along_x = slope / energy - mixed * other_slope / (energy * other_energy)
        return np.float32(along_x) * x + np.float32(other_slope / other_energy) * y

    def cycle(self, b: Float32, depth: int = 0) -> Float32:
        """Return the result of one cycle: smooth, correct by the coarser graphs, smooth again."""
        if depth == len(self.levels):
            return self.solve(b, depth)
        level = self.levels[depth]
        x = level.smooth(b, np.zeros_like(b), backwards=False)
        correction = self.solve(level.restrict_residual(b, x), depth + 1)
        in_parallel(prolong, x.size, level.aggregate, correction, self.factor(depth + 1), x, grain=VECTOR_GRAIN)
        return level.smooth(b, x, backwards=True)

    def factor(self, depth: int) -> np.float32:
        """Return the factor of a correction from this depth; one if conjugate gradients determined its length."""
        found = depth < len(self.levels) and self.levels[depth].repeated
        return np.float32(1) if found else self._enlarged


def _coarsened(graph: Graph, cells: Int32 | None) -> tuple[Int32, Graph, Int32 | None]:
    """Return aggregates, the coarse graph, and its cells."""
    if cells is not None:
        aggregate, cells = aggregate_cells(graph.indptr, graph.indices, graph.weights, cells)
        return aggregate, _galerkin(graph, aggregate, len(cells)), cells
    pairs, count = aggregate_pairs(graph.indptr, graph.indices, graph.weights, graph.excess)
    half = _galerkin(graph, pairs, count)
    again, count = aggregate_pairs(half.indptr, half.indices, half.weights, half.excess)
    aggregate = np.append(again, np.int32(-1))[pairs]  # −1 stays −1
    return aggregate, _galerkin(half, again, count), None


def _galerkin(graph: Graph, aggregate: Int32, count: int) -> Graph:
    """Return the coarse graph of ``count`` aggregates."""
    members = members_of(aggregate, count)
    return Graph(*galerkin(graph.indptr, graph.indices, graph.weights, graph.excess, aggregate, members))


def _bottom(graph: Graph, cells: Int32 | None) -> Cholesky:
    """Factorise the coarsest graph, with one unknown of each floating component pinned."""
    n = graph.size
    weights = graph.weights.astype(np.float64)
    beside = csr_matrix((-weights, graph.indices, graph.indptr), (n, n))
    diagonal = graph.excess - np.asarray(beside.sum(axis=1)).ravel()
    matrix = (beside + diags(diagonal, format="csr")).tocsr()
    factor = Cholesky(matrix, None if cells is None else cells.astype(np.float64))
    factor.factorise(matrix, Gauge.of(matrix).pins(diagonal, factor.last))
    return factor
