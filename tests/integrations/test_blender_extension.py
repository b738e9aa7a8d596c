"""Test the Blender extension without a window, if the package bpy is installed: see CONTRIBUTING.md."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from normalmesh.evaluation.synthetic.analytic import waves

bpy = pytest.importorskip("bpy", exc_type=ImportError)
FOLDER = Path(__file__).parents[2] / "integrations" / "blender"
SIZE = 64


@pytest.fixture(scope="module")
def extension():
    specification = importlib.util.spec_from_file_location("normalmesh_blender", FOLDER / "__init__.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    module.register()
    yield module
    module.unregister()


@pytest.fixture
def pixels():
    """Return waves as an image (H, W, 4) from 0 to 1, green up."""
    normals = waves(SIZE).normal_map.normals
    return np.concatenate([(normals + 1) / 2, np.ones((SIZE, SIZE, 1), np.float32)], axis=2)


def unsaved(pixels):
    image = bpy.data.images.new("waves", SIZE, SIZE, alpha=True, float_buffer=True, is_data=True)
    image.pixels.foreach_set(np.ascontiguousarray(pixels[::-1], np.float32).ravel())
    return image


def saved(pixels, folder):
    Image.fromarray(np.round(255 * pixels).astype(np.uint8)).save(folder / "waves.png")
    return bpy.data.images.load(str(folder / "waves.png"))


def reconstructed(image, **settings):
    chosen = bpy.context.scene.normalmesh
    chosen.image = image
    for name, value in settings.items():
        setattr(chosen, name, value)
    assert bpy.ops.normalmesh.reconstruct() == {"FINISHED"}
    return next(each for each in bpy.context.selected_objects if each.type == "MESH")


@pytest.mark.parametrize("on_disk", [False, True])
def test_image_becomes_mesh_with_uvs_and_detail_map(extension, pixels, tmp_path, on_disk):
    image = saved(pixels, tmp_path) if on_disk else unsaved(pixels)
    mesh = reconstructed(image, vertices=10.0, convention="opengl").data
    points = np.array([vertex.co for vertex in mesh.vertices])
    # The reader of glTF turns y up into z up: heights point to −y.
    assert np.ptp(points[:, 0]) == pytest.approx(np.ptp(points[:, 2]), rel=0.01)
    uvs = np.empty(2 * len(mesh.loops))
    mesh.uv_layers[0].data.foreach_get("uv", uvs)
    loops = np.array([loop.vertex_index for loop in mesh.loops])
    u, v = (points[:, axis] - points[:, axis].min() for axis in (0, 2))
    across = np.stack([u / u.max(), v / v.max()], axis=1)
    np.testing.assert_allclose(uvs.reshape(-1, 2), across[loops], atol=0.01)
    truth = waves(SIZE).depth
    heights = -points[:, 1] * (SIZE / u.max())
    column, row = (np.clip(SIZE * each, 0, SIZE - 1).astype(int) for each in (across[:, 0], 1 - across[:, 1]))
    error = heights - truth[row, column]
    assert np.std(error) < 0.1 * np.std(truth)
    nodes = mesh.materials[0].node_tree.nodes
    assert any(node.type == "NORMAL_MAP" for node in nodes)


def test_green_down_means_the_same_surface(extension, pixels):
    flipped = pixels.copy()
    flipped[..., 1] = 1 - flipped[..., 1]
    up, down, wrong = (
        np.ptp([vertex.co.y for vertex in reconstructed(unsaved(image), convention=name).data.vertices])
        for image, name in ((pixels, "opengl"), (flipped, "directx"), (flipped, "opengl"))
    )
    assert down == pytest.approx(up, rel=0.02)
    assert wrong != pytest.approx(up, rel=0.1)


def test_errors_are_reports(extension):
    grey = unsaved(np.full((SIZE, SIZE, 4), 0.5, np.float32))
    bpy.context.scene.normalmesh.image = grey
    with pytest.raises(RuntimeError, match="no pixel is foreground"):
        bpy.ops.normalmesh.reconstruct()
