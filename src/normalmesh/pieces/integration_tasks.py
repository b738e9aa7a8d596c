"""Tasks of integration in pieces: mean normals and equations of the faces of a tile, its surface, its refinement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float
from normalmesh.engine.array_file import Arrays
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.facets.plane_surface import PlaneSurface
from normalmesh.integration._tidying import BAD_ANGLE, EARLY_BAD_ANGLE, MIN_BAD
from normalmesh.integration.mesh_deviation import face_variances
from normalmesh.integration.mesh_solver import HOLD, SAMPLES
from normalmesh.integration.solved_mesh import MeshPiece, edges_to_detach
from normalmesh.integration.tidying import judged
from normalmesh.jumps.placement import placed_offsets
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.mesh.cut_mesh import CutMesh
from normalmesh.mesh.jumps import Placement
from normalmesh.mesh.raster import covered_pixels
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.component_maps import window_camera
from normalmesh.pieces.map_windows import Window, WindowedMap, filled_window, window_around
from normalmesh.pieces.tile_faces import TileMesh
from normalmesh.pieces.whole_mesh import Piece


def tile_equations(clean: WindowedMap, part: TileMesh, placement: Placement | None) -> Arrays:
    """Average the normals over the faces of a tile, and assemble the equations of its edges.

    Return the ``table`` of the means of all faces; ``pairs`` (E, 2) of faces of the whole mesh, ``weights`` and
    ``steps`` (E,) of the edges whose higher tile this is; ``centroids`` (m, 2) of its own faces in the image; and, with
    a placement, ``held`` and ``values`` (m,), with which it holds its own faces.
    """
    area = part.window(clean)
    system = FacetSystem.of(FaceMeans.of(part.screen(area), filled_window(clean, area), SAMPLES, planes_only=True))
    means, own = system.means, part.own
    kept = np.flatnonzero(part.tile[system.pairs].max(axis=1) == part.tile[0])
    kept = kept[(system.pairs[kept] < own).any(axis=1)]
    found: dict[str, NDArray[Any]] = {
        "table": means.table,
        "pairs": part.numbers[system.pairs[kept]].astype(np.int32),
        "weights": system.weights[kept],
        "steps": system.steps[kept],
        "centroids": means.centroids[:own] + area.corner,
    }
    if placement is not None:
        values, areas = placed_offsets(placement, means, area.shape)
        found |= {"held": (HOLD * areas * means.mobilities)[:own], "values": values[:own]}
    return found


def tile_heights(clean: WindowedMap, part: TileMesh, equations: Mapping[str, Any], offsets: Float) -> Arrays:
    """Return the ``unknown`` (n,) of the ``vertices`` (n,) of a tile from the offsets (m,) of its faces."""
    area = part.window(clean)
    camera = window_camera(clean.camera, area.left, area.top)
    means = FaceMeans(part.screen(area), camera, np.array(equations["table"]))
    return {"unknown": PlaneSurface(means).at_vertices(offsets), "vertices": part.corners}


def refine_piece(clean: WindowedMap, piece: Piece, noise: Float, turns: range, tidied: Bool, added: int) -> Arrays:
    """Flip edges and move free vertices of a piece, remove its bad faces, and add some vertices where edges are split.

    ``noise`` (C,) is that of the normals of the components of the piece in degrees, ``tidied`` (C,) are those whose bad
    faces are removed, and ``turns`` the numbers of the rounds. Return the piece, for :meth:`.WholeMesh.replace`, and
    ``changes`` (R, 2, C): flips and moves of each round.
    """
    area = window_around(piece.vertices, Window.whole(clean.shape))
    mesh = ScreenMesh(piece.vertices - area.corner, piece.faces)
    closed = ClosedMesh.from_screen(mesh, area.shape, ~piece.free)
    arrays = closed, piece.unknown.copy(), piece.component, ~piece.free
    part = MeshPiece(*arrays, noise, filled_window(clean, area))
    changes = np.array([part.refine(turn) for turn in turns], np.int64).reshape(len(turns), 2, len(noise))
    origin, flipped = np.arange(part.vertices), np.empty(0, np.int64)
    if tidied.any():
        origin = part.tidy(tidied, EARLY_BAD_ANGLE if turns else BAD_ANGLE).kept
        changed = covered_pixels(mesh, area.shape) != covered_pixels(part.mesh.to_screen(), area.shape)
        flipped = area.numbers(changed, clean.shape[1])
    if added:
        part.split(added)
        origin = np.append(origin, np.full(part.vertices - len(origin), -1))
    return {
        "vertices": part.mesh.vertices + area.corner,
        "faces": part.mesh.faces[: part.mesh.real_faces].copy(),
        "unknown": part.unknown,
        "component": part.component,
        "origin": origin,
        "changes": changes,
        "seams": np.empty((0, 2), np.int32),
        "flipped": flipped,
    }


def tile_variances(source: WindowedMap, part: TileMesh, unknown: Float, noise: Float) -> Arrays:
    """Return the variances ``whole`` and ``curved`` (m,) of the faces of a tile; see :func:`.face_variances`.

    ``source`` has the normals with their noise, ``unknown`` (n,) and ``noise`` (m, 2) are those of the part.
    """
    area = part.window(source)
    whole, curved = face_variances(part.screen(area), unknown, filled_window(source, area), noise)
    return {"whole": whole, "curved": curved}


def detached_edges(clean: WindowedMap, part: TileMesh, unknown: Float, placement: Placement) -> Arrays:
    """Return the edges (E, 2) of a tile along which to cut off its bad faces, by their vertices in the whole mesh.

    Edges of which it is the higher tile are those of the tile; see :func:`.edges_to_detach`.
    """
    area = part.window(clean)
    normal_map, mesh = filled_window(clean, area), part.screen(area)
    # The vertices at the sides of the part lack faces: their edges belong to other tiles.
    cut = CutMesh.at_corners(mesh)
    bad = (
        judged(ClosedMesh.from_screen(cut.mesh, area.shape), unknown[cut.origin], normal_map, EARLY_BAD_ANGLE).bad
        > MIN_BAD
    )
    system = FacetSystem.of(FaceMeans.of(mesh, normal_map, SAMPLES))
    apart = edges_to_detach(system, bad, placement, area.shape, part.on_boundary)
    own = part.tile[system.pairs].max(axis=1) == part.tile[0]
    return {"edges": part.corners[system.ends[apart & own]]}
