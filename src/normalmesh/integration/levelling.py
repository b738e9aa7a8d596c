"""Levelling: a surface that repeats has no mean slope, so that of its normal map is taken away."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np

from normalmesh.array_types import Bool, Float, Float32, Integer
from normalmesh.errors import NormalMeshError, ShortfallWarning, shape_text
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.integration.integration_options import IntegrationOptions
from normalmesh.mesh.cut_mesh import edge_ends
from normalmesh.mesh.jumps import Jumps, Placement
from normalmesh.mesh.raster import pixel_faces
from normalmesh.mesh.repeats import RepeatingMesh, Repeats
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.normal_map import NormalMap
from normalmesh.solvers.sparse_system import PreparedSystem

#: Cells along the longer side of the map, at most, of the mesh on which the mean slope is found.
CELLS_ALONG_MAP = 64
#: Share of the energy of a rise at a side that heights must leave for its slope to be determined. If they spread it
#: evenly over the map, they leave about 1 / CELLS_ALONG_MAP.
DETERMINED = 1e-6
#: A map does not repeat if normals differ across its sides more than between any two rows or columns, by this factor,
MAX_STEP = 1.5
#: and by so many degrees in the mean.
MIN_STEP = 2.0
#: Number of these rows or columns that are looked at.
COMPARED_ROWS = 256


def levelled(normal_map: NormalMap, repeats: Repeats, jumps: Jumps) -> tuple[NormalMap, Jumps, Repeats]:
    """Return a map, the placement of its jumps, and how it repeats, after its mean slope has been taken away."""
    slope_u, slope_v = mean_slope(normal_map, repeats)
    if jumps.placement is not None:
        # Normals do not show how far the surface falls at a jump, so they have a mean slope; the placement has not.
        slope_u, slope_v = placed_slope(jumps.placement, normal_map, repeats, (slope_u, slope_v))
        slopes = np.array([slope_u, slope_v]) * normal_map.camera.pixel_length
        placement = jumps.placement
        offsets = placement.offsets - placement.centroids @ slopes
        jumps = replace(jumps, placement=replace(placement, offsets=offsets, gradients=placement.gradients - slopes))
    repeats = replace(repeats, mean_slope=(slope_u, -slope_v))
    return without_slope(normal_map, repeats.mean_slope), jumps, repeats


def without_slope(normal_map: NormalMap, slope: tuple[float, float]) -> NormalMap:
    """Return a map whose slopes along x and y are smaller by the given ones."""
    normals = normal_map.normals.copy()
    normals[..., :2] += normals[..., 2:] * np.array(slope, np.float32)
    lengths = np.linalg.norm(normals, axis=2, keepdims=True)
    np.divide(normals, lengths, out=normals, where=lengths > 0)
    return normal_map.with_normals(normals)


def mean_slope(normal_map: NormalMap, repeats: Repeats) -> tuple[float, float]:
    """Return the slopes along u and v of the plane that, added to a surface that repeats, fits the normals best.

    The facet system of a coarse mesh is solved for both at once: across a side, the surface may rise by the slope times
    the period. Unlike the mean of the slopes of all pixels, this weighs steep ones by what they tell.
    """
    mesh = repeats.wrap(_coarse_mesh(normal_map))
    system = FacetSystem.of(FaceMeans.of(mesh, normal_map, planes_only=True))
    periods = _periods(mesh, system.corners)
    coordinates = repeats.folded(system.means.centroids)
    solver = PreparedSystem(system.matrix(), coordinates=coordinates, gauge=system.gauge)
    gaps = []
    for steps in (system.steps, *periods.T):
        part = replace(system, steps=np.ascontiguousarray(steps))
        gaps.append(part.misfits(solver.solve(part.right_side()).x))
    # Slopes close the gaps that heights alone leave, with what these cannot make up for of rises by a period.
    # Sums by einsum, not by BLAS, do not depend on the number of threads.
    weights = system.weights
    scales = np.maximum(np.sqrt(np.einsum("e,ek->k", weights, periods**2)), np.finfo(np.float64).tiny)
    rises = np.stack(gaps[1:], axis=1) / scales
    values, vectors = np.linalg.eigh(np.einsum("e,ek,el->kl", weights, rises, rises))
    inverse = np.where(values > DETERMINED, 1 / np.maximum(values, DETERMINED), 0)
    slopes = vectors @ (inverse * (vectors.T @ np.einsum("e,ek,e->k", weights, rises, gaps[0]))) / scales
    slope_u, slope_v = slopes / normal_map.camera.pixel_length
    return float(slope_u), float(slope_v)


def placed_slope(
    placement: Placement, normal_map: NormalMap, repeats: Repeats, otherwise: tuple[float, float]
) -> tuple[float, float]:
    """Return the slopes along u and v at which a placement rises from each side to the opposite one, in the median.

    Where it does not reach both, slopes are those given.
    """
    owners, slopes = pixel_faces(placement.mesh, normal_map.shape), list(otherwise)
    for axis, period in repeats.axes:
        near, far = np.moveaxis(owners, 1 - axis, 0)[[0, -1]]
        both = np.flatnonzero((near >= 0) & (far >= 0))
        heights = []
        for faces, side in ((near[both], 0.0), (far[both], period)):
            places = np.insert((both + 0.5)[:, None], axis, side, axis=1) - placement.centroids[faces]
            heights.append(placement.offsets[faces] + (placement.gradients[faces] * places).sum(axis=1))
        if len(both):
            rise = float(np.median(heights[1] - heights[0]))
            slopes[axis] = rise / (period * normal_map.camera.pixel_length)
    return slopes[0], slopes[1]


def _coarse_mesh(normal_map: NormalMap) -> ScreenMesh:
    """Return a mesh of the cells of a grid that hold foreground; its sides are those of the map."""
    rows, columns = normal_map.shape
    cell = max(math.ceil(max(rows, columns) / CELLS_ALONG_MAP), 1)
    edges = [np.linspace(0, side, max(side // cell, 1) + 1) for side in (rows, columns)]
    starts = [np.round(each[:-1]).astype(np.int64) for each in edges]
    held = np.logical_or.reduceat(np.logical_or.reduceat(normal_map.mask, starts[0], axis=0), starts[1], axis=1)
    mesh = ScreenMesh.from_mask(held)
    u, v = mesh.vertices.astype(np.int64).T
    return ScreenMesh(np.stack([edges[1][u], edges[0][v]], axis=1), mesh.faces)


def _periods(mesh: RepeatingMesh, corners: Integer) -> Float:
    """Return how far (E, 2) the edges across from corners (E,) lie from the same edges seen from beyond them."""
    here, there = (mesh.vertices[edge_ends(mesh, each)].mean(axis=1) for each in (corners, mesh.opposite[corners]))
    return here - there


def check_repeating(options: IntegrationOptions) -> None:
    """Raise an error for options that a surface that repeats cannot have."""
    if options.formulation != "facets":
        raise NormalMeshError('tileable needs formulation="facets", and not preset="paper"')
    if options.prior is not None:
        raise NormalMeshError(
            "tileable surfaces take no prior: depths at some places are those of all copies; leave it out"
        )


def check_repeating_map(normal_map: NormalMap, repeats: Repeats, stacklevel: int = 4) -> None:
    """Raise an error if a map cannot repeat, and warn, on behalf of the caller's caller, if it does not seem to.

    Its camera must be orthographic, and foreground must go on beyond its sides. It does not seem to repeat if normals
    differ much more across the sides than inside.
    """
    normal_map.camera.require_heights(
        f"tileable maps need an orthographic camera, not one that is {normal_map.camera.describe()}: copies of what "
        "that sees do not fit together"
    )
    there = {pair.axis for pair in repeats.side_pairs(normal_map.mask)}
    for axis, _ in repeats.axes:
        if axis not in there:
            sides, name = (("left and right", "y"), ("top and bottom", "x"))[axis]
            raise NormalMeshError(
                f"the foreground of the {shape_text(normal_map.shape)} map never reaches both its {sides} sides at the "
                "same place, so nothing is to be joined there: crop it to one period, give a mask (--mask) if flat "
                f'parts were taken for background, or give tileable="{name}" (--tile-{name})'
            )
        _warn_of_step(normal_map, axis, stacklevel)


def _warn_of_step(normal_map: NormalMap, axis: int, stacklevel: int) -> None:
    """Warn if normals differ much more across the sides of a map than between neighbours inside."""
    normals, mask = np.moveaxis(normal_map.normals, 1 - axis, 0), np.moveaxis(normal_map.mask, 1 - axis, 0)
    sample = np.unique(np.linspace(1, len(mask) - 1, COMPARED_ROWS).astype(np.int64)) if len(mask) > 1 else ()
    inside = max((_mean_angle(normals, mask, k - 1, k) for k in sample), default=0.0)
    across = _mean_angle(normals, mask, -1, 0)
    if across > max(MAX_STEP * inside, MIN_STEP):
        sides = ("left and right", "top and bottom")[axis]
        warnings.warn(
            f"the normals differ by {across:.1f}° in the mean across the {sides} sides, but by {inside:.1f}° at most "
            "between neighbours inside: the map does not seem to repeat there, and a crease will show",
            ShortfallWarning,
            stacklevel=stacklevel,
        )


def _mean_angle(normals: Float32, mask: Bool, one: int, two: int) -> float:
    """Return the mean angle in degrees between two rows of normals, where both are foreground."""
    both = mask[one] & mask[two]
    chords = np.linalg.norm(normals[one][both] - normals[two][both], axis=1)
    return float(np.degrees(2 * np.arcsin(np.minimum(chords / 2, 1)).mean())) if len(chords) else 0.0
