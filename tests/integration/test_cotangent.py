"""Check the paper's vertex system against its formula."""

import numpy as np
import pytest

import naive_integration
from meshes import bumpy_map, point_mesh
from normalmesh import NormalMeshError, Orthographic, Perspective
from normalmesh.facets.face_means import FaceMeans
from normalmesh.integration.cotangent import METRICS, PAPER_CLAMP, PARAMETERS, CotangentSystem
from normalmesh.solvers.sparse_system import PreparedSystem

CAMERAS = [Orthographic(0.7), Perspective(30.0, 28.0, 12.0, 11.0, skew=1.0)]


def system_of(mesh, normal_map, *options):
    return CotangentSystem.of(FaceMeans.of(mesh, normal_map), *options)


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
@pytest.mark.parametrize("clamp", [None, PAPER_CLAMP], ids=["exact", "clamped"])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("parameters", PARAMETERS)
def test_against_the_formula(parameters, metric, clamp, camera):
    normal_map = bumpy_map(camera=camera, height=2.0)
    mesh = point_mesh(normal_map.shape, 30)
    system = system_of(mesh, normal_map, parameters, metric, clamp)
    found = PreparedSystem(system.matrix()).solve(system.right_side()).x
    table = naive_integration.face_means(mesh, normal_map)
    expected = naive_integration.vertex_unknowns(mesh, table, camera, parameters, metric, clamp)
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.ptp(expected))


def test_every_option_is_another_system():
    normal_map = bumpy_map(height=2.0)
    mesh = point_mesh(normal_map.shape, 30)
    solutions = [
        PreparedSystem(system.matrix()).solve(system.right_side()).x
        for system in (
            system_of(mesh, normal_map, parameters, metric, clamp)
            for parameters in PARAMETERS
            for metric in METRICS
            for clamp in (None, PAPER_CLAMP)
        )
    ]
    for k, one in enumerate(solutions):
        assert all(np.abs(one - other).max() > 1e-4 for other in solutions[:k])


def test_obtuse_faces_keep_the_system_semidefinite():
    normal_map = bumpy_map(height=2.0)
    mesh = point_mesh(normal_map.shape, 60)
    for metric in METRICS:
        system = system_of(mesh, normal_map, "gradient", metric)
        assert system.cotangents.min() < 0
        assert np.linalg.eigvalsh(system.matrix().toarray()).min() > -1e-9


def test_prior_rows_interpolate():
    normal_map = bumpy_map()
    mesh = point_mesh(normal_map.shape, 30)
    screen = mesh.vertices[mesh.faces[[4, 9]]].mean(axis=1) + np.array([[0.1, 0.2], [0.0, -0.3]])
    rows, known = system_of(mesh, normal_map).prior_rows(screen, np.array([4, 9], np.int32))
    slope = np.array([0.3, -1.7])
    np.testing.assert_allclose(rows @ (mesh.vertices @ slope + 2) + known, screen @ slope + 2)


def test_wrong_options_are_refused():
    normal_map = bumpy_map()
    mesh = point_mesh(normal_map.shape, 5)
    with pytest.raises(NormalMeshError, match="parameters must be one of gradient, tight, constant, not 'loose'"):
        system_of(mesh, normal_map, "loose")
    with pytest.raises(NormalMeshError, match="metric must be one of screen, surface, not 'space'"):
        system_of(mesh, normal_map, "tight", "space")
