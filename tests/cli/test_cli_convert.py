"""Test ``normalmesh convert``: meshes are the same in each format, and depth maps are correct."""

from itertools import product

import numpy as np
import pytest
import trimesh

import normalmesh as nm
from invocation import SIZE, invoke, medallion, succeed, write_medallion
from normalmesh.evaluation.rendering.rendering import share_outside
from normalmesh.output.heights import read_depth_map
from normalmesh.output.mesh_reading import read_mesh
from normalmesh.runtime import memory_budget

FORMATS = ("ply", "obj", "glb", "stl")


@pytest.fixture(scope="module")
def surface():
    return nm.reconstruct(medallion().normal_map, vertices=150)


@pytest.fixture(scope="module")
def made(surface, tmp_path_factory):
    """Return a folder with the surface in every format, and its normal map."""
    folder = tmp_path_factory.mktemp("made")
    write_medallion(folder / "n.png")
    colours = np.random.default_rng(1).integers(0, 256, (SIZE, SIZE, 3)).astype(np.uint8)
    for suffix in FORMATS:
        surface.save(folder / f"s.{suffix}", texture=None if suffix == "stl" else colours)
    return folder


def load(path):
    if path.suffix == ".glb":
        return read_mesh(path)
    return trimesh.load_scene(path, process=False, maintain_order=True, fix_texture=False).to_mesh()


@pytest.mark.parametrize(("source", "target"), [*product(FORMATS, FORMATS)])
def test_meshes_stay_the_same(source, target, surface, made, tmp_path):
    path = tmp_path / f"t.{target}"
    result = succeed("convert", made / f"s.{source}", path)
    assert result.stdout == f"mesh         150 vertices, {len(surface.faces)} faces\nwrote        {path}\n"
    triangles = load(path).triangles
    np.testing.assert_allclose(triangles, surface.vertices[surface.faces], rtol=1e-6, atol=1e-4)
    if "stl" not in (source, target):
        np.testing.assert_array_equal(load(path).faces, surface.faces)


@pytest.mark.parametrize(("source", "target"), [("obj", "glb"), ("glb", "obj"), ("glb", "ply")])
def test_texture_coordinates_are_kept(source, target, surface, made, tmp_path):
    succeed("convert", made / f"s.{source}", tmp_path / f"t.{target}")
    found = load(tmp_path / f"t.{target}").visual.uv
    np.testing.assert_allclose(found, surface.texture_coordinates, atol=1e-6)
    if target == "obj":
        assert {path.name for path in tmp_path.iterdir()} == {"t.obj", "t.mtl", "t_texture.png"}


@pytest.mark.parametrize("target", ["ply", "glb", "obj"])
def test_colours_are_kept(target, made, tmp_path):
    succeed("convert", made / "s.ply", tmp_path / f"t.{target}")
    stored = trimesh.load_scene(made / "s.ply", process=False, prefer_color="vertex", fix_texture=False).to_mesh()
    expected = stored.vertex_attributes["color"]
    found = load(tmp_path / f"t.{target}").visual.vertex_colors
    assert np.abs(found[:, :3].astype(int) - expected[:, :3]).max() <= 1


@pytest.mark.parametrize("suffix", ["exr", "tiff", "npy"])
@pytest.mark.parametrize("options", [["--normals"], ["--size", SIZE]], ids=["normals", "size"])
def test_depth_of_a_mesh(suffix, options, surface, made, tmp_path):
    pytest.importorskip("embreex")
    if suffix == "exr":
        pytest.importorskip("OpenEXR")
    options = [*options, made / "n.png"] if options == ["--normals"] else options
    result = succeed("convert", made / "s.ply", tmp_path / f"d.{suffix}", *options)
    assert f"depth        {SIZE} × {SIZE} pixels" in result.stdout
    found, expected = read_depth_map(tmp_path / f"d.{suffix}"), surface.depth_map()
    assert np.mean(np.isfinite(found) != np.isfinite(expected)) < 1e-3
    assert np.nanmax(np.abs(found - expected)) < 1e-3


def test_depth_by_a_perspective_camera(tmp_path):
    pytest.importorskip("embreex")
    camera = nm.Perspective(150, 150, 48, 48)
    surface = nm.reconstruct(
        nm.NormalMap(medallion().normal_map.normals, medallion().normal_map.mask, camera), vertices=99
    )
    surface.save(tmp_path / "s.glb")
    succeed("convert", tmp_path / "s.glb", tmp_path / "d.npy", "--size", SIZE, "--focal-px", 150)
    found, expected = np.load(tmp_path / "d.npy"), surface.depth_map()
    assert found.dtype == np.float32
    assert np.nanmax(np.abs(found / expected - 1)) < 1e-4


@pytest.mark.parametrize(
    ("scale", "shift", "options", "message"),
    [
        (1, 0, [], None),
        (0.02, 0, ["--pixel-size", 0.02], None),
        (
            0.02,
            0,
            [],
            r"s.ply: there are \d+ faces, but they cover only \d+ pixels?; check --size, --camera and --pixel",
        ),
        (3, 0, [], r"s.ply: \d\d % of the vertices lie outside the image of 96 × 96 pixels"),
        (1, 40, [], r"s.ply: \d\d % of the vertices lie outside"),
    ],
)
def test_a_mesh_that_does_not_fit_the_image(scale, shift, options, message, surface, tmp_path):
    """A mesh in mm, or cut off by the image, gives a depth map of something else."""
    pytest.importorskip("embreex")
    trimesh.Trimesh(surface.vertices * scale + [shift, 0, 0], surface.faces, process=False).export(tmp_path / "s.ply")
    arguments = ("convert", tmp_path / "s.ply", tmp_path / "d.npy", "--size", SIZE, *options)
    if message is None:
        succeed(*arguments)
        assert np.nanmax(np.abs(np.load(tmp_path / "d.npy") / scale - surface.depth_map())) < 1e-3
    else:
        with pytest.warns(nm.NormalMeshWarning, match=message):
            succeed(*arguments)


def test_the_part_of_a_mesh_that_a_camera_does_not_see():
    camera = nm.Perspective(100, 100, 48, 48)
    points = np.array([[0, 0, -1], [0, 0, 1], [0.45, 0, -1], [0.6, 0, -1], [0, 0, 0]], float)
    assert share_outside(points, camera, (SIZE, SIZE)) == pytest.approx(3 / 5)


def test_an_image_larger_than_memory(made, tmp_path, monkeypatch):
    pytest.importorskip("embreex")
    monkeypatch.setattr(memory_budget, "available_memory", lambda: 10**9)
    for arguments in (("convert", made / "s.ply", tmp_path / "d.npy"), ("render", "stone", "-o", tmp_path / "r.png")):
        result = invoke(*arguments, "--size", 10_000)
        assert result.exit_code == 1
        assert "an image of 10000×10000 pixels needs about 1.2 GB of memory but 1.0 GB are available" in result.stderr


def test_depth_maps_between_formats(tmp_path):
    np.savez(tmp_path / "d.npz", depth=medallion().height)
    succeed("convert", tmp_path / "d.npz", tmp_path / "d.tif")
    np.testing.assert_array_equal(read_depth_map(tmp_path / "d.tif"), medallion().height.astype(np.float32))


def test_failures_leave_existing_files_unchanged(made, tmp_path):
    pytest.importorskip("embreex")
    (tmp_path / "t.npy").write_text("before")
    result = invoke("convert", made / "s.ply", tmp_path / "t.npy", "--size", 64, "--camera", "perspective")
    assert result.exit_code == 1
    assert "the mesh is outside the image of 64 × 64 pixels" in result.stderr
    (tmp_path / "broken.ply").write_text("ply\nnonsense")
    result = invoke("convert", tmp_path / "broken.ply", tmp_path / "t.npy", "--size", 64)
    assert result.exit_code == 1
    assert (tmp_path / "t.npy").read_text() == "before"
    assert invoke("convert", tmp_path / "missing.ply", tmp_path / "t.glb").exit_code == 1
    assert {path.name for path in tmp_path.iterdir()} == {"t.npy", "broken.ply"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["s.ply", "t.blend"], "the suffix must be one of .ply, .obj, .glb, .stl, .exr, .tif, .tiff, .npy"),
        (["d.npy", "t.ply"], "d.npy is not a mesh: to make t.ply from normals, use normalmesh reconstruct"),
        (["s.ply", "t.npy"], "the size of the depth map is missing: add --normals FILE or --size"),
        (["s.ply", "t.npy", "--size", "9", "--normals", "n.png"], "give only one of --normals, --size"),
        (
            ["s.ply", "t.npy", "--size", "9", "--pixel-size", "2", "--focal-px", "9"],
            "give only one of --focal-px, --pixel",
        ),
        (["s.ply", "t.glb", "--size", "9"], "require a mesh as IN and a depth map as OUT"),
        (["d.npy", "t.tif", "--camera", "K.txt"], "require a mesh as IN and a depth map as OUT"),
    ],
    ids=str,
)
def test_impossible_combinations(arguments, message):
    result = invoke("convert", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
