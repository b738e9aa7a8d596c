"""Make small meshes and normal maps to test kernels on."""

from __future__ import annotations

import numpy as np
from scipy import ndimage
from scipy.spatial import Delaunay

from normalmesh import NormalMap, Orthographic, ScreenMesh
from normalmesh.decimation.collapse import collapse
from normalmesh.decimation.quadrics import FaceRecords, Pixels
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.mesh.screen_mesh import corner_table


def bumpy_map(shape=(24, 26), seed=0, mask=None, camera=None, height=3.0):
    """Return a normal map of smooth random normals; ``height`` scales their slopes, which are not grazing."""
    rng = np.random.default_rng(seed)
    # The filter hardly lowers the slopes of images of a few pixels.
    slopes = np.clip(ndimage.gaussian_filter(rng.normal(size=(2, *shape)), (0, 2, 2)) * height, -2.5, 2.5)
    normals = np.stack([slopes[0], slopes[1], np.ones(shape)], axis=-1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    return NormalMap(normals, np.ones(shape, bool) if mask is None else mask, camera or Orthographic())


def disc(size=60, radius=25.0):
    """Return the mask (size, size) of a disc in the middle of the image."""
    return np.hypot(*(np.indices((size, size)) + 0.5 - size / 2)) < radius


def start_mesh(normal_map, locked=None):
    """Return the closed mesh of two triangles for each pixel."""
    return ClosedMesh.from_screen(ScreenMesh.from_mask(normal_map.mask), normal_map.shape, locked)


def coarse_mesh(normal_map, vertices):
    """Return a collapsed mesh, the pixels of its normal map and the records of its faces."""
    mesh = start_mesh(normal_map)
    pixels = Pixels(normal_map)
    collapse(mesh, pixels, target=vertices)
    records = FaceRecords(mesh)
    records.renew(mesh, pixels)
    return mesh, pixels, records


def point_mesh(shape, count, seed=0):
    """Return a Delaunay mesh of the four corners of a rectangle and random points inside."""
    rng = np.random.default_rng(seed)
    size = np.array(shape[::-1], float)
    corners = np.array([[0, 0], [1, 0], [0, 1], [1, 1]]) * size
    points = np.concatenate([corners, rng.uniform(0.02, 0.98, (count, 2)) * size])
    faces = Delaunay(points).simplices.astype(np.int32)
    a, b, c = (points[faces[:, k]] for k in range(3))
    clockwise = (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0]) < (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1])
    faces[clockwise] = faces[clockwise][:, ::-1]
    return ScreenMesh(points, faces)


def two_faces(shape):
    """Return a rectangle of two faces."""
    rows, columns = shape
    points = np.array([[0, 0], [0, rows], [columns, rows], [columns, 0]], float)
    return ScreenMesh(points, np.array([[0, 1, 2], [0, 2, 3]], np.int32))


def triangles(vertices, faces, shape=(8, 8)):
    """Return the closed mesh of the given triangles, each reordered to be counter-clockwise."""
    points = np.array(vertices, float)
    upright = []
    for a, b, c in faces:
        area = (points[b, 1] - points[a, 1]) * (points[c, 0] - points[a, 0]) - (points[b, 0] - points[a, 0]) * (
            points[c, 1] - points[a, 1]
        )
        upright.append((a, b, c) if area > 0 else (a, c, b))
    return ClosedMesh.from_screen(ScreenMesh(points, np.array(upright, np.int32)), shape)


def assert_consistent(mesh):
    """Check that the corner table is the one that the faces define, and that every vertex refers to its own corner."""
    alive = np.flatnonzero(mesh.faces[:, 0] >= 0)
    expected, non_manifold, misoriented = corner_table(mesh.faces[alive], mesh.ghost + 1)
    assert non_manifold == misoriented == 0
    corners = (3 * alive[:, None] + np.arange(3)).ravel()
    assert np.array_equal(mesh.opposite[corners], corners[expected])
    used = np.unique(mesh.faces[alive])
    assert np.array_equal(np.flatnonzero(mesh.corner_of[:-1] >= 0), used[used != mesh.ghost])
    for vertex in used:
        corner = mesh.corner_of[vertex]
        assert mesh.faces[corner // 3, 0] >= 0
        assert mesh.faces[corner // 3, corner % 3] == vertex
