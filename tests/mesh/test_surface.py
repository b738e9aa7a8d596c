"""Surfaces: checks of their arrays, normals, and depth and normal maps against naive twins."""

from __future__ import annotations

import math

import numpy as np
import pytest

from normalmesh.errors import NormalMeshError
from normalmesh.mesh.raster import pixel_faces
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.mesh.surface import Surface
from normalmesh.normals.camera import Camera
from normalmesh.normals.orthographic import Orthographic
from normalmesh.normals.perspective import Perspective

SHAPE = (24, 32)
CAMERAS = [
    pytest.param(Orthographic(), id="orthographic"),
    pytest.param(Orthographic(pixel_size=0.03), id="pixel_size"),
    pytest.param(Perspective(fx=40, fy=44, cx=15.2, cy=12.9), id="perspective"),
    pytest.param(Perspective(fx=40, fy=44, cx=15.2, cy=12.9, skew=3.0), id="skew"),
]


def coarse_mesh(shape: tuple[int, int] = SHAPE, step: int = 4) -> ScreenMesh:
    """A grid of triangles over an image, inner vertices off the grid, so that nothing is aligned with pixels."""
    rows, columns = shape
    u, v = np.meshgrid(np.arange(0, columns + 1, step, float), np.arange(0, rows + 1, step, float))
    inner = (u > 0) & (u < columns) & (v > 0) & (v < rows)
    random = np.random.default_rng(3)
    u = u + inner * random.uniform(-0.3, 0.3, u.shape) * step
    v = v + inner * random.uniform(-0.3, 0.3, v.shape) * step
    index = np.arange(u.size).reshape(u.shape)
    a, b, c, d = (part.ravel() for part in (index[:-1, :-1], index[1:, :-1], index[1:, 1:], index[:-1, 1:]))
    faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return ScreenMesh(np.stack([u.ravel(), v.ravel()], axis=1), faces.astype(np.int32))


def plane_unknown(camera: Camera, screen: np.ndarray) -> np.ndarray:
    """Height of z = 2 + 0.3 x − 0.5 y, or log depth of the plane 0.2 x − 0.3 y − z = 5."""
    if isinstance(camera, Orthographic):
        x, y, _ = np.moveaxis(camera.points(screen, np.zeros(screen.shape[:-1])), -1, 0)
        return 2 + 0.3 * x - 0.5 * y
    return np.log(5 / (camera.rays(screen[..., 0], screen[..., 1]) @ [0.2, -0.3, -1.0]))


def cap_unknown(camera: Camera, screen: np.ndarray) -> np.ndarray:
    """A bump towards the viewer, highest at (12, 9)."""
    height = np.sqrt(900 - np.sum((screen - [12, 9]) ** 2, axis=-1))
    return 0.03 * height if isinstance(camera, Orthographic) else np.log(60 - 0.5 * height)


def pixel_centres(shape: tuple[int, int]) -> np.ndarray:
    u, v = np.meshgrid(np.arange(shape[1]) + 0.5, np.arange(shape[0]) + 0.5)
    return np.stack([u, v], axis=-1)


def naive_depth(surface: Surface, face: int, u: float, v: float) -> float:
    """Return the depth at which the viewing ray through (u, v) meets the plane of a face."""
    a, b, c = (surface.vertices[k] for k in surface.faces[face])
    normal = np.cross(b - a, c - a)
    start = surface.camera.points([u, v], 0.0) if isinstance(surface.camera, Orthographic) else np.zeros(3)
    ray = surface.camera.rays(u, v)
    point = start + ray * (normal @ (a - start)) / (normal @ ray)
    return float(surface.camera.depth(point))


def naive_normal(surface: Surface, face: int) -> np.ndarray:
    a, b, c = (surface.vertices[k] for k in surface.faces[face])
    normal = np.cross(b - a, c - a)
    return normal / math.sqrt(normal @ normal)


def naive_vertex_normals(surface: Surface) -> np.ndarray:
    total = np.zeros_like(surface.vertices)
    for face, corners in enumerate(surface.faces):
        a, b, c = surface.vertices[corners]
        area = np.linalg.norm(np.cross(b - a, c - a)) / 2
        for corner in corners:
            total[corner] += area * naive_normal(surface, face)
    return total / np.linalg.norm(total, axis=1, keepdims=True)


@pytest.mark.parametrize("camera", CAMERAS)
def test_planes_are_exact(camera: Camera) -> None:
    mesh = coarse_mesh()
    surface = Surface.from_unknown(mesh, plane_unknown(camera, mesh.vertices), camera, SHAPE)
    centres = pixel_centres(SHAPE)
    expected = camera.depth(camera.points(centres, plane_unknown(camera, centres)))
    np.testing.assert_allclose(surface.depth_map(), expected, rtol=0, atol=1e-9)
    normal = np.array([-0.3, 0.5, 1]) if isinstance(camera, Orthographic) else np.array([-0.2, 0.3, 1])
    normal = normal / np.linalg.norm(normal)
    np.testing.assert_allclose(surface.face_normals, np.tile(normal, (len(surface.faces), 1)), atol=1e-9)
    np.testing.assert_allclose(surface.vertex_normals, np.tile(normal, (len(surface.vertices), 1)), atol=1e-9)
    np.testing.assert_allclose(surface.normal_map(), np.broadcast_to(normal, (*SHAPE, 3)), atol=1e-7)


@pytest.mark.parametrize("camera", CAMERAS)
@pytest.mark.parametrize("shape", [SHAPE, (48, 64), (11, 17)])
def test_maps_agree_with_their_twins(camera: Camera, shape: tuple[int, int]) -> None:
    mesh = coarse_mesh()
    mesh = ScreenMesh(mesh.vertices, mesh.faces[5:])
    surface = Surface.from_unknown(mesh, cap_unknown(camera, mesh.vertices), camera, SHAPE)
    scale = np.array([shape[1] / SHAPE[1], shape[0] / SHAPE[0]])
    owners = pixel_faces(ScreenMesh(mesh.vertices * scale, mesh.faces), shape)
    depth = np.full(shape, np.nan)
    normals = np.zeros((*shape, 3))
    for i, j in zip(*np.nonzero(owners >= 0), strict=True):
        depth[i, j] = naive_depth(surface, owners[i, j], (j + 0.5) / scale[0], (i + 0.5) / scale[1])
        normals[i, j] = naive_normal(surface, owners[i, j])
    assert np.isnan(depth).any()
    np.testing.assert_allclose(surface.depth_map(shape), depth, rtol=1e-12)
    np.testing.assert_allclose(surface.normal_map(shape), normals, atol=1e-7)
    assert surface.normal_map(shape).dtype == np.float32


@pytest.mark.parametrize("camera", CAMERAS)
def test_normals_face_the_viewer_and_are_weighted_by_area(camera: Camera) -> None:
    mesh = coarse_mesh()
    surface = Surface.from_unknown(mesh, cap_unknown(camera, mesh.vertices), camera, SHAPE)
    rays = camera.towards_viewer * camera.rays(surface.screen[:, 0], surface.screen[:, 1])
    assert np.all(np.sum(surface.face_normals * rays[surface.faces[:, 0]], axis=1) > 0)
    np.testing.assert_allclose(surface.vertex_normals, naive_vertex_normals(surface), atol=1e-12)


def test_normals_of_vertices_without_faces_point_to_the_viewer() -> None:
    screen = np.array([[0, 0], [0, 4], [4, 4], [30, 8]], float)
    camera = Perspective(fx=10, fy=10, cx=2, cy=2)
    surface = Surface.from_unknown(ScreenMesh(screen, np.array([[0, 1, 2]], np.int32)), np.zeros(4), camera, SHAPE)
    ray = camera.rays(30, 8)
    np.testing.assert_allclose(surface.vertex_normals[3], -ray / np.linalg.norm(ray))


def test_pixels_between_components_are_empty() -> None:
    screen = np.array([[10, 0], [10, 8], [20, 8], [0, 0], [0, 8], [8, 8]], float)
    faces = np.array([[3, 4, 5], [0, 1, 2]], np.int32)
    surface = Surface.from_unknown(ScreenMesh(screen, faces), np.ones(6), Orthographic(), (10, 20))
    assert surface.components.tolist() == [0, 0, 0, 1, 1, 1]
    depth = surface.depth_map()
    assert np.isnan(depth[:, 8:10]).all()
    assert np.isnan(depth[8:]).all()
    assert depth[7, 1] == depth[7, 11] == 1
    assert not surface.normal_map()[np.isnan(depth)].any()


def test_components_that_are_given_are_kept() -> None:
    surface = Surface(**{**TRIANGLE, "components": [1, 1, 1]})
    assert surface.components.dtype == np.int32
    assert surface.components.tolist() == [1, 1, 1]


def test_texture_coordinates_count_from_the_bottom_left() -> None:
    surface = Surface(**{**TRIANGLE, "screen": [[0, 0], [0, 10], [20, 10]], "shape": (10, 20)})
    np.testing.assert_array_equal(surface.texture_coordinates, [[0, 1], [0, 0], [1, 0]])


def test_arrays_are_copies() -> None:
    vertices = np.array(TRIANGLE["vertices"], float)
    surface = Surface(**{**TRIANGLE, "vertices": vertices})
    vertices[:] = 5
    assert surface.vertices[0, 0] == 0


def test_what_depends_on_arrays_follows_them() -> None:
    surface = Surface(**TRIANGLE)
    asked = surface.face_normals, surface.vertex_normals, surface.depth_map(), surface.mesh
    surface.vertices[:, 2] = [0, 0, 3]
    surface.screen[:] += 0.25
    changed = Surface(surface.vertices, surface.faces, surface.screen, surface.camera, surface.shape)
    for name in ("face_normals", "vertex_normals", "texture_coordinates"):
        np.testing.assert_array_equal(getattr(surface, name), getattr(changed, name))
    np.testing.assert_array_equal(surface.depth_map(), changed.depth_map())
    np.testing.assert_array_equal(surface.mesh.vertices, changed.screen)
    assert np.all(asked[0] == [0, 0, 1])
    asked[0][:] = 7  # of no consequence
    np.testing.assert_array_equal(surface.normal_map(), changed.normal_map())


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("faces", 3, "faces name vertices 3 to 3, but there are 3"),
        ("vertices", np.nan, "vertices must be finite"),
        ("components", 3, "components must be numbers from 0 to 2, .* not 3 to 3"),
        ("components", -1, "components must be numbers from 0 to 2"),
    ],
)
def test_what_was_written_is_checked_before_it_is_used(tmp_path, name, value, message) -> None:
    surface = Surface(**TRIANGLE)
    getattr(surface, name)[:] = value
    for use in (
        lambda: surface.face_normals,
        lambda: surface.vertex_normals,
        lambda: surface.save(tmp_path / "s.ply"),
        surface.depth_map,
        lambda: surface.exaggerated(2.0),
        lambda: surface.flattened("plane"),
        lambda: surface.solid(1),
        lambda: surface.uncertainty(1.0),
        lambda: surface.height_difference(0, 1, 1.0),
    ):
        with pytest.raises(NormalMeshError, match=message):
            use()


def test_it_reads_well() -> None:
    assert repr(Surface(**TRIANGLE)) == "Surface(3 vertices, 1 faces, orthographic, in px)"


TRIANGLE = {
    "vertices": [[0, 0, 0], [0, -4, 0], [4, -4, 0]],
    "faces": [[0, 1, 2]],
    "screen": [[0, 0], [0, 4], [4, 4]],
    "camera": Orthographic(),
    "shape": (4, 4),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vertices": [[0, 0], [0, 1], [1, 1]]}, r"vertices must have the shape \(N, 3\), not 3×2"),
        ({"vertices": [[0, 0, np.nan], [0, 0, 0], [0, 0, 0]]}, "vertices must be finite"),
        ({"screen": [[0, np.inf], [0, 0], [0, 0]]}, "screen must be finite"),
        ({"screen": [[0, 0]]}, "screen has 1 positions but there are 3 vertices"),
        ({"faces": [[0, 1, 3]]}, "faces name vertices 0 to 3, but there are 3"),
        ({"faces": [[0, 1, -1]]}, "faces name vertices -1 to 1"),
        ({"faces": [[0.0, 1.0, 2.0]]}, "faces must be integers"),
        ({"faces": np.zeros((0, 3), int)}, "at least one"),
        ({"camera": None}, "camera must be"),
        ({"camera": Perspective(1, 1, 0, 0)}, "depths of the vertices must be positive"),
        ({"shape": (4, 0)}, "shape must be"),
        ({"shape": 4}, "shape must be"),
        ({"units": 3}, "units must be"),
        ({"components": [0, 1, 9]}, "components must be numbers from 0 to 2"),
        ({"components": [0, 1]}, "components must be one number for each of the 3 vertices"),
    ],
)
def test_bad_input_is_refused(changes: dict, message: str) -> None:
    with pytest.raises(NormalMeshError, match=message):
        Surface(**{**TRIANGLE, **changes})


def test_unknown_must_fit_the_mesh() -> None:
    with pytest.raises(NormalMeshError, match="unknown must be one number for each of the"):
        Surface.from_unknown(coarse_mesh(), np.zeros(3), Orthographic(), SHAPE)
