"""Tests of the coverage of the foreground by a mesh."""

import numpy as np
import pytest
from scipy import ndimage

from normalmesh import Coverage, ScreenMesh, decimate, integrate, reconstruct
from normalmesh.mesh.coverage import _lost_components
from surfaces import waves


def test_pixels_are_counted_on_both_sides():
    mask = np.zeros((8, 12), np.bool_)
    mask[1:4, 1:4] = mask[5:7, 2:4] = mask[1:3, 8:10] = True
    # A square over the first component but its first column, and over one column of background.
    mesh = ScreenMesh([[2, 1], [2, 4], [5, 4], [5, 1]], [[0, 1, 2], [0, 2, 3]])
    found = Coverage.of(mesh, mask)
    assert found == Coverage(foreground=17, uncovered=11, spilled=3, lost_components=2)
    assert found.uncovered_share == pytest.approx(11 / 17)
    assert "2 components are lost" in str(found)


def test_a_component_is_lost_only_if_all_of_it_is():
    mask = np.zeros((3, 9), np.bool_)
    mask[1, :] = True
    # Pixels on both sides of the mesh are lost, in one component.
    mesh = ScreenMesh([[3, 1], [3, 2], [5, 2], [5, 1]], [[0, 1, 2], [0, 2, 3]])
    assert Coverage.of(mesh, mask) == Coverage(9, 7, 0, 0)


def test_every_surface_has_its_coverage():
    normal_map, _ = waves((40, 50))
    surface = reconstruct(normal_map, vertices=80)
    assert surface.coverage == Coverage.of(surface.mesh, normal_map.mask)
    assert surface.coverage == Coverage(2000, 0, 0, 0)
    assert str(surface.coverage) == "100.00 % of the foreground, and 0.00 % outside it"


def test_refinement_does_not_uncover_pixels():
    normal_map, _ = waves((60, 60), mask=np.hypot(*(np.indices((60, 60)) - 29.5)) < 25)
    mesh = decimate(normal_map, vertices=30)
    refined = integrate(mesh, normal_map, refine=4)
    assert sum(moves for _, moves in refined.integration.refinements) > 0
    assert refined.coverage.uncovered > 0
    assert refined.coverage == Coverage.of(mesh, normal_map.mask)


@pytest.mark.parametrize("seed", range(4))
def test_lost_components_against_labelled_images(seed):
    rng = np.random.default_rng(seed)
    mask = rng.random((9, 13)) > 0.5
    kept = mask & (rng.random(mask.shape) > 0.8)
    labels, count = ndimage.label(mask)
    assert _lost_components(mask, kept) == count - len(np.unique(labels[kept]))
