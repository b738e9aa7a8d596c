"""Levelling: a surface that repeats has no mean slope, so that of its normal map is taken away."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from normalmesh.array_types import Bool, Float, Int, Integer
from normalmesh.errors import NormalMeshError, ShortfallWarning, shape_text, warn_caller
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.integration.integration_options import IntegrationOptions
from normalmesh.mesh.cut_mesh import edge_ends
from normalmesh.mesh.jumps import Jumps, Placement
from normalmesh.mesh.raster import pixel_faces
from normalmesh.mesh.repeats import RepeatingMesh, Repeats
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.camera import Camera
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
    means = FaceMeans.of(coarse_mesh(normal_map.mask_window, repeats), normal_map, planes_only=True)
    jumps, repeats = levelled_by(means, repeats, jumps)
    return without_slope(normal_map, repeats.mean_slope), jumps, repeats


def levelled_by(means: FaceMeans, repeats: Repeats, jumps: Jumps) -> tuple[Jumps, Repeats]:
    """Return the placement of jumps, and how a map repeats, without its mean slope, given means on a coarse mesh."""
    slope_u, slope_v = mean_slope(means, repeats)
    if jumps.placement is not None:
        # Normals do not show how far the surface falls at a jump, so they have a mean slope; the placement has not.
        length = means.camera.pixel_length
        slope_u, slope_v = placed_slope(jumps.placement, length, repeats, (slope_u, slope_v))
        slopes = np.array([slope_u, slope_v]) * length
        placement = jumps.placement
        offsets = placement.offsets - placement.centroids @ slopes
        jumps = replace(jumps, placement=replace(placement, offsets=offsets, gradients=placement.gradients - slopes))
    return jumps, replace(repeats, mean_slope=(slope_u, -slope_v))


def without_slope(normal_map: NormalMap, slope: tuple[float, float]) -> NormalMap:
    """Return a map whose slopes along x and y are smaller by the given ones."""
    normals = normal_map.normals.copy()
    normals[..., :2] += normals[..., 2:] * np.array(slope, np.float32)
    lengths = np.linalg.norm(normals, axis=2, keepdims=True)
    np.divide(normals, lengths, out=normals, where=lengths > 0)
    return normal_map.with_normals(normals)


def mean_slope(means: FaceMeans, repeats: Repeats) -> tuple[float, float]:
    """Return the slopes along u and v of the plane that, added to a surface that repeats, fits the normals best.

    The facet system of the coarse mesh is solved for both at once: across a side, the surface may rise by the
    slope times the period. Unlike the mean of the slopes of all pixels, this weighs steep ones by what they tell.
    """
    mesh = repeats.wrap(means.mesh)
    system = FacetSystem.of(replace(means, mesh=mesh))
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
    slope_u, slope_v = slopes / means.camera.pixel_length
    return float(slope_u), float(slope_v)


def placed_slope(
    placement: Placement, pixel_length: float, repeats: Repeats, otherwise: tuple[float, float]
) -> tuple[float, float]:
    """Return the slopes along u and v at which a placement rises from each side to the opposite one, in the median.

    Where it does not reach both, slopes are those given.
    """
    owners, slopes = pixel_faces(placement.mesh, repeats.shape), list(otherwise)
    for axis, period in repeats.axes:
        near, far = np.moveaxis(owners, 1 - axis, 0)[[0, -1]]
        both = np.flatnonzero((near >= 0) & (far >= 0))
        heights = []
        for faces, side in ((near[both], 0.0), (far[both], period)):
            places = np.insert((both + 0.5)[:, None], axis, side, axis=1) - placement.centroids[faces]
            heights.append(placement.offsets[faces] + (placement.gradients[faces] * places).sum(axis=1))
        if len(both):
            rise = float(np.median(heights[1] - heights[0]))
            slopes[axis] = rise / (period * pixel_length)
    return slopes[0], slopes[1]


def coarse_mesh(mask_window: Callable[[slice, slice], Bool], repeats: Repeats) -> ScreenMesh:
    """Return a mesh of the cells of a grid that hold foreground; its sides are those of the map."""
    rows, columns = repeats.shape
    cell = max(math.ceil(max(rows, columns) / CELLS_ALONG_MAP), 1)
    edges = [np.linspace(0, side, max(side // cell, 1) + 1) for side in (rows, columns)]
    starts = [np.round(each[:-1]).astype(np.int64) for each in edges]
    bands = [slice(top, bottom) for top, bottom in pairwise([*starts[0].tolist(), rows])]
    held = np.stack([mask_window(band, slice(0, columns)).any(axis=0) for band in bands])
    held = np.logical_or.reduceat(held, starts[1], axis=1)
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


def check_repeating_map(normal_map: NormalMap, repeats: Repeats) -> None:
    """Raise an error if a map cannot repeat, and warn if it does not seem to.

    It does not seem to repeat if normals differ much more across the sides than inside.
    """
    check_sides(normal_map.camera, repeats, normal_map.mask_window)
    for axis, _ in repeats.axes:
        warn_of_step(steps_between(normal_map, axis, compared_rows(repeats, axis)), axis)


def check_sides(camera: Camera, repeats: Repeats, mask_window: Callable[[slice, slice], Bool]) -> None:
    """Raise an error if a map cannot repeat: unless the camera is orthographic, and foreground goes on at the sides."""
    camera.require_heights(
        f"tileable maps need an orthographic camera, not one that is {camera.describe()}: copies of what "
        "that sees do not fit together"
    )
    shape, there = repeats.shape, {pair.axis for pair in repeats.side_pairs(mask_window)}
    for axis, _ in repeats.axes:
        if axis not in there:
            sides, name = (("left and right", "y"), ("top and bottom", "x"))[axis]
            raise NormalMeshError(
                f"the foreground of the {shape_text(shape)} map never reaches both its {sides} sides at the "
                "same place, so nothing is to be joined there: crop it to one period, give a mask (--mask) if flat "
                f'parts were taken for background, or give tileable="{name}" (--tile-{name})'
            )


def compared_rows(repeats: Repeats, axis: int) -> Int:
    """Return the rows, or columns for axis 0, that are compared with those before them: first the one at the side."""
    length = repeats.shape[1 - axis]
    inside = np.linspace(1, length - 1, COMPARED_ROWS if length > 1 else 0)
    return np.unique(np.append(0, inside).astype(np.int64))


def steps_between(normal_map: NormalMap, axis: int, chosen: Int) -> Float:
    """Return the sums of the angles in degrees (K,) between some rows, or columns for axis 0, and those before them.

    Numbers (K,) of pixels that are foreground in both follow: the result is (K, 2). Before the first is the last one.
    """
    normals, mask = np.moveaxis(normal_map.normals, 1 - axis, 0), np.moveaxis(normal_map.mask, 1 - axis, 0)
    found = np.zeros((len(chosen), 2))
    for number, row in enumerate(chosen):
        both = mask[row - 1] & mask[row]
        chords = np.linalg.norm(normals[row - 1][both] - normals[row][both], axis=1)
        found[number] = np.degrees(2 * np.arcsin(np.minimum(chords / 2, 1)).sum()), len(chords)
    return found


def warn_of_step(steps: Float, axis: int) -> None:
    """Warn if normals differ much more across the sides of a map, which come first, than between others (K, 2)."""
    means = steps[:, 0] / np.maximum(steps[:, 1], 1)
    beside, most = float(means[0]), float(means[1:].max(initial=0.0))
    if beside > max(MAX_STEP * most, MIN_STEP):
        sides = ("left and right", "top and bottom")[axis]
        warn_caller(
            f"the normals differ by {beside:.1f}° in the mean across the {sides} sides, but by {most:.1f}° at most "
            "between neighbours inside: the map does not seem to repeat there, and a crease will show",
            ShortfallWarning,
        )
