"""The edges along which meshes are cut open."""

from dataclasses import replace

import numpy as np

from normalmesh import NormalMap, ScreenMesh, decimate
from normalmesh.facets.face_means import FaceMeans
from normalmesh.jumps.seams import APART, seams_of
from normalmesh.mesh.jumps import JumpLine, Jumps, Placement
from surfaces import grid_mesh, plane_map

SHAPE = (40, 40)


def flat():
    return plane_map((0, 0, 1), SHAPE)


def step(height, rows=40):
    """Return jumps that hold the right half of the first rows of a flat map higher than the rest."""
    means = FaceMeans.of(ScreenMesh.from_mask(np.ones(SHAPE, bool)), flat())
    u, v = means.centroids.T
    offsets = np.where((u > 20) & (v < rows), height, 0.0)
    return Jumps((), Placement(means.mesh, means.centroids, means.gradients, means.areas, offsets))


def test_edges_that_the_placement_holds_apart():
    mesh = grid_mesh(8, 40)
    found = mesh.vertices[seams_of(mesh, step(1.01 * APART), flat())]
    assert len(found) == 8
    assert (found[..., 0] == 20).all()
    assert sorted(found[..., 1].min(axis=1)) == [0, 5, 10, 15, 20, 25, 30, 35]
    assert len(seams_of(mesh, step(0.99 * APART), flat())) == 0


def test_short_lines_are_no_seams():
    mesh = grid_mesh(8, 40)
    found = mesh.vertices[seams_of(mesh, step(9.0, rows=10), flat())]
    assert sorted(map(tuple, found.mean(axis=1).tolist())) == [
        (20.0, 2.5),
        (20.0, 7.5),
        *((u, 10.0) for u in (22.5, 27.5, 32.5, 37.5)),
    ]
    strip = NormalMap(flat().normals, np.arange(40)[:, None] < np.full(40, 5))
    narrow = ScreenMesh.from_mask(strip.mask)
    assert len(seams_of(narrow, step(9.0), strip)) == 0


def test_faces_that_nothing_holds_stay_together():
    mesh, placement = grid_mesh(8, 40), step(9.0).placement
    left = placement.centroids[:, 0] < 20
    half = Placement(
        ScreenMesh(placement.mesh.vertices, placement.mesh.faces[left]),
        *(getattr(placement, name)[left] for name in ("centroids", "gradients", "areas", "offsets")),
    )
    assert len(seams_of(mesh, Jumps((), half), flat())) == 0
    assert len(seams_of(mesh, Jumps(), flat())) == 0


def test_a_decimated_mesh_knows_its_seams():
    path = np.stack([np.full(41, 20), np.arange(41)], axis=1)
    jumps = replace(step(9.0), lines=(JumpLine(path, 9.0, 5.0),))
    mesh = decimate(flat(), vertices=60, jumps=jumps)
    assert len(mesh.seams) > 0
    assert seams_of(mesh, jumps, flat()) is mesh.seams
    # One that was decimated without lines does not.
    other = decimate(flat(), vertices=60)
    assert len(other.seams) == 0
    assert isinstance(seams_of(other, jumps, flat()), np.ndarray)
