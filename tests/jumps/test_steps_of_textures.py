"""Textures with known steps are closed reliefs, at least as near to the truth as continuous ones.

``python -m benchmarks.textures`` prints the figures of all, also of those whose lines are not found yet.
"""

import warnings

import numpy as np
import pytest
from benchmarks.textures import SAME, VERTICES, correlations, made_texture, open_length

from normalmesh import NormalMeshWarning, reconstruct


def surface_of(texture, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalMeshWarning)
        return reconstruct(texture.normal_map, vertices=round(VERTICES * texture.normal_map.foreground), **options)


@pytest.mark.filterwarnings("ignore::normalmesh.NormalMeshWarning")
@pytest.mark.parametrize("name", ["bricks", "tiles", "planks", "cobbles", "basket"])
def test_default_is_closed_and_as_good_as_continuous(name):
    texture = made_texture(name)
    assert texture.normal_map.mask.all()
    surface = surface_of(texture)
    continuous = surface_of(texture, discontinuities=False)
    assert open_length(surface) == 0
    found, smooth = (correlations(each.depth_map(), texture.heights)[1] for each in (surface, continuous))
    assert found >= smooth - SAME


@pytest.mark.filterwarnings("ignore::normalmesh.NormalMeshWarning")
@pytest.mark.parametrize("name", ["cobbles", "louvres"])
def test_true_lines_are_closed_by_walls(name):
    texture = made_texture(name)
    surface = surface_of(texture, jumps=texture.steps)
    assert len(surface.walls) > 100
    assert open_length(surface) == 0
    plain, fine = correlations(surface.depth_map(), texture.heights)
    assert min(plain, fine) > 0.97
    opened = surface_of(texture, jumps=texture.steps, gaps="open")
    assert open_length(opened) > 1.5 * opened.discontinuities.length
    np.testing.assert_array_equal(opened.faces, surface.faces)
