"""Test the ComfyUI node on arrays; of ComfyUI it only needs the names of output files."""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import trimesh

from normalmesh.evaluation.synthetic.analytic import sphere, waves

FILE = Path(__file__).parents[2] / "integrations" / "comfyui" / "__init__.py"
SIZE = 64


@pytest.fixture
def node(tmp_path, monkeypatch):
    def get_save_image_path(prefix, folder):
        target = Path(folder) / prefix
        target.parent.mkdir(exist_ok=True)
        return str(target.parent), target.name, 7, str(Path(prefix).parent), prefix

    paths = SimpleNamespace(get_output_directory=lambda: str(tmp_path), get_save_image_path=get_save_image_path)
    monkeypatch.setitem(sys.modules, "folder_paths", paths)
    specification = importlib.util.spec_from_file_location("normalmesh_comfyui", FILE)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.NODE_CLASS_MAPPINGS["NormalMapToMesh"]


def encoded(case):
    return (case.normal_map.normals + 1) / 2


def test_inputs_are_those_of_the_function(node):
    groups = node.INPUT_TYPES()
    options = {name: kind[-1] for name, kind in groups["required"].items()}
    values = {name: each["default"] for name, each in options.items() if "default" in each}
    images = encoded(waves(SIZE))[None]
    assert set(groups["optional"]) == {"mask"}
    returned = getattr(node(), node.FUNCTION)(images, "opengl", **values)
    assert len(returned["result"]) == len(node.RETURN_TYPES) == len(node.OUTPUT_IS_LIST)


def test_batch_gives_meshes_heights_and_masks(node):
    cases = [waves(SIZE), sphere(SIZE)]
    returned = node().reconstruct(np.stack([encoded(case) for case in cases]), "opengl", 10.0, True, "relief")
    paths, heights, masks = returned["result"]
    assert [Path(path).name for path in paths] == ["relief_00007_.glb", "relief_00008_.glb"]
    assert [file["filename"] for file in returned["ui"]["3d"]] == [Path(path).name for path in paths]
    assert all(len(trimesh.load(path, force="mesh").faces) > 50 for path in paths)
    assert heights.shape == (2, SIZE, SIZE, 3)
    assert heights.dtype == np.float32
    for case, height, mask in zip(cases, heights[..., 0], masks, strict=True):
        np.testing.assert_array_equal(mask == 1, case.normal_map.mask)
        inside = case.normal_map.mask & (height > 0)
        assert np.corrcoef(height[inside], case.depth[inside])[0, 1] > 0.99
        assert height[~case.normal_map.mask & (height == 0)].size == np.count_nonzero(~case.normal_map.mask)


def test_mask_of_one_image_is_for_all(node):
    images = np.stack([encoded(waves(SIZE))] * 2)
    mask = np.zeros((1, SIZE, SIZE), np.float32)
    mask[:, 8:40] = 1
    _, _, masks = node().reconstruct(images, "opengl", 5.0, False, "part", mask)["result"]
    np.testing.assert_array_equal(masks, np.repeat(mask, 2, axis=0))


def test_tensors_give_tensors(node):
    torch = pytest.importorskip("torch")
    images = torch.from_numpy(encoded(waves(SIZE)))[None]
    _, heights, masks = node().reconstruct(images, "opengl", 5.0, True, "tensor")["result"]
    assert isinstance(heights, torch.Tensor)
    assert heights.shape == (1, SIZE, SIZE, 3)
    assert masks.dtype == torch.float32
