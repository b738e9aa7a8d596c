"""Test 3D Tiles: their description and contents, that levels fit together, and that folders are replaced as a whole."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import numpy as np
import pytest
import trimesh
from PIL import Image

import normalmesh as nm
from meshes import disc
from normalmesh.output import tileset
from normalmesh.output.tileset import write_tileset
from thread_counts import on_one_and_on_several
from tilesets import joined, outer_vertices, random_cut, read_tileset, wavy_surface

CAMERAS = [
    pytest.param(None, id="orthographic"),
    pytest.param(nm.Perspective(400, 400, 90, 90), id="perspective"),
]
FACES = 300


def with_holes():
    mask = disc(46, 22.0)
    mask[10:14, 20:26] = mask[30:33, 8:15] = False
    return mask


@pytest.fixture(scope="module")
def surface():
    return wavy_surface(with_holes())


@pytest.fixture(scope="module")
def folder(surface, tmp_path_factory):
    path = tmp_path_factory.mktemp("tilesets") / "tiles"
    write_tileset(surface, path, max_faces=FACES)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_description_is_complete(folder, surface):
    description, root = read_tileset(folder)
    tiles = root.all_tiles()
    assert description["asset"]["version"] == "1.1"
    assert description["asset"]["extras"] == {"units": "mm"}
    assert description["root"]["refine"] == "REPLACE"
    assert description["geometricError"] > root.entry["geometricError"] > 0
    assert len(tiles) > 20
    named = {tile.entry["content"]["uri"] for tile in tiles}
    assert {str(path.relative_to(folder)) for path in folder.rglob("*.*")} == named | {"tileset.json"}
    for tile in tiles:
        assert (tile.entry["geometricError"] == 0) == (not tile.children)
        assert all(child.entry["geometricError"] <= tile.entry["geometricError"] for child in tile.children)
        assert tile.children or len(tile.faces) <= FACES


def test_boxes_contain_what_is_below_them(folder):
    for tile in read_tileset(folder)[1].all_tiles():
        low, high = tile.box
        for other in tile.all_tiles():
            assert np.all(other.positions >= low - 1e-9)
            assert np.all(other.positions <= high + 1e-9)


@pytest.mark.parametrize("camera", CAMERAS)
def test_the_finest_tiles_are_the_surface(tmp_path, camera):
    surface = wavy_surface(with_holes(), camera)
    write_tileset(surface, tmp_path / "tiles", max_faces=FACES)
    leaves = [tile for tile in read_tileset(tmp_path / "tiles")[1].all_tiles() if not tile.children]
    positions, faces = joined(leaves)
    assert len(positions) == len(surface.vertices)
    assert len(faces) == len(surface.faces)
    tolerance = np.ptp(surface.vertices, axis=0).max() * 2.0**-24
    order = np.lexsort(surface.vertices.T[:2]), np.lexsort(positions.T[:2])
    np.testing.assert_allclose(positions[order[1]], surface.vertices[order[0]], atol=tolerance, rtol=0)


@pytest.mark.parametrize("camera", CAMERAS)
def test_levels_fit_together_without_cracks(tmp_path, camera):
    surface = wavy_surface(with_holes(), camera)
    write_tileset(surface, tmp_path / "tiles", max_faces=FACES)
    _, root = read_tileset(tmp_path / "tiles")
    leaves, leaf_faces = joined([tile for tile in root.all_tiles() if not tile.children])
    outline = set(map(tuple, leaves[outer_vertices(leaf_faces)]))
    rng = np.random.default_rng(1)
    mixed = 0
    for _ in range(20):
        tiles = random_cut(root, rng)
        mixed += len({len(tile.entry["content"]["uri"]) + len(tile.children) for tile in tiles}) > 1
        positions, faces = joined(tiles)
        assert set(map(tuple, positions[outer_vertices(faces)])) <= outline
        assert set(map(tuple, positions)) <= set(map(tuple, leaves))
    assert mixed > 5


def test_normals_are_the_same_along_borders(folder, surface):
    _, root = read_tileset(folder)
    seen = {}
    for tile in root.all_tiles():
        if len(tile.positions) < 3:
            continue
        border = outer_vertices(tile.faces)
        for place, normal in zip(map(tuple, tile.positions[border]), tile.normals[border], strict=True):
            seen.setdefault(place, []).append(normal)
    outline = set(map(tuple, root.positions[outer_vertices(root.faces)]))
    inner = [normals for place, normals in seen.items() if place not in outline and len(normals) > 3]
    assert len(inner) > 50
    same = [np.ptp(normals, axis=0).max() < 1e-6 for normals in inner]
    assert np.mean(same) > 0.9  # all but those of the outline, which coarse levels leave out


def test_errors_are_about_the_distance_from_the_surface(folder, surface):
    _, root = read_tileset(folder)
    shape = tuple(side // 2 for side in surface.shape)
    depth = surface.depth_map(shape)
    for tile in root.all_tiles():
        if not tile.children:
            continue
        screen = tile.positions[:, :2] * [1, -1]
        coarse = nm.Surface(tile.positions, tile.faces, screen, surface.camera, surface.shape)
        assert coarse.mesh.check().inverted_faces == 0
        away = np.abs(coarse.depth_map(shape) - depth)
        error = tile.entry["geometricError"]
        assert np.sqrt(np.nanmean(away**2)) < error
        assert np.nanquantile(away, 0.99) < 3 * error


def test_coarse_tiles_are_coarse(folder, surface):
    _, root = read_tileset(folder)
    assert len(root.faces) < len(surface.faces) / 8
    for tile in root.all_tiles():
        if tile.children:
            assert len(tile.faces) < 0.6 * sum(len(child.faces) for child in tile.children)


def test_contents_are_gltf_with_y_up(folder, surface):
    read = trimesh.load_scene(folder / "tiles" / "0_0_0.glb").to_mesh()
    assert read.is_winding_consistent
    assert np.ptp(read.vertices[:, 1]) == pytest.approx(np.ptp(surface.vertices[:, 2]), rel=0.2)
    assert np.mean(read.face_normals[:, 1]) > 0.5
    np.testing.assert_allclose(np.linalg.norm(read.vertex_normals, axis=1), 1, atol=1e-6)


def test_a_surface_far_away_keeps_its_relief(tmp_path, surface):
    vertices = surface.vertices + np.array([3e6, -5e6, 1e7])
    far = nm.Surface(vertices, surface.faces, surface.screen, surface.camera, surface.shape)
    write_tileset(far, tmp_path / "far", max_faces=FACES)
    leaves = [tile for tile in read_tileset(tmp_path / "far")[1].all_tiles() if not tile.children]
    positions, _ = joined(leaves)
    assert np.ptp(positions[:, 2]) == pytest.approx(np.ptp(surface.vertices[:, 2]), abs=1e-4)


def test_each_tile_has_its_part_of_the_texture(tmp_path, surface):
    rows, columns = surface.shape
    v, u = np.indices((2 * rows, 2 * columns))
    image = np.stack([255 * u / u.max(), 255 * v / v.max(), 0 * u, 0 * u + 255], axis=-1).astype(np.uint8)
    for channels in (3, 4):
        write_tileset(surface, tmp_path / "tiles", Image.fromarray(image[..., :channels]), max_faces=FACES)
        for tile in read_tileset(tmp_path / "tiles")[1].all_tiles():
            view = tile.tree["bufferViews"][tile.tree["images"][0]["bufferView"]]
            content = (tmp_path / "tiles" / tile.entry["content"]["uri"]).read_bytes()
            start = 28 + int.from_bytes(content[12:16], "little") + view["byteOffset"]
            part = np.asarray(Image.open(io.BytesIO(content[start : start + view["byteLength"]])))
            assert part.shape[2] == channels
            place = np.clip((tile.coordinates * part.shape[1::-1]).astype(int), 0, np.array(part.shape[1::-1]) - 1)
            found = part[place[:, 1], place[:, 0], :2] / 255
            np.testing.assert_allclose(found, tile.positions[:, :2] * [1, -1] / [columns, rows], atol=0.04)


def test_a_small_surface_is_one_tile(tmp_path):
    surface = wavy_surface(np.ones((3, 3), bool))
    surface.save(f"{tmp_path / 'tiles'}{os.sep}")
    _, root = read_tileset(tmp_path / "tiles")
    assert len(root.all_tiles()) == 1
    assert len(root.faces) == 18


def test_flat_and_broken_surfaces_are_written(tmp_path):
    mesh = wavy_surface(np.ones((20, 20), bool))
    flat = nm.Surface(mesh.vertices * [1, 1, 0], mesh.faces, mesh.screen, mesh.camera, mesh.shape)
    # Three faces at one edge, two that overlap, one without area.
    more = np.array([[0, 1, 30], [0, 1, 40], [5, 5, 6]], np.int32)
    for name, faces in (("flat", flat.faces), ("broken", np.concatenate([mesh.faces, more]))):
        made = nm.Surface(flat.vertices, faces, flat.screen, flat.camera, flat.shape)
        write_tileset(made, tmp_path / name, max_faces=100)
        assert len(read_tileset(tmp_path / name)[1].all_tiles()) > 5


def test_tiles_do_not_depend_on_the_number_of_threads(tmp_path, surface):
    def written():
        write_tileset(surface, tmp_path / "tiles", max_faces=FACES)
        return contents(tmp_path / "tiles")

    alone, together = on_one_and_on_several(written)
    assert alone == together


def test_only_a_tileset_is_replaced(tmp_path, surface):
    surface.save(f"{tmp_path}/tiles/")
    before = contents(tmp_path / "tiles")
    surface.save(tmp_path / "tiles")  # a folder by now
    assert contents(tmp_path / "tiles") == before
    (tmp_path / "empty").mkdir()
    surface.save(tmp_path / "empty")
    assert contents(tmp_path / "empty") == before
    (tmp_path / "tiles" / "notes.txt").write_text("mine")
    with pytest.raises(nm.NormalMeshError, match="other files in it"):
        surface.save(tmp_path / "tiles")
    (tmp_path / "empty" / "tileset.json").write_text(json.dumps({"asset": {"generator": "another"}}))
    with pytest.raises(nm.NormalMeshError, match="other files in it"):
        surface.save(tmp_path / "empty")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(nm.NormalMeshError, match="cannot write"):
        surface.save(f"{tmp_path}/file/")
    with pytest.raises(nm.NormalMeshError, match="does not exist"):
        surface.save(f"{tmp_path}/no/where/")


def test_the_current_folder_is_not_replaced(tmp_path, surface, monkeypatch):
    (tmp_path / "outer" / "here").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "outer" / "here")
    for path in (".", "./", "..", str(tmp_path / "outer")):
        with pytest.raises(nm.NormalMeshError, match="current folder"):
            surface.save(path)
    assert Path.cwd() == tmp_path / "outer" / "here"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("failing", ["write_new", "_box"])
def test_a_failure_leaves_the_old_tileset(tmp_path, surface, monkeypatch, error, failing):
    surface.save(f"{tmp_path}/tiles/")
    before = contents(tmp_path)

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(tileset, failing, fail)
    with pytest.raises(nm.NormalMeshError if isinstance(error, OSError) else KeyboardInterrupt):
        surface.save(f"{tmp_path}/tiles/")
    assert contents(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["tiles"]


def test_normals_are_left_out_with_a_warning(tmp_path, surface):
    normals = nm.NormalMap(np.broadcast_to([0.0, 0.0, 1.0], (*surface.shape, 3)))
    with pytest.warns(nm.NormalMeshWarning, match="normals are left out"):
        surface.save(f"{tmp_path}/tiles/", normals=normals)
