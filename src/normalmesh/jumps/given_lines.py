"""Lines of jumps that the user gives: an edge image, or polylines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from normalmesh.arguments import checked_array, checked_nonzero
from normalmesh.array_types import Int
from normalmesh.errors import NormalMeshError, repr_for_error, shape_text
from normalmesh.facets.facets import FacetSystem
from normalmesh.jumps._lines import Band, LineRule, centre_lines
from normalmesh.jumps.jump_pixels import JumpPixels, Sides
from normalmesh.jumps.lines import REACH
from normalmesh.jumps.snapping import Snapper
from normalmesh.mesh.chains import Chains

#: Length (px) of branches of lines in an edge image, at least.
BRANCH = 3.0
#: Contrast that is added to that of the normals, so that paths through smooth regions have a finite cost.
MIN_CONTRAST = 0.05


def given_paths(lines: ArrayLike | Sequence[ArrayLike], pixels: JumpPixels) -> list[Int]:
    """Return the paths (P, 2) of pixel corners of given lines, one px apart.

    Parameters
    ----------
    lines
        An edge image (H, W), nonzero on the pixels beside a jump, or a sequence of polylines (K, 2) as u, v in px.
    pixels
        Lines are moved by up to 2 px to where their normals differ most.

    Raises
    ------
    NormalMeshError
        The lines are neither, or none of them runs through the foreground.
    """
    if isinstance(lines, np.ndarray) and lines.ndim == 2 and lines.shape == pixels.shape:
        paths = _paths_of_sides(pixels.sides(checked_nonzero(lines, "jumps")))
    else:
        polylines = _checked_polylines(lines, pixels.shape)
        snapper = Snapper(pixels.cells(polylines)) if polylines else None
        paths = [path for points in polylines for path in snapper.paths(points)] if snapper else []
    if not paths:
        raise NormalMeshError("no line of jumps runs through the foreground; are they u (right), v (down) in px?")
    return paths


def _checked_polylines(lines: ArrayLike | Sequence[ArrayLike], shape: tuple[int, int]) -> list[Int]:
    """Return polylines (K, 2), rounded to pixel corners within the image, or raise an error."""
    if not isinstance(lines, list | tuple):
        raise NormalMeshError(
            f"jumps must be an edge image of {shape_text(shape)} or a list of polylines (number, 2), "
            f"not {repr_for_error(lines)}"
        )
    rows, columns = shape
    rounded = []
    for line in lines:
        points = np.asarray(checked_array(line, "jumps", "polylines (number, 2) as u, v"), np.float64)
        if points.ndim != 2 or points.shape[1] != 2 or len(points) < 2 or not np.isfinite(points).all():
            raise NormalMeshError(
                f"a polyline of jumps must be finite and of the shape (two or more, 2), not {shape_text(points.shape)}"
            )
        rounded.append(np.clip(np.rint(points), 0, [columns, rows]).astype(np.int64))
    return rounded


def _paths_of_sides(sides: Sides) -> list[Int]:
    """Return centre lines of sides, along those with the largest contrast."""
    corners, ends = np.unique(sides.ends.reshape(-1, 2), axis=0, return_inverse=True)
    ends = ends.reshape(-1, 2)
    lengths, chosen = np.ones(len(ends)), np.zeros(len(ends), np.bool_)
    fixed = np.zeros(len(corners), np.bool_)
    fixed[ends] = ~sides.inner
    band = Band(ends.astype(np.int64), lengths, 1 / (MIN_CONTRAST + sides.contrast), lengths, lengths, fixed)
    centre_lines(band, LineRule(0.0, 0.0, BRANCH, REACH, np.inf, 1.0, 4 * REACH), chosen)
    chains = Chains.of(ends[chosen], fixed)
    return [corners[chains[chain]].astype(np.int64) for chain in range(len(chains))]


def edges_on_paths(paths: list[Int], system: FacetSystem) -> list[Int]:
    """Return the edges of a facet system that lie on each path (P, 2) of pixel corners."""
    corners = np.rint(system.means.mesh.vertices[system.ends]).astype(np.int64)
    width = int(max(corners.max(initial=0), *(path.max() for path in paths))) + 1

    def keys(ends: Int) -> Int:
        """Return a number for each pair of corners (K, 2, 2), in any order."""
        number = np.sort(ends[..., 0] + width * ends[..., 1], axis=1)
        key: Int = number[:, 0] + width * width * number[:, 1]
        return key

    known = keys(corners)
    order = np.argsort(known, kind="stable")
    found = []
    for path in paths:
        wanted = keys(np.stack([path[:-1], path[1:]], axis=1))
        place = np.minimum(np.searchsorted(known[order], wanted), len(order) - 1)
        edges = order[place]
        found.append(edges[known[edges] == wanted])
    return found
