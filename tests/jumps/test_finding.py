"""Jumps of whole maps: the lines of tent and stripes are found exactly, smooth maps have none."""

import warnings

import numpy as np
import pytest

from normalmesh import NormalMap, NormalMeshError, NormalMeshWarning, Orthographic, Perspective
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.jumps.finding import find_jumps
from scenes import Scene, dome, scene
from surfaces import flap, noisy, sphere, waves
from thread_counts import on_one_and_on_several

SIZE = 128


def normal_map_of(slope_u, slope_v, mask=None):
    normals = np.stack([-slope_u, slope_v, np.ones_like(slope_u)], axis=-1)
    return NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True), mask)


def tent():
    """Return heights and map of a roof, whose gable ends are steps: max(0, 38 − |v − 64|) for 26 < u < 102."""
    v, u = np.mgrid[:SIZE, :SIZE] + 0.5
    inside = (np.abs(u - 64) < 38) & (np.abs(v - 64) < 38)
    height = np.where(inside, 38 - np.abs(v - 64), 0.0)
    return height, normal_map_of(np.zeros_like(u), np.where(inside, -np.sign(v - 64), 0.0))


def stripes():
    """Return heights and map of stripes of 8 columns that rise or fall towards the top from a flat lower half."""
    v, u = np.mgrid[:SIZE, :SIZE] + 0.5
    sign = np.where(u // 8 % 2 == 0, 1.0, -1.0) * (v < 64)
    return sign * (64 - v), normal_map_of(np.zeros_like(u), -sign)


def sides(points):
    """Return the unit steps of a path (P, 2) of pixel corners, or of several."""
    paths = [points] if isinstance(points, np.ndarray) else points
    return {
        frozenset(map(tuple, pair))
        for path in paths
        for pair in zip(path[:-1].tolist(), path[1:].tolist(), strict=True)
    }


def upright(u, first, last):
    return np.stack([np.full(last - first + 1, u), np.arange(first, last + 1)], axis=1)


def found_sides(jumps):
    return sides([line.path for line in jumps.lines])


TRUE_LINES = {
    tent: [upright(26, 26, 102), upright(102, 26, 102)],
    stripes: [upright(u, 0, 64) for u in range(8, 128, 8)],
}


@pytest.mark.parametrize("discontinuities", ["auto", True])
@pytest.mark.parametrize("make", TRUE_LINES)
def test_lines_are_exactly_the_true_ones(make, discontinuities):
    height, normal_map = make()
    jumps = find_jumps(normal_map, discontinuities=discontinuities)
    assert found_sides(jumps) == sides(TRUE_LINES[make])
    assert jumps.length == sum(len(path) - 1 for path in TRUE_LINES[make])
    for line in jumps.lines:
        assert line.certainty >= 1
        u, v = line.path[len(line.path) // 2]
        assert abs(line.height) > 5
        assert abs(height[v, u] - height[v, u - 1]) > 5
    # The placement has the heights of the surface, up to a constant.
    placement = jumps.placement
    column, row = placement.centroids.astype(int).T
    back = placement.centroids - np.stack([column, row], axis=1) - 0.5
    error = placement.offsets - (placement.gradients * back).sum(axis=1) - height[row, column]
    error -= np.median(error)
    assert np.sqrt(np.average(error**2, weights=placement.areas)) < 0.05


@pytest.mark.parametrize("degrees", [0, 3, 10])
@pytest.mark.parametrize(
    "make",
    [
        lambda: waves((160, 160))[0],
        lambda: Scene.of(dome(160), (160, 160)).normal_map(Perspective(500.0, 500.0, 80.0, 80.0)),
        lambda: sphere(160)[0],
        lambda: Medallion(200).normal_map,
    ],
    ids=["waves", "dome", "sphere", "medallion"],
)
def test_smooth_maps_have_no_lines(make, degrees):
    with warnings.catch_warnings():
        # A few noisy normals point away from the viewer.
        warnings.simplefilter("ignore", NormalMeshWarning)
        normal_map = make() if degrees == 0 else noisy(make(), degrees)
    for choice in ("auto", True):
        jumps = find_jumps(normal_map, discontinuities=choice)
        assert jumps.lines == ()
        assert jumps.placement is None
    assert str(jumps) == "no jumps"


@pytest.mark.parametrize(
    "camera", [Orthographic(0.5), Perspective(400.0, 400.0, 64.0, 64.0)], ids=["parallel", "pinhole"]
)
@pytest.mark.parametrize("name", ["steps", "flaps", "cards", "hole"])
def test_lines_follow_the_silhouettes_of_a_scene(name, camera):
    truth = scene(name)
    jumps = find_jumps(truth.normal_map(camera), discontinuities=True)
    middles, heights = truth.silhouette()
    found = np.concatenate([(line.path[1:] + line.path[:-1]) / 2 for line in jumps.lines])
    distance = np.linalg.norm(found[:, None] - middles, axis=2)
    assert np.mean(distance.min(axis=1) <= 1.5) > 0.95
    assert np.mean(distance[:, heights > 2].min(axis=0) <= 1.5) > 0.95


def beside_flat(normal_map, rows=300, columns=300):
    """Return a map with a flat square, of more pixels, to the right of the given one."""
    width = normal_map.shape[1]
    normals = np.zeros((rows, width + 2 + columns, 3))
    normals[..., 2] = 1
    normals[: normal_map.shape[0], :width] = normal_map.normals
    mask = np.zeros(normals.shape[:2], bool)
    mask[: normal_map.shape[0], :width] = normal_map.mask
    mask[:, width + 2 :] = True
    return NormalMap(normals, mask)


@pytest.mark.parametrize("discontinuities", ["auto", True])
def test_components_have_their_own_rules(discontinuities):
    """A large flat component beside a flap neither hides its line nor gets one."""
    _, normal_map = flap()
    alone = find_jumps(normal_map, noise=0, discontinuities=discontinuities)
    both = find_jumps(beside_flat(normal_map), noise=0, discontinuities=discontinuities)
    assert len(alone.lines) == 1
    assert found_sides(alone) == sides(upright(58, 17, 79))
    assert found_sides(both) == found_sides(alone)
    # Only the planes of the flap hold anything.
    placement = both.placement
    assert (placement.centroids[:, 0] < 97).all()


def test_components_lie_where_they_are_in_the_image():
    _, normal_map = tent()
    normals = np.zeros((300, 260, 3))
    normals[..., 2] = 1
    mask = np.zeros(normals.shape[:2], bool)
    smooth = waves((150, 120))[0]
    normals[3:153, 135:255], mask[3:153, 135:255] = smooth.normals, True
    normals[160:288, 5:133], mask[160:288, 5:133] = normal_map.normals, True
    jumps = find_jumps(NormalMap(normals, mask), noise=0)
    assert found_sides(jumps) == sides([path + np.array([5, 160]) for path in TRUE_LINES[tent]])
    placement = jumps.placement
    assert (placement.centroids[:, 0] < 134).all()


def test_a_first_look_may_leave_and_a_close_one_does_not():
    """The close look at a flap finds the line whatever its size."""
    for size in (64, 128):
        jumps = find_jumps(flap(size)[1], discontinuities=True)
        (line,) = jumps.lines
        assert (line.path[:, 0] == np.ceil(0.6 * size - 0.5)).all()
        assert line.length > 0.6 * size
        assert str(jumps) == f"1 jump, {line.length} px"


@pytest.mark.parametrize("size", [64, 128])
def test_a_first_look_does_not_leave_if_there_is_a_clear_jump(size):
    assert len(find_jumps(flap(size)[1]).lines) == 1


def test_wrong_choices_are_refused():
    _, normal_map = flap()
    for wrong in (False, "always", None, np.zeros(3), 1):
        with pytest.raises(NormalMeshError, match='discontinuities must be "auto"'):
            find_jumps(normal_map, discontinuities=wrong)
    with pytest.raises(NormalMeshError, match="normal_map"):
        find_jumps(7)


def test_the_same_on_any_number_of_threads():
    normal_map = noisy(scene("flaps").normal_map(Orthographic()), 3.0)
    alone, together = on_one_and_on_several(lambda: find_jumps(normal_map))
    assert len(alone.lines) == len(together.lines) > 0
    for one, other in zip(alone.lines, together.lines, strict=True):
        assert np.array_equal(one.path, other.path)
        assert (one.height, one.certainty) == (other.height, other.certainty)
    assert np.array_equal(alone.placement.offsets, together.placement.offsets)
    assert alone.noise == together.noise


def test_doubtful_lines_are_left_closed():
    normal_map = scene("flaps").normal_map(Orthographic())
    lines = find_jumps(normal_map).lines
    shares = sorted(line.certainty / (1 + line.certainty) for line in lines)
    least = (shares[0] + shares[-1]) / 2
    certain = find_jumps(normal_map, min_certainty=least)
    assert found_sides(certain) == sides(
        [each.path for each in lines if each.certainty / (1 + each.certainty) >= least]
    )
    none = find_jumps(normal_map, min_certainty=1)
    assert none.lines == ()
    assert none.placement is None
    for wrong in (-0.1, 1.5, "high", np.nan):
        with pytest.raises(NormalMeshError, match="min_certainty"):
            find_jumps(normal_map, min_certainty=wrong)
