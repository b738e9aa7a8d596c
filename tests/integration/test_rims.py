"""Test that the rims of steep objects are smooth in space at every density."""

import numpy as np
import pytest

from meshes import disc
from normalmesh import NormalMap, Orthographic, decimate, measure_looks, reconstruct
from normalmesh.evaluation.synthetic.analytic import sphere
from normalmesh.mesh.cut_mesh import boundary_vertices

SIZE = 130


def ellipsoid(half_axes, tilt=0.5, camera=None):
    """Return the normals of an ellipsoid in the middle of the image, turned by ``tilt``, which are steep at its rim."""
    a, b, c = half_axes
    v, u = np.indices((SIZE, SIZE)) + 0.5
    x, y = u - SIZE / 2 - 0.3, SIZE / 2 - v + 0.2
    p, q = x * np.cos(tilt) + y * np.sin(tilt), y * np.cos(tilt) - x * np.sin(tilt)
    height = 1 - (p / a) ** 2 - (q / b) ** 2
    along, across = p / a**2, q / b**2
    upwards = np.sqrt(np.maximum(height, 0)) / c
    right, up = along * np.cos(tilt) - across * np.sin(tilt), along * np.sin(tilt) + across * np.cos(tilt)
    normals = np.stack([right, up, upwards], axis=-1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    return NormalMap(normals, height > 0, camera or Orthographic())


def rim_angle(surface, normal_map):
    """Return the mean angle in degrees between pixels beside the background and their faces."""
    mask, owners = normal_map.mask, surface.owners()[1]
    inner = mask.copy()
    for axis in (0, 1):
        for step in (-1, 1):
            inner &= np.roll(mask, step, axis)
    rim = mask & ~inner & (owners >= 0)
    a, b, c = surface.vertices[surface.faces[owners[rim]]].swapaxes(0, 1)
    normals = np.cross(b - a, c - a)
    cosines = (normals * normal_map.normals[rim]).sum(axis=1) / np.linalg.norm(normals, axis=1)
    return np.degrees(np.arccos(np.clip(cosines, -1, 1))).mean()


@pytest.mark.parametrize("compression", [0.98, 0.95, 0.9, 0.8])
@pytest.mark.parametrize("half_axes", [(50, 50, 50), (56, 38, 50)], ids=["sphere", "ellipsoid"])
def test_rims_are_smooth(half_axes, compression):
    normal_map = ellipsoid(half_axes)
    surface = reconstruct(normal_map, compression=compression, discontinuities=False)
    # With the staircase of the mask it is 1.8 at 80 %.
    assert measure_looks(surface, normal_map).rim < 0.7
    assert rim_angle(surface, normal_map) < (5 if compression > 0.96 else 3)
    assert surface.coverage.uncovered < 0.002 * normal_map.foreground


def test_rims_behind_a_pinhole():
    normal_map = sphere(SIZE, "perspective").normal_map
    surface = reconstruct(normal_map, compression=0.8, discontinuities=False)
    assert measure_looks(surface, normal_map).rim < 0.6


def test_vertices_of_fine_rims_lie_on_the_true_outline():
    mask, radius = disc(SIZE, 50), 50
    normals = np.zeros((*mask.shape, 3))
    normals[..., 2] = 1
    mesh = decimate(NormalMap(normals, mask), compression=0.8)
    distances = np.hypot(*(mesh.vertices[boundary_vertices(mesh)] - SIZE / 2).T)
    assert abs(distances - radius).max() < 0.5
    assert distances.std() < 0.15
