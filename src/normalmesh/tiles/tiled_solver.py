"""TiledSolver: prepares systems of equations over a grid of square tiles on the screen, to be solved by elimination."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from normalmesh.runtime.workspace import Workspace
from normalmesh.solvers.gauge import Gauge
from normalmesh.tiles.elimination import Run, TiledSystem, run_here
from normalmesh.tiles.merge_tree import MergeTree
from normalmesh.tiles.tile_elements import Elements, Partition

Float = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TiledSolver:
    """A grid of square tiles, and the engine that works on them, to solve systems over points in the plane.

    Attributes
    ----------
    origin
        u, v of the corner of the first tile, in px.
    side
        Side of a tile, in px.
    rows, columns
        Numbers of tiles.
    run
        Engine. Its stages are named after the system, by its number, and the stage.
    """

    origin: tuple[float, float]
    side: float
    rows: int
    columns: int
    run: Run = run_here
    _numbers: Any = field(default_factory=count)

    def tiles(self, points: Float) -> NDArray[np.int32]:
        """Return the tile (K,) that each point (K, 2) lies in, or the nearest."""
        u, v = np.floor((points - self.origin) / self.side).T
        column, row = np.clip(u, 0, self.columns - 1), np.clip(v, 0, self.rows - 1)
        tiles: NDArray[np.int32] = (row * self.columns + column).astype(np.int32)
        return tiles

    def system(self, elements: Elements, coordinates: Float, gauge: Gauge | None = None) -> TiledSystem:
        """Return the system of elements over faces at these positions (M, 2)."""
        partition = Partition(elements, self.tiles(coordinates), coordinates, gauge)
        run = partial(_named, self.run, next(self._numbers))
        return TiledSystem(partition, MergeTree.of(self.rows, self.columns), run)

    def prepare(
        self,
        matrix: csr_matrix,
        *,
        coordinates: Float,
        gauge: Gauge | None = None,
        workspace: Workspace | None = None,
        single: bool = False,
    ) -> TiledSystem:
        """Return the system of a matrix, to be used instead of a ``PreparedSystem``."""
        gauge = gauge or Gauge.of(matrix)
        return self.system(Elements.of_matrix(matrix, gauge), coordinates, gauge)


def _named(run: Run, number: int, stage: str, *rest: Any) -> Any:
    """Run a stage of the system with this number."""
    return run(f"solve-{number}-{stage}", *rest)
