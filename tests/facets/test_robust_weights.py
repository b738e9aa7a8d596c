"""Check robust weights: no change of smooth surfaces, and less bending across a jump."""

import numpy as np

from naive_integration import NaiveRobustWeights
from normalmesh import NormalMap, decimate, integrate
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from surfaces import flap


def bowl(size=64):
    v, u = np.mgrid[:size, :size] + 0.5 - size / 2
    normals = np.stack([-u / size, v / size, np.ones_like(u)], axis=-1)
    return NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True))


def error(surface, height):
    return (surface.depth_map() - height).std()


def test_a_jump_bends_less():
    height, normal_map = flap()
    mesh = decimate(normal_map, vertices=500)
    plain = error(integrate(mesh, normal_map, discontinuities=False, refine=0), height)
    robust = error(integrate(mesh, normal_map, refine=0), height)
    refined = error(integrate(mesh, normal_map), height)
    assert robust < 0.7 * plain
    assert refined < 0.7 * plain


def test_a_smooth_surface_is_the_same():
    normal_map = bowl()
    mesh = decimate(normal_map, vertices=200)
    plain = integrate(mesh, normal_map, discontinuities=False, refine=0)
    robust = integrate(mesh, normal_map, refine=0)
    spread = np.ptp(plain.vertices[:, 2])
    assert np.abs(plain.vertices - robust.vertices).max() < 0.005 * spread


def test_weights_against_their_formulas():
    """Compare the weights of one edge with their formulas."""
    _, normal_map = flap(40)
    mesh = decimate(normal_map, vertices=60)
    system = FacetSystem.of(FaceMeans.of(mesh, normal_map))
    weights = NaiveRobustWeights(system)
    offsets = np.random.default_rng(0).normal(0, 0.3, len(mesh.faces))
    upright = np.maximum(system.means.normals[:, 2], 1e-3)
    agreement = np.linalg.norm(system.means.mean_normals, axis=1)
    cauchy, one_sided = weights.cauchy(weights.strain(offsets), 0.05), weights.one_sided(offsets)
    degree = np.bincount(system.pairs.ravel(), minlength=len(mesh.faces))
    for edge, (f, g) in enumerate(system.pairs):
        trust = system.lengths[edge] * min(agreement[f], agreement[g]) ** 4
        nu = min(upright[f], upright[g])
        misfit = offsets[g] - offsets[f] - system.steps[edge]
        assert np.isclose(cauchy[edge], trust * nu**2 / (1 + (nu * misfit / 0.05) ** 2))
        expected = 0.0
        for face in (f, g):
            preferences = {}
            for other, pair in enumerate(system.pairs):
                if face in pair:
                    distance = np.linalg.norm(np.subtract(*system.means.centroids[pair]))
                    step = (offsets[pair[1]] - offsets[pair[0]]) / distance
                    preferences[other] = np.exp(-5 * upright[face] ** 2 * step**2)
            share = 0.5 * degree[face] * preferences[edge] / sum(preferences.values())
            expected += max(share, 1e-6) * upright[face] ** 2
        assert np.isclose(one_sided[edge], trust * expected)
