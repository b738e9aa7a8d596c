"""Test the options of ``normalmesh reconstruct`` for maps that repeat."""

import json

import imagecodecs
import numpy as np
import pytest
import trimesh

from invocation import invoke
from periodic_maps import map_of_slopes, waves


@pytest.fixture
def texture(tmp_path):
    """Write the normal map of a texture, and return its path."""
    _, right, down = waves((64, 48))
    path = tmp_path / "texture.png"
    imagecodecs.imwrite(path, np.round((map_of_slopes(right, down).normals + 1) / 2 * 65535).astype(np.uint16))
    return path


@pytest.mark.parametrize(
    ("options", "directions"), [(["--tile"], "x and y"), (["--tile-x", "--tile-y"], "x and y"), (["--tile-y"], "y")]
)
def test_sides_of_the_mesh_match(texture, options, directions):
    output = texture.with_suffix(".ply")
    result = invoke("reconstruct", *options, texture, "-o", output, "--compression", "0.9")
    assert f"repeats      in {directions}, mean slope of 0.00° removed" in result.stdout
    vertices = trimesh.load(output, process=False).vertices
    top, bottom = (vertices[vertices[:, 1] == v] for v in (0, -64))
    assert len(top) > 5
    assert np.array_equal(top[np.argsort(top[:, 0])][:, [0, 2]], bottom[np.argsort(bottom[:, 0])][:, [0, 2]])


def test_json(texture):
    result = invoke("reconstruct", "--tileable", texture, "-o", texture.with_suffix(".glb"), "--json")
    assert json.loads(result.stdout)["repeats"].startswith("in x and y, mean slope")


def test_not_with_flatten(texture):
    result = invoke("reconstruct", "--tile-x", "--flatten", "plane", texture)
    assert result.exit_code == 2
    assert "--flatten would part the copies that --tile joins" in result.stderr


def test_in_tiles(tmp_path):
    _, right, down = waves((300, 280))
    source, output = tmp_path / "texture.npy", tmp_path / "texture.ply"
    np.save(source, map_of_slopes(right, down).normals)
    tiles = ("--tiles", "--tile-size", 256, "--workers", 0)
    result = invoke("reconstruct", "--tile-x", source, "-o", output, "--vertices", 500, *tiles)
    assert "repeats      in x, mean slope of 0.00° removed" in result.stdout
    vertices = trimesh.load(output, process=False).vertices
    left, right = (vertices[vertices[:, 0] == u] for u in (0, 280))
    assert len(left) > 5
    assert np.array_equal(left[np.argsort(left[:, 1])][:, 1:], right[np.argsort(right[:, 1])][:, 1:])
