"""Reconstruction of a surface from a normal map."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Unpack

from numpy.typing import ArrayLike

from normalmesh.decimation.decimation_options import DecimationKeywords, DecimationOptions
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.integration.integration_options import IntegrationKeywords
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.surface import Surface
from normalmesh.normals.normal_map_like import NormalMapLike
from normalmesh.reconstruction.estimates import Estimate
from normalmesh.reconstruction.prelude import Request
from normalmesh.runtime.monitor import Progress

if TYPE_CHECKING:
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
    request = Request.of(normal_map, preset, decimation, integration, tileable, jumps, tiles)
    return request.surfaces([rule], partial(Estimate.of, rule=rule), threads, memory_limit, progress)[0]
