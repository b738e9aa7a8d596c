"""Tiled reconstruction: surfaces of maps that do not fit into memory, on all cores or on a cluster."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import ArrayLike

from normalmesh.arguments import checked_bool, checked_int, checked_path
from normalmesh.decimation.decimation_options import DecimationKeywords, DecimationOptions
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.engine.description import code_description, description_of
from normalmesh.engine.engine import Engine
from normalmesh.engine.work_folder import WorkFolder, holds_results, remove_work
from normalmesh.engine.workers import started_workers
from normalmesh.errors import NormalMeshError, path_text, repr_for_error
from normalmesh.integration.integration_options import IntegrationKeywords
from normalmesh.maps.maps_on_disk import MapOnDisk
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.surface import Surface
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.normal_map_like import NormalMapLike, as_normal_map
from normalmesh.pieces.stages import reconstruct_in_pieces
from normalmesh.pieces.tiled_estimate import TiledEstimate
from normalmesh.reconstruction.pipeline import Preset, checked_options
from normalmesh.reconstruction.shortfalls import report_shortfalls
from normalmesh.runtime.memory_budget import limited_memory
from normalmesh.runtime.monitor import Monitor, Progress
from normalmesh.runtime.progress_bar import progress_shown
from normalmesh.runtime.threads import limited_threads

if TYPE_CHECKING:
    from distributed import Client

logger = logging.getLogger(__name__)

#: Default side of a tile in pixels, what it must be a multiple of, and the smallest one.
TILE, STEP, SMALLEST = 4096, 128, 256
#: Largest number of worker processes on one machine.
MAX_WORKERS = 4096


def reconstruct_tiled(
    normal_map: NormalMapLike | MapOnDisk,
    *,
    vertices: int | None = None,
    threshold: float | None = None,
    compression: float | None = None,
    tiles: int = TILE,
    client: Client | str | None = None,
    workers: int | None = None,
    work: str | PathLike[str] | None = None,
    keep_work: bool = False,
    decimation: DecimationOptions | DecimationKeywords | None = None,
    threads: int | None = None,
    memory_limit: float | None = None,
    jumps: Jumps | ArrayLike | Sequence[ArrayLike] | None = None,
    progress: Progress = None,
    **integration: Unpack[IntegrationKeywords],
) -> Surface:
    """Reconstruct a surface from a normal map in tiles, which need not fit into memory together.

    Work goes on in several processes or on a cluster, and is kept in a folder: after an interruption, the same call
    goes on where it ended, and gives the same surface. The surface does not depend on the number of processes.

    Parameters
    ----------
    normal_map
        A map or an array in memory, a map that stays on disk (:meth:`NormalMap.open`), or the path of a file to open
        in that way.
    vertices, threshold, compression
        Where to stop: one of them, see :func:`reconstruct`; by default ``compression=0.98``.
    tiles
        Side of a tile in pixels, a multiple of 128. A process needs about 60 bytes per pixel of a tile.
    client
        The client of a Dask cluster (``distributed.Client``), or the address of its scheduler. All its workers must
        have the same normalmesh, and see ``work`` under the same path. By default processes are started on this
        machine. This requires ``pip install 'normalmesh[cluster]'``.
    workers
        Number of processes to start on this machine; 0 works in this process only. By default as many as there are
        cores and memory for; without Dask, 0. A program that starts processes must be a file whose work begins below
        ``if __name__ == "__main__":``.
    work
        Folder for intermediate results, on a disk that all workers share. It is made if it is missing. If it holds work
        of the same map and options, that is used; of others, an error is raised. By default a temporary folder.
    keep_work
        Keep the folder after success. After a failure it is kept in any case, and named in a note of the exception.
    decimation, jumps, progress, **integration
        As for :func:`reconstruct`. A depth map as ``prior`` may be a ``numpy.memmap``, which is read tile by tile.
    threads
        Number of cores to use on this machine, by default all.
    memory_limit
        Maximal number of bytes that all processes on this machine may use; by default what is available.

    Returns
    -------
    Surface
        As from :func:`reconstruct`, but :meth:`Surface.uncertainty` needs its ``noise``.

    Raises
    ------
    NormalMeshError
        An option is invalid, the folder holds other work, or disk or memory do not suffice. These are found before
        work begins.
    """
    opened = _opened(normal_map)
    if isinstance(opened, MapOnDisk):
        integration = {"units": opened.units, **integration}
    rule = StoppingRule(vertices, threshold, compression)
    options = _checked_options(opened, decimation, integration)
    side, count = checked_tile(tiles), _checked_workers(workers, client)
    checked_bool(keep_work, "keep_work")
    if jumps is not None and not options.integration.cuts:
        raise NormalMeshError('jumps need formulation="facets", and discontinuities other than False')
    with limited_memory(memory_limit), limited_threads(threads), progress_shown(progress) as on_progress:
        expected = rule.expected_vertices(opened.foreground)
        copied = isinstance(opened, NormalMap) and count != 0
        # It has been checked: an array of that shape is a depth map.
        has_depths = options.integration.prior is not None and np.shape(options.integration.prior) == opened.shape
        estimate = TiledEstimate(opened.shape, opened.foreground, expected, side, copied, has_depths)
        monitor = Monitor(on_progress)
        with _work_path(work, keep_work) as path:
            estimate.check(path, count, elsewhere=client is not None)
            monitor.begin("start")
            logger.info("reconstruction of %d foreground pixels in tiles of %d px begins", opened.foreground, side)
            description = _description(opened, rule, options, jumps, side)
            with (
                WorkFolder(path, description) as folder,
                started_workers(
                    count, client, threads, estimate.fitting_workers(), estimate.worker_memory
                ) as processes,
            ):
                engine = Engine(folder, processes, monitor, threads)
                surface = reconstruct_in_pieces(_seen(opened, engine), rule, options, engine, side, jumps)
        monitor.finish(len(surface.vertices))
        counts = len(surface.vertices), len(surface.faces)
        logger.info("surface of %d vertices, %d faces: %.2f s", *counts, monitor.elapsed)
    report_shortfalls(surface)
    return surface


def checked_tile(side: object, name: str = "tiles") -> int:
    """Return the side of a tile in pixels."""
    number = checked_int(side, SMALLEST, name, 1 << 20)
    if number % STEP:
        raise NormalMeshError(f"{name} must be a multiple of {STEP}, such as {TILE}, not {number}")
    return number


def _opened(given: NormalMapLike | MapOnDisk) -> NormalMap | MapOnDisk:
    if isinstance(given, str | PathLike):
        return NormalMap.open(checked_path(given, "normal_map"))
    return given if isinstance(given, MapOnDisk) else as_normal_map(given)


def _seen(opened: NormalMap | MapOnDisk, engine: Engine) -> NormalMap | MapOnDisk:
    """Return a map that workers can read: one in memory is copied to the work folder for other processes."""
    if engine.is_here or isinstance(opened, MapOnDisk):
        return opened
    return MapOnDisk.of(opened, engine.folder.path / "map")


def _checked_workers(workers: object, client: object) -> int | None:
    if workers is not None and client is not None:
        raise NormalMeshError("give only one of workers and client: a cluster has its own workers")
    return None if workers is None else checked_int(workers, 0, "workers", MAX_WORKERS)


def _checked_options(
    normal_map: NormalMap | MapOnDisk,
    decimation: DecimationOptions | DecimationKeywords | None,
    integration: IntegrationKeywords,
) -> Preset:
    """Return options of both stages that work in tiles."""
    options = checked_options(normal_map, "default", decimation, integration)
    whole = {
        "start": (options.decimation.start, "adaptive"),
        "locked": (options.decimation.locked, None),
        "tileable": (options.decimation.tileable, False),
        "formulation": (options.integration.formulation, "facets"),
    }
    for name, (value, needed) in whole.items():
        if (value is not None) if needed is None else (value != needed):
            raise NormalMeshError(
                f"{name}={repr_for_error(value)} is not possible in tiles; use normalmesh.reconstruct"
            )
    return options


def _description(
    normal_map: NormalMap | MapOnDisk, rule: StoppingRule, options: Preset, jumps: object, side: int
) -> dict[str, object]:
    """Describe everything that the surface depends on."""
    parts = {
        "normalmesh": code_description(),
        "map": normal_map,
        "rule": rule,
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
