"""Tiling: how to work in tiles, and the folder and the processes that this takes."""

from __future__ import annotations

import logging
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
from normalmesh.engine.description import code_description, description_of
from normalmesh.engine.engine import Engine
from normalmesh.engine.work_folder import WorkFolder, holds_results, remove_work
from normalmesh.engine.workers import started_workers
from normalmesh.errors import NormalMeshError, path_text
from normalmesh.maps.maps_on_disk import MapOnDisk
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.normal_map_like import NormalMapLike, as_normal_map
from normalmesh.reconstruction.driver import GivenJumps
from normalmesh.reconstruction.presets import Preset
from normalmesh.reconstruction.tiled_estimate import TiledEstimate
from normalmesh.runtime.monitor import Monitor

if TYPE_CHECKING:
    from distributed import Client

logger = logging.getLogger(__name__)

#: Default side of a tile in pixels, what it must be a multiple of, and the smallest one.
TILE, STEP, SMALLEST = 4096, 128, 256
#: Largest number of worker processes on one machine.
MAX_WORKERS = 4096


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
        "normalmesh": code_description(),
        "map": normal_map,
        "rules": list(rules),
        "tiles": side,
        "decimation": options.decimation,
        "integration": options.integration,
        "jumps": jumps,
    }
    described: dict[str, object] = {}
    for name, value in parts.items():
        described |= description_of(name, value)
    return described


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
