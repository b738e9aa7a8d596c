"""Test the looks of surfaces: hand-made meshes of known figures, and a naive twin."""

from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest

import naive_looks
from meshes import bumpy_map, disc
from normalmesh import (
    NormalMap,
    NormalMeshError,
    Orthographic,
    Perspective,
    ScreenMesh,
    Surface,
    evaluate,
    integrate_pixels,
    measure_looks,
    reconstruct,
)
from normalmesh.mesh.cut_mesh import CutMesh, edge_ends
from scenes import scene

SIZE = 20


def flat_map(shape=(SIZE, SIZE)):
    normals = np.zeros((*shape, 3), np.float32)
    normals[..., 2] = 1
    return NormalMap(normals, np.ones(shape, bool), Orthographic())


def lifted(mesh, heights=None, shape=(SIZE, SIZE)):
    heights = np.zeros(len(mesh.vertices)) if heights is None else heights
    return Surface.from_unknown(mesh, heights, Orthographic(), shape)


def slit_mesh(line, first=1, last=None):
    """Return a square that is cut along a line of points from left to right, between the points ``first`` and ``last``.

    Each point has a vertex above it on the upper side of the square, and one below it.
    """
    line = np.array(line, float)
    count = len(line)
    above, below = line * [1, 0], line * [1, 0] + [0, SIZE]
    k = np.arange(count - 1)
    faces = [
        face
        for top, bottom in ((0, count), (count, 2 * count))
        for face in (
            np.stack([top + k, bottom + k, bottom + k + 1], axis=1),
            np.stack([top + k, bottom + k + 1, top + k + 1], axis=1),
        )
    ]
    mesh = ScreenMesh(np.concatenate([above, line, below]), np.concatenate(faces).astype(np.int32))
    assert mesh.check().ok
    ends = edge_ends(mesh, np.flatnonzero(mesh.opposite > np.arange(mesh.faces.size)))
    place = np.sort(ends, axis=1) - count
    last = count - 2 if last is None else last
    cut = (place[:, 0] >= first) & (place[:, 1] <= last) & (place[:, 1] < count)
    return CutMesh.along(mesh, ends[cut]).mesh


ZIGZAG = [(0, 10), (4, 9), (6, 11), (8, 9), (10, 11), (12, 9), (14, 11), (16, 9), (20, 10)]
STRAIGHT = [(u, 10) for u, _ in ZIGZAG]


def cuts_of(mesh):
    return measure_looks(lifted(mesh), flat_map())


class TestCuts:
    def test_a_zigzag_turns_by_right_angles(self):
        found = cuts_of(slit_mesh(ZIGZAG))
        length = 6 * np.hypot(2, 2)
        assert found.cut_length == found.cracks == pytest.approx(length)
        assert found.teeth == pytest.approx(90)
        assert found.turning == pytest.approx(5 * 90 / length)

    def test_a_straight_cut_has_no_teeth(self):
        found = cuts_of(slit_mesh(STRAIGHT))
        assert found.cut_length == pytest.approx(12)
        assert (found.teeth, found.turning) == (0, 0)

    def test_a_cut_may_end_at_the_outline(self):
        found = cuts_of(slit_mesh(STRAIGHT, first=0))
        assert found.cut_length == pytest.approx(16)
        assert found.teeth == 0

    def test_a_cut_may_cross_the_surface(self):
        assert cuts_of(slit_mesh(STRAIGHT, first=0, last=8)).cut_length == pytest.approx(20)

    def test_straight_vertices_lower_the_mean_but_not_the_turning(self):
        middles = [tuple(np.mean(pair, axis=0)) for pair in pairwise(ZIGZAG[1:-1])]
        finer = sorted([*ZIGZAG, *middles])
        coarse, fine = cuts_of(slit_mesh(ZIGZAG)), cuts_of(slit_mesh(finer))
        assert fine.turning == pytest.approx(coarse.turning)
        assert fine.teeth == pytest.approx(5 / 11 * 90)

    def test_the_outline_is_no_cut(self):
        found = cuts_of(slit_mesh(ZIGZAG, first=9))
        assert found.cut_length == 0
        assert np.isnan(found.teeth)
        assert np.isnan(found.turning)

    def test_the_outline_of_a_disc_with_few_vertices_is_no_cut(self):
        normal_map = bumpy_map((96, 96), mask=disc(96, 45.0))
        found = measure_looks(reconstruct(normal_map, vertices=20, discontinuities=False), normal_map)
        assert found.cut_length == 0

    def test_a_missing_face_is_a_cut(self):
        whole = slit_mesh(STRAIGHT, first=9)
        middle = whole.vertices[whole.faces].mean(axis=1)
        left_out = np.argmin(np.hypot(*(middle - [9, 7]).T))
        edges = np.roll(corners := whole.vertices[whole.faces[left_out]], 1, axis=0) - corners
        # Two of its edges have an end inside; the third runs from the outline to the middle, too.
        found = cuts_of(ScreenMesh(whole.vertices, np.delete(whole.faces, left_out, axis=0)))
        assert found.cut_length == pytest.approx(np.hypot(*edges.T).sum() / 2)


class TestFaces:
    def test_a_face_that_stands(self):
        """Half of the map is a plane that is inclined by 50° but looks flat; it is as large as 1 / cos 50°."""
        mesh = slit_mesh([(0, 10), (20, 10)], first=9)
        slope = np.tan(np.radians(50))
        surface = lifted(mesh, np.maximum(mesh.vertices[:, 1] - 10, 0) * slope)
        found = measure_looks(surface, flat_map())
        share = 100 / np.cos(np.radians(50)) / (1 + 1 / np.cos(np.radians(50)))
        assert found.bad_area == pytest.approx(share)
        assert found.off_30 == pytest.approx(share)
        assert found.off_60 == 0
        assert (found.inverted, found.needles) == (0, 0)

    def test_a_ghost_stands_where_the_map_is_smooth(self):
        """Half of a flat map stands at 50°; a strip of other normals on it, or a cut, leaves less to see as a ghost."""
        mesh = slit_mesh([(0, 10), (20, 10)], first=9)
        surface = lifted(mesh, np.maximum(mesh.vertices[:, 1] - 10, 0) * np.tan(np.radians(50)))
        found = measure_looks(surface, flat_map())
        assert found.off_30 > 0
        assert found.ghosts == pytest.approx(found.off_30)
        striped = flat_map().normals.copy()
        striped[18:] = [0, 0.8, 0.6]
        expected = naive_looks.ghosts(surface, NormalMap(striped, np.ones((SIZE, SIZE), bool), Orthographic()))
        part = measure_looks(surface, NormalMap(striped, np.ones((SIZE, SIZE), bool), Orthographic()))
        assert 0 < part.ghosts < part.off_30
        assert part.ghosts == pytest.approx(expected)
        noisy = bumpy_map((SIZE, SIZE), height=8.0)
        assert measure_looks(surface, noisy).ghosts == 0 < measure_looks(surface, noisy).off_30

    def test_gaps_are_as_large_as_the_step_seen_from_beside(self):
        """A step of 3 px along a cut of 12 px: a strip of 3 sin 30° × 12 is seen from one of four directions."""
        mesh = slit_mesh(STRAIGHT)
        low = np.zeros(len(mesh.vertices))
        low[np.unique(mesh.faces[mesh.vertices[mesh.faces][..., 1].mean(axis=1) > 10])] = -3.0
        ends = (mesh.vertices[:, 1] == 10) & np.isin(mesh.vertices[:, 0], [0, 4, 16, 20])
        low[ends] = 0
        found = measure_looks(lifted(mesh, low), flat_map())
        # Both ends of the cut are closed: there the step falls to nothing.
        assert found.gaps == pytest.approx(100 * 3 * 0.5 * (8 + 2 * 2 / 2) / 4 / SIZE**2)
        assert measure_looks(lifted(mesh), flat_map()).gaps == 0

    def test_faces_without_pixels_are_bad(self):
        mesh = slit_mesh([(0, 0.4), (20, 0.4)], first=9)
        found = measure_looks(lifted(mesh), flat_map())
        assert found.bad_area == pytest.approx(100 * 0.4 / 20)
        assert found.off_30 == found.off_60 == 0

    def test_a_needle(self):
        mesh = slit_mesh([(0, 0.1), (20, 0.1)], first=9)
        found = measure_looks(lifted(mesh), flat_map())
        assert found.needles == 2
        assert found.largest_aspect == pytest.approx((20**2 + 0.1**2) / (20 * 0.1))

    def test_a_degenerate_face_is_a_needle(self):
        mesh = ScreenMesh([[0, 0], [0, 20], [20, 20], [10, 20]], [[0, 1, 2], [1, 3, 2]])
        found = measure_looks(lifted(mesh), flat_map())
        assert (found.needles, found.inverted, found.largest_aspect) == (1, 0, np.inf)

    def test_an_inverted_face(self):
        mesh = slit_mesh([(0, 10), (10, 10), (20, 10)], first=9)
        points = mesh.vertices.copy()
        points[4] = [10, 25]
        found = measure_looks(lifted(ScreenMesh(points, mesh.faces)), flat_map())
        assert found.inverted == 2
        assert found.bad_area > 0

    def test_coverage(self):
        normals, mask = flat_map().normals, np.ones((SIZE, SIZE), bool)
        mask[:, 15:] = False
        half = ScreenMesh([[5, 0], [5, 20], [20, 20], [20, 0]], [[0, 1, 2], [0, 2, 3]])
        found = measure_looks(lifted(half), NormalMap(normals, mask, Orthographic()))
        assert found.uncovered == pytest.approx(100 / 3)
        assert found.spill == pytest.approx(100 / 3)


@pytest.mark.parametrize("camera", [Orthographic(0.5), Perspective(120, 120, 48, 48)], ids=str)
class TestScenes:
    @pytest.fixture
    def flaps(self, camera):
        normal_map = scene("flaps", 96).normal_map(camera)
        return reconstruct(normal_map, compression=0.94, discontinuities=True), normal_map

    def test_as_loops(self, flaps):
        found = measure_looks(*flaps)
        assert found.cut_length > 50
        expected = naive_looks.looks(*flaps)
        assert {name: asdict(found)[name] for name in expected} == pytest.approx(expected, nan_ok=True)

    def test_part_of_the_evaluation(self, flaps):
        assert evaluate(*flaps).looks == measure_looks(*flaps)
        assert evaluate(flaps[0].depth_map(), flaps[1]).looks is None

    @pytest.mark.parametrize("suffix", ["ply", "stl"])
    @pytest.mark.parametrize("turned", [False, True])
    def test_of_mesh_files(self, flaps, suffix, turned, tmp_path):
        pytest.importorskip("embreex")
        surface, normal_map = flaps
        faces = surface.faces[:, ::-1] if turned else surface.faces
        Surface(surface.vertices, faces, surface.screen, surface.camera, surface.shape).save(tmp_path / f"m.{suffix}")
        found, expected = evaluate(tmp_path / f"m.{suffix}", normal_map).looks, measure_looks(surface, normal_map)
        assert found.cut_length == pytest.approx(expected.cut_length, rel=0.01)
        assert found.teeth == pytest.approx(expected.teeth, rel=0.03)
        assert found.bad_area == pytest.approx(expected.bad_area, abs=0.15)
        assert found.inverted == expected.inverted

    def test_not_of_a_file_that_the_camera_cannot_see(self, flaps, tmp_path):
        pytest.importorskip("embreex")
        surface, normal_map = flaps
        away = surface.vertices * [1, 1, -1]
        Surface(away, surface.faces, surface.screen, Orthographic(), surface.shape).save(tmp_path / "away.ply")
        assert (evaluate(tmp_path / "away.ply", normal_map).looks is None) == surface.camera.is_central

    def test_height(self, flaps):
        surface, normal_map = flaps
        assert measure_looks(surface, normal_map).height is None
        own = surface.depth_map()
        assert 1 <= measure_looks(surface, normal_map, own).height < 1.1
        # The scale of distances is not known.
        scaled = 3 * own if surface.camera.is_central else own + 3
        assert measure_looks(surface, normal_map, scaled).height == pytest.approx(
            measure_looks(surface, normal_map, own).height
        )
        pixels = integrate_pixels(normal_map, discontinuities=True)
        assert 0.8 < measure_looks(surface, normal_map, pixels).height < 1.25


def test_refused():
    surface, normal_map = lifted(slit_mesh(ZIGZAG)), flat_map()
    with pytest.raises(NormalMeshError, match="20×20 pixels but the normal_map has 20×21"):
        measure_looks(surface, flat_map((SIZE, SIZE + 1)))
    with pytest.raises(NormalMeshError, match="pixels is 2×2"):
        measure_looks(surface, normal_map, np.zeros((2, 2)))
    with pytest.raises(NormalMeshError, match="no finite depth"):
        measure_looks(surface, normal_map, np.full((SIZE, SIZE), np.nan))
