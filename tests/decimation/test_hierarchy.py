"""The hierarchy of right triangles against sums over half pixels, and its meshes on any mask."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from meshes import bumpy_map, disc
from normalmesh import NormalMap, Orthographic, Perspective, ScreenMesh, decimate, evaluate, integrate
from normalmesh.decimation._hierarchy import MIN_COSINE
from normalmesh.decimation.decimation_options import DecimationOptions
from normalmesh.decimation.hierarchy import BLOCK, PERIOD, Hierarchy, Region
from normalmesh.decimation.near_cells import NearCells
from normalmesh.decimation.quadrics import Pixels
from normalmesh.decimation.start_mesh import KeptCorners, start_mesh
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.mesh.cut_mesh import edge_ends
from normalmesh.mesh.raster import pixel_faces
from thread_counts import on_one_and_on_several


def naive_error(corners, normal_map):
    """Return the mean normal of a triangle (3, 2), corners as row and column, and its cost, from its half pixels."""
    a, b, c = np.array(corners, float)
    side = np.linalg.inv(np.stack([b - a, c - a], axis=1))
    normals = []
    for i in range(int(min(a[0], b[0], c[0])), int(max(a[0], b[0], c[0]))):
        for j in range(int(min(a[1], b[1], c[1])), int(max(a[1], b[1], c[1]))):
            for quarter in ((0.5, 0.2), (0.5, 0.8), (0.2, 0.5), (0.8, 0.5)):
                s, t = side @ (np.array([i, j]) + quarter - a)
                if s > 0 and t > 0 and s + t < 1:
                    if not (0 <= i < normal_map.shape[0] and 0 <= j < normal_map.shape[1] and normal_map.mask[i, j]):
                        return np.inf
                    normals.append(normal_map.normals[i, j].astype(float))
    mean = np.mean(normals, axis=0)
    deviation = np.mean(np.sum((normals - mean) ** 2, axis=1))
    size = len(normals) / 4
    return mean, deviation * size**2 / 9


def naive_cost(corners, square, side, normal_map):
    """Return the cost of a triangle with the tilt of the square around a middle (row, column)."""
    found = naive_error(corners, normal_map)
    if found is np.inf:
        return np.inf
    i, j = square[0] - side // 2, square[1] - side // 2
    mean = normal_map.normals[i : i + side, j : j + side].reshape(-1, 3).astype(float).mean(axis=0)
    ray = normal_map.camera.rays(square[1], square[0]) * normal_map.camera.towards_viewer
    cosine = max(mean @ ray / np.linalg.norm(ray) / np.linalg.norm(mean), MIN_COSINE)
    return found[1] / cosine**2


def naive_errors(normal_map):
    """Return the errors of all pixel corners, from the children that each one needs."""
    rows, columns = normal_map.shape
    errors = np.full((rows + 1, columns + 1), np.inf)

    def at(i, j):
        return errors[i, j] if 0 <= i <= rows and 0 <= j <= columns else np.inf

    half = 1
    while half < BLOCK:
        for i in range(rows + 1):
            for j in range(columns + 1):
                if (i // half % 2) + (j // half % 2) == 1 and i % half == j % half == 0:
                    errors[i, j] = max(
                        [side_cost(i, j, half, way, normal_map) for way in (-1, 1)]
                        + [at(i + s * half // 2, j + t * half // 2) for s in (-1, 1) for t in (-1, 1) if half > 1]
                    )
        for i in range(half, rows + 1, 2 * half):
            for j in range(half, columns + 1, 2 * half):
                nw, ne, sw, se = [(i + s * half, j + t * half) for s in (-1, 1) for t in (-1, 1)]
                # The diagonal goes through the corner both of whose coordinates are odd multiples of the side.
                falling = (i // half // 2 + j // half // 2) % 2 == 0
                parts = [(nw, se, ne), (nw, sw, se)] if falling else [(nw, sw, ne), (sw, se, ne)]
                errors[i, j] = max(
                    [naive_cost(part, (i, j), 2 * half, normal_map) for part in parts]
                    + [at(i + half, j), at(i - half, j), at(i, j + half), at(i, j - half)]
                )
        half *= 2
    return errors


def side_cost(i, j, half, way, normal_map):
    """Return the cost of the triangle over the side whose middle is (i, j), on one side of it."""
    if i // half % 2 == 0:
        middle = (i + way * half, j)
        return naive_cost([middle, (i, j - half), (i, j + half)], middle, 2 * half, normal_map)
    middle = (i, j + way * half)
    return naive_cost([middle, (i - half, j), (i + half, j)], middle, 2 * half, normal_map)


@pytest.mark.parametrize("camera", [Orthographic(), Perspective(30, 30, 9, 8)])
def test_errors_equal_those_of_half_pixels(camera):
    mask = disc(20, 11.0)[:, :18]
    mask[4, 5] = False
    normal_map = bumpy_map((20, 18), mask=mask, camera=camera)
    found = Hierarchy.of(normal_map)
    top, left = found.corner
    height, width = found.errors.shape
    # The hierarchy begins where the foreground does.
    inner = NormalMap(
        normal_map.normals[top : top + height - 1, left : left + width - 1],
        normal_map.mask[top : top + height - 1, left : left + width - 1],
        camera if isinstance(camera, Orthographic) else Perspective(30, 30, 9 - left, 8 - top),
    )
    expected = naive_errors(inner)
    finite = np.isfinite(expected)
    assert np.array_equal(np.isfinite(found.errors), finite)
    assert finite.sum() > 60
    assert np.allclose(found.errors[finite], expected[finite], rtol=1e-4, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(arrays(np.bool_, st.tuples(st.integers(1, 24), st.integers(1, 24))), st.integers(0, 9), st.floats(0, 1))
def test_meshes_of_any_mask_are_valid(mask, seed, share):
    if not mask.any():
        mask[0, 0] = True
    mask = np.kron(mask, np.ones((3, 3), bool))
    normal_map = bumpy_map(mask.shape, seed, mask)
    full = ScreenMesh.from_mask(mask)
    hierarchy = Hierarchy.of(normal_map)
    mesh = hierarchy.mesh(hierarchy.level(int(share * len(full.vertices))))
    check, whole = mesh.check(), full.check()
    assert check.problems == ()
    assert check.components == whole.components
    assert sorted(check.holes) == sorted(whole.holes)
    assert np.array_equal(pixel_faces(mesh, mask.shape) >= 0, mask)


def test_a_level_leaves_as_many_corners_as_asked_for():
    normal_map = Medallion(200).normal_map
    hierarchy = Hierarchy.of(normal_map)
    for wanted in (300, 2000, 8000):
        level = hierarchy.level(wanted)
        left = np.count_nonzero(np.isfinite(hierarchy.errors) & (hierarchy.errors > level))
        assert 0.85 * wanted < left <= wanted
        kept = hierarchy.errors > level
        columns, rows = hierarchy.mesh(level).vertices.astype(int).T
        assert kept[rows - hierarchy.corner[0], columns - hierarchy.corner[1]].all()


def test_regularisation_costs_the_same_everywhere_on_a_plane():
    """λ · side⁴ / 36 for the halves of a square seen from the front: its middle costs that."""
    plane = NormalMap(np.tile(np.float32([0, 0, 1]), (64, 64, 1)))
    errors = Hierarchy.of(plane, regularisation=1e-3).errors
    for side in (2, 4, 8, 16):
        assert errors[16 + side // 2, 16 + side // 2] == pytest.approx(1e-3 * side**4 / 36, rel=1e-5)
    without = Hierarchy.of(plane).errors
    assert np.all(without[np.isfinite(errors)] == 0)


def test_the_outline_and_locked_pixels_stay_whole():
    normal_map = bumpy_map((70, 70), mask=disc(70, 30.0), height=0.1)
    locked = np.zeros((70, 70), bool)
    locked[20:24, 30:41] = True
    mesh = Hierarchy.of(normal_map, locked).mesh(np.inf)
    around = ScreenMesh.from_mask(normal_map.mask)
    outline = around.vertices[edge_ends(around, np.flatnonzero(around.opposite < 0)).ravel()]
    there = set(map(tuple, mesh.vertices.tolist()))
    assert set(map(tuple, outline.tolist())) - there == set()
    assert {(float(u), float(v)) for u in range(30, 42) for v in range(20, 25)} <= there
    assert len(mesh.vertices) < len(around.vertices) / 2


def test_flat_maps_become_large_triangles_at_any_size():
    normals = np.broadcast_to(np.array([0.0, 0.0, 1.0]), (300, 200, 3))
    mesh = Hierarchy.of(NormalMap(normals)).mesh(0.0)
    assert mesh.check().problems == ()
    assert mesh.areas.max() == BLOCK**2 / 2


def test_same_mesh_for_any_number_of_threads():
    normal_map = Medallion(300).normal_map

    def mesh():
        hierarchy = Hierarchy.of(normal_map)
        return hierarchy.mesh(hierarchy.level(3000))

    alone, together = on_one_and_on_several(mesh)
    assert np.array_equal(alone.vertices, together.vertices)
    assert np.array_equal(alone.faces, together.faces)


def test_the_histogram_counts_each_corner_once():
    hierarchy = Hierarchy.of(Medallion(600).normal_map)
    bins = hierarchy.errors.ravel().view(np.int32) >> 19
    for histogram in on_one_and_on_several(hierarchy.histogram):
        assert np.array_equal(histogram, np.bincount(bins, minlength=len(histogram)))


def test_an_adaptive_start_is_no_less_accurate_than_all_pixels():
    truth = Medallion(256)
    errors = {}
    for start in ("pixels", "adaptive"):
        mesh = decimate(truth.normal_map, compression=0.98, rounds=1, passes=0, start=start)
        errors[start] = evaluate(integrate(mesh, truth.normal_map, refine=2), truth.normal_map, truth.height)
        assert mesh.report.target_met
    # Its rim is smooth, which takes some angle.
    assert errors["adaptive"].mae < 1.02 * errors["pixels"].mae
    assert errors["adaptive"].rmse < 1.05 * errors["pixels"].rmse


def is_coarse(normal_map, target=0, limit=np.inf, start="adaptive"):
    options = DecimationOptions(start=start)
    mesh, coarse = start_mesh(Pixels(normal_map), options, target, limit, KeptCorners(None, None), None)
    assert coarse == (len(mesh.vertices) < len(ScreenMesh.from_mask(normal_map.mask).vertices))
    return coarse


def test_what_is_small_sparse_or_wanted_fine_starts_from_all_pixels():
    normal_map = bumpy_map((300, 300))
    assert is_coarse(normal_map, target=500)
    assert is_coarse(normal_map, limit=10.0)
    assert not is_coarse(normal_map, target=500, start="pixels")
    assert not is_coarse(normal_map, target=10_000)
    assert not is_coarse(normal_map, limit=1e-9)
    assert not is_coarse(bumpy_map((200, 200)), target=500)
    two = np.zeros((256, 2200), bool)
    two[:, :132] = two[:, -132:] = True
    assert not is_coarse(bumpy_map(two.shape, mask=two), target=500)


def test_locked_pixels_of_a_coarse_start_stay():
    normal_map = bumpy_map((300, 300), height=0.5)
    locked = np.zeros(normal_map.shape, bool)
    locked[100:110, 200:230] = True
    mesh = decimate(normal_map, vertices=1500, locked=locked)
    assert mesh.report.rounds[0].collapses < 300 * 300 / 2
    assert len(mesh.vertices) == 1500
    there = set(map(tuple, mesh.vertices[mesh.locked].tolist()))
    assert there == {(float(u), float(v)) for u in range(200, 231) for v in range(100, 111)}
    assert mesh.check().problems == ()


@settings(max_examples=40, deadline=None)
@given(arrays(np.bool_, st.tuples(st.integers(1, 24), st.integers(1, 24))), st.integers(0, 999))
def test_mixed_meshes_of_any_mask_are_valid(mask, seed):
    """They cover each foreground pixel once, and have no gaps where fine and coarse parts meet."""
    if not mask.any():
        mask[0, 0] = True
    mask = np.kron(mask, np.ones((4, 4), bool))
    rng = np.random.default_rng(seed)
    hierarchy = Hierarchy.of(bumpy_map(mask.shape, seed, mask))
    near = NearCells.of(rng.random((2, 2)) * mask.shape[::-1], 8.0, mask.shape)
    finite = hierarchy.errors[np.isfinite(hierarchy.errors)]
    fine, coarse = (float(np.quantile(finite, q)) if finite.size else 0.0 for q in (0.2, 0.9))
    mesh = hierarchy.mixed_mesh(near, fine, coarse)
    check, whole = mesh.check(), ScreenMesh.from_mask(mask).check()
    assert check.problems == ()
    assert check.components == whole.components
    assert sorted(check.holes) == sorted(whole.holes)
    assert mesh.areas.sum() == np.count_nonzero(mask)
    assert np.array_equal(pixel_faces(mesh, mask.shape) >= 0, mask)


@pytest.mark.parametrize("corner", [(0, 0), (5, 3)])
def test_mixed_meshes_are_fine_near_points_and_coarse_elsewhere(corner):
    mask = np.zeros((256, 250), bool)
    mask[corner[0] :, corner[1] :] = True
    normal_map = bumpy_map(mask.shape, mask=mask, height=2.0)
    hierarchy = Hierarchy.of(normal_map)
    fine, coarse = hierarchy.level(20_000), hierarchy.level(500)
    near = NearCells.of(np.array([[70.0, 180.0], [75.0, 190.0]]), 24.0, mask.shape)
    mixed, all_fine, all_coarse = hierarchy.mixed_mesh(near, fine, coarse), hierarchy.mesh(fine), hierarchy.mesh(coarse)
    vertices, finest, coarsest = (set(map(tuple, each.vertices.tolist())) for each in (mixed, all_fine, all_coarse))
    inside = {place for place, there in zip(finest, near.at(np.array(list(finest))), strict=True) if there}
    assert len(inside) > 200
    assert inside <= vertices
    assert coarsest <= vertices <= finest
    # What is beyond the near cells belongs to corners that finer ones need.
    more = np.array(list(vertices - coarsest - inside))
    assert len(more) < 0.3 * len(inside)
    far = np.hypot(more[:, 0] - 72, more[:, 1] - 185) > 24 + 2 * BLOCK
    assert not far.any()
    # The mesh of one level, if it is the same everywhere.
    for level, expected in ((fine, all_fine), (coarse, all_coarse)):
        found = hierarchy.mixed_mesh(near, level, level)
        assert np.array_equal(found.vertices, expected.vertices)
        assert np.array_equal(found.faces, expected.faces)


@pytest.mark.parametrize("camera", [Orthographic(), Perspective(700.0, 700.0, 170.0, 190.0)])
def test_a_window_with_a_halo_has_the_errors_and_the_mesh_of_the_whole(camera):
    whole = bumpy_map((400, 400), mask=disc(400, 190.0), camera=camera)
    hierarchy = Hierarchy.of(whole)
    top, left = hierarchy.corner
    height, width = (length - 1 for length in hierarchy.errors.shape)
    level = hierarchy.level(2000)
    side, counts, faces = PERIOD, 0, 0
    for row in range(0, height, side):
        for column in range(0, width, side):
            first, end = (max(row - PERIOD, 0), max(column - PERIOD, 0)), (row + 2 * side, column + 2 * side)
            rows = slice(top + first[0], top + min(end[0], height))
            columns = slice(left + first[1], left + min(end[1], width))
            # Normals that were cleaned already must not be cleaned again, which would round them.
            window = copy(whole)
            object.__setattr__(window, "normals", np.ascontiguousarray(whole.normals[rows, columns]))
            object.__setattr__(window, "mask", np.ascontiguousarray(whole.mask[rows, columns]))
            size = rows.stop - rows.start, columns.stop - columns.start
            region = Region(0, 0, *size, (rows.start, columns.start), whole.camera)
            own = slice(row - first[0], min(row + side, height) - first[0])
            own_columns = slice(column - first[1], min(column + side, width) - first[1])
            part = Hierarchy.of(window, region=region).part(own, own_columns)
            expected = hierarchy.errors[row : row + side + 1, column : column + side + 1]
            np.testing.assert_array_equal(part.errors, expected)
            last = row + side >= height, column + side >= width
            counts = counts + part.histogram(None if last[0] else -1, None if last[1] else -1)
            faces += len(part.mesh(level).faces)
    np.testing.assert_array_equal(counts, hierarchy.histogram())
    assert faces == len(hierarchy.mesh(level).faces)
