"""Test depth discontinuities on scenes of layers that occlude each other, with exact truth, for both cameras.

Maps of 128 × 128 pixels, 800 vertices, ``discontinuities=True``. The table shows precision and recall of the cuts
within 2 px of the silhouette, and the RMS depth errors of the default and of the continuous surface, in px.

======  ============  =========  ======  =====  ==========
scene   camera        precision  recall  error  continuous
======  ============  =========  ======  =====  ==========
steps   orthographic      1.000   1.000   0.20        4.90
steps   perspective       1.000   1.000   0.17        4.62
flaps   orthographic      1.000   1.000   0.39        5.68
flaps   perspective       1.000   1.000   0.31        5.84
torus   orthographic      1.000   0.618   1.15        5.95
torus   perspective       1.000   0.620   1.19        5.91
cards   orthographic      1.000   1.000   0.48        8.07
cards   perspective       1.000   1.000   0.39        8.29
spiral  orthographic      1.000   1.000   0.47        3.77
spiral  perspective       1.000   1.000   0.56        4.10
hole    orthographic      1.000   1.000   0.80        6.86
hole    perspective       1.000   1.000   0.83        6.63
======  ============  =========  ======  =====  ==========
"""

from functools import cache

import numpy as np
import pytest
from scipy import ndimage

from normalmesh import Orthographic, Perspective, decimate, find_jumps, integrate, reconstruct
from scenes import (
    Scene,
    ball,
    depth_error,
    dome,
    drops_and_truth,
    heights_of,
    jumps_and_truth,
    precision_and_recall,
    scene,
)
from surfaces import centres, noisy

CAMERAS = {"orthographic": Orthographic(0.7), "perspective": Perspective(420.0, 390.0, 66.0, 60.0, skew=4.0)}
VERTICES = 800

#: Measured precision, recall, and ratio of the depth error to that of the continuous surface.
MEASURED = {
    ("steps", "orthographic"): (1.000, 1.000, 0.040),
    ("steps", "perspective"): (1.000, 1.000, 0.037),
    ("flaps", "orthographic"): (1.000, 1.000, 0.150),
    ("flaps", "perspective"): (1.000, 1.000, 0.140),
    ("torus", "orthographic"): (1.000, 0.618, 0.187),
    ("torus", "perspective"): (1.000, 0.620, 0.195),
    ("cards", "orthographic"): (1.000, 1.000, 0.059),
    ("cards", "perspective"): (1.000, 1.000, 0.047),
    ("spiral", "orthographic"): (1.000, 1.000, 0.130),
    ("spiral", "perspective"): (1.000, 1.000, 0.138),
    ("hole", "orthographic"): (1.000, 1.000, 0.113),
    ("hole", "perspective"): (1.000, 1.000, 0.103),
}
#: Tolerance below (for the ratio, above) the measured values, because meshes vary, also with the processor.
TOLERANCE = 0.07


each_camera = pytest.mark.parametrize("camera", CAMERAS)
each_scene = pytest.mark.parametrize(("name", "camera"), MEASURED, ids=["-".join(key) for key in MEASURED])


@cache
def seen(name, camera, rim=4.0):
    """Return a scene and its normal map."""
    truth = scene(name, rim=rim)
    return truth, truth.normal_map(CAMERAS[camera])


@cache
def made(name, camera, rim=4.0, discontinuities=True, **options):
    normal_map = seen(name, camera, rim)[1]
    return reconstruct(normal_map, vertices=VERTICES, discontinuities=discontinuities, **options)


@each_scene
def test_normals_agree_with_depths(name, camera):
    """At smooth pixels, which are most of them, differences of points are perpendicular to the normals."""
    truth, normal_map = seen(name, camera)
    screen = np.stack(centres(truth.heights.shape), axis=-1)
    points = CAMERAS[camera].points(screen, truth.unknown(CAMERAS[camera]))
    right, down = points[1:-1, 2:] - points[1:-1, :-2], points[2:, 1:-1] - points[:-2, 1:-1]
    expected = np.cross(down, right)
    expected /= np.linalg.norm(expected, axis=-1, keepdims=True)
    cosine = (expected * normal_map.normals[1:-1, 1:-1]).sum(axis=-1)
    angle = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
    one_layer = np.ones(angle.shape, bool)
    for down, right in ((0, 1), (2, 1), (1, 0), (1, 2)):
        rows, columns = truth.layer.shape
        one_layer &= truth.layer[down : rows - 2 + down, right : columns - 2 + right] == truth.layer[1:-1, 1:-1]
    assert one_layer.mean() > 0.85
    assert np.quantile(angle[one_layer], 0.5) < 0.05
    assert np.quantile(angle[one_layer], 0.9) < 1.5
    assert np.allclose(CAMERAS[camera].depth(points), truth.depth(CAMERAS[camera]))


@each_scene
def test_cuts_follow_the_silhouette(name, camera):
    truth, _ = seen(name, camera)
    precision, recall = precision_and_recall(made(name, camera), truth)
    assert precision >= MEASURED[name, camera][0] - TOLERANCE
    assert recall >= MEASURED[name, camera][1] - TOLERANCE


@each_scene
def test_depth_is_better_than_continuous(name, camera):
    truth, _ = seen(name, camera)
    continuous = depth_error(made(name, camera, discontinuities=False), truth)
    assert depth_error(made(name, camera), truth) <= (MEASURED[name, camera][2] + TOLERANCE) * continuous


@each_scene
def test_surfaces_are_valid(name, camera):
    _, normal_map = seen(name, camera)
    surface = made(name, camera)
    found = surface.discontinuities
    assert surface.mesh.check().ok
    assert np.isfinite(surface.depth_map()[normal_map.mask]).all()
    assert len(surface.vertices) == VERTICES
    assert len(surface.faces) == len(found.parts)
    assert len(found.lines) > 0
    assert np.isfinite(found.jumps).all()
    assert (np.linalg.norm(found.screen[:, 0] - found.screen[:, 1], axis=1) > 0).all()
    assert made(name, camera, discontinuities=False).discontinuities is None


@each_scene
def test_jumps_have_the_right_sign_and_size(name, camera):
    """The height difference between points 4 px on both sides of the silhouette is correct.

    Measured: the median error of drops of 10 to 23 px is 0.17 to 1.05 px, and at least 99 % have the right sign; the
    error of the continuous surface is 6 to 20 px.
    """
    truth, _ = seen(name, camera)
    surface = made(name, camera)
    found, expected = drops_and_truth(surface, truth)
    clear = np.abs(expected) > 4
    assert np.median(np.abs(found - expected)) < 1.5
    assert np.mean(np.sign(found[clear]) == np.sign(expected[clear])) > 0.95
    jumps, whole = jumps_and_truth(surface, truth)
    clear = np.abs(whole) > 2
    assert np.mean(np.sign(jumps[clear]) == np.sign(whole[clear])) > 0.6
    assert 0.15 * np.median(np.abs(whole)) < np.median(np.abs(jumps)) < 1.1 * np.median(np.abs(whole))


@each_camera
def test_cuts_without_refinement(camera):
    """Measured for the orthographic camera: precision 0.999, recall 1.000, error ratio 0.215."""
    truth, _ = seen("flaps", camera)
    surface = made("flaps", camera, refine=0)
    precision, recall = precision_and_recall(surface, truth)
    assert precision > 0.9
    assert recall > 0.93
    continuous = depth_error(made("flaps", camera, refine=0, discontinuities=False), truth)
    assert depth_error(surface, truth) < 0.3 * continuous
    assert surface.mesh.check().ok


@pytest.mark.parametrize("name", ["flaps", "cards", "hole"])
def test_cuts_under_noise(name):
    """Noise of 3°, averaged over three meshes, because the wrong cuts depend on the mesh."""
    truth, normal_map = seen(name, "orthographic")
    rough = noisy(normal_map, 3.0)
    surfaces = [reconstruct(rough, vertices=VERTICES + more, discontinuities=True) for more in (0, 7, 14)]
    precision, recall = np.mean([precision_and_recall(surface, truth) for surface in surfaces], axis=0)
    assert precision > 0.85
    assert recall > 0.9
    continuous = reconstruct(rough, vertices=VERTICES, discontinuities=False)
    errors = [depth_error(surface, truth) for surface in surfaces]
    assert np.median(errors) < 0.15 * depth_error(continuous, truth)


LEFT_OUT = pytest.mark.xfail(strict=True, reason="silhouettes of sheets without rounded rims are not found")


@pytest.mark.parametrize(
    "name", ["flaps", "torus", "cards", *(pytest.param(name, marks=LEFT_OUT) for name in ("steps", "spiral", "hole"))]
)
def test_sheets_of_paper(name):
    """Rims end without turning down. The others are found in parts, or not at all."""
    truth, _ = seen(name, "orthographic", 0.0)
    continuous = depth_error(made(name, "orthographic", 0.0, discontinuities=False), truth)
    surface = made(name, "orthographic", 0.0)
    precision, _ = precision_and_recall(surface, truth)
    assert precision > 0.8
    assert depth_error(surface, truth) < 0.5 * continuous


@each_camera
@pytest.mark.parametrize("refine", [0, 6])
def test_a_smooth_component_next_to_a_cut_one_is_continuous(camera, refine):
    size = 96
    torn, smooth = scene("flaps", size), Scene.of(dome(size), (size, size))
    halves = (
        (torn.heights, smooth.heights),
        (torn.slopes, smooth.slopes),
        (torn.layer, smooth.layer),
    )
    both = Scene(*(np.concatenate(pair, axis=1) for pair in halves))
    mask = np.ones(both.heights.shape, bool)
    mask[:, size - 2 : size + 2] = False
    normal_map = both.normal_map(CAMERAS[camera], mask)
    mesh = decimate(normal_map, vertices=1000)
    surface = integrate(mesh, normal_map, refine=refine, discontinuities=True)
    continuous = integrate(mesh, normal_map, refine=refine, discontinuities=False)
    right = np.s_[:, size + 2 :]
    # Either may be solved iteratively, to 1e-7 px.
    assert np.abs(heights_of(surface)[right] - heights_of(continuous)[right]).max() < 2e-7
    left = np.s_[:, : size - 2]
    assert np.abs(heights_of(surface)[left] - heights_of(continuous)[left]).max() > 5
    found = surface.discontinuities
    assert len(found.screen) > 0
    assert found.screen[..., 0].max() < size - 1


@each_camera
def test_a_floating_part_is_reported_and_placed_by_a_control_point(camera):
    """A ball above a floor is a smooth surface, too: only its outline, if it is given, tells it from a bump.

    With control points on ball and floor, there is no report.
    """
    truth = Scene.of(ball(128), (128, 128))
    normal_map = truth.normal_map(CAMERAS[camera])
    on_ball = truth.layer == 1
    jumps = find_jumps(normal_map, on_ball & ~ndimage.binary_erosion(on_ball))

    def offsets(surface):
        error = heights_of(surface) - truth.heights
        return np.median(error[on_ball]), np.median(error[~on_ball])

    def part_of_the_ball(surface):
        return surface.discontinuities.parts[surface.owners()[1][64, 64]]

    mesh = decimate(normal_map, vertices=VERTICES, jumps=jumps)
    free = integrate(mesh, normal_map, jumps=jumps)
    found, part = free.discontinuities, part_of_the_ball(free)
    assert found.undetermined[part]
    assert 0.8 * on_ball.sum() < found.part_areas[part] < 1.05 * on_ball.sum()
    assert "whose distance is a guess" in str(found)
    ball_error, floor_error = offsets(free)
    assert ball_error - floor_error < -20
    depth = truth.depth(CAMERAS[camera])
    points = [[j + 0.5, i + 0.5, depth[i, j]] for i, j in ((64, 64), (10, 10))]
    placed = integrate(mesh, normal_map, jumps=jumps, prior=points)
    assert not placed.discontinuities.undetermined[part_of_the_ball(placed)]
    ball_error, floor_error = offsets(placed)
    assert abs(ball_error) < 0.3
    assert abs(floor_error) < 0.3
    only_ball = integrate(mesh, normal_map, jumps=jumps, prior=points[:1])
    assert not only_ball.discontinuities.undetermined[part_of_the_ball(only_ball)]
    assert abs(offsets(only_ball)[0]) < 0.5


def test_locked_pixels_stay_next_to_cuts():
    truth, normal_map = seen("flaps", "orthographic")
    locked = np.zeros(normal_map.shape, bool)
    locked[40:44, 62:78] = locked[100:104, 10:14] = True
    surface = reconstruct(normal_map, vertices=VERTICES, decimation={"locked": locked}, discontinuities=True)
    corners = {(u, v) for u in range(62, 79) for v in range(40, 45)} | {
        (u, v) for u in range(10, 15) for v in range(100, 105)
    }
    assert corners <= {tuple(corner) for corner in surface.screen.tolist()}
    assert surface.mesh.check().ok
    precision, recall = precision_and_recall(surface, truth)
    assert precision > 0.9
    assert recall > 0.93


@each_camera
@pytest.mark.parametrize("suffix", ["ply", "obj", "glb", "stl"])
def test_cut_surfaces_are_saved(tmp_path, camera, suffix):
    surface = made("flaps", camera)
    path = tmp_path / f"flaps.{suffix}"
    surface.save(path)
    data, faces = path.read_bytes(), len(surface.all_faces)
    vertices = len(surface.vertices) + len(np.unique(surface.walls))  # walls have copies
    if suffix == "ply":
        assert f"element vertex {vertices}\n".encode() in data
        assert f"element face {faces}\n".encode() in data
    elif suffix == "obj":
        lines = data.decode().splitlines()
        assert sum(line.startswith("v ") for line in lines) == vertices
        assert sum(line.startswith("f ") for line in lines) == faces
    elif suffix == "glb":
        assert data[:4] == b"glTF"
        assert int.from_bytes(data[8:12], "little") == len(data)
    else:
        assert int.from_bytes(data[80:84], "little") == faces
