"""Test heights on the pixel grid that repeat."""

import numpy as np
import pytest

from normalmesh import NormalMap, NormalMeshError, NormalMeshWarning, Perspective, integrate_pixels
from periodic_maps import map_of_slopes, waves


def dense_heights(normal_map, directions):
    """Solve the same least squares with a dense matrix: heights, then the slopes down and to the right."""
    rows, columns = normal_map.shape
    nx, ny, nz = np.moveaxis(normal_map.normals.astype(float), 2, 0)
    slopes = {"y": ny / nz, "x": -nx / nz}
    lines, values = [], []
    for i in range(rows):
        for j in range(columns):
            for k, (name, (di, dj)) in enumerate({"y": (1, 0), "x": (0, 1)}.items()):
                beyond = i + di >= rows or j + dj >= columns
                if beyond and name not in directions:
                    continue
                there = (i + di) % rows, (j + dj) % columns
                line = np.zeros(rows * columns + 2)
                line[there[0] * columns + there[1]] += 1
                line[i * columns + j] -= 1
                line[rows * columns + k] = name in directions
                root = np.sqrt((nz[i, j] ** 2 + nz[there] ** 2) / 2)
                lines.append(root * line)
                values.append(root * (slopes[name][i, j] + slopes[name][there]) / 2)
    heights = np.linalg.lstsq(np.array(lines), np.array(values), rcond=None)[0][:-2].reshape(rows, columns)
    return heights - heights.mean()


@pytest.mark.parametrize("tileable", [True, "x", "y"])
def test_against_dense_least_squares(tileable):
    right, down = np.random.default_rng(0).normal(0, 0.6, (2, 6, 7))
    normal_map = map_of_slopes(right, down)
    with pytest.warns(NormalMeshWarning, match="mean slope"):
        found = integrate_pixels(normal_map, tileable=tileable)
    expected = dense_heights(normal_map, "xy" if tileable is True else tileable)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_rolled_map_gives_rolled_heights():
    _, right, down = waves((40, 56), creased=True)
    heights = integrate_pixels(map_of_slopes(right, down), tileable=True)
    rolled = [np.roll(each, (7, 31), (0, 1)) for each in (right, down)]
    found = integrate_pixels(map_of_slopes(*rolled), tileable=True)
    np.testing.assert_allclose(found, np.roll(heights, (7, 31), (0, 1)), atol=1e-6)


def test_what_cannot_repeat_is_refused():
    _, right, down = waves((16, 16))
    mask = np.ones((16, 16))
    mask[3, 3] = 0
    with pytest.raises(NormalMeshError, match="without background"):
        integrate_pixels(map_of_slopes(right, down, mask), tileable=True)
    with pytest.raises(NormalMeshError, match="have no jumps"):
        integrate_pixels(map_of_slopes(right, down), tileable=True, discontinuities=True)
    seen = NormalMap(map_of_slopes(right, down).normals, None, Perspective.centred(30, (16, 16)))
    with pytest.raises(NormalMeshError, match="orthographic camera, not one that is perspective"):
        integrate_pixels(seen, tileable=True)
