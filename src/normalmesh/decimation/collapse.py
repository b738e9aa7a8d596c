"""Edge collapse: the cheapest edges first, down to a number of vertices or up to a cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Bool, Float, Int, Int32
from normalmesh.decimation import _collapse
from normalmesh.decimation._collapse import QueueArrays, Sweep, Tiles
from normalmesh.decimation._edge_collapse import CostArrays
from normalmesh.decimation.polylines import FreeLines, Segments
from normalmesh.decimation.quadrics import OUTLINE_WEIGHT, FaceRecords, Pixels, vertex_quadrics
from normalmesh.decimation.start_quadrics import start_quadrics
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.runtime.threads import in_parallel

#: Mean number of vertices in a tile: their data and their queue fit into a core's cache.
TILE = 4096
#: Largest share of the vertices with an edge below the level of cost of the next sweep.
MAX_SHARE = 0.75
#: Vertices that are sorted into tiles together.
CHUNK = 16384
#: Tiles between two progress reports.
TILES_AT_ONCE = 256
#: Largest number of vertices whose costs determine the next level of cost.
MAX_SAMPLE = 20_000
#: Largest stamp of a change, in 32 bits.
MAX_STAMP = 2**31 - 1
#: Smallest share of the vertices that a sweep must collapse; otherwise one queue takes over: most edges are refused.
MIN_PROGRESS = 0.02
#: Multiple of the target at which one queue takes over, so that the last collapses are in the order of cost.
MARGIN = 1.05
#: Ratio of the level of cost up to which edges collapse before lines are dropped to the cost of the next such line.
LINE_STEP = 1.5
#: Weight of lines of jumps, as :data:`OUTLINE_WEIGHT`: pixels on the wrong side are off by the height of the jump, some
#: pixels, and not by one.
LINE_WEIGHT = 8.0
#: Multiple of the target that is close enough if the target need not be met exactly.
CLOSE = 1.1


@dataclass(frozen=True)
class Collapsed:
    """Vertices saved by collapses, the largest cost (px⁴) among them, and lines of jumps as they are now, or None."""

    collapses: int
    largest_cost: float
    segments: Segments | None = None


def collapse(
    mesh: ClosedMesh,
    pixels: Pixels,
    records: FaceRecords | None = None,
    *,
    segments: Segments | None = None,
    target: int = 0,
    limit: float = np.inf,
    exact: bool = True,
    in_plane: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Collapsed:
    """Collapse edges that cost less than ``limit`` (px⁴), cheapest first, until ``target`` vertices are left.

    Vertices carry the sum of the quadrics that they replace. Collapsing ends early if no edge may collapse without
    turning a face over, closing a hole, pinching the mesh, or laying two faces over one pixel. The mesh is compact
    afterwards.

    Large meshes are divided into tiles, which fit into the cache. All tiles are collapsed to one level of cost, then to
    the next higher one; the last collapses are done in the order of cost over the whole mesh.

    Parameters
    ----------
    mesh
        The mesh; it is changed in place.
    pixels
        The pixels that the quadrics sum over.
    records
        Up to date, or None for a start mesh. If that mesh leaves out pixel corners, its costs are those after collapses
        from the pixel grid.
    segments
        Segments of lines of jumps, whose vertices then collapse along them; the target counts them twice, as cuts will.
    exact
        Whether to meet the target exactly. If not, up to a tenth more vertices may be left, and all collapses are
        done in tiles, in parallel.
    in_plane
        Whether new vertices may leave the edge for the best point of the plane; the paper keeps them on the edge.
    progress
        Called periodically with the number of vertices left.
    """
    collapser = Collapser.of(mesh, pixels, records, in_plane, progress, segments)
    count = collapser.alive
    if collapser.alive > max(MARGIN * target, TILE):
        collapser.collapse_in_tiles(target, limit)
    if exact or collapser.alive > CLOSE * target:
        collapser.collapse_in_order(target, limit)
    segments = collapser.lines.segments(mesh)
    mesh.compact()
    return Collapsed(count - collapser.alive, collapser.largest, segments)


def counting_collapser(
    mesh: ClosedMesh,
    pixels: Pixels,
    records: FaceRecords | None,
    in_plane: bool = False,
    segments: Segments | None = None,
) -> Callable[[float, tuple[float, float, float, float]], int]:
    """Return a function that counts the vertices that :func:`collapse` would leave for a limit of cost (px⁴).

    Its second argument are left, top, right and bottom of the part of the screen in which vertices count. From call to
    call, limits must not fall. The mesh is not changed.
    """
    mesh = mesh.copy()
    collapser = Collapser.of(mesh, pixels, records, in_plane, segments=segments)

    def count(limit: float, inside: tuple[float, float, float, float]) -> int:
        if collapser.alive > TILE:
            collapser.collapse_in_tiles(0, limit)
        collapser.collapse_in_order(0, limit)
        left, top, right, bottom = inside
        u, v = mesh.vertices.T
        there = (mesh.corner_of[:-1] >= 0) & (u >= left) & (u <= right) & (v >= top) & (v <= bottom)
        return int(np.count_nonzero(there)) + collapser.lines.copies(mesh, there)

    return count


def tiles_of(mesh: ClosedMesh, corner: tuple[float, float], side: float, wide: int, high: int) -> Tiles:
    """Return ``wide`` × ``high`` tiles with all vertices of a mesh, from the corner (left, top) on."""
    count = len(mesh.vertices)
    members, tile_of = np.empty(count, np.int32), np.empty(count, np.int32)
    tiles = Tiles(0, np.zeros(wide * high + 1, np.int64), members, tile_of, *corner, side, wide)
    counts = np.zeros((-(-count // CHUNK), wide * high), np.int64)
    in_parallel(_collapse.find_tiles, len(counts), CHUNK, mesh.arrays, tiles, high, counts, grain=1)
    np.cumsum(counts.sum(axis=0), out=tiles.starts[1:])
    places = tiles.starts[:-1] + np.cumsum(counts, axis=0) - counts
    in_parallel(_collapse.fill_members, len(counts), CHUNK, tiles, places, grain=1)
    return tiles


class Collapser:
    """Collapses the edges of a mesh.

    Attributes
    ----------
    quadrics : (N, 6) float64
        Screen quadrics of the vertices.
    stamp : (N,) int32
        The time of the last change of each vertex.
    clock : int
        The last stamp used.
    bounds : (N,) float64
        Lower bounds of the costs of the edges that each vertex owns.
    alive : int
        Number of vertices left, those of lines counted as cuts multiply them.
    largest : float
        Largest cost so far, px⁴.
    """

    def __init__(
        self,
        mesh: ClosedMesh,
        mask: Bool,
        quadrics: Float,
        in_plane: bool,
        progress: Callable[[int], None] | None = None,
        segments: Segments | None = None,
    ) -> None:
        self.mesh, self.quadrics = mesh, quadrics
        self.mask, self.in_plane = mask, in_plane
        self.progress = progress
        self.lines = FreeLines.of(mesh, segments)
        self.lines.add_quadrics(mesh, LINE_WEIGHT, quadrics)
        self.clock = len(mesh.vertices)
        self.alive = self.clock + self.lines.copies(mesh)
        self.stamp = np.arange(self.clock, dtype=np.int32)
        self.bounds = np.empty(self.clock)
        self.largest = 0.0
        # One column at a time: reductions along a short axis are slow.
        spans = [(column.min(), column.max()) for column in mesh.vertices.T]
        self.origin = np.floor([low for low, _ in spans])
        self.extent = np.array([high - low for low, high in spans])

    @classmethod
    def of(
        cls,
        mesh: ClosedMesh,
        pixels: Pixels,
        records: FaceRecords | None,
        in_plane: bool,
        progress: Callable[[int], None] | None = None,
        segments: Segments | None = None,
    ) -> Collapser:
        """Return a collapser with quadrics from the pixels; the arguments are those of :func:`collapse`."""
        # There are two faces for each pixel on the pixel grid.
        if records is None and mesh.real_faces < 2 * pixels.normal_map.foreground:
            quadrics = start_quadrics(mesh, pixels, OUTLINE_WEIGHT)
        else:
            quadrics = vertex_quadrics(mesh, pixels, records, OUTLINE_WEIGHT)
        return cls(mesh, pixels.normal_map.mask, quadrics, in_plane, progress, segments)

    @property
    def _costs(self) -> CostArrays:
        """The data from which costs are computed, as kernels take it."""
        return CostArrays(self.quadrics, self.mask, self.in_plane, self.lines.beside)

    def collapse_in_tiles(self, target: int, limit: float) -> None:
        """Collapse tile by tile, to levels of cost that rise up to the limit, until the target is near."""
        self._renew_bounds()
        level, shift = 0.0, 0.0
        enough = True
        while enough and self.alive > max(MARGIN * target, TILE):
            before = self.alive
            sample = slice(None, None, -(-len(self.bounds) // MAX_SAMPLE))
            bounds = self.bounds[sample][self.mesh.corner_of[:-1][sample] >= 0]
            share = min(MAX_SHARE, 1 - MARGIN * target / before)
            level = min(max(float(np.quantile(bounds, share, method="lower")), level), limit)
            self._sweep(level, target / before, shift)
            self._drop_lines(target, level)
            enough = level < limit and before - self.alive >= MIN_PROGRESS * before
            shift = 0.5 - shift
            if 2 * self.alive < len(self.stamp):
                self._compact()

    def _sweep(self, level: float, kept: float, shift: float) -> None:
        """Collapse all tiles to one level of cost; ``shift`` moves the tiles by a share of their side."""
        side = math.ceil(math.sqrt(self.extent.prod() * TILE / self.alive))
        left, top = origin = self.origin - int(shift * side)
        wide, high = (int(tiles) + 1 for tiles in (self.origin + self.extent - origin) // side)
        tiles = tiles_of(self.mesh, (float(left), float(top)), float(side), wide, high)
        starts, mark = tiles.starts, np.zeros(len(tiles.tile_of), np.int32)
        if self.clock + self.alive > MAX_STAMP:
            self._renumber_stamps()
        for first in range(0, wide * high, TILES_AT_ONCE):
            part = starts[first : min(first + TILES_AT_ONCE, wide * high) + 1]
            most = ((1.0 - kept) * np.diff(part)).astype(np.int64)
            self._collapse(tiles._replace(first=first, starts=part), most, mark, level)
        self.clock += int(starts[wide * high])

    def _collapse(self, tiles: Tiles, most: Int, mark: Int32, limit: float) -> int:
        """Save ``most`` (T,) vertices in each tile, at most; return how many were saved."""
        sweep = Sweep(limit, most, self.clock, np.zeros(len(most), np.int64), np.zeros(len(most)))
        queue = QueueArrays(self.stamp, self.bounds, mark)
        mesh, outline = self.mesh.arrays, self.mesh.outline
        in_parallel(_collapse.collapse_tiles, len(most), mesh, outline, self._costs, queue, tiles, sweep, grain=1)
        saved = int(sweep.saved.sum())
        self._count(saved, float(sweep.costs.max()))
        return saved

    def _renew_bounds(self) -> None:
        """Compute the bounds of all vertices."""
        arrays = (self.mesh.arrays, self._costs, self.stamp)
        in_parallel(_collapse.lower_bounds, len(self.bounds), *arrays, self.bounds)

    def collapse_in_order(self, target: int, limit: float) -> None:
        """Collapse in the order of cost over the whole mesh, and drop lines that cost less to bridge, in that order."""
        level = 0.0
        while True:
            level = min(LINE_STEP * self.lines.next_cost(self.mesh, level), limit)
            before = self.alive + 1
            # Collapses may have made edges possible that were refused before: try all of them again.
            while target < self.alive < before:
                before = self.alive
                self._renew_bounds()
                self._queue(target, level)
            if self.alive <= target or (not self._drop_lines(target, level) and level >= limit):
                return

    def _drop_lines(self, target: int, level: float) -> bool:
        """Drop lines that cost less than a level to bridge, until the target is met; return whether there were any."""
        dropped = self.lines.drop(self.mesh, level, self.alive - target)
        if dropped:
            self.alive = int(np.count_nonzero(self.mesh.corner_of[:-1] >= 0)) + self.lines.copies(self.mesh)
            self._renew_bounds()
        return dropped

    def _queue(self, target: int, limit: float) -> None:
        """Collapse edges that cost less than the limit in one queue, with the current bounds."""
        members = np.flatnonzero(self.bounds < limit).astype(np.int32)
        mark = np.zeros(len(self.stamp), np.int32)
        tiles = Tiles(-1, np.array([0, len(members)]), members, mark, 0.0, 0.0, 0.0, 1)
        self.clock += self._collapse(tiles, np.array([self.alive - target]), mark, limit)

    def _count(self, saved: int, largest: float) -> None:
        """Count vertices saved by collapses with this largest cost, and report progress."""
        self.alive -= saved
        self.largest = max(self.largest, largest)
        if self.progress is not None:
            self.progress(self.alive)

    def _compact(self) -> None:
        """Drop collapsed vertices and faces: the others then fit into the cache better."""
        kept = self.mesh.compact()
        self.lines = self.lines.renumbered(kept)
        self.quadrics, self.bounds, self.stamp = self.quadrics[kept], self.bounds[kept], self.stamp[kept]
        self._renumber_stamps()

    def _renumber_stamps(self) -> None:
        """Number the stamps from 0 on: only their order counts, and they must stay within 32 bits."""
        order = np.argsort(self.stamp, kind="stable")
        self.stamp[order] = np.arange(len(order), dtype=np.int32)
        self.clock = len(order)
