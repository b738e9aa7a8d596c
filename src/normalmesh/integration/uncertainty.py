"""How sure heights are: standard deviations of vertices and differences, by noise of the normals and by the mesh."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from normalmesh.arguments import checked_array
from normalmesh.array_types import Float
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.integration.noise_propagation import MIN_DOUBLE_AREA, NoisePropagation
from normalmesh.mesh.interpolation import barycentric_rows
from normalmesh.mesh.origin import HeightNoise
from normalmesh.mesh.relief import measured_surface
from normalmesh.mesh.repeats import Repeats
from normalmesh.mesh.surface import Surface
from normalmesh.normals.noise import Noise, checked_noise, shared_pixels

#: Number of vertices up to which summaries are cheap, a second or two.
MOST_SUMMARISED = 100_000
#: Barycentric coordinate down to which a position counts as in a face: those on edges belong to one.
_ON_EDGE = -1e-9
#: Variance of the slope in one direction of deviations that have the variance 1 over a face of area 1: see
#: :mod:`.mesh_deviation`, where slopes of variance 1 give heights of 0.043.
_STEEPNESS = 0.5 / 0.043


@dataclass(frozen=True)
class HeightDifference:
    """A difference of heights, printed as ``0.1320 ± 0.0041 mm``.

    Attributes
    ----------
    value
        How much nearer to the viewer the first point is, along the optical axis.
    noise
        Standard deviation of the value by the noise of the normals; infinite if they do not determine the difference.
    mesh
        Standard deviation by the deviation of flat faces from a curved surface; NaN if it is not known, for surfaces
        that were made from a file.
    units
        Unit of all.
    """

    value: float
    noise: float
    mesh: float
    units: str

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of the value by noise and mesh together, as far as they are known."""
        return math.hypot(self.noise, 0.0 if math.isnan(self.mesh) else self.mesh)

    @property
    def is_determined(self) -> bool:
        """Whether the normals determine the difference: not between parts that nothing connects."""
        return math.isfinite(self.standard_deviation)

    def __str__(self) -> str:
        if not self.is_determined:
            return f"{self.value:.4g} {self.units}, a guess: the normals do not determine it"
        value, deviation = plus_minus(self.value, self.standard_deviation)
        known = ", by noise alone" if math.isnan(self.mesh) else ""
        return f"{value} ± {deviation} {self.units}{known}"


def plus_minus(value: float, deviation: float) -> tuple[str, str]:
    """Format a value and its standard deviation, with two digits of the deviation."""
    if not deviation > 0:
        return f"{value:.6g}", "0"
    digits = 1 - math.floor(math.log10(float(f"{deviation:.1e}")))
    if not -6 <= digits <= 9:
        return f"{value:.6g}", f"{deviation:.1e}"
    # Adding zero makes −0 a 0.
    value, deviation = (round(each, digits) + 0.0 for each in (value, deviation))
    return f"{value:.{max(digits, 0)}f}", f"{deviation:.{max(digits, 0)}f}"


def vertex_uncertainty(surface: Surface, noise: float | Noise | None = None, mesh: bool = True) -> Float:
    """Return what :meth:`Surface.uncertainty` does."""
    deviations = _by_noise(surface, noise)
    by_mesh = _by_mesh(surface) if mesh else None
    return deviations if by_mesh is None else np.hypot(deviations, by_mesh)


def _by_noise(surface: Surface, noise: float | Noise | None) -> Float:
    """Return the standard deviations (N,) of vertices by noise."""
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


def _by_mesh(surface: Surface) -> Float | None:
    """Return the standard deviations (N,) of vertices by the mesh; None if they are not known."""
    record = _record(surface)
    if record is None:
        return None
    depth = surface.camera.depth(surface.vertices)
    return abs(surface.strength) * record.vertex_deviations * surface.camera.depth_per_unknown(depth)


def difference_of_heights(
    surface: Surface, a: ArrayLike, b: ArrayLike, noise: float | Noise | None = None
) -> HeightDifference:
    """Return what :meth:`Surface.height_difference` does."""
    record = _record(surface)
    scale = _noise_variances(surface, record, noise)
    first, second = (_Point.of(surface, given, name) for given, name in ((a, "a"), (b, "b")))
    value = first.height - second.height
    model, strength = NoisePropagation.of(measured_surface(surface), record), abs(surface.strength)
    by_mesh = strength * first.mesh_difference(second, surface.repeats)
    if not model.determines(first.vertex, second.vertex):
        return HeightDifference(value, math.inf, by_mesh, surface.units)
    variance = model.variance(first.weights - second.weights) if scale.any() else np.zeros(len(scale))
    return HeightDifference(value, strength * math.sqrt(float(scale @ variance)), by_mesh, surface.units)


@dataclass(frozen=True, eq=False)
class UncertaintySummary:
    """The uncertainty of a surface in a few numbers.

    Attributes
    ----------
    deviations : (N,)
        Those of :meth:`Surface.uncertainty`.
    median, high
        Median and 95th percentile of them, in the unit of the surface.
    by_noise, by_mesh
        Medians of their parts.
    noise
        Noise of the normals in degrees, the median over the vertices.
    units
        Unit of the surface.
    """

    deviations: Float
    median: float
    high: float
    by_noise: float
    by_mesh: float
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
            by_noise, by_mesh = _by_noise(surface, None), _by_mesh(surface)
        except NormalMeshError:
            return None
        record = _record(surface)
        if by_mesh is None or record is None:
            return None
        deviations = np.hypot(by_noise, by_mesh)
        known = np.isfinite(deviations)
        median, high = (float(each) for each in np.percentile(deviations[known], (50, 95)))
        noise_part, mesh_part = (float(np.median(each[known])) for each in (by_noise, by_mesh))
        noise = float(np.median(record.degrees[surface.components]))
        return cls(deviations, median, high, noise_part, mesh_part, noise, surface.units)

    def __str__(self) -> str:
        figures = f"± {self.median:.2g} {self.units}, 95 % below ± {self.high:.2g} {self.units}"
        by_noise, by_mesh = (part_text(part, self.median) for part in (self.by_noise, self.by_mesh))
        noise = f"± {by_noise} by noise of {self.noise:.2f}° on the normals"
        return f"{figures} (standard deviations of vertices: {noise}, ± {by_mesh} by the mesh)"


def part_text(part: float, whole: float) -> str:
    """Return a part of a standard deviation as text: 0 if it is at most a ten-thousandth of the whole."""
    return "0" if part <= 1e-4 * whole else f"{part:.2g}"


@dataclass(frozen=True, eq=False)
class _Point:
    """A point on a surface.

    ``place`` (2,) is its u, v, ``height`` its z; ``weights`` (N,) are the derivatives of that with respect to the
    unknown at the vertices, and ``vertex`` is one of those around it. ``mesh_variance`` is that of z by the mesh, NaN
    if it is not known, and ``area`` that of the face in px², or the mean of those around a vertex.
    """

    place: Float
    height: float
    weights: Float
    vertex: int
    mesh_variance: float
    area: float

    def mesh_difference(self, other: _Point, repeats: Repeats | None) -> float:
        """Return the standard deviation by the mesh of the difference of heights to another point.

        Faces deviate independently. Points that are nearer than about the size of a face deviate by almost the same,
        and their difference by no more than the slope of the deviation allows.
        """
        way = self.place - other.place
        squared = float(((way if repeats is None else repeats.shortest(way)) ** 2).sum())
        steep = (self.mesh_variance / self.area + other.mesh_variance / other.area) / 2
        return math.sqrt(min(self.mesh_variance + other.mesh_variance, _STEEPNESS * squared * steep))

    @classmethod
    def of(cls, surface: Surface, given: ArrayLike, name: str) -> _Point:
        """Return the point of a vertex, by its number, or of a position u, v on the screen."""
        what = f"the number of a vertex, 0 to {len(surface.vertices) - 1}, or a position (u, v) in pixels"
        array = np.asarray(checked_array(given, name, what, kinds=None))
        record = _record(surface)
        if array.shape == () and array.dtype.kind in "iu" and 0 <= array < len(surface.vertices):
            corners, hats, place = array.reshape(1).astype(np.int64), np.ones(1), surface.screen[int(array)]
            faces = np.flatnonzero((surface.faces == array).any(axis=1))
            deviation = np.nan if record is None else record.vertex_deviations[int(array)]
        elif array.shape == (2,) and array.dtype.kind in "fiu" and np.isfinite(array.astype(np.float64)).all():
            place = array.astype(np.float64)
            face, hats = _located(surface, place, name)
            corners, faces = surface.faces[face].astype(np.int64), np.array([face])
            deviation = np.nan if record is None else record.face_deviations[face]
        else:
            raise NormalMeshError(f"{name} must be {what}, not {repr_for_error(given)}")
        depths = surface.camera.depth(surface.vertices[corners])
        weights = np.zeros(len(surface.vertices))
        depth, changes = surface.camera.depth_on_plane(hats, depths)
        # Heights increase towards the viewer.
        height, weights[corners] = surface.camera.towards_viewer * depth, surface.camera.towards_viewer * changes
        variance = float(deviation * weights[corners].sum()) ** 2
        area = max(float(np.abs(surface.mesh.areas[faces]).mean()), MIN_DOUBLE_AREA) if len(faces) else 1.0
        return cls(place, height, weights, int(corners[0]), variance, area)


def _located(surface: Surface, position: Float, name: str) -> tuple[int, Float]:
    """Return the face at a position (2,), and the weights (3,) of its corners."""
    corners = surface.screen[surface.faces]
    around = ((corners.min(axis=1) <= position) & (position <= corners.max(axis=1))).all(axis=1)
    faces = np.flatnonzero(around & (surface.mesh.areas > 0))
    if len(faces):
        hats = barycentric_rows(surface.mesh, np.tile(position, (len(faces), 1)), faces).data.reshape(-1, 3)
        best = int(hats.min(axis=1).argmax())
        if hats[best].min() >= _ON_EDGE:
            return int(faces[best]), hats[best]
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
            "the noise of the normals of this surface is not known, because it was made from a file; "
            "give the noise in degrees, such as noise=1.0 (normalmesh inspect estimates it)"
        )
    if len(record.degrees) != parts:
        raise NormalMeshError(
            f"the surface has {parts} connected parts but the noise of {len(record.degrees)} is known; "
            "give the noise in degrees, such as noise=1.0"
        )
    return shared_pixels(record.correlation) * np.radians(record.degrees) ** 2


def with_rounding(noises: Float, rounding: Noise) -> Float:
    """Return degrees and correlation (C, 2) of noises, or of rounding where heights see more of it."""
    degrees, correlation = noises.T
    own = shared_pixels(correlation) * degrees**2
    least = shared_pixels(np.array(rounding.correlation)) * rounding.degrees**2
    return np.where((own < least)[:, None], [rounding.degrees, rounding.correlation], noises)
