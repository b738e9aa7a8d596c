"""Check curvature from normals against exact surfaces and a naive implementation."""

import numpy as np
import pytest

import naive_isotropic
from meshes import bumpy_map, disc
from normalmesh import NormalMap, Orthographic, Perspective
from normalmesh.evaluation.isotropic.edge_lengths import curvature
from surfaces import centres, plane_map, sphere

INSIDE = np.s_[3:-3, 3:-3]


def map_of_slopes(slope_u, slope_v, pixel_size=1.0):
    """Return the normal map of a height with these derivatives by u and v."""
    normals = np.stack([-slope_u, slope_v, np.ones_like(slope_u)], axis=-1)
    return NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True), camera=Orthographic(pixel_size))


@pytest.mark.parametrize("pixel_size", [1.0, 0.03])
def test_sphere(pixel_size):
    """The curvature is 1/R in pixels for any pixel size."""
    normal_map, _ = sphere(64, Orthographic(pixel_size), radius=0.8)
    assert np.allclose(curvature(normal_map)[INSIDE], 1 / (0.8 * 64), rtol=0.02)


def test_sphere_behind_a_pinhole():
    """Pixels are larger at the depth of the surface, which makes the curvature in pixels larger."""
    camera = Perspective(90, 90, 32, 32)
    normal_map, depth = sphere(64, camera, radius=0.4)
    inside = np.hypot(*(np.indices((64, 64)) + 0.5 - 32)) < 10
    assert np.allclose(curvature(normal_map)[inside], depth[inside] * camera.pixel_length / 0.4, rtol=0.03)


@pytest.mark.parametrize("angle", [0.0, 0.6, 2.0])
def test_cylinder(angle):
    """One principal curvature is 1/R and the other zero, for any direction and slope."""
    u, v = centres((60, 60))
    across = np.cos(angle) * (u - 30) + np.sin(angle) * (v - 30)
    slope = -across / np.sqrt(80.0**2 - across**2)
    found = curvature(map_of_slopes(slope * np.cos(angle), slope * np.sin(angle)))
    assert np.allclose(found[INSIDE], 1 / 80, rtol=0.02)


def test_saddle():
    """The curvatures of z = (x² − y²) / 2R are ±1/R at the centre, and follow the formula elsewhere."""
    u, v = centres((60, 60))
    p, q = (u - 30) / 90, -(v - 30) / 90
    first = np.stack([np.stack([1 + p * p, p * q], -1), np.stack([p * q, 1 + q * q], -1)], -1)
    second = np.diag([1, -1]) / 90 / np.sqrt(1 + p * p + q * q)[..., None, None]
    exact = np.abs(np.linalg.eigvals(np.linalg.solve(first, second))).max(axis=-1)
    found = curvature(map_of_slopes(p, q))
    assert np.allclose(found[INSIDE], exact[INSIDE], rtol=0.02)
    assert np.allclose(found[29:31, 29:31], 1 / 90, rtol=0.02)


def test_a_plane_has_none():
    assert np.allclose(curvature(plane_map((0.5, -0.3, 1), (9, 12))), 0, atol=1e-6)


def test_a_fold_is_spread_over_the_window():
    """The turning angle is curvature × length for any window."""
    slope = np.where(np.arange(40) < 20, 0.5, -0.5) * np.ones((12, 1))
    found = curvature(map_of_slopes(slope, np.zeros_like(slope)))[6]
    assert found[:16].max() < 1e-6
    lengths = np.sqrt(1 + 0.5**2)
    assert 0.8 * 2 * np.arctan(0.5) < found.sum() * lengths < 1.2 * 2 * np.arctan(0.5)


@pytest.mark.parametrize("camera", [Orthographic(0.5), Perspective(30, 33, 6, 5, 0.4)], ids=str)
@pytest.mark.parametrize(
    "mask", [disc(11, 4.6), np.random.default_rng(2).random((9, 12)) > 0.4], ids=["disc", "fragments"]
)
def test_naive_twin(camera, mask):
    normal_map = bumpy_map(mask.shape, mask=mask, camera=camera)
    found = curvature(normal_map)
    assert np.allclose(found, naive_isotropic.curvature(normal_map), rtol=1e-4, atol=1e-6)
    assert (found[~mask] == 0).all()


def test_one_pixel():
    assert curvature(plane_map((0, 0, 1), (1, 1)))[0, 0] == 0
