"""How sure heights are: standard deviations of vertices, and of differences, from the noise of the normals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_array
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.integration.noise_propagation import NoisePropagation
from normalmesh.mesh.interpolation import barycentric_rows
from normalmesh.mesh.origin import HeightNoise
from normalmesh.mesh.relief import measured_surface
from normalmesh.mesh.surface import Surface
from normalmesh.normals.noise import Noise, checked_noise

Float = NDArray[np.float64]

#: Correlation (px) below which noise counts as white: estimates of it are up to this large because of detail.
WHITE = 0.5
#: Number of vertices up to which summaries are cheap, a second or two.
MOST_SUMMARISED = 100_000
#: Barycentric coordinate down to which a position counts as in a face: those on edges belong to one.
_ON_EDGE = -1e-9


@dataclass(frozen=True)
class HeightDifference:
    """A difference of heights, printed as ``0.1320 ± 0.0041 mm``.

    Attributes
    ----------
    value
        How much nearer to the viewer the first point is, along the optical axis.
    standard_deviation
        Of the value, by the noise of the normals; infinite if the normals do not determine the difference.
    units
        Unit of both.
    """

    value: float
    standard_deviation: float
    units: str

    @property
    def is_determined(self) -> bool:
        """Whether the normals determine the difference: not between parts that nothing connects."""
        return math.isfinite(self.standard_deviation)

    def __str__(self) -> str:
        if not self.is_determined:
            return f"{self.value:.4g} {self.units}, a guess: the normals do not determine it"
        value, deviation = plus_minus(self.value, self.standard_deviation)
        return f"{value} ± {deviation} {self.units}"


def plus_minus(value: float, deviation: float) -> tuple[str, str]:
    """Format a value and its standard deviation, with two digits of the deviation."""
    if not deviation > 0:
        return f"{value:.6g}", "0"
    digits = 1 - math.floor(math.log10(float(f"{deviation:.1e}")))
    if not 0 <= digits <= 9:
        return f"{value:.6g}", f"{deviation:.1e}"
    return f"{value:.{digits}f}", f"{deviation:.{digits}f}"


def vertex_uncertainty(surface: Surface, noise: float | Noise | None = None) -> Float:
    """Return what :meth:`Surface.uncertainty` does."""
    record = _record(surface)
    scale = _noise_variances(surface, record, noise)
    if not scale.any():
        return np.zeros(len(surface.vertices))
    model = NoisePropagation.of(measured_surface(surface), record)
    deviations = np.sqrt(scale[surface.components] * model.variances())
    deviations *= abs(surface.strength) * surface.camera.depth_per_unknown(model.depth)
    # A vertex without faces has no normals.
    deviations[np.bincount(surface.faces.ravel(), minlength=len(deviations)) == 0] = np.inf
    return deviations


def difference_of_heights(
    surface: Surface, a: ArrayLike, b: ArrayLike, noise: float | Noise | None = None
) -> HeightDifference:
    """Return what :meth:`Surface.height_difference` does."""
    record = _record(surface)
    scale = _noise_variances(surface, record, noise)
    first, second = (_Point.of(surface, given, name) for given, name in ((a, "a"), (b, "b")))
    value = first.height - second.height
    model = NoisePropagation.of(measured_surface(surface), record)
    if not model.determines(first.vertex, second.vertex):
        return HeightDifference(value, math.inf, surface.units)
    variance = model.variance(first.weights - second.weights) if scale.any() else np.zeros(len(scale))
    return HeightDifference(value, abs(surface.strength) * math.sqrt(float(scale @ variance)), surface.units)


@dataclass(frozen=True, eq=False)
class UncertaintySummary:
    """The uncertainty of a surface in a few numbers.

    Attributes
    ----------
    deviations : (N,)
        Those of :meth:`Surface.uncertainty`.
    median, high
        Median and 95th percentile of them, in the unit of the surface.
    noise
        Noise of the normals in degrees, that of most of the surface.
    units
        Unit of the surface.
    """

    deviations: Float
    median: float
    high: float
    noise: float
    units: str

    @classmethod
    def of(cls, surface: Surface, most: int = MOST_SUMMARISED) -> UncertaintySummary | None:
        """Return the summary; None for more than ``most`` vertices, unknown noise, or too little memory.

        No reconstruction must fail because of its summary.
        """
        if surface.integration is None or len(surface.vertices) > most:
            return None
        try:
            deviations = vertex_uncertainty(surface)
        except NormalMeshError:
            return None
        known = deviations[np.isfinite(deviations)]
        median, high = (float(each) for each in np.percentile(known, (50, 95)))
        return cls(deviations, median, high, surface.integration.noise, surface.units)

    def __str__(self) -> str:
        figures = f"± {self.median:.2g} {self.units}, 95 % below ± {self.high:.2g} {self.units}"
        return f"{figures} (standard deviations, by noise of {self.noise:.2f}° on the normals)"


@dataclass(frozen=True, eq=False)
class _Point:
    """A point on a surface.

    ``height`` is its z; ``weights`` (N,) are the derivatives of that with respect to the unknown at the vertices, and
    ``vertex`` is one of those around it.
    """

    height: float
    weights: Float
    vertex: int

    @classmethod
    def of(cls, surface: Surface, given: ArrayLike, name: str) -> _Point:
        """Return the point of a vertex, by its number, or of a position u, v on the screen."""
        what = f"the number of a vertex, 0 to {len(surface.vertices) - 1}, or a position (u, v) in pixels"
        array = np.asarray(checked_array(given, name, what))
        corners, hats = np.zeros(1, np.int64), np.ones(1)
        if array.shape == () and array.dtype.kind in "iu":
            if not 0 <= array < len(surface.vertices):
                raise NormalMeshError(f"{name} must be {what}, not {repr_for_error(given)}")
            corners[0] = array
        elif array.shape == (2,) and np.isfinite(array.astype(np.float64)).all():
            corners, hats = _located(surface, array.astype(np.float64), name)
        else:
            raise NormalMeshError(f"{name} must be {what}, not {repr_for_error(given)}")
        depths = surface.camera.depth(surface.vertices[corners])
        weights = np.zeros(len(surface.vertices))
        if not surface.camera.is_central:
            weights[corners] = hats
            return cls(float(hats @ depths), weights, int(corners[0]))
        # Reciprocals of depths are linear on a face. The height is minus the depth, whose logarithm is the unknown.
        depth = 1 / float(hats @ (1 / depths))
        weights[corners] = -(depth**2) * hats / depths
        return cls(-depth, weights, int(corners[0]))


def _located(surface: Surface, position: Float, name: str) -> tuple[NDArray[np.int64], Float]:
    """Return the corners (3,) of the face at a position (2,), and their weights (3,)."""
    corners = surface.screen[surface.faces]
    around = ((corners.min(axis=1) <= position) & (position <= corners.max(axis=1))).all(axis=1)
    faces = np.flatnonzero(around & (surface.mesh.areas > 0))
    if len(faces):
        hats = barycentric_rows(surface.mesh, np.tile(position, (len(faces), 1)), faces).data.reshape(-1, 3)
        best = int(hats.min(axis=1).argmax())
        if hats[best].min() >= _ON_EDGE:
            return surface.faces[faces[best]].astype(np.int64), hats[best]
    u, v = position
    raise NormalMeshError(
        f"{name} is at u = {u:g}, v = {v:g}, where the surface has no face; "
        "positions are columns and rows in pixels, u to the right and v down"
    )


def _record(surface: Surface) -> HeightNoise | None:
    return None if surface.integration is None else surface.integration.height_noise


def _noise_variances(surface: Surface, record: HeightNoise | None, noise: float | Noise | None) -> Float:
    """Return the variance (P,), in rad², of the noise of each part, times the number of pixels that share it."""
    parts = int(surface.components.max()) + 1
    if noise is not None:
        known = checked_noise(noise)
        if not isinstance(known, Noise):
            raise NormalMeshError("noise must be an angle in degrees or a Noise: parts of a surface are not components")
        return np.full(parts, shared_pixels(np.array(known.correlation)) * math.radians(known.degrees) ** 2)
    if record is None:
        raise NormalMeshError(
            "the noise of the normals of this surface is not known, because it was made from a file or a map on disk; "
            "give the noise in degrees, such as noise=1.0 (normalmesh inspect estimates it)"
        )
    if len(record.degrees) != parts:
        raise NormalMeshError(
            f"the surface has {parts} connected parts but the noise of {len(record.degrees)} is known; "
            "give the noise in degrees, such as noise=1.0"
        )
    shares: Float = shared_pixels(record.correlation) * np.radians(record.degrees) ** 2
    return shares


def shared_pixels(correlation: Float) -> Float:
    """Return the number of pixels that share their noise, from its correlation in px: the sum of its autocorrelation.

    White noise blurred by a Gaussian of deviation b has the autocorrelation exp(−d²/4b²), whose sum is 4πb².
    """
    return np.where(correlation < WHITE, 1.0, 4 * math.pi * correlation**2)
