"""Reconstruction of surfaces from a normal map: of one, in tiles, or of levels of detail."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Unpack

from numpy.typing import ArrayLike

from normalmesh.decimation.decimation_options import DecimationKeywords, DecimationOptions
from normalmesh.decimation.rounds import checked_levels
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.integration.integration_options import IntegrationKeywords
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.surface import Surface
from normalmesh.normals.normal_map_like import NormalMapLike
from normalmesh.reconstruction.estimates import Estimate
from normalmesh.reconstruction.prelude import TILE, Request
from normalmesh.runtime.monitor import Progress

if TYPE_CHECKING:
    from distributed import Client

    from normalmesh.reconstruction.tiling import Tiling


def reconstruct(
    normal_map: NormalMapLike,
    *,
    vertices: int | None = None,
    threshold: float | None = None,
    compression: float | None = None,
    preset: str = "default",
    tileable: bool | str = False,
    decimation: DecimationOptions | DecimationKeywords | None = None,
    threads: int | None = None,
    memory_limit: float | None = None,
    tiles: int | Tiling | None = None,
    jumps: Jumps | ArrayLike | Sequence[ArrayLike] | None = None,
    progress: Progress = None,
    **integration: Unpack[IntegrationKeywords],
) -> Surface:
    """Reconstruct a surface from a normal map.

    Parameters
    ----------
    normal_map
        A :class:`NormalMap`, with any mask and camera, or the path of a file, an array or a tensor (H, W, 3), or a
        Pillow image, which :func:`read_normal_map` reads: call it yourself to give a mask, a camera or a convention.
    vertices, threshold, compression
        Where to stop: one of them, see :func:`decimate`; by default ``compression=0.98``, which leaves 2 vertices per
        100 foreground pixels. The number of vertices is that of the surface, cuts included.
    preset
        ``"default"``, or ``"paper"`` for the method exactly as published.
    tileable
        Whether the map repeats, as textures do: True, or ``"x"`` or ``"y"`` for one direction only. The surface then
        repeats, too: vertices and heights on opposite sides are the same, and the slopes across them fit the normals.
        A mean slope is taken away, ``surface.repeats.mean_slope``. For orthographic maps, without a prior.
    decimation
        Further options of :func:`decimate`, as a dictionary.
    threads
        Number of threads; by default as many as Numba may use (all cores, or ``NUMBA_NUM_THREADS``). The surface does
        not depend on it.
    memory_limit
        Maximal number of bytes to use beside the normal map; by default what is available. It is compared with an
        estimate before work begins, and with what is known by then before each stage. ``math.inf`` switches the checks
        off.
    tiles
        Work in tiles, for maps that do not fit into memory or on many cores: their side in px, a multiple of 128, or a
        :class:`Tiling`, which has more options. See :func:`reconstruct_tiled`.
    jumps
        Where the depth jumps, if that is known: an edge image (H, W), a list of polylines, or the result of
        :func:`find_jumps`, which describes them. By default they are found, see ``discontinuities``.
    progress
        True: show a progress bar, in a terminal or a notebook. A function: it is called repeatedly with a
        :class:`Step`; an exception that it raises ends the work.
    **integration
        Options of :func:`integrate`: ``discontinuities``, ``refine``, ``prior``, ``distance``, ``noise``, ``units``, …

    Returns
    -------
    Surface
        ``surface.coverage`` counts the pixels of the foreground that it loses. A :class:`NormalMeshWarning` tells if
        these are more than 0.5 %, or if the number of vertices asked for could not be met, and why.

    Raises
    ------
    NormalMeshError
        An option is invalid, or the reconstruction needs more memory than there is. Both are found before work begins,
        except that the content decides how many vertices a threshold leaves.

    Examples
    --------
    >>> surface = nm.reconstruct("normals.png")  # or an array, a tensor, an image
    >>> surface.save("surface.glb")

    With a mask and pixels of 0.05 mm, to 500 vertices:

    >>> camera = nm.Orthographic(pixel_size=0.05)
    >>> normal_map = nm.read_normal_map("normals.png", mask="mask.png", camera=camera)
    >>> surface = nm.reconstruct(normal_map, vertices=500, units="mm")
    """
    rule = StoppingRule(vertices, threshold, compression)
    request = Request.of(
        normal_map, preset, decimation, integration, tileable, jumps, tiles, threads, memory_limit, progress
    )
    return request.surfaces([rule], partial(Estimate.of, rule=rule))[0]


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
    from normalmesh.reconstruction.tiling import Tiling

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


def reconstruct_levels(
    normal_map: NormalMapLike,
    vertices: Sequence[int],
    *,
    tileable: bool | str = False,
    decimation: DecimationOptions | DecimationKeywords | None = None,
    threads: int | None = None,
    memory_limit: float | None = None,
    tiles: int | Tiling | None = None,
    jumps: Jumps | ArrayLike | Sequence[ArrayLike] | None = None,
    progress: Progress = None,
    **integration: Unpack[IntegrationKeywords],
) -> list[Surface]:
    """Reconstruct surfaces with ever fewer vertices, for viewers that choose one by its distance.

    One decimation passes through all of them, so that each mesh is a coarser version of the one before. Each mesh is
    integrated separately.

    Parameters
    ----------
    normal_map
        As for :func:`reconstruct`.
    vertices
        Decreasing numbers of vertices, cuts included.
    tileable, decimation, threads, memory_limit, tiles, jumps, progress, **integration
        As for :func:`reconstruct`.

    Returns
    -------
    list of Surface
        Finest first; the first is the same as from :func:`reconstruct`.
    """
    targets = checked_levels(vertices)
    rules, estimated = [StoppingRule(vertices=target) for target in targets], partial(Estimate.levels, vertices=targets)
    request = Request.of(
        normal_map, "default", decimation, integration, tileable, jumps, tiles, threads, memory_limit, progress
    )
    return request.surfaces(rules, estimated)
