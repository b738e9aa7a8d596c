"""Check the reported discontinuities of surfaces."""

import numpy as np
import pytest

from normalmesh import NormalMap, NormalMeshError, Orthographic, decimate, integrate, reconstruct
from surfaces import flap, waves


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
    surface = reconstruct(waves((64, 64))[0], vertices=200)
    found = surface.discontinuities
    assert not found.cut.any()
    assert (found.weights == 1).all()
    assert not found.undetermined.any()
    assert found.parts.max() == 0
    assert str(found).startswith("0 of ")
    mesh = decimate(waves((64, 64))[0], vertices=200)
    assert np.array_equal(
        integrate(mesh, waves((64, 64))[0]).vertices,
        integrate(mesh, waves((64, 64))[0], discontinuities=False).vertices,
    )


def test_jumps_are_those_of_the_surface():
    """The two sides of the mesh at a cut edge are as far apart as reported."""
    _, normal_map = flap()
    surface = reconstruct(normal_map, vertices=500)
    found = surface.discontinuities
    assert found.cut.any()
    assert ((found.weights >= 0) & (found.weights <= 1)).all()
    assert found.weights[found.cut].max() < 0.1
    middles = found.screen[found.cut].mean(axis=1)
    apart = []
    for (f, g), middle in zip(found.faces[found.cut], middles, strict=True):
        values = []
        for face in (f, g):
            corners = surface.vertices[surface.faces[face]]
            plane = np.linalg.solve(np.c_[surface.screen[surface.faces[face]], np.ones(3)], corners[:, 2])
            values.append(plane @ [*middle, 1])
        apart.append(values[1] - values[0])
    assert np.corrcoef(apart, found.jumps[found.cut])[0, 1] > 0.9
    on_line = np.abs(middles[:, 0] - 0.6 * 96) < 8
    assert on_line.mean() > 0.7


def test_continuous_surfaces_report_nothing():
    _, normal_map = flap()
    mesh = decimate(normal_map, vertices=300)
    for options in ({"discontinuities": False}, {"formulation": "vertices"}):
        surface = integrate(mesh, normal_map, refine=0, **options)
        assert surface.discontinuities is None
        assert np.array_equal(surface.faces, mesh.faces)
    with pytest.raises(NormalMeshError, match='discontinuities need formulation="facets"'):
        integrate(mesh, normal_map, formulation="vertices", discontinuities=True)
    assert reconstruct(normal_map, vertices=300, preset="paper").discontinuities is None


def test_faces_and_vertices_of_the_mesh_keep_their_numbers():
    _, normal_map = flap()
    mesh = decimate(normal_map, vertices=300)
    surface = integrate(mesh, normal_map, refine=0)
    assert len(surface.vertices) > len(mesh.vertices)
    assert np.array_equal(surface.screen[: len(mesh.vertices)], mesh.vertices)
    assert np.array_equal(surface.screen[surface.faces], mesh.vertices[mesh.faces])
    assert surface.mesh.check().ok
