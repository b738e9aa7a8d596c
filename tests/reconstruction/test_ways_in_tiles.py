"""What a reconstruction in memory can do, one in several tiles can do, too: ± of heights, all rules, levels, bounds."""

import numpy as np
import pytest

from normalmesh import (
    NormalMap,
    Step,
    evaluate,
    reconstruct,
    reconstruct_levels,
    reconstruct_tiled,
    reconstruct_within,
)
from normalmesh.reconstruction.tiling import Tiling
from surfaces import noisy, waves

SHAPE = (300, 420)
TILES = Tiling(256, workers=0)


@pytest.fixture(scope="module")
def normal_map():
    """Return a map of two components, of which one is noisy."""
    whole, _ = waves(SHAPE)
    mask = np.ones(SHAPE, bool)
    mask[:, 200] = False
    left = np.arange(SHAPE[1])[None, :, None] < 200
    return NormalMap(np.where(left, noisy(whole, 4.0).normals, whole.normals), mask)


@pytest.mark.parametrize(
    "rule",
    [{"vertices": 2500}, {"compression": 0.98}, {"threshold": 0.5}],
    ids=["vertices", "compression", "threshold"],
)
def test_rules(rule, normal_map):
    whole, tiled = reconstruct(normal_map, **rule), reconstruct_tiled(normal_map, tiles=256, workers=0, **rule)
    assert len(tiled.vertices) == pytest.approx(len(whole.vertices), rel=0.15)
    usual = []
    for surface in (whole, tiled):
        left = surface.vertices[:, 0] < 200
        uncertainty = surface.uncertainty()
        usual += [[np.median(uncertainty[side]) for side in (left, ~left)]]
    assert usual[1] == pytest.approx(usual[0], rel=0.2)


def test_levels(normal_map):
    steps = []
    levels = reconstruct_levels(normal_map, [2500, 800], tiles=TILES, progress=steps.append)
    assert [len(each.vertices) for each in levels] == pytest.approx([2500, 800], rel=0.02)
    for tiled, whole in zip(levels, reconstruct_levels(normal_map, [2500, 800]), strict=True):
        assert evaluate(tiled, normal_map).mae < 1.1 * evaluate(whole, normal_map).mae
    fractions = [step.share for step in steps]
    assert fractions == sorted(fractions)
    assert steps[-1] == Step(1.0, "done", len(levels[-1].vertices))


@pytest.mark.parametrize("bound", [{"max_angle": 8.0}, {"max_error": 0.2}], ids=["angle", "error"])
def test_bounds(bound, normal_map):
    whole, tiled = reconstruct_within(normal_map, **bound), reconstruct_within(normal_map, tiles=TILES, **bound)
    assert len(tiled.vertices) == pytest.approx(len(whole.vertices), rel=0.2)
    if "max_angle" in bound:
        assert evaluate(tiled, normal_map).mae < 8.0
