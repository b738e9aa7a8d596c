"""Normal maps of heights and depths."""

import numpy as np
import pytest

from normalmesh import NormalMeshError, Orthographic, Perspective, evaluate, from_heights, integrate_pixels, reconstruct
from normalmesh.evaluation.synthetic.analytic import waves
from normalmesh.files.atomic import write_atomically
from normalmesh.files.height_png import depth_files, range_of_camera

ROWS, COLUMNS = np.indices((30, 36)) + 0.5


def test_paraboloids_are_exact_up_to_the_rim():
    pixel, mask = 0.5, np.hypot(ROWS - 15, COLUMNS - 18) < 13
    x, y = pixel * COLUMNS, -pixel * ROWS
    heights = np.where(mask, 0.02 * x**2 + 0.01 * x * y - 0.03 * y**2, np.nan)
    found = from_heights(heights, camera=Orthographic(pixel))
    expected = np.dstack([-(0.04 * x + 0.01 * y), -(0.01 * x - 0.06 * y), np.ones_like(x)])
    expected /= np.linalg.norm(expected, axis=2, keepdims=True)
    np.testing.assert_array_equal(found.mask, mask)
    np.testing.assert_allclose(found.normals[mask], expected[mask], atol=1e-6)


def test_perspective_planes_are_nearly_exact():
    camera, plane = Perspective(60.0, 55.0, 17.0, 12.0), np.array([0.2, -0.3, 0.9])
    rays = camera.rays(COLUMNS, ROWS)
    normals = from_heights(-5.0 / (rays @ plane), camera=camera).normals
    np.testing.assert_allclose(normals, np.broadcast_to(plane / np.linalg.norm(plane), normals.shape), atol=1e-3)


@pytest.mark.parametrize("camera", ["orthographic", "perspective"])
def test_heights_come_back(camera):
    case = waves(64, camera=camera)
    normal_map = from_heights(case.depth, camera=case.normal_map.camera)
    truth = np.ptp(case.depth)
    assert evaluate(reconstruct(normal_map, compression=0.7), normal_map, case.depth).rmse < 0.02 * truth
    assert evaluate(integrate_pixels(normal_map), normal_map, case.depth).rmse < 0.01 * truth


def test_files(tmp_path):
    heights = np.sin(COLUMNS / 5) + ROWS / 10
    np.save(tmp_path / "z.npy", heights)
    found = from_heights(tmp_path / "z.npy", camera=Orthographic(2.0))
    np.testing.assert_array_equal(found.normals, from_heights(heights, camera=Orthographic(2.0)).normals)


@pytest.mark.parametrize("camera", [Orthographic(0.25), Perspective(60.0, 55.0, 17.0, 12.0)], ids=str)
def test_png_files_hold_their_camera(camera, tmp_path):
    path = tmp_path / "z.png"
    heights = 50 + 0.1 * np.sin(COLUMNS / 5) + ROWS / 100
    write_atomically(depth_files(path, heights, range_of_camera(camera, "mm")))
    found = from_heights(path)
    assert found.camera == camera
    np.testing.assert_allclose(found.normals, from_heights(heights, camera=camera).normals, atol=1e-4)
    assert from_heights(path, camera=Orthographic(3.0)).camera == Orthographic(3.0)


@pytest.mark.parametrize(
    ("heights", "camera", "message"),
    [
        (np.ones((3, 4, 3)), None, "3×4×3"),
        (np.ones((1, 4)), None, "2×2 or more"),
        (np.full((5, 5), np.nan), None, "heights are empty"),
        (-np.ones((5, 5)), Perspective(10, 10, 2, 2), "positive distances"),
    ],
)
def test_refused(heights, camera, message):
    with pytest.raises(NormalMeshError, match=message):
        from_heights(heights, camera=camera)
