"""Test that files keep the relief of a surface far from the origin, and that other files stay in single precision."""

from __future__ import annotations

import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import trimesh
from trimesh.exchange.gltf import export_glb

import normalmesh as nm
from invocation import succeed
from meshes import point_mesh
from normalmesh.errors import NormalMeshWarning
from normalmesh.evaluation.rendering.triangle_model import TriangleModel
from normalmesh.files.encoding import encode_depth
from normalmesh.normals.camera import Camera
from normalmesh.output import mesh_formats
from normalmesh.output.heights import read_depth_map
from normalmesh.output.mesh_reading import read_mesh
from normalmesh.output.mesh_writing import convert_mesh

SHAPE = (60, 80)
FORMATS = ("ply", "glb", "obj")
#: Cameras and, in pixels, the height of the surface: 10 px of relief at height 10⁶, by two pixel sizes; a telescope.
FAR: list[tuple[Camera, float]] = [
    (nm.Orthographic(), 1e6),
    (nm.Orthographic(1e-12), -1e6),
    (nm.Orthographic(), 1e9),
    (nm.Perspective(1e6, 1e6, 40, 30), 0.0),
]


def relief(camera: Camera, height: float) -> nm.Surface:
    """Return a surface with 10 px of relief, at a height in pixels or, with perspective, at the focal length."""
    mesh = point_mesh(SHAPE, 600)
    u, v = mesh.vertices.T
    z = 5 * np.sin(u / 13 + 0.01 * v) * np.cos(v / 11)
    side = camera.reference_pixel
    unknown = np.log(camera.reference_depth - z) if camera.is_central else side * (height + z)
    return nm.Surface.from_unknown(mesh, unknown, camera, SHAPE)


def written(surface: nm.Surface, path: Path) -> trimesh.Trimesh:
    with warnings.catch_warnings():
        warnings.simplefilter("error", NormalMeshWarning)
        surface.save(path)
    return read_mesh(path)


def assert_kept(found: trimesh.Trimesh | TriangleModel, surface: nm.Surface) -> None:
    """Vertices are in place to a thousandth of a pixel, and no heights coincide that differ."""
    pixel = surface.camera.reference_pixel
    np.testing.assert_allclose(found.vertices, surface.vertices, rtol=0, atol=1e-3 * pixel)
    spacing = np.spacing(np.abs(surface.vertices[:, 2]).max()) + 1e-5 * pixel
    heights = np.sort(surface.vertices[:, 2])
    apart = 1 + np.count_nonzero(np.diff(heights) > 4 * spacing)
    assert len(np.unique(found.vertices[:, 2])) >= apart > 400


@pytest.mark.parametrize(("camera", "height"), FAR, ids=str)
@pytest.mark.parametrize("suffix", FORMATS)
def test_relief_far_from_the_origin_is_kept(camera: Camera, height: float, suffix: str, tmp_path: Path) -> None:
    surface = relief(camera, height)
    assert_kept(written(surface, tmp_path / f"s.{suffix}"), surface)
    assert_kept(TriangleModel.of(tmp_path / f"s.{suffix}"), surface)


@pytest.mark.parametrize(("source", "target"), [*product(FORMATS, FORMATS)])
def test_conversions_keep_the_relief(source: str, target: str, tmp_path: Path) -> None:
    surface = relief(*FAR[0])
    surface.save(tmp_path / f"s.{source}", texture=np.zeros((*SHAPE, 3), np.uint8))
    convert_mesh(tmp_path / f"s.{source}", tmp_path / f"t.{target}")
    assert_kept(TriangleModel.of(tmp_path / f"t.{target}"), surface)


def test_stl_cannot_hold_it_and_says_so(tmp_path: Path) -> None:
    surface = relief(*FAR[0])
    surface.save(tmp_path / "s.ply")
    for write in (surface.save, lambda path: convert_mesh(tmp_path / "s.ply", path)):
        with pytest.warns(NormalMeshWarning, match=r"s.stl: .* single precision, .* by up to 0.031; write PLY, GLB"):
            write(tmp_path / "s.stl")
    assert read_mesh(tmp_path / "s.stl").vertices[:, 2].min() > 999_990


def test_a_surface_too_large_for_single_precision(tmp_path: Path) -> None:
    """A slope of 10⁹ px cannot be centred: GLB warns, PLY has doubles."""
    mesh = point_mesh(SHAPE, 600)
    surface = nm.Surface.from_unknown(mesh, 1e7 * mesh.vertices[:, 0] + mesh.vertices[:, 1], nm.Orthographic(), SHAPE)
    with pytest.warns(NormalMeshWarning, match=r"s.glb: .* by up to 16; write PLY or OBJ"):
        surface.save(tmp_path / "s.glb")
    np.testing.assert_array_equal(written(surface, tmp_path / "s.ply").vertices, surface.vertices)


ORDINARY = [
    (nm.Orthographic(), 0.0),
    (nm.Orthographic(), 3e4),
    (nm.Orthographic(1e-9), 0.0),
    (nm.Perspective(3e4, 3e4, 40, 30), 0.0),
]


@pytest.mark.parametrize(("camera", "height"), ORDINARY, ids=str)
def test_ordinary_files_stay_in_single_precision(camera: Camera, height: float, tmp_path: Path) -> None:
    surface = relief(camera, height)
    single = surface.vertices.astype(np.float32)
    for suffix in ("ply", "glb"):
        np.testing.assert_array_equal(written(surface, tmp_path / f"s.{suffix}").vertices, single)
    written(surface, tmp_path / "s.stl")
    assert b"property float x\n" in (tmp_path / "s.ply").read_bytes()
    assert b'"origin":[0.0,0.0,0.0]' in (tmp_path / "s.glb").read_bytes()
    for source, target in product(("ply", "glb", "stl"), ("ply", "glb", "stl")):
        with warnings.catch_warnings():
            warnings.simplefilter("error", NormalMeshWarning)
            convert_mesh(tmp_path / f"s.{source}", tmp_path / f"t.{target}")
        found = np.unique(read_mesh(tmp_path / f"t.{target}").vertices, axis=0)
        np.testing.assert_array_equal(found, np.unique(single, axis=0).astype(np.float64))


def test_doubles_of_ply_come_with_all_other_properties(tmp_path: Path) -> None:
    surface = relief(*FAR[0])
    colours = np.random.default_rng(2).integers(0, 256, (*SHAPE, 4)).astype(np.uint8)
    surface.save(tmp_path / "far.ply", texture=colours)
    relief(nm.Orthographic(), 0.0).save(tmp_path / "near.ply", texture=colours)
    far, near = (trimesh.load_mesh(tmp_path / f"{name}.ply", process=False) for name in ("far", "near"))
    for name in ("s", "t"):
        np.testing.assert_array_equal(*(mesh.metadata["_ply_raw"]["vertex"]["data"][name] for mesh in (far, near)))
    far, near = (read_mesh(tmp_path / f"{name}.ply") for name in ("far", "near"))
    np.testing.assert_array_equal(far.faces, surface.faces)
    np.testing.assert_array_equal(far.visual.vertex_colors, near.visual.vertex_colors)
    far.vertex_attributes["directions"] = np.arange(3 * len(far.vertices), dtype=np.int16).reshape(-1, 3)
    (tmp_path / "more.ply").write_bytes(far.export(file_type="ply"))
    (tmp_path / "far.ply").write_bytes(mesh_formats._ply(far, tmp_path / "x.ply", 0.0)[tmp_path / "x.ply"])
    found, expected = (trimesh.load_mesh(tmp_path / f"{name}.ply", process=False) for name in ("far", "more"))
    np.testing.assert_array_equal(found.vertices, surface.vertices)
    raw = [mesh.metadata["_ply_raw"]["vertex"]["data"]["directions"] for mesh in (found, expected)]
    np.testing.assert_array_equal(*raw)


def test_small_translations_of_a_node_are_applied(tmp_path: Path) -> None:
    """A few nanometres, in metres, and what a conversion writes of them."""
    part = trimesh.Trimesh(1e-9 * np.eye(3), [[0, 1, 2]], process=False)
    shift = {"translation": [5e-9, 0.0, 0.0]}
    content = export_glb(trimesh.Scene(part), tree_postprocessor=lambda tree: tree["nodes"][0].update(shift))
    (tmp_path / "s.glb").write_bytes(content)
    expected = part.vertices + shift["translation"]
    np.testing.assert_allclose(TriangleModel.of(tmp_path / "s.glb").vertices, expected, rtol=1e-6)
    (tmp_path / "far.obj").write_text("v 5e-9 0 0\nv 5.000001e-9 0 0\nv 5e-9 1e-15 0\nf 1 2 3\n")
    convert_mesh(tmp_path / "far.obj", tmp_path / "far.glb")
    assert b"translation" in (tmp_path / "far.glb").read_bytes()
    np.testing.assert_allclose(read_mesh(tmp_path / "far.glb").vertices[:, 0], [5e-9, 5.000001e-9, 5e-9], rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e12])
def test_stl_of_any_size_is_merged_into_the_same_mesh(scale: float, tmp_path: Path) -> None:
    surface = relief(nm.Orthographic(scale), 0.0)
    surface.save(tmp_path / "s.stl")
    convert_mesh(tmp_path / "s.stl", tmp_path / "t.ply")
    assert len(read_mesh(tmp_path / "t.ply").vertices) == len(surface.vertices)


@pytest.mark.parametrize("suffix", ["npy", "tif", "exr"])
def test_depth_maps_keep_the_relief_or_warn(suffix: str, tmp_path: Path) -> None:
    if suffix == "exr":
        pytest.importorskip("OpenEXR")
    depth = relief(*FAR[0]).depth_map()
    depth[:9] = np.nan
    path, near = tmp_path / f"d.{suffix}", depth - 1e6
    if suffix == "exr":
        with pytest.warns(NormalMeshWarning, match=r"d.exr: .* rounds depths .* by up to 0.031; write NPY or TIFF"):
            encode_depth(path, depth)
    else:
        path.write_bytes(encode_depth(path, depth))
        np.testing.assert_array_equal(read_depth_map(path), depth)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NormalMeshWarning)
        for ordinary in (
            near,
            near.astype(np.float32),
            np.where(near < 0, np.nan, 1e6 + 0.1),
            np.full((4, 4), 1e9 / 7),
        ):
            path.write_bytes(encode_depth(path, ordinary))
            np.testing.assert_array_equal(read_depth_map(path), ordinary.astype(np.float32))


def test_the_commands_keep_the_relief(tmp_path: Path) -> None:
    """From a mesh far away to its depth map and back to its figures."""
    pytest.importorskip("embreex")
    surface = relief(*FAR[0])
    surface.save(tmp_path / "s.glb")
    succeed("convert", tmp_path / "s.glb", tmp_path / "d.npy", "--size", "80x60")
    found, expected = read_depth_map(tmp_path / "d.npy"), surface.depth_map()
    assert np.nanmax(np.abs(found - expected)) < 1e-4
    with pytest.warns(NormalMeshWarning, match="single precision"):
        succeed("convert", tmp_path / "s.glb", tmp_path / "s.stl")
