"""The record of what the uncertainty of heights depends on, which an integration leaves with its surface."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from normalmesh.integration.mesh_solver import MeshSolver
from normalmesh.integration.prior_terms import thinned
from normalmesh.mesh.origin import HeightNoise
from normalmesh.mesh.screen_mesh import ScreenMesh

Float = NDArray[np.float64]


def height_noise_of(
    mesh: ScreenMesh, component: NDArray[np.integer], noises: Float, formulation: str, solver: MeshSolver
) -> HeightNoise:
    """Return the record of a mesh that was integrated.

    Parameters
    ----------
    mesh
        The final mesh, after cutting.
    component
        (N,) component of each vertex before the mesh was cut.
    noises
        (C, 2) degrees and correlation of the noise of these components.
    formulation
    solver
        The faces of its prior are those of the mesh.
    """
    of_part = np.empty((int(mesh.components.max()) + 1, 2))
    of_part[mesh.components] = noises[component]
    degrees, correlation = of_part.T
    if solver.prior is None or solver.points is None:
        return HeightNoise(degrees, correlation, formulation, np.empty(0, np.int32), np.empty((0, 2)), np.empty(0))
    places, feet = solver.points
    faces, feet, _, weights = thinned(places, feet, np.zeros(len(places)), solver.prior.weights)
    return HeightNoise(degrees, correlation, formulation, faces.astype(np.int32), feet, weights)
