"""Test cases from height maps: depth and normals come from the same spline."""

import imagecodecs
import numpy as np
import pytest
import tifffile

from depth_normals import angles_to_depth, normals_of_depth
from normalmesh import NormalMeshError, Orthographic, Perspective
from normalmesh.evaluation.metrics import angles_between
from normalmesh.evaluation.synthetic.height_maps import fractal, relief


def hills(rows=40, columns=52):
    v, u = np.indices((rows, columns)) + 0.5
    return 4 * np.sin(0.21 * u + 0.1 * v) + 3 * np.cos(0.17 * v)


@pytest.mark.parametrize("camera", ["orthographic", "perspective"])
def test_normals_are_those_of_the_same_relief_in_finer_pixels(camera):
    heights = fractal(48, seed=3)
    coarse = relief(heights, camera)
    fine = relief(heights, camera, size=48 * 15)
    # The centre of every 15th fine pixel is the centre of a coarse pixel.
    normals = normals_of_depth(fine.depth, fine.normal_map.camera)[7::15, 7::15]
    assert angles_between(normals, coarse.normals).max() < 0.5
    assert angles_between(fine.normals[7::15, 7::15], coarse.normals).max() < 1e-4
    assert np.allclose(fine.depth[7::15, 7::15] / 15, coarse.depth, rtol=1e-9)


def test_the_spline_interpolates_the_heights():
    heights = hills()
    assert np.allclose(relief(heights).depth, heights, atol=1e-9)
    assert np.allclose(relief(heights, Orthographic(0.5)).depth, 0.5 * heights, atol=1e-9)
    camera = Perspective(300, 300, 26, 20)
    assert np.allclose(relief(heights, camera).depth, 300 - heights, atol=1e-9)


def test_size_and_height():
    heights = hills()
    doubled = relief(heights, size=(80, 104))
    assert np.median(angles_to_depth(doubled)[1:-1, 1:-1]) < 0.1
    assert np.isclose(np.ptp(doubled.depth), 2 * np.ptp(heights), rtol=0.02)
    stretched = relief(heights, size=(40, 104), height=10)
    assert np.isclose(np.ptp(stretched.depth), 10, rtol=0.02)
    assert np.median(angles_to_depth(stretched)[1:-1, 1:-1]) < 0.1
    halved = relief(heights, size=(20, 26))
    assert np.corrcoef(halved.depth.ravel(), heights.reshape(20, 2, 26, 2).mean(axis=(1, 3)).ravel())[0, 1] > 0.999


def test_pixels_without_height_are_background():
    heights = hills()
    heights[10:14, 20:30] = np.nan
    mask = np.ones(heights.shape, bool)
    mask[:, :3] = False
    for camera in ("orthographic", "perspective"):
        case = relief(heights, camera, mask=mask)
        assert np.array_equal(case.normal_map.mask, mask & np.isfinite(heights))
        assert np.array_equal(np.isfinite(case.depth), case.normal_map.mask)
        assert case.normal_map.repairs.invalid == 0
        assert np.nanmedian(angles_to_depth(case)) < 0.3
    doubled = relief(heights, size=(80, 104))
    assert not doubled.normal_map.mask[20:28, 40:60].any()
    assert doubled.normal_map.foreground == 4 * np.isfinite(heights).sum()


def test_files(tmp_path):
    heights = hills()
    np.save(tmp_path / "hills.npy", heights)
    tifffile.imwrite(tmp_path / "hills.tif", heights.astype(np.float32))
    for name in ("hills.npy", "hills.tif"):
        case = relief(tmp_path / name)
        assert case.name == "hills"
        assert np.allclose(case.depth, heights, atol=1e-5)
    shades = np.round((heights - heights.min()) / np.ptp(heights) * 65535).astype(np.uint16)
    (tmp_path / "grey.png").write_bytes(imagecodecs.png_encode(shades))
    assert np.isclose(np.ptp(relief(tmp_path / "grey.png").depth), 52 / 8)
    assert np.isclose(np.ptp(relief(tmp_path / "grey.png", height=9).depth), 9)
    alpha = np.where(np.arange(52) < 26, 65535, 0).astype(np.uint16) * np.ones((40, 1), np.uint16)
    (tmp_path / "alpha.png").write_bytes(imagecodecs.png_encode(np.dstack([shades, shades, shades, alpha])))
    assert np.array_equal(relief(tmp_path / "alpha.png").normal_map.mask, alpha > 0)


def test_smoothing_removes_quantisation_steps(tmp_path):
    heights = hills(120, 120)
    shades = np.round((heights - heights.min()) / np.ptp(heights) * 20).astype(np.uint8)
    (tmp_path / "steps.png").write_bytes(imagecodecs.png_encode(shades))
    span, truth = np.ptp(heights), relief(heights)
    rough, smooth = (relief(tmp_path / "steps.png", height=span, smoothing=s) for s in (0, 2))
    assert (
        angles_between(smooth.normals, truth.normals).mean() < 0.4 * angles_between(rough.normals, truth.normals).mean()
    )


def test_smallest_maps():
    case = relief([[0.0, 1.0, 2.0]] * 3)
    assert np.allclose(case.normals, np.array([-1, 0, 1]) / np.sqrt(2))
    assert relief(np.zeros((3, 9))).depth.shape == (3, 9)
    assert relief(np.zeros((5, 5)), size=(1, 7)).depth.shape == (1, 7)


def test_errors(tmp_path):
    (tmp_path / "colours.png").write_bytes(imagecodecs.png_encode(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)))
    (tmp_path / "text.txt").write_text("no heights")
    heights = hills()
    for wrong, options, message in (
        (tmp_path / "colours.png", {}, "must be grey"),
        (tmp_path / "text.txt", {}, "must be a PNG"),
        (tmp_path / "none.png", {}, "no such file"),
        (np.zeros(5), {}, "must have the shape"),
        (np.zeros((2, 5)), {}, "3×3 or more"),
        (["a", "b"], {}, "numbers"),
        (np.full((4, 4), np.nan), {}, "no pixel in the mask"),
        (heights, {"mask": np.ones((3, 3))}, "mask is 3×3"),
        (heights, {"height": -1}, "height must be"),
        (heights, {"smoothing": -1}, "smoothing must be"),
        (heights, {"size": 0}, "size must be"),
        (1000 * heights, {"camera": "perspective"}, "reaches the camera"),
    ):
        with pytest.raises(NormalMeshError, match=message):
            relief(wrong, **options)


def test_fractal_terrain_is_the_same_at_any_size():
    small, large = fractal(64, seed=5), fractal(256, seed=5)
    means = large.reshape(64, 4, 64, 4).mean(axis=(1, 3)) / 4
    assert np.corrcoef(small.ravel(), means.ravel())[0, 1] > 0.97
    assert np.isclose(np.ptp(large), 0.2 * 256)
    assert np.array_equal(fractal(64, seed=5), small)
    assert not np.allclose(fractal(64, seed=6), small)
    assert fractal((30, 50)).shape == (30, 50)
    assert fractal((1, 1)).shape == (1, 1)
    assert relief(large).normal_map.repairs.back_facing == 0
