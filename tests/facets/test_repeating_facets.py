"""Test the facet system of meshes that are joined across their sides against edges found by their places."""

import numpy as np
import pytest

from normalmesh import ScreenMesh
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.facets.plane_surface import PlaneSurface
from normalmesh.mesh.repeats import Repeats
from periodic_maps import map_of_slopes


def dense_equations(means, repeats):
    """Return the matrix and right-hand side of planes that should meet wherever edges have the same place."""
    rows, columns = repeats.shape
    mesh, count = means.mesh, len(means.mesh.faces)
    matrix, right, found = np.zeros((count, count)), np.zeros(count), {}
    for f, face in enumerate(mesh.faces):
        for k in range(3):
            ends = mesh.vertices[face[[k, (k + 1) % 3]]]
            middle = ends.mean(axis=0)
            place = (middle[0] % columns if repeats.x else middle[0], middle[1] % rows if repeats.y else middle[1])
            rise = means.gradients[f] @ (middle - means.centroids[f])
            length = np.linalg.norm(ends[1] - ends[0])
            if place not in found:
                found[place] = (f, rise)
                continue
            other, other_rise = found[place]
            weight = length * min(means.mobilities[f], means.mobilities[other])
            for one, two, step in ((f, other, rise - other_rise), (other, f, other_rise - rise)):
                matrix[one, one] += weight
                matrix[one, two] -= weight
                right[one] -= weight * step
    return matrix, right


@pytest.mark.parametrize("shape", [(4, 5), (1, 3), (2, 2)])
@pytest.mark.parametrize("tileable", [True, "x", "y"])
def test_equations(shape, tileable):
    normal_map = map_of_slopes(*np.random.default_rng(0).normal(0, 0.5, (2, *shape)))
    repeats = Repeats.of(tileable, shape)
    mesh = repeats.wrap(ScreenMesh.from_mask(np.ones(shape)))
    system = FacetSystem.of(FaceMeans.of(mesh, normal_map, 2))
    matrix, right = dense_equations(system.means, repeats)
    np.testing.assert_allclose(system.matrix().toarray(), matrix, atol=1e-12)
    assert system.matrix().has_canonical_format
    np.testing.assert_allclose(system.right_side(), right, atol=1e-12)


def test_twins_get_one_value_from_the_planes_around_all_of_them():
    """Values of a tile are those in the middle of 3 × 3 copies."""
    shape, random = (4, 5), np.random.default_rng(1)
    right, down = random.normal(0, 0.5, (2, *shape))
    offsets = random.normal(size=(4, 5, 2))

    def values(copies):
        normal_map = map_of_slopes(np.tile(right, (copies, copies)), np.tile(down, (copies, copies)))
        mesh = ScreenMesh.from_mask(np.ones(normal_map.shape))
        if copies == 1:
            mesh = Repeats.of(True, shape).wrap(mesh)
        means = FaceMeans.of(mesh, normal_map, 1)
        return mesh, PlaneSurface(means).at_vertices(np.tile(offsets, (copies, copies, 1)).ravel())

    (_, tile), (copies, all_values) = values(1), values(3)
    middle = ((copies.vertices >= [5, 4]) & (copies.vertices <= [10, 8])).all(axis=1)
    np.testing.assert_allclose(tile, all_values[middle], atol=1e-12)
