"""Test that arrays, tensors and images are read as files of them are, by all functions that take a normal map."""

from __future__ import annotations

import warnings

import imagecodecs
import numpy as np
import pytest
from PIL import Image

import normalmesh as nm
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.maps.stored_normals import given_array

TRUTH = Medallion(48).normal_map


def encoded(maximum=255, dtype=np.uint8):
    """Return the normals as an image of colour and alpha (H, W, 4)."""
    colours = np.round((TRUTH.normals + 1) / 2 * maximum)
    return np.dstack([colours, maximum * TRUTH.mask]).astype(dtype)


def same(first, second):
    np.testing.assert_array_equal(first.normals, second.normals)
    np.testing.assert_array_equal(first.mask, second.mask)
    return True


@pytest.mark.parametrize(
    "array",
    [
        TRUTH.normals,
        TRUTH.normals.astype(np.float64),
        TRUTH.normals.astype(np.float16),
        np.where(TRUTH.mask[..., None], TRUTH.normals, np.nan),
        encoded(),
        encoded()[..., :3],
        encoded(65535, np.uint16),
        np.round(TRUTH.normals * 127).astype(np.int8),
    ],
    ids=lambda array: f"{array.dtype}-{array.shape[2]}",
)
def test_arrays_are_read_as_files(tmp_path, array):
    np.save(tmp_path / "n.npy", array)
    assert same(nm.read_normal_map(array), nm.read_normal_map(tmp_path / "n.npy"))


def test_floats_from_zero_to_one_are_decoded_with_a_warning():
    with pytest.warns(nm.NormalMeshWarning, match="normal_map: floats lie in"):
        found = nm.read_normal_map((TRUTH.normals + 1) / 2)
    np.testing.assert_allclose(found.normals[found.mask], TRUTH.normals[found.mask], atol=1e-6)


def test_images_of_pillow(tmp_path):
    (tmp_path / "n.png").write_bytes(imagecodecs.png_encode(encoded()))
    with Image.open(tmp_path / "n.png") as image:
        assert same(nm.read_normal_map(image), nm.read_normal_map(tmp_path / "n.png"))


def test_tensors():
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(TRUTH.normals)
    expected = nm.read_normal_map(TRUTH.normals)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same(nm.read_normal_map(tensor), expected)
        assert same(nm.read_normal_map(tensor.permute(2, 0, 1).requires_grad_()), expected)
    np.testing.assert_array_equal(given_array(tensor.bfloat16()), tensor.bfloat16().float())


class DeviceTensor:
    """An array that NumPy gets only as PyTorch gives one of a graph on a device."""

    def __init__(self, values, steps=()):
        self.values, self.steps = np.asarray(values), steps

    def detach(self):
        return DeviceTensor(self.values, (*self.steps, "detach"))

    def cpu(self):
        return DeviceTensor(self.values, (*self.steps, "cpu"))

    def numpy(self):
        if set(self.steps) != {"detach", "cpu"}:
            raise TypeError("can't convert this tensor to numpy; use .detach().cpu()")
        return self.values

    def __array__(self, dtype=None, copy=None):
        return self.numpy()


def test_every_array_may_be_a_tensor_of_a_graph_on_a_device():
    heights, mask = Medallion(48).height, TRUTH.mask.astype(np.float32)
    given, also_mask = DeviceTensor(heights), DeviceTensor(mask)
    assert same(nm.read_normal_map(DeviceTensor(TRUTH.normals), also_mask), nm.read_normal_map(TRUTH.normals, mask))
    assert same(nm.NormalMap(DeviceTensor(TRUTH.normals), also_mask), nm.NormalMap(TRUTH.normals, mask))
    assert same(nm.from_heights(given), nm.from_heights(heights))
    assert same(nm.from_gradients(DeviceTensor(0 * heights), given), nm.from_gradients(0 * heights, heights))
    assert nm.evaluate(given, TRUTH, given).rmse == 0
    np.testing.assert_array_equal(nm.fit_prior(given, TRUTH), nm.fit_prior(heights, TRUTH))
    tilted = nm.reconstruct(TRUTH, vertices=100, prior=given)
    np.testing.assert_array_equal(tilted.vertices, nm.reconstruct(TRUTH, vertices=100, prior=heights).vertices)


def test_options_apply_to_arrays():
    camera = nm.Perspective.centred(100, TRUTH.shape)
    mask = TRUTH.mask.copy()
    mask[:10] = False
    found = nm.read_normal_map(TRUTH.normals * [1, -1, 1], mask, camera, "directx")
    assert found.camera == camera
    np.testing.assert_array_equal(found.mask, mask)
    np.testing.assert_allclose(found.normals[mask], TRUTH.normals[mask], atol=1e-6)
    with pytest.raises(nm.NormalMeshError, match="variable='n' chooses from a file"):
        nm.read_normal_map(TRUTH.normals, variable="n")


def test_all_functions_take_what_reconstruct_takes(tmp_path):
    path = tmp_path / "n.png"
    path.write_bytes(imagecodecs.png_encode(encoded()))
    normal_map = nm.read_normal_map(path)
    surface = nm.reconstruct(normal_map, vertices=100)
    mesh = nm.decimate(normal_map, vertices=100)
    for given in (path, str(path), encoded()):
        np.testing.assert_array_equal(nm.reconstruct(given, vertices=100).vertices, surface.vertices)
        np.testing.assert_array_equal(nm.decimate(given, vertices=100).vertices, mesh.vertices)
        (level,) = nm.reconstruct_levels(given, [100])
        np.testing.assert_array_equal(level.vertices, surface.vertices)
        assert nm.find_jumps(given).lines == nm.find_jumps(normal_map).lines
        np.testing.assert_array_equal(nm.integrate_pixels(given), nm.integrate_pixels(normal_map))
        assert nm.estimate_memory(given) == nm.estimate_memory(normal_map)
        assert len(nm.integrate(mesh, given).faces) > 100
        assert nm.measure_looks(surface, given) == nm.measure_looks(surface, normal_map)


def test_the_default_resolution_is_that_of_the_command_line():
    surface = nm.reconstruct(TRUTH)
    np.testing.assert_array_equal(surface.vertices, nm.reconstruct(TRUTH, detail="medium").vertices)
    assert StoppingRule() == StoppingRule(detail="medium")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "normal_map must be a NormalMap, the path of a file, an array"),
        ({"normals": TRUTH.normals}, "normal_map must be a NormalMap"),
        ("missing.png", "missing.png: there is no such file"),
        (np.zeros((5, 5)), "not 5×5; from_heights makes a map of heights, and read_normal_map takes a mask as mask="),
        (np.zeros((1, 3, 5, 5)), r"not 1×3×5×5; give the only map of the batch, as normal_map\[0\]"),
        (np.zeros((2, 3, 5, 5)), "one map of the batch at a time"),
        (np.ones((5, 5, 3), np.int64), "int64, whose range is not known"),
        (np.ones((5, 5, 3), bool), "not bool 5×5×3"),
        (np.full((5, 5, 3), 200.0), "divide them by their full range"),
        (np.zeros((5, 5, 3)), "no pixel is foreground"),
        (Image.new("L", (5, 5)), "Pillow image of mode L; a normal map needs three channels"),
    ],
)
def test_what_is_refused(given, message):
    with pytest.raises(nm.NormalMeshError, match=message):
        nm.reconstruct(given)


def test_maps_on_disk_are_read_whole(tmp_path):
    on_disk = nm.MapOnDisk.of(TRUTH, tmp_path)
    expected = nm.reconstruct(TRUTH, vertices=50)
    assert np.array_equal(nm.reconstruct(on_disk, vertices=50).vertices, expected.vertices)


def test_maps_on_disk_are_no_arrays(tmp_path):
    on_disk = nm.MapOnDisk.of(TRUTH, tmp_path)
    with pytest.raises(nm.NormalMeshError, match="stays on disk: give it to reconstruct_tiled"):
        nm.read_normal_map(on_disk)
