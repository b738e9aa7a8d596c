"""The record of what the uncertainty of heights depends on, which an integration leaves with its surface."""

from __future__ import annotations

import numpy as np

from normalmesh.array_types import Float, Integer
from normalmesh.integration.mesh_deviation import mesh_deviations
from normalmesh.integration.mesh_solver import MeshSolver
from normalmesh.integration.prior_terms import thinned
from normalmesh.mesh.origin import HeightNoise
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.noise import shared_pixels
from normalmesh.normals.normal_map import NormalMap


def height_noise_of(
    mesh: ScreenMesh,
    unknown: Float,
    normal_map: NormalMap,
    component: Integer,
    noises: Float,
    formulation: str,
    solver: MeshSolver,
) -> HeightNoise:
    """Return the record of a mesh that was integrated.

    Parameters
    ----------
    mesh
        The final mesh, after cutting.
    unknown
        (N,) height, or logarithm of the depth, at its vertices.
    normal_map
        The normals, with their noise.
    component
        (N,) component of each vertex before the mesh was cut.
    noises
        (C, 2) degrees and correlation of the noise of these components.
    formulation
    solver
        The faces of its prior are those of the mesh, and vertices on opposite sides are the same if it repeats.
    """
    of_part = np.empty((int(mesh.components.max()) + 1, 2))
    of_part[mesh.components] = noises[component]
    degrees, correlation = of_part.T
    variances = np.stack([np.radians(degrees) ** 2, shared_pixels(correlation)], axis=1)
    noise = variances[mesh.components[mesh.faces[:, 0]]]
    twins = None if solver.repeats is None else solver.repeats.wrap(mesh).first_twins
    found = mesh_deviations(mesh, unknown, normal_map, noise, twins)
    deviations = tuple(each.astype(np.float32) for each in found)
    if solver.prior is None or solver.points is None:
        held = np.empty(0, np.int32), np.empty((0, 2)), np.empty(0)
        return HeightNoise(degrees, correlation, formulation, *held, *deviations)
    places, feet = solver.points
    faces, feet, _, weights = thinned(places, feet, np.zeros(len(places)), solver.prior.weights)
    return HeightNoise(degrees, correlation, formulation, faces.astype(np.int32), feet, weights, *deviations)
