"""Test the renderer: position, depth and normals."""

import subprocess
import sys

import numpy as np
import pytest
import trimesh

from depth_normals import angles_to_depth
from normalmesh import NormalMeshError, NormalMeshWarning, Orthographic, Perspective, Surface, render_normal_map
from normalmesh.evaluation.metrics import angles_between
from normalmesh.evaluation.rendering.rendering import cast
from normalmesh.evaluation.synthetic import analytic
from normalmesh.evaluation.synthetic.models import knot, stone, vase

pytest.importorskip("embreex")

CAMERAS = ["orthographic", "perspective"]


def corner_model():
    """Return a large triangle at the lower left and a small, nearer one at the upper right."""
    vertices = [[0, 0, 0], [2, 0, 0], [0, 4, 0], [2.5, 3.5, 1], [3, 3.5, 1], [3, 4, 1]]
    return np.array(vertices, float), np.array([[0, 1, 2], [3, 4, 5]])


def seen_normals(case):
    return case.normals[case.normal_map.mask]


@pytest.mark.parametrize("camera", CAMERAS)
@pytest.mark.parametrize("model", [stone, knot, vase])
def test_smooth_normals_are_those_of_the_depth(model, camera):
    case = render_normal_map(model(), 1024, camera)
    error = angles_to_depth(case)
    assert np.nanmedian(error) < 0.5
    assert np.array_equal(np.isfinite(case.depth), case.normal_map.mask)
    repairs = case.normal_map.repairs
    assert repairs.invalid == repairs.rescaled == repairs.back_facing == 0


@pytest.mark.parametrize("camera", CAMERAS)
def test_flat_normals_are_exactly_those_of_the_depth(camera):
    case = render_normal_map(stone(2), 200, camera, smooth=False)
    error = angles_to_depth(case)
    assert np.nanquantile(error, 0.5) < 1e-4
    faces = np.unique(seen_normals(case), axis=0)
    assert len(faces) < 20 * 4**2
    smooth = render_normal_map(stone(2), 200, camera)
    assert np.array_equal(smooth.depth, case.depth, equal_nan=True)
    assert np.median(angles_between(smooth.normals, case.normals)[case.normal_map.mask]) > 2


@pytest.mark.parametrize("camera", [*CAMERAS, Orthographic(0.1), Perspective(150, 170, 70, 40, skew=5)], ids=str)
def test_a_sphere_of_many_faces_is_the_analytic_one(camera):
    truth = analytic.sphere((100, 120), camera)
    space = truth.normal_map.camera
    centre, radius = analytic._ball(space, (100, 120), 45)
    ball = trimesh.creation.icosphere(subdivisions=6, radius=radius)
    pose = np.eye(4)
    pose[:3, 3] = centre
    case = render_normal_map(ball, (100, 120), space, pose=pose)
    both = truth.normal_map.mask
    assert case.normal_map.mask[both].all()
    assert np.abs(case.depth - truth.depth)[both].max() < 2e-3 * radius
    assert angles_between(case.normals, truth.normals)[both].max() < 0.05


@pytest.mark.parametrize("camera", CAMERAS)
def test_x_is_right_y_is_up_and_rows_go_down(camera):
    case = render_normal_map(corner_model(), (80, 60), camera, margin=0)
    rows, columns = np.nonzero(case.normal_map.mask)
    large = np.isclose(case.depth, np.median(case.depth[rows, columns]))
    assert case.normal_map.mask[rows.max() - 1, columns.min() + 1]  # the right angle, lower left
    assert not case.normal_map.mask[rows.max() - 1, columns.max() - 1]
    assert not case.normal_map.mask[rows.min() + 1, 30]
    assert np.nonzero(~large & case.normal_map.mask)[0].max() < 25  # the small triangle is above
    assert np.nonzero(~large & case.normal_map.mask)[1].min() > 40  # and to the right of the large one
    small = case.depth[~large & case.normal_map.mask]
    nearer = small.min() > np.nanmin(case.depth) if camera == "orthographic" else small.max() < np.nanmax(case.depth)
    assert nearer
    assert np.allclose(seen_normals(case), [0, 0, 1])


def test_pixel_centres_are_at_one_half():
    """A triangle covers exactly the centre of one pixel."""
    triangle = [[5.4, -3.6, 7], [5.6, -3.6, 7], [5.5, -3.4, 7]]
    case = render_normal_map((triangle, [[0, 1, 2]]), (8, 9), Orthographic(), pose=np.eye(4))
    assert np.argwhere(case.normal_map.mask).tolist() == [[3, 5]]
    assert case.depth[3, 5] == 7
    camera = Perspective(10, 12, 4, 3)
    at_depth = [
        [(5.5 - 4 + dx) / 10 * 2, -(3.5 - 3 - dy) / 12 * 2, -2] for dx, dy in ((-0.1, 0.1), (0.1, 0.1), (0, -0.1))
    ]
    case = render_normal_map((at_depth, [[0, 1, 2]]), (8, 9), camera, pose=np.eye(4))
    assert np.argwhere(case.normal_map.mask).tolist() == [[3, 5]]
    assert np.isclose(case.depth[3, 5], 2, rtol=1e-12)


@pytest.mark.parametrize("camera", [Orthographic(0.02), Perspective(300, 280, 61, 47, skew=3)], ids=str)
def test_rendering_agrees_with_the_rasteriser(camera):
    """Depth and normals of a rendered surface agree with those of its own rasteriser to the last digits."""
    rng = np.random.default_rng(2)
    v, u = np.mgrid[0:97:8, 0:121:8].astype(float)
    inner = (slice(1, -1), slice(1, -1))
    u[inner] += rng.uniform(-2, 2, u[inner].shape)
    v[inner] += rng.uniform(-2, 2, v[inner].shape)
    corners = np.arange(u.size).reshape(u.shape)
    a, b, c, d = (corners[:-1, :-1], corners[1:, :-1], corners[1:, 1:], corners[:-1, 1:])
    faces = np.concatenate([np.stack(each, axis=-1).reshape(-1, 3) for each in ((a, b, c), (a, c, d))])
    screen = np.stack([u, v], axis=-1).reshape(-1, 2)
    unknown = 2 + 0.02 * rng.normal(size=len(screen))
    surface = Surface(camera.points(screen, unknown), faces, screen, camera, (96, 120))
    hits, depth = cast(surface.vertices, surface.faces, camera, (96, 120))
    _, owners = surface.owners()
    assert (hits != owners).mean() < 0.01  # pixel centres exactly on an edge belong to either face
    assert np.allclose(depth, surface.depth_map(), rtol=1e-11)
    case = render_normal_map((surface.vertices, faces), (96, 120), camera, pose=np.eye(4), smooth=False)
    same = hits == owners
    assert np.allclose(case.normals[same], surface.normal_map()[same], atol=1e-6)


@pytest.mark.parametrize("suffix", ["ply", "obj", "stl", "glb"])
@pytest.mark.parametrize("camera", CAMERAS)
def test_formats(tmp_path, suffix, camera):
    model = stone(4)
    path = tmp_path / f"pebble.{suffix}"
    model.export(path)
    case, expected = render_normal_map(path, 90, camera), render_normal_map(model, 90, camera)
    assert case.name == "pebble"
    both = case.normal_map.mask & expected.normal_map.mask
    assert (case.normal_map.mask ^ expected.normal_map.mask).sum() < 5
    assert np.abs(case.depth - expected.depth)[both].max() < 0.01
    assert np.quantile(angles_between(case.normals, expected.normals)[both], 0.999) < 0.05
    assert expected.name == "model"


def test_transformations_of_scenes_are_applied(tmp_path):
    scene = trimesh.Scene()
    for x in (-2.0, 2.0):
        turn = trimesh.transformations.rotation_matrix(np.radians(90), [0, 0, 1], [0, 0, 0])
        scene.add_geometry(
            trimesh.creation.box((2, 1, 1)), transform=trimesh.transformations.translation_matrix([x, 0, 0]) @ turn
        )
    scene.export(tmp_path / "boxes.glb")
    case = render_normal_map(tmp_path / "boxes.glb", (40, 100), margin=0)
    columns = case.normal_map.mask.any(axis=0)
    assert columns[[0, 19, 80, 99]].all()
    assert not columns[22:78].any()
    assert case.normal_map.mask[:, 10].all()  # rotated: 1 wide, 2 high


def test_normals_of_the_file_are_kept(tmp_path):
    """A box with normals in the file has flat faces; one without normals is shaded smoothly."""
    box = trimesh.creation.box()
    turn = trimesh.transformations.euler_matrix(0.5, 0.6, 0.1)[:3, :3]
    soup = trimesh.Trimesh(box.triangles.reshape(-1, 3), np.arange(36).reshape(-1, 3), process=False)
    soup.vertex_normals = np.repeat(box.face_normals, 3, axis=0)
    for suffix in ("glb", "ply", "obj"):
        soup.export(
            tmp_path / f"flat.{suffix}",
            **({} if suffix == "glb" else {"vertex_normal": True} if suffix == "ply" else {"include_normals": True}),
        )
        case = render_normal_map(tmp_path / f"flat.{suffix}", 60, pose=turn)
        assert len(np.unique(seen_normals(case).round(4), axis=0)) == 3
    soup.export(tmp_path / "round.stl")
    with pytest.warns(NormalMeshWarning, match="clamped to 85°"):
        case = render_normal_map(tmp_path / "round.stl", 60, pose=turn)
    assert len(np.unique(seen_normals(case).round(4), axis=0)) > 100
    flat = render_normal_map(tmp_path / "round.stl", 60, pose=turn, smooth=False)
    assert len(np.unique(seen_normals(flat).round(4), axis=0)) == 3


def test_pose_rotates_the_model():
    turn = trimesh.transformations.euler_matrix(0.4, -0.7, 1.1)
    model = stone(3)
    case = render_normal_map(model, 80, pose=turn[:3, :3])
    expected = render_normal_map(model.copy().apply_transform(turn), 80)
    assert np.allclose(case.depth, expected.depth, equal_nan=True)
    assert np.allclose(case.normals, expected.normals, atol=1e-5)
    # If the model is fitted, translation and scale of the pose have no effect.
    turn[:3, :3] *= 7
    turn[:3, 3] = [100, 20, 3]
    assert np.allclose(render_normal_map(model, 80, pose=turn).depth, case.depth, equal_nan=True)


def test_metric_depth_is_not_fitted():
    camera, pose = Perspective(400, 400, 50, 50), np.eye(4)
    pose[:3, 3] = [10, 20, -1500]
    case = render_normal_map(trimesh.creation.icosphere(4, radius=60), 100, camera, pose=pose, units="mm")
    assert case.units == "mm"
    assert np.isclose(np.nanmin(case.depth), 1440, atol=1)
    rows, columns = np.nonzero(case.normal_map.mask)
    assert np.isclose(columns.mean() + 0.5, 50 + 400 * 10 / 1500, atol=0.2)
    assert np.isclose(rows.mean() + 0.5, 50 - 400 * 20 / 1500, atol=0.2)


@pytest.mark.parametrize("camera", CAMERAS)
def test_normals_of_back_faces_are_flipped(camera):
    model = stone(3)
    inverted = model.copy()
    inverted.invert()
    case, expected = render_normal_map(inverted, 70, camera), render_normal_map(model, 70, camera)
    assert np.allclose(case.depth, expected.depth, equal_nan=True)
    assert np.allclose(case.normals, expected.normals, atol=1e-5)
    # The faces have the opposite orientation of the normals of the model.
    inverted.vertex_normals = model.vertex_normals
    assert np.allclose(render_normal_map(inverted, 70, camera).normals, expected.normals, atol=1e-5)


@pytest.mark.parametrize("camera", CAMERAS)
def test_the_model_fills_the_image(camera):
    for shape in ((100, 60), (60, 100)):
        mask = render_normal_map(knot(200, 24), shape, camera, margin=0.1).normal_map.mask
        rows, columns = np.nonzero(mask)
        room = [0.1 * shape[0] - 1, 0.1 * shape[1] - 1]
        free = [rows.min(), shape[0] - 1 - rows.max()], [columns.min(), shape[1] - 1 - columns.max()]
        assert min(free[0]) >= room[0]
        assert min(free[1]) >= room[1]
        assert min(min(free[0]) - room[0], min(free[1]) - room[1]) <= 2.5


@pytest.mark.parametrize("size", [(1, 41), (41, 1), 1, (3, 201)])
@pytest.mark.parametrize("camera", CAMERAS)
def test_narrow_images(size, camera):
    case = render_normal_map(stone(3), size, camera, margin=0)
    assert case.depth.shape == ((size, size) if isinstance(size, int) else size)
    assert case.normal_map.foreground > 0


def test_far_and_tiny_models():
    """Georeferenced coordinates and micrometres are rendered as precisely as others."""
    model = stone(4)
    expected = render_normal_map(model, 80)
    for scale, shift in ((1e-6, 0.0), (1.0, 4e6), (1e6, 0.0)):
        case = render_normal_map((model.vertices * scale + shift, model.faces), 80)
        assert (case.normal_map.mask ^ expected.normal_map.mask).sum() < 5
        assert np.nanmax(np.abs(case.depth - expected.depth)) < 1e-3
        assert (
            np.nanmax(angles_between(case.normals, expected.normals)[case.normal_map.mask & expected.normal_map.mask])
            < 0.1
        )


def test_camera_inside_a_box():
    """Faces extend behind a perspective camera."""
    camera = Perspective(40, 40, 32, 24)
    case = render_normal_map(trimesh.creation.box((4, 4, 4)), (48, 64), camera, pose=np.eye(4), smooth=False)
    assert case.normal_map.mask.all()
    assert np.isclose(case.depth[24, 32], 2)
    assert np.allclose(case.normals[24, 32], [0, 0, 1])
    assert np.allclose(case.normals[24, 0], [0, 0, 1]) or np.allclose(case.normals[24, 0], [1, 0, 0])
    wide = render_normal_map(
        trimesh.creation.box((4, 4, 4)), (48, 64), Perspective(20, 20, 32, 24), pose=np.eye(4), smooth=False
    )
    assert np.allclose(wide.normals[24, 0], [1, 0, 0])
    assert np.allclose(wide.normals[0, 32], [0, -1, 0])


def test_unusable_models(tmp_path):
    (tmp_path / "text.txt").write_text("no model")
    (tmp_path / "broken.ply").write_bytes(
        b"ply\nformat binary_little_endian 1.0\nelement vertex 9\nproperty float x\nend_header\n"
    )
    trimesh.PointCloud(np.eye(3)).export(tmp_path / "points.ply")
    (tmp_path / "empty.stl").write_bytes(b"")
    points, faces = corner_model()
    bad = points.copy()
    bad[1, 2] = np.nan
    for model, message in (
        (tmp_path / "none.ply", "no such file"),
        (tmp_path, "is a folder"),
        (tmp_path / "empty.stl", "is empty"),
        (tmp_path / "text.txt", "a mesh must be one of .ply, .obj"),
        (tmp_path / "broken.ply", "cannot be read as a triangle mesh|no triangles|no faces"),
        (tmp_path / "points.ply", "no triangles"),
        ((points, np.zeros((0, 3), int)), "no faces"),
        ((points, [[0, 1, 9]]), "there are 6 vertices"),
        ((points, [[0.5, 1, 2]]), "whole numbers"),
        ((points[:, :2], faces), "shape"),
        ((bad, faces), "not finite"),
        ((np.zeros((3, 3)), [[0, 1, 2]]), "no extent"),
        (5, "model must be"),
        (trimesh.Trimesh(), "no faces"),
    ):
        with pytest.raises(NormalMeshError, match=message):
            render_normal_map(model, 32)


def test_wrong_options():
    model = corner_model()
    behind = np.eye(4)
    behind[2, 3] = 10
    for options, message in (
        ({"size": 0}, "size must be"),
        ({"size": (4, 5, 6)}, "size must be"),
        ({"camera": "fisheye"}, "camera must be"),
        ({"margin": 0.5}, "margin must be"),
        ({"pose": np.eye(2)}, "3×3 or 4×4"),
        ({"pose": np.full((3, 3), np.nan)}, "finite"),
        ({"pose": "front"}, "numbers"),
        ({"pose": np.diag([1, 1, -1])}, "reflection"),
        ({"pose": np.diag([1, 2, 1])}, "rotation"),
        ({"pose": np.eye(4) + np.eye(4)[::-1] * 0.5}, "last row"),
        ({"pose": behind, "camera": Perspective(30, 30, 16, 16)}, "behind the camera"),
        ({"pose": np.eye(4), "camera": Orthographic()}, "the model is outside the image"),
    ):
        with pytest.raises(NormalMeshError, match=message):
            render_normal_map(**{"model": model, "size": 32, **options})


def test_wrong_meshes_to_cast():
    points, faces = corner_model()
    for vertices, corners in (
        (points, faces[:0]),
        (points, faces + 9),
        (np.full_like(points, np.inf), faces),
        (points[:, 1:], faces),
    ):
        with pytest.raises(NormalMeshError, match="the mesh: "):
            cast(vertices, corners, Orthographic(), (8, 8))
    # Unused vertices may have any value.
    hits, depth = cast([*points, [np.nan] * 3], faces, Orthographic(), (8, 8))
    assert hits.max() == -1
    assert np.isnan(depth).all()


def test_missing_embree():
    code = (
        "import sys; sys.modules['embreex'] = None\n"
        "from normalmesh import render_normal_map\n"
        "try: render_normal_map(([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]), 8)\n"
        "except ValueError as error: print(error)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'normalmesh[render]'" in result.stdout


@pytest.mark.parametrize("scale", [1e-300, 1e-120, 1e120, 1e300])
def test_models_of_any_size_are_smooth(scale):
    """A fold of two faces: with vertex normals, its ridge is smooth."""
    vertices, faces = np.array([[0, 0, 0], [1, 0, 1], [1, 2, 1], [2, 0, 0]], float), [[0, 1, 2], [1, 3, 2]]
    expected = render_normal_map((vertices, faces), 16).normals
    assert len(np.unique(expected[..., 0])) > 10
    np.testing.assert_allclose(render_normal_map((scale * vertices, faces), 16).normals, expected, atol=1e-5)
