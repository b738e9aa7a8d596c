"""Cameras: how a point of the screen and one unknown make a point in space.

Both cameras are three things, which is all that the mathematics needs (space is right-handed, x right, y up,
z towards the viewer; screen is u right, v down, pixel (row i, column j) covers [j, j+1] × [i, i+1]):

- the tangents ``τ_u``, ``τ_v``: derivative of the base point with respect to u and v, constant over the image;
- the ray ``r(u, v)``: the direction along which the unknown z moves the surface, affine in u and v.

Everything else follows from ``⟨n, r⟩ ∂_i z + ⟨n, τ_i⟩ = 0`` for a normal n of the surface and i ∈ {u, v}.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import (
    checked_array,
    checked_choice,
    checked_finite,
    checked_image_shape,
    checked_path,
    checked_positive,
    checked_vectors,
)
from normalmesh.errors import NormalMeshError, shape_text

Float = NDArray[np.float64]

#: Lengths in pixels, and of pixels, whose squares and quotients stay far from the ends of float32 and float64.
LEAST, LARGEST = 1e-12, 1e12
#: Shortest focal length (px), and how many of them the principal point may be away; beyond, rays run along the image.
LEAST_FOCAL, FARTHEST = 1e-3, 1e6


class Camera(ABC):
    """The interface of :class:`Orthographic` and :class:`Perspective`."""

    #: +1 where the ray points towards the viewer, −1 where it points away from the viewer.
    towards_viewer: float

    @property
    @abstractmethod
    def frame(self) -> Float:
        """(5, 3): τ_u, τ_v and the ray's parts r₀, ∂_u r, ∂_v r with ``r(u, v) = r₀ + u ∂_u r + v ∂_v r``.

        This is all that a kernel needs to know of a camera.
        """

    @abstractmethod
    def points(self, screen: ArrayLike, unknown: ArrayLike) -> Float:
        """Points (..., 3) in space from screen positions (..., 2) and the unknown (...)."""

    @abstractmethod
    def depth(self, points: ArrayLike) -> Float:
        """Depth (...) of points (..., 3): orthographic, height towards the viewer; perspective, distance along z."""

    @property
    def tangents(self) -> tuple[Float, Float]:
        """τ_u and τ_v, (3,) each."""
        frame = self.frame
        return frame[0], frame[1]

    @property
    def pixel_length(self) -> float:
        """ℓ = √‖τ_u × τ_v‖, the length that counts as one pixel."""
        return float(np.sqrt(np.linalg.norm(np.cross(*self.tangents))))

    def rays(self, u: ArrayLike, v: ArrayLike) -> Float:
        """Rays r(u, v), (..., 3), not normalised."""
        _, _, origin, along_u, along_v = self.frame
        columns, rows = _positions(u, v)
        return origin + columns[..., None] * along_u + rows[..., None] * along_v

    def jacobian(self, normals: ArrayLike, u: ArrayLike, v: ArrayLike) -> Float:
        """Tangents J(n) = [τ_i − (⟨n, τ_i⟩ / ⟨n, r⟩) r] / ℓ for i = u, v, of shape (..., 3, 2).

        A step δu on the screen is the step ``J δu`` on the surface, in pixels. Normals (..., 3) at screen
        positions u, v (...).
        """
        n = checked_vectors(normals, 3, "normals")
        rays = self.rays(u, v)
        _refuse_unlike(normals=n[..., 0], u=rays[..., 0])
        along_ray = np.sum(n * rays, axis=-1)
        columns = [tau - ((n @ tau) / along_ray)[..., None] * rays for tau in self.tangents]
        return np.stack(columns, axis=-1) / self.pixel_length


def checked_distance(distance: object) -> float:
    """A distance from a camera, or an error."""
    number = checked_positive(distance, "distance")
    _refuse_extreme(number, "distance", LEAST)
    return number


def checked_camera(camera: object) -> Camera:
    """The camera, or an error where it is something else."""
    if not isinstance(camera, Camera):
        raise NormalMeshError(f"camera must be Orthographic(...) or Perspective(...), not {type(camera).__name__}")
    return camera


@dataclass(frozen=True)
class Orthographic(Camera):
    """Parallel rays. The unknown is the height z; a point is ``(s·u, −s·v, z)``.

    Parameters
    ----------
    pixel_size
        Side s of a pixel in the unit of the surface.
    """

    pixel_size: float = 1.0
    towards_viewer = 1.0

    def __post_init__(self) -> None:
        size = checked_positive(self.pixel_size, "pixel_size")
        _refuse_extreme(size, "pixel_size", LEAST)
        object.__setattr__(self, "pixel_size", size)

    @property
    def frame(self) -> Float:
        s = self.pixel_size
        return np.array([[s, 0, 0], [0, -s, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]], np.float64)

    def points(self, screen: ArrayLike, unknown: ArrayLike) -> Float:
        u, v, height = _lifted(screen, unknown)
        return np.stack([self.pixel_size * u, -self.pixel_size * v, height], axis=-1)

    def depth(self, points: ArrayLike) -> Float:
        return checked_vectors(points, 3, "points")[..., 2]


@dataclass(frozen=True)
class Perspective(Camera):
    """A pinhole. The unknown is the logarithm of the depth; a point is ``exp(z)·r(u, v)``.

    Parameters
    ----------
    fx, fy
        Focal lengths in pixels.
    cx, cy
        Principal point on the screen, where the first pixel's *centre* is (½, ½). Matrices of computer vision put
        it at (0, 0): use :meth:`from_matrix`.
    skew
        K[0, 1] of the camera matrix.
    """

    fx: float
    fy: float
    cx: float
    cy: float
    skew: float = 0.0
    towards_viewer = -1.0

    def __post_init__(self) -> None:
        for name in ("fx", "fy", "cx", "cy", "skew"):
            number = checked_finite(getattr(self, name), name)
            if name in ("fx", "fy") and number <= 0:
                raise NormalMeshError(
                    f"{name} must be a positive focal length in pixels, not {number:g}; "
                    "flip the image or its convention instead"
                )
            _refuse_extreme(number, name, LEAST_FOCAL if name in ("fx", "fy") else 0.0)
            object.__setattr__(self, name, number)
        if np.abs(self.frame).max() > FARTHEST:
            raise NormalMeshError(
                f"cx, cy and skew ({self.cx:g}, {self.cy:g}, {self.skew:g}) are more than {FARTHEST:g} focal lengths "
                "away from the image; check the unit of the camera matrix"
            )

    @classmethod
    def from_matrix(cls, K: ArrayLike, pixel_centre: str = "integer") -> Perspective:
        """Camera from a 3×3 matrix of intrinsics.

        Parameters
        ----------
        K
            (3, 3), ``[[fx, skew, cx], [0, fy, cy], [0, 0, 1]]`` up to scale.
        pixel_centre
            Where K puts the centre of the first pixel: ``"integer"`` (0, 0), as OpenCV and Matlab tools do after
            subtracting one, or ``"half"`` (½, ½), as graphics does. Half a pixel is visible in metrology.
        """
        checked_choice(pixel_centre, ("integer", "half"), "pixel_centre")
        matrix = checked_array(K, "the camera matrix").astype(np.float64)
        if matrix.shape != (3, 3):
            raise NormalMeshError(f"the camera matrix must be 3×3, not {shape_text(matrix.shape)}")
        if not np.all(np.isfinite(matrix)) or matrix[2, 2] == 0 or np.any(matrix[[1, 2, 2], [0, 0, 1]] != 0):
            raise NormalMeshError(
                "the camera matrix must read [[fx, skew, cx], [0, fy, cy], [0, 0, 1]]; "
                f"got {matrix.tolist()} (transposed, or not the intrinsics?)"
            )
        (fx, skew, cx), (_, fy, cy), _ = (matrix / matrix[2, 2]).tolist()
        shift = 0.5 if pixel_centre == "integer" else 0.0
        return cls(fx, fy, cx + shift, cy + shift, skew)

    @classmethod
    def from_file(cls, path: str | PathLike[str], pixel_centre: str = "integer") -> Perspective:
        """Camera from a file that holds the 3×3 matrix: text, NPY, JSON, or YAML as OpenCV writes it."""
        from normalmesh.files.cameras import read_camera_matrix

        K = read_camera_matrix(checked_path(path))
        try:
            return cls.from_matrix(K, pixel_centre)
        except NormalMeshError as error:
            raise NormalMeshError(f"{path}: {error}") from error

    @classmethod
    def centred(cls, focal_length: float, shape: tuple[int, int]) -> Perspective:
        """Camera with square pixels and its principal point in the middle of an image.

        Parameters
        ----------
        focal_length
            In pixels.
        shape
            Rows and columns of the image.
        """
        rows, columns = checked_image_shape(shape)
        focal_length = checked_positive(focal_length, "focal_length")
        _refuse_extreme(focal_length, "focal_length", LEAST_FOCAL)
        return cls(focal_length, focal_length, columns / 2, rows / 2)

    @property
    def frame(self) -> Float:
        tau_u = [1 / self.fx, 0, 0]
        tau_v = [-self.skew / (self.fx * self.fy), -1 / self.fy, 0]
        origin = [-(self.cx - self.skew * self.cy / self.fy) / self.fx, self.cy / self.fy, -1]
        return np.array([tau_u, tau_v, origin, tau_u, tau_v], np.float64)

    def points(self, screen: ArrayLike, unknown: ArrayLike) -> Float:
        u, v, logarithm = _lifted(screen, unknown)
        return np.exp(logarithm)[..., None] * self.rays(u, v)

    def depth(self, points: ArrayLike) -> Float:
        return -checked_vectors(points, 3, "points")[..., 2]


def _refuse_extreme(number: float, name: str, least: float) -> None:
    if not least <= abs(number) <= LARGEST:
        raise NormalMeshError(f"{name} must lie between {least or -LARGEST:g} and {LARGEST:g}, not {number:g}")


def _positions(u: ArrayLike, v: ArrayLike) -> tuple[Float, Float]:
    """Screen positions that fit together."""
    columns, rows = np.asarray(checked_array(u, "u"), np.float64), np.asarray(checked_array(v, "v"), np.float64)
    _refuse_unlike(u=columns, v=rows)
    return columns, rows


def _lifted(screen: ArrayLike, unknown: ArrayLike) -> tuple[Float, Float, Float]:
    """u, v and the unknown, of one shape."""
    u, v = np.moveaxis(checked_vectors(screen, 2, "screen"), -1, 0)
    values = np.asarray(checked_array(unknown, "unknown"), np.float64)
    if values.shape != u.shape:
        raise NormalMeshError(
            f"unknown is {shape_text(values.shape)} but screen has positions of {shape_text(u.shape)}"
        )
    return u, v, values


def _refuse_unlike(**arrays: Float) -> None:
    """An error where two arrays cannot be combined."""
    (first, one), (second, two) = arrays.items()
    try:
        np.broadcast_shapes(one.shape, two.shape)
    except ValueError as error:
        raise NormalMeshError(
            f"{first} is {shape_text(one.shape)} but {second} is {shape_text(two.shape)}; they must be of one shape"
        ) from error
