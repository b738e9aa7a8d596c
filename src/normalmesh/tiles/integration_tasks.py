"""Tasks of integration in pieces: mean normals and equations of the faces of a tile, its surface, its refinement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.integration.mesh_solver import SAMPLES
from normalmesh.integration.refinement import refine
from normalmesh.integration.tidying import tidy
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.component_maps import window_camera
from normalmesh.tiles.tile_grid import Rectangle
from normalmesh.tiles.whole_mesh import Piece
from normalmesh.tiles.windows import Windows, around

Float = NDArray[np.float64]
Int = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class TileMesh:
    """The faces of a tile, and those around them.

    Attributes
    ----------
    vertices : (n, 2)
        Positions in the image.
    faces : (m, 3) int32
        Faces of the tile first.
    numbers : (m,) int64
        The faces in the whole mesh.
    tile : (m,) int64
        The tile of each face.
    """

    vertices: Float
    faces: NDArray[np.int32]
    numbers: Int
    tile: Int

    @property
    def own(self) -> int:
        """Number of faces that belong to the tile."""
        return int(np.count_nonzero(self.tile == self.tile[0]))

    @property
    def area(self) -> Rectangle:
        """The pixels around it."""
        return around(self.vertices)


def tile_equations(windows: Windows, part: TileMesh) -> Arrays:
    """Average the normals over the faces of a tile, and assemble the equations of its edges.

    Returns
    -------
    ``table`` of the means of all faces; ``pairs`` (E, 2) of faces of the whole mesh, ``weights`` and ``steps`` (E,) of
    the edges whose higher tile this is; ``centroids`` (m, 2) of its own faces in the image.
    """
    area = part.area.grown(0, windows.image)
    normal_map = windows.filled(area)
    mesh = ScreenMesh(part.vertices - area.corner, part.faces)
    system = FacetSystem.of(FaceMeans.of(mesh, normal_map, SAMPLES))
    kept = np.flatnonzero(part.tile[system.pairs].max(axis=1) == part.tile[0])
    kept = kept[(system.pairs[kept] < part.own).any(axis=1)]
    return {
        "table": system.means.table,
        "pairs": part.numbers[system.pairs[kept]],
        "weights": system.weights[kept],
        "steps": system.steps[kept],
        "centroids": system.means.centroids[: part.own] + area.corner,
    }


def tile_heights(windows: Windows, part: TileMesh, equations: Mapping[str, Any], offsets: Float) -> Arrays:
    """Return the ``unknown`` (n,) of the vertices of a tile from the offsets (m,) of its faces."""
    area = part.area.grown(0, windows.image)
    mesh = ScreenMesh(part.vertices - area.corner, part.faces)
    camera = window_camera(windows.camera, area.left, area.top)
    means = FaceMeans(mesh, camera, np.array(equations["table"]))
    return {"unknown": FacetSystem.of(means).at_vertices(offsets)}


def refine_piece(windows: Windows, piece: Piece, turns: range, noise: Float, tidies: bool) -> Arrays:
    """Flip edges and move free vertices of a piece in some rounds; then remove bad faces, if it is to be tidied."""
    area = around(piece.vertices).grown(0, windows.image)
    normal_map = windows.filled(area)
    mesh = ScreenMesh(piece.vertices - area.corner, piece.faces)
    closed = ClosedMesh.from_screen(mesh, area.shape, ~piece.free)
    unknown, changes = piece.unknown.copy(), np.zeros((len(turns), 2), np.int64)
    for number, turn in enumerate(turns):
        flips, moves = refine(closed, unknown, normal_map, turn, noise)
        changes[number] = flips.sum(), moves.sum()
    origin = np.arange(len(unknown))
    if tidies:
        tidied = tidy(closed, unknown, normal_map)
        closed, unknown, origin = tidied.mesh, tidied.unknown, tidied.kept
    return {
        "vertices": closed.vertices + area.corner,
        "faces": closed.faces[: closed.real_faces].copy(),
        "unknown": unknown,
        "origin": origin,
        "changes": changes,
        "seams": np.empty((0, 2), np.int32),
        "flipped": np.empty(0, np.int64),
    }
