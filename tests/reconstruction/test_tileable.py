"""Test surfaces of maps that repeat, from end to end."""

import warnings

import numpy as np
import pytest

from normalmesh import (
    DecimatedMesh,
    NormalMap,
    NormalMeshError,
    NormalMeshWarning,
    Perspective,
    add_noise,
    decimate,
    evaluate,
    integrate,
    reconstruct,
    reconstruct_levels,
    reconstruct_tiled,
    reconstruct_within,
)
from normalmesh.mesh.coverage import Coverage
from normalmesh.mesh.walls import with_walls
from normalmesh.reconstruction.tiling import Tiling
from periodic_maps import map_of_slopes, waves
from thread_counts import on_one_and_on_several

SHAPE = (160, 140)
TILES = Tiling(256, workers=0)


def steps(heights):
    """Return differences between neighbours in all rows and columns, those across the sides last."""
    return np.diff(heights, axis=1, append=heights[:, :1]), np.diff(heights, axis=0, append=heights[:1]).T


def seam_and_inside(surface, heights):
    """Return the mean error of the steps of the depth map across the sides, and of those inside."""
    errors = [np.abs(a - b) for a, b in zip(steps(surface.depth_map()), steps(heights), strict=True)]
    return max(each[:, -1].mean() for each in errors), np.mean([each[:, :-1].mean() for each in errors])


def check_repeats(surface):
    """Check that copies join exactly: no side is open, and twins have one height and one normal."""
    joined = surface.repeats.wrap(surface.mesh)
    first, height = joined.first_twins, surface.vertices[:, 2]
    assert (height == height[first]).all()
    assert (surface.vertex_normals == surface.vertex_normals[first]).all()
    rows, columns = surface.shape
    offsets = (surface.screen - surface.screen[first]) % [columns, rows]
    assert (offsets == 0).all()
    return joined


@pytest.mark.parametrize("creased", [False, True])
def test_waves(creased):
    heights, right, down = waves(SHAPE, creased=creased)
    normal_map = map_of_slopes(right, down)
    plain = reconstruct(normal_map, vertices=900)
    surface = reconstruct(normal_map, vertices=900, tileable=True)
    joined = check_repeats(surface)
    assert (joined.opposite >= 0).all()
    assert len(surface.vertices) == 900
    rmse, plain_rmse = (np.std(each.depth_map() - heights) for each in (surface, plain))
    assert rmse < 1.15 * plain_rmse
    (seam, inside), (plain_seam, _) = seam_and_inside(surface, heights), seam_and_inside(plain, heights)
    assert seam < 2 * inside
    assert seam < 0.6 * plain_seam


@pytest.mark.parametrize("tileable", ["x", "y"])
def test_one_direction(tileable):
    heights, right, down = waves(SHAPE)
    # Not periodic in the other direction: a parabola.
    extent = SHAPE[0] if tileable == "x" else SHAPE[1]
    middle = np.arange(extent) + 0.5 - extent / 2
    middle = middle[:, None] if tileable == "x" else middle[None]
    heights = heights + middle**2 / 400
    if tileable == "x":
        down = down + middle / 200
    else:
        right = right + middle / 200
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        surface = reconstruct(map_of_slopes(right, down), vertices=900, tileable=tileable)
    joined = check_repeats(surface)
    open_sides = surface.screen[surface.faces.ravel()[np.flatnonzero(joined.opposite < 0)]]
    assert len(open_sides)
    assert np.std(surface.depth_map() - heights) < 0.15
    assert str(surface.repeats).startswith(f"in {tileable},")


def test_rolled_map():
    """The seam is no special place: the errors of a rolled map are as large as before."""
    heights, right, down = waves(SHAPE, creased=True)
    surface = reconstruct(map_of_slopes(right, down), vertices=900, tileable=True)
    rolled = [np.roll(each, (50, 60), (0, 1)) for each in (heights, right, down)]
    other = reconstruct(map_of_slopes(*rolled[1:]), vertices=900, tileable=True)
    errors = np.std(surface.depth_map() - heights), np.std(other.depth_map() - rolled[0])
    assert max(errors) < 1.2 * min(errors)
    assert np.std(other.depth_map() - np.roll(surface.depth_map(), (50, 60), (0, 1))) < 1.5 * max(errors)


def test_mean_slope_is_removed_and_reported():
    heights, right, down = waves(SHAPE)
    with pytest.warns(NormalMeshWarning, match=r"mean slope of 4\.6°"):
        surface = reconstruct(map_of_slopes(right + 0.08, down), vertices=900, tileable=True)
    np.testing.assert_allclose(surface.repeats.mean_slope, (0.08, 0), atol=1e-3)
    assert np.std(surface.depth_map() - heights) < 0.1


def test_map_that_does_not_repeat():
    i, j = np.indices((64, 64))
    bowl = map_of_slopes((j - 31.5) / 64, (i - 31.5) / 64)
    with pytest.warns(NormalMeshWarning, match="the left and right sides, but by .* does not seem to repeat"):
        check_repeats(reconstruct(bowl, vertices=200, tileable=True))


def test_noise_is_filtered_across_the_sides():
    heights, right, down = waves(SHAPE)
    noisy = add_noise(map_of_slopes(right, down), degrees=6)
    surface = reconstruct(noisy, vertices=600, tileable=True)
    check_repeats(surface)
    seam, inside = seam_and_inside(surface, heights)
    assert seam < 2 * inside


def ramp():
    """Return heights of a ramp that ends in a drop, and their slopes to the right and down."""
    rows, columns = SHAPE
    i, j = np.indices(SHAPE) + 0.5
    ramp = (abs(i - rows / 2) < 40) & (abs(j - columns / 2) < 35)
    share, across = (j - columns / 2 + 35) / 70, np.cos(np.pi * (i - rows / 2) / 80)
    heights = np.where(ramp, 14 * share * across**2, 0) + 2 * np.cos(2 * np.pi * i / rows)
    right = np.where(ramp, 14 / 70 * across**2, 0)
    down = np.where(ramp, -14 * share * np.pi / 40 * across * np.sin(np.pi * (i - rows / 2) / 80), 0)
    down -= 4 * np.pi / rows * np.sin(2 * np.pi * i / rows)
    return heights, right, down


def test_jumps_inside():
    """The drop, which normals do not show, is no mean slope."""
    heights, right, down = ramp()
    surface = reconstruct(map_of_slopes(right, down), vertices=1200, tileable=True)
    assert len(surface.discontinuities.lines) == 1
    check_repeats(surface)
    assert surface.repeats.tilt < 0.02
    assert np.std(surface.depth_map() - heights) < 0.2


@pytest.mark.parametrize("shift", [0, 70, 80])
def test_walls_go_on_beyond_the_sides(shift):
    """The drop reaches beyond the bottom of the map: copies of the surface have no gap, neither inside nor between."""
    _, right, down = (np.roll(each, shift, axis=0) for each in ramp())
    surface = reconstruct(map_of_slopes(right, down), vertices=1200, tileable=True)
    assert len(surface.walls) > 10
    rows, columns = SHAPE
    screen = surface.screen % [columns, rows]
    points = np.column_stack([screen, surface.vertices[:, 2]])
    place = np.unique(points.round(9), axis=0, return_inverse=True)[1].ravel()
    sides = np.concatenate([place[surface.all_faces][:, [k, (k + 1) % 3]] for k in range(3)])
    assert not set(map(tuple, sides.tolist())) ^ set(map(tuple, sides[:, ::-1].tolist()))
    # Where a wall goes on beyond the bottom, it is lit alike on both sides.
    shown, count = with_walls(surface), len(surface.vertices)
    twins = shown.repeats.wrap(shown.mesh).first_twins
    top, bottom = (count + np.flatnonzero(shown.screen[count:, 1] == side) for side in (0, rows))
    if shift == 80:
        assert len(top) == 2
        assert set(twins[bottom]) == set(top)


def test_hole_at_the_corner_of_the_tile():
    heights, right, down = waves(SHAPE)
    i, j = (np.minimum(each, size - each) for each, size in zip(np.indices(SHAPE) + 0.5, SHAPE, strict=True))
    mask = np.hypot(i, j) > 40
    surface = reconstruct(map_of_slopes(right, down, mask), vertices=900, tileable=True)
    check_repeats(surface)
    depth = surface.depth_map()
    assert np.nanstd((depth - heights)[mask]) < 0.12


def test_threads():
    _, right, down = waves((80, 90))
    normal_map = map_of_slopes(right, down)
    one, several = on_one_and_on_several(lambda: reconstruct(normal_map, vertices=400, tileable=True))
    assert np.array_equal(one.vertices, several.vertices)
    assert np.array_equal(one.faces, several.faces)


def test_other_ways():
    heights, right, down = waves(SHAPE)
    normal_map = map_of_slopes(right, down)
    for surface, vertices in zip(reconstruct_levels(normal_map, [900, 200], tileable=True), (900, 200), strict=True):
        check_repeats(surface)
        assert len(surface.vertices) == vertices
    check_repeats(integrate(decimate(normal_map, vertices=500, tileable=True), normal_map))
    # The slope that is removed is no angle to the normals.
    with pytest.warns(NormalMeshWarning, match="mean slope") as found:
        surface = reconstruct_within(map_of_slopes(right + 0.1, down), max_angle=4, tileable=True)
    assert len(found) == 1
    check_repeats(surface)
    assert np.std(surface.depth_map() - heights) < 0.3


def test_what_cannot_repeat_is_refused():
    _, right, down = waves((32, 32))
    normal_map = map_of_slopes(right, down)
    perspective = NormalMap(normal_map.normals, None, Perspective.centred(50, (32, 32)))
    for refused, options, message in (
        (normal_map, {"preset": "paper"}, "preset"),
        (normal_map, {"prior": [[3.0, 3.0, 1.0]]}, "take no prior"),
        (perspective, {}, "orthographic camera"),
        (map_of_slopes(right, down, np.pad(np.ones((28, 28)), 2)), {}, "both its left and right sides .*, give a mask"),
    ):
        with pytest.raises(NormalMeshError, match=message):
            reconstruct(refused, vertices=50, tileable=True, **options)


@pytest.fixture(scope="module")
def wide():
    """Return heights and map of a texture of several tiles."""
    heights, right, down = waves((300, 640), creased=True)
    return heights, map_of_slopes(right, down)


@pytest.mark.parametrize("tileable", [True, "x", "y"])
def test_in_tiles(tileable, wide):
    heights, normal_map = wide
    whole = reconstruct(normal_map, vertices=2000, tileable=tileable)
    tiled = reconstruct(normal_map, vertices=2000, tileable=tileable, tiles=TILES)
    check_repeats(tiled)
    assert len(tiled.vertices) == pytest.approx(2000, abs=3)
    assert tiled.mesh.check().ok
    assert tiled.coverage == Coverage.of(tiled.mesh, normal_map.mask)
    errors = [np.std(each.depth_map() - heights) for each in (tiled, whole)]
    assert errors[0] < 1.2 * errors[1]
    assert evaluate(tiled, normal_map).mae < 1.05 * evaluate(whole, normal_map).mae
    np.testing.assert_allclose(tiled.repeats.mean_slope, whole.repeats.mean_slope, atol=1e-9)
    if tileable is True:
        seam, inside = seam_and_inside(tiled, heights)
        assert seam < 2 * inside
    uncertainty = tiled.uncertainty()
    assert (uncertainty == uncertainty[tiled.repeats.wrap(tiled.mesh).first_twins]).all()
    assert np.median(uncertainty) == pytest.approx(np.median(whole.uncertainty()), rel=0.2)


@pytest.mark.parametrize("tileable", [True, "x", "y"])
@pytest.mark.parametrize("shape", [(300, 520), (513, 200)])
def test_heights_in_tiles_are_those_of_the_same_mesh_in_memory(shape, tileable):
    """No vertex is added after the last solve: equations and heights across the sides are those in memory."""
    i, j = (np.minimum(each, size - each) for each, size in zip(np.indices(shape) + 0.5, shape, strict=True))
    normal_map = map_of_slopes(*waves(shape, seed=3)[1:], np.hypot(i, j) > 30)
    options = {"noise": 0.0, "refine": 0, "discontinuities": False}
    tiled = reconstruct(normal_map, threshold=0.5, tileable=tileable, tiles=TILES, **options)
    check_repeats(tiled)
    every = np.ones(len(tiled.vertices), bool)
    mesh = DecimatedMesh(tiled.screen, tiled.faces, every, tiled.decimation, repeats=tiled.repeats)
    whole = integrate(mesh, normal_map, **options)
    np.testing.assert_allclose(tiled.vertices, whole.vertices, atol=1e-9)


def test_tiles_of_a_noisy_map_with_a_mean_slope():
    heights, right, down = waves((280, 400))
    noisy = add_noise(map_of_slopes(right + 0.08, down), degrees=6)
    surfaces = []
    for tiles in (None, TILES):
        with pytest.warns(NormalMeshWarning, match=r"mean slope of 4\.[56]°"):
            surfaces.append(reconstruct(noisy, vertices=1200, tileable=True, tiles=tiles))
    whole, tiled = surfaces
    check_repeats(tiled)
    assert np.std(tiled.depth_map() - heights) < 1.2 * np.std(whole.depth_map() - heights)
    np.testing.assert_allclose(tiled.repeats.mean_slope, whole.repeats.mean_slope, atol=1e-6)


def test_jumps_in_tiles_at_a_side():
    rows, columns = shape = (280, 300)
    i, j = np.indices(shape) + 0.5
    # A ramp across the upper and the lower side ends in a drop that normals do not show.
    row = np.minimum(i, rows - i)
    ramp = (row < 80) & (abs(j - columns / 2) < 70)
    share, across = (j - columns / 2 + 70) / 140, np.cos(np.pi * row / 160)
    right = np.where(ramp, 0.2 * across**2, 0)
    down = np.where(ramp, -28 * share * np.pi / 80 * across * np.sin(np.pi * row / 160), 0) * np.sign(rows / 2 - i)
    normal_map = map_of_slopes(right, down)
    whole = reconstruct(normal_map, vertices=2000, tileable=True)
    tiled = reconstruct(normal_map, vertices=2000, tileable=True, tiles=TILES)
    check_repeats(tiled)
    assert len(tiled.discontinuities.lines) == len(whole.discontinuities.lines) == 2
    assert tiled.repeats.tilt < 0.02


def test_other_ways_in_tiles(wide, tmp_path):
    heights, normal_map = wide
    for surface in reconstruct_levels(normal_map, [2000, 500], tileable=True, tiles=TILES):
        check_repeats(surface)
    within = reconstruct_within(normal_map, max_angle=2, tileable=True, tiles=TILES)
    check_repeats(within)
    assert evaluate(within, normal_map).mae < 2
    options = {"vertices": 1000, "tileable": "x", "tiles": 256}
    source, work = tmp_path / "wide.npy", tmp_path / "work"
    np.save(source, normal_map.normals)
    one = reconstruct_tiled(source, workers=0, work=work, keep_work=True, **options)
    again = reconstruct_tiled(source, workers=0, work=work, **options)
    for other in (again, reconstruct_tiled(source, workers=2, **options)):
        check_repeats(other)
        assert np.array_equal(other.vertices, one.vertices)
        assert np.array_equal(other.faces, one.faces)
    assert np.std(one.depth_map() - heights) < 0.2


def test_tiles_that_do_not_repeat():
    i, j = np.indices((260, 300))
    bowl = map_of_slopes((j - 149.5) / 300, (i - 129.5) / 300)
    with pytest.warns(NormalMeshWarning, match="the left and right sides, but by .* does not seem to repeat") as found:
        check_repeats(reconstruct(bowl, vertices=300, tileable="x", tiles=TILES))
    assert {each.filename for each in found} == {__file__}
    _, right, down = waves((260, 300))
    for options, refused, message in (
        ({"prior": [[3.0, 3.0, 1.0]]}, None, "take no prior"),
        ({}, np.pad(np.ones((256, 296)), 2), "both its left and right sides .*, give a mask"),
    ):
        with pytest.raises(NormalMeshError, match=message):
            reconstruct(map_of_slopes(right, down, refused), vertices=300, tileable=True, tiles=TILES, **options)
