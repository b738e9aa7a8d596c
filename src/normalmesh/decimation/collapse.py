"""Edge collapse: the cheapest edges first, until few enough vertices are left or all others cost too much."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.decimation import _collapse
from normalmesh.decimation._collapse import QueueArrays, Sweep, Tiles
from normalmesh.decimation._edge_collapse import CostArrays
from normalmesh.decimation.quadrics import GRAIN, OUTLINE_WEIGHT, FaceRecords, Pixels, vertex_quadrics
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.runtime.threads import in_parallel

Array = NDArray[Any]

#: Vertices in a tile: their data and their queue fit into a core's cache.
TILE = 4096
#: Share of the vertices, at most, that have an edge below the level of cost to which all tiles are brought next.
MOST_AT_ONCE = 0.75
#: Tiles that are worked on before progress is told.
TILES_AT_ONCE = 256
#: Vertices, at most, whose costs say what the next level of cost is.
SAMPLE = 20_000
#: Largest stamp of a change.
LAST_STAMP = 2**31 - 1
#: The one queue also takes over once a level collapses less than this share of the vertices: most others are refused.
LEAST_PROGRESS = 0.02
#: One queue for all vertices takes over this many times above the target, so that the last collapses are in order.
MARGIN = 1.05
#: So many times the target are close enough where it need not be met.
CLOSE = 1.1


@dataclass(frozen=True)
class Collapsed:
    """How many edges were collapsed, and the largest cost (px⁴) among them."""

    collapses: int
    largest_cost: float


def collapse(
    mesh: ClosedMesh,
    pixels: Pixels,
    records: FaceRecords | None = None,
    *,
    target: int = 0,
    limit: float = np.inf,
    exact: bool = True,
    in_plane: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Collapsed:
    """Collapse edges that cost less than ``limit`` (px⁴), cheapest first, until ``target`` vertices are left.

    Vertices carry the sum of the quadrics that they replace. Stops early where no edge may collapse without turning a
    face over, closing a hole, pinching the mesh, or laying two faces over one pixel. The mesh is compact afterwards.

    Large meshes are worked on tile by tile, which spares the cache, to cost levels that all tiles share and that rise
    by and by; the last part is done in the order of cost over the whole mesh.

    Parameters
    ----------
    records
        Up to date, or None for a start mesh.
    exact
        False: some more vertices than the target may be left, as more collapses follow later. They are all done in
        tiles then, which threads share.
    in_plane
        Whether new vertices may leave the edge for the best point of the plane; the paper keeps them on the edge.
    progress
        Told the number of vertices left, every now and then.
    """
    work = Collapser(mesh, pixels, vertex_quadrics(mesh, pixels, records, OUTLINE_WEIGHT), in_plane, progress)
    count = work.alive
    if work.alive > max(MARGIN * target, TILE):
        work.in_tiles(target, limit)
    if exact or work.alive > CLOSE * target:
        work.in_order(target, limit)
    mesh.compact()
    return Collapsed(count - work.alive, work.largest)


class Collapser:
    """A mesh whose edges are being collapsed.

    Attributes
    ----------
    quadrics : (N, 6)
        Of the vertices.
    stamp : (N,) int32
        When each vertex changed last.
    bounds : (N,)
        Lower bounds of the costs of the edges that each vertex owns.
    alive
        Vertices that are left.
    largest
        Largest cost so far, px⁴.
    """

    def __init__(
        self,
        mesh: ClosedMesh,
        pixels: Pixels,
        quadrics: NDArray[np.float64],
        in_plane: bool,
        progress: Callable[[int], None] | None,
    ) -> None:
        self.mesh, self.quadrics = mesh, quadrics
        self.mask, self.in_plane = pixels.normal_map.mask, in_plane
        self.progress = progress
        self.alive = len(mesh.vertices)
        self.clock = self.alive
        self.stamp = np.arange(self.alive, dtype=np.int32)
        self.bounds = np.empty(self.alive)
        self.largest = 0.0
        # Columns on their own: reductions along a short axis are slow.
        spans = [(column.min(), column.max()) for column in mesh.vertices.T]
        self.origin = np.floor([low for low, _ in spans])
        self.extent = np.array([high - low for low, high in spans])

    @property
    def _costs(self) -> CostArrays:
        return CostArrays(self.quadrics, self.mask, self.in_plane)

    def in_tiles(self, target: int, limit: float) -> None:
        """Collapse tile by tile, to levels of cost that rise up to the limit, while far more vertices are left."""
        self._renew_bounds()
        level, shift = 0.0, 0.0
        enough = True
        while enough and self.alive > max(MARGIN * target, TILE):
            before = self.alive
            sample = slice(None, None, -(-len(self.bounds) // SAMPLE))
            bounds = self.bounds[sample][self.mesh.corner_of[:-1][sample] >= 0]
            share = min(MOST_AT_ONCE, 1 - MARGIN * target / before)
            level = min(max(float(np.quantile(bounds, share, method="lower")), level), limit)
            self._sweep(level, target / before, shift)
            enough = level < limit and before - self.alive >= LEAST_PROGRESS * before
            shift = 0.5 - shift
            if 2 * self.alive < len(self.stamp):
                self._compact()

    def _sweep(self, level: float, kept: float, shift: float) -> None:
        """Collapse all tiles to one level of cost; ``shift`` moves the tiles by a share of their side."""
        count = len(self.mesh.vertices)
        side = math.ceil(math.sqrt(self.extent.prod() * TILE / self.alive))
        left, top = origin = self.origin - int(shift * side)
        wide, high = (int(tiles) + 1 for tiles in (self.origin + self.extent - origin) // side)
        starts, members, tile_of = (
            np.zeros(wide * high + 2, np.int64),
            np.empty(count, np.int32),
            np.empty(count, np.int32),
        )
        tiles = Tiles(0, starts, members, tile_of, float(left), float(top), float(side), wide)
        _collapse.fill_tiles(self.mesh.arrays, tiles, high)
        mark = np.zeros(count, np.int32)
        if self.clock + self.alive > LAST_STAMP:
            self._renumber_stamps()
        for first in range(0, wide * high, TILES_AT_ONCE):
            part = starts[first : min(first + TILES_AT_ONCE, wide * high) + 1]
            most = ((1.0 - kept) * np.diff(part)).astype(np.int64)
            self._collapse(tiles._replace(first=first, starts=part), most, mark, level)
        self.clock += int(starts[wide * high])

    def _collapse(self, tiles: Tiles, most: NDArray[np.int64], mark: NDArray[np.int32], limit: float) -> int:
        """Collapse at most ``most`` (T,) edges in each tile; return the number of collapses."""
        sweep = Sweep(limit, most, self.clock, np.zeros(len(most), np.int64), np.zeros(len(most)))
        queue = QueueArrays(self.stamp, self.bounds, mark)
        mesh, outline = self.mesh.arrays, self.mesh.outline_arrays
        in_parallel(_collapse.collapse_tiles, len(most), mesh, outline, self._costs, queue, tiles, sweep, grain=1)
        collapses = int(sweep.collapses.sum())
        self._count(collapses, float(sweep.costs.max()))
        return collapses

    def _renew_bounds(self) -> None:
        arrays = (self.mesh.arrays, self._costs, self.stamp)
        in_parallel(_collapse.lower_bounds, len(self.bounds), *arrays, self.bounds, grain=GRAIN)

    def in_order(self, target: int, limit: float) -> None:
        """Collapse in the order of cost over the whole mesh."""
        before = self.alive + 1
        # Collapses may have made room for edges that were refused before: look at all of them again.
        while target < self.alive < before:
            before = self.alive
            self._renew_bounds()
            self._queue(target, limit)

    def _queue(self, target: int, limit: float) -> None:
        """Collapse what costs less than the limit, by the bounds as they are, in one queue."""
        members = np.flatnonzero(self.bounds < limit).astype(np.int32)
        mark = np.zeros(len(self.stamp), np.int32)
        tiles = Tiles(-1, np.array([0, len(members)]), members, mark, 0.0, 0.0, 0.0, 1)
        self.clock += self._collapse(tiles, np.array([self.alive - target]), mark, limit)

    def _count(self, collapses: int, largest: float) -> None:
        self.alive -= collapses
        self.largest = max(self.largest, largest)
        if self.progress is not None:
            self.progress(self.alive)

    def _compact(self) -> None:
        """Drop what has collapsed: the rest fits the cache better."""
        kept = self.mesh.compact()
        self.quadrics, self.bounds, self.stamp = self.quadrics[kept], self.bounds[kept], self.stamp[kept]
        self._renumber_stamps()

    def _renumber_stamps(self) -> None:
        """Only their order counts; they are to stay within 32 bits."""
        order = np.argsort(self.stamp, kind="stable")
        self.stamp[order] = np.arange(len(order), dtype=np.int32)
        self.clock = len(order)
