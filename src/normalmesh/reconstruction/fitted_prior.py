"""Depths that are known up to a shift or a scale, such as those of networks, as priors of a reconstruction."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from normalmesh.arguments import checked_array, checked_bool, checked_instance
from normalmesh.array_types import Bool, Float
from normalmesh.errors import NormalMeshError, NormalMeshWarning, shape_text
from normalmesh.integration.pixel_integration import integrate_pixels
from normalmesh.integration.pixel_jumps import pixel_parts
from normalmesh.jumps.finding import find_jumps
from normalmesh.mesh.jumps import Jumps
from normalmesh.normals.normal_map import NormalMap

#: Number of reweighted solves, and the residual, relative to the typical one, below which all weigh the same.
SOLVES, SMALL = 20, 0.1
#: Residuals in standard deviations from which on depths are outliers, such as those smeared across jumps,
OUTLIER = 6.0
#: and relative to the depth or to the range of heights, from which on they can be.
LEAST_OUTLIER = 0.01
#: Share of the depths from which on outliers are more than smeared edges.
MANY_OUTLIERS = 0.1
#: Relative variation of the distances of the parts of a surface below which no shift can be told.
LEAST_VARIATION = 0.01


@dataclass(frozen=True, eq=False)
class FittedPrior:
    """Depths in agreement with a normal map, for the ``prior`` of :func:`reconstruct`.

    Attributes
    ----------
    depth : (H, W) float64
        ``scale · given + shift``, NaN where it is unknown or an outlier.
    scale, shift : float
        What was fitted: factor and constant, in the unit of the surface.
    outliers : int
        Number of depths that were left out because they contradict the normals and the depths around them.
    """

    depth: Float = field(repr=False)
    scale: float
    shift: float
    outliers: int

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the depth: the record itself can be given as ``prior``."""
        return np.asarray(self.depth, dtype) if copy is None else np.array(self.depth, dtype, copy=copy)


def fit_prior(
    depth: ArrayLike, normal_map: NormalMap, *, shift: bool = False, jumps: Jumps | None = None
) -> FittedPrior:
    """Fit depths that are known up to a scale or a shift to the surface of a normal map, robustly.

    The normals are integrated without the depths. The parts of that surface, which jumps and the mask separate, are
    each known up to a scale (perspective) or a height (orthographic), which are fitted together with what the depths
    lack: perspective distances may lack a shift, heights behind an orthographic camera a scale. Sums of absolute
    residuals are minimised, by reweighting.

    Parameters
    ----------
    depth
        (H, W) as :meth:`Surface.depth_map` defines it, NaN where unknown. Perspective: distances in any unit, which is
        that of the surface, too. Orthographic: heights in any unit and from any level.
    normal_map
        The normal map of the same view.
    shift
        Whether perspective distances lack a constant, too, as those of affine-invariant networks do. Surfaces at a
        nearly constant distance do not tell it: then there is a warning, and no shift.
    jumps
        Where the depth jumps, from :func:`find_jumps`, for example along the edges of the depth. By default they are
        found from the normals.

    Returns
    -------
    FittedPrior
        Depths for the ``prior`` of :func:`reconstruct`, with the scale and shift that were fitted.

    Warns
    -----
    NormalMeshWarning
        More than a tenth of the depths contradict the normals, as those of an object do whose outline the normals do
        not show; or a shift cannot be told.

    Raises
    ------
    NormalMeshError
        Fewer than three depths on the foreground, or depths that increase in the opposite direction.
    """
    checked_instance(normal_map, NormalMap, "normal_map")
    given = np.asarray(checked_array(depth, "depth"), np.float64)
    if given.shape != normal_map.shape:
        raise NormalMeshError(f"depth is {shape_text(given.shape)} but normals are {shape_text(normal_map.shape)}")
    jumps = find_jumps(normal_map) if jumps is None else checked_instance(jumps, Jumps, "jumps")
    surface = integrate_pixels(normal_map, jumps=jumps)
    known = np.isfinite(given) & normal_map.mask
    if np.count_nonzero(known) < 3:
        raise NormalMeshError("depth holds fewer than three finite numbers on the foreground")
    _, part = np.unique(pixel_parts(normal_map.mask, jumps.lines)[known], return_inverse=True)
    if normal_map.camera.gauge == "scale":
        fit, factor = _shifted(surface[known], given[known], part, checked_bool(shift, "shift")), 1.0
    else:
        fit, factor = _scaled(surface[known], given[known], part)
    prior = np.full(given.shape, np.nan)
    prior[known] = np.where(fit.outlying, np.nan, factor * (given[known] + fit.shift))
    if normal_map.camera.gauge == "scale":
        prior[~(prior > 0)] = np.nan
        if np.count_nonzero(prior > 0) < 3:
            raise NormalMeshError(
                "the depths contradict the normals: fitted to them, they are not positive; distances must grow away "
                "from the viewer (are these disparities, or negated?)"
            )
    outliers = int(np.count_nonzero(fit.outlying))
    if outliers > MANY_OUTLIERS * np.count_nonzero(known):
        warnings.warn(
            f"{outliers} of {np.count_nonzero(known)} depths contradict the normals, and were left out; if depth jumps "
            "where normals do not show it, give jumps=nm.find_jumps(normal_map, edges), with edges of the depth",
            NormalMeshWarning,
            stacklevel=2,
        )
    return FittedPrior(prior, factor, factor * fit.shift, outliers)


@dataclass(frozen=True, eq=False)
class _Fit:
    """What has to be added to depths (K,), and which of them (K,) are outliers."""

    shift: float
    outlying: Bool


def _shifted(surface: Float, depth: Float, part: NDArray[np.intp], has_shift: bool) -> _Fit:
    """Fit ``depth + shift = scale[part] · surface``."""
    # Distances from the mean of a part, relative to it: parts at a constant distance do not tell a shift.
    means = np.bincount(part, surface) / np.bincount(part)
    variation = float(np.sqrt(np.mean((surface / means[part] - 1) ** 2)))
    if has_shift and variation < LEAST_VARIATION:
        warnings.warn(
            f"distances vary by {100 * variation:.2g} % within the parts of the surface, too little to tell the shift "
            "of the depths: none is taken",
            NormalMeshWarning,
            stacklevel=3,
        )
        has_shift = False
    shift, weights = 0.0, np.ones(len(depth))
    for _ in range(SOLVES):
        if has_shift:
            across, along = (_less_multiples(values, surface, part, weights) for values in (np.ones(len(depth)), depth))
            shift = -float((weights * across) @ along) / float((weights * across) @ across)
        residuals = _less_multiples(depth + shift, surface, part, weights)
        weights = _weights(residuals)
    return _Fit(shift, _outlying(residuals, np.abs(depth + shift)))


def _scaled(surface: Float, height: Float, part: NDArray[np.intp]) -> tuple[_Fit, float]:
    """Fit ``factor · height = surface + level[part]``; return the factor, too."""
    weights = np.ones(len(height))
    for _ in range(SOLVES):
        rise, given = (_less_means(values, part, weights) for values in (surface, height))
        # Heights are less certain than the surface: they are regressed on it.
        per_rise = float((weights * rise) @ given) / max(float((weights * rise) @ rise), 1e-300)
        residuals = given - per_rise * rise
        weights = _weights(residuals)
    if per_rise <= 0:
        raise NormalMeshError(
            "depth does not increase where the surface of the normals rises: negate it if it grows away from the "
            "viewer; a flat surface does not tell its scale"
        )
    return _Fit(0.0, _outlying(residuals, np.full(len(height), per_rise * np.ptp(surface)))), 1 / per_rise


def _less_multiples(values: Float, surface: Float, part: NDArray[np.intp], weights: Float) -> Float:
    """Return values (K,) less the multiple of the surface (K,) that fits them best in each part."""
    squares = np.bincount(part, weights * surface**2)
    multiples = np.bincount(part, weights * surface * values) / squares
    rest: Float = values - multiples[part] * surface
    return rest


def _less_means(values: Float, part: NDArray[np.intp], weights: Float) -> Float:
    return _less_multiples(values, np.ones(len(values)), part, weights)


def _weights(residuals: Float) -> Float:
    """Return weights (K,) with which squares of residuals are absolute values, except for small ones."""
    sizes = np.abs(residuals)
    least = max(SMALL * float(np.median(sizes)), 1e-12 * float(sizes.max()), 1e-300)
    weights: Float = least / np.maximum(sizes, least)
    return weights


def _outlying(residuals: Float, size: Float) -> Bool:
    """Return which residuals (K,) are outliers."""
    sizes = np.abs(residuals)
    deviation = 1.4826 * float(np.median(sizes))
    outlying: Bool = sizes > np.maximum(OUTLIER * deviation, LEAST_OUTLIER * size)
    return outlying
