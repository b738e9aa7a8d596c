"""Cameras: the one relation between normals and the unknown, tangents, matrices, and invalid parameters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from normalmesh import NormalMeshError, Orthographic, Perspective

CAMERAS = [
    Orthographic(),
    Orthographic(0.25),
    Perspective(800, 800, 64, 48),
    Perspective(700, 850, 70.5, 40.25, skew=30),
]

waves = st.lists(st.tuples(st.floats(-0.05, 0.05), st.floats(-0.05, 0.05), st.floats(0, 6.3)), min_size=1, max_size=4)


def smooth(waves, screen):
    """A smooth unknown (...) on the screen (..., 2): a sum of plane waves."""
    return sum(2 * np.sin(a * screen[..., 0] + b * screen[..., 1] + phase) / len(waves) for a, b, phase in waves)


def positions():
    v, u = np.mgrid[4:90:12.5, 3:120:17.25]
    return np.stack([u, v], axis=-1)


def central_difference(function, screen, axis, step=1e-3):
    shift = np.eye(2)[axis] * step
    return (function(screen + shift) - function(screen - shift)) / (2 * step)


def surface_normals(camera, waves, screen):
    """Unit normals by finite differences of the camera's points, turned towards the viewer."""
    points = lambda at: camera.points(at, smooth(waves, at))  # noqa: E731
    normals = np.cross(central_difference(points, screen, 1), central_difference(points, screen, 0))
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    facing = camera.towards_viewer * np.sum(normals * camera.rays(screen[..., 0], screen[..., 1]), axis=-1)
    return normals * np.sign(facing)[..., None]


@pytest.mark.parametrize("camera", CAMERAS, ids=repr)
@given(waves=waves)
def test_the_one_relation(camera, waves):
    """⟨n, r⟩ ∂_i z + ⟨n, τ_i⟩ = 0."""
    screen = positions()
    normals = surface_normals(camera, waves, screen)
    along_ray = np.sum(normals * camera.rays(screen[..., 0], screen[..., 1]), axis=-1)
    for axis, tau in enumerate(camera.tangents):
        slope = central_difference(lambda at: smooth(waves, at), screen, axis)
        np.testing.assert_allclose((along_ray * slope + normals @ tau) / camera.pixel_length, 0, atol=1e-5)


@pytest.mark.parametrize("camera", CAMERAS, ids=repr)
@given(waves=waves)
def test_jacobian_columns_are_the_surface_tangents(camera, waves):
    screen = positions()
    u, v = screen[..., 0], screen[..., 1]
    normals = surface_normals(camera, waves, screen)
    jacobian = camera.jacobian(normals, u, v)
    assert jacobian.shape == (*u.shape, 3, 2)
    np.testing.assert_allclose(np.einsum("...i,...ij->...j", normals, jacobian), 0, atol=1e-9)
    # A point is exp(z)·r for a pinhole: its derivative is J up to that factor.
    scale = np.exp(smooth(waves, screen)) if isinstance(camera, Perspective) else np.ones(u.shape)
    for axis in range(2):
        tangent = central_difference(lambda at: camera.points(at, smooth(waves, at)), screen, axis)
        expected = tangent / scale[..., None] / camera.pixel_length
        np.testing.assert_allclose(jacobian[..., axis], expected, atol=1e-4)


@pytest.mark.parametrize("camera", CAMERAS, ids=repr)
def test_depth_and_points(camera):
    screen = positions()
    unknown = smooth([(0.02, 0.03, 1)], screen)
    points = camera.points(screen, unknown)
    assert points.shape == (*unknown.shape, 3)
    expected = np.exp(unknown) if isinstance(camera, Perspective) else unknown
    np.testing.assert_allclose(camera.depth(points), expected)


@pytest.mark.parametrize("camera", CAMERAS, ids=repr)
def test_rays_are_affine_in_the_frame(camera):
    tau_u, tau_v, origin, along_u, along_v = camera.frame
    np.testing.assert_allclose(camera.rays(3.0, 5.0), origin + 3 * along_u + 5 * along_v)
    np.testing.assert_array_equal(camera.tangents, [tau_u, tau_v])
    assert camera.pixel_length == pytest.approx(np.linalg.norm(np.cross(tau_u, tau_v)) ** 0.5)


def test_pixel_length():
    assert Orthographic(0.25).pixel_length == pytest.approx(0.25)
    assert Perspective(800, 200, 1, 1).pixel_length == pytest.approx(1 / 400)


@pytest.mark.parametrize(("pixel_centre", "shift"), [("integer", 0.5), ("half", 0)])
@given(
    fx=st.floats(10, 1e5),
    fy=st.floats(10, 1e5),
    cx=st.floats(-1e4, 1e4),
    cy=st.floats(-1e4, 1e4),
    skew=st.floats(-9, 9),
)
def test_from_matrix_inverts_projection(pixel_centre, shift, fx, fy, cx, cy, skew):
    """A point of the camera projects with K to where it came from, counted in K's pixels."""
    K = np.array([[fx, skew, cx], [0, fy, cy], [0, 0, 1]])
    camera = Perspective.from_matrix(2 * K, pixel_centre)
    screen = np.array([[12.5, 700.25], [-3.0, 8.0]])
    x, y, z = camera.points(screen, np.array([0.3, 2.0])).T
    projected = K @ np.stack([x, -y, -z])  # computer vision's axes: y down, z away
    np.testing.assert_allclose((projected[:2] / projected[2]).T + shift, screen, atol=1e-6)


def test_from_matrix():
    K = [[500, 2, 304], [0, 510, 256], [0, 0, 1]]
    assert Perspective.from_matrix(K) == Perspective(500, 510, 304.5, 256.5, 2)
    assert Perspective.from_matrix(K, "half") == Perspective(500, 510, 304, 256, 2)


@pytest.mark.parametrize(
    ("K", "reason"),
    [
        (np.eye(4), "must be 3×3, not 4×4"),
        (5, "must be 3×3, not a single number"),
        ("K.txt", "must be an array of numbers"),
        ([[1, 2], [3]], "must be an array of numbers"),
        ([[500, 0, 0], [0, 500, 0], [304, 256, 1]], r"must read .*\(transposed"),
        ([[500, 0, 1], [0, 500, 1], [0, 0, 0]], "must read"),
        ([[np.nan, 0, 1], [0, 500, 1], [0, 0, 1]], "must read"),
        ([[500, 0, 1], [0, -500, 1], [0, 0, 1]], "fy must be a positive focal length in pixels, not -500"),
    ],
)
def test_matrices_that_are_refused(K, reason):
    with pytest.raises(NormalMeshError, match=reason):
        Perspective.from_matrix(K)


def test_parameters_that_are_refused():
    with pytest.raises(NormalMeshError, match="pixel_centre must be one of integer, half, not 'corner'"):
        Perspective.from_matrix(np.eye(3), "corner")
    for size in (0, -1, np.nan, np.inf):
        with pytest.raises(NormalMeshError, match="pixel_size must be a positive number"):
            Orthographic(size)
    for name in ("fx", "fy", "cx", "cy", "skew"):
        values = {"fx": 1.0, "fy": 1.0, "cx": 0.0, "cy": 0.0, "skew": 0.0, name: np.inf}
        with pytest.raises(NormalMeshError, match=f"{name} must be a finite number, not inf"):
            Perspective(**values)
    with pytest.raises(NormalMeshError, match="fx must be a positive focal length"):
        Perspective(0, 1, 0, 0)


@pytest.mark.parametrize("camera", [Orthographic(0.3), Perspective(400, 380, 100, 90, skew=2)])
def test_jacobian_against_the_naive_twin(camera):
    rng = np.random.default_rng(5)
    u, v = rng.uniform(0, 200, (2, 10))
    normals = rng.normal(size=(10, 3)) * [0.4, 0.4, 0] + [0, 0, 1]
    for k, jacobian in enumerate(camera.jacobian(normals, u, v)):
        assert np.allclose(jacobian, naive.jacobian(normals[k], camera.rays(u[k], v[k]), *camera.tangents))


@pytest.mark.parametrize(("axis", "extent"), [("horizontal", 64), ("vertical", 48), ("diagonal", 80), ("longer", 64)])
def test_field_of_view(axis, extent):
    camera = Perspective.from_fov(90, (48, 64), axis)
    assert (camera.fx, camera.fy, camera.cx, camera.cy) == pytest.approx((extent / 2, extent / 2, 32, 24))


def test_fields_of_view_that_no_pinhole_has():
    for degrees in (0, 180, -5, float("nan"), "wide"):
        with pytest.raises(NormalMeshError, match="between 0 and 180"):
            Perspective.from_fov(degrees, (48, 64))
    for degrees in (1e-9, 179.99999):
        with pytest.raises(NormalMeshError, match=rf"from 0.001 to 179.999, not {degrees}"):
            Perspective.from_fov(degrees, (48, 64))
    with pytest.raises(NormalMeshError, match="axis"):
        Perspective.from_fov(40, (48, 64), "sideways")
