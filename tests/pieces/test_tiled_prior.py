"""Check priors in tiled reconstructions: they do the same as in memory, on the same mesh and on a mesh of tiles."""

import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

from normalmesh import (
    Jumps,
    NormalMap,
    NormalMeshError,
    NormalMeshWarning,
    Perspective,
    decimate,
    integrate,
    reconstruct,
    reconstruct_tiled,
)
from normalmesh.engine.engine import Engine
from normalmesh.engine.work_folder import WorkFolder
from normalmesh.integration.depth_levels import mean_levels, with_prior_levels
from normalmesh.integration.integration_options import IntegrationOptions
from normalmesh.jumps.finding import jumps_along
from normalmesh.jumps.jump_pixels import PixelsInMemory
from normalmesh.jumps.seams import seams_of
from normalmesh.pieces.clean_map import CleanMap
from normalmesh.pieces.mask_components import find_components
from normalmesh.pieces.mesh_in_pieces import MeshInPieces
from normalmesh.pieces.tile_grid import TileGrid
from normalmesh.pieces.tiled_prior import TiledPrior
from normalmesh.pieces.whole_mesh import WholeMesh
from surfaces import centres, sphere, waves

SHAPE, SIDE = (300, 560), 256
PINHOLE = Perspective(400.0, 400.0, 160.0, 160.0)

#: Points in several tiles, beside a seam, and beside the outline.
PLACES = np.array([[20.5, 30.5], [255.9, 128.2], [256.1, 255.7], [400.3, 290.9], [530.2, 11.0], [561.0, 200.5]])


def solved(mesh, normal_map, prior, weight=None, jumps=None):
    """Return the unknown (N,) and the solved mesh, of a solve in tiles of a mesh made in memory."""
    with tempfile.TemporaryDirectory() as path, WorkFolder(Path(path) / "work", {}) as folder:
        return solved_by(Engine(folder), mesh, normal_map, prior, weight, jumps or Jumps())


def solved_by(engine, mesh, normal_map, prior, weight, jumps):
    """Return the same, with results in a folder."""
    run = engine.run
    components = find_components(normal_map, run, SIDE)
    clean, grid = CleanMap(normal_map, components), TileGrid(components.rectangle, SIDE)
    seams = seams_of(mesh, jumps, normal_map)
    waiting, none = np.zeros(len(mesh.vertices), bool), np.empty(0, np.int64)
    whole = WholeMesh(mesh.vertices, mesh.faces, waiting, seams, none).cut()
    given = TiledPrior.of(IntegrationOptions(prior=prior, prior_weight=weight), clean, grid, jumps, run)
    noises = np.zeros((1, 2))
    MeshInPieces(whole, clean, grid, noises, noises, jumps, given, engine)
    fixed = whole.component[whole.faces[given.on_faces(whole.screen(), run).touched, 0]]
    shift = mean_levels(whole.unknown, whole.component, whole.screen(), normal_map.camera, 1.0)
    return whole.unknown - with_prior_levels(shift, whole.levels, fixed)[whole.component], whole


def unknown(surface):
    return surface.camera.unknown_of_depth(surface.camera.depth(surface.vertices))


def left_out(function, *arguments, **options):
    """Call a function; return its result, and the warnings of points that are left out."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*arguments, **options)
    return result, [str(each.message) for each in caught if "left out" in str(each.message)]


def check_same(mesh, normal_map, prior, weight=None, jumps=None):
    """Check that a solve in tiles is that in memory; return the surface."""
    options = {"refine": 0, "noise": 0.0, "discontinuities": jumps is not None, "jumps": jumps}
    expected, missed = left_out(integrate, mesh, normal_map, prior=prior, prior_weight=weight, **options)
    (found, whole), messages = left_out(solved, mesh, normal_map, prior, weight, jumps)
    assert messages == missed
    # In memory, vertices are added until there are as many as asked for.
    count = len(whole.vertices)
    assert np.array_equal(whole.vertices, expected.screen[:count])
    assert np.abs(found - unknown(expected)[:count]).max() < 1e-6 * normal_map.camera.pixel_length
    assert float(whole.error) < 1e-6
    return expected


@pytest.fixture(scope="module")
def wavy():
    """Return waves with several tiles, their heights, and a mesh."""
    normal_map, height = waves(SHAPE)
    return normal_map, height, decimate(normal_map, vertices=900)


def points_of(height, bend=2.0):
    """Return points (K, 3) that bend the surface a little."""
    column, row = np.minimum(PLACES.astype(int), [SHAPE[1] - 1, SHAPE[0] - 1]).T
    return np.column_stack([PLACES, 300 + height[row, column] + bend * np.sin(np.arange(len(PLACES)))])


@pytest.mark.parametrize("weight", [1e-9, 100.0, 1e9])
def test_a_single_point_only_shifts(wavy, weight):
    normal_map, _, mesh = wavy
    plain = integrate(mesh, normal_map, refine=0, noise=0.0, discontinuities=False)
    found, _ = solved(mesh, normal_map, [[255.5, 130.5, 1e5, weight]])
    assert np.ptp(found - plain.vertices[:, 2]) < 1e-9
    assert 9e4 < found.mean() < 1.1e5


@pytest.mark.parametrize("weight", [1e-3, 100.0, 1e6])
def test_points_in_several_tiles(wavy, weight):
    normal_map, height, mesh = wavy
    surface = check_same(mesh, normal_map, points_of(height), weight)
    if weight == 1e6:
        assert np.abs(surface.vertices[:, 2] - 300).max() < 40


def test_points_of_different_weights(wavy):
    normal_map, height, mesh = wavy
    check_same(mesh, normal_map, np.column_stack([points_of(height), [1e-9, 1e4, 1.0, 1e-3, 50.0, 1e2]]))


@pytest.mark.parametrize("weight", [None, 10.0])
def test_depth_maps(wavy, weight):
    normal_map, height, mesh = wavy
    rough = height + np.random.default_rng(0).normal(size=height.shape)
    rough[:40, 200:300] = np.nan
    check_same(mesh, normal_map, rough.astype(np.float32), weight)


@pytest.mark.parametrize("given", ["points", "map"])
def test_perspective(given):
    normal_map, depth = sphere(320, PINHOLE)
    mesh = decimate(normal_map, vertices=600)
    prior = depth * (1 + 0.02 * np.cos(centres(depth.shape)[0] / 40))
    if given == "points":
        places = np.array([[100.5, 60.5], [255.9, 128.2], [257.0, 258.0], [200.3, 290.9]])
        column, row = places.astype(int).T
        prior = np.column_stack([places, prior[row, column]])
    check_same(mesh, normal_map, prior)


@pytest.mark.parametrize("given", ["points", "map"])
def test_components_that_meet_in_a_tile(given):
    """One of three components has no point. Pixels at the ragged rims belong to no face of their component."""
    mask = np.ones(SHAPE, bool)
    u, v = centres(SHAPE)
    mask[np.abs(u - 270 - 20 * np.sin(v / 15)) < 2] = False
    mask[200:203, 400:] = False
    mask[200:, 400:403] = False
    normal_map, height = waves(SHAPE, mask=mask)
    mesh = decimate(normal_map, vertices=400)
    prior = np.where((u < 270) | (v < 200), height + 90 + u / 100, np.nan)
    if given == "points":
        prior = np.array([[20.5, 20.5, 40.0], [240.0, 220.5, 41.0], [240.3, 100.2, 42.0], [500.5, 100.5, 60.0]])
    check_same(mesh, normal_map, prior)


def dome():
    """Return normals and heights of a dome over a plain, and the jumps around it, which a seam crosses."""
    shape, middle, radius = (280, 320), (150.0, 250.0), 60
    u, v = centres(shape)
    inside = np.hypot(u - middle[1], v - middle[0]) < radius
    top = np.sqrt(np.maximum((2 * radius) ** 2 - (u - middle[1]) ** 2 - (v - middle[0]) ** 2, 0))
    curved = np.stack([u - middle[1], middle[0] - v, top], axis=-1) / (2 * radius)
    normal_map = NormalMap(np.where(inside[..., None], curved, [0.0, 0.0, 1.0]))
    edge = inside & ~ndimage.binary_erosion(inside)
    return normal_map, np.where(inside, top, 0.0), jumps_along(edge, PixelsInMemory(normal_map))


@pytest.mark.parametrize("given", ["points", "one", "map"])
def test_jumps(given):
    """Points beside a jump act on their side of it; on a part with one point, it only shifts."""
    normal_map, height, jumps = dome()
    mesh = decimate(normal_map, vertices=300, jumps=jumps)
    if mesh.lines is not None:
        jumps = replace(jumps, lines=mesh.lines)
    places = np.array([[20.5, 20.5], [250.5, 92.5], [250.5, 88.5], [257.0, 180.5], [100.3, 270.1]])
    column, row = places.astype(int).T
    prior = np.column_stack([places, height[row, column]])
    prior = {"points": prior, "one": prior[:2], "map": height}[given]
    check_same(mesh, normal_map, prior, jumps=jumps)


def test_points_that_are_left_out_are_reported_once(wavy):
    normal_map, height, mesh = wavy
    points = points_of(height)
    far = np.concatenate([points, [[900.0, 20.0, 3.0], [-50.0, 1e9, 4.0]]])
    (found, _), messages = left_out(solved, mesh, normal_map, far)
    assert messages == ["2 control points lie off the foreground and are left out"]
    assert np.array_equal(found, solved(mesh, normal_map, points)[0])
    with pytest.raises(NormalMeshError, match="no control point lies on the foreground"):
        solved(mesh, normal_map, far[-2:])


@pytest.mark.parametrize("given", ["points", "map"])
def test_reconstructions(given):
    """The whole way: meshes of tiles are others than in memory, so surfaces agree as well as both are accurate."""
    normal_map, height = waves(SHAPE, steepness=0.4)
    slope = 0.01 * centres(SHAPE)[0]
    prior = 50 + height + slope
    if given == "points":
        places = PLACES[:5]
        column, row = places.astype(int).T
        prior = np.column_stack([places, prior[row, column]])
    options = {"vertices": 1500, "prior": prior, "discontinuities": False}
    tiled = reconstruct_tiled(normal_map, tiles=SIDE, workers=0, **options)
    whole = reconstruct(normal_map, **options)
    gap = tiled.depth_map() - whole.depth_map()
    assert np.sqrt(np.nanmean(gap**2)) < 0.15
    assert abs(np.nanmean(gap)) < 0.02


def test_a_reconstruction_with_a_contradictory_prior_is_reported():
    normal_map = waves((280, 300), steepness=0.4)[0]
    points = [[u, v, 300 * ((u + v) // 70 % 2), 1e6] for u in range(15, 290, 70) for v in range(15, 270, 70)]
    options = {"vertices": 50, "prior": points, "discontinuities": False, "refine": 0}
    with pytest.warns(NormalMeshWarning, match=r"the prior changes the slope of .* of a component by more than a half"):
        reconstruct_tiled(normal_map, tiles=SIDE, workers=0, **options)


def test_a_depth_map_that_needs_too_much_memory_is_refused():
    normal_map, height = waves((280, 300))
    options = {"vertices": 20000, "tiles": SIDE, "workers": 0, "memory_limit": 7e8}
    with pytest.raises(NormalMeshError, match=r"the tiled reconstruction .* are allowed \(memory_limit\)"):
        reconstruct_tiled(normal_map, prior=height, **options)


def test_depth_maps_on_disk(tmp_path, wavy):
    normal_map, height, mesh = wavy
    np.save(tmp_path / "depth.npy", height)
    found = solved(mesh, normal_map, np.load(tmp_path / "depth.npy", mmap_mode="r"))[0]
    assert np.array_equal(found, solved(mesh, normal_map, height)[0])
