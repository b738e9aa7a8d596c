"""Check the reported discontinuities of surfaces."""

from dataclasses import replace

import numpy as np
import pytest

from normalmesh import NormalMap, NormalMeshError, Orthographic, Perspective, decimate, integrate, reconstruct
from normalmesh.integration.discontinuities import MIN_PART_AREA, find_discontinuities
from normalmesh.jumps.finding import find_jumps
from normalmesh.mesh.cut_mesh import CutMesh, edge_ends
from normalmesh.mesh.jumps import JumpLine, Jumps
from scenes import scene
from surfaces import flap, grid_mesh, waves


def roofs():
    """Return the map of two adjacent planes at an angle; the depth jumps along their seam, by an unknown amount."""
    u = np.mgrid[:96, :96][1] + 0.5
    slope_u = np.where(u < 48, 0.5, 0.2)
    slope_v = np.where(u < 48, 0.6, -0.6)
    normals = np.stack([-slope_u, slope_v, np.ones_like(u)], axis=-1)
    return NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True), None, Orthographic(0.5))


def test_undetermined_parts_are_reported():
    normal_map = roofs()
    surface = reconstruct(normal_map, vertices=500)
    found = surface.discontinuities
    assert np.count_nonzero(found.undetermined) >= 1
    assert found.part_areas[found.undetermined].max() > 2000
    assert found.part_areas.sum() == pytest.approx(96 * 96, rel=1e-3)
    assert "guess" in str(found)
    centroids = surface.screen[surface.faces].mean(axis=1)
    largest, second = np.argsort(found.part_areas)[[-1, -2]]
    sides = [np.median(centroids[found.parts == part, 0]) > 48 for part in (largest, second)]
    assert sides[0] != sides[1]
    # A control point on each side determines both depths.
    depths = np.array([3.0, -2.0])
    prior = np.array([[20.5, 48.5, depths[0]], [76.5, 48.5, depths[1]]])
    held = reconstruct(normal_map, vertices=500, prior=prior)
    depth_map = held.depth_map()
    np.testing.assert_allclose([depth_map[48, 20], depth_map[48, 76]], depths, atol=0.02 * np.ptp(depths))
    _, owner = held.owners()
    both = held.discontinuities
    parts = both.parts[owner[48, [20, 76]]]
    assert (parts >= 0).all()
    assert not both.undetermined[parts].any()


def test_a_smooth_surface_is_whole():
    normal_map = waves((64, 64))[0]
    found = reconstruct(normal_map, vertices=200).discontinuities
    assert found.lines == ()
    assert found.screen.shape == (0, 2, 2)
    assert found.jumps.shape == (0,)
    assert found.length == 0
    assert not found.undetermined.any()
    assert found.parts.max() == 0
    assert found.part_areas == pytest.approx([64 * 64], rel=1e-3)
    assert str(found) == "none"
    mesh = decimate(normal_map, vertices=200)
    assert np.array_equal(
        integrate(mesh, normal_map).vertices, integrate(mesh, normal_map, discontinuities=False).vertices
    )


@pytest.mark.parametrize("camera", [Orthographic(0.5), Perspective(300.0, 300.0, 30.0, 30.0)], ids=["one", "other"])
def test_cuts_parts_and_jumps_of_a_mesh(camera):
    """Vertices are 2 further away (perspective: by a factor 2) to the right of a cut that goes right through."""
    mesh = grid_mesh(6, 60)
    ends = edge_ends(mesh, np.flatnonzero(mesh.opposite >= 0))
    cut = CutMesh.along(mesh, ends[(mesh.vertices[ends][..., 0] == 20).all(axis=1)])
    right = cut.mesh.faces[cut.mesh.vertices[cut.mesh.faces].mean(axis=1)[:, 0] > 20]
    unknown = np.zeros(len(cut.origin))
    unknown[right] = np.log(2) if isinstance(camera, Perspective) else 2.0
    lines = (JumpLine(np.stack([np.full(61, 20), np.arange(61)], axis=1), 2.0, 3.5),)
    found = find_discontinuities(Jumps(lines), cut.mesh, unknown, camera, cut.component, None)
    assert found.lines is lines
    assert found.length == 60
    assert (found.screen[..., 0] == 20).all()
    np.testing.assert_allclose(np.abs(found.jumps), 1.0 if isinstance(camera, Perspective) else 2.0)
    assert sorted(found.part_areas) == [1200, 2400]
    # The larger part is the reference.
    assert found.part_areas[found.undetermined].tolist() == [1200]
    assert str(found).startswith("1 line, 60 px cut; 1 part (33.3 % of the area)")
    doubtful = find_discontinuities(
        Jumps((replace(lines[0], certainty=0.8),)), cut.mesh, unknown, camera, cut.component, None
    )
    assert str(doubtful).startswith("1 line, 60 px cut, 60 px of it doubtful; ")
    assert np.array_equal(found.part_areas[found.parts] == 2400, (cut.mesh.faces[:, None] == right).all(2).any(1))
    # A prior on the smaller one makes the larger one a guess.
    fixed = np.flatnonzero(found.part_areas[found.parts] == 1200)[:1].astype(np.int32)
    held = find_discontinuities(Jumps(lines), cut.mesh, unknown, camera, cut.component, fixed)
    assert held.part_areas[held.undetermined].tolist() == [2400]


def test_small_parts_are_not_reported():
    mesh = grid_mesh(6, 24)
    ends = edge_ends(mesh, np.flatnonzero(mesh.opposite >= 0))
    cut = CutMesh.along(mesh, ends[(mesh.vertices[ends] == 4).all(axis=1)[:, 0]])
    assert cut.mesh.check().components == 2
    found = find_discontinuities(Jumps(), cut.mesh, np.zeros(len(cut.origin)), Orthographic(), cut.component, None)
    assert found.part_areas.min() == 4 * 24 > MIN_PART_AREA
    assert np.count_nonzero(found.undetermined) == 1
    corner = ((mesh.vertices[ends] == 4) & (mesh.vertices[ends][..., ::-1] <= 4)).all(axis=1).any(axis=1)
    cut = CutMesh.along(mesh, ends[corner])
    found = find_discontinuities(Jumps(), cut.mesh, np.zeros(len(cut.origin)), Orthographic(), cut.component, None)
    assert found.part_areas.min() == 16
    assert not found.undetermined.any()


def test_jumps_are_those_of_the_surface():
    """The two sides of the surface at a cut are as far apart as reported, and as in truth."""
    _, normal_map = flap()
    surface = reconstruct(normal_map, vertices=300)
    found = surface.discontinuities
    assert len(found.lines) == 1
    # A bad face beside the line may be cut off.
    assert 61 < found.length < 70
    found = replace(found, screen=found.screen[on_line := (np.abs(found.screen[..., 0] - 58) < 1.5).all(axis=1)])
    found = replace(found, jumps=found.jumps[on_line])
    assert found.length > 61
    true = 0.5 * (58 - 0.2 * 96) * (1 - ((found.screen[..., 1] - 48) / (0.35 * 96)) ** 2) ** 2
    assert np.mean(np.abs(np.abs(found.jumps) - true.mean(axis=1)) < 0.5) > 0.8
    # A vertex is where it is reported to be, on both sides.
    for ends, jump in zip(found.screen, found.jumps, strict=True):
        heights = [surface.vertices[(surface.screen == end).all(axis=1), 2] for end in ends]
        # Where a face beside the line was cut off, too, there are more than two sides.
        if max(map(len, heights)) <= 2:
            assert abs(jump) == pytest.approx(np.mean([np.ptp(each) for each in heights]), abs=1e-9)
    assert found.parts.max() == 0
    assert not found.undetermined.any()


def test_continuous_surfaces_report_nothing():
    _, normal_map = flap()
    mesh = decimate(normal_map, vertices=300)
    for options in ({"discontinuities": False}, {"discontinuities": np.False_}, {"formulation": "vertices"}):
        surface = integrate(mesh, normal_map, refine=0, **options)
        assert surface.discontinuities is None
        assert np.array_equal(surface.faces, mesh.faces)
    with pytest.raises(NormalMeshError, match='discontinuities need formulation="facets"'):
        integrate(mesh, normal_map, formulation="vertices", discontinuities=True)
    assert reconstruct(normal_map, vertices=300, preset="paper").discontinuities is None


def test_faces_and_vertices_of_the_mesh_keep_their_numbers():
    """A mesh that was not made for the jumps is cut along the edges that they hold apart."""
    _, normal_map = flap()
    mesh = decimate(normal_map, vertices=300)
    surface = integrate(mesh, normal_map, refine=0)
    assert len(surface.vertices) > len(mesh.vertices)
    assert np.array_equal(surface.screen[: len(mesh.vertices)], mesh.vertices)
    assert np.array_equal(surface.screen[surface.faces], mesh.vertices[mesh.faces])
    assert surface.mesh.check().ok


def test_a_mesh_made_with_jumps_is_cut_along_their_lines():
    normal_map = scene("flaps").normal_map(Orthographic())
    jumps = find_jumps(normal_map)
    mesh = decimate(normal_map, vertices=700, jumps=jumps)
    surface = integrate(mesh, normal_map, jumps=jumps, refine=0)
    found = surface.discontinuities
    assert found.lines == jumps.lines
    ends = {frozenset(map(tuple, pair)) for pair in found.screen.tolist()}
    assert ends == {frozenset(map(tuple, pair)) for pair in mesh.vertices[mesh.seams].tolist()}
    assert len(surface.vertices) == 700
    corners = np.concatenate([line.path for line in jumps.lines])
    middles = found.screen.mean(axis=1)
    assert (np.linalg.norm(middles[:, None] - corners, axis=2).min(axis=1) < 3).all()
