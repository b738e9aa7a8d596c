"""How far faces deviate from the surface, against surfaces that are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

import normalmesh as nm
from normalmesh.integration import mesh_deviation
from normalmesh.integration.mesh_deviation import UNEVEN, face_variances, mesh_deviations
from normalmesh.mesh.raster import pixel_faces
from normalmesh.mesh.screen_mesh import ScreenMesh

SHAPE = 160, 160


def deviations(mesh, unknown, normal_map, noise):
    return mesh_deviations(mesh, *face_variances(mesh, unknown, normal_map, noise))


def _map(slope_u: np.ndarray, slope_v: np.ndarray, degrees: float = 0.0) -> nm.NormalMap:
    """Return the map of a height with these slopes (H, W) along u and v."""
    normals = np.stack([-slope_u, slope_v, np.ones(SHAPE)], axis=-1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    noise = math.radians(degrees) * np.random.default_rng(0).normal(size=normals.shape)
    normals += noise - (noise * normals).sum(axis=-1, keepdims=True) * normals
    return nm.NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True))


def _grid(side: int) -> ScreenMesh:
    """Return a mesh of squares, two faces each."""
    count = SHAPE[0] // side
    v, u = np.divmod(np.arange((count + 1) ** 2), count + 1)
    corner = (np.arange(count)[:, None] * (count + 1) + np.arange(count)).ravel()
    below = corner + count + 1
    faces = np.concatenate([np.stack([corner, below, corner + 1], 1), np.stack([below, below + 1, corner + 1], 1)])
    return ScreenMesh(side * np.stack([u, v], axis=1).astype(np.float64), faces.astype(np.int32))


def _noise(mesh: ScreenMesh, degrees: float) -> np.ndarray:
    return np.tile([math.radians(degrees) ** 2, 1.0], (len(mesh.faces), 1))


@pytest.mark.parametrize("form", [((0.01, 0.0), (0.0, 0.01)), ((0.01, 0.0), (0.0, 0.0)), ((0.0, 0.01), (0.01, 0.004))])
def test_curvature_is_the_deviation_from_the_best_plane(form):
    form, side = np.array(form), 40
    v, u = np.mgrid[: SHAPE[0], : SHAPE[1]] + 0.5
    mesh = _grid(side)
    height = 0.5 * (form[0, 0] * u**2 + 2 * form[0, 1] * u * v + form[1, 1] * v**2)
    face = 3
    row, column = np.nonzero(pixel_faces(mesh, SHAPE) == face)
    design = np.stack([np.ones(len(row)), column, row], axis=1)
    best = np.linalg.lstsq(design, height[row, column], rcond=None)
    expected = (height[row, column] - design @ best[0]).std()
    # The plane of this face has the mean slopes of its pixels.
    plane = mesh.vertices @ (form @ np.array([column.mean() + 0.5, row.mean() + 0.5]))
    slopes = (form[i, 0] * u + form[i, 1] * v for i in range(2))
    faces, _ = deviations(mesh, plane, _map(*slopes), _noise(mesh, 0.0))
    assert faces[face] == pytest.approx(math.sqrt(UNEVEN) * expected, rel=0.03)


def test_tilt_is_the_deviation_of_a_wrong_plane():
    mesh = _grid(16)
    zero = np.zeros(SHAPE)
    faces, _ = deviations(mesh, 0.1 * mesh.vertices[:, 0], _map(zero, zero), _noise(mesh, 0.0))
    # Of a coordinate that grows from 0 to 16 over a right triangle, the variance is 16² / 18.
    np.testing.assert_allclose(faces, 0.1 * 16 / math.sqrt(18), rtol=1e-4)


def test_deviations_are_those_of_the_definition():
    random, side, variance, shared = np.random.default_rng(4), 10, math.radians(1.5) ** 2, 2.0
    v, u = np.mgrid[: SHAPE[0], : SHAPE[1]] + 0.5
    slopes = np.stack([0.3 + 0.3 * np.sin(u / 5), 0.2 * np.cos(v / 6) * np.sin(u / 4)], axis=-1)
    slopes += random.normal(size=slopes.shape) * np.where(u > 80, 0.09, 0.02)[..., None]
    mesh = _grid(side)
    heights = random.normal(size=len(mesh.vertices))
    owners = pixel_faces(mesh, SHAPE)
    noise = np.tile([variance, shared], (len(mesh.faces), 1))
    faces, vertices = deviations(mesh, heights, _map(*np.moveaxis(slopes, -1, 0)), noise)
    parts = []
    for face, corners in enumerate(mesh.faces):
        inside = owners == face
        places = np.stack([u[inside], v[inside]], axis=1)
        plane = np.linalg.solve(np.c_[mesh.vertices[corners], np.ones(3)], heights[corners])[:2]
        parts.append(_defined(places, slopes[inside], plane, mesh.vertices[corners], variance, shared))
    whole, curved = np.array(parts).T
    np.testing.assert_allclose(faces, np.sqrt(np.maximum(whole, 0)), rtol=2e-3, atol=1e-4)
    around = [(mesh.faces == vertex).any(axis=1) for vertex in range(len(mesh.vertices))]
    expected = np.array([(whole + 7.0 * curved)[which].mean() for which in around])
    np.testing.assert_allclose(vertices, np.sqrt(np.maximum(expected, 0)), rtol=2e-3, atol=1e-4)


def _defined(places, slopes, plane, corners, variance, shared):
    """Return the variance over a face, and its part of curvature, as the module and its constants define them."""
    count, mean = len(places), slopes.mean(axis=0)
    p, q = slopes.T
    of_pixel = variance * np.mean(
        (1 + p**2 + q**2) * np.array([[1 + p**2, p * q], [p * q, 1 + q**2]]), axis=-1
    )  # of slopes, for noise on the normals
    of_mean = of_pixel * shared / count
    aside = places - places.mean(axis=0)
    mixed, spread = (slopes - mean).T @ aside / count, aside.T @ aside / count
    curved = 0.24 * np.trace(mixed @ mixed) + 0.03 * np.trace(mixed) ** 2 - 0.27 * np.trace(of_mean @ spread)
    area = abs(np.linalg.det(np.c_[corners, np.ones(3)])) / 2
    over = (corners - corners.mean(axis=0)).T @ (corners - corners.mean(axis=0)) / 12
    tilt = (mean - plane) @ over @ (mean - plane) - 0.75 * np.trace(of_mean @ over)
    fit = np.c_[np.ones(count), places]
    left = slopes - fit @ np.linalg.lstsq(fit, slopes, rcond=None)[0]
    by_noise = max(1.2 * np.trace(of_pixel) - 3 * np.trace(of_mean), 0)
    by_chance = 2 * math.sqrt(2 * np.trace(of_pixel @ of_mean))
    detail = max((left**2).sum() / count - by_noise - by_chance, 0)
    return 1.6 * curved + tilt + 0.03 * area * detail, curved


def test_blocks_of_faces_do_not_show(monkeypatch):
    v, u = np.mgrid[: SHAPE[0], : SHAPE[1]] + 0.5
    mesh, normal_map = _grid(10), _map(0.3 * np.sin(u / 5), 0.2 * np.cos(v / 6))
    given = mesh, np.sin(np.arange(len(mesh.vertices))), normal_map, np.tile([1e-4, 2.0], (len(mesh.faces), 1))
    whole = deviations(*given)
    monkeypatch.setattr(mesh_deviation, "BLOCK", 7)
    for expected, found in zip(whole, deviations(*given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("side", [4, 16, 40])
def test_noise_is_no_deviation(side):
    mesh, degrees = _grid(side), 3.0
    slope = np.full(SHAPE, 0.8)
    surface = nm.integrate(mesh, _map(slope, 0 * slope, degrees), refine=0, discontinuities=False, noise=degrees)
    deviations = surface.integration.height_noise.face_deviations
    by_noise = surface.uncertainty(mesh=False)
    assert np.sqrt((deviations**2).mean()) < 0.5 * np.sqrt((by_noise**2).mean())


@pytest.mark.parametrize(("compression", "degrees"), [(0.98, 0.2), (0.98, 1.0), (0.95, 1.0)])
def test_errors_against_the_truth_are_as_large_as_expected(compression, degrees):
    v, u = np.mgrid[: SHAPE[0], : SHAPE[1]] + 0.5

    def truth(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return 8 * np.sin(u / 14) * np.cos(v / 19)

    normal_map = _map(8 / 14 * np.cos(u / 14) * np.cos(v / 19), -8 / 19 * np.sin(u / 14) * np.sin(v / 19), degrees)
    surface = nm.reconstruct(normal_map, compression=compression, noise=degrees, discontinuities=False)
    errors = surface.vertices[:, 2] - truth(*surface.screen.T)
    pixels = surface.depth_map() - truth(u, v)
    inner = ((surface.screen > 1) & (surface.screen < SHAPE[0] - 1)).all(axis=1)
    both = (errors - np.nanmean(pixels))[inner] / surface.uncertainty()[inner]
    assert np.sqrt((both**2).mean()) == pytest.approx(1, abs=0.35)
    random = np.random.default_rng(0)
    places = random.integers(2, SHAPE[0] - 2, (60, 2, 2))
    found = [surface.height_difference(a + 0.5, b + 0.5) for a, b in places]
    off = [each.value - (truth(*(a + 0.5)) - truth(*(b + 0.5))) for each, (a, b) in zip(found, places, strict=True)]
    scores = np.array(off) / [each.standard_deviation for each in found]
    assert np.sqrt((scores**2).mean()) == pytest.approx(1, abs=0.35)
    # Noise alone is not enough for few vertices.
    alone = np.array(off) / [each.noise for each in found]
    assert np.sqrt((alone**2).mean()) > 1.15 * np.sqrt((scores**2).mean())


def test_near_points_deviate_alike():
    v, u = np.mgrid[: SHAPE[0], : SHAPE[1]] + 0.5
    surface = nm.reconstruct(_map(np.sin(u / 9), 0 * v), compression=0.98, noise=0.0, discontinuities=False)
    place = np.array([80.5, 80.5])
    steps = (0.0, 0.1, 0.2, 60.0)
    none, near, further, far = (surface.height_difference(place, (80.5 + step, 80.5)).mesh for step in steps)
    assert none == 0
    assert further == pytest.approx(2 * near, rel=1e-3)
    # Over a face of area 1, heights of variance 0.043 have slopes of variance 0.5 along any direction.
    face = pixel_faces(surface.mesh, SHAPE)[80, 80]
    deviation = surface.integration.height_noise.face_deviations[face]
    assert near == pytest.approx(0.1 * deviation * math.sqrt(0.5 / 0.043 / surface.mesh.areas[face]), rel=1e-3)
    assert far > 5 * near
    # Relative deviations are at most those of both points.
    number = int(np.linalg.norm(surface.screen - place, axis=1).argmin())
    other = int(np.linalg.norm(surface.screen - (20, 20), axis=1).argmin())
    own = surface.uncertainty()
    assert surface.height_difference(number, other).mesh == pytest.approx(math.hypot(own[number], own[other]), rel=1e-4)
