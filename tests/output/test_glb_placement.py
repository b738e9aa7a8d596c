"""Test how surfaces stand in the scene of a GLB file, and that they come back as they were."""

import json
import struct

import numpy as np
import pytest
import trimesh

from normalmesh import NormalMeshError, Orthographic, ScreenMesh, Surface
from normalmesh.output.mesh_reading import read_mesh

MESH = ScreenMesh(np.array([[2.0, 1], [2, 9], [12, 1]]), np.array([[0, 1, 2]], np.int32))


def surface(units="px", height=0.0):
    """Return a triangle of 10 × 8 × 4 units."""
    return Surface.from_unknown(MESH, height + np.array([0.0, 1, 4]), Orthographic(), (10, 14), units)


def scene_bounds(path):
    return np.array(trimesh.load_scene(path).bounds)


@pytest.mark.parametrize("units", ["mm", "m", "µm", "ft", "px", "units"])
def test_units_become_metres_or_a_unit_box(tmp_path, units):
    metres = {"mm": 1e-3, "m": 1.0, "µm": 1e-6, "ft": 0.3048, "px": 0.1, "units": 0.1}[units]
    surface(units).save(tmp_path / "s.glb")
    extent = np.array([10, 8, 4]) * metres / 2
    np.testing.assert_allclose(scene_bounds(tmp_path / "s.glb"), [-extent, extent], rtol=1e-6)
    np.testing.assert_array_equal(read_mesh(tmp_path / "s.glb").vertices, surface().vertices)


@pytest.mark.parametrize("height", [0.0, 1e7])
def test_scale_and_centre_can_be_chosen(tmp_path, height):
    made = surface(height=height)
    made.save(tmp_path / "s.glb", scale="none", centred=False)
    np.testing.assert_allclose(scene_bounds(tmp_path / "s.glb"), [made.vertices.min(0), made.vertices.max(0)])
    made.save(tmp_path / "s.glb", scale=0.5, centred=False)
    np.testing.assert_allclose(scene_bounds(tmp_path / "s.glb")[1], made.vertices.max(0) / 2)
    np.testing.assert_array_equal(read_mesh(tmp_path / "s.glb").vertices, made.vertices)


def test_the_extras_tell_how_to_go_back(tmp_path):
    surface("mm", 1e7).save(tmp_path / "s.glb")
    content = (tmp_path / "s.glb").read_bytes()
    node = json.loads(content[20 : 20 + struct.unpack_from("<I", content, 12)[0]])["nodes"][0]
    notes = node["extras"]["normalmesh"]
    assert (notes["units"], notes["scale"]) == ("mm", 1e-3)
    placed = trimesh.load_scene(tmp_path / "s.glb").to_mesh().vertices
    np.testing.assert_allclose(placed / notes["scale"] + notes["centre"], surface("mm", 1e7).vertices, rtol=1e-12)


def test_files_of_other_programs_stay_in_their_scene(tmp_path):
    surface().save(tmp_path / "s.glb")
    trimesh.load_scene(tmp_path / "s.glb").export(tmp_path / "t.glb")
    assert np.ptp(read_mesh(tmp_path / "t.glb").vertices, axis=0).max() == pytest.approx(1)


@pytest.mark.parametrize("scale", ["big", 0, -1, np.inf, None])
def test_bad_scales(tmp_path, scale):
    with pytest.raises(NormalMeshError, match="scale must be"):
        surface().save(tmp_path / "s.glb", scale=scale)
    assert not (tmp_path / "s.glb").exists()


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_scenes_beyond_single_precision_are_refused(tmp_path, scale):
    with pytest.raises(NormalMeshError, match="make it 1e-15 to 1e"):
        surface().save(tmp_path / "s.glb", scale=scale)


def test_damaged_notes_are_refused(tmp_path):
    surface().save(tmp_path / "s.glb")
    content = (tmp_path / "s.glb").read_bytes()
    (tmp_path / "s.glb").write_bytes(content.replace(b'"origin":[0.0,0.0,0.0]', b'"origin":[0.0,0.0    ]'))
    with pytest.raises(NormalMeshError, match=r"s\.glb"):
        read_mesh(tmp_path / "s.glb")
