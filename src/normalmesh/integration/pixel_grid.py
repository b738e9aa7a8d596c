"""The pixel grid as a system of equations, and its solver.

Each foreground pixel is a plane through its centre; each edge connects two adjacent pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from normalmesh.array_types import Bool, Float, Float32, Int32
from normalmesh.errors import NormalMeshError
from normalmesh.integration._pixel_integration import (
    FROM_LEFT,
    FROM_TOP,
    TO_BOTTOM,
    TO_RIGHT,
    EdgeWeights,
    aggregate_blocks,
    count_neighbours,
    fill_neighbours,
    multiply_grid,
    pixel_slopes,
    relax,
    restrict_grid_residual,
)
from normalmesh.normals.component_maps import window_camera
from normalmesh.normals.mask_labels import component_labels
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.threads import in_parallel
from normalmesh.solvers._multigrid import STRONG, prolong
from normalmesh.solvers.conjugate_gradients import VECTOR_GRAIN, conjugate_gradients, norm
from normalmesh.solvers.multigrid import Graph, Multigrid

_TOLERANCE = 1e-8  # of the residual, relative to the right-hand side
_LEAST = 1e-6  # of what all components together may have: less is asked for of no component
_RESTARTS = 8  # with the residual computed again
_STEPS = 300  # of conjugate gradients; ordinary masks need ten, the worst known forty


def over_rows(kernel: Callable[..., None], shape: tuple[int, ...], *arguments: Any) -> None:
    """Run a range kernel over the rows of an image, on several threads if it is large."""
    rows, columns = shape[:2]
    in_parallel(kernel, rows, *arguments, grain=-(-VECTOR_GRAIN // columns))


@dataclass(frozen=True, eq=False)
class PixelPlanes:
    """The planes of all pixels within the bounding box of the mask.

    Attributes
    ----------
    window
        Rows and columns of the bounding box in the map.
    mask : (h, w) bool
    half_steps : (h, w, 4)
        The change of the unknown in half a step, see :func:`normalmesh.integration._pixel_integration.pixel_slopes`.
    mobility : (h, w)
        ⟨n, r⟩².
    """

    window: tuple[slice, slice]
    mask: Bool
    half_steps: Float
    mobility: Float

    @classmethod
    def of(cls, normal_map: NormalMap) -> PixelPlanes:
        """Return the planes of a normal map."""
        top, left, *_ = rectangle = normal_map.rectangle()
        window = rectangle.window
        mask = np.ascontiguousarray(normal_map.mask[window])
        camera = window_camera(normal_map.camera, left, top).arrays
        half_steps, mobility = np.zeros((*mask.shape, 4)), np.zeros(mask.shape)
        normals = np.ascontiguousarray(normal_map.normals[window])
        over_rows(pixel_slopes, mask.shape, normals, mask, camera, half_steps, mobility)
        return cls(window, mask, half_steps, mobility)


def no_edges(shape: tuple[int, int]) -> EdgeWeights:
    """Return weights of zero; no pixel is held."""
    return EdgeWeights(np.zeros(shape, np.float32), np.zeros(shape, np.float32), np.zeros((0, 0), np.float32))


def weigh_by_mobility(mask: Bool, mobility: Float, edges: EdgeWeights) -> None:
    """Set the weights of edges between foreground pixels to the means of ⟨n, r⟩² of the two."""
    for axis, weights in ((0, edges.down), (1, edges.right)):
        own, inside = np.moveaxis(mobility, axis, 0), np.moveaxis(mask, axis, 0)
        both = inside[:-1] & inside[1:]
        np.copyto(np.moveaxis(weights, axis, 0)[:-1], 0.5 * (own[:-1] + own[1:]), "same_kind", where=both)


def right_side(half_steps: Float, edges: EdgeWeights) -> Float:
    """Return the right-hand side (H, W) of the normal equations of Σ weight (z_q − z_p − g_pq)²."""
    b = np.zeros(edges.right.shape)
    sides = ((1, edges.right, TO_RIGHT, FROM_LEFT), (0, edges.down, TO_BOTTOM, FROM_TOP))
    for axis, weights, to_side, from_side in sides:
        own, steps, sums = (np.moveaxis(each, axis, 0) for each in (weights, half_steps, b))
        pull = own[:-1] * (steps[:-1, :, to_side] + steps[1:, :, from_side])
        sums[:-1] -= pull
        sums[1:] += pull
    return b


def aggregate_pixels(mask: Bool, edges: EdgeWeights) -> tuple[Int32, Int32]:
    """Return the aggregates (H, W) of pixels, −1 outside the mask, and their 2×2 blocks (m, 2)."""
    # Edges may lie within an aggregate from a share of the largest weight at both ends on.
    strong = np.maximum(edges.right, edges.down)
    np.maximum(strong[:, 1:], edges.right[:, :-1], out=strong[:, 1:])
    np.maximum(strong[1:], edges.down[:-1], out=strong[1:])
    return aggregate_blocks(mask, edges, STRONG * strong)


def aggregate_graph(aggregate: Int32, cells: Int32, edges: EdgeWeights) -> Graph:
    """Return the graph of aggregates."""
    count = len(cells)
    indptr = np.zeros(count + 1, np.int32)
    in_parallel(count_neighbours, count, aggregate, cells, edges, indptr[1:], grain=VECTOR_GRAIN)
    np.cumsum(indptr, out=indptr)
    indices, weights = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    in_parallel(fill_neighbours, count, aggregate, cells, edges, (indptr, indices, weights), grain=VECTOR_GRAIN)
    excess = np.zeros(count, np.float32)
    if edges.hold.size:
        inside = aggregate >= 0
        excess += np.bincount(aggregate[inside], edges.hold[inside], count).astype(np.float32)
    return Graph(indptr, indices, weights, excess)


class GridSystem:
    """The normal equations on the pixel grid, and a multigrid cycle as their preconditioner.

    Methods take and return images as vectors (H · W,).
    """

    def __init__(self, mask: Bool, edges: EdgeWeights) -> None:
        self.edges, self.shape = edges, mask.shape
        self.aggregate, cells = aggregate_pixels(mask, edges)
        self.coarser = Multigrid(aggregate_graph(self.aggregate, cells, edges), cells, finest=mask.size)
        self.coarse = np.empty(len(cells), np.float32)
        self.step = np.empty(self.shape, np.float32)
        self.product = np.empty(self.shape)

    def multiply(self, p: Float) -> Float:
        """Return A p. The array is reused by the next call."""
        over_rows(multiply_grid, self.shape, self.edges, p.reshape(self.shape), self.product)
        return self.product.ravel()

    def precondition(self, residual: Float) -> Float32:
        """Return an approximation of A⁻¹ times the residual. The array is reused by the next call."""
        rest = residual.reshape(self.shape)
        self.step[:] = 0
        self._relax(rest, 0)
        self._relax(rest, 1)
        self.coarse[:] = 0
        rows, columns = self.shape
        grid = (self.edges, rest, self.step, self.aggregate, self.coarse)
        in_parallel(restrict_grid_residual, (rows + 1) // 2, *grid, grain=-(-VECTOR_GRAIN // (2 * columns)))
        correction, factor = self.coarser.solve(self.coarse), self.coarser.factor(0)
        flat = (self.aggregate.ravel(), correction, factor, self.step.ravel())
        in_parallel(prolong, self.step.size, *flat, grain=VECTOR_GRAIN)
        self._relax(rest, 1)
        self._relax(rest, 0)
        return self.step.ravel()

    def _relax(self, rest: Float, colour: int) -> None:
        over_rows(relax, self.shape, self.edges, rest, self.step, colour)

    def residual(self, b: Float, z: Float) -> Float:
        """Return b − A z."""
        return b - self.multiply(z)


def solve_grid(mask: Bool, edges: EdgeWeights, b: Float, max_error: float = np.inf) -> Float:
    """Solve ``Σ_q weight_pq (z_p − z_q) + hold_p z_p = b_p``, in each component of the mask to 1e-8 of its ‖b‖.

    Conjugate gradients in float64, preconditioned by a multigrid cycle in float32.

    The residual is a sum over all components, in which small ones count for nothing. ``max_error``, in the unit of z,
    bounds the root of the energy ``Σ weight_pq (e_p − e_q)²`` of the error e, and so the errors of all differences
    between neighbours, in each component.

    Returns
    -------
    (H, W) float64
    """
    norms = _ComponentNorms(mask)
    system = GridSystem(mask, edges)
    b = b.ravel()
    z, residual = np.zeros(b.size), b.copy()
    goal = _TOLERANCE * norm(b)
    bounds = np.maximum(_TOLERANCE * norms.of(b), _LEAST * goal)
    steps, least = 0, 0.7 * goal
    # The residual that the iteration updates drifts from the true one: compute it again, and continue from there.
    for _ in range(_RESTARTS):
        progress = conjugate_gradients(
            system.multiply, system.precondition, z, residual, max_steps=_STEPS - steps, max_residual=least
        )
        steps += progress.steps
        residual = system.residual(b, z)
        errors, total = norms.of(residual), norm(residual)
        is_solved = bool((errors <= bounds).all())
        if is_solved:
            if progress.energy <= max_error**2 or total == 0:
                break
            least = 0.1 * total
        elif 0.7 * total <= least:
            # A component that is smaller or flatter than the others needs more than they do all together.
            least *= 0.5 * float((bounds / np.maximum(errors, bounds)).min())
    # The energy gets as low as rounding allows; the residual has to be reached.
    if is_solved:
        return z.reshape(mask.shape)
    worst = float((errors / np.maximum(bounds, np.finfo(np.float64).tiny)).max())
    raise NormalMeshError(
        f"the integration did not converge: residual {worst * _TOLERANCE:.1e} of the right side after "
        f"{steps} steps, {_TOLERANCE:.0e} was asked for"
    )


class _ComponentNorms:
    """Norms of images (H · W,) over each component of a mask (H, W)."""

    def __init__(self, mask: Bool) -> None:
        labels, count = component_labels(mask)
        self._labels = labels.ravel() if count > 1 else None

    def of(self, values: Float) -> Float:
        """Return the norms (C,)."""
        if self._labels is None:
            return np.array([norm(values)])
        return np.sqrt(np.bincount(self._labels, values * values)[1:])
