"""Crop, resize and rotate maps: the surface stays the same, whatever the camera."""

import warnings

import numpy as np
import pytest

from meshes import bumpy_map, disc
from normalmesh import (
    NormalMap,
    NormalMeshError,
    Orthographic,
    Perspective,
    from_gradients,
    from_heights,
    integrate_pixels,
)
from normalmesh.normals.gradients import normals_of_slopes, slopes_of

CAMERAS = [Orthographic(0.5), Perspective(70.0, 64.0, 20.0, 33.0)]
SHAPE = (48, 60)


def blob(shape=SHAPE):
    rows, columns = np.indices(shape)
    return ((rows - 22) / 18) ** 2 + ((columns - 31) / 24) ** 2 < 1


def waves(camera, shape=SHAPE, mask=None):
    """Return the normal map of smooth heights, and the heights, NaN outside the mask."""
    rows, columns = np.indices(shape) + 0.5
    heights = 40 + np.sin(rows / 7) + np.cos(columns / 9) + 0.05 * rows
    heights[~(np.ones(shape, bool) if mask is None else mask)] = np.nan
    return from_heights(heights, camera=camera), heights


def points_of(normal_map, depth):
    rows, columns = np.nonzero(normal_map.mask)
    camera = normal_map.camera
    screen = np.stack([columns, rows], axis=1) + 0.5
    return camera.points(screen, camera.unknown_of_depth(depth[normal_map.mask]))


@pytest.mark.parametrize("camera", [*CAMERAS, Perspective(70.0, 64.0, 20.0, 33.0, 5.0)], ids=str)
def test_slopes_and_normals_are_inverse(camera):
    normal_map = bumpy_map(SHAPE, camera=camera)
    slopes = slopes_of(normal_map.normals, camera)
    np.testing.assert_allclose(normals_of_slopes(slopes, camera), normal_map.normals, atol=1e-6)
    row, column = 7, 11
    n, ray = normal_map.normals[row, column].astype(float), camera.rays(column + 0.5, row + 0.5)
    for slope, tangent in zip(slopes[row, column], camera.tangents, strict=True):
        assert n @ (tangent + slope * ray) == pytest.approx(0, abs=1e-9)


class TestCrop:
    @pytest.mark.parametrize("camera", CAMERAS, ids=str)
    def test_points_stay_in_place(self, camera):
        normal_map, heights = waves(camera, mask=blob())
        part = normal_map.crop(margin=2)
        top, left, height, width = normal_map.rectangle()
        assert part.shape == (height + 4, width + 4)
        assert type(part.camera) is type(camera)
        window = np.s_[top - 2 : top + height + 2, left - 2 : left + width + 2]
        np.testing.assert_array_equal(part.normals, normal_map.normals[window])
        found = points_of(part, heights[window]) - points_of(normal_map, heights)
        # The screen of a part begins at its corner; rays of a pinhole are where they were.
        corner = [0, 0, 0] if camera.is_central else [-0.5 * (left - 2), 0.5 * (top - 2), 0]
        np.testing.assert_allclose(found, np.broadcast_to(corner, found.shape), atol=1e-9)

    def test_a_rectangle_in_two_ways(self):
        normal_map = bumpy_map(SHAPE, mask=blob())
        one, two = normal_map.crop((5, 10, 20, 30)), normal_map.crop(np.s_[5:25, 10:40])
        np.testing.assert_array_equal(one.normals, normal_map.normals[5:25, 10:40])
        np.testing.assert_array_equal(two.normals, one.normals)
        from_the_end = bumpy_map(SHAPE, mask=blob()).crop(np.s_[-43:-23, 10:-20])
        np.testing.assert_array_equal(from_the_end.normals, one.normals)
        assert one.normals.base is None or one.normals.base.size == one.normals.size

    @pytest.mark.parametrize(
        ("rectangle", "message"),
        [
            ((0, 0, 60, 20), "inside the image of 48×60"),
            ((-1, 0, 5, 5), "top, left, height, width"),
            ("all", "top, left, height, width"),
            (np.s_[50:60, 0:10], "begin inside the image"),
            (np.s_[-10:-20, 0:10], "begin inside the image"),
            (np.s_[::2, :], "without steps"),
            ((0, 0, 3, 3), "hold no foreground"),
        ],
    )
    def test_refused(self, rectangle, message):
        with pytest.raises(NormalMeshError, match=message):
            bumpy_map(SHAPE, mask=blob()).crop(rectangle)


class TestRotated:
    @pytest.mark.parametrize("camera", CAMERAS, ids=str)
    @pytest.mark.parametrize("degrees", [90, 180, 270, -90])
    def test_the_surface_is_rotated(self, camera, degrees):
        normal_map = waves(camera, mask=blob())[0]
        turned = normal_map.rotated(degrees)
        quarters = degrees // 90 % 4
        depth = integrate_pixels(normal_map)
        np.testing.assert_allclose(integrate_pixels(turned), np.rot90(depth, quarters), atol=1e-7)
        # Points are turned around the axis of a pinhole, or around any parallel one.
        spins = np.linalg.matrix_power(np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]]), quarters)
        expected = sorted(np.round(points_of(normal_map, depth) @ spins.T, 6).tolist())
        found = np.array(sorted(np.round(points_of(turned, np.rot90(depth, quarters)), 6).tolist()))
        offset = found.mean(axis=0) - np.mean(expected, axis=0)
        np.testing.assert_allclose(found - offset, expected, atol=1e-5)
        if camera.is_central:
            np.testing.assert_allclose(offset, 0, atol=1e-6)

    def test_four_quarters_are_none(self):
        normal_map = bumpy_map(SHAPE, mask=blob(), camera=CAMERAS[1])
        again = normal_map.rotated(90).rotated(90).rotated(180)
        np.testing.assert_array_equal(again.normals, normal_map.normals)
        assert again.camera == normal_map.camera

    def test_refused(self):
        with pytest.raises(NormalMeshError, match="multiple of 90, not 45"):
            bumpy_map().rotated(45)
        skewed = bumpy_map(camera=Perspective(70.0, 64.0, 20.0, 33.0, 1.0))
        assert skewed.rotated(180).camera.skew == 1
        with pytest.raises(NormalMeshError, match="skew"):
            skewed.rotated(90)


class TestResize:
    @pytest.mark.parametrize("camera", CAMERAS, ids=str)
    @pytest.mark.parametrize("factor", [0.5, 0.25, 0.4, 2, 1.7])
    def test_planes_stay_planes(self, camera, factor):
        """A plane has one normal behind any camera, whatever the filter."""
        plane = np.array([0.3, -0.2, 0.9]) / np.linalg.norm([0.3, -0.2, 0.9])
        normals = np.broadcast_to(plane, (*SHAPE, 3))
        resized = NormalMap(normals, blob(), camera).resize(factor)
        n = resized.normals[resized.mask]
        # The mean of the logarithms of distances is not quite that of a plane.
        np.testing.assert_allclose(n, np.broadcast_to(plane, n.shape), atol=2e-3 if camera.is_central else 1e-6)

    @pytest.mark.parametrize("camera", CAMERAS, ids=str)
    def test_a_half_is_the_surface_of_means(self, camera):
        normal_map = waves(camera)[0]
        half, depth = normal_map.resize(0.5), integrate_pixels(normal_map)
        means = camera.unknown_of_depth(depth).reshape(24, 2, 30, 2).mean(axis=(1, 3))
        found = camera.unknown_of_depth(integrate_pixels(half))
        difference = (found - found.mean()) - (means - means.mean())
        assert np.abs(difference).max() < 0.02 * np.ptp(means)
        assert half.shape == (24, 30)

    def test_means_are_those_of_slopes(self):
        """Steep and flat pixels in turn: the mean of normals would lose a third of the height."""
        slopes = np.tile([0.0, 4.0], (8, 8))
        x, _, z = np.moveaxis(from_gradients(slopes, 0 * slopes).resize(0.5).normals, -1, 0)
        np.testing.assert_allclose(-x / z, 2, rtol=1e-5)

    def test_any_factor_against_loops(self):
        normal_map, factor = bumpy_map((11, 14), mask=disc(14, 5.5)[:11]), 0.37
        resized = normal_map.resize(factor)
        slopes = slopes_of(normal_map.normals, normal_map.camera)
        for i in range(resized.shape[0]):
            for j in range(resized.shape[1]):
                area, total = 0.0, np.zeros(2)
                for row in range(11):
                    for column in range(14):
                        down = min((i + 1) / factor, row + 1) - max(i / factor, row)
                        right = min((j + 1) / factor, column + 1) - max(j / factor, column)
                        if normal_map.mask[row, column] and down > 0 and right > 0:
                            area += down * right
                            total += down * right * slopes[row, column]
                assert resized.mask[i, j] == (area * factor**2 >= 0.5)
                if resized.mask[i, j]:
                    found = slopes_of(resized.normals, resized.camera)[i, j] * factor
                    np.testing.assert_allclose(found, total / area, atol=1e-5)

    def test_cameras_follow(self):
        camera = Perspective(70.0, 64.0, 20.0, 33.0, 2.0)
        assert bumpy_map(SHAPE, camera=camera).resize((24, 15)).camera == Perspective(17.5, 32.0, 5.0, 16.5, 0.5)
        assert bumpy_map(SHAPE, camera=Orthographic(0.3)).resize(0.5).camera == Orthographic(0.6)
        odd = bumpy_map((49, 60)).resize((25, 30))
        assert (odd.shape, odd.camera) == ((25, 30), Orthographic(2.0))
        assert bumpy_map((49, 61)).resize(0.5).shape == (25, 31)

    def test_clean_maps_are_not_warned_about(self):
        grazing = np.broadcast_to(np.array([1.0, 0.0, 0.02]), (*SHAPE, 3))
        with pytest.warns(UserWarning, match="clamped"):
            normal_map = NormalMap(grazing)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for changed in (normal_map.resize(0.5), normal_map.rotated(90), normal_map.crop((0, 0, 9, 9))):
                assert changed.repairs.extended == 0

    def test_refused(self):
        normal_map = bumpy_map(SHAPE, mask=blob())
        with pytest.raises(NormalMeshError, match="square"):
            normal_map.resize((24, 60))
        with pytest.raises(NormalMeshError, match="positive factor"):
            normal_map.resize(0)
        lonely = np.zeros(SHAPE, bool)
        lonely[3, 4] = True
        with pytest.raises(NormalMeshError, match="no foreground is left"):
            bumpy_map(SHAPE, mask=lonely).resize(0.1)
