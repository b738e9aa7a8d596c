"""Test that normals of no surface, and vectors of extreme lengths, give finite surfaces that are not inverted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from normalmesh import (
    NormalMap,
    Orthographic,
    Perspective,
    add_noise,
    integrate,
    integrate_pixels,
    reconstruct,
    remesh_isotropic,
)
from surface_checks import assert_depth_on_mask, assert_valid_surface
from surfaces import centres, plane_map

SHAPE = (24, 24)
CAMERAS = {
    "parallel": Orthographic(),
    "37°": Perspective.centred(36.0, SHAPE),
    "150°": Perspective.centred(12 / math.tan(math.radians(75)), SHAPE),
}
TILTED = np.array([0.3, 0.2, 1.0]) / np.linalg.norm([0.3, 0.2, 1.0])


def around(camera, angles, azimuths):
    """Return normals (H, W, 3) at given angles to the viewing ray and azimuths around it, both (H, W) in radians."""
    to_viewer = camera.towards_viewer * camera.rays(*centres(SHAPE))
    to_viewer /= np.linalg.norm(to_viewer, axis=-1, keepdims=True)
    first = np.cross(to_viewer, [0.0, 1.0, 0.0])
    first /= np.linalg.norm(first, axis=-1, keepdims=True)
    second = np.cross(to_viewer, first)
    across = np.cos(azimuths)[..., None] * first + np.sin(azimuths)[..., None] * second
    return np.cos(angles)[..., None] * to_viewer + np.sin(angles)[..., None] * across


def normals_of(fault, camera):
    """Return the normals (H, W, 3) of a fault by its name."""
    rng = np.random.default_rng(2)
    turns = rng.uniform(0, 2 * math.pi, SHAPE)
    zero, even = np.zeros(SHAPE), np.indices(SHAPE).sum(axis=0) % 2 == 0
    if fault.startswith("grazing"):
        angle = math.pi / 2 - float(fault.split()[-1])
        return around(camera, zero + angle, turns if "random" in fault else zero)
    return {
        "upright": around(camera, zero, zero),
        "noise of 60°": around(camera, np.abs(rng.normal(0, math.radians(60), SHAPE)), turns),
        "checkerboard": around(camera, zero + 1.2, np.where(even, 0.0, math.pi)),
        "checkerboard across": around(camera, zero + 1.4, np.where(even, 0.0, math.pi / 2)),
        "one outlier": around(camera, np.where(np.indices(SHAPE).prod(axis=0) == 100, 1.5, 0.0), zero),
    }[fault]


FAULTS = [
    "upright",
    "grazing 1e-3",
    "grazing 1e-6",
    "grazing 1e-12",
    "grazing random 1e-3",
    "grazing random 1e-12",
    "noise of 60°",
    "checkerboard",
    "checkerboard across",
    "one outlier",
]
WAYS = {
    "default": lambda m: reconstruct(m, vertices=30),
    "threshold": lambda m: reconstruct(m, threshold=4.0),
    "paper": lambda m: reconstruct(m, vertices=30, preset="paper"),
    "vertices": lambda m: reconstruct(m, vertices=30, formulation="vertices"),
    "plain": lambda m: reconstruct(m, vertices=30, discontinuities=False, refine=0),
    "in the plane": lambda m: reconstruct(m, vertices=30, decimation={"in_plane": True, "align": "each"}),
}


@pytest.mark.filterwarnings("ignore::normalmesh.NormalMeshWarning")
@pytest.mark.parametrize("camera", CAMERAS.values(), ids=CAMERAS)
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_normals(fault, camera):
    normal_map = NormalMap(normals_of(fault, camera), None, camera)
    assert np.isfinite(normal_map.normals).all()
    for way in WAYS.values():
        assert_valid_surface(way(normal_map), normal_map)
    for discontinuities in (False, True):
        assert_depth_on_mask(integrate_pixels(normal_map, discontinuities=discontinuities), normal_map)


@pytest.mark.parametrize("fault", ["grazing random 1e-3", "noise of 60°"])
@pytest.mark.filterwarnings("ignore::normalmesh.NormalMeshWarning")
def test_isotropic_meshes(fault):
    normal_map = NormalMap(normals_of(fault, Orthographic()))
    assert_valid_surface(integrate(remesh_isotropic(normal_map, vertices=60, rounds=2), normal_map), normal_map)


@pytest.mark.parametrize("degrees", [60, 360, 1e-300])
def test_added_noise(degrees):
    normal_map = add_noise(plane_map(TILTED, SHAPE), degrees)
    assert_valid_surface(reconstruct(normal_map, vertices=30), normal_map)


@pytest.mark.filterwarnings("ignore::normalmesh.NormalMeshWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [1e-30, 1e30, "denormal", "largest", "mixed"])
def test_lengths_do_not_matter(length, dtype):
    """A plane gives the same plane whatever the lengths of its normals."""
    exponents = np.random.default_rng(3).uniform(-0.6, 0.6, (*SHAPE, 1))
    finfo = np.finfo(dtype)
    lengths = {"denormal": 1e5 * float(finfo.smallest_subnormal), "largest": 0.9 * float(finfo.max)}
    scale = 10.0**exponents if length == "mixed" else lengths.get(length, length)
    given = (np.broadcast_to(TILTED, (*SHAPE, 3)) * scale).astype(dtype)
    normal_map = NormalMap(given)
    np.testing.assert_allclose(normal_map.normals, np.broadcast_to(TILTED, (*SHAPE, 3)), atol=1e-4)
    surface = reconstruct(normal_map, vertices=30)
    assert_valid_surface(surface, normal_map)
    assert np.ptp(surface.vertices @ TILTED) < 0.02


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (2, 2), (1, 1), (2, 300), (300, 2), (1, 4096), (4096, 1)])
@pytest.mark.parametrize("direction", [[0, 0, 1], [0.6, -0.4, 0.7]], ids=["upright", "tilted"])
def test_planes_of_thin_maps(shape, direction):
    normal = np.array(direction) / np.linalg.norm(direction)
    normal_map = plane_map(normal, shape)
    surface = reconstruct(normal_map, compression=0.5)
    assert_valid_surface(surface, normal_map)
    assert np.ptp(surface.vertices @ normal) < 1e-3
    u, v = centres(shape)
    heights = (-normal[0] * u + normal[1] * v) / normal[2]
    np.testing.assert_allclose(integrate_pixels(normal_map), heights - heights.mean(), atol=1e-3)
