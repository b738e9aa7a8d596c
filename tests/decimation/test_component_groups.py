"""Test how a map is divided into groups of components, and that their meshes leave what others cover."""

import numpy as np

from meshes import bumpy_map
from normalmesh import JumpLine, decimate
from normalmesh.decimation.component_groups import component_groups
from normalmesh.mesh._outline import COVERED, FIXED
from normalmesh.normals.mask_labels import component_labels


def two_sides():
    """Return a mask of two large components, with one column of background between them."""
    mask = np.ones((80, 101), bool)
    mask[:, 50] = False
    return mask


def test_every_pixel_belongs_to_one_group():
    mask = two_sides()
    mask[::9, 51:] = mask[:, 51::9] = False
    given = bumpy_map(mask.shape, mask=mask)
    groups = component_groups(component_labels(mask), ())
    assert 2 <= len(groups) < 10
    maps = [group.map_of(given) for group in groups]
    assert np.array_equal(np.sum([each.mask for each in maps], axis=0), mask)
    assert np.array_equal(np.sum([each.normals for each in maps], axis=0), given.normals)


def test_small_components_with_lines_are_groups():
    mask = np.zeros((40, 60), bool)
    mask[5:15, 5:15] = mask[5:15, 25:35] = mask[20:30, 40:50] = True
    line = JumpLine(np.stack([np.full(6, 30), np.arange(6, 12)], axis=1), 1.0, 1.0)
    assert len(component_groups(component_labels(mask), ())) == 1
    plain, torn = sorted(component_groups(component_labels(mask), (line,)), key=lambda group: len(group.lines))
    assert (plain.lines, torn.lines) == ((), (line,))
    given = bumpy_map(mask.shape, mask=mask)
    assert np.argwhere(torn.map_of(given).mask).min(axis=0).tolist() == [5, 25]
    assert plain.map_of(given).foreground == 200


def test_meshes_leave_what_others_cover():
    mask = two_sides()
    coverage = mask * np.uint8(COVERED)
    left, right = component_groups(component_labels(mask), ())
    own = left.coverage_of(coverage)
    assert (own[:, :50] == COVERED).all()
    assert (own[:, 50] == 0).all()
    assert (own[:, 51] == FIXED).all()
    own[7, 49], own[8, 50] = 0, COVERED
    left.cover(own, coverage)
    assert np.argwhere((coverage > 0) != mask).tolist() == [[7, 49], [8, 50]]
    beside = right.coverage_of(coverage)
    assert (beside[7, 49], beside[8, 50], beside[9, 50]) == (0, FIXED, 0)


def test_reports_are_joined():
    mask, left = two_sides(), np.arange(101) < 50
    both, *alone = (
        decimate(bumpy_map(mask.shape, mask=each), threshold=1.0, keep_thin=False).report
        for each in (mask, mask & left, mask & ~left)
    )
    assert both.collapses == sum(each.collapses for each in alone)
    assert both.largest_cost == max(each.largest_cost for each in alone)
    assert both.rounds[-1].vertices == sum(each.rounds[-1].vertices for each in alone)
