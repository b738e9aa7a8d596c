"""Lines of jumps that the user gives."""

import numpy as np
import pytest

from normalmesh import NormalMap, NormalMeshError, evaluate, find_jumps, integrate_pixels, reconstruct
from surfaces import flap, waves

#: The line along which the flap of 96 px jumps: it fades out at both ends.
LINE = np.array([[58.0, 10.0], [58.0, 86.0]])


def edge_image(shape=(96, 96)):
    image = np.zeros(shape, bool)
    image[10:86, 57:59] = True
    return image


@pytest.mark.parametrize("lines", [[LINE], [LINE + np.array([1.6, 0.3])], edge_image()], ids=["exact", "near", "image"])
def test_lines_are_taken_to_where_normals_differ(lines):
    heights, normal_map = flap(96)
    jumps = find_jumps(normal_map, lines)
    corners = np.concatenate([line.path for line in jumps.lines])
    strong = (corners[:, 1] > 30) & (corners[:, 1] < 70)
    assert np.mean(corners[strong, 0] == 58) > 0.95
    assert all(line.height > 1 for line in jumps.lines)
    surface = reconstruct(normal_map, vertices=600, jumps=lines)
    assert len(surface.vertices) == 600
    assert surface.discontinuities.length > 60
    continuous = reconstruct(normal_map, vertices=600, discontinuities=False)
    errors = [np.nanstd(each.depth_map() - heights) for each in (surface, continuous)]
    assert errors[0] < 0.1 * errors[1]
    pixels = integrate_pixels(normal_map, jumps=jumps)
    assert np.std(pixels - heights) < 0.1 * errors[1]


def test_elsewhere_the_surface_is_continuous():
    """A line across smooth waves opens next to nothing, and no other line is looked for."""
    normal_map, _ = waves((96, 96))
    surface = reconstruct(normal_map, vertices=400, jumps=[np.array([[20, 48], [76, 48]])])
    assert len(surface.discontinuities.lines) == 1
    assert np.abs(surface.discontinuities.jumps).max() < 0.5
    assert evaluate(surface, normal_map).mae < 1.15 * evaluate(reconstruct(normal_map, vertices=400), normal_map).mae


def test_only_the_component_of_a_line_is_held():
    _, normal_map = flap(96)
    normals, mask = np.zeros((96, 200, 3)), np.zeros((96, 200), bool)
    normals[..., 2] = 1
    normals[:, :96], mask[:, :96] = normal_map.normals, True
    normals[:, 100:196], mask[:, 100:196] = waves((96, 96))[0].normals, True
    jumps = find_jumps(NormalMap(normals, mask), [LINE])
    assert jumps.placement.centroids[:, 0].max() < 97


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([np.zeros((1, 2))], "shape"),
        ([np.zeros((3, 3))], "shape"),
        ([[[1.0, np.nan], [2.0, 3.0]]], "finite"),
        (np.zeros((5, 5)), "edge image of 96"),
        (7, "list of polylines"),
        (np.zeros((96, 96), bool), "no line"),
    ],
)
def test_what_is_no_line_is_refused(lines, message):
    with pytest.raises(NormalMeshError, match=message):
        find_jumps(flap(96)[1], lines)
    with pytest.raises(NormalMeshError, match="jumps need"):
        reconstruct(flap(96)[1], vertices=100, jumps=[LINE], discontinuities=False)
