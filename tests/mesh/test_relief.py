"""Test the exaggeration of the relief."""

import re

import numpy as np
import pytest
import trimesh

from normalmesh import (
    NormalMeshError,
    Orthographic,
    Perspective,
    ScreenMesh,
    Surface,
    from_gradients,
    from_heights,
    reconstruct,
)
from normalmesh.mesh.relief import normals_of_relief
from normalmesh.output.textures import normal_texture, tangent_frames
from normalmesh.pictures.preview import _Panels
from normalmesh.report.page import surface_page

MESH = ScreenMesh(np.array([[0.0, 0], [0, 8], [8, 0]]), np.array([[0, 1, 2]], np.int32))


def test_heights_and_normals_agree():
    surface = Surface.from_unknown(MESH, np.array([1.0, 2, 4]), Orthographic(0.5), (8, 8))
    strong = surface.exaggerated(3).exaggerated(0.5)
    np.testing.assert_allclose(strong.vertices, surface.vertices * [1, 1, 1.5])
    assert (surface.strength, strong.strength) == (1, 1.5)


@pytest.mark.parametrize("scale", [1, 2])
@pytest.mark.parametrize(
    "changed",
    [
        lambda surface: surface.exaggerated(-2),
        lambda surface: surface.flattened("quadratic"),
        lambda surface: surface.exaggerated(0.5).flattened("quadratic").exaggerated(-3),
    ],
)
def test_normals_of_the_map_follow_the_relief(changed, scale):
    rows, columns, pixel = 12, 16, 0.5
    mesh, camera = ScreenMesh.from_mask(np.ones((rows, columns))), Orthographic(pixel)

    def heights(x, y):
        return 0.006 * x**2 - 0.01 * x * y + 0.03 * y + 0.1 * np.sin(x)

    x, y, _ = camera.points(mesh.vertices, np.zeros(len(mesh.vertices))).T
    surface = changed(Surface.from_unknown(mesh, heights(x, y), camera, (rows, columns), "mm"))
    fine = Orthographic(pixel / scale)
    v, u = np.mgrid[: rows * scale, : columns * scale] + 0.5
    x, y, _ = np.moveaxis(fine.points(np.stack([u, v], axis=-1), np.zeros(u.shape)), -1, 0)
    found = normals_of_relief(surface, from_heights(heights(x, y), camera=fine)).normals
    expected = surface.strength * heights(x, y)
    if surface.flattening is not None:
        expected = expected - surface.flattening.heights(x.ravel(), y.ravel(), np.zeros(x.size, int)).reshape(x.shape)
    inner = np.s_[1:-1, 1:-1]
    np.testing.assert_allclose(found[inner], from_heights(expected, camera=fine).normals[inner], atol=1e-5)


def gentle_map():
    """Return the normals of waves on a tilted plane."""
    v, u = np.mgrid[:16, :20].astype(float)
    return from_heights(0.05 * u + 0.8 * np.sin(u / 3) * np.cos(v / 4))


def test_a_glb_file_is_shaded_like_its_relief(tmp_path):
    normal_map = gentle_map()
    surface = reconstruct(normal_map, vertices=60).flattened("plane").exaggerated(2)
    surface.save(tmp_path / "given.glb", normals=normal_map)
    image = trimesh.load_mesh(tmp_path / "given.glb").visual.material.normalTexture
    frames = tangent_frames(surface)
    expected = normal_texture(surface, normals_of_relief(surface, normal_map), frames)
    np.testing.assert_array_equal(np.asarray(image), expected)
    assert not np.array_equal(expected, normal_texture(surface, normal_map, frames))


def test_normals_of_a_map_that_repeats_have_no_mean_slope():
    v, u = np.mgrid[:16, :16] + 0.5
    right, up = 0.4 * np.cos(np.pi * u / 8), 0.3 * np.sin(np.pi * v / 8)
    surface = reconstruct(from_gradients(right + 0.01, up - 0.005), vertices=60, tileable=True).exaggerated(2)
    found = normals_of_relief(surface, from_gradients(right + 0.01, up - 0.005)).normals
    np.testing.assert_allclose(found, from_gradients(2 * right, 2 * up).normals, atol=2e-3)


def test_reports_compare_what_was_measured_with_the_normals():
    normal_map = gentle_map()
    surface = reconstruct(normal_map, vertices=60)
    changed = surface.exaggerated(0.5).flattened("quadratic")
    pages = [surface_page(each, normal_map).decode() for each in (surface, changed)]
    means = [re.search(r"Mean angular error</dt><dd>([^<]*)<", page)[1] for page in pages]
    assert means[0] == means[1]
    figures = [_Panels(each, normal_map).figures() for each in (surface, changed)]
    assert figures[0] == figures[1]


@pytest.mark.parametrize("strength", [0, np.nan, "2", None])
def test_bad_factors(strength):
    with pytest.raises(NormalMeshError, match="strength must be a finite number other than 0"):
        Surface.from_unknown(MESH, np.zeros(3), Orthographic(), (8, 8)).exaggerated(strength)


def test_perspective_is_refused():
    with pytest.raises(NormalMeshError, match="orthographic"):
        Surface.from_unknown(MESH, np.zeros(3), Perspective(9, 9, 4, 4), (8, 8)).exaggerated(2)
