"""Edge flips: the in-circle test in the metric of the normals."""

import numpy as np
import pytest

import naive
from meshes import assert_consistent, bumpy_map, coarse_mesh, disc, point_mesh
from normalmesh import NormalMap, Orthographic, Perspective
from normalmesh.decimation import _flip
from normalmesh.decimation._quadrics import FaceRecord
from normalmesh.decimation.flip import MAX_SWEEPS, flip
from normalmesh.decimation.quadrics import FaceRecords, Pixels
from normalmesh.mesh._closed_mesh import LOCKED, are_neighbours, flip_edge
from normalmesh.mesh._topology import next_corner
from normalmesh.mesh.closed_mesh import ClosedMesh
from thread_counts import on_one_and_on_several

CAMERAS = [Orthographic(), Orthographic(0.3), Perspective(30, 28, 9, 8, skew=0.5)]


def patches(mesh):
    """Yield corner and vertices a, b, c, d of each inner edge: ab is shared, c and d lie across from it."""
    for corner in range(3 * mesh.real_faces):
        other = mesh.opposite[corner]
        if corner < other < 3 * mesh.real_faces:
            f, k = divmod(corner, 3)
            yield corner, (*np.roll(mesh.faces[f], -k)[[1, 2, 0]], mesh.faces[other // 3, other % 3])


def gain(mesh, pixels, records, corner):
    return _flip.gain_of_flip(corner, mesh.arrays, records.table, pixels.normal_map.camera.arrays)


def shuffled_mesh(normal_map, count, seed=0):
    """Return a mesh of random points with random edges: a Delaunay mesh after many flips of convex patches."""
    rng = np.random.default_rng(seed)
    mesh = ClosedMesh.from_screen(point_mesh(normal_map.shape, count, seed), normal_map.shape)
    flips = 0
    for corner in rng.integers(0, 3 * mesh.real_faces, 8 * mesh.real_faces):
        other = mesh.opposite[corner]
        if other >= 3 * mesh.real_faces:
            continue
        f, k = divmod(corner, 3)
        a, b, c, d = mesh.vertices[[*np.roll(mesh.faces[f], -k)[[1, 2, 0]], mesh.faces[other // 3, other % 3]]]
        if ((b - a) @ (d - c)) ** 2 < 0.98 * ((b - a) @ (b - a)) * ((d - c) @ (d - c)):
            s, t = naive.crossing(a, b, c, d)
            if min(s, t) > 0.05 and max(s, t) < 0.95:
                flip_edge(corner, mesh.arrays)
                flips += 1
    assert flips > mesh.real_faces / 2
    assert mesh.to_screen().check().ok
    pixels, records = Pixels(normal_map), FaceRecords(mesh)
    records.renew(mesh, pixels)
    return mesh, pixels, records


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
def test_gains_are_those_of_the_lifted_patch(camera):
    """Eqs. (17) and (18), and the lower diagonal of the tetrahedron."""
    mesh, pixels, records = shuffled_mesh(bumpy_map((16, 18), camera=camera, height=6.0), 40)
    gained = refused = 0
    for corner, patch in patches(mesh):
        a, b, c, d = mesh.vertices[list(patch)]
        p, q = records.table[corner // 3], records.table[mesh.opposite[corner] // 3]
        found = gain(mesh, pixels, records, corner)
        s, t = naive.crossing(a, b, c, d)
        place = a + s * (b - a)
        G = naive.edge_metric(p, q, place, camera)
        found_metric = _flip.edge_metric(FaceRecord(*p), FaceRecord(*q), *place, camera.arrays)
        assert np.allclose(found_metric, G[np.triu_indices(2)], rtol=1e-9, atol=1e-14)
        lower = naive.lowered_by_flip(a, b, c, d, G)
        height = s * (1 - s) * (b - a) @ G @ (b - a)
        double_areas = np.array([s, 1 - s]) * abs(np.linalg.det([b - a, d - c]))
        longest = max((b - a) @ (b - a), (d - c) @ (d - c))
        convex = 0 < s < 1 and 0 < t < 1
        if convex and lower > _flip.MIN_GAIN * height and min(double_areas) >= max(2e-3, 1e-3 * longest):
            assert np.isclose(found, lower, rtol=1e-6)
            gained += 1
        else:
            assert found == 0
            refused += 1
        if convex and abs(lower) > 1e-6 * height:
            root = np.linalg.cholesky(G).T
            assert (lower > 0) == (naive.in_circle(*(root @ x for x in (a, b, c, d))) > 0)
    assert gained > 10
    assert refused > 10


@pytest.mark.parametrize("seed", range(3))
def test_on_a_plane_the_result_is_delaunay(seed):
    normal_map = NormalMap(np.broadcast_to([0.0, 0.0, 1.0], (30, 40, 3)))
    mesh, pixels, records = shuffled_mesh(normal_map, 120, seed)
    assert flip(mesh, pixels, records) > 0
    for _, patch in patches(mesh):
        a, b, c, d = mesh.vertices[list(patch)]
        # The angles across from an edge of a Delaunay mesh add up to at most 180°.
        angles = [angle(a - x, b - x) for x in (c, d)]
        assert sum(angles) < np.pi + 0.05
    for face in mesh.faces[: mesh.real_faces]:
        a, b, c = mesh.vertices[face]
        centre = a + np.linalg.solve(2 * np.array([b - a, c - a]), [(b - a) @ (b - a), (c - a) @ (c - a)])
        distances = np.linalg.norm(mesh.vertices - centre, axis=1)
        assert distances.min() > (1 - 1e-2) * np.linalg.norm(a - centre), "a vertex in a circumcircle"


def angle(x, y):
    return np.arccos(x @ y / np.sqrt((x @ x) * (y @ y)))


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_no_edge_is_left_that_gains_by_both_metrics(camera, seed):
    """Generalised Delaunay: each remaining flip would be reversed by the metric of the faces that it makes."""
    mesh, pixels, records = shuffled_mesh(bumpy_map((24, 26), seed, camera=camera, height=2.0), 90, seed)
    flip(mesh, pixels, records)
    taken_back = 0
    for corner, (_, _, c, d) in list(patches(mesh)):
        if gain(mesh, pixels, records, corner) > 0 and not are_neighbours(c, d, mesh.arrays):
            trial = mesh.copy()
            flip_edge(corner, trial.arrays)
            afresh = FaceRecords(trial)
            afresh.renew(trial, pixels)
            assert gain(trial, pixels, afresh, next_corner(corner)) > 0
            taken_back += 1
    if camera == CAMERAS[0]:
        assert flip(mesh, pixels, records) == 0, "a second pass finds nothing to do"
    assert taken_back < mesh.real_faces / 10


@pytest.mark.parametrize("mask", [None, disc(40, 18)], ids=["rectangle", "disc"])
def test_flips_keep_the_mesh_valid(mask):
    normal_map = bumpy_map((40, 40), mask=mask, height=8.0)
    mesh, pixels, records = coarse_mesh(normal_map, 120)
    vertices, outline = mesh.vertices.copy(), mesh.faces[mesh.real_faces :].copy()
    assert flip(mesh, pixels, records) > 0
    assert_consistent(mesh)
    assert mesh.to_screen().check().ok
    assert np.array_equal(mesh.vertices, vertices)
    assert np.array_equal(mesh.faces[mesh.real_faces :], outline)
    sides = np.sort(mesh.faces[: mesh.real_faces], axis=1)
    assert len(np.unique(sides, axis=0)) == mesh.real_faces, "a face twice"
    found = records.table.copy()
    records.changed[:] = True
    records.renew(mesh, pixels)
    assert np.allclose(found, records.table, rtol=1e-9, atol=1e-12), "records are up to date"


def test_edges_are_judged_in_the_mesh_as_it_is_by_then():
    """Flips that are judged together, by any number of threads, are those that are judged one after another."""
    normal_map = bumpy_map((40, 40), height=8.0)

    def together():
        mesh, pixels, records = shuffled_mesh(normal_map, 120)
        flips = flip(mesh, pixels, records)
        return flips, mesh.faces, records.table

    mesh, pixels, records = shuffled_mesh(normal_map, 120)
    flips = flip_one_by_one(mesh, pixels, records)
    assert flips > 0
    alone, several = on_one_and_on_several(together)
    assert alone[0] == several[0] == flips
    assert np.array_equal(alone[1], mesh.faces)
    assert np.array_equal(several[1], mesh.faces)
    assert np.array_equal(alone[2], several[2])
    # The vertices of a face come in another order.
    assert np.allclose(alone[2], records.table, rtol=1e-9, atol=1e-12)


def flip_one_by_one(mesh, pixels, records):
    flips = 0
    changed = np.ones(mesh.real_faces, bool)
    for _ in range(MAX_SWEEPS):
        near = [corner for corner, _ in patches(mesh) if changed[corner // 3] or changed[mesh.opposite[corner] // 3]]
        near = [corner if changed[corner // 3] else mesh.opposite[corner] for corner in near]
        gains = {corner: gain(mesh, pixels, records, corner) for corner in near}
        changed[:] = False
        for corner in sorted((corner for corner in near if gains[corner] > 0), key=lambda each: (-gains[each], each)):
            one, two = (each // 3 for each in (corner, mesh.opposite[corner]))
            ends = [mesh.faces[each // 3, each % 3] for each in (corner, mesh.opposite[corner])]
            if gain(mesh, pixels, records, corner) <= 0 or are_neighbours(*ends, mesh.arrays):
                continue
            trial, afresh = mesh.copy(), FaceRecords(mesh)
            flip_edge(corner, trial.arrays)
            afresh.renew(trial, pixels)
            if gain(trial, pixels, afresh, next_corner(corner)) > 0:
                continue
            flip_edge(corner, mesh.arrays)
            records.table[[one, two]] = afresh.table[[one, two]]
            changed[[one, two]] = True
            flips += 1
    return flips


def test_locked_edges_stay():
    mesh, pixels, records = shuffled_mesh(bumpy_map(), 60)
    mesh.flags[::2] |= LOCKED
    before = edges(mesh)
    assert flip(mesh, pixels, records) > 0
    locked = {edge for edge in before if all(mesh.flags[k] & LOCKED for k in edge)}
    assert locked
    assert locked <= edges(mesh)
    mesh.flags[:] |= LOCKED
    assert flip(mesh, pixels, records) == 0


def edges(mesh):
    faces = mesh.faces[: mesh.real_faces]
    return {frozenset(map(int, side)) for k in range(3) for side in faces[:, [k, (k + 1) % 3]]}
