"""Test that masks of every shape give valid surfaces that cover all of their components."""

from __future__ import annotations

import numpy as np
import pytest

from meshes import disc
from normalmesh import (
    NormalMap,
    NormalMeshError,
    Orthographic,
    Perspective,
    ScreenMesh,
    decimate,
    integrate,
    integrate_pixels,
    reconstruct,
    reconstruct_levels,
    reconstruct_within,
)
from surface_checks import assert_depth_on_mask, assert_valid_surface, problems_of

pytestmark = pytest.mark.filterwarnings("ignore::normalmesh.NormalMeshWarning")

WAYS = {
    "default": lambda m: reconstruct(m, vertices=5),
    "no target in reach": lambda m: reconstruct(m, vertices=10**6),
    "threshold": lambda m: reconstruct(m, threshold=1.0),
    "paper": lambda m: reconstruct(m, vertices=4, preset="paper"),
    "pixels, aligned each round": lambda m: reconstruct(
        m, vertices=4, decimation={"start": "pixels", "align": "each", "in_plane": True, "rounds": 2}
    ),
    "continuous, not refined": lambda m: reconstruct(m, vertices=5, discontinuities=False, refine=0),
    "vertices": lambda m: reconstruct(m, vertices=5, formulation="vertices", parameters="constant", metric="surface"),
    "noisy": lambda m: reconstruct(m, vertices=5, noise=30.0),
    "prior": lambda m: reconstruct(m, vertices=5, prior=[(j + 0.5, i + 0.5, 3.0) for i, j in np.argwhere(m.mask)[:2]]),
    "levels": lambda m: reconstruct_levels(m, [9, 5, 3]),
    "within": lambda m: reconstruct_within(m, max_error=100.0),
}


def bent(mask, seed, camera=None):
    """Return a normal map of random normals, most of them less than 45° from the viewing ray."""
    normals = np.random.default_rng(seed).normal(size=(*mask.shape, 3)) * [0.4, 0.4, 0] + [0, 0, 1]
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    return NormalMap(normals, mask, camera or Orthographic())


def bits(number, shape=(3, 3)):
    """Return the mask whose pixels are the bits of a number."""
    return (number >> np.arange(shape[0] * shape[1]) & 1).astype(bool).reshape(shape)


def check(way, normal_map):
    """Check all surfaces that a way of reconstruction returns."""
    found = WAYS[way](normal_map)
    for surface in found if isinstance(found, list) else [found]:
        assert_valid_surface(surface, normal_map)


def test_all_masks_of_nine_pixels():
    """Test mesh, decimation, integration and depth at the pixels on all 511 masks of 3 × 3 pixels."""
    for number in range(1, 2**9):
        normal_map = bent(bits(number), number)
        start = ScreenMesh.from_mask(normal_map.mask)
        assert problems_of(start) == []
        assert start.areas.sum() == pytest.approx(normal_map.foreground)
        mesh = decimate(normal_map, vertices=5)
        assert problems_of(mesh) == []
        assert_valid_surface(integrate(mesh, normal_map, refine=1 if number % 4 == 0 else 0), normal_map)
        assert_depth_on_mask(integrate_pixels(normal_map), normal_map)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("camera", [Orthographic(), Perspective.centred(3.0, (4, 4))], ids=["parallel", "pinhole"])
def test_masks_of_sixteen_pixels_with_all_options(way, camera):
    rng = np.random.default_rng(7)
    for number in rng.integers(1, 2**16, 8).tolist():
        check(way, bent(bits(number, (4, 4)), number, camera))


def hard_masks():
    """Return masks by name that are thin, or have many components or holes."""
    checkerboard = np.indices((24, 24)).sum(axis=0) % 2 == 0
    rings = np.hypot(*(np.indices((33, 33)) - 16.0)).astype(int) % 4 < 2
    frame = np.ones((20, 20), bool)
    frame[1:-1, 1:-1] = False
    dust = np.zeros((40, 40), bool)
    dust[::2, ::2] = True
    comb = np.ones((20, 21), bool)
    comb[1:, 1::2] = False
    sieve = np.ones((25, 25), bool)
    sieve[1::2, 1::2] = False
    return {
        "one pixel": np.ones((1, 1), bool),
        "one pixel of many": np.pad(np.ones((1, 1), bool), 20),
        "one row": np.ones((1, 300), bool),
        "one column": np.ones((300, 1), bool),
        "two rows": np.ones((2, 300), bool),
        "full": np.ones((24, 24), bool),
        "disc": disc(40, 15),
        "checkerboard": checkerboard,
        "nested rings": rings,
        "frame": frame,
        "400 components": dust,
        "comb": comb,
        "144 holes": sieve,
    }


@pytest.mark.parametrize("name", hard_masks())
@pytest.mark.parametrize("camera", [Orthographic(), Perspective.centred(40.0, (24, 24))], ids=["parallel", "pinhole"])
def test_hard_masks(name, camera):
    normal_map = bent(hard_masks()[name], 3, camera)
    assert_valid_surface(reconstruct(normal_map, compression=0.8), normal_map)
    for discontinuities in (False, True):
        assert_depth_on_mask(integrate_pixels(normal_map, discontinuities=discontinuities), normal_map)


def test_ten_thousand_components():
    mask = np.zeros((200, 200), bool)
    mask[::2, ::2] = True
    normal_map = bent(mask, 5)
    surface = reconstruct(normal_map, compression=0.9)
    assert_valid_surface(surface, normal_map)
    assert surface.components.max() + 1 == 10_000


def test_sixteen_thousand_columns_of_one_row():
    normal_map = bent(np.ones((1, 16_384), bool), 6)
    assert_valid_surface(reconstruct(normal_map, vertices=400), normal_map)


def test_surfaces_without_an_uncut_face_can_be_compared():
    """If every face touches a cut, there is no part to compare."""
    mask = np.array([[1, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 1, 1, 0, 1], [1, 1, 1, 1, 1], [1, 1, 1, 1, 0]], bool)
    rng = np.random.default_rng(0)
    for _ in range(4):
        normals = rng.normal(size=(5, 5, 3)) * [1, 1, 0] + [0, 0, 0.3]
        normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
        normal_map = NormalMap(normals, mask, Perspective.centred(3.0, (5, 5)))
        assert_valid_surface(reconstruct_within(normal_map, max_error=100.0), normal_map)


@pytest.mark.parametrize(
    ("mask", "reason"),
    [
        (np.zeros((8, 8)), "mask is empty"),
        (np.ones((8, 9)), "mask is 8×9 but normals are 8×8"),
        (np.ones((8, 8, 1)), "mask is 8×8×1"),
        (np.full((8, 8), 1j), "mask must be boolean or finite numbers"),
        (np.full((8, 8), None), "mask must be boolean or finite numbers"),
        (np.ma.masked_array(np.ones((8, 8), bool), np.eye(8)), "mask must be .*, not masked bool"),
    ],
)
def test_invalid_masks_are_refused(mask, reason):
    with pytest.raises(NormalMeshError, match=reason):
        NormalMap(np.broadcast_to([0.0, 0.0, 1.0], (8, 8, 3)), mask)
