"""Integration in pieces: one exact solve of all tiles, then refinement of tiles, strips and crossings, in turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from normalmesh.array_types import Float, Int, Int32
from normalmesh.engine.task_arguments import LazyArguments
from normalmesh.integration.mesh_solver import MAX_ERROR, STIFF, steep_share
from normalmesh.integration.prior_correction import corrected
from normalmesh.mesh.jumps import Placement
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.pieces.clean_map import CleanMap
from normalmesh.pieces.elimination import TiledSystem
from normalmesh.pieces.integration_tasks import (
    Refinement,
    TileMesh,
    detached_edges,
    refine_piece,
    tile_equations,
    tile_heights,
)
from normalmesh.pieces.map_windows import Run, renamed
from normalmesh.pieces.merge_tree import MergeTree
from normalmesh.pieces.tile_elements import Elements, Partition
from normalmesh.pieces.tile_faces import TileFaces
from normalmesh.pieces.tile_grid import TileGrid
from normalmesh.pieces.tiled_equations import TiledEquations
from normalmesh.pieces.tiled_prior import TiledPrior
from normalmesh.pieces.whole_mesh import Arrays, Piece, WholeMesh, shares

#: The stages in which pieces are refined: each vertex is free in one of them.
ZONES = ("tiles", "strips", "crossings", "crossings-2")


@dataclass(frozen=True, eq=False)
class PieceSolver:
    """Solves and refines meshes in pieces.

    Attributes
    ----------
    clean : CleanMap
    grid : TileGrid
    noise : (C,)
        Noise of the normals of each component of the mesh, in degrees.
    placement : Placement
        Where jumps place the parts of the surface, or None for a continuous surface.
    prior : TiledPrior
        Depths to respect, or None.
    """

    clean: CleanMap
    grid: TileGrid
    noise: Float
    placement: Placement | None = None
    prior: TiledPrior | None = None

    def solve(self, mesh: WholeMesh, run: Run) -> None:
        """Solve for the unknown of a mesh, and estimate its error, in place.

        Components that a prior fixes are relative to the levels of the mesh.
        """
        faces = TileFaces.of(mesh.screen(), self.grid)
        part = partial(_part, faces)
        equations = run(
            "means",
            tile_equations,
            LazyArguments(faces.tiles, lambda tile: (self.clean, *self._with_placement(part(tile)))),
            work=0.04,
        )
        centroids, held, values = faces.gathered(equations, "centroids", "held", "values")
        edges = _edges(faces, equations)
        tree, scale = MergeTree.of(*self.grid.counts), self.clean.camera.pixel_length
        elements = edges if held is None else edges.holding(held, values)
        system = TiledSystem(Partition(elements, faces.tile, centroids), tree, run)
        solution = system.solve(max_error=MAX_ERROR * scale)
        offsets, error = solution.x, solution.error
        if self.prior is not None:
            terms = self.prior.terms(faces, part, equations, offsets, run)
            connected = faces.mesh.components[mesh.faces[:, 0]]
            normals = TiledEquations(edges, connected, faces.tile, centroids, tree, renamed(run, "prior"))
            component = mesh.component[mesh.faces[:, 0]]
            found = corrected(offsets, normals, terms, component, self.placement is not None, MAX_ERROR * scale)
            mesh.levels, offsets, error = found.levels, found.x, max(error, found.error)
        mesh.unknown, mesh.error = self._heights(mesh, faces, equations, offsets, run), np.array(error / scale)
        if self.prior is not None and self.prior.largest_weight > STIFF:
            plain = self._heights(mesh, faces, equations, solution.x, renamed(run, "plain"))
            mesh.bent = np.array(steep_share(faces.mesh, (mesh.unknown - plain) / scale, component))

    def _heights(
        self, mesh: WholeMesh, faces: TileFaces, equations: Mapping[int, Arrays], offsets: Float, run: Run
    ) -> Float:
        """Return the unknown (N,) of the vertices of a mesh from the offsets (M,) of its faces."""
        found = run(
            "heights",
            tile_heights,
            LazyArguments(
                faces.tiles,
                lambda tile: (
                    self.clean,
                    _part(faces, tile),
                    equations[tile],
                    offsets[faces.with_rings(tile)],
                ),
            ),
        )
        unknown = np.empty(len(mesh.vertices))
        for tile in faces.tiles:
            vertices = np.unique(mesh.faces[faces.with_rings(tile)])
            own = faces.owner[vertices] == tile
            unknown[vertices[own]] = found[tile]["unknown"][own]
        return unknown

    def _with_placement(self, part: TileMesh) -> tuple[TileMesh, Placement | None]:
        """Return a part of the mesh, and the placement of its faces, relative to the corner of its window."""
        if self.placement is None:
            return part, None
        area = part.window(self.clean.shape)
        return part, self.placement.window(area.rows, area.columns)

    def detach(self, mesh: WholeMesh, run: Run) -> None:
        """Cut bad faces at the boundary off from neighbours that the placement holds apart, in place."""
        faces = TileFaces.of(mesh.screen(), self.grid)

        def arguments(tile: int) -> tuple[Any, ...]:
            vertices = np.unique(mesh.faces[faces.with_rings(tile)])
            part, placement = self._with_placement(_part(faces, tile))
            return self.clean, part, mesh.unknown[vertices], placement

        found = run("detach", detached_edges, LazyArguments(faces.tiles, arguments))
        edges = [np.unique(mesh.faces[faces.with_rings(tile)])[found[tile]["edges"]] for tile in faces.tiles]
        mesh.cut_again(np.concatenate(edges))

    def refine(self, mesh: WholeMesh, work: Refinement, run: Run, target: int | None = None) -> Int:
        """Refine the vertices of moving components once, tile by tile, then along seams, then at crossings, in place.

        With a target, vertices are added in the tiles to reach it. Return the flips and moves (R, 2, C) of each round.
        """
        mesh.waiting = ~mesh.fixed & mesh.moving[mesh.component]
        changes = np.zeros((len(work.turns), 2, len(mesh.moving)), np.int64)
        for stage in ZONES:
            pieces, components = dict(mesh.pieces(_zones(mesh, self.grid, stage))), {}
            for key, piece in pieces.items():
                components[key], local = np.unique(piece.component, return_inverse=True)
                pieces[key] = replace(piece, component=local.astype(np.int32))
            added = shares(pieces, target - len(mesh.vertices)) if stage == "tiles" and target else {}
            arguments = {
                key: (self.clean, piece, self.noise[own], work.turns, work.tidied[own], added.get(key, 0))
                for (key, piece), own in zip(pieces.items(), components.values(), strict=True)
            }
            results: list[tuple[Piece, Arrays]] = []
            share = 0.12 if stage == "tiles" else 0.0
            for key, found in run(stage, refine_piece, arguments, work=share).items():
                own = components[key]
                results.append((pieces[key], {**found, "component": own[found["component"]].astype(np.int32)}))
                changes[..., own] += found["changes"]
            mesh.replace(results)
        return changes


def _edges(faces: TileFaces, equations: Mapping[int, Arrays]) -> Elements:
    """Return the elements of the edges of all tiles."""
    joined = {
        name: np.concatenate([equations[tile][name] for tile in faces.tiles]) for name in ("pairs", "weights", "steps")
    }
    return Elements.of_edges(**joined, count=len(faces.tile))


def part_of(mesh: ScreenMesh, faces: TileFaces, numbers: Int) -> TileMesh:
    """Return some faces of a mesh, those of a tile first."""
    vertices, local = np.unique(mesh.faces[numbers], return_inverse=True)
    places = local.reshape(-1, 3).astype(np.int32)
    return TileMesh(mesh.vertices[vertices], places, numbers, faces.tile[numbers], faces.on_boundary[vertices])


def _part(faces: TileFaces, tile: int) -> TileMesh:
    """Return the faces of a tile, and those around them."""
    return part_of(faces.mesh, faces, faces.with_rings(tile))


def _zones(mesh: WholeMesh, grid: TileGrid, stage: str) -> Int32:
    """Return the zone (N,) of each vertex that is free in a stage, −1 for others."""
    zone = np.full(len(mesh.vertices), -1, np.int32)
    waiting = np.flatnonzero(mesh.waiting)
    points = mesh.vertices[waiting]
    if stage == "tiles":
        zone[waiting] = np.where(grid.near_seams(points), -1, grid.tile_of(points))
    elif stage == "strips":
        zone[waiting] = grid.strip_of(points)
    else:
        zone[waiting] = grid.crossing_of(points)
        if stage == "crossings":
            zone[(zone >= 0) & ~grid.is_even(zone)] = -1
    return zone
