"""A new kind of camera is one new class: cameras defined here pass through the whole package."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import normalmesh as nm
from normalmesh.evaluation.rendering.rendering import cast
from normalmesh.evaluation.synthetic.analytic import sphere, waves
from normalmesh.normals.camera import CentralCamera, ParallelCamera
from normalmesh.output.mesh_formats import WRITTEN_SUFFIXES

SHAPE = (48, 56)
PACKAGE = Path(nm.__file__).parent
#: Classes of cameras, which only the module of cameras may ask for.
CLASSES = {"Camera", "ParallelCamera", "CentralCamera", "Orthographic", "Perspective"}


@dataclass(frozen=True)
class Oblique(ParallelCamera):
    """Parallel rays that are not orthogonal to the image: a point is (s·u + a·z, −s·v + b·z, z)."""

    pixel_size: float
    a: float
    b: float

    @property
    def frame(self):
        s = self.pixel_size
        return np.array([[s, 0, 0], [0, -s, 0], [self.a, self.b, 1], [0, 0, 0], [0, 0, 0]])

    def points(self, screen, unknown):
        u, v = np.moveaxis(np.asarray(screen, float), -1, 0)
        return self.ray_starts(u, v) + np.asarray(unknown)[..., None] * self.rays(u, v)

    def describe(self):
        return f"oblique, direction ({self.a:g}, {self.b:g}, 1)"


@dataclass(frozen=True)
class Turned(CentralCamera):
    """A pinhole whose image is turned around the optical axis by an angle in degrees."""

    focal_length: float
    centre: tuple[float, float]
    angle: float

    @property
    def frame(self):
        cosine, sine = np.cos(np.radians(self.angle)), np.sin(np.radians(self.angle))
        along_u = np.array([cosine, sine, 0]) / self.focal_length
        along_v = np.array([sine, -cosine, 0]) / self.focal_length
        origin = [0, 0, -1] - self.centre[0] * along_u - self.centre[1] * along_v
        return np.array([along_u, along_v, origin, along_u, along_v])

    def describe(self):
        return f"turned by {self.angle:g}°"


CAMERAS = [Oblique(1.0, 0.3, -0.2), Turned(80.0, (28.0, 24.0), 35.0)]
each_camera = pytest.mark.parametrize("camera", CAMERAS, ids=lambda camera: type(camera).__name__)


@each_camera
def test_the_frame_is_what_points_say(camera):
    """Rays and tangents are the derivatives of points by the unknown, and at a fixed one by the position."""
    screen, unknown, step = np.array([[12.5, 20.0], [40.0, 3.5]]), np.array([0.4, 0.9]), 1e-6
    here = camera.points(screen, unknown)
    scale = camera.depth_per_unknown(camera.depth(here))[:, None]
    by_unknown = (camera.points(screen, unknown + step) - here) / step
    np.testing.assert_allclose(by_unknown, scale * camera.rays(*screen.T), atol=1e-4)
    for axis, tangent in enumerate(camera.tangents):
        moved = camera.points(screen + step * np.eye(2)[axis], unknown)
        np.testing.assert_allclose((moved - here) / step, scale * np.tile(tangent, (2, 1)), atol=1e-4)
    np.testing.assert_allclose(camera.unknown_of_depth(camera.depth(here)), unknown)
    np.testing.assert_allclose(camera.depth_of_unknown(unknown), camera.depth(here))


@each_camera
@pytest.mark.parametrize("surface", [sphere, waves])
def test_reconstruction_and_evaluation(camera, surface):
    case = surface(SHAPE, camera)
    options = {"distance": camera.reference_depth} if camera.is_central else {}
    found = nm.reconstruct(case.normal_map, vertices=300, **options)
    assert found.camera == camera
    result = nm.evaluate(found, case)
    size = np.ptp(case.depth[case.normal_map.mask])
    assert result.mae < 8
    assert result.rmse < 0.02 * size
    depth = nm.integrate_pixels(case.normal_map, **options)
    assert nm.evaluate(depth, case).rmse < 0.02 * size


@each_camera
def test_prior(camera):
    """Control points fix the height or the scale that normals leave open."""
    case = waves(SHAPE, camera)
    wanted = 2 * case.depth if camera.is_central else case.depth + 5
    prior = [[u + 0.5, v + 0.5, wanted[v, u]] for u, v in ((10, 10), (40, 12), (20, 40))]
    found = nm.reconstruct(case.normal_map, vertices=200, prior=prior)
    assert np.nanmean(found.depth_map() - wanted) == pytest.approx(0, abs=0.02 * np.ptp(wanted))


@each_camera
@pytest.mark.parametrize("suffix", WRITTEN_SUFFIXES)
def test_files(camera, suffix, tmp_path):
    """A file that is seen through the same camera again shows what it was made from."""
    pytest.importorskip("embreex")
    case = sphere(SHAPE, camera)
    found = nm.reconstruct(case.normal_map, vertices=300)
    normals = case.normal_map if suffix == ".glb" else None
    found.save(tmp_path / f"sphere{suffix}", normals=normals)
    direct, read = nm.evaluate(found, case), nm.evaluate(tmp_path / f"sphere{suffix}", case)
    assert read.mae == pytest.approx(direct.mae, abs=0.05)
    assert read.rmse == pytest.approx(direct.rmse, rel=0.02)


@each_camera
def test_rendering(camera):
    """Rendered depths and normals agree with those that the surface has on the screen."""
    pytest.importorskip("embreex")
    case = sphere(SHAPE, camera)
    found = nm.reconstruct(case.normal_map, vertices=300)
    _, depth = cast(found.vertices, found.faces, camera, SHAPE)
    both = np.isfinite(depth) & np.isfinite(found.depth_map())
    assert np.count_nonzero(both) > 0.97 * case.normal_map.foreground
    np.testing.assert_allclose(depth[both], found.depth_map()[both], atol=1e-4 * np.ptp(depth[both]))
    rendered = nm.render_normal_map((found.vertices, found.faces), SHAPE, camera, pose=np.eye(4), smooth=False)
    angles = np.degrees(np.arccos(np.clip((rendered.normals * found.normal_map()).sum(axis=-1)[both], -1, 1)))
    assert np.median(angles) < 0.1
    fitted = nm.render_normal_map((found.vertices, found.faces), SHAPE, camera)
    rows, columns = np.nonzero(fitted.normal_map.mask)
    assert np.ptp(columns) > 0.6 * SHAPE[1] or np.ptp(rows) > 0.6 * SHAPE[0]


@each_camera
def test_pictures_and_pages(camera, tmp_path):
    case = sphere(SHAPE, camera)
    found = nm.reconstruct(case.normal_map, vertices=300)
    nm.write_report(tmp_path / "page.html", found, case.normal_map)
    assert (tmp_path / "page.html").stat().st_size > 10_000


def _trees():
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name not in ("normals/camera.py", "normals/_camera.py"):
            yield name, ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def _names(node):
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} | {
        each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)
    }


def test_nobody_else_asks_for_the_class_of_a_camera():
    found = []
    for name, nodes in _trees():
        for node in nodes:
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if is_call and node.func.id in ("isinstance", "issubclass") and _names(node.args[1]) & CLASSES:
                found.append(f"{name}:{node.lineno}")
            if isinstance(node, ast.MatchClass) and _names(node.cls) & CLASSES:
                found.append(f"{name}:{node.lineno}")
    assert not found


def test_nobody_else_indexes_the_frame_of_a_camera():
    found = [
        f"{name}:{node.lineno}"
        for name, nodes in _trees()
        for node in nodes
        if isinstance(node, ast.Subscript) and getattr(node.value, "id", getattr(node.value, "attr", "")) == "frame"
    ]
    assert not found


def test_no_other_kernel_takes_a_camera_apart():
    found = [
        f"{name}:{node.lineno}"
        for name, nodes in _trees()
        for node in nodes
        if "/_" in name and getattr(node, "attr", getattr(node, "arg", "")) in ("frame", "is_central")
    ]
    assert not found
