"""Estimating and filtering the noise of a normal map.

Dividing by ⟨n, r⟩ turns noise into bias, so noisy normals are averaged before gradients are computed. Averaging blurs
real detail, so it must adapt to the noise. Detail is integrable and noise is not: the curl of the gradients measures
the noise. The noise of neighbouring pixels is often alike: then curls are small, but closure errors grow faster with
the size of loops than those of white noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normalmesh.arguments import checked_finite
from normalmesh.errors import NormalMeshError
from normalmesh.normals._noise import Sample, bilateral, loop_gaps
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.threads import in_parallel

#: Noise (degrees) below which normals are not filtered: the estimate is that large for clean maps of rough surfaces.
NEGLIGIBLE = 1.0
#: Standard deviation (px) of the window of the filter against white noise; against other noise it is the correlation.
WIDTH = 0.8
#: Radius of the window of the filter in standard deviations, before it is rounded to pixels.
REACH = 1.5
#: Side (px) of the loops of the closure error.
LOOP = 8
#: Side (px) of the loops whose closure errors, compared with curls, determine the correlation.
CORRELATED_LOOP = 4
#: Largest correlation (px) that can be told from that of loops of four pixels.
MAX_CORRELATION = 3.0
#: Approximate number of foreground pixels in the sample for the estimates,
SAMPLED = 2**19
#: and the largest number of pixels around them.
MOST_SAMPLED = 2**23


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


def estimate_noise(normal_map: NormalMap) -> Noise:
    """Estimate the noise on the normals.

    The curl of the gradients around 2×2 pixels vanishes for a smooth surface; white noise of deviation σ on the
    gradients gives it the deviation √2 σ. Correlated noise gives it less, and more to closure errors around 4×4 pixels:
    how they grow determines the correlation. Medians are robust to occlusions and creases.
    """
    small, large = (_usual_deviation(normal_map, side) for side in (1, CORRELATED_LOOP))
    correlation = _correlation(large / small) if small > 0 else 0.0
    deviation = small / math.sqrt(_closure_variance(1, correlation))
    return Noise(math.degrees(deviation), correlation)


def _usual_deviation(normal_map: NormalMap, side: int) -> float:
    """Return the deviation of closure errors around loops (px) for slopes seen from the front.

    Noise of deviation σ on a normal that is tilted by θ gives slopes the deviation σ / cos² θ along the tilt, and
    σ / cos θ across.
    """
    gaps, _, flat = _loops(normal_map, side)
    known = np.abs(gaps) * flat * np.sqrt(2 / (1 + flat))
    return 1.4826 * _median(known) / normal_map.camera.pixel_length


def closure_error(normal_map: NormalMap, noise: float) -> float:
    """Estimate the median closure error of heights around loops of 8 × 8 pixels, in pixels, beyond that of noise.

    ``noise`` is the standard deviation of white noise in degrees. Measured normals have correlated errors: neighbouring
    pixels agree, but no surface has these normals. Steep slopes have lower weights; the median is robust to
    occlusions.
    """
    gaps, least, _ = _loops(normal_map, LOOP)
    usual = _median(np.abs(gaps) * least) / normal_map.camera.pixel_length
    by_noise = 0.6745 * math.sqrt(4 * LOOP) * math.radians(noise)
    return math.sqrt(max(usual**2 - by_noise**2, 0.0))


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
    factors = [math.sqrt(_closure_variance(CORRELATED_LOOP, c) / _closure_variance(1, c)) for c in correlations]
    return float(np.interp(growth, factors, correlations))


def _loops(normal_map: NormalMap, side: int) -> tuple[NDArray[np.float32], ...]:
    """Return closure errors of a sample of loops, in the unit of the camera; least and mean cos² of their tilts."""
    sample = _sample(normal_map, side)
    found = np.empty((len(sample.rows), sample.right - sample.left, 3), np.float32)
    arrays = (normal_map.normals, normal_map.mask, normal_map.camera.frame)
    in_parallel(loop_gaps, len(found), side, sample, *arrays, found, grain=16)
    known = found[~np.isnan(found[..., 0])]
    return known[:, 0], known[:, 1], known[:, 2]


def _median(values: NDArray[np.float32]) -> float:
    """Return the median of values, 0 if there are none."""
    return float(np.median(values)) if values.size else 0.0


def sample_bytes(foreground: int, rectangle: int) -> float:
    """Return the bytes that the sample needs on so many foreground pixels, in a rectangle of so many pixels."""
    step = _sample_step(foreground, rectangle)
    return (12 * rectangle + 34 * foreground) / step


def _sample_step(foreground: int, rectangle: int) -> int:
    """Return the distance of the rows of the sample."""
    return max(1, foreground // SAMPLED, rectangle // MOST_SAMPLED)


def _sample(normal_map: NormalMap, reach: int) -> Sample:
    """Choose rows that hold foreground, evenly; ``reach`` more rows are below each of them."""
    mask = normal_map.mask
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    left, right = int(columns[0]), int(columns[-1]) + 1
    step = _sample_step(normal_map.foreground, len(rows) * (right - left))
    return Sample(rows[rows < mask.shape[0] - reach][::step], left, right)


def checked_noise(noise: float | Noise) -> Noise:
    """Return noise, given in degrees if it is white, or raise :class:`NormalMeshError`."""
    if isinstance(noise, Noise):
        return noise
    what = "an angle in degrees, zero or more and at most 180"
    number = checked_finite(noise, "noise", what)
    if not 0 <= number <= 180:
        raise NormalMeshError(f"noise must be {what}, not {number:g}")
    return Noise(number)


def noise_of(normal_map: NormalMap, given: float | Noise | None) -> Noise:
    """Return the noise of the normals, as given or estimated."""
    return estimate_noise(normal_map) if given is None else checked_noise(given)


def without_noise(normal_map: NormalMap, noise: float | Noise) -> NormalMap:
    """Return the map after a bilateral filter against noise (degrees if white); the map itself if it is below 1°.

    The window is just large enough for averages over it to be less noisy.
    """
    noise = checked_noise(noise)
    if noise.degrees < NEGLIGIBLE:
        return normal_map
    smooth = np.empty_like(normal_map.normals)
    width = max(WIDTH, noise.correlation)
    window = (round(REACH * width), width, 3 * math.radians(noise.degrees))
    in_parallel(bilateral, len(smooth), normal_map.normals, normal_map.mask, *window, smooth, grain=32)
    return NormalMap(smooth, normal_map.mask, normal_map.camera)
