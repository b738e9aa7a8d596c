"""Tests of the thin parts that keep their outline."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

import normalmesh as nm
from normalmesh.decimation import thin_parts
from normalmesh.decimation.thin_parts import THIN, thin_pixels
from normalmesh.mesh.raster import pixel_faces
from surfaces import plane_map
from thin_masks import THIN_MASKS
from thread_counts import on_one_and_on_several


def naive_thin_pixels(mask):
    """Return the thin pixels by the definition, looking at every square."""
    padded = np.pad(mask, 40)
    found = np.zeros_like(padded)
    for pixels in (padded, ~padded):
        depth = ndimage.distance_transform_cdt(pixels, "chessboard")
        height = ndimage.distance_transform_cdt(~pixels, "chessboard")
        for width, free in THIN.items():
            near_square = np.zeros_like(pixels)
            for i in range(pixels.shape[0] - width + 1):
                for j in range(pixels.shape[1] - width + 1):
                    if pixels[i : i + width, j : j + width].all():
                        half = width // 2
                        near_square[max(i - half, 0) : i + width + half, max(j - half, 0) : j + width + half] = True
            thin = pixels & ~near_square
            found |= thin & (depth > free)
            if thin.any():
                found |= (ndimage.distance_transform_cdt(~thin, "chessboard") <= free + 1) & (height > free)
    return found[40:-40, 40:-40]


@settings(max_examples=12)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.7, 1.5, 4.0]), st.floats(-1, 1))
def test_thin_pixels_are_those_of_the_definition(seed, width, level):
    noise = ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=(30, 44)), width)
    mask = noise > level * noise.std()
    assert np.array_equal(thin_pixels(mask), naive_thin_pixels(mask))


def test_blocks_and_threads_make_no_difference(monkeypatch):
    noise = ndimage.gaussian_filter(np.random.default_rng(0).normal(size=(150, 170)), 3)
    whole = thin_pixels(noise > 0)
    monkeypatch.setattr(thin_parts, "BLOCK", 64)
    assert whole.any()
    for found in on_one_and_on_several(lambda: thin_pixels(noise > 0)):
        assert np.array_equal(found, whole)


def test_nothing_is_thin_in_a_disc_or_a_full_image():
    v, u = np.mgrid[:200, :200]
    assert not thin_pixels(np.hypot(u - 100, v - 100) < 80).any()
    assert not thin_pixels(np.ones((100, 120), np.bool_)).any()


def lost(mesh, mask):
    """Return the shares of pixels of the mask that are not covered, and of pixels covered outside it."""
    covered = pixel_faces(mesh, mask.shape) >= 0
    return np.count_nonzero(mask & ~covered) / mask.sum(), np.count_nonzero(covered & ~mask) / mask.sum()


@pytest.mark.parametrize("name", THIN_MASKS)
@pytest.mark.parametrize("rule", [{"compression": 0.98}, {"vertices": 50}, {"threshold": 64.0}], ids=str)
def test_thin_parts_are_not_lost(name, rule):
    mask = THIN_MASKS[name]
    mesh = nm.decimate(plane_map([0.1, 0.2, 1.0], mask.shape, mask=mask), **rule)
    assert max(lost(mesh, mask)) <= 0.005
    assert mesh.check().ok


def test_the_paper_may_lose_them():
    mask = THIN_MASKS["comb"]
    normal_map = plane_map([0.1, 0.2, 1.0], mask.shape, mask=mask)
    assert lost(nm.decimate(normal_map, compression=0.98, keep_thin=False), mask)[0] > 0.1
