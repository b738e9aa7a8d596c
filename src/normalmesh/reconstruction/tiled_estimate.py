"""Estimates of the disk, the memory and the time that a tiled reconstruction takes, and refusal if they do not fit."""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass
from pathlib import Path

from normalmesh.errors import NormalMeshError, path_text
from normalmesh.pieces.tiled_prior import TERM_BYTES
from normalmesh.runtime.memory import bytes_text
from normalmesh.runtime.memory_budget import memory_left, require_memory

#: Bytes of a worker: independent of the tile, and per pixel of it.
WORKER_BYTES, TILE_BYTES = 300 << 20, 60
#: Width (px) of what a worker reads around its tile.
HALO = 128
#: Bytes of the process that leads: independent of the size, and per vertex.
LEADER_BYTES, VERTEX_BYTES = 300 << 20, 400
#: Bytes on disk per vertex and per pixel; and per pixel of a map in memory, which workers read from there.
DISK_BYTES, PIXEL_BYTES, SHARED_BYTES = 1000, 4, 13
#: CPU seconds of workers per pixel, and of the process that leads per vertex.
PIXEL_SECONDS, VERTEX_SECONDS = 2.4e-6, 3.0e-5

REMEDY = "use fewer workers (--workers) or smaller tiles (--tile-size), or ask for fewer vertices"


@dataclass(frozen=True)
class TiledEstimate:
    """What a tiled reconstruction takes.

    Attributes
    ----------
    shape
        Rows and columns of the map.
    foreground
        Number of pixels of its foreground.
    vertices
        Expected number of vertices.
    side
        Side of a tile in pixels.
    is_copied
        Whether a map in memory is copied to disk for other processes.
    has_depths
        Whether a depth map is given as prior.
    """

    shape: tuple[int, int]
    foreground: int
    vertices: int
    side: int
    is_copied: bool = False
    has_depths: bool = False

    @property
    def tiles(self) -> int:
        """Number of tiles."""
        rows, columns = self.shape
        return math.ceil(rows / self.side) * math.ceil(columns / self.side)

    @property
    def leader_memory(self) -> int:
        """Bytes of the process that leads."""
        # There are at most two faces for each vertex.
        return LEADER_BYTES + (VERTEX_BYTES + 2 * TERM_BYTES * self.has_depths) * self.vertices

    @property
    def worker_memory(self) -> int:
        """Bytes of a process that works on a tile."""
        rows, columns = (min(self.side + 2 * HALO, length) for length in self.shape)
        return WORKER_BYTES + TILE_BYTES * rows * columns

    def memory(self, workers: int) -> int:
        """Return the bytes of all processes, or of one that does everything if there are no workers."""
        return self.leader_memory + max(workers, 1) * self.worker_memory

    @property
    def disk(self) -> int:
        """Bytes of the work folder."""
        rows, columns = self.shape
        return DISK_BYTES * self.vertices + (PIXEL_BYTES + SHARED_BYTES * self.is_copied) * rows * columns

    def seconds(self, cores: int) -> float:
        """Return the seconds on so many cores."""
        return PIXEL_SECONDS * self.foreground / min(cores, self.tiles) + VERTEX_SECONDS * self.vertices

    def fitting_workers(self) -> int:
        """Return the number of workers that there is memory and work for, at least one."""
        left = memory_left()
        fitting = self.tiles if left is None else (left - self.leader_memory) / self.worker_memory
        return int(max(min(fitting, self.tiles), 1))

    def check(self, folder: Path, workers: int | None, elsewhere: bool) -> None:
        """Raise an error if the disk of a folder or the memory do not suffice.

        Parameters
        ----------
        folder
            The work folder; what is in it counts as free.
        workers
            Number of processes, None if it is chosen such that they fit.
        elsewhere
            Whether tiles are worked on by a cluster, with memory of its own.
        """
        needed = self.leader_memory if elsewhere else self.memory(workers or 1)
        require_memory(needed, "the tiled reconstruction", REMEDY)
        there = folder if folder.is_dir() else folder.parent
        used = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else 0
        free = shutil.disk_usage(there).free + used
        if self.disk > free:
            raise NormalMeshError(
                f"the tiled reconstruction needs about {bytes_text(self.disk)} on the disk of {path_text(folder)}, "
                f"which has {bytes_text(free)} left; give a folder on another disk (--work), or ask for fewer vertices"
            )
