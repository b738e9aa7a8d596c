"""Flattening: taking the tilt, and the bend, of the whole away from the heights of a surface."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from normalmesh.arguments import checked_choice
from normalmesh.array_types import Float, Int32
from normalmesh.errors import NormalMeshError, NormalMeshWarning
from normalmesh.mesh.components import components
from normalmesh.mesh.cut_mesh import slit_heights, slits
from normalmesh.mesh.walls import RELIEF

if TYPE_CHECKING:
    from normalmesh.mesh.surface import Surface


#: Terms of each shape that can be taken away, as powers of x and y.
SHAPES = {
    "plane": ((1, 0), (0, 1)),
    "quadratic": ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2)),
}
#: Most rounds of the robust fit, and the change of the residuals, as a share of the extent, at which it ends.
ROUNDS, MAX_CHANGE = 200, 1e-7
#: A relief is tilted if the plane rises by at least this share of the range of the other heights; rounds of the fit
#: that tells so.
TILTED, TOLD = 0.2, 20
#: Tilt in degrees above which a shear and a rotation differ visibly, by more than 1.5 % in length.
STEEP = 10.0


@dataclass(frozen=True, eq=False)
class Flattening:
    """What :meth:`Surface.flattened` took away from the heights.

    The heights taken away are ``a·X + b·Y (+ c·X² + d·X·Y + e·Y²)``, with X and Y relative to the centre, and one
    constant for each component.

    Attributes
    ----------
    shape
        ``"plane"`` or ``"quadratic"``.
    coefficients
        (2,) or (5,): a, b, c, d, e.
    centre
        (2,) x and y of the centre.
    constants
        (C,) height at the centre, for each component.
    bow
        How far the bent part deviates from a plane over the surface, from its lowest to its highest point; zero for a
        plane.
    width
        Extent of the surface over which it bows, the larger one of x and y.
    units
        Unit of lengths.
    strength
        Factor by which the heights were multiplied afterwards. All other numbers are those of before.
    """

    shape: str
    coefficients: Float
    centre: Float
    constants: Float
    bow: float
    width: float
    units: str
    strength: float = 1.0

    @property
    def tilt(self) -> float:
        """Angle in degrees between the plane, or the tangent at the centre, and the image."""
        return math.degrees(math.atan(math.hypot(*self.coefficients[:2])))

    @property
    def direction(self) -> float:
        """Direction in which it rose, in degrees from 0 to 360: 0 is right, 90 up in the image."""
        return math.degrees(math.atan2(self.coefficients[1], self.coefficients[0])) % 360

    def heights(self, x: Float, y: Float, components: Int32) -> Float:
        """Return what the heights (N,) lack at positions (N,) of components (N,)."""
        terms = _terms(self.shape, x - self.centre[0], y - self.centre[1])
        return self.strength * (terms @ self.coefficients + self.constants[components])

    def slopes(self, x: Float, y: Float) -> tuple[Float, Float]:
        """Return the slopes (N,) along x and y that the heights lack at positions (N,)."""
        a, b, c, d, e = self.strength * np.append(self.coefficients, np.zeros(5 - len(self.coefficients)))
        right, up = x - self.centre[0], y - self.centre[1]
        return a + 2 * c * right + d * up, b + d * right + 2 * e * up

    def __str__(self) -> str:
        text = f"tilt {self.tilt:.2f}°"
        if self.tilt >= 0.005:
            text += f", rising towards {self.direction:.0f}° (0° right, 90° up)"
        if self.shape == "quadratic":
            text += f"; bow {self.bow:.3g} {self.units} over {self.width:.4g} {self.units}"
        return f"{self.shape}: {text}"


def flattened(surface: Surface, shape: str) -> Surface:
    """Take the best plane or quadratic away from the heights; see :meth:`Surface.flattened`."""
    checked_choice(shape, SHAPES, "shape")
    surface.camera.require_heights(
        "flattening needs a surface of an orthographic camera: for a perspective one, taking a plane away from the "
        "depths would bend straight lines; rotate the mesh instead"
    )
    if surface.repeats is not None:
        raise NormalMeshError(
            "a surface that repeats cannot be flattened: its opposite sides would no longer meet; its mean slope is "
            "taken away already"
        )
    if surface.flattening is not None:
        raise NormalMeshError(f"the surface is flattened already ({surface.flattening}): flatten the one before")
    found = _fit(surface, shape)
    if found.tilt > STEEP:
        warnings.warn(
            f"a tilt of {found.tilt:.1f}° was taken away by a shear, which keeps the image but shortens lengths along "
            f"the tilt by {100 * (1 - math.cos(math.radians(found.tilt))):.0f} %",
            NormalMeshWarning,
            stacklevel=3,
        )
    x, y, z = surface.vertices.T
    return _with_heights(surface, z - found.heights(x, y, surface.components), found)


def relief_tilt(surface: Surface) -> Flattening | None:
    """Return the plane that a relief is tilted by; None if it is no relief, or hardly tilted.

    Normal maps hold the tilt only as a mean of 8-bit numbers: a flat that is stored as (127, 128, 255) is tilted by
    0.3°. A terrain may well be tilted, so it is told and not taken away.
    """
    rows, columns = surface.shape
    is_relief = surface.camera.gauge == "offset" and np.abs(surface.mesh.areas).sum() >= RELIEF * rows * columns
    if not is_relief or surface.repeats is not None or surface.flattening is not None:
        return None
    found = _fit(surface, "plane", TOLD)
    x, y, z = surface.vertices.T
    plane = found.heights(x, y, surface.components)
    return found if np.ptp(plane) >= TILTED * np.ptp(z - plane) else None


def restored(surface: Surface) -> Surface:
    """Return the surface with the heights that were taken away; itself if none were."""
    if surface.flattening is None:
        return surface
    x, y, z = surface.vertices.T
    return _with_heights(surface, z + surface.flattening.heights(x, y, surface.components), None)


def _with_heights(surface: Surface, heights: Float, flattening: Flattening | None) -> Surface:
    """Return the surface with other heights (N,), and with the jumps of those."""
    jumps = surface.discontinuities
    if jumps is not None:
        screen, across = slit_heights(surface.mesh, heights)
        jumps = replace(jumps, screen=screen, jumps=across)
    vertices = np.column_stack([surface.vertices[:, :2], heights])
    return replace(surface, vertices=vertices, discontinuities=jumps, flattening=flattening)


def _fit(surface: Surface, shape: str, rounds: int = ROUNDS) -> Flattening:
    """Fit a shape to the heights of faces with the least sum of absolute deviations, weighted by area.

    Unlike least squares, it hardly sees relief on a small share of the area, however high; unlike fits that ignore
    outliers, it has one minimum. It is found by least squares with weights.
    """
    points = surface.vertices[surface.faces].mean(axis=1)
    area = np.abs(surface.mesh.areas)
    extent = max(np.ptp(surface.vertices[:, 0]), np.ptp(surface.vertices[:, 1]))
    if not (area.sum() > 0 and extent > 0):
        raise NormalMeshError("the surface has no area to flatten")
    objects = _objects(surface)
    component, count = objects[surface.components[surface.faces[:, 0]]], int(objects.max()) + 1
    centre = np.average(points[:, :2], axis=0, weights=area)
    # In units of the extent, so that all terms are of similar size.
    terms = _terms(shape, *((points[:, :2] - centre) / extent).T)
    values, weights = points[:, 2], area
    residuals = np.zeros(len(values))
    for _ in range(rounds):
        before = residuals
        coefficients, constants = _solved(terms, values, component, count, weights)
        residuals = np.abs(values - terms @ coefficients - constants[component])
        if np.abs(residuals - before).max() <= MAX_CHANGE * extent:
            break
        weights = area / np.maximum(residuals, MAX_CHANGE * extent)
    powers = np.array(SHAPES[shape]).sum(axis=1)
    coefficients = coefficients / extent**powers
    x, y = (surface.vertices[:, :2] - centre).T
    bent = _terms(shape, x, y)[:, 2:] @ coefficients[2:]
    bow = float(np.ptp(bent))
    return Flattening(shape, coefficients, centre, constants[objects], bow, float(extent), surface.units)


def _objects(surface: Surface) -> Int32:
    """Return the number (C,) of the object that each component is part of: only jumps separate parts of an object."""
    of_face = surface.components[surface.faces[:, 0]]
    pairs = np.stack([of_face[corners // 3] for corners in slits(surface.mesh)], axis=1)
    return components(pairs, int(surface.components.max()) + 1)


def _solved(terms: Float, values: Float, component: Int32, count: int, weights: Float) -> tuple[Float, Float]:
    """Return the coefficients of common terms (M, K), and one constant (C,) for each component, by least squares."""
    total = np.maximum(np.bincount(component, weights, minlength=count), 1e-300)

    def means(column: Float) -> Float:
        return np.bincount(component, weights * column, minlength=count) / total

    # Relative to the means of the components, the constants drop out.
    term_means = np.stack([means(column) for column in terms.T], axis=1)
    value_means = means(values)
    root = np.sqrt(weights)
    system = root[:, None] * (terms - term_means[component])
    # A component of one face, or one row of pixels, leaves some terms open: the least ones are taken.
    solution = np.linalg.lstsq(system, root * (values - value_means[component]), rcond=1e-9)[0]
    coefficients = np.asarray(solution, np.float64)
    return coefficients, value_means - term_means @ coefficients


def _terms(shape: str, x: Float, y: Float) -> Float:
    """Return the terms (N, K) of a shape at positions (N,)."""
    return np.stack([x**i * y**j for i, j in SHAPES[shape]], axis=1)
