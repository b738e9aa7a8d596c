"""Test that walls close what is cut: on random cuts, in space, in files, and nowhere else than there."""

from dataclasses import replace

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import normalmesh as nm
from normalmesh import NormalMeshError, Orthographic, Perspective, ScreenMesh, Surface, integrate, reconstruct
from normalmesh.evaluation.cases import Case
from normalmesh.mesh.cut_mesh import CutMesh
from normalmesh.mesh.repeats import Repeats
from normalmesh.mesh.walls import has_walls, walls_of, with_walls
from normalmesh.normals.normal_map import NormalMap
from scenes import scene
from surfaces import flap, plane_map

CAMERAS = {"orthographic": Orthographic(0.5), "perspective": Perspective(40.0, 40.0, 3.0, 3.0)}


def sides_of(faces):
    """Return the directed edges (3M, 2) of faces (M, 3)."""
    return np.concatenate([faces[:, [k, (k + 1) % 3]] for k in range(3)])


def open_edges(surface, with_the_walls=True):
    """Return the vertices (K, 2) of edges in space that are not followed as often in one direction as in the other."""
    places, first, place = np.unique(surface.vertices, axis=0, return_index=True, return_inverse=True)
    faces = surface.all_faces if with_the_walls else surface.faces
    sides = place.ravel()[sides_of(faces)]
    count = len(places)
    keys, back = sides @ [count, 1], sides @ [1, count]
    balance = dict.fromkeys(np.concatenate([keys, back]).tolist(), 0)
    for key, opposite in zip(keys.tolist(), back.tolist(), strict=True):
        balance[key] += 1
        balance[opposite] -= 1
    lone = np.array([key for key, number in balance.items() if number > 0], np.int64)
    return first[np.stack(np.divmod(lone, count), axis=1)]


def on_side(surface, edges):
    """Return which edges (K, 2) lie along one side of the image."""
    ends, (rows, columns) = surface.screen[edges], surface.shape
    sides = [ends[..., axis] == at for axis, far in ((0, columns), (1, rows)) for at in (0, far)]
    return np.any([side.all(axis=1) for side in sides], axis=0)


def check_outline(surface):
    """Check that a surface of a whole image is open near its sides only; the refinement moves vertices there."""
    lone = surface.screen[open_edges(surface)]
    assert (np.minimum(lone, surface.shape[::-1] - lone).min(axis=2) < 1).all()


def inner_edges(mesh):
    corners = np.flatnonzero(mesh.opposite > np.arange(len(mesh.opposite)))
    sides = np.stack([mesh.faces.ravel()[c - c % 3 + (c + turn) % 3] for turn in (1, 2) for c in [corners]], axis=1)
    return sides.astype(np.int64)


def torn(shape, chosen, heights, camera=None):
    """Return a surface with walls on a grid that is cut along some inner edges, with heights at its vertices."""
    mesh = ScreenMesh.from_mask(np.ones(shape, np.bool_))
    edges = inner_edges(mesh)
    cut = CutMesh.along(mesh, edges[np.resize(chosen, len(edges)).astype(bool)]).mesh
    camera = camera or Orthographic()
    unknown = camera.towards_viewer * np.resize(np.asarray(heights, np.float64), len(cut.vertices))
    walls = walls_of(cut, camera.towards_viewer * unknown)
    return Surface.from_unknown(cut, unknown, camera, shape, walls=walls)


@pytest.mark.parametrize("camera", CAMERAS.values(), ids=CAMERAS)
@given(st.data())
@settings(deadline=None, max_examples=60)
def test_any_cuts_are_closed(camera, data):
    """Levels that are equal, that cross, and columns of many fans are common here."""
    shape = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    chosen = data.draw(st.lists(st.booleans(), min_size=1, max_size=90))
    heights = data.draw(st.lists(st.integers(0, 4).map(lambda k: k / 8), min_size=1, max_size=60))
    surface = torn(shape, chosen, heights, camera)
    assert on_side(surface, open_edges(surface)).all()
    normals = with_walls(surface).face_normals[len(surface.faces) :]
    assert np.linalg.norm(normals, axis=1) == pytest.approx(1)  # none is degenerate
    # They lie along the rays: no pixel sees them.
    corners = surface.vertices[surface.walls].mean(axis=1)
    rays = camera.rays(*camera.screen(corners).T)
    assert_allclose((normals * rays).sum(axis=1), 0, atol=1e-6)
    assert_array_equal(with_walls(surface).owners()[1], surface.owners()[1])


def test_edges_that_cross_are_joined_below():
    """Where the higher side changes within an edge, no wall stands out above both."""
    mesh = ScreenMesh(np.array([[0.0, 0], [4, 0], [0, 4], [4, 4], [0, 0], [4, 4]]), np.array([[0, 2, 3], [4, 5, 1]]))
    for higher in (0, 4):
        levels = np.zeros(6)
        levels[[higher, 5 if higher == 0 else 3]] = 2
        walls = walls_of(mesh, levels)
        assert len(walls) == 2
        lower = sorted({0, 3, 4, 5} - set(np.flatnonzero(levels)))
        assert all(set(lower) <= set(wall) for wall in walls.tolist())


def test_three_levels_that_meet_make_a_manifold():
    """The wall from the highest to the lowest level borders on the two others."""
    mesh = ScreenMesh.from_mask(np.ones((2, 2), np.bool_))
    centre = int(np.flatnonzero((mesh.vertices == 1).all(axis=1))[0])
    ends = [[0, 1], [1, 2], [2, 1]]
    vertices = [int(np.flatnonzero((mesh.vertices == end).all(axis=1))[0]) for end in ends]
    cut = CutMesh.along(mesh, np.array([[centre, vertex] for vertex in vertices])).mesh
    middle = cut.vertices[cut.faces].mean(axis=1)
    part = np.where(middle[:, 1] < 1, 2, np.where(middle[:, 0] < 1, 0, 1))
    levels = np.zeros(len(cut.vertices))
    levels[cut.faces] = part[:, None]
    surface = Surface.from_unknown(cut, levels, Orthographic(), (2, 2), walls=walls_of(cut, levels))
    sides = sides_of(surface.all_faces)
    assert len(np.unique(sides, axis=0)) == len(sides)
    assert on_side(surface, open_edges(surface)).all()
    assert len(surface.walls) == 7  # two for each of three cuts, and one more along the middle of the highest


def plateau():
    """Return a surface of height 2 on 2 × 2 of 4 × 4 pixels of height 0, cut around."""
    mesh = ScreenMesh.from_mask(np.ones((4, 4), np.bool_))
    middle = mesh.vertices[mesh.faces].mean(axis=1)
    inside = (np.abs(middle - 2) < 1).all(axis=1)
    edges = inner_edges(mesh)
    border = [
        edge
        for edge in edges
        if (np.abs(mesh.vertices[edge] - 2).max(axis=1) == 1).all()
        and np.abs(mesh.vertices[edge].mean(axis=0) - 2).max() == 1
    ]
    cut = CutMesh.along(mesh, np.array(border)).mesh
    levels = np.zeros(len(cut.vertices))
    levels[cut.faces[inside]] = 2
    return Surface.from_unknown(cut, levels, Orthographic(), (4, 4), walls=walls_of(cut, levels))


def test_a_plateau_is_watertight_and_its_walls_face_outwards():
    surface = plateau()
    assert len(surface.walls) == 16
    outwards = surface.vertices[surface.walls].mean(axis=1)[:, :2] - [2, -2]
    normals = with_walls(surface).face_normals[len(surface.faces) :]
    assert ((normals[:, :2] * outwards).sum(axis=1) > 0.4).all()
    # With a cone to a point below the ground, it encloses a volume.
    count = len(surface.vertices)
    cone = np.insert(open_edges(surface)[:, ::-1], 2, count, axis=1)
    vertices = np.append(surface.vertices, [[2, -2, -1]], axis=0)
    closed = trimesh.Trimesh(vertices, np.concatenate([surface.all_faces, cone]), process=False)
    assert closed.is_watertight
    assert closed.is_winding_consistent
    assert closed.volume == pytest.approx(2 * 4 + 16 / 3)


def test_walls_have_vertices_and_normals_of_their_own():
    surface = plateau()
    shown = with_walls(surface)
    count = len(surface.vertices)
    assert_array_equal(shown.vertex_normals[:count], surface.vertex_normals)
    assert_array_equal(shown.vertex_normals[:count], np.tile([0, 0, 1], (count, 1)))
    assert np.abs(shown.vertex_normals[count:, 2]).max() < 1e-9
    assert with_walls(shown) is shown


@pytest.mark.parametrize("suffix", [".glb", ".ply", ".obj", ".stl"])
@pytest.mark.parametrize("camera", CAMERAS.values(), ids=CAMERAS)
def test_files_are_read_back(tmp_path, suffix, camera):
    surface = torn((5, 5), [0, 1, 0, 0, 1, 1, 0], np.arange(17) % 7 / 8, camera)
    path = tmp_path / f"surface{suffix}"
    surface.save(path)
    found = Surface.from_mesh(path, camera, surface.shape)
    assert len(found.walls) == len(surface.walls)
    assert len(found.faces) == len(surface.faces)
    if suffix != ".stl":
        assert_allclose(found.vertices, surface.vertices, atol=1e-5)
        assert_array_equal(found.faces, surface.faces)
    assert len(open_edges(found)) == len(open_edges(surface))


def test_levels_of_3d_tiles_keep_all_walls(tmp_path):
    from normalmesh.output.mesh_reading import read_tileset
    from normalmesh.output.tileset import write_tileset

    rng = np.random.default_rng(3)
    mesh = ScreenMesh.from_mask(np.ones((48, 48), np.bool_))
    edges = inner_edges(mesh)
    along = (mesh.vertices[edges][:, :, 1] == 20).all(axis=1) & (np.abs(mesh.vertices[edges][:, :, 0] - 24) < 15).all(1)
    cut = CutMesh.along(mesh, edges[along]).mesh
    levels = np.sin(cut.vertices[:, 0] / 9) + rng.random(len(cut.vertices)) / 8
    surface = Surface.from_unknown(cut, levels, Orthographic(), (48, 48), walls=walls_of(cut, levels))
    assert len(surface.walls)
    write_tileset(surface, tmp_path / "tiles", max_faces=1000)
    for most in (0, 2500, 10_000):
        vertices, faces, complete = read_tileset(tmp_path / "tiles", most)
        found = Surface.from_mesh((vertices, faces), shape=(48, 48))
        assert complete == (most == 10_000)
        assert len(found.walls) == len(surface.walls)
        assert on_side(found, open_edges(found)).all()


def step_map(mask=None):
    """Return the normal map of a sheet that rises and ends in a jump."""
    normal_map = flap(96)[1]
    return normal_map if mask is None else NormalMap(normal_map.normals, mask)


@pytest.mark.parametrize("gaps", ["open", "walls", "auto"])
def test_what_becomes_of_gaps(gaps):
    surface = reconstruct(step_map(), compression=0.97, gaps=gaps)
    length = surface.discontinuities.length
    assert length > 20
    if gaps == "open":
        assert surface.walls.shape == (0, 3)
        return
    assert len(surface.walls) >= 0.9 * len(surface.discontinuities.screen)
    check_outline(surface)
    without = reconstruct(step_map(), compression=0.97, gaps="open")
    for name in ("vertices", "faces", "screen", "components"):
        assert_array_equal(getattr(surface, name), getattr(without, name))
    assert_array_equal(surface.depth_map(), without.depth_map())
    assert_array_equal(surface.vertex_normals, without.vertex_normals)
    assert str(nm.measure_looks(surface, step_map())) == str(nm.measure_looks(without, step_map()))
    assert_array_equal(surface.uncertainty(1.0), without.uncertainty(1.0))


def test_reliefs_are_closed_and_objects_are_open():
    camera, pinhole = Orthographic(), Perspective.from_fov(40, (96, 96))
    assert has_walls("auto", camera, 1.0, None)
    assert has_walls("auto", camera, 0.92, None)
    assert not has_walls("auto", camera, np.pi / 4, None)
    assert not has_walls("auto", pinhole, 1.0, None)
    assert has_walls("walls", pinhole, 0.1, None)
    repeats = Repeats(True, False, (96, 96))
    assert has_walls("auto", camera, 0.1, repeats)
    assert not has_walls("open", camera, 1.0, repeats)
    mask = np.ones((96, 96), np.bool_)
    mask[:, :12] = False
    assert len(reconstruct(step_map(mask), compression=0.97).walls) == 0
    assert len(reconstruct(step_map(mask), compression=0.97, gaps="walls").walls) > 0


def test_walls_along_the_rays_of_a_pinhole():
    camera = Perspective.from_fov(40, (112, 112))
    normal_map = scene("flaps", 112).normal_map(camera)
    surface = reconstruct(normal_map, compression=0.95, gaps="walls")
    assert len(surface.walls) > 20
    corners = surface.screen[surface.walls]
    assert (corners == np.roll(corners, 1, axis=1)).all(axis=2).any(axis=1).all()


def test_tiles_and_memory_agree():
    normal_map = step_map()
    inside = reconstruct(normal_map, compression=0.97)
    tiled = nm.reconstruct_tiled(normal_map, compression=0.97, tiles=256, workers=0)
    assert_array_equal(tiled.walls, inside.walls)
    wide = scene("flaps", 300).normal_map(Orthographic())
    several = nm.reconstruct_tiled(wide, compression=0.97, tiles=256, workers=0)
    assert len(several.walls) > 20
    check_outline(several)


def test_a_file_is_measured_like_its_surface(tmp_path):
    truth = scene("steps", 96)
    case = Case("steps", truth.normal_map(Orthographic()), truth.depth(Orthographic()))
    found = []
    for gaps in ("open", "walls"):
        reconstruct(case.normal_map, compression=0.95, gaps=gaps).save(tmp_path / f"{gaps}.ply")
        found.append(nm.evaluate(tmp_path / f"{gaps}.ply", case))
    assert str(found[0]) == str(found[1])
    assert found[0].rmse == found[1].rmse
    assert found[0].mae == found[1].mae


def test_continuous_surfaces_have_no_walls():
    surface = reconstruct(plane_map((0.2, 0.1, 1.0), (48, 48)), compression=0.9, gaps="walls")
    assert len(surface.walls) == 0
    assert surface.all_faces is surface.faces


def test_other_steps_keep_walls():
    surface = reconstruct(step_map(), compression=0.97)
    for changed in (surface.exaggerated(2), surface.flattened("plane")):
        assert_array_equal(changed.walls, surface.walls)
        assert len(open_edges(changed)) == len(open_edges(surface))
    solid = surface.solid("12px")
    assert trimesh.Trimesh(solid.vertices, solid.faces, process=False).is_watertight
    mesh = surface.to_trimesh()
    assert len(mesh.vertices) == len(surface.vertices)
    assert_array_equal(mesh.faces, surface.all_faces)


def test_bad_values():
    mesh, normal_map = ScreenMesh.from_mask(np.ones((4, 4))), flap(4)[1]
    with pytest.raises(NormalMeshError, match="gaps must be one of"):
        integrate(mesh, normal_map, gaps="closed")
    surface = integrate(mesh, normal_map)
    with pytest.raises(NormalMeshError, match="walls name vertices"):
        replace(surface, walls=[[0, 1, 99]])
    with pytest.raises(NormalMeshError, match="walls must have the shape"):
        replace(surface, walls=[[0, 1]])
