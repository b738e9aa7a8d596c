"""Jumps that are searched tile by tile are those of the whole map."""

import numpy as np
import pytest

from normalmesh import NormalMap, NormalMeshError, Orthographic, Perspective, read_normal_map
from normalmesh.decimation.hierarchy import Hierarchy
from normalmesh.decimation.near_cells import NearCells
from normalmesh.facets._face_means import BULGE
from normalmesh.facets.face_means import FaceMeans
from normalmesh.jumps.finding import jumps_along, jumps_of
from normalmesh.jumps.jump_pixels import PixelsInMemory
from normalmesh.mesh.jumps import Jumps
from normalmesh.normals.noise import MapNoise, Noise, component_noise, without_noise
from normalmesh.pieces.clean_map import CleanMap
from normalmesh.pieces.mask_components import find_components
from normalmesh.pieces.tile_jumps import TilePixels, tiled_jumps, tiled_jumps_along
from normalmesh.pieces.tile_noise import find_noise
from scenes import scene
from surfaces import noisy, waves
from task_loop import Loop

SIDE = 128
CAMERAS = [Orthographic(), Perspective(900.0, 900.0, 170.0, 150.0)]


def torn_map(name, camera, several, size=330):
    """Return a scene whose jumps cross tiles of 128 px, with holes; in several components that touch at corners."""
    mask = np.ones((size, size), bool)
    mask[:11], mask[:, :5] = False, False
    mask[150:170, 100:141] = False
    mask[160, 120] = True
    if several:
        mask[250], mask[:250, 300] = False, False
        mask[20:50, 20:23] = mask[20:23, 20:50] = mask[47:50, 20:50] = mask[20:50, 47:50] = False
        # Pixels beside seams that touch only at corners.
        for row, column in ((138, 138), (139, 266), (267, 133), (11 + 128, 5 + 128)):
            mask[row : row + 2, column : column + 2] = np.eye(2, dtype=bool)
    return scene(name, size).normal_map(camera, mask)


def clean_map(normal_map, run, degrees=0.0):
    components = find_components(normal_map, run, SIDE)
    noise = MapNoise((Noise(degrees),), (normal_map.foreground,))
    return CleanMap(normal_map, components, noise), without_noise(normal_map, noise)


def assert_same(found, expected, exact):
    """Check that two :class:`Jumps` are the same; up to rounding if they are not exact."""
    assert len(found.lines) == len(expected.lines)
    tolerance = {"rtol": 0, "atol": 0} if exact else {"rtol": 1e-4, "atol": 1e-4}
    for one, other in zip(found.lines, expected.lines, strict=True):
        assert np.array_equal(one.path, other.path)
        np.testing.assert_allclose([one.height, one.certainty], [other.height, other.certainty], **tolerance)
    np.testing.assert_allclose(found.noise, expected.noise, **tolerance)
    assert (found.placement is None) == (expected.placement is None)
    if expected.placement is not None:
        one, other = found.placement, expected.placement
        assert np.array_equal(one.mesh.vertices, other.mesh.vertices)
        assert np.array_equal(one.mesh.faces, other.mesh.faces)
        for name in ("centroids", "gradients", "areas", "offsets"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), **tolerance)


@pytest.mark.parametrize("camera", CAMERAS, ids=["parallel", "pinhole"])
@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
def test_meshes_of_tiles_join_to_that_of_the_whole(camera, several):
    normal_map = torn_map("flaps", camera, several)
    hierarchy, run = Hierarchy.of(normal_map), Loop()
    clean, _ = clean_map(normal_map, run)
    pixels = TilePixels(clean, clean.components.rectangle, normal_map.foreground, run, "jumps", SIDE)
    levels = [hierarchy.level(vertices) for vertices in (6000, 1500, 10)]
    assert [pixels.level(vertices) for vertices in (6000, 1500, 10)] == levels
    near = NearCells.of(np.array([[133.0, 139.0], [150.0, 300.0], [261.0, 267.0]]), 40.0, normal_map.shape)
    for found, mesh in (
        (lambda: pixels.means(levels[1]), hierarchy.mesh(levels[1])),
        (lambda: pixels.means(levels[2]), hierarchy.mesh(levels[2])),
        (lambda: pixels.mixed_means(near, levels[0], levels[2]), hierarchy.mixed_mesh(near, levels[0], levels[2])),
    ):
        run.stages.clear()
        means, expected = found(), FaceMeans.of(mesh, normal_map, 2)
        assert np.array_equal(means.mesh.vertices, mesh.vertices)
        assert np.array_equal(means.mesh.faces, mesh.faces)
        # The bulge, which the search does not need, depends on positions.
        used = np.delete(np.arange(means.table.shape[1]), BULGE)
        tolerance = 1e-9 if camera.is_central else 0
        np.testing.assert_allclose(means.table[:, used], expected.table[:, used], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("seed", range(3))
def test_meshes_with_the_largest_faces_join_across_tiles(seed):
    """The surface is almost flat, but for a few bumps: squares of 64 px are needed by small ones beyond the seam."""
    rng = np.random.default_rng(seed)
    v, u = np.mgrid[:600, :600] + 0.5
    slope = np.zeros((2, 600, 600))
    for centre in rng.uniform(0, 600, (6, 2)):
        away = np.array([u - centre[0], v - centre[1]])
        slope += 0.3 * away * np.exp(-(away**2).sum(axis=0) / rng.uniform(20, 400))
    normals = np.stack([-slope[0], slope[1], np.ones_like(u)], axis=-1)
    normal_map, run = NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True)), Loop()
    clean, _ = clean_map(normal_map, run)
    pixels = TilePixels(clean, clean.components.rectangle, normal_map.foreground, run, "jumps", SIDE)
    hierarchy = Hierarchy.of(normal_map)
    near = NearCells.of(rng.uniform(100, 500, (5, 2)), 20.0, normal_map.shape)
    fine, coarse = hierarchy.level(4000), hierarchy.level(1)
    for found, expected in (
        (pixels.means(coarse), hierarchy.mesh(coarse)),
        (pixels.mixed_means(near, fine, coarse), hierarchy.mixed_mesh(near, fine, coarse)),
    ):
        assert np.array_equal(found.mesh.vertices, expected.vertices)
        assert np.array_equal(found.mesh.faces, expected.faces)
    assert np.count_nonzero(expected.areas == 2048) > 20


@pytest.mark.parametrize("camera", CAMERAS, ids=["parallel", "pinhole"])
@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
@pytest.mark.parametrize("name", ["flaps", "cards"])
def test_lines_and_placement_are_those_of_the_whole_map(name, several, camera):
    normal_map, run = torn_map(name, camera, several), Loop()
    clean, smooth = clean_map(normal_map, run)
    expected = jumps_of(smooth, True)
    assert len(expected.lines) > 2
    found = tiled_jumps(clean, True, run, SIDE)
    assert_same(found, expected, exact=not camera.is_central)
    assert max(run.stages.values()) > 4


@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
def test_lines_of_noisy_maps_are_those_of_the_whole_map(several):
    normal_map, run = noisy(torn_map("flaps", Orthographic(), several), 4.0), Loop()
    clean, smooth = clean_map(normal_map, run, degrees=4.0)
    expected = jumps_of(smooth, "auto")
    assert len(expected.lines) > 1
    assert_same(tiled_jumps(clean, "auto", run, SIDE), expected, exact=True)


def test_smooth_maps_have_no_lines():
    run = Loop()
    clean, _ = clean_map(waves((330, 300))[0], run)
    assert_same(tiled_jumps(clean, "auto", run, SIDE), Jumps(), exact=True)
    assert list(run.stages) == ["components", "jumps", "jumps_0_levels", "jumps_0_first"]
    assert_same(tiled_jumps(clean, False, Loop(), SIDE), Jumps(), exact=True)


@pytest.mark.parametrize("camera", CAMERAS, ids=["parallel", "pinhole"])
def test_jumps_along_polylines_are_those_of_the_whole_map(camera):
    normal_map, run = torn_map("flaps", camera, several=True), Loop()
    clean, smooth = clean_map(normal_map, run)
    lines = [
        [[20.0, 60.0], [200.4, 140.2], [190.0, 240.0]],
        [[220.0, 20.0], [290.0, 20.0]],
        [[330.0, 320.0], [200, 330]],
    ]
    expected = jumps_along(lines, PixelsInMemory(smooth))
    assert len(expected.lines) > 1
    assert_same(tiled_jumps_along(lines, clean, run, SIDE), expected, exact=not camera.is_central)
    with pytest.raises(NormalMeshError, match="no line of jumps"):
        tiled_jumps_along([[[0.0, 0.0], [300.0, 0.0]]], clean, Loop(), SIDE)


def test_jumps_along_an_edge_image_are_those_of_the_whole_map():
    normal_map, run = torn_map("cards", Orthographic(), several=True), Loop()
    clean, smooth = clean_map(normal_map, run)
    image = np.zeros(normal_map.shape, bool)
    for k in range(290):
        image[30 + k // 2 : 33 + k // 2, 20 + k] = True
    image[139, 20:200] = True
    expected = jumps_along(image, PixelsInMemory(smooth))
    assert len(expected.lines) > 2
    assert_same(tiled_jumps_along(image, clean, run, SIDE), expected, exact=True)


def test_small_components_are_searched_together():
    """Components in one tile are one task, those that cross a seam have their own, those of few pixels none."""
    mask, normals = np.zeros((300, 300), bool), np.zeros((300, 300, 3))
    flaps = scene("flaps", 60).normal_map(Orthographic()).normals
    for top, left, side in ((3, 1, 60), (66, 66, 60), (100, 150, 60), (180, 20, 60), (270, 270, 8)):
        window = slice(top, top + side), slice(left, left + side)
        mask[window], normals[window] = True, flaps[:side, :side]
    normal_map, run = NormalMap(normals, mask), Loop()
    clean, smooth = clean_map(normal_map, run)
    expected = jumps_of(smooth, True)
    assert len(expected.lines) >= 8
    assert_same(tiled_jumps(clean, True, run, SIDE), expected, exact=True)
    assert run.stages == {"components": 9, "jumps": 3}


def test_jumps_of_a_map_on_disk_are_those_of_the_map_in_memory(tmp_path):
    given = torn_map("flaps", Orthographic(), several=True)
    np.save(tmp_path / "normals.npy", given.normals)
    np.save(tmp_path / "mask.npy", given.mask)
    opened = NormalMap.open(tmp_path / "normals.npy", tmp_path / "mask.npy")
    run, normal_map = Loop(), read_normal_map(tmp_path / "normals.npy", mask=tmp_path / "mask.npy")
    components = find_components(opened, run, SIDE)
    noise = find_noise(opened, components, run, SIDE)
    assert noise == component_noise(normal_map)
    expected = jumps_of(without_noise(normal_map, noise), True)
    assert_same(tiled_jumps(CleanMap(opened, components, noise), True, run, SIDE), expected, exact=True)
