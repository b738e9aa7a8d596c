"""Estimating and filtering the noise of a normal map.

Dividing by ⟨n, r⟩ turns noise into bias, so noisy normals are averaged before gradients are computed. Averaging blurs
real detail, so it must adapt to the noise. Detail is integrable and noise is not: the curl of the gradients measures
the noise. The noise of neighbouring pixels is often alike: then curls are small, but closure errors grow faster with
the size of loops than those of white noise.

Each component of the mask has its own noise: a clean one neither hides that of another nor is blurred because of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from normalmesh.arguments import checked_finite
from normalmesh.array_types import Float, Float32, Int
from normalmesh.errors import NormalMeshError
from normalmesh.normals._noise import Sample, bilateral, loop_gaps
from normalmesh.normals.component_maps import ComponentMap, component_maps
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.repairs import Repairs
from normalmesh.normals.rounding import DEGREES, rounded_run
from normalmesh.runtime.threads import in_parallel

#: Pixels of a component that may show its noise.
SMALLEST = 4
#: Noise (degrees) below which normals are not filtered: the estimate is that large for clean maps of rough surfaces.
NEGLIGIBLE = 1.0
#: Share of the normals without unit length from which on they are averages rather than measurements of pixels.
RESCALED = 0.5
#: Standard deviation (px) of the window of the filter against white noise; against other noise it is the correlation.
FILTER_WIDTH = 0.8
#: Radius of the window of the filter in standard deviations, before it is rounded to pixels.
FILTER_REACH = 1.5
#: Side (px) of the loops of the closure error.
LOOP = 8
#: Side (px) of the loops whose closure errors, compared with curls, determine the correlation.
CORRELATED_LOOP = 4
#: Correlation (px) below which noise counts as white: estimates of it are up to this large because of detail.
WHITE = 0.5
#: Largest correlation (px) that can be told from that of loops of four pixels.
MAX_CORRELATION = 3.0
#: Approximate number of foreground pixels in the sample for the estimates,
SAMPLED = 2**17
#: and the largest number of pixels around them.
MOST_SAMPLED = 2**23
#: Loops for each sampled pixel from which on the sample is taken to be a fair one.
FAIR = 0.1
#: Golden ratio: its multiples are spread evenly, and repeat nothing.
GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class Noise:
    """Noise on the normals.

    Attributes
    ----------
    degrees
        Standard deviation along one direction.
    correlation
        Standard deviation (px) of the Gaussian that white noise is blurred by to be like this noise; 0 for white noise.
    """

    degrees: float
    correlation: float = 0.0

    @property
    def as_white(self) -> float:
        """Standard deviation, in degrees, of the white noise that has the same curls around 2×2 pixels."""
        return self.degrees * math.sqrt(_closure_variance(1, self.correlation) / _closure_variance(1, 0.0))


@dataclass(frozen=True)
class MapNoise:
    """Noise of a normal map, component by component."""

    components: tuple[Noise, ...]  # in the order of :func:`.component_labels`; one that all share if it was given
    areas: tuple[int, ...]  # in pixels
    #: What rounding to 8 bits adds to heights, if the noise was estimated: closure errors may not show it.
    rounding: Noise = Noise(0.0)

    @property
    def usual(self) -> Noise:
        """The noise that half of the foreground does not exceed."""
        return self.components[_middle([noise.degrees for noise in self.components], self.areas)]

    @property
    def largest(self) -> Noise:
        """The noise of the noisiest component."""
        return max(self.components, key=lambda noise: noise.degrees)

    def of(self, number: int) -> Noise:
        """Return the noise of a component."""
        return self.components[number if len(self.components) > 1 else 0]


def component_noise(normal_map: NormalMap) -> MapNoise:
    """Estimate the noise on the normals of each component of a map.

    Components without a square of 2×2 pixels show nothing of their noise, and are taken to have none.
    """
    found = [(noise_of_component(each.normal_map), each.normal_map.foreground) for each in component_maps(normal_map)]
    components, areas = zip(*found, strict=True)
    return MapNoise(components, areas, rounding_noise(normal_map))


def rounding_noise(normal_map: NormalMap) -> Noise:
    """Return the noise of heights by the rounding of normals to 8 bits, shared by the pixels that are rounded alike."""
    return noise_of_rounding(rounded_run(normal_map))


def noise_of_rounding(shared: float) -> Noise:
    """Return the noise of heights by rounding to 8 bits that so many neighbouring pixels share."""
    correlation = math.sqrt(shared / (4 * math.pi))
    # Runs of few pixels, which correlation cannot say, are white noise of the same effect.
    return Noise(DEGREES, correlation) if correlation >= WHITE else Noise(math.sqrt(shared) * DEGREES)


def shared_pixels(correlation: Float) -> Float:
    """Return the number of pixels that share their noise, from its correlation in px: the sum of its autocorrelation.

    White noise blurred by a Gaussian of deviation b has the autocorrelation exp(−d²/4b²), whose sum is 4πb².
    """
    return np.where(correlation < WHITE, 1.0, 4 * math.pi * correlation**2)


def noise_of_component(normal_map: NormalMap) -> Noise:
    """Estimate the noise on the normals of a map of one component."""
    if normal_map.foreground < SMALLEST:
        return Noise(0.0)
    return noise_from_loops(lambda side: _loops(normal_map, side), normal_map.camera.pixel_length)


def noise_from_loops(loops: Callable[[int], Float32], pixel_length: float) -> Noise:
    """Estimate the noise on the normals of one component, from a sample of loops of one and of four px.

    The curl of the gradients around 2×2 pixels vanishes for a smooth surface; white noise of deviation σ on the
    gradients gives it the deviation √2 σ. Correlated noise gives it less, and more to closure errors around 4×4 pixels:
    how they grow determines the correlation. Medians are robust to occlusions and creases.
    """
    small, large = (_usual_deviation(loops(side)) / pixel_length for side in (1, CORRELATED_LOOP))
    correlation = _correlation(large / small) if small > 0 else 0.0
    deviation = small / math.sqrt(_closure_variance(1, correlation))
    return Noise(math.degrees(deviation), correlation)


def _usual_deviation(loops: Float32) -> float:
    """Return the deviation of closure errors around loops for slopes seen from the front.

    Noise of deviation σ on a normal that is tilted by θ gives slopes the deviation σ / cos² θ along the tilt, and
    σ / cos θ across.
    """
    gaps, _, flat = loops.T
    return 1.4826 * _median(np.abs(gaps) * flat * np.sqrt(2 / (1 + flat)))


def is_inconsistency(noise: float, repairs: Repairs, foreground: int) -> bool:
    """Return whether what counts as noise, in degrees, is that no surface has the normals.

    Lengths of stored normals say so: averages of normals, and those of JPEG, are shorter or longer than 1, while a
    measurement gives each pixel a unit normal with an error of its own.
    """
    return noise >= NEGLIGIBLE and repairs.rescaled >= RESCALED * foreground


def closure_error(normal_map: NormalMap, noise: float | Noise | MapNoise) -> float:
    """Estimate the median closure error of heights around loops of 8 × 8 pixels, in pixels, beyond that of noise.

    Measured normals have correlated errors: neighbouring pixels agree, but no surface has these normals. Steep slopes
    have lower weights; the median is robust to occlusions. Each component has its own; half of the foreground does not
    exceed the one returned.
    """
    known = noise_of(normal_map, noise)
    errors, areas = [], []
    for each in component_maps(normal_map):
        gaps, least, _ = _loops(each.normal_map, LOOP).T
        usual = _median(np.abs(gaps) * least) / normal_map.camera.pixel_length
        by_noise = 0.6745 * math.sqrt(4 * LOOP) * math.radians(known.of(each.number).as_white)
        errors.append(math.sqrt(max(usual**2 - by_noise**2, 0.0)))
        areas.append(each.normal_map.foreground)
    return errors[_middle(errors, areas)]


def _middle(values: Sequence[float], areas: Sequence[int]) -> int:
    """Return the number of the value that half of the area does not exceed."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(np.array(areas)[order])
    return int(order[np.searchsorted(below, below[-1] / 2)])


@cache
def _closure_variance(side: int, correlation: float) -> float:
    """Return the variance of the closure error around loops for noise of unit variance on the slopes.

    White noise blurred by a Gaussian of deviation b has the autocorrelation exp(−d²/4b²) at the distance d. Of the
    trapezoidal rule, the ends of a side have half the weight.
    """
    along = np.arange(side + 1.0)
    weights = np.ones(side + 1)
    weights[[0, -1]] = 0.5
    squared = (along[:, None] - along) ** 2
    scale = max(4 * correlation**2, 1e-3)
    covariance = np.exp(-squared / scale) - np.exp(-(squared + side**2) / scale)
    # Two pairs of sides; the two of a pair have opposite signs.
    return float(4 * weights @ covariance @ weights)


def _correlation(growth: float) -> float:
    """Return the correlation (px) with which closure errors grow by a factor from the small to the large loops.

    Those of noise grow at most with the area of the loops. Where they grow faster, they come from detail that is too
    fine for the trapezoidal rule, and nothing is known of the correlation.
    """
    if growth > CORRELATED_LOOP**2:
        return 0.0
    correlations = np.linspace(0.0, MAX_CORRELATION, 61)
    growths = [math.sqrt(_closure_variance(CORRELATED_LOOP, c) / _closure_variance(1, c)) for c in correlations]
    return float(np.interp(growth, growths, correlations))


def _loops(normal_map: NormalMap, side: int) -> Float32:
    """Return a sample of the loops of a map, of a side in px."""
    mask, area = normal_map.mask, normal_map.foreground
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    ends = int(columns[0]), int(columns[-1]) + 1
    step = sample_step(area, len(rows) * (ends[1] - ends[0]))
    starts = rows[rows < mask.shape[0] - side]
    return sampled_loops(lambda chosen: loops_in_rows(normal_map, side, chosen, ends), starts, step, area)


def sampled_loops(known: Callable[[Int], Float32], rows: Int, step: int, area: int) -> Float32:
    """Return the loops that begin in every ``step``-th of the rows of so many foreground pixels.

    ``known`` gives all loops that begin in some rows (K,).
    """
    found = known(rows[::step])
    if step > 1 and len(found) < FAIR * area / step:
        # Rows at equal distances may miss the loops of a mask that repeats itself.
        order = np.arange(len(rows) // step)
        uneven = order * step + ((order * GOLDEN % 1) * step).astype(np.int64)
        found = max(found, known(rows[uneven]), key=len)
    return found


def loops_in_rows(normal_map: NormalMap, side: int, rows: Int, columns: tuple[int, int]) -> Float32:
    """Return all loops, of a side in px, that begin in some rows and between two columns."""
    found = np.empty((len(rows), columns[1] - columns[0], 3), np.float32)
    arrays = (normal_map.normals, normal_map.mask, normal_map.camera.arrays)
    in_parallel(loop_gaps, len(found), side, Sample(np.ascontiguousarray(rows), *columns), *arrays, found, grain=16)
    return found[~np.isnan(found[..., 0])]


def _median(values: Float32) -> float:
    """Return the median of values, 0 if there are none."""
    return float(np.median(values)) if values.size else 0.0


def sample_bytes(foreground: int, rectangle: int) -> float:
    """Return the bytes that the sample needs on so many foreground pixels, in a rectangle of so many pixels."""
    step = sample_step(foreground, rectangle)
    return (12 * rectangle + 34 * foreground) / step


def sample_step(foreground: int, rectangle: int) -> int:
    """Return the distance of the rows of the sample."""
    return max(1, foreground // SAMPLED, rectangle // MOST_SAMPLED)


def checked_noise(noise: float | Noise | MapNoise) -> Noise | MapNoise:
    """Return noise, given in degrees if it is white, or raise :class:`NormalMeshError`."""
    if isinstance(noise, MapNoise):
        return noise
    degrees, length = (noise.degrees, noise.correlation) if isinstance(noise, Noise) else (noise, 0.0)
    return Noise(
        _checked_between(degrees, 180, "noise", "an angle in degrees, zero or more and at most 180"),
        _checked_between(length, math.inf, "correlation of the noise", "a length in pixels, zero or more"),
    )


def _checked_between(value: float, largest: float, name: str, expected: str) -> float:
    """Return a number from zero to the largest one, or raise :class:`NormalMeshError`."""
    number = checked_finite(value, name, expected)
    if not 0 <= number <= largest:
        raise NormalMeshError(f"{name} must be {expected}, not {number:g}")
    return number


def noise_of(normal_map: NormalMap, given: float | Noise | MapNoise | None) -> MapNoise:
    """Return the noise of the normals, as given or estimated."""
    if given is None:
        return component_noise(normal_map)
    return given_noise(given, normal_map.foreground)


def given_noise(given: float | Noise | MapNoise, foreground: int) -> MapNoise:
    """Return noise that is given for a map, or raise :class:`NormalMeshError`."""
    noise = checked_noise(given)
    return noise if isinstance(noise, MapNoise) else MapNoise((noise,), (foreground,))


def without_noise(
    normal_map: NormalMap,
    noise: float | Noise | MapNoise,
    parts: Iterable[ComponentMap] | None = None,
    wrapped: tuple[bool, bool] = (False, False),
) -> NormalMap:
    """Return the map after a bilateral filter against noise (degrees if white); the map itself if it is below 1°.

    The window is just large enough for averages over it to be less noisy. Components are filtered one by one;
    ``parts`` are those of a map that is a window of another one, whose numbers the noise belongs to. Where the map is
    ``wrapped``, in rows and in columns, the window goes on at the opposite side; only if there is one component.
    """
    known = noise_of(normal_map, noise)
    if known.largest.degrees < NEGLIGIBLE:
        return normal_map
    if any(wrapped) and len(known.components) == 1:
        return _without_noise_around(normal_map, known, wrapped)
    smooth = np.zeros(normal_map.normals.shape, np.float32)
    for each in component_maps(normal_map) if parts is None else parts:
        own, mask = known.of(each.number), each.normal_map.mask
        filtered = _filtered(each.normal_map, own) if own.degrees >= NEGLIGIBLE else each.normal_map.normals
        if each.normal_map is normal_map:
            smooth = filtered
        else:
            smooth[each.window][mask] = filtered[mask]
    return normal_map.with_normals(smooth)


def _without_noise_around(normal_map: NormalMap, noise: MapNoise, wrapped: tuple[bool, bool]) -> NormalMap:
    """Return the map after the filter, which goes on at the opposite side in rows or columns that are wrapped."""
    reach = [filter_reach(noise) if wraps else 0 for wraps in wrapped]
    margins = [(each, each) for each in reach]
    mask, normals = np.pad(normal_map.mask, margins, "wrap"), np.pad(normal_map.normals, [*margins, (0, 0)], "wrap")
    padded = _filtered(NormalMap.derived(normals, mask, normal_map.camera), noise.components[0])
    rows, columns = normal_map.shape
    smooth = np.ascontiguousarray(padded[reach[0] : reach[0] + rows, reach[1] : reach[1] + columns])
    return normal_map.with_normals(smooth)


def filter_reach(noise: MapNoise) -> int:
    """Return how many px around it the filter of a pixel takes into account; 0 if nothing is filtered."""
    filtered = [_filter_radius(each) for each in noise.components if each.degrees >= NEGLIGIBLE]
    return max(filtered, default=0)


def _filter_radius(noise: Noise) -> int:
    """Return the radius (px) of the window of the filter."""
    return round(FILTER_REACH * max(FILTER_WIDTH, noise.correlation))


def _filtered(normal_map: NormalMap, noise: Noise) -> Float32:
    """Return bilaterally filtered normals (H, W, 3), zero outside the mask."""
    smooth = np.empty_like(normal_map.normals)
    width = max(FILTER_WIDTH, noise.correlation)
    window = (_filter_radius(noise), width, 3 * math.radians(noise.degrees))
    in_parallel(bilateral, len(smooth), normal_map.normals, normal_map.mask, *window, smooth, grain=32)
    return smooth
