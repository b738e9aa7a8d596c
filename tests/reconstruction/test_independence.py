"""Components are independent: each comes out the same alone and among others."""

import numpy as np
import pytest

from normalmesh import NormalMap, Orthographic, ScreenMesh, decimate, find_jumps, integrate, integrate_pixels
from normalmesh.normals.noise import component_noise, without_noise
from scenes import scene
from surfaces import flap, noisy, sphere, waves

#: Side (px) of the components beside the one that is looked at, and where that one is.
BESIDE, TOP, LEFT = 240, 11, 13
PARTS = {
    "torn and noisy": lambda: noisy(flap(96)[1], 5, 1),
    "torn": lambda: flap(96)[1],
    "torn often": lambda: noisy(scene("flaps", 112).normal_map(Orthographic()), 3, 2),
    "noisy": lambda: noisy(sphere(90)[0], 10, 3),
    "smooth": lambda: waves((90, 90))[0],
}
OTHERS = {
    "flat": lambda: np.broadcast_to([0.0, 0.0, 1.0], (BESIDE, BESIDE, 3)),
    "rough": lambda: noisy(waves((BESIDE, BESIDE), steepness=0.5)[0], 10, 9).normals,
}
PAIRS = [
    ("torn and noisy", "flat"),
    ("torn and noisy", "rough"),
    ("torn", "rough"),
    ("torn often", "flat"),
    ("noisy", "flat"),
    ("smooth", "rough"),
]
every_pair = pytest.mark.parametrize(("part", "other"), PAIRS)


def alone_and_among(part, other):
    """Return a map of one component, one with another, larger component beside it, and the mask of the first."""
    given = PARTS[part]()
    rows, columns = given.shape
    normals = np.zeros((BESIDE, LEFT + columns + 2 + BESIDE, 3))
    normals[..., 2] = 1
    here = np.zeros(normals.shape[:2], bool)
    here[TOP : TOP + rows, LEFT : LEFT + columns] = given.mask
    normals[TOP : TOP + rows, LEFT : LEFT + columns] = given.normals
    normals[:, -BESIDE:] = OTHERS[other]()
    both = here.copy()
    both[:, -BESIDE:] = True
    return NormalMap(normals, here), NormalMap(normals, both), here


def difference(one, other, here):
    """Return the largest difference of two depth maps on pixels, without a constant."""
    apart = (one - other)[here & np.isfinite(one)]
    assert np.isfinite(apart).all()
    return np.abs(apart - np.median(apart)).max()


@every_pair
def test_noise_and_jumps(part, other):
    alone, among, here = alone_and_among(part, other)
    (own,), (_, own_among) = component_noise(alone).components, component_noise(among).components
    assert own == own_among
    smooth = (without_noise(each, component_noise(each)).normals[here] for each in (alone, among))
    assert np.abs(np.subtract(*smooth)).max() < 1e-6
    lines, lines_among = (find_jumps(each).lines for each in (alone, among))
    assert bool(lines) == ("torn" in part)
    inside = [line for line in lines_among if line.path[:, 0].max() < LEFT + 120]
    assert [line.path.tolist() for line in inside] == [line.path.tolist() for line in lines]


@every_pair
def test_heights_of_pixels(part, other):
    alone, among, here = alone_and_among(part, other)
    for choice in (False, True):
        assert difference(*(integrate_pixels(each, discontinuities=choice) for each in (alone, among)), here) < 1e-5


@every_pair
def test_heights_of_a_given_mesh(part, other):
    alone, among, here = alone_and_among(part, other)
    first, second = decimate(alone, vertices=300), decimate(NormalMap(among.normals, among.mask & ~here), vertices=400)
    joined = ScreenMesh(
        np.concatenate([first.vertices, second.vertices]),
        np.concatenate([first.faces, second.faces + np.int32(len(first.vertices))]),
    )
    surface = integrate(ScreenMesh(first.vertices, first.faces), alone)
    assert bool(surface.discontinuities.lines) == ("torn" in part)
    assert difference(surface.depth_map(), integrate(joined, among).depth_map(), here) < 1e-4


def test_components_that_touch_at_a_corner_are_filtered_apart():
    normals = np.zeros((40, 40, 3))
    normals[:20, :20], normals[20:, 20:] = (0.6, 0, 0.8), (-0.6, 0, 0.8)
    normals[..., 2] = np.where(normals[..., 2] == 0, 1, normals[..., 2])
    mask = np.zeros((40, 40), bool)
    mask[:20, :20] = mask[20:, 20:] = True
    given = NormalMap(normals, mask)
    assert np.abs(without_noise(given, 60.0).normals - given.normals).max() < 1e-6
