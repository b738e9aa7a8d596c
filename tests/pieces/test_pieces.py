"""Pieces of a mesh: they share no face, and nothing but their free vertices changes."""

from __future__ import annotations

import numpy as np
import pytest

from meshes import bumpy_map
from normalmesh import ScreenMesh, decimate
from normalmesh.decimation.decimation_options import REGULARISATION, DecimationOptions
from normalmesh.pieces.decimation_tasks import DecimationPlan, decimate_piece
from normalmesh.pieces.integration_tasks import refine_piece
from normalmesh.pieces.map_windows import Window
from normalmesh.pieces.tile_grid import TileGrid
from normalmesh.pieces.whole_mesh import WholeMesh

NO_SEAMS, NO_PIXELS = np.empty((0, 2), np.int32), np.empty(0, np.int64)


def tile(mask, left, top):
    """Return two triangles for each pixel of a mask, moved, as the mesh of a tile."""
    mesh = ScreenMesh.from_mask(mask)
    waiting = np.zeros(len(mesh.vertices), bool)
    places = mesh.vertices + np.array([left, top])
    return {"vertices": places, "faces": mesh.faces, "waiting": waiting, "seams": NO_SEAMS, "flipped": NO_PIXELS}


def triangles(vertices, faces):
    """Return the faces of a mesh by the positions of their vertices, whatever their order."""
    corners = np.round(vertices[faces], 9)
    return {tuple(sorted(map(tuple, corner))) for corner in corners.tolist()}


def whole(mesh, free=None):
    waiting = np.ones(len(mesh.vertices), bool) if free is None else free
    return WholeMesh(mesh.vertices.copy(), mesh.faces.copy(), waiting, NO_SEAMS, NO_PIXELS)


def test_tiles_join_at_common_edges_only():
    rng = np.random.default_rng(1)
    mask = rng.random((24, 24)) < 0.6
    parts = [tile(mask[y : y + 12, x : x + 12], x, y) for y in (0, 12) for x in (0, 12)]
    joined, expected = WholeMesh.joined(parts).screen(), ScreenMesh.from_mask(mask)
    assert joined.check().ok
    assert len(joined.vertices) == len(expected.vertices)
    assert joined.check().components == expected.check().components
    assert triangles(joined.vertices, joined.faces) == triangles(expected.vertices, expected.faces)


@pytest.fixture(scope="module")
def decimated():
    mask = np.ones((300, 320), bool)
    mask[100:130, 90:180] = False
    normal_map = bumpy_map((300, 320), mask=mask)
    return normal_map, decimate(normal_map, compression=0.97)


def test_pieces_share_no_face_and_hold_all_faces_of_their_free_vertices(decimated):
    _, mesh = decimated
    state = whole(mesh)
    grid = TileGrid(Window(0, 0, 300, 320), 256)
    zone = np.where(grid.in_collar(mesh.vertices), np.int32(-1), grid.tile_of(mesh.vertices))
    pieces = dict(state.pieces(zone))
    seen = []
    for name, piece in pieces.items():
        assert (zone[piece.numbers[piece.free]] == name).all()
        seen += triangles(piece.vertices, piece.faces)
        touching = np.isin(mesh.faces, piece.numbers[piece.free]).any(axis=1)
        assert triangles(piece.vertices, piece.faces) == triangles(mesh.vertices, mesh.faces[touching])
    assert len(seen) == len(set(seen))


def test_pieces_that_return_unchanged_leave_the_mesh_as_it_was(decimated):
    _, mesh = decimated
    state = whole(mesh)
    pieces = list(state.pieces(TileGrid(Window(0, 0, 300, 320), 256).tile_of(mesh.vertices)))
    same = [
        (
            piece,
            {
                "vertices": piece.vertices,
                "faces": piece.faces,
                "origin": np.arange(len(piece.vertices)),
                "seams": piece.seams,
                "flipped": NO_PIXELS,
            },
        )
        for _, piece in pieces
    ]
    state.replace(same)
    assert state.screen().check().ok
    assert triangles(state.vertices, state.faces) == triangles(mesh.vertices, mesh.faces)
    assert len(state.vertices) == len(mesh.vertices)


def zone_of(chosen):
    """Return the zone 0 where vertices are chosen."""
    return np.where(chosen, 0, -1).astype(np.int32)


def strip(mesh):
    """Return the mesh with heights, and the piece of the vertices of a strip across its middle."""
    state, count = whole(mesh), len(mesh.vertices)
    state.unknown, state.component, state.fixed = np.zeros(count), np.zeros(count, np.int32), np.zeros(count, bool)
    return state, next(piece for _, piece in state.pieces(zone_of(np.abs(mesh.vertices[:, 0] - 140) < 40)))


def test_decimating_a_piece_leaves_all_other_vertices(decimated):
    normal_map, mesh = decimated
    state, piece = strip(mesh)
    plan = DecimationPlan(DecimationOptions(), REGULARISATION, 0.0, -1.0, (50.0, 200.0), 0.01)
    result = decimate_piece(normal_map, piece, plan, NO_PIXELS)
    result |= {"unknown": np.zeros(len(result["origin"])), "component": np.zeros(len(result["origin"]), np.int32)}
    kept = result["origin"] >= 0
    assert len(result["vertices"]) < len(piece.vertices)
    np.testing.assert_array_equal(result["vertices"][kept], piece.vertices[result["origin"][kept]])
    assert set(result["origin"][kept]) == set(np.flatnonzero(~piece.free))
    outside = triangles(mesh.vertices, mesh.faces) - triangles(piece.vertices, piece.faces)
    state.replace([(piece, result)])
    assert state.screen().check().ok
    assert outside <= triangles(state.vertices, state.faces)
    loops = mesh.check().boundary_loops
    np.testing.assert_array_equal(state.screen().check().boundary_loops, loops)


def test_refining_a_piece_leaves_all_other_vertices(decimated):
    normal_map, mesh = decimated
    state, piece = strip(mesh)
    result = refine_piece(normal_map, piece, np.zeros(1), range(2), np.ones(1, bool), 5)
    stays = (result["origin"] >= 0) & ~piece.free[result["origin"]]
    np.testing.assert_array_equal(result["vertices"][stays], piece.vertices[result["origin"][stays]])
    assert result["changes"].sum() > 0
    assert np.count_nonzero(result["origin"] < 0) == 5
    state.replace([(piece, result)])
    assert state.screen().check().ok


def test_a_piece_that_touches_itself_at_a_vertex_is_manifold():
    mask = np.ones((40, 40), bool)
    mesh = ScreenMesh.from_mask(mask)
    free = np.isin(mesh.vertices, [10.0, 11.0]).all(axis=1) | np.isin(mesh.vertices, [12.0, 13.0]).all(axis=1)
    state = whole(mesh)
    pieces = [piece for _, piece in state.pieces(zone_of(free))]
    assert all(ScreenMesh(piece.vertices, piece.faces).check().manifold for piece in pieces)
