"""Cameras: how a point of the screen and one unknown make a point in space.

What differs between cameras is asked of the camera: nothing outside this module looks at its class. A new kind of
camera derives from :class:`ParallelCamera`, whose unknown is a height, or from :class:`CentralCamera`, whose unknown is
the logarithm of a depth, in a module of its own beside :mod:`.orthographic` and :mod:`.perspective`.

Space is right-handed: x right, y up, z towards the viewer. The screen is u right, v down; the pixel in row i and column
j covers [j, j+1] × [i, i+1]. The mathematics needs three things of a camera:

- the tangents ``τ_u``, ``τ_v``: derivative of the base point with respect to u and v, constant over the image;
- the ray ``r(u, v)``: the direction along which the unknown z moves the surface, affine in u and v.

Everything else follows from ``⟨n, r⟩ ∂_i z + ⟨n, τ_i⟩ = 0`` for a normal n of the surface and i ∈ {u, v}. Kernels take
both as one :attr:`Camera.frame`. A lens that bends straight lines, such as a fisheye, has other tangents at each pixel:
it needs tangents by position here and in :mod:`normalmesh.normals._camera`, and in what takes :attr:`Camera.frame` or
:attr:`Camera.tangents`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from normalmesh.arguments import checked_array, checked_choice, checked_positive, checked_vectors
from normalmesh.array_types import Float
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.runtime.exponential import exp, log

#: Lengths in pixels, and of pixels, whose squares and quotients stay far from the limits of float32 and float64.
MIN_LENGTH, MAX_LENGTH = 1e-12, 1e12
#: Added to the principal point of a matrix, by where the matrix puts the centre of the first pixel: (0, 0) or (½, ½).
PIXEL_CENTRES = {"integer": 0.5, "half": 0.0}
#: Largest coordinate that float32, and so most files, can hold.
MAX_COORDINATE = 3e38
#: Largest logarithm of a depth, which leaves a margin for points far off the optical axis.
MAX_LOGARITHM = 70.0


class CameraArrays(NamedTuple):
    """The numbers of a camera, as kernels take them; only :mod:`normalmesh.normals._camera` takes them apart."""

    frame: Float  # (5, 3), see :attr:`Camera.frame`
    towards_viewer: float  # +1 if rays point towards the viewer, −1 if they point away
    scale: float  # pixels in one unit of length, 1/ℓ
    is_central: bool  # the unknown of integration is then the logarithm of the depth


class Camera(ABC):
    """The interface of all cameras, such as :class:`Orthographic` and :class:`Perspective`."""

    #: +1 if the ray points towards the viewer, −1 if it points away from the viewer.
    towards_viewer: float
    #: Whether all rays meet in one point, the origin.
    is_central: bool
    #: What normals leave open of a surface: an ``"offset"`` of its heights, or the ``"scale"`` of its depths.
    gauge: Literal["offset", "scale"]
    #: Name of the unit of depths unless another one is known.
    default_units: str
    #: Largest absolute value of the unknown whose points are in the range of numbers.
    max_unknown: float

    @property
    @abstractmethod
    def frame(self) -> Float:
        """(5, 3): τ_u, τ_v and the ray's parts r₀, ∂_u r, ∂_v r with ``r(u, v) = r₀ + u ∂_u r + v ∂_v r``.

        This is all that a kernel needs to know of a camera, besides its flags.
        """

    @abstractmethod
    def points(self, screen: ArrayLike, unknown: ArrayLike) -> Float:
        """Return points (..., 3) in space from screen positions (..., 2) and the unknown (...)."""

    def depth(self, points: ArrayLike) -> Float:
        """Return the depth (...) of points (..., 3): height towards the viewer, or distance along the optical axis."""
        return self.towards_viewer * checked_vectors(points, 3, "points")[..., 2]

    @abstractmethod
    def depth_of_unknown(self, unknown: Float, out: Float | None = None) -> Float:
        """Return the depth (...) that belongs to the unknown (...), in ``out`` if that is given."""

    @abstractmethod
    def unknown_of_depth(self, depth: Float) -> Float:
        """Return the unknown (...) that belongs to a depth (...)."""

    @abstractmethod
    def depth_per_unknown(self, depth: Float) -> Float:
        """Return the derivative (...) of the depth with respect to the unknown, where the depth is ``depth`` (...)."""

    def depth_on_plane(self, weights: Float, depths: Float) -> tuple[float, Float]:
        """Return the depth of a point of a triangle in space, and its derivatives (3,) by the unknown at the corners.

        ``weights`` (3,) are barycentric coordinates on the screen, ``depths`` (3,) those of the corners.
        """
        return float(weights @ depths), weights

    def bends(self, weights: Float, unknown: Float) -> Float:
        """Return by how much (K,) the unknown on triangles in space exceeds its interpolation on the screen.

        ``weights`` (K, 3) are barycentric coordinates of points, ``unknown`` (K, 3) that of the corners.
        """
        return np.zeros(len(unknown))

    @abstractmethod
    def ray_starts(self, u: Float, v: Float) -> Float:
        """Return the point (..., 3) on the viewing ray of each screen position from which :meth:`rays` counts."""

    def screen(self, points: ArrayLike) -> Float:
        """Return the screen positions (..., 2) at which points (..., 3) are seen; NaN for points behind the camera.

        A point is ``u τ_u + v τ_v + z r₀``, or, seen by a central camera, a multiple of ``u τ_u + v τ_v + r₀``.
        """
        given = checked_vectors(points, 3, "points")
        axes = np.column_stack([*self.tangents, self.rays(0.0, 0.0)])
        places = np.linalg.solve(axes, given.reshape(-1, 3).T).T.astype(np.float64)
        if self.is_central:
            depth = places[:, 2:]
            places = np.divide(places, depth, out=np.full_like(places, np.nan), where=depth > 0)
        return places[:, :2].reshape(*given.shape[:-1], 2)

    def require_heights(self, message: str) -> None:
        """Raise :class:`NormalMeshError` with a message unless surfaces have heights, which may be changed."""
        if self.gauge == "scale":
            raise NormalMeshError(message)

    def check_depths(self, depths: Float, name: str) -> None:
        """Raise :class:`NormalMeshError` if the camera cannot see a point at one of these depths; NaN is ignored."""
        if self.is_central and np.any(depths <= 0):
            raise NormalMeshError(
                f"{name} must be positive distances along the optical axis, in front of the camera; "
                f"the smallest is {np.nanmin(depths):g}"
            )

    @property
    def reference_depth(self) -> float:
        """Depth of the plane on which synthetic surfaces and fitted models stand: zero, or focal length in pixels."""
        return 1 / self.pixel_length if self.is_central else 0.0

    @property
    def reference_pixel(self) -> float:
        """Side of a pixel on the plane at :attr:`reference_depth`."""
        return self.pixel_side or 1.0

    @property
    def pixel_side(self) -> float | None:
        """Side of a pixel in space; None if it depends on the depth."""
        return None if self.is_central else self.pixel_length

    @abstractmethod
    def describe(self) -> str:
        """Return the camera in words, for people."""

    def __str__(self) -> str:
        return self.describe()

    def matrix(self, pixel_centre: str = "integer") -> Float | None:
        """Return the matrix (3, 3) of intrinsics as :meth:`Perspective.from_matrix` takes it; None if there is none."""
        checked_choice(pixel_centre, PIXEL_CENTRES, "pixel_centre")
        return None

    def shifted(self, u: float, v: float) -> Camera:
        """Return the camera of an image whose origin is at the screen position (u, v) of this one: a part of it."""
        raise self._fixed("cropped")

    def resampled(self, across: float, down: float) -> Camera:
        """Return the camera of the same image with ``across`` and ``down`` times as many columns and rows."""
        raise self._fixed("resized")

    def turned(self, quarters: int, shape: tuple[int, int]) -> Camera:
        """Return the camera after image and space are turned anticlockwise by 0 to 3 right angles.

        ``shape``: rows and columns before.
        """
        raise self._fixed("rotated")

    def _fixed(self, done: str) -> NormalMeshError:
        """Return the error for a camera whose image cannot be changed."""
        return NormalMeshError(f"maps of this camera ({self.describe()}) cannot be {done}; change their image before")

    @property
    def tangents(self) -> tuple[Float, Float]:
        """τ_u and τ_v, each of shape (3,)."""
        tangent_u, tangent_v, *_ = self.frame
        return tangent_u, tangent_v

    @property
    def pixel_length(self) -> float:
        """ℓ = √‖τ_u × τ_v‖, the length that counts as one pixel."""
        # For three numbers, np.cross takes longer than all else.
        (a, b, c), (d, e, f) = (tangent.tolist() for tangent in self.tangents)
        return float(np.sqrt(np.linalg.norm([b * f - c * e, c * d - a * f, a * e - b * d])))

    @property
    def arrays(self) -> CameraArrays:
        """The camera as kernels take it."""
        return CameraArrays(self.frame, self.towards_viewer, 1.0 / self.pixel_length, self.is_central)

    def rays(self, u: ArrayLike, v: ArrayLike) -> Float:
        """Return the rays r(u, v), (..., 3), not normalised."""
        _, _, origin, along_u, along_v = self.frame
        columns, rows = np.asarray(checked_array(u, "u"), np.float64), np.asarray(checked_array(v, "v"), np.float64)
        _refuse_unlike(u=columns, v=rows)
        return origin + columns[..., None] * along_u + rows[..., None] * along_v

    def to_viewer(self, u: ArrayLike, v: ArrayLike) -> Float:
        """Return the unit vectors (..., 3) from screen positions u, v (...) towards the viewer."""
        towards = self.towards_viewer * self.rays(u, v)
        towards /= np.linalg.norm(towards, axis=-1, keepdims=True)
        return towards

    def shifted_frame(self, u: float, v: float) -> Float:
        """Return the :attr:`frame` of an image whose origin is at the screen position (u, v) of this one."""
        frame = self.frame.copy()
        frame[2] += u * frame[3] + v * frame[4]
        return frame

    def jacobian(self, normals: ArrayLike, u: ArrayLike, v: ArrayLike) -> Float:
        """Return the tangents J(n) = [τ_i − (⟨n, τ_i⟩ / ⟨n, r⟩) r] / ℓ for i = u, v, of shape (..., 3, 2).

        A step δu on the screen is the step ``J δu`` on the surface, in pixels. Normals (..., 3) at screen
        positions u, v (...).
        """
        n = checked_vectors(normals, 3, "normals")
        rays = self.rays(u, v)
        _refuse_unlike(normals=n[..., 0], u=rays[..., 0])
        along_ray = np.sum(n * rays, axis=-1)
        columns = [tau - ((n @ tau) / along_ray)[..., None] * rays for tau in self.tangents]
        return np.stack(columns, axis=-1) / self.pixel_length


class ParallelCamera(Camera):
    """A camera whose rays are parallel. The unknown is the height z, and so is the depth."""

    towards_viewer = 1.0
    is_central = False
    gauge = "offset"
    default_units = "px"
    max_unknown = MAX_COORDINATE

    def depth_of_unknown(self, unknown: Float, out: Float | None = None) -> Float:
        if out is None:
            return unknown
        out[...] = unknown
        return out

    def unknown_of_depth(self, depth: Float) -> Float:
        return depth

    def depth_per_unknown(self, depth: Float) -> Float:
        return np.ones_like(depth)

    def ray_starts(self, u: Float, v: Float) -> Float:
        tau_u, tau_v = self.tangents
        return u[..., None] * tau_u + v[..., None] * tau_v


class CentralCamera(Camera):
    """A camera at the origin, where all rays meet. The unknown is the logarithm of the depth.

    A point is ``exp(z)·r(u, v)``; its depth is the distance along the optical axis, −z.
    """

    towards_viewer = -1.0
    is_central = True
    gauge = "scale"
    default_units = "units"
    max_unknown = MAX_LOGARITHM

    def points(self, screen: ArrayLike, unknown: ArrayLike) -> Float:
        u, v, logarithm = checked_screen_and_unknown(screen, unknown)
        return exp(logarithm)[..., None] * self.rays(u, v)

    def depth_of_unknown(self, unknown: Float, out: Float | None = None) -> Float:
        return exp(unknown, out=out)

    def unknown_of_depth(self, depth: Float) -> Float:
        return log(depth)

    def depth_per_unknown(self, depth: Float) -> Float:
        return depth

    def depth_on_plane(self, weights: Float, depths: Float) -> tuple[float, Float]:
        # Reciprocals of depths are linear on a plane.
        depth = 1 / float(weights @ (1 / depths))
        return depth, depth**2 * weights / depths

    def bends(self, weights: Float, unknown: Float) -> Float:
        linear = (weights * unknown).sum(axis=1)
        return -log((weights * exp(linear[:, None] - unknown)).sum(axis=1))

    def ray_starts(self, u: Float, v: Float) -> Float:
        return np.zeros((*np.broadcast_shapes(u.shape, v.shape), 3))


def checked_distance(distance: object) -> float:
    """Return a distance from a camera as a float, or raise :class:`NormalMeshError`."""
    number = checked_positive(distance, "distance")
    check_magnitude(number, "distance", MIN_LENGTH)
    return number


def checked_camera(camera: object, expected: str = "Orthographic(...) or Perspective(...)") -> Camera:
    """Return the camera, or raise :class:`NormalMeshError` if it is something else."""
    if not isinstance(camera, Camera):
        raise NormalMeshError(f"camera must be {expected}, not {type(camera).__name__}")
    return camera


def check_magnitude(number: float, name: str, least: float) -> None:
    """Raise :class:`NormalMeshError` if a number is larger than :data:`MAX_LENGTH`, or smaller than ``least``."""
    if not least <= abs(number) <= MAX_LENGTH:
        raise NormalMeshError(f"{name} must lie between {least or -MAX_LENGTH:g} and {MAX_LENGTH:g}, not {number:g}")


def checked_screen_and_unknown(screen: ArrayLike, unknown: ArrayLike) -> tuple[Float, Float, Float]:
    """Return u, v and the unknown, of the same shape."""
    u, v = np.moveaxis(checked_vectors(screen, 2, "screen"), -1, 0)
    values = np.asarray(checked_array(unknown, "unknown"), np.float64)
    if values.shape != u.shape:
        raise NormalMeshError(
            f"unknown is {shape_text(values.shape)} but screen has positions of {shape_text(u.shape)}"
        )
    return u, v, values


def _refuse_unlike(**arrays: Float) -> None:
    """Raise :class:`NormalMeshError` if two arrays cannot be broadcast together."""
    (first, one), (second, two) = arrays.items()
    try:
        np.broadcast_shapes(one.shape, two.shape)
    except ValueError as error:
        raise NormalMeshError(
            f"{first} is {shape_text(one.shape)} but {second} is {shape_text(two.shape)}; they must be of one shape"
        ) from error
