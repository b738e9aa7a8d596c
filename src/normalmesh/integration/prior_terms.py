"""The terms that the points of a prior add to the equations of a mesh: at most three for each face.

On a face, the unknown is linear in that of the vertices. A sum of squares over many points of a face therefore depends
only on their weight, their centre, their covariance, and the linear function that fits them best, and three points that
have these in common act as all of them do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from normalmesh.array_types import Float, Integer
from normalmesh.facets.plane_surface import PlaneSurface
from normalmesh.integration.cotangent import CotangentSystem
from normalmesh.jumps.placement import rises
from normalmesh.mesh.interpolation import barycentric_rows

#: Number of points of a face that have the same terms as any larger number.
ENOUGH = 3
#: Variance across a line, relative to that along it, up to which points count as lying on the line.
FLAT = 1e-14


class FacePoints(NamedTuple):
    """Points of a prior on the faces of a mesh."""

    faces: Integer  # (K,)
    feet: Float  # (K, 2): where on the faces, u, v in pixels
    steps: Float  # (K, 2): from there to the points themselves, which may lie beyond the outline
    unknown: Float  # (K,): height, or logarithm of the depth
    weights: Float  # (K,)

    def chosen(self, which: Integer) -> FacePoints:
        """Return some of the points."""
        return FacePoints._make(each[which] for each in self)


@dataclass(frozen=True, eq=False)
class PriorTerms:
    """The terms ``Σ weight (row · x − value)²`` of a prior, whose rows sum to one."""

    faces: Integer  # (K,): the face that each term is about
    rows: csr_matrix  # (K, n)
    values: Float  # (K,)
    weights: Float  # (K,)

    def misfits(self, x: Float) -> Float:
        """Return how much the surface is below the points (K,)."""
        return self.values - self.rows @ x

    def among(self, part: Integer) -> Integer:
        """Return the part (K,) of the system that each term belongs to, from that of the unknowns (n,)."""
        return part[self.rows.indices[self.rows.indptr[1:] - 1]]


def weighted_means(values: Float, weights: Float, group: Integer, count: int) -> Float:
    """Return the weighted mean (G,) of the values (K,) of each group (K,), 0 for those without any.

    The mean of a single value is that value exactly.
    """
    reference = np.zeros(count)
    reference[group] = values
    total = np.bincount(group, weights, count)
    apart = np.bincount(group, weights * (values - reference[group]), count)
    return reference + apart / np.where(total > 0, total, 1.0)


def face_terms(system: PlaneSurface | CotangentSystem, x: Float, points: FacePoints) -> PriorTerms:
    """Return the terms of points, near unknowns x (n,) that solve the system without a prior."""
    camera = system.means.camera
    # Points beyond the outline continue the planes of the normals.
    values = points.unknown - rises(system.means.gradients[points.faces], points.steps, camera)
    # Faces are planes in space. A prior bends the surface little: those of x do as well as those to be found.
    hats = barycentric_rows(system.means.mesh, points.feet, points.faces)
    values -= camera.bends(hats.data.reshape(-1, 3), system.at_vertices(x)[hats.indices.reshape(-1, 3)])
    faces, feet, values, weights = thinned(points.faces, points.feet, values, points.weights)
    rows, known = system.prior_rows(feet, faces)
    return PriorTerms(faces, rows, values - known, weights)


def thinned(faces: Integer, feet: Float, values: Float, weights: Float) -> tuple[Integer, Float, Float, Float]:
    """Replace more than three points on one face by three that have the same sum of squares, up to a constant.

    Parameters
    ----------
    faces
        (K,) face of each point.
    feet
        (K, 2) places on the screen.
    values, weights
        (K,) values that a function which is linear on each face should have there.

    Returns
    -------
    The same four of fewer points; those of faces with few of them come first, in their order.
    """
    many = np.bincount(faces)[faces] > ENOUGH
    if not many.any():
        return faces, feet, values, weights
    crowded, group = np.unique(faces[many], return_inverse=True)
    count, own = len(crowded), weights[many]
    total = np.bincount(group, own, count)

    def means(numbers: Float) -> Float:
        return weighted_means(numbers, own, group, count)

    centre, level = np.stack([means(feet[many, k]) for k in range(2)], axis=1), means(values[many])
    aside, above = feet[many] - centre[group], values[many] - level[group]
    covariance = np.array([[means(aside[:, i] * aside[:, j]) for i in range(2)] for j in range(2)])
    axes = np.linalg.eigh(covariance.transpose(2, 0, 1))[1]
    spread, slope = np.empty((count, 2)), np.empty((count, 2))
    for k in range(2):
        along = (aside * axes[group, :, k]).sum(axis=1)
        spread[:, k] = np.sqrt(means(along**2))
        slope[:, k] = means(along * above)
    # The values of the best linear function one standard deviation along each axis.
    slope = np.where(spread**2 > FLAT * spread[:, 1:] ** 2, slope / np.where(spread > 0, spread, 1.0), 0.0)
    angles = 2 * np.pi * np.arange(ENOUGH) / ENOUGH
    corners = np.sqrt(2) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    places = centre[:, None] + np.einsum("kj,gj,gij->gki", corners, spread, axes)
    heights = level[:, None] + slope @ corners.T
    return (
        np.concatenate([faces[~many], np.repeat(crowded, ENOUGH)]),
        np.concatenate([feet[~many], places.reshape(-1, 2)]),
        np.concatenate([values[~many], heights.ravel()]),
        np.concatenate([weights[~many], np.repeat(total / ENOUGH, ENOUGH)]),
    )
