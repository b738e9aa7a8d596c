"""A mesh that is tidied, cut and split between solves."""

import numpy as np
import pytest

from normalmesh import NormalMap, Orthographic, Perspective, ScreenMesh, decimate
from normalmesh.facets.face_means import FaceMeans
from normalmesh.integration._tidying import MIN_BAD
from normalmesh.integration.mesh_solver import MeshSolver
from normalmesh.integration.solved_mesh import SolvedMesh
from normalmesh.integration.tidying import judged
from normalmesh.jumps.finding import find_jumps
from normalmesh.mesh.cut_mesh import CutMesh
from normalmesh.mesh.jumps import Placement
from scenes import scene
from surfaces import flap, grid_mesh, plane_map, waves

CAMERAS = [Orthographic(0.5), Perspective(300.0, 300.0, 48.0, 48.0)]


def solved_mesh(mesh, normal_map, seams=None, placement=None):
    cut = CutMesh.along(mesh, np.empty((0, 2), np.int32) if seams is None else seams)
    return SolvedMesh(mesh, cut, MeshSolver(normal_map, None, placement, None))


def two_waves(camera=None):
    """Return a map of waves in two components."""
    mask = np.ones((60, 90), bool)
    mask[:, 40:45] = False
    normal_map = waves((60, 90), mask=mask)[0]
    return normal_map if camera is None else NormalMap(normal_map.normals, mask, camera)


@pytest.mark.parametrize("camera", CAMERAS, ids=["orthographic", "perspective"])
@pytest.mark.parametrize("more", [0, 1, 7, 150])
def test_filling_up_gives_exactly_as_many_vertices(camera, more):
    normal_map = two_waves(camera)
    solved = solved_mesh(decimate(normal_map, vertices=120), normal_map)
    before = solved.mesh.to_screen()
    solved.target = 120 + more
    solved.fill_up()
    assert solved.vertices == len(solved.unknown) == len(solved.component) == 120 + more
    mesh = solved.mesh.to_screen()
    assert mesh.check().ok
    assert np.array_equal(mesh.vertices[:120], before.vertices)
    assert len(mesh.faces) == len(before.faces) + 2 * more
    # New vertices belong to the component of their faces, whose number stays.
    assert np.array_equal(solved.component[:120], before.components)
    assert (solved.component[mesh.faces] == solved.component[mesh.faces[:, :1]]).all()
    side = mesh.vertices[:, 0] > 42
    assert len(np.unique(solved.component[side])) == len(np.unique(solved.component[~side])) == 1
    solved.solve()
    assert len(solved.unknown) == 120 + more


def test_locked_vertices_and_slits_stay():
    _, normal_map = flap()
    jumps = find_jumps(normal_map)
    mesh = decimate(normal_map, vertices=200, jumps=jumps)
    solved = solved_mesh(mesh, normal_map, mesh.seams, jumps.placement)
    assert 0.98 * 200 < solved.vertices <= 200
    assert (solved.component == 0).all()
    locked, solved.target = mesh.vertices[mesh.locked], 200
    for turn in range(3):
        solved.refine(turn)
        solved.tidy()
        solved.fill_up()
        solved.solve()
    assert solved.vertices == 200
    there = set(map(tuple, solved.mesh.vertices.tolist()))
    assert set(map(tuple, locked.tolist())) <= there
    assert solved.mesh.to_screen().check().ok


def sheet_with_a_bad_face(height=6.0, apart=6.0):
    """Return a flat sheet, of which a corner is lifted, and a placement that holds the faces there apart."""
    normal_map = plane_map((0, 0, 1), (40, 40))
    mesh = grid_mesh(8, 40)
    solved = solved_mesh(mesh, normal_map)
    corner = np.flatnonzero((mesh.vertices == 0).all(axis=1))
    solved.unknown[corner] = height
    means = FaceMeans.of(ScreenMesh.from_mask(np.ones((40, 40), bool)), normal_map)
    u, v = means.centroids.T
    offsets = np.where((u < 5) & (v < 5), apart, 0.0)
    solved.solver.placement = Placement(means.mesh, means.centroids, means.gradients, means.areas, offsets)
    return solved


def test_bad_faces_are_cut_off_where_the_placement_holds_them_apart():
    solved = sheet_with_a_bad_face()
    bad = judged(solved.mesh, solved.unknown, solved.normal_map).bad > MIN_BAD
    assert bad.any()
    before = solved.mesh.to_screen()
    assert solved.detach()
    after = solved.mesh.to_screen()
    assert after.check().ok
    assert len(after.vertices) > len(before.vertices)
    assert np.array_equal(after.vertices[after.faces], before.vertices[before.faces])
    assert len(solved.unknown) == len(solved.component) == len(after.vertices)
    # Only around the corner, and no face is alone.
    new = after.vertices[len(before.vertices) :]
    assert (new <= 5).all()
    neighbours = (after.opposite.reshape(-1, 3) >= 0).sum(axis=1)
    assert neighbours.min() >= 1


def test_nothing_is_cut_off_without_a_reason():
    solved = sheet_with_a_bad_face(apart=1.0)
    faces = solved.mesh.faces
    assert not solved.detach()
    assert solved.mesh.faces is faces
    solved = sheet_with_a_bad_face(height=0.0)
    assert not solved.detach()


def points_of(solved):
    """Return place, unknown and component of each vertex."""
    columns = (*solved.mesh.vertices.T.tolist(), solved.unknown.tolist(), solved.component.tolist())
    return set(zip(*columns, strict=True))


def test_tidying_keeps_unknown_and_component_together():
    normal_map = scene("flaps", 96).normal_map(Orthographic())
    jumps = find_jumps(normal_map, discontinuities=True)
    mesh = decimate(normal_map, vertices=400, jumps=jumps)
    solved = solved_mesh(mesh, normal_map, mesh.seams, jumps.placement)
    solved.refine(0)
    before, bad = points_of(solved), judged(solved.mesh, solved.unknown, normal_map).bad.sum()
    costs = solved.tidy().costs
    assert solved.vertices == len(solved.unknown) == len(solved.component)
    assert solved.mesh.to_screen().check().ok
    after = judged(solved.mesh, solved.unknown, normal_map)
    assert after.bad.sum() < bad
    assert costs is None or np.array_equal(costs, after.costs)
    # Vertices keep what they have; few move onto the border.
    assert len(points_of(solved) - before) < 0.03 * solved.vertices
