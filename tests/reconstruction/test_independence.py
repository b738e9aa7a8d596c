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


def mesh_on(mesh, here):
    """Return the vertices and the corners of the faces of a mesh on part of its map, in order."""
    columns = np.flatnonzero(here.any(axis=0))
    faces = (mesh.vertices[mesh.faces, 0] < columns[-1] + 2).all(axis=1)
    return mesh.vertices[mesh.faces[faces]]


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


@every_pair
@pytest.mark.parametrize("align", ["last", "each"])
def test_meshes_by_a_threshold(part, other, align):
    alone, among, here = alone_and_among(part, other)
    for jumps in (False, "torn" in part):
        first, second = (
            decimate(each, threshold=8.0, align=align, jumps=find_jumps(each) if jumps else None)
            for each in (alone, among)
        )
        # The heights of lines come from a solve.
        np.testing.assert_allclose(mesh_on(first, here), mesh_on(second, here), rtol=0, atol=1e-9 if jumps else 0)
        assert first.report.rounds[0].collapses < second.report.rounds[0].collapses


def test_a_coarse_start_by_a_threshold():
    mask = np.zeros((330, 700), bool)
    mask[7:307, 13:313] = True
    normals = waves(mask.shape)[0].normals
    among = mask.copy()
    among[:, 330:] = True
    first, second = (decimate(NormalMap(normals, each), threshold=64.0) for each in (mask, among))
    assert np.array_equal(mesh_on(first, mask), mesh_on(second, mask))


@pytest.mark.parametrize("align", ["last", "each"])
def test_specks_by_a_threshold(align):
    """Components so small that many of them are decimated together."""
    v, u = np.abs(np.indices((160, 160)) % 20 - 9.5)
    mask = (u + v / (1 + np.arange(160)[:, None] // 20) < 8) & (v < 8)
    normals = noisy(waves(mask.shape)[0], 10, 3).normals
    options = {"threshold": 0.5, "align": align, "keep_thin": False, "rounds": 5}
    mesh = decimate(NormalMap(normals, mask), **options)
    corners = mesh.vertices[mesh.faces]
    for top in range(0, 160, 20):
        here = np.zeros_like(mask)
        here[top : top + 20, 60:80] = mask[top : top + 20, 60:80]
        alone = decimate(NormalMap(normals, here), **options)
        among = (corners.mean(axis=1) // 20 == [3, top // 20]).all(axis=1)
        assert np.allclose(corners[among], alone.vertices[alone.faces], rtol=0, atol=1e-9)


def test_components_that_touch_at_a_corner_are_filtered_apart():
    normals = np.zeros((40, 40, 3))
    normals[:20, :20], normals[20:, 20:] = (0.6, 0, 0.8), (-0.6, 0, 0.8)
    normals[..., 2] = np.where(normals[..., 2] == 0, 1, normals[..., 2])
    mask = np.zeros((40, 40), bool)
    mask[:20, :20] = mask[20:, 20:] = True
    given = NormalMap(normals, mask)
    assert np.abs(without_noise(given, 60.0).normals - given.normals).max() < 1e-6
