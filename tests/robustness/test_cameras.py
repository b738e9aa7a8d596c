"""Test cameras at and beyond their limits: surfaces are correct, or an error names the parameter."""

from __future__ import annotations

import math

import numpy as np
import pytest

from normalmesh import NormalMap, NormalMeshError, Orthographic, Perspective, integrate_pixels, reconstruct
from surface_checks import assert_depth_on_mask, assert_valid_surface
from surfaces import centres, plane_map

SHAPE = (40, 40)


def wide(degrees):
    """Return a camera with this field of view."""
    return Perspective.centred(SHAPE[1] / 2 / math.tan(math.radians(degrees / 2)), SHAPE)


PINHOLES = {
    "37°": wide(37),
    "150°": wide(150),
    "170°": wide(170),
    "telephoto": Perspective.centred(1e6, SHAPE),
    "far telephoto": Perspective.centred(1e9, SHAPE),
    "principal point outside": Perspective(60.0, 60.0, -200.0, 300.0),
    "principal point far outside": Perspective(50.0, 50.0, 1e4, 0.0),
    "oblong pixels": Perspective(20.0, 60.0, 20.0, 20.0, 3.0),
}


@pytest.mark.parametrize("name", PINHOLES)
@pytest.mark.parametrize("options", [{}, {"discontinuities": False, "refine": 0}], ids=["default", "plain"])
def test_planes_in_front_of_perspective_cameras_are_planes(name, options):
    """The plane faces the middle of the image; ⟨n, x⟩ is the same for all of its points."""
    camera = PINHOLES[name]
    middle = -camera.rays(SHAPE[1] / 2, SHAPE[0] / 2)
    normal = middle / np.linalg.norm(middle)
    rays = camera.rays(*centres(SHAPE))
    seen = -(rays @ normal) > 0.2 * np.linalg.norm(rays, axis=-1)
    normal_map = plane_map(normal, SHAPE, camera, seen)
    surface = reconstruct(normal_map, vertices=50, distance=2.0, **options)
    assert_valid_surface(surface, normal_map)
    heights = surface.vertices @ normal
    assert np.ptp(heights) < 2e-3 * abs(heights.mean())
    depth = integrate_pixels(normal_map, distance=2.0)
    assert_depth_on_mask(depth, normal_map)
    across = depth[seen] * (rays[seen] @ normal)
    assert np.ptp(across) < 1e-3 * abs(across.mean())
    assert depth[seen].mean() == pytest.approx(2.0)


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("degrees", [166, 170, 176, 179, 179.9])
def test_planes_parallel_to_the_image_are_planes_up_to_its_corners(degrees, preset):
    """The angle between normal and ray grows to 90° towards the corners, while the depth is the same everywhere."""
    normal_map = plane_map([0, 0, 1], SHAPE, wide(degrees))
    assert normal_map.repairs.grazing == 0
    surface = reconstruct(normal_map, vertices=50, distance=2.0, preset=preset)
    assert_valid_surface(surface, normal_map)
    np.testing.assert_allclose(surface.vertices[:, 2], -2.0, rtol=1e-6)
    np.testing.assert_allclose(integrate_pixels(normal_map, distance=2.0), 2.0, rtol=1e-6)


@pytest.mark.parametrize(
    ("camera", "normal"),
    [
        (wide(166), [0.1, -0.1, 1.0]),
        (Perspective(1.46, 1.19, 19.6, 44.7), [0.0, -1.0, 0.05]),
        (Perspective(30.0, 3.0, 20.0, 60.0, 9.0), [0.1, -1.0, 0.1]),
    ],
    ids=["wide", "short", "skewed"],
)
def test_planes_that_recede_far_within_a_face_are_planes(camera, normal):
    """From the centroid of a face to its corners, depth changes several times."""
    normal = np.array(normal) / np.linalg.norm(normal)
    seen = -(camera.rays(*centres(SHAPE)) @ normal) > 0.4
    normal_map = plane_map(normal, SHAPE, camera, seen)
    heights = reconstruct(normal_map, vertices=60, distance=2.0).vertices @ normal
    assert np.ptp(heights) < 2e-3 * abs(heights.mean())


@pytest.mark.parametrize("pixel_size", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_planes_of_any_pixel_size_are_planes(pixel_size):
    normal = np.array([0.5, -0.3, 0.8]) / np.linalg.norm([0.5, -0.3, 0.8])
    normal_map = plane_map(normal, SHAPE, Orthographic(pixel_size))
    surface = reconstruct(normal_map, vertices=50)
    assert_valid_surface(surface, normal_map)
    assert np.ptp(surface.vertices @ normal) < 1e-4 * pixel_size
    u, v = centres(SHAPE)
    heights = pixel_size * (-normal[0] * (u - 20) + normal[1] * (v - 20)) / normal[2]
    np.testing.assert_allclose(integrate_pixels(normal_map), heights, atol=1e-4 * pixel_size)


@pytest.mark.parametrize(
    ("K", "reason"),
    [
        ([[0, 0, 8], [0, 9, 8], [0, 0, 1]], "fx must be a positive focal length in pixels, not 0"),
        ([[9, 0, 8], [0, -9, 8], [0, 0, 1]], "fy must be a positive focal length in pixels, not -9"),
        ([[1e-9, 0, 8], [0, 9, 8], [0, 0, 1]], "fx must lie between 0.001 and"),
        ([[9, 0, 8], [0, 1e300, 8], [0, 0, 1]], "fy must lie between 0.001 and"),
        ([[9, 0, 1e9], [0, 9, 8], [0, 0, 1]], r"cx, cy and skew .* are more than 1e\+06 focal lengths away"),
        ([[9, 0, 8], [0, 9, 8], [0, 0, 0]], "must read"),
        ([[9, 0, np.inf], [0, 9, 8], [0, 0, 1]], "must read"),
        (np.zeros((3, 3)), "must read"),
        (np.eye(2), "must be 3×3, not 2×2"),
        (np.eye(3, dtype=complex), "must be an array of numbers, not complex128"),
        (None, "must be an array of numbers"),
        ([["9"] * 3] * 3, "must be an array of numbers"),
    ],
)
def test_matrices_that_are_refused(K, reason):
    with pytest.raises(NormalMeshError, match=reason):
        Perspective.from_matrix(K)


@pytest.mark.parametrize("size", [0, -1, math.nan, math.inf, 1e-300, 1e300, "1", None, True, 1j, [1.0], np.ones(2)])
def test_pixel_sizes_that_are_refused(size):
    with pytest.raises(NormalMeshError, match="pixel_size must"):
        Orthographic(size)


@pytest.mark.parametrize("distance", [0, -1, math.nan, math.inf, 1e300, "1", None, True])
def test_distances_that_are_refused(distance):
    normal_map = plane_map([0, 0, 1], (8, 8), Perspective.centred(9.0, (8, 8)))
    for run in (lambda: reconstruct(normal_map, vertices=5, distance=distance), lambda: integrate_pixels(
        normal_map, distance=distance
    )):  # fmt: skip
        with pytest.raises(NormalMeshError, match="distance must"):
            run()


def test_numbers_become_floats():
    camera = Perspective(np.float32(9), np.int8(9), 4, 4)
    assert camera == Perspective(9.0, 9.0, 4.0, 4.0)
    assert all(type(value) is float for value in (camera.fx, camera.fy, camera.cx, camera.cy, camera.skew))


@pytest.mark.filterwarnings("ignore::normalmesh.NormalMeshWarning")
@pytest.mark.parametrize("camera", [Orthographic(1e-6), *PINHOLES.values()], ids=["micrometres", *PINHOLES])
@pytest.mark.parametrize(
    "prior",
    [
        [[10.0, 10.0, 3.0], [10.2, 10.2, 5.0], [30.0, 30.0, 1000.0]],
        np.where(np.indices(SHAPE).sum(axis=0) % 2 == 0, 1.0, 1e3),
        np.full(SHAPE, 7.0),
        [[20.0, 20.0, 7.0]],
    ],
    ids=["contradictory points", "contradictory map", "level map", "one point"],
)
def test_priors_that_contradict_normals(camera, prior):
    """With noise of 60° and a contradictory prior the surface is valid, or an error names the prior."""
    rng = np.random.default_rng(1)
    to_viewer = camera.towards_viewer * camera.rays(*centres(SHAPE))
    to_viewer /= np.linalg.norm(to_viewer, axis=-1, keepdims=True)
    normal_map = NormalMap(to_viewer + math.radians(60) * rng.normal(size=(*SHAPE, 3)), None, camera)
    try:
        surface = reconstruct(normal_map, vertices=60, prior=prior)
    except NormalMeshError as error:
        assert "prior" in str(error)  # noqa: PT017
    else:
        assert_valid_surface(surface, normal_map)


@pytest.mark.parametrize(
    ("prior", "reason"),
    [
        (np.full(SHAPE, np.nan), "the prior holds no finite depth"),
        ([[1.0, 1.0, 1e300]], "depths of the prior must be at most 1e\\+30"),
        ([[1.0, 1.0, 1.0, 1e300]], "prior_weight, and weights of points, must lie in"),
        ([[999.0, 1.0, 1.0]], "no control point lies on the foreground"),
        ([[1e300, 1e300, 1.0]], "no control point lies on the foreground"),
        ([], "prior must be control points"),
        (np.zeros(SHAPE, complex), "prior must be an array of numbers"),
    ],
)
def test_priors_that_are_refused(prior, reason):
    with pytest.raises(NormalMeshError, match=reason):
        reconstruct(plane_map([0, 0, 1], SHAPE), vertices=20, prior=prior)
