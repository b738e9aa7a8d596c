"""The pipeline: find jumps, decimate, integrate."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Unpack

from numpy.typing import ArrayLike

from normalmesh.arguments import checked_choice, replaced_options
from normalmesh.decimation.decimation_options import DecimationKeywords, DecimationOptions
from normalmesh.decimation.hierarchy import Hierarchy
from normalmesh.decimation.mask_counts import MaskCounts
from normalmesh.decimation.rounds import decimate_with
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.errors import NormalMeshError
from normalmesh.integration.cotangent import PAPER_CLAMP
from normalmesh.integration.integration_options import IntegrationKeywords, IntegrationOptions
from normalmesh.integration.levelling import check_repeating, check_repeating_map
from normalmesh.integration.mesh_integration import integrate_with
from normalmesh.integration.prior import check_prior
from normalmesh.jumps.finding import jumps_along, jumps_of
from normalmesh.jumps.jump_pixels import PixelsInMemory
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.repeats import Repeats, checked_tileable, wrapped
from normalmesh.mesh.surface import Surface
from normalmesh.normals.noise import NEGLIGIBLE, MapNoise, noise_of, without_noise
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.normal_map_like import NormalMapLike, as_normal_map
from normalmesh.reconstruction.estimates import REMEDY, Estimate
from normalmesh.reconstruction.shortfalls import report_shortfalls
from normalmesh.runtime.memory_budget import hold_memory, limited_memory, require_memory
from normalmesh.runtime.monitor import Monitor, OnProgress, Progress
from normalmesh.runtime.progress_bar import progress_shown
from normalmesh.runtime.threads import limited_threads

if TYPE_CHECKING:
    from normalmesh.maps.maps_on_disk import MapOnDisk

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Preset:
    """Options of both stages under one name."""

    decimation: DecimationOptions
    integration: IntegrationOptions


#: The presets; ``"paper"`` is the method as published.
PRESETS = {
    "default": Preset(DecimationOptions(), IntegrationOptions()),
    "paper": Preset(
        DecimationOptions(start="pixels", rounds=5, passes=10, align="each", keep_thin=False),
        IntegrationOptions(
            formulation="vertices", parameters="tight", metric="surface", clamp=PAPER_CLAMP, noise=0.0, refine=0
        ),
    ),
}


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
    normal_map = as_normal_map(normal_map)
    options = checked_options(normal_map, preset, decimation, integration, tileable)
    with limited_memory(memory_limit), limited_threads(threads), progress_shown(progress) as on_progress:
        repeats = checked_repeats(normal_map, options)
        searched = options.integration.cuts and not isinstance(jumps, Jumps)
        estimate = Estimate.of(MaskCounts.of(normal_map.mask), rule, options.decimation.start, searched)
        monitor = begun(estimate, on_progress)
        noise, smooth = noise_and_smooth(normal_map, options.integration, estimate, repeats)
        monitor.begin("jumps")
        known, hierarchy = jumps_and_hierarchy(smooth, options.integration, jumps)
        monitor.advance(estimate.jump_seconds)
        hold_memory(estimate.kept_jump_bytes if known.lines else 0)
        decimating, work = monitor.part(estimate.decimation_seconds), estimate.integration_seconds(estimate.vertices)
        mesh = decimate_with(smooth, rule, options.decimation, decimating, known.lines, hierarchy)
        integrating = replace(options.integration, noise=noise)
        surface = integrate_with(mesh, normal_map, integrating, monitor.part(work), known)
        monitor.finish(len(surface.vertices))
        counts = len(surface.vertices), len(surface.faces)
        logger.info("surface of %d vertices, %d faces: %.2f s", *counts, monitor.elapsed)
    report_shortfalls(surface)
    return surface


def checked_options(
    normal_map: NormalMap | MapOnDisk,
    preset: str,
    decimation: DecimationOptions | DecimationKeywords | None,
    integration: IntegrationKeywords,
    tileable: bool | str = False,
) -> Preset:
    """Return the options of a preset with some of them replaced, or raise an error before work begins."""
    base = PRESETS[checked_choice(preset, PRESETS, "preset")]
    options = Preset(
        replaced_options(base.decimation, decimation, "decimation"),
        replaced_options(base.integration, integration, "integration"),
    )
    if checked_tileable(tileable):
        options = replace(options, decimation=replace(options.decimation, tileable=tileable))
    if checked_tileable(options.decimation.tileable):
        check_repeating(options.integration)
    if options.integration.prior is not None:
        check_prior(options.integration.prior, options.integration.prior_weight, normal_map)
    return options


def checked_repeats(normal_map: NormalMap, options: Preset) -> Repeats | None:
    """Return the directions in which a map should repeat, if any, after it was checked for that."""
    repeats = Repeats.of(options.decimation.tileable, normal_map.shape)
    if repeats is not None:
        check_repeating_map(normal_map, repeats, stacklevel=5)
    return repeats


def jumps_and_hierarchy(
    normal_map: NormalMap,
    integration: IntegrationOptions,
    given: Jumps | ArrayLike | Sequence[ArrayLike] | None = None,
) -> tuple[Jumps, Hierarchy | None]:
    """Return the jumps of a denoised map, given or found, and the hierarchy if it was needed."""
    if not integration.cuts:
        if given is not None:
            raise NormalMeshError('jumps need formulation="facets", and discontinuities other than False')
        return Jumps(), None
    if given is not None:
        return (given if isinstance(given, Jumps) else jumps_along(given, PixelsInMemory(normal_map))), None
    began = time.perf_counter()
    hierarchy = Hierarchy.of(normal_map)
    found = jumps_of(normal_map, integration.discontinuities, hierarchy)
    logger.info("%s found: %.2f s", found, time.perf_counter() - began)
    return found, hierarchy


def begun(estimate: Estimate, progress: OnProgress | None) -> Monitor:
    """Report the beginning of work, unless it needs too much memory in any case."""
    require_memory(replace(estimate, smooths=False).memory, "the reconstruction", REMEDY)
    monitor = Monitor(progress, estimate.seconds)
    monitor.begin("noise")
    logger.info("reconstruction of %d foreground pixels begins", estimate.counts.foreground)
    return monitor


def noise_and_smooth(
    normal_map: NormalMap, options: IntegrationOptions, estimate: Estimate, repeats: Repeats | None = None
) -> tuple[MapNoise, NormalMap]:
    """Return the noise of a map, and the map without it; count the memory that is in use from now on."""
    noise = noise_of(normal_map, options.noise)
    logger.info("noise of %.2f°", noise.usual.degrees)
    known = replace(estimate, smooths=noise.largest.degrees >= NEGLIGIBLE)
    require_memory(known.memory, "the reconstruction", REMEDY)
    hold_memory(known.lasting_bytes)
    return noise, without_noise(normal_map, noise, wrapped=wrapped(repeats))
