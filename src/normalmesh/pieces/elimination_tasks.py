"""Tasks of the elimination by tiles: plain functions of arrays, which may run in any process.

Results of earlier tasks are dictionaries, or handles that load arrays when they are asked for. Dense symmetric matrices
are upper triangles, row by row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix

from normalmesh.array_types import Float, Integer
from normalmesh.engine.array_file import Arrays
from normalmesh.pieces.tile_elements import TileSystem
from normalmesh.solvers.cholesky import Cholesky
from normalmesh.solvers.dense_elimination import backward, eliminated, forward
from normalmesh.solvers.gauge import Gauge


def condense_tile(system: TileSystem, right_side: Float | None, with_matrix: bool = True) -> dict[str, Float]:
    """Eliminate the interior of a tile, with a right-hand side (n,) instead of that of the elements if it is given.

    Return ``right`` (b,), the right-hand side that is left for the border, and ``triangle`` (b (b + 1) / 2,), its
    matrix.
    """
    elimination = _eliminated(system)
    right = elimination.condensed(_residuals(system, np.zeros(system.size), right_side))
    return {"right": right, "triangle": elimination.triangle()} if with_matrix else {"right": right}


def merge_nodes(
    children: Sequence[Arrays], places: Sequence[Integer], beyond: int, pins: Float, right_side: Float
) -> dict[str, Float]:
    """Add up the matrices of the children, and eliminate the unknowns that occur nowhere else.

    Unknowns (b,) of each child are at ``places`` among those of the node, of which the last ``beyond`` stay. ``pins``
    (k,) are added to the diagonal of the others, which fixes free constants, and ``right_side`` (k,) is theirs. Return
    ``triangle``, the matrix of the unknowns that stay; ``panel``, the factor of the others; ``forward`` (k,) and
    ``right`` (beyond,) as by :func:`substitute_forward`.
    """
    parts = ((at, child["triangle"]) for child, at in zip(children, places, strict=True))
    panel, triangle = eliminated(parts, pins, beyond)
    return {"panel": panel, "triangle": triangle, **substitute_forward({"panel": panel}, right_side, beyond)}


def substitute_forward(node: Arrays, right_side: Float, beyond: int) -> dict[str, Float]:
    """Return ``forward``, for :func:`substitute_back`, and ``right`` (beyond,), what is added for others."""
    substituted, right = forward(node["panel"], np.concatenate([right_side, np.zeros(beyond)]))
    return {"forward": substituted, "right": right}


def substitute_back(node: Arrays, substituted: Arrays, beyond: Float) -> dict[str, Float]:
    """Return the ``values`` (k,) of the unknowns that a node eliminated, given those that stayed."""
    return {"values": backward(node["panel"], substituted["forward"], beyond)}


def expand_tile(system: TileSystem, border: Float, right_side: Float | None, max_error: float) -> dict[str, Float]:
    """Solve for the interior of a tile, given its border (b,).

    It is corrected until a correction is at most ``max_error`` or they do not get smaller. Return ``values`` (n − b,);
    ``error`` (), the largest correction that was left out; ``border`` (3, b), what the tile contributes to residual,
    right-hand side, and |A| |x| of its border; ``squares`` (3,), the sums of squares of these three in the interior;
    and ``missing`` (b,), what the interior leaves of its residual for the border, plus the residual of the border.
    """
    elimination, gauge, inside = _eliminated(system), _gauge(system), system.inside
    right = _residuals(system, np.zeros(system.size), right_side)
    x, last = elimination.expanded(right, border), np.inf
    while True:
        residual = _residuals(system, x, right_side)
        step = gauge.centred(elimination.expanded(residual, np.zeros(len(border))))
        error = float(np.abs(step).max(initial=0.0))
        if error <= max_error or not error < last / 2:
            break
        x, last = x + step, error
    three = np.array([residual, right, _sizes(system, x)])
    return {
        "values": x[:inside],
        "error": np.array(error),
        "border": three[:, inside:],
        "squares": (three[:, :inside] ** 2).sum(axis=1),
        "missing": elimination.condensed(residual),
    }


def _residuals(system: TileSystem, x: Float, right_side: Float | None) -> Float:
    """Return right-hand side minus matrix times x (n,), from the elements of a tile.

    Differences of neighbours are exact where values are large. ``right_side`` (n,) replaces that of the elements.
    """
    own = right_side is None
    first, second = system.pairs.T
    gaps = x[first] - x[second]
    flow = system.weights * (gaps + system.steps if own else gaps)
    residual = _at_faces(second, flow, x) - _at_faces(first, flow, x)
    rows = system.rows
    residual += rows.T @ (system.row_weights * ((system.row_values if own else 0.0) - rows @ x))
    return residual if right_side is None else residual + right_side


def _sizes(system: TileSystem, x: Float) -> Float:
    """Return |A| |x| (n,), which rounding errors are in proportion to."""
    size, (first, second) = np.abs(x), system.pairs.T
    flow = system.weights * (size[first] + size[second])
    rows = abs(system.rows)
    sizes = _at_faces(second, flow, x) + _at_faces(first, flow, x)
    return sizes + rows.T @ (system.row_weights * (rows @ size))


def _at_faces(faces: Integer, flow: Float, x: Float) -> Float:
    """Return the sum (n,) of what flows to each face."""
    return np.bincount(faces, flow, x.size).astype(np.float64, copy=False)


def _gauge(system: TileSystem) -> Gauge:
    """Return the free constants of a tile: those of components that lie in its interior."""
    labels, component = np.unique(system.afloat, return_inverse=True)
    return Gauge(component.astype(np.int32), labels >= 0)


def _eliminated(system: TileSystem) -> Cholesky:
    """Eliminate the interior of a tile."""
    (a, b), w, nothing = system.pairs.T, system.weights, np.zeros(system.size)
    every = np.arange(system.size, dtype=np.int32)
    numbers = np.concatenate([-w, -w, w, w, nothing])
    places = np.concatenate([a, b, a, b, every]), np.concatenate([b, a, a, b, every])
    matrix, rows = csr_matrix(coo_matrix((numbers, places), shape=(system.size, system.size))), system.rows
    if len(system.row_weights):
        matrix = csr_matrix(matrix + rows.T @ rows.multiply(system.row_weights[:, None]))
    matrix.sort_indices()
    elimination = Cholesky(matrix, system.coordinates, border=every[system.inside :])
    elimination.factorise(matrix, _gauge(system).pins(matrix.diagonal(), elimination.last))
    return elimination
