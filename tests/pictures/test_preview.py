"""Test the preview and the functions that draw it."""

import numpy as np
import pytest

from normalmesh import NormalMap, NormalMeshError, Orthographic, Perspective, evaluate, reconstruct
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.pictures import preview as sheets
from normalmesh.pictures._oblique import draw_faces
from normalmesh.pictures.frame import Frame, angular_errors, vertex_density
from normalmesh.pictures.oblique import oblique
from normalmesh.pictures.panels import CUT, edges
from normalmesh.pictures.preview import BOX, HEADER, HEIGHT, MARGIN, STEP, TO_PICTURE, WIDTH, detail_frame, preview
from normalmesh.pictures.sheet import linear_ticks, logarithmic_ticks, round_up
from scenes import scene


def pictures(sheet):
    """Yield the six pictures (H, W, 3) of a sheet, in reading order."""
    for number in range(6):
        row, column = divmod(number, 3)
        top, left = HEADER + row * STEP[1] + TO_PICTURE, MARGIN + column * STEP[0]
        yield sheet[top : top + BOX[1], left : left + BOX[0]]


def reds(picture):
    return np.count_nonzero(np.abs(picture.astype(int) - CUT).max(axis=-1) < 40)


def medallion_with_holes():
    whole = Medallion(96).normal_map
    i, j = np.indices(whole.shape)
    return NormalMap(whole.normals, whole.mask & (np.hypot(i - 30, j - 30) > 9) & (abs(i - 60) > 3) & (abs(j - 50) > 2))


MAPS = {
    "orthographic": lambda: Medallion(96).normal_map,
    "perspective": lambda: Medallion(96).seen_by("perspective").normal_map,
    "holes": medallion_with_holes,
    "jumps": lambda: scene("spiral", 96).normal_map(Orthographic()),
    "tiny": lambda: Medallion(16).normal_map,
    "wide": lambda: NormalMap(np.broadcast_to([0.1, 0.0, 1.0], (5, 120, 3)).astype(np.float32)),
    "one pixel": lambda: NormalMap(np.array([[[0.0, 0.0, 1.0]]], np.float32)),
}


@pytest.mark.parametrize("name", MAPS)
def test_all_maps_fill_the_same_six_panels(name):
    normal_map = MAPS[name]()
    sheet = preview(reconstruct(normal_map, compression=0.9 if normal_map.foreground > 100 else 0.5), normal_map)
    assert sheet.shape == (HEIGHT, WIDTH, 3)
    assert sheet.dtype == np.uint8
    for picture in pictures(sheet):
        drawn = np.abs(picture.astype(int) - sheets.TINT).max(axis=-1) > 8
        assert drawn.mean() > 0.02


def test_cut_edges_are_red():
    cut, smooth = MAPS["jumps"](), MAPS["orthographic"]()
    surfaces = [(reconstruct(each, compression=0.9, discontinuities=True), each) for each in (cut, smooth)]
    wires = [list(pictures(preview(*each)))[1] for each in surfaces]
    assert reds(wires[0]) > 20
    assert reds(wires[1]) == 0


def test_surface_without_discontinuities():
    normal_map = MAPS["jumps"]()
    surface = reconstruct(normal_map, compression=0.9, discontinuities=False)
    assert surface.discontinuities is None
    assert reds(list(pictures(preview(surface, normal_map)))[1]) == 0


def test_large_meshes_show_a_detail(monkeypatch):
    normal_map = MAPS["orthographic"]()
    surface = reconstruct(normal_map, compression=0.8)
    whole = list(pictures(preview(surface, normal_map)))
    monkeypatch.setattr(sheets, "MAX_EDGES", 100)
    monkeypatch.setattr("normalmesh.pictures.preview.VERTICES", 80)
    detail = list(pictures(preview(surface, normal_map)))
    assert not np.array_equal(whole[0], detail[0]), "the outline of the detail"
    assert not np.array_equal(whole[1], detail[1])
    for before, after in zip(whole[2:], detail[2:], strict=True):
        np.testing.assert_array_equal(before, after)


def test_details_lie_on_the_surface(monkeypatch):
    monkeypatch.setattr("normalmesh.pictures.preview.VERTICES", 80)
    normal_map = MAPS["orthographic"]()
    surface = reconstruct(normal_map, compression=0.8)
    frame = Frame.around(normal_map.mask)
    found = detail_frame(surface, frame, frame.samples(np.inf).owners(surface), BOX)
    assert found.samples(np.inf).of(normal_map.mask).mean() > 0.95
    assert found.columns / found.rows == pytest.approx(BOX[0] / BOX[1], rel=0.1)
    inside = ((surface.screen >= found.corners[0]) & (surface.screen <= found.corners[2])).all(axis=1)
    assert 20 < np.count_nonzero(inside) < 320


def test_maps_of_other_images_are_rejected():
    normal_map = MAPS["tiny"]()
    with pytest.raises(NormalMeshError, match=r"16×16 pixels but the normal map has 96×96"):
        preview(reconstruct(normal_map, compression=0.5), Medallion(96).normal_map)


@pytest.mark.parametrize("most", [np.inf, 1000])
def test_errors_are_those_of_evaluate_at_the_samples(most):
    normal_map = MAPS["perspective"]()
    surface = reconstruct(normal_map, compression=0.9)
    samples = Frame.around(normal_map.mask).samples(most)
    assert (samples.stride > 1) == (most == 1000)
    angles = angular_errors(surface, normal_map, samples, samples.owners(surface))
    np.testing.assert_allclose(angles, samples.of(evaluate(surface, normal_map).angles), atol=1e-3)


def test_density_counts_all_vertices():
    normal_map = MAPS["orthographic"]()
    surface = reconstruct(normal_map, compression=0.9)
    frame = Frame.around(normal_map.mask)
    size = frame.size_within(200, 200)
    density = vertex_density(surface, frame, size, frame.samples(np.inf).owners(surface))
    area = frame.columns * frame.rows / (size[0] * size[1])
    assert np.nansum(density) * area / 100 == pytest.approx(len(surface.vertices), rel=0.1)


def test_views_from_both_sides_of_a_mirrored_surface_are_mirrored():
    half = np.zeros((24, 24, 3), np.float32)
    half[..., 2] = 1
    surface = reconstruct(NormalMap(half), compression=0.5)
    left, right = (oblique(surface, (60, 60), azimuth, 0).min(axis=-1) < 250 for azimuth in (-60, 60))
    assert left.mean() == pytest.approx(right.mean(), abs=0.02)
    assert left.mean() == pytest.approx(0.5, abs=0.06), "half as wide as high"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_nearer_faces_hide_farther_ones(order):
    far, near = [[0, 0, 1], [20, 0, 1], [0, 20, 1]], [[2, 2, 5], [2, 12, 5], [12, 2, 5]]
    points = np.array([*far, *near], np.float64)
    normals = np.array([[1, 0, 0]] * 3 + [[0, 1, 0]] * 3, np.float64)
    nearness, seen, back = np.full((16, 16), -np.inf), np.zeros((16, 16, 3), np.float32), np.zeros((16, 16), np.bool_)
    draw_faces(points, np.array([[0, 1, 2], [3, 4, 5]], np.int32)[list(order)], normals, nearness, seen, back)
    np.testing.assert_allclose([nearness[4, 4], nearness[1, 1], nearness[15, 15]], [5, 1, -np.inf])
    np.testing.assert_allclose(seen[4, 4], [0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(seen[1, 1], [1, 0, 0], atol=1e-6)
    assert back[1, 1], "clockwise as the viewer sees it"
    assert not back[4, 4]


def test_back_faces_are_bluish():
    surface = reconstruct(MAPS["orthographic"](), compression=0.9)
    front, behind = (oblique(surface, (80, 80), azimuth).astype(int) for azimuth in (0, 180))
    for image, bluish in ((front, False), (behind, True)):
        seen = image[image.min(axis=-1) < 240]
        assert ((seen[:, 2] > seen[:, 0] + 8).mean() > 0.9) == bluish


def test_perspective_surfaces_fill_the_view():
    case = Medallion(96).seen_by(Perspective(120, 120, 48, 48))
    image = oblique(reconstruct(case.normal_map, compression=0.9), (80, 80))
    assert (image.min(axis=-1) < 250).mean() > 0.3


def test_edges_are_those_of_the_faces():
    surface = reconstruct(MAPS["holes"](), compression=0.9)
    sides = {tuple(sorted((int(face[k]), int(face[k - 1])))) for face in surface.faces for k in range(3)}
    found = [tuple(sorted(edge)) for edge in edges(surface).tolist()]
    assert sorted(found) == sorted(sides)


def test_scales_have_round_numbers():
    assert [round_up(value) for value in (0.0, 0.011, 1.0, 3.2, 9.1)] == [1.0, 0.015, 1.0, 4.0, 10.0]
    assert list(linear_ticks(1.5).values()) == ["0", "0.5", "1", "1.5"]
    assert list(linear_ticks(10).values()) == ["0", "2", "4", "6", "8", "10"]
    assert list(logarithmic_ticks(0.3, 30).values()) == ["0.5", "1", "2", "5", "10", "20"]
    for end in (0.01, 0.8, 3.0, 6.0, 40.0):
        ticks = linear_ticks(end)
        assert 3 <= len(ticks) <= 7
        assert max(ticks) <= 1 + 1e-9
