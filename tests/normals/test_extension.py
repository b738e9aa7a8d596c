"""Normals extended to pixels without a measurement: against the definition, and what leaves the mask."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import ndimage

from normalmesh import NormalMap, NormalMeshWarning, Orthographic, Perspective
from normalmesh.normals.cleaning import WITH_MASK, WITHOUT_MASK
from normalmesh.runtime.threads import limited_threads

NEIGHBOURS = np.ones((3, 3), bool)


def quietly(*arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalMeshWarning)
        return NormalMap(*arguments)


def naive_extension(normals, measured, mask, camera, reach):
    """Return normals and mask: the mean of neighbours in lower rings, ring by ring; regions stay, or their rims."""
    normals, known, mask = normals.copy(), measured & mask, mask.copy()
    rings = np.where(known | ~mask, 0, 99)
    for ring in range(1, reach.hole + 1):
        lower = known.copy()
        for i, j in np.argwhere(mask & ~known):
            window = slice(max(i - 1, 0), i + 2), slice(max(j - 1, 0), j + 2)
            if lower[window].any():
                total = normals[window][lower[window]].sum(axis=0)
                normals[i, j] = quietly((total / np.linalg.norm(total))[None, None], None, camera).normals[0, 0]
                known[i, j], rings[i, j] = True, ring
    labels, count = ndimage.label(rings > 0, NEIGHBOURS)
    outside = np.pad(~mask, 1, constant_values=True)
    for region in range(1, count + 1):
        inside = labels == region
        touched = (ndimage.binary_dilation(np.pad(inside, 1), NEIGHBOURS) & outside).any()
        if touched or rings[inside].max() == 99 or inside.sum() > reach.largest:
            mask &= ~inside | (rings <= reach.rim)
    normals[~mask] = 0
    return normals, mask


@pytest.mark.parametrize("reach", [WITH_MASK, WITHOUT_MASK], ids=["mask", "no mask"])
@pytest.mark.parametrize("share", [0.2, 0.6, 0.97])
def test_against_the_definition(reach, share):
    rng = np.random.default_rng(3)
    given = np.dstack([rng.uniform(-1, 1, (60, 70, 2)), np.full((60, 70), 1.5)])
    measured = ndimage.gaussian_filter(rng.random((60, 70)), 2)
    measured = measured < np.quantile(measured, share)
    mask = ndimage.gaussian_filter(rng.random((60, 70)), 4) > 0.47 if reach is WITH_MASK else np.ones((60, 70), bool)
    camera = Orthographic()
    normals = np.where(measured[..., None], given, np.nan)
    result = quietly(normals, mask if reach is WITH_MASK else None, camera)
    unit = given / np.linalg.norm(given, axis=-1, keepdims=True)
    expected, kept = naive_extension(np.where(measured[..., None], unit, 0), measured, mask, camera, reach)
    np.testing.assert_array_equal(result.mask, kept)
    np.testing.assert_allclose(result.normals[kept], expected[kept], atol=1e-5)
    assert result.repairs.extended == np.count_nonzero(kept & ~measured)
    assert result.repairs.extended > 0 or (share == 0.2 and reach is WITHOUT_MASK)


def tilted(rows, columns):
    return np.broadcast_to([0.6, 0.0, 0.8], (rows, columns, 3)).copy()


@pytest.mark.parametrize(("depth", "filled"), [(WITH_MASK.hole, True), (WITH_MASK.hole + 1, False)])
def test_deep_holes_of_a_mask_stay_open(depth, filled):
    normals = tilted(60, 60)
    size = 2 * depth
    normals[10 : 10 + size, 10 : 10 + size] = np.nan
    result = quietly(normals, np.ones((60, 60)))
    left = size - 2 * WITH_MASK.rim
    assert result.repairs.excluded == (0 if filled else left**2)
    np.testing.assert_allclose(result.normals[result.mask], tilted(60, 60)[result.mask], atol=1e-6)


def test_a_rim_that_is_too_large_keeps_the_pixels_next_to_measurements():
    normals = tilted(30, 30)
    normals[:, 20:] = 0.6, 0.0, -0.8
    mask = np.ones((30, 30), bool)
    result = quietly(normals, mask)
    assert result.mask[:, : 20 + WITH_MASK.rim].all()
    assert not result.mask[:, 20 + WITH_MASK.rim :].any()
    np.testing.assert_allclose(result.normals[result.mask], tilted(30, 30)[result.mask], atol=1e-6)


def test_extended_normals_stay_within_the_limit_of_their_own_rays():
    camera = Perspective(20, 20, 15, 10)
    v, u = np.mgrid[0:20, 0:30] + 0.5
    rays = camera.towards_viewer * camera.rays(u, v)
    rays /= np.linalg.norm(rays, axis=2, keepdims=True)
    across = np.cross(rays, [0.0, 1.0, 0.0])
    across /= np.linalg.norm(across, axis=2, keepdims=True)
    normals = np.cos(np.radians(84)) * rays + np.sin(np.radians(84)) * across
    normals[:, :15] = np.nan
    result = quietly(normals, np.ones((20, 30)), camera)
    cosines = np.sum(result.normals * rays, axis=-1)[result.mask]
    assert result.repairs.extended == 20 * WITH_MASK.rim
    assert cosines.min() > np.cos(np.radians(85)) - 2e-6


def test_the_number_of_threads_changes_nothing():
    rng = np.random.default_rng(1)
    normals = np.dstack([rng.uniform(-1, 1, (700, 90, 2)), rng.uniform(-0.5, 1, (700, 90))])
    with limited_threads(1):
        alone = quietly(normals, np.ones((700, 90)))
    together = quietly(normals, np.ones((700, 90)))
    np.testing.assert_array_equal(alone.normals, together.normals)
    np.testing.assert_array_equal(alone.mask, together.mask)
