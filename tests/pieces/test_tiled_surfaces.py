"""Surfaces in tiles against those in memory: as many vertices, similar errors, the same jumps.

Seams are a large share of tiles of 256 px; ``python -m benchmarks.scale tiled`` compares larger ones.
"""

from __future__ import annotations

import numpy as np
import pytest

from normalmesh import Orthographic, Perspective, evaluate, reconstruct, reconstruct_tiled
from normalmesh.mesh.coverage import Coverage
from scenes import precision_and_recall, scene
from surfaces import rmse, sphere, waves


def holes(shape):
    """Return a mask with a grid of holes, some of them on seams."""
    row, column = np.indices(shape) % 60
    return np.hypot(row - 30, column - 30) > 11


@pytest.fixture(scope="module")
def wavy():
    return waves((420, 540), mask=holes((420, 540)))


def test_the_errors_are_those_in_memory(wavy):
    normal_map, depth = wavy
    whole = reconstruct(normal_map, compression=0.97)
    tiled = reconstruct_tiled(normal_map, compression=0.97, tiles=256, workers=0)
    assert tiled.mesh.check().ok
    assert len(tiled.vertices) == pytest.approx(len(whole.vertices), rel=0.01)
    assert evaluate(tiled, normal_map).mae < 1.03 * evaluate(whole, normal_map).mae
    assert rmse(tiled, depth, normal_map.mask) < 1.1 * rmse(whole, depth, normal_map.mask)
    assert tiled.coverage == Coverage.of(tiled.mesh, normal_map.mask)
    np.testing.assert_array_equal(tiled.mesh.check().holes, whole.mesh.check().holes)
    assert tiled.integration.error < 1e-6


def test_perspective():
    normal_map, depth = sphere(400, Perspective(600.0, 600.0, 190.0, 210.0))
    whole = reconstruct(normal_map, compression=0.98)
    tiled = reconstruct_tiled(normal_map, compression=0.98, tiles=256, workers=0)
    assert rmse(tiled, depth, normal_map.mask) < 1.3 * rmse(whole, depth, normal_map.mask)


@pytest.mark.parametrize("name", ["steps", "hole"])
def test_jumps_across_tiles(name):
    truth = scene(name, 400)
    normal_map = truth.normal_map(Orthographic())
    whole = reconstruct(normal_map, compression=0.96)
    tiled = reconstruct_tiled(normal_map, compression=0.96, tiles=256, workers=0)
    assert tiled.mesh.check().ok
    found, expected = ([line.path.tolist() for line in each.discontinuities.lines] for each in (tiled, whole))
    assert found == expected
    assert min(precision_and_recall(tiled, truth)) > 0.98 * min(precision_and_recall(whole, truth))
    assert evaluate(tiled, normal_map).mae < 1.25 * evaluate(whole, normal_map).mae
