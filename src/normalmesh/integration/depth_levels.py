"""Levels: the constant of each component of a surface, which normals leave open."""

from __future__ import annotations

import numpy as np

from normalmesh.array_types import Float, Integer
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.camera import Camera


def with_prior_levels(shift: Float, levels: Float, fixed: Integer) -> Float:
    """Return shifts (C,) that give components that a prior fixes (K,) their levels (C,) back."""
    shift = shift.copy()
    shift[fixed] = -levels[fixed]
    return shift


def mean_levels(unknown: Float, component: Integer, mesh: ScreenMesh, camera: Camera, distance: float) -> Float:
    """Return the mean (C,) of the unknown (N,) over each component, relative to what it should be.

    ``component`` (N,) is that of each vertex before the mesh was cut. Means are over the area on the screen.
    """
    count = int(component.max()) + 1
    of_face = component[mesh.faces[:, 0]]
    areas = mesh.areas
    area = np.bincount(of_face, areas, count)
    # A vertex without faces is a component without area; its value becomes the mean itself.
    bare = area == 0

    def means(values: Float) -> Float:
        corners = sum(values[mesh.faces[:, k]] for k in range(3))
        return np.bincount(of_face, areas * corners / 3, count) / np.where(bare, 1.0, area)

    # Logarithms are centred first, so that their exponentials stay in range.
    shift = means(unknown)
    if camera.gauge == "scale":
        centred = camera.depth_of_unknown(unknown - shift[component])
        shift += camera.unknown_of_depth(np.where(bare, 1.0, means(centred)) / distance)
    return shift
