"""Tiled reconstruction: surfaces of maps that do not fit into memory, on all cores or on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Unpack

from numpy.typing import ArrayLike

from normalmesh.decimation.decimation_options import DecimationKeywords, DecimationOptions
from normalmesh.integration.integration_options import IntegrationKeywords
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.surface import Surface
from normalmesh.normals.normal_map_like import NormalMapLike
from normalmesh.reconstruction.pipeline import reconstruct
from normalmesh.reconstruction.tiling import TILE, Tiling
from normalmesh.runtime.monitor import Progress

if TYPE_CHECKING:
    from distributed import Client


def reconstruct_tiled(
    normal_map: NormalMapLike,
    *,
    vertices: int | None = None,
    threshold: float | None = None,
    compression: float | None = None,
    tileable: bool | str = False,
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
    tileable
        Whether the map repeats, as textures do: True, or ``"x"`` or ``"y"`` for one direction only.
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
        As from :func:`reconstruct`: if one tile holds the map, the same.

    Raises
    ------
    NormalMeshError
        An option is invalid, the folder holds other work, or disk or memory do not suffice. These are found before
        work begins.
    """
    return reconstruct(
        normal_map,
        vertices=vertices,
        threshold=threshold,
        compression=compression,
        tileable=tileable,
        decimation=decimation,
        threads=threads,
        memory_limit=memory_limit,
        tiles=Tiling(tiles, client, workers, work, keep_work),
        jumps=jumps,
        progress=progress,
        **integration,
    )
