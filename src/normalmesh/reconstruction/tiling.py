"""Tiling: how to work in tiles, and the folder and the processes that this takes."""

from __future__ import annotations

import logging
import math
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from normalmesh.arguments import checked_bool, checked_int, checked_path
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.engine.description import code_description, described_parts
from normalmesh.engine.engine import Engine
from normalmesh.engine.work_folder import WorkFolder, holds_results, remove_work
from normalmesh.engine.workers import started_workers
from normalmesh.errors import NormalMeshError, path_text
from normalmesh.maps.maps_on_disk import MapOnDisk
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.normal_map_like import NormalMapLike, as_normal_map
from normalmesh.pieces.tiled_prior import TERM_BYTES
from normalmesh.reconstruction.driver import GivenJumps
from normalmesh.reconstruction.prelude import TILE
from normalmesh.reconstruction.presets import Preset
from normalmesh.runtime.memory import bytes_text
from normalmesh.runtime.memory_budget import memory_left, require_memory
from normalmesh.runtime.monitor import Monitor

if TYPE_CHECKING:
    from distributed import Client

logger = logging.getLogger(__name__)

#: What the side of a tile in pixels must be a multiple of, and the smallest one.
STEP, SMALLEST = 128, 256
#: Largest number of worker processes on one machine.
MAX_WORKERS = 4096

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
    """What a tiled reconstruction takes."""

    shape: tuple[int, int]
    foreground: int  # number of its pixels
    vertices: int  # expected
    side: int  # of a tile in px
    is_copied: bool = False  # whether a map in memory is copied to disk for other processes
    has_depths: bool = False  # whether a depth map is given as prior

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

        What is in the work folder counts as free. ``workers`` is None if as many are chosen as fit; tiles are worked on
        ``elsewhere`` by a cluster, with memory of its own.
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


@dataclass(frozen=True)
class Tiling:
    """How to work in tiles: their side in px, and options that :func:`normalmesh.reconstruct_tiled` describes."""

    side: int = TILE
    client: Client | str | None = None
    workers: int | None = None
    work: str | PathLike[str] | None = None
    keep_work: bool = False

    def __post_init__(self) -> None:
        checked_tile(self.side)
        if self.workers is not None:
            if self.client is not None:
                raise NormalMeshError("give only one of workers and client: a cluster has its own workers")
            checked_int(self.workers, 0, "workers", MAX_WORKERS)
        checked_bool(self.keep_work, "keep_work")

    def holds(self, shape: tuple[int, int]) -> bool:
        """Return whether an image of this shape is one tile."""
        return max(shape) <= self.side

    @contextmanager
    def started(
        self,
        normal_map: NormalMap | MapOnDisk,
        rules: Sequence[StoppingRule],
        options: Preset,
        jumps: GivenJumps,
        monitor: Monitor,
        threads: int | None,
    ) -> Iterator[Engine]:
        """Start what runs the stages of a reconstruction, which has a work folder, and processes for several tiles."""
        is_whole = self.holds(normal_map.shape)
        count = 0 if is_whole else self.workers
        foreground, prior = normal_map.foreground, options.integration.prior
        copied = isinstance(normal_map, NormalMap) and count != 0
        # It has been checked: an array of that shape is a depth map.
        has_depths = prior is not None and np.shape(prior) == normal_map.shape
        expected = max(rule.expected_vertices(foreground) for rule in rules)
        estimate = TiledEstimate(normal_map.shape, foreground, expected, self.side, copied, has_depths)
        client = None if is_whole else self.client
        with _work_path(self.work, self.keep_work) as path:
            estimate.check(path, count, elsewhere=client is not None)
            monitor.begin("start")
            logger.info("reconstruction of %d foreground pixels in tiles of %d px begins", foreground, self.side)
            fitting, memory = estimate.fitting_workers(), estimate.worker_memory
            with (
                WorkFolder(path, _description(normal_map, rules, options, jumps, self.side)) as folder,
                started_workers(count, client, threads, fitting, memory) as processes,
            ):
                yield Engine(folder, processes, monitor, threads)


def opened_map(given: NormalMapLike) -> NormalMap | MapOnDisk:
    """Return a normal map, which stays on disk if it is given by its path."""
    if isinstance(given, str | PathLike):
        return NormalMap.open(checked_path(given, "normal_map"))
    return given if isinstance(given, MapOnDisk) else as_normal_map(given)


def checked_tile(side: object, name: str = "tiles") -> int:
    """Return the side of a tile in pixels."""
    number = checked_int(side, SMALLEST, name, 1 << 20)
    if number % STEP:
        raise NormalMeshError(f"{name} must be a multiple of {STEP}, such as {TILE}, not {number}")
    return number


def _description(
    normal_map: NormalMap | MapOnDisk, rules: Sequence[StoppingRule], options: Preset, jumps: object, side: int
) -> dict[str, object]:
    """Describe everything that the surface depends on."""
    parts = {
        "map": normal_map,
        "rules": list(rules),
        "tiles": side,
        "decimation": options.decimation,
        "integration": options.integration,
        "jumps": jumps,
    }
    return {"normalmesh": code_description()} | described_parts(parts)


@contextmanager
def _work_path(given: object, keep: bool) -> Iterator[Path]:
    """Yield the path of the work folder. It is removed at the end, unless it is to be kept or work has failed."""
    if isinstance(given, str) and not given:
        raise NormalMeshError("work must be the path of a folder, not empty")
    path = Path(tempfile.mkdtemp(prefix="normalmesh-")) if given is None else checked_path(given, "work")
    if not path.parent.is_dir():
        raise NormalMeshError(
            f"work is {path_text(path)}, but there is no folder {path_text(path.parent)}: make it first"
        )
    try:
        yield path
    except BaseException as error:
        if holds_results(path):
            error.add_note(f"work is kept in {path_text(path)}: the same call with this folder goes on from there")
        elif given is None:
            shutil.rmtree(path, ignore_errors=True)
        raise
    if not keep:
        remove_work(path)
