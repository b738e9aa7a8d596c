"""Test that normals and depths of the analytic surfaces agree, for both cameras."""

import numpy as np
import pytest

from depth_normals import angles_to_depth
from normalmesh import NormalMeshError, Orthographic, Perspective
from normalmesh.evaluation.metrics import angles_between
from normalmesh.evaluation.synthetic import analytic, relief_case

SURFACES = [analytic.sphere, analytic.ridges, analytic.cone, analytic.waves, analytic.medallion]
CAMERAS = ["orthographic", "perspective", Orthographic(0.25), Perspective(210, 180, 55, 41, skew=12)]


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("camera", CAMERAS, ids=str)
def test_slopes_are_those_of_the_depth(surface, camera, monkeypatch):
    """Compare with finite differences over a ten-thousandth of a pixel, by shifting the pixel grid."""
    step = 1e-4
    original = relief_case.pixel_centres
    case = surface(64, camera)
    depths = {}
    for du, dv in ((step, 0), (-step, 0), (0, step), (0, -step)):
        for module in (analytic, relief_case):
            monkeypatch.setattr(module, "pixel_centres", lambda *args, shift=(du, dv): original(*args) + shift)
        depths[du, dv] = surface(64, camera).depth
    space = case.normal_map.camera
    screen = original(slice(0, 64), 64)
    unknown = {key: np.log(each) if isinstance(space, Perspective) else each for key, each in depths.items()}
    points = {key: space.points(screen + key, each) for key, each in unknown.items()}
    along_u, along_v = points[step, 0] - points[-step, 0], points[0, step] - points[0, -step]
    normals = np.cross(along_v, along_u)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    error = angles_between(case.normals, normals)[case.normal_map.mask]
    error = error[np.isfinite(error)]
    assert error.size > 1000
    # Next to a crease, the two points of a difference may be on different slopes.
    assert np.quantile(error, 0.98) < 2e-4


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("camera", CAMERAS[:2])
def test_nothing_needs_repair(surface, camera):
    case = surface(96, camera)
    repairs = case.normal_map.repairs
    assert (repairs.invalid, repairs.rescaled, repairs.back_facing, repairs.grazing) == (0, 0, 0, 0)
    assert np.array_equal(np.isfinite(case.depth), case.normal_map.mask)
    assert case.name == surface.__name__


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
def test_a_sphere_is_round(camera):
    case = analytic.sphere((90, 110), camera)
    space, mask = case.normal_map.camera, case.normal_map.mask
    v, u = np.indices(mask.shape) + 0.5
    unknown = np.log(case.depth) if isinstance(space, Perspective) else case.depth
    points = space.points(np.stack([u, v], axis=-1), unknown)[mask]
    # All of its normals meet at one centre, at one distance.
    system = np.zeros((3 * len(points), 4))
    system[:, :3] = np.tile(np.eye(3), (len(points), 1))
    system[:, 3] = case.normals[mask].ravel()
    found, *_ = np.linalg.lstsq(system, points.ravel(), rcond=None)
    assert np.allclose(points - found[:3], found[3] * case.normals[mask], atol=2e-6 * found[3])
    rays = space.towards_viewer * space.rays(u, v)[mask]
    steepness = angles_between(case.normals[mask], rays / np.linalg.norm(rays, axis=-1, keepdims=True))
    assert 77 < steepness.max() <= 80 + 1e-4


def test_creases_are_sharp():
    """Normals are discontinuous across the ridges and the base of the cone, and nowhere else."""
    for surface in (analytic.ridges, analytic.cone):
        error = angles_to_depth(surface(256))[1:-1, 1:-1]
        assert np.median(error) < 0.1
        assert np.nanmax(error) > 15


def test_heights_increase_towards_the_viewer():
    cone = analytic.cone(101)
    assert np.unravel_index(cone.depth.argmax(), cone.depth.shape) == (50, 50)
    assert np.allclose(cone.normals[50, 50], [0, 0, 1])
    assert cone.normals[20, 50, 1] > 0.5  # the upper slope faces up
    assert cone.normals[50, 80, 0] > 0.5  # the right slope faces right
    behind = analytic.cone(101, "perspective")
    assert np.unravel_index(behind.depth.argmin(), behind.depth.shape) == (50, 50)


def test_sizes():
    for surface in SURFACES[:4]:
        assert surface((40, 60)).normal_map.shape == (40, 60)
    assert analytic.waves((1, 50)).depth.shape == (1, 50)
    for size in (0, -3, 2.5, (3, 4, 5), "64", (8, 0)):
        with pytest.raises(NormalMeshError, match="size must be"):
            analytic.waves(size)


def test_a_relief_that_reaches_the_camera_is_rejected():
    with pytest.raises(NormalMeshError, match="reaches the camera"):
        analytic.cone(64, Perspective(20, 20, 32, 32))
    with pytest.raises(NormalMeshError, match="camera must be"):
        analytic.cone(64, "fisheye")


def test_a_plane_faces_the_viewer():
    def flat(screen):
        return np.zeros(screen.shape[:-1]), np.zeros(screen.shape[:-1]), np.zeros(screen.shape[:-1])

    mask = np.arange(20).reshape(4, 5) > 3
    for camera in CAMERAS:
        case = relief_case.lift("plane", flat, (4, 5), camera, mask)
        assert np.array_equal(case.normal_map.mask, mask)
        assert np.allclose(case.normals[mask], [0, 0, 1])
        assert np.ptp(case.depth[mask]) < 1e-9
