"""Counts of masks, compared with the meshes that they predict."""

from dataclasses import fields

import numpy as np
import pytest

from normalmesh import NormalMap
from normalmesh.decimation import mask_counts
from normalmesh.decimation.hierarchy import BLOCK, Hierarchy
from normalmesh.decimation.mask_counts import MaskCounts, fixed_corners
from normalmesh.mesh.screen_mesh import ScreenMesh
from thread_counts import on_one_and_on_several

#: Above every finite error of a hierarchy.
COARSEST = 1e38


def masks():
    """Return masks of all kinds: solid, thin, with holes, fragments and diagonal contacts."""
    v, u = np.mgrid[:150, :130]
    rng = np.random.default_rng(3)
    shapes = {
        "full": u >= 0,
        "disc": np.hypot(u - 60, v - 70) < 50,
        "comb": (u % 2 == 0) | (v == 3),
        "grid": (u % 16 < 2) | (v % 16 < 2),
        "squares": (u % 8 < 5) & (v % 8 < 5),
        "one pixel": (u == 7) & (v == 9),
    }
    shapes |= {f"{share} missing": rng.random(u.shape) > share for share in (0.003, 0.05, 0.2, 0.6)}
    return shapes


@pytest.mark.parametrize("name", masks())
def test_they_are_those_of_the_meshes(name):
    mask = masks()[name]
    counts = MaskCounts.of(mask)
    normals = np.zeros((*mask.shape, 3), np.float32)
    normals[..., 2] = 1
    hierarchy = Hierarchy.of(NormalMap(normals, mask))
    fine, coarse = ScreenMesh.from_mask(mask), hierarchy.mesh(COARSEST)
    assert np.array_equal(fixed_corners(mask[NormalMap(normals, mask).rectangle().window]), np.isinf(hierarchy.errors))
    assert (counts.pixels, counts.foreground) == (mask.size, mask.sum())
    assert (counts.corners, counts.fixed) == (len(fine.vertices), len(coarse.vertices))
    assert counts.outline == np.count_nonzero(fine.opposite < 0)
    assert round(counts.fixed_edges().sum()) == np.count_nonzero(coarse.opposite >= 0) // 2
    assert counts.edges(counts.corners) >= np.count_nonzero(fine.opposite >= 0) // 2
    report = fine.check()
    assert len(counts.component_pixels) == report.components
    assert counts.loops == report.components + counts.holes + report.components


@pytest.mark.parametrize("name", masks())
def test_blocks_change_nothing_nor_do_threads(name, monkeypatch):
    mask = masks()[name]
    whole = MaskCounts.of(mask)
    monkeypatch.setattr(mask_counts, "SIDE", BLOCK)
    for found in on_one_and_on_several(lambda: MaskCounts.of(mask)):
        for field in fields(MaskCounts):
            assert np.array_equal(getattr(found, field.name), getattr(whole, field.name)), field.name


def test_a_solid_foreground_is_assumed_from_numbers():
    disc = masks()["disc"]
    found, assumed = MaskCounts.of(disc), MaskCounts.solid(disc.size, int(disc.sum()))
    for name in ("corners", "fixed", "outline", "rectangle"):
        assert getattr(found, name) <= getattr(assumed, name) <= 2.5 * getattr(found, name), name
