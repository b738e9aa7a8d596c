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

from normalmesh.errors import NormalMeshError, shape_text

Float = NDArray[np.float64]


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
        columns = np.asarray(u, np.float64)[..., None]
        rows = np.asarray(v, np.float64)[..., None]
        return origin + columns * along_u + rows * along_v

    def jacobian(self, normals: ArrayLike, u: ArrayLike, v: ArrayLike) -> Float:
        """Tangents J(n) = [τ_i − (⟨n, τ_i⟩ / ⟨n, r⟩) r] / ℓ for i = u, v, of shape (..., 3, 2).

        A step δu on the screen is the step ``J δu`` on the surface, in pixels. Normals (..., 3) at screen
        positions u, v (...).
        """
        n = np.asarray(normals, np.float64)
        rays = self.rays(u, v)
        along_ray = np.sum(n * rays, axis=-1)
        columns = [tau - ((n @ tau) / along_ray)[..., None] * rays for tau in self.tangents]
        return np.stack(columns, axis=-1) / self.pixel_length


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
        if not (np.isfinite(self.pixel_size) and self.pixel_size > 0):
            raise NormalMeshError(f"pixel_size must be a positive number, not {self.pixel_size}")

    @property
    def frame(self) -> Float:
        s = self.pixel_size
        return np.array([[s, 0, 0], [0, -s, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]], np.float64)

    def points(self, screen: ArrayLike, unknown: ArrayLike) -> Float:
        u, v = np.moveaxis(np.asarray(screen, np.float64), -1, 0)
        return np.stack([self.pixel_size * u, -self.pixel_size * v, np.asarray(unknown, np.float64)], axis=-1)

    def depth(self, points: ArrayLike) -> Float:
        return np.asarray(points, np.float64)[..., 2]


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
            if not np.isfinite(getattr(self, name)):
                raise NormalMeshError(f"{name} must be a finite number, not {getattr(self, name)}")
        for name in ("fx", "fy"):
            if getattr(self, name) <= 0:
                raise NormalMeshError(
                    f"{name} must be a positive focal length in pixels, not {getattr(self, name)}; "
                    "flip the image or its convention instead"
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
        if pixel_centre not in ("integer", "half"):
            raise NormalMeshError(f"pixel_centre must be 'integer' or 'half', not {pixel_centre!r}")
        try:
            matrix = np.asarray(K, np.float64)
        except (TypeError, ValueError) as error:
            raise NormalMeshError("the camera matrix must hold numbers") from error
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

        K = read_camera_matrix(path)
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
        rows, columns = shape
        return cls(focal_length, focal_length, columns / 2, rows / 2)

    @property
    def frame(self) -> Float:
        tau_u = [1 / self.fx, 0, 0]
        tau_v = [-self.skew / (self.fx * self.fy), -1 / self.fy, 0]
        origin = [-(self.cx - self.skew * self.cy / self.fy) / self.fx, self.cy / self.fy, -1]
        return np.array([tau_u, tau_v, origin, tau_u, tau_v], np.float64)

    def points(self, screen: ArrayLike, unknown: ArrayLike) -> Float:
        u, v = np.moveaxis(np.asarray(screen, np.float64), -1, 0)
        return np.exp(np.asarray(unknown, np.float64))[..., None] * self.rays(u, v)

    def depth(self, points: ArrayLike) -> Float:
        return -np.asarray(points, np.float64)[..., 2]
