"""Test depth discontinuities on scenes of layers that occlude each other, with exact truth, for both cameras.

Maps of 128 × 128 pixels, 800 vertices, default options. The table shows precision and recall of the cuts within 2 px of
the silhouette, and the RMS depth errors of the default and of the continuous surface, in px. Those of the torus vary
most: for 770 to 830 vertices the precision is 0.75 to 0.95, with the mean 0.885 that ``MEASURED`` contains.

======  ============  =========  ======  =====  ==========
scene   camera        precision  recall  error  continuous
======  ============  =========  ======  =====  ==========
steps   orthographic      0.989   1.000   1.08        4.48
steps   perspective       0.995   1.000   1.04        4.55
flaps   orthographic      0.998   1.000   1.36        6.00
flaps   perspective       0.997   1.000   1.21        5.65
torus   orthographic      0.827   0.923   2.29        5.85
torus   perspective       0.953   0.962   2.12        5.80
cards   orthographic      0.977   1.000   1.37        7.45
cards   perspective       0.996   1.000   1.03        7.49
spiral  orthographic      0.978   1.000   1.24        3.64
spiral  perspective       0.999   1.000   1.16        3.57
hole    orthographic      1.000   1.000   1.04        6.51
hole    perspective       1.000   1.000   0.93        6.62
======  ============  =========  ======  =====  ==========
"""

from functools import cache

import numpy as np
import pytest

from normalmesh import Orthographic, Perspective, decimate, integrate, reconstruct
from scenes import (
    SCENES,
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
    ("steps", "orthographic"): (0.989, 1.000, 0.241),
    ("steps", "perspective"): (0.995, 1.000, 0.229),
    ("flaps", "orthographic"): (0.998, 1.000, 0.227),
    ("flaps", "perspective"): (0.997, 1.000, 0.214),
    ("torus", "orthographic"): (0.885, 0.950, 0.385),
    ("torus", "perspective"): (0.885, 0.950, 0.385),
    ("cards", "orthographic"): (0.977, 1.000, 0.184),
    ("cards", "perspective"): (0.996, 1.000, 0.138),
    ("spiral", "orthographic"): (0.978, 1.000, 0.341),
    ("spiral", "perspective"): (0.999, 1.000, 0.325),
    ("hole", "orthographic"): (1.000, 1.000, 0.160),
    ("hole", "perspective"): (1.000, 1.000, 0.140),
}
#: Tolerance below (for the ratio, above) the measured values, because meshes vary, also with the processor.
TOLERANCE = {name: 0.14 if name == "torus" else 0.07 for name, _ in MEASURED}

each_camera = pytest.mark.parametrize("camera", CAMERAS)
each_scene = pytest.mark.parametrize(("name", "camera"), MEASURED, ids=["-".join(key) for key in MEASURED])


@cache
def seen(name, camera, rim=4.0):
    """Return a scene, its normal map and its decimated mesh."""
    truth = scene(name, rim=rim)
    normal_map = truth.normal_map(CAMERAS[camera])
    return truth, normal_map, decimate(normal_map, vertices=VERTICES)


@cache
def made(name, camera, **options):
    _, normal_map, mesh = seen(name, camera)
    return integrate(mesh, normal_map, **options)


@each_scene
def test_normals_agree_with_depths(name, camera):
    """At smooth pixels, which are most of them, differences of points are perpendicular to the normals."""
    truth, normal_map, _ = seen(name, camera)
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
    truth, _, _ = seen(name, camera)
    precision, recall = precision_and_recall(made(name, camera), truth)
    assert precision >= MEASURED[name, camera][0] - TOLERANCE[name]
    assert recall >= MEASURED[name, camera][1] - TOLERANCE[name]


@each_scene
def test_depth_is_better_than_continuous(name, camera):
    truth, _, _ = seen(name, camera)
    continuous = depth_error(made(name, camera, discontinuities=False), truth)
    assert depth_error(made(name, camera), truth) <= (MEASURED[name, camera][2] + TOLERANCE[name]) * continuous


@each_scene
def test_surfaces_are_valid(name, camera):
    _, normal_map, mesh = seen(name, camera)
    surface = made(name, camera)
    found = surface.discontinuities
    assert surface.mesh.check().ok
    assert np.isfinite(surface.depth_map()[normal_map.mask]).all()
    assert len(surface.vertices) > len(mesh.vertices)
    assert len(surface.faces) == len(mesh.faces) == len(found.parts)
    assert ((found.weights >= 0) & (found.weights <= 1)).all()
    assert found.weights[found.cut].max() < 0.01 < 0.5 < np.median(found.weights)
    assert np.isfinite(found.jumps).all()
    assert (np.linalg.norm(found.screen[:, 0] - found.screen[:, 1], axis=1) > 0).all()
    assert made(name, camera, discontinuities=False).discontinuities is None


@each_scene
def test_jumps_have_the_right_sign_and_size(name, camera):
    """The height difference between points 4 px on both sides of the silhouette is correct.

    Measured: the median error of drops of 10 to 23 px is 0.02 to 0.15 px, and at least 98 % have the right sign; the
    error of the continuous surface is 6 to 20 px. Thin faces along the silhouette divide a jump between the cuts on
    both of their sides, so that an edge has a part of it: 73 to 97 % of the edges have the sign of the whole jump.
    """
    truth, normal_map, _ = seen(name, camera)
    surface = made(name, camera)
    found, expected = drops_and_truth(surface, truth)
    clear = np.abs(expected) > 4
    errors = [np.median(np.abs(found - expected))]
    if name == "torus":
        # On one in ten meshes a part of the torus is placed wrongly, so that a single mesh does not measure much.
        for vertices in (VERTICES - 20, VERTICES + 20):
            other, expected_there = drops_and_truth(reconstruct(normal_map, vertices=vertices), truth)
            errors.append(np.median(np.abs(other - expected_there)))
    assert np.median(errors) < 0.3
    assert np.mean(np.sign(found[clear]) == np.sign(expected[clear])) > 0.95
    jumps, whole = jumps_and_truth(surface, truth)
    clear = np.abs(whole) > 2
    assert np.mean(np.sign(jumps[clear]) == np.sign(whole[clear])) > 0.6
    assert 0.15 * np.median(np.abs(whole)) < np.median(np.abs(jumps)) < 1.1 * np.median(np.abs(whole))
    uncut = ~surface.discontinuities.cut
    assert np.median(np.abs(surface.discontinuities.jumps[uncut])) < 0.02 * surface.camera.pixel_length


@each_camera
def test_cuts_without_refinement(camera):
    """Measured for the orthographic camera: precision 0.999, recall 1.000, error ratio 0.215."""
    truth, _, _ = seen("flaps", camera)
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
    truth, normal_map, _ = seen(name, "orthographic")
    rough = noisy(normal_map, 3.0)
    surfaces = [reconstruct(rough, vertices=VERTICES + more) for more in (0, 7, 14)]
    precision, recall = np.mean([precision_and_recall(surface, truth) for surface in surfaces], axis=0)
    assert precision > 0.85
    assert recall > 0.9
    continuous = reconstruct(rough, vertices=VERTICES, discontinuities=False)
    errors = [depth_error(surface, truth) for surface in surfaces]
    assert np.median(errors) < 0.35 * depth_error(continuous, truth)


@pytest.mark.parametrize("name", [name for name in SCENES if name != "torus"])
@pytest.mark.xfail(strict=True, reason="sheets without rounded rims are cut across smooth areas next to their jumps")
def test_sheets_of_paper(name):
    """Rims that end without turning down. Ratios: steps 1.04, flaps 1.23, cards 0.55, spiral 1.72, hole 1.08."""
    truth, normal_map, mesh = seen(name, "orthographic", 0.0)
    continuous = depth_error(integrate(mesh, normal_map, discontinuities=False), truth)
    surface = integrate(mesh, normal_map)
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
    surface = integrate(mesh, normal_map, refine=refine)
    continuous = integrate(mesh, normal_map, refine=refine, discontinuities=False)
    right = np.s_[:, size + 2 :]
    assert np.abs(heights_of(surface)[right] - heights_of(continuous)[right]).max() < 1e-9
    left = np.s_[:, : size - 2]
    assert np.abs(heights_of(surface)[left] - heights_of(continuous)[left]).max() > 5
    found = surface.discontinuities
    assert found.cut.any()
    assert found.screen[found.cut][..., 0].max() < size - 1


@each_camera
def test_a_floating_part_is_reported_and_placed_by_a_control_point(camera):
    """A ball is 77 px too low, and reported. With control points on it and on the floor, there is no report.

    Measured: the median errors of ball and floor are at most 0.05 px. In one mesh of three, an edge that fits by chance
    connects the ball to the floor: several meshes are tried.
    """
    truth = Scene.of(ball(128), (128, 128))
    normal_map = truth.normal_map(CAMERAS[camera])
    on_ball = truth.layer == 1

    def offsets(surface):
        error = heights_of(surface) - truth.heights
        return np.median(error[on_ball]), np.median(error[~on_ball])

    def part_of_the_ball(surface):
        return surface.discontinuities.parts[surface.owners()[1][64, 64]]

    for vertices in range(VERTICES, VERTICES + 50, 10):
        mesh = decimate(normal_map, vertices=vertices)
        free = integrate(mesh, normal_map)
        found, part = free.discontinuities, part_of_the_ball(free)
        if found.undetermined[part]:
            break
    assert found.undetermined[part]
    assert 0.5 * on_ball.sum() < found.part_areas[part] < 1.05 * on_ball.sum()
    assert "whose distance is a guess" in str(found)
    ball_error, floor_error = offsets(free)
    assert ball_error - floor_error < -20
    depth = truth.depth(CAMERAS[camera])
    points = [[j + 0.5, i + 0.5, depth[i, j]] for i, j in ((64, 64), (10, 10))]
    placed = integrate(mesh, normal_map, prior=points)
    assert not placed.discontinuities.undetermined[part_of_the_ball(placed)]
    ball_error, floor_error = offsets(placed)
    assert abs(ball_error) < 0.2
    assert abs(floor_error) < 0.2
    only_ball = integrate(mesh, normal_map, prior=points[:1])
    assert not only_ball.discontinuities.undetermined[part_of_the_ball(only_ball)]
    assert abs(offsets(only_ball)[0]) < 0.5


def test_locked_pixels_stay_next_to_cuts():
    truth, normal_map, _ = seen("flaps", "orthographic")
    locked = np.zeros(normal_map.shape, bool)
    locked[40:44, 62:78] = locked[100:104, 10:14] = True
    mesh = decimate(normal_map, vertices=VERTICES, locked=locked)
    surface = integrate(mesh, normal_map)
    corners = {tuple(corner) for corner in mesh.vertices[mesh.locked]}
    assert len(corners) == 5 * 17 + 5 * 5
    assert corners <= {tuple(corner) for corner in surface.screen}
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
    data = path.read_bytes()
    if suffix == "ply":
        assert f"element vertex {len(surface.vertices)}\n".encode() in data
        assert f"element face {len(surface.faces)}\n".encode() in data
    elif suffix == "obj":
        lines = data.decode().splitlines()
        assert sum(line.startswith("v ") for line in lines) == len(surface.vertices)
        assert sum(line.startswith("f ") for line in lines) == len(surface.faces)
    elif suffix == "glb":
        assert data[:4] == b"glTF"
        assert int.from_bytes(data[8:12], "little") == len(data)
    else:
        assert int.from_bytes(data[80:84], "little") == len(surface.faces)
