"""Check that surfaces that are solved for by tiles are those that are solved for as a whole."""

import numpy as np
import pytest

from normalmesh import NormalMap, Orthographic, Perspective, decimate
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.integration.mesh_solver import MeshSolver
from normalmesh.integration.prior import Prior
from normalmesh.jumps.finding import find_jumps
from normalmesh.mesh.cut_mesh import CutMesh
from normalmesh.solvers.sparse_system import PreparedSystem
from normalmesh.tiles.tile_elements import Elements
from normalmesh.tiles.tiled_solver import TiledSolver
from surfaces import flap, waves

CAMERAS = [Orthographic(0.5), Perspective(300.0, 300.0, 48.0, 48.0)]


def solved(mesh, normal_map, solver=None, placement=None, prior=None):
    """Return the unknown at the vertices, and the solver of the mesh."""
    prepare = PreparedSystem if solver is None else solver.prepare
    mesh_solver = MeshSolver(normal_map, None, placement, prior, prepare)
    return mesh_solver.solve(mesh, mesh.components), mesh_solver


def test_points_lie_in_the_nearest_tile():
    solver = TiledSolver((10.0, 20.0), 8.0, 2, 3)
    points = np.array([[10.0, 20.0], [17.9, 28.0], [18.0, 28.0], [33.9, 35.9], [0.0, 100.0], [100.0, 0.0]])
    assert solver.tiles(points).tolist() == [0, 3, 4, 5, 3, 2]


@pytest.mark.parametrize("camera", CAMERAS, ids=["orthographic", "perspective"])
def test_facet_system_by_tiles(camera):
    mask = np.ones((60, 90), bool)
    mask[:, 40:45] = mask[20:30, 60:70] = False
    normal_map = NormalMap(waves((60, 90), mask=mask)[0].normals, mask, camera)
    mesh = decimate(normal_map, vertices=300)
    solver = TiledSolver((0.0, 0.0), 32.0, 2, 3)
    facets = FacetSystem.of(FaceMeans.of(mesh, normal_map, 2))
    found = solver.system(Elements.of_facets(facets), facets.means.centroids, facets.gauge).solve()
    (alone, one), (by_tiles, other) = solved(mesh, normal_map), solved(mesh, normal_map, solver)
    scale = camera.pixel_length
    np.testing.assert_allclose(by_tiles, alone, atol=1e-9 * scale)
    np.testing.assert_allclose(facets.at_vertices(found.x), alone, atol=1e-9 * scale)
    assert found.free_constants == 2
    assert one.error < 1e-9
    assert other.error < 1e-9
    assert other.method == "elimination"


def test_jumps_and_priors_by_tiles():
    height, normal_map = flap()
    jumps = find_jumps(normal_map)
    uncut = decimate(normal_map, vertices=250, jumps=jumps)
    mesh = CutMesh.along(uncut, uncut.seams).mesh
    solver = TiledSolver((0.0, 0.0), 32.0, 3, 3)
    row, column = np.random.default_rng(0).integers(5, 90, (2, 40))
    points = np.stack([column + 0.5, row + 0.5, height[row, column] + 3], axis=1)
    for prior in (None, Prior.of(points, 1.0, normal_map)):
        alone, one = solved(mesh, normal_map, None, jumps.placement, prior)
        by_tiles, other = solved(mesh, normal_map, solver, jumps.placement, prior)
        np.testing.assert_allclose(by_tiles, alone, atol=1e-7)
        if prior is not None:
            np.testing.assert_allclose(other.levels, one.levels, atol=1e-7)
