"""The record of what the uncertainty of heights depends on, which an integration leaves with its surface."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from normalmesh.array_types import Float, Int32, Integer
from normalmesh.integration.mesh_deviation import mesh_deviations
from normalmesh.integration.prior_terms import thinned
from normalmesh.mesh.origin import HeightNoise
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.noise import MapNoise, shared_pixels


def component_noises(
    noise: MapNoise, mesh: ScreenMesh, component: Integer, labels_at: Callable[[Float], Integer]
) -> Float:
    """Return degrees and correlation (C, 2) of the noise of each component of a mesh, from most of the pixels below.

    ``component`` (N,) is that of each vertex before the mesh was cut. ``labels_at`` returns the component of the mask,
    from 1 on, at points (K, 2), 0 outside.
    """
    known = np.array([(each.degrees, each.correlation) for each in noise.components])
    found = np.tile([noise.usual.degrees, noise.usual.correlation], (int(component.max()) + 1, 1))
    if len(known) == 1:
        return found
    label = labels_at(mesh.vertices[mesh.faces].mean(axis=1)).astype(np.int64)
    base = len(known) + 1
    pair, number = np.unique(component[mesh.faces[:, 0]] * base + label, return_inverse=True)
    by_area = pair[np.argsort(np.bincount(number, mesh.areas), kind="stable")]
    component, label = np.divmod(by_area[by_area % base > 0], base)
    # If several values are assigned to one place, the last one is kept.
    found[component] = known[label - 1]
    return found


def noises_of_parts(mesh: ScreenMesh, component: Integer, noises: Float) -> Float:
    """Return the noises (P, 2) of the connected parts of a mesh from those (C, 2) of its components before it was cut.

    ``component`` (N,) is that of each vertex.
    """
    of_part = np.empty((int(mesh.components.max()) + 1, 2))
    of_part[mesh.components] = noises[component]
    return of_part


def noise_of_faces(mesh: ScreenMesh, noises: Float) -> Float:
    """Return the variance of the noise below each face in rad², and the number of pixels that share it (M, 2)."""
    degrees, correlation = noises.T
    variances = np.stack([np.radians(degrees) ** 2, shared_pixels(correlation)], axis=1)
    return variances[mesh.components[mesh.faces[:, 0]]]


def height_noise_of(
    mesh: ScreenMesh,
    noises: Float,
    variances: tuple[Float, Float],
    formulation: str,
    held: tuple[Integer, Float, Float] | None,
    twins: Int32 | None = None,
) -> HeightNoise:
    """Return the record of a mesh that was integrated.

    Parameters
    ----------
    mesh
        The final mesh, after cutting.
    noises
        (P, 2) degrees and correlation of the noise of its connected parts.
    variances
        Those of its faces, see :func:`.face_variances`.
    formulation
    held
        Faces (K,) on which a prior holds the surface, the places (K, 2), and their weights; None without a prior.
    twins
        (N,) the first vertex that each vertex is the same as, of a mesh that repeats.
    """
    on_faces, at_vertices = (each.astype(np.float32) for each in mesh_deviations(mesh, *variances, twins))
    places = np.empty(0, np.int32), np.empty((0, 2)), np.empty(0)
    if held is not None:
        faces, feet, _, weights = thinned(held[0], held[1], np.zeros(len(held[0])), held[2])
        places = faces.astype(np.int32), feet, weights
    return HeightNoise(noises[:, 0], noises[:, 1], formulation, *places, on_faces, at_vertices)
