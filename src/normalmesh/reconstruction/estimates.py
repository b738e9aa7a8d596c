"""Estimates of the memory and the time that a reconstruction takes, from counts of its mask and the stopping rule."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral
from os import PathLike

import numpy as np

from normalmesh.arguments import checked_choice, checked_int, checked_nonzero, checked_positive
from normalmesh.array_types import Float
from normalmesh.decimation.decimation_options import STARTS
from normalmesh.decimation.hierarchy import ERROR_BYTES, HIERARCHY_BYTES
from normalmesh.decimation.mask_counts import MaskCounts
from normalmesh.decimation.rounds import FIRST_TARGET, RECORD_BYTES
from normalmesh.decimation.start_mesh import FEATURES, FULL, OVERSAMPLING, SMALL, SPARSE, START_BYTES
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.integration.solving import INTEGRATION_BYTES
from normalmesh.jumps.finding import FIRST_VERTICES, JUMP_VERTICES, MIN_COMPONENT, ROBUST_BYTES, checked_discontinuities
from normalmesh.normals.noise import NEGLIGIBLE, noise_of, sample_bytes
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.normal_map_like import NormalMapLike, as_normal_map

# Bytes beside the normal map, measured by ``python -m benchmarks.memory``.
#: Independent of the size; per pixel of the image; and per pixel of a map that is smoothed against noise.
BASE_BYTES, IMAGE_BYTES, SMOOTH_BYTES = 16 << 20, 3, 12
#: Per pixel of the image, if there are several components: their labels.
LABEL_BYTES = 4
#: Per vertex of surfaces that are kept beside the one that is made.
KEPT_BYTES = 250

#: Share of the bytes of the search for jumps that is not given back before decimation, if there are jumps.
KEPT_BY_JUMPS = 0.4

# Seconds on one core of a server, by the same benchmark.
#: Per pixel of the rectangle around the foreground, and per component: the noise and the hierarchy.
RECTANGLE_SECONDS, NOISE_SECONDS = 0.1e-6, 0.2e-3
#: Per component in which jumps are searched, per inner edge of the mesh on which the surface is continuous, and per
#: further inner edge of the finer mesh around suspects.
COMPONENT_SECONDS, SOLVE_SECONDS, ROBUST_SECONDS = 0.7e-3, 2.2e-6, 28e-6
#: Per foreground pixel, of the decimation and of the integration; per vertex of the start mesh, and of the result.
PIXEL_SECONDS, START_SECONDS, VERTEX_SECONDS = 0.1e-6, 3.3e-6, 3.8e-5

# Vertices per foreground pixel of the trials of :func:`normalmesh.reconstruct_within`.
#: Of the first trial.
FIRST = 0.02
#: Of the finest surface.
FINEST = 0.25
#: Of the finest surface that is compared with it: closer to it, the deviation would not measure the error.
FINEST_COMPARED = 0.125
#: Typical number of trials.
USUAL_TRIALS = 7

# Vertices that a threshold of 1 px⁴ leaves on typical maps, and the exponent with which they depend on the threshold.
#: Per foreground pixel.
SURFACE_SHARE, SURFACE_EXPONENT = 0.036, -0.43
#: Per pixel side of the outline.
OUTLINE_SHARE, OUTLINE_EXPONENT = 0.045, -0.33
#: Inner vertices of the start mesh for each vertex of the result.
THRESHOLD_OVERSAMPLING = 12

REMEDY = (
    "mask or crop what you do not need, halve the resolution, reconstruct in tiles, or ask for fewer vertices if there "
    "are many"
)


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a reconstruction takes."""

    counts: MaskCounts
    vertices: int  # of the result, or of the finest of several
    start_vertices: int  # of the start mesh
    first_vertices: int  # of the mesh when its faces are first evaluated from their pixels
    cuts: bool  # whether jumps are searched
    smooths: bool = True  # whether the map is smoothed against noise
    kept_vertices: int = 0  # of further surfaces, such as coarser levels
    further_seconds: float = 0.0  # for further surfaces

    @classmethod
    def of(cls, counts: MaskCounts, rule: StoppingRule, start: str = "adaptive", cuts: bool = True) -> Estimate:
        """Estimate a reconstruction that ends with a stopping rule."""
        foreground, by_threshold = counts.foreground, rule.threshold is not None
        expected = _by_threshold(counts, rule.max_cost) if by_threshold else rule.expected_vertices(foreground)
        vertices = min(max(expected, counts.least_vertices), counts.corners)
        inner = OVERSAMPLING * vertices + round(FEATURES * math.sqrt(foreground))
        if by_threshold:
            inner = THRESHOLD_OVERSAMPLING * vertices
        if cuts:
            # The start mesh is full along lines of jumps, too.
            inner += round(JUMP_VERTICES * math.sqrt(foreground))
        is_coarse = start == "adaptive" and foreground > SMALL and inner < FULL * foreground
        is_coarse = is_coarse and counts.rectangle <= SPARSE * foreground
        start_vertices = min(counts.fixed + inner, counts.corners) if is_coarse else counts.corners
        first = start_vertices if is_coarse and not by_threshold else FIRST_TARGET[start] * vertices
        return cls(counts, vertices, start_vertices, min(first, start_vertices), cuts)

    @classmethod
    def within(cls, counts: MaskCounts, compared: bool, start: str = "adaptive", cuts: bool = True) -> Estimate:
        """Estimate :func:`normalmesh.reconstruct_within`, which begins with the finest surface if errors are compared.

        Without, it begins with a sparse one, and the memory of each further trial is checked anew.
        """
        sparse = cls.of(counts, StoppingRule(vertices=max(round(FIRST * counts.foreground), 3)), start, cuts)
        first = sparse
        if compared:
            first = cls.of(counts, StoppingRule(vertices=max(round(FINEST * counts.foreground), 3)), start, cuts)
        further = (USUAL_TRIALS - 1) * sparse.surface_seconds
        return replace(first, kept_vertices=3 * sparse.vertices, further_seconds=further)

    @classmethod
    def levels(cls, counts: MaskCounts, vertices: list[int], start: str = "adaptive", cuts: bool = True) -> Estimate:
        """Estimate :func:`normalmesh.reconstruct_levels` of decreasing numbers of vertices."""
        finest = cls.of(counts, StoppingRule(vertices=vertices[0]), start, cuts)
        further = [min(each, finest.vertices) for each in vertices[1:]]
        seconds = sum(map(finest.integration_seconds, further))
        return replace(finest, kept_vertices=sum(further), further_seconds=seconds)

    @property
    def memory(self) -> int:
        """Bytes of the peak beside the normal map."""
        return round(self.lasting_bytes + max(self.hierarchy_bytes, self.jump_bytes, self.mesh_bytes))

    @property
    def lasting_bytes(self) -> float:
        """Bytes beside those of single stages."""
        counts = self.counts
        labels = LABEL_BYTES * (len(counts.component_pixels) > 1)
        image = (IMAGE_BYTES + SMOOTH_BYTES * self.smooths + labels) * counts.pixels + ERROR_BYTES * counts.rectangle
        sample = sample_bytes(counts.foreground, counts.rectangle)
        return BASE_BYTES + image + sample + KEPT_BYTES * self.kept_vertices

    @property
    def hierarchy_bytes(self) -> float:
        """Bytes while the hierarchy is made."""
        return (HIERARCHY_BYTES - ERROR_BYTES) * self.counts.rectangle

    @property
    def jump_bytes(self) -> float:
        """Bytes of the search for jumps, as if there were some."""
        return ROBUST_BYTES * float(self._jump_edges(JUMP_VERTICES).max(initial=0)) if self.cuts else 0.0

    @property
    def kept_jump_bytes(self) -> float:
        """Bytes that stay in use after the search, if there are jumps."""
        return KEPT_BY_JUMPS * self.jump_bytes

    @property
    def mesh_bytes(self) -> float:
        """Bytes of the decimation or of the integration."""
        start = START_BYTES * self.start_vertices
        return max(start, RECORD_BYTES * self.first_vertices, INTEGRATION_BYTES * self.counts.edges(self.vertices))

    @property
    def jump_seconds(self) -> float:
        """Seconds until jumps are known."""
        seconds = RECTANGLE_SECONDS * self.counts.rectangle + NOISE_SECONDS * len(self.counts.component_pixels)
        if self.cuts:
            first, fine = self._jump_edges(FIRST_VERTICES), self._jump_edges(JUMP_VERTICES)
            seconds += COMPONENT_SECONDS * len(first) + SOLVE_SECONDS * float(first.sum())
            seconds += ROBUST_SECONDS * float((fine - first).max(initial=0))
        return seconds

    @property
    def decimation_seconds(self) -> float:
        """Seconds of the decimation to the first surface."""
        return PIXEL_SECONDS * self.counts.foreground + START_SECONDS * self.start_vertices

    @property
    def surface_seconds(self) -> float:
        """Seconds of the first surface, without the search for jumps."""
        return self.decimation_seconds + self.integration_seconds(self.vertices)

    @property
    def seconds(self) -> float:
        """Seconds on one core."""
        return self.jump_seconds + self.surface_seconds + self.further_seconds

    def integration_seconds(self, vertices: int) -> float:
        """Return the seconds of one integration."""
        return PIXEL_SECONDS * self.counts.foreground + VERTEX_SECONDS * vertices

    def _jump_edges(self, inner: int) -> Float:
        """Return the inner edges of the meshes on which components that are large enough are searched.

        Meshes have so many vertices off the outline for each px of √foreground.
        """
        pixels = self.counts.component_pixels
        edges: Float = self.counts.fixed_edges() + 3 * np.minimum(inner * np.sqrt(pixels), pixels)
        return edges[pixels >= MIN_COMPONENT]


def _by_threshold(counts: MaskCounts, threshold: float) -> int:
    """Return the number of vertices that a threshold (px⁴) leads to on typical maps."""
    share = min(SURFACE_SHARE * math.pow(threshold, SURFACE_EXPONENT), 1.0)
    outline_share = min(OUTLINE_SHARE * math.pow(threshold, OUTLINE_EXPONENT), 1.0)
    return max(round(share * counts.foreground + outline_share * counts.outline), 3)


def estimate_memory(
    normal_map: NormalMapLike | tuple[int, int],
    *,
    vertices: int | None = None,
    threshold: float | None = None,
    compression: float | None = None,
    max_angle: float | None = None,
    max_error: float | None = None,
    start: str = "adaptive",
    discontinuities: bool | str = "auto",
) -> int:
    """Estimate the memory that :func:`reconstruct` or :func:`reconstruct_within` needs beside the normal map.

    Parameters
    ----------
    normal_map
        The normal map, as for :func:`reconstruct`, or its mask (H, W). If neither is known, the numbers of pixels of
        the image and of its foreground, which is then taken to be one solid part: thin parts, holes and many
        components need more.
    vertices, threshold, compression
        Where to stop: one of them, as for :func:`reconstruct`. Default: that of :func:`reconstruct`.
    max_angle, max_error
        Instead of these, one or both bounds of :func:`reconstruct_within`.
    start, discontinuities
        Options of :func:`decimate` and :func:`integrate`.

    Returns
    -------
    int
        The peak in bytes. It is an upper bound for numbers of vertices and ``max_error``. With ``threshold`` and
        ``max_angle`` the content decides on the number of vertices, and a typical one is assumed; the reconstruction
        ends with an error where it would need more memory than is allowed.
    """
    checked_choice(start, STARTS, "start")
    # Others are a mask, or numbers of pixels.
    is_array = not isinstance(normal_map, NormalMap | tuple | list | str | PathLike)
    if isinstance(normal_map, str | PathLike) or (is_array and np.ndim(normal_map) == 3):  # type: ignore[arg-type]
        normal_map = as_normal_map(normal_map)
    cuts = checked_discontinuities(discontinuities) is not False
    bounds = {"max_angle": max_angle, "max_error": max_error}
    within = [name for name, value in bounds.items() if value is not None and checked_positive(value, name)]
    if within and (vertices, threshold, compression) != (None, None, None):
        raise NormalMeshError(f"give {' and '.join(within)} without vertices, threshold and compression")
    rule = None if within else StoppingRule(vertices, threshold, compression)
    counts = _counts(normal_map)
    if rule is None:
        estimate = Estimate.within(counts, max_error is not None, start, cuts)
    else:
        estimate = Estimate.of(counts, rule, start, cuts)
    if isinstance(normal_map, NormalMap):
        estimate = replace(estimate, smooths=noise_of(normal_map, None).largest.degrees >= NEGLIGIBLE)
    return estimate.memory


def _counts(given: NormalMapLike | tuple[int, int]) -> MaskCounts:
    """Return the counts of a map, of a mask, or of a solid foreground of so many pixels."""
    if isinstance(given, NormalMap):
        return MaskCounts.of(given.mask)
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(each, Integral) for each in given):
        pixels = checked_int(given[0], 1, "the number of pixels", 2**60)
        return MaskCounts.solid(pixels, checked_int(given[1], 1, "the number of foreground pixels", pixels))
    mask = checked_nonzero(given, "normal_map")  # type: ignore[arg-type]  # checked there
    if mask.ndim != 2 or not mask.any():
        raise NormalMeshError(
            "normal_map must be a NormalMap, a mask (H, W) with a foreground pixel, or the numbers of pixels of the "
            f"image and of its foreground; got {shape_text(mask.shape)}"
        )
    return MaskCounts.of(mask)
