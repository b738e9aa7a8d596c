"""Integration in pieces: one exact solve of all tiles, then refinement of tiles, strips and crossings, in turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normalmesh.integration.mesh_integration import MIN_CHANGE, ROUNDS_PER_SOLVE
from normalmesh.integration.mesh_solver import MAX_ERROR
from normalmesh.tiles.elimination import TiledSystem
from normalmesh.tiles.integration_tasks import TileMesh, refine_piece, tile_equations, tile_heights
from normalmesh.tiles.lazy_arguments import LazyArguments
from normalmesh.tiles.merge_tree import MergeTree
from normalmesh.tiles.tile_elements import Elements, Partition
from normalmesh.tiles.tile_faces import TileFaces
from normalmesh.tiles.tile_grid import TileGrid
from normalmesh.tiles.tiled_decimation import Run
from normalmesh.tiles.whole_mesh import Arrays, WholeMesh
from normalmesh.tiles.windows import Windows

Float = NDArray[np.float64]
Int = NDArray[np.int64]


@dataclass(eq=False)
class TiledIntegration:
    """A mesh that is solved and refined in pieces.

    Attributes
    ----------
    mesh : WholeMesh
    windows : Windows
    grid : TileGrid
    run : Run
    noise : (C,)
        Noise of the normals of each component of the mesh, in degrees.
    error
        Estimated error of the unknowns of the last solve, in px.
    rounds
        Numbers of flips and moves in each round of refinement.
    """

    mesh: WholeMesh
    windows: Windows
    grid: TileGrid
    run: Run
    noise: Float
    error: float = 0.0
    solves: int = 0
    rounds: tuple[tuple[int, int], ...] = ()

    def integrate(self, refine: int, tidies: bool = True) -> None:
        """Solve, and refine in at most so many rounds, with a solve after every second one; then remove bad faces."""
        self.solve()
        for first in range(0, refine, ROUNDS_PER_SOLVE):
            turns = range(first, min(first + ROUNDS_PER_SOLVE, refine))
            self.refine(turns)
            self.solve()
            if sum(self.rounds[-1]) < MIN_CHANGE * len(self.mesh.vertices):
                break
        if refine and tidies:
            self.refine(range(0), tidies=True)

    def solve(self) -> None:
        """Solve for the unknown of the mesh as it is."""
        number, self.solves = self.solves, self.solves + 1
        faces = TileFaces.of(self.mesh.screen(), self.grid)
        tiles = [tile for tile in range(len(faces.starts) - 1) if len(faces.own(tile))]

        def part(tile: int) -> TileMesh:
            numbers = faces.with_rings(tile)
            vertices, local = np.unique(self.mesh.faces[numbers], return_inverse=True)
            places = local.reshape(-1, 3).astype(np.int32)
            return TileMesh(self.mesh.vertices[vertices], places, numbers, faces.tile[numbers])

        stage = f"solve-{number}"
        equations = self.run(
            f"{stage}-means", tile_equations, LazyArguments(tiles, lambda tile: (self.windows, part(tile)))
        )
        offsets = self._offsets(faces, tiles, equations, stage)
        heights = self.run(
            f"{stage}-heights",
            tile_heights,
            LazyArguments(
                tiles,
                lambda tile: (self.windows, part(tile), equations[tile], offsets[faces.with_rings(tile)]),
            ),
        )
        self.mesh.unknown = np.empty(len(self.mesh.vertices))
        for tile in tiles:
            vertices = np.unique(self.mesh.faces[faces.with_rings(tile)])
            own = faces.owner[vertices] == tile
            self.mesh.unknown[vertices[own]] = heights[tile]["unknown"][own]

    def _offsets(self, faces: TileFaces, tiles: list[int], equations: Mapping[int, Arrays], stage: str) -> Float:
        """Solve for the offsets (M,) of all faces."""
        centroids = np.empty((len(self.mesh.faces), 2))
        for tile in tiles:
            centroids[faces.own(tile)] = equations[tile]["centroids"]
        pairs, weights, steps = (
            np.concatenate([equations[tile][name] for tile in tiles]) for name in ("pairs", "weights", "steps")
        )
        nothing = np.zeros(len(centroids))
        partition = Partition(Elements.of_edges(pairs, weights, steps, nothing, nothing), faces.tile, centroids)

        def run(name, function, arguments):
            return self.run(f"{stage}-{name}", function, arguments)

        scale = self.windows.camera.pixel_length
        solution = TiledSystem(partition, MergeTree.of(*self.grid.counts), run).solve(max_error=MAX_ERROR * scale)
        self.error = solution.error / scale
        return solution.x

    def refine(self, turns: range, tidies: bool = False) -> None:
        """Refine all vertices once, tile by tile, then along seams, then at their crossings."""
        name = "tidy" if tidies else f"refine-{turns.start}"
        self.mesh.waiting = ~self.mesh.fixed
        changes = np.zeros((len(turns), 2), np.int64)
        for stage in ("tiles", "strips", "crossings", "crossings-2"):
            mesh = self.mesh
            zone = self._zones(stage)
            pieces = dict(mesh.pieces(zone))
            found = self.run(
                f"{name}-{stage}",
                refine_piece,
                {
                    key: (self.windows, piece, turns, self.noise[mesh.component[piece.numbers]], tidies)
                    for key, piece in pieces.items()
                },
            )
            mesh.replace([(pieces[key], found[key]) for key in pieces])
            changes += sum((found[key]["changes"] for key in pieces), np.zeros_like(changes))
        self.rounds += tuple((int(flips), int(moves)) for flips, moves in changes)

    def _zones(self, stage: str) -> Int:
        """Return the zone (N,) of each vertex that is free in a stage, −1 for others."""
        mesh, grid = self.mesh, self.grid
        zone = np.full(len(mesh.vertices), -1)
        waiting = np.flatnonzero(mesh.waiting)
        points = mesh.vertices[waiting]
        if stage == "tiles":
            zone[waiting] = np.where(grid.in_collar(points), -1, grid.tile_of(points))
        elif stage == "strips":
            zone[waiting] = grid.strip_of(points)
        else:
            zone[waiting] = grid.crossing_of(points)
            if stage == "crossings":
                zone[(zone >= 0) & ~grid.is_even(zone)] = -1
        return zone
