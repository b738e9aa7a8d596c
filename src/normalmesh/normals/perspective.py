"""The perspective camera: a pinhole with the intrinsics of computer vision."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike

from normalmesh.arguments import (
    checked_array,
    checked_choice,
    checked_finite,
    checked_image_shape,
    checked_path,
    checked_positive,
)
from normalmesh.array_types import Float
from normalmesh.errors import NormalMeshError, path_text, shape_text
from normalmesh.normals.camera import PIXEL_CENTRES, CentralCamera, check_magnitude

#: Shortest focal length (px), and how many of them the principal point may be away; beyond, rays run along the image.
MIN_FOCAL_LENGTH, MAX_OFFSET = 1e-3, 1e6
#: Least field of view in degrees, and least difference to a half-space.
MIN_FOV = 1e-3


@dataclass(frozen=True)
class Perspective(CentralCamera):
    """A perspective camera (pinhole). The unknown z is the logarithm of the depth; a point is ``exp(z)·r(u, v)``.

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

    def __post_init__(self) -> None:
        for name in ("fx", "fy", "cx", "cy", "skew"):
            number = checked_finite(getattr(self, name), name)
            if name in ("fx", "fy") and number <= 0:
                raise NormalMeshError(
                    f"{name} must be a positive focal length in pixels, not {number:g}; "
                    "flip the image or its convention instead"
                )
            check_magnitude(number, name, MIN_FOCAL_LENGTH if name in ("fx", "fy") else 0.0)
            object.__setattr__(self, name, number)
        if np.abs(self.frame).max() > MAX_OFFSET:
            raise NormalMeshError(
                f"cx, cy and skew ({self.cx:g}, {self.cy:g}, {self.skew:g}) are more than {MAX_OFFSET:g} focal lengths "
                "away from the image; check the unit of the camera matrix"
            )

    @classmethod
    def from_matrix(cls, K: ArrayLike, pixel_centre: str = "integer") -> Perspective:
        """Return the camera of a 3×3 matrix of intrinsics.

        Parameters
        ----------
        K
            (3, 3), ``[[fx, skew, cx], [0, fy, cy], [0, 0, 1]]`` up to scale.
        pixel_centre
            Where K puts the centre of the first pixel: ``"integer"`` (0, 0), as OpenCV and Matlab tools do after
            subtracting one, or ``"half"`` (½, ½), as graphics does. Half a pixel is visible in metrology.
        """
        checked_choice(pixel_centre, PIXEL_CENTRES, "pixel_centre")
        matrix = checked_array(K, "the camera matrix").astype(np.float64)
        if matrix.shape != (3, 3):
            raise NormalMeshError(f"the camera matrix must be 3×3, not {shape_text(matrix.shape)}")
        if not np.all(np.isfinite(matrix)) or matrix[2, 2] == 0 or np.any(matrix[[1, 2, 2], [0, 0, 1]] != 0):
            raise NormalMeshError(
                "the camera matrix must read [[fx, skew, cx], [0, fy, cy], [0, 0, 1]]; "
                f"got {matrix.tolist()} (transposed, or not the intrinsics?)"
            )
        (fx, skew, cx), (_, fy, cy), _ = (matrix / matrix[2, 2]).tolist()
        shift = PIXEL_CENTRES[pixel_centre]
        return cls(fx, fy, cx + shift, cy + shift, skew)

    @classmethod
    def from_file(cls, path: str | PathLike[str], pixel_centre: str = "integer") -> Perspective:
        """Return the camera of a file that holds the 3×3 matrix: text, NPY, JSON, or YAML as OpenCV writes it."""
        from normalmesh.maps.cameras import read_camera_matrix

        K = read_camera_matrix(checked_path(path))
        try:
            return cls.from_matrix(K, pixel_centre)
        except NormalMeshError as error:
            raise NormalMeshError(f"{path_text(path)}: {error}") from error

    @classmethod
    def centred(cls, focal_length: float, shape: tuple[int, int]) -> Perspective:
        """Return a camera with square pixels and its principal point in the middle of an image.

        Parameters
        ----------
        focal_length
            In pixels.
        shape
            Rows and columns of the image.
        """
        rows, columns = checked_image_shape(shape)
        focal_length = checked_positive(focal_length, "focal_length")
        check_magnitude(focal_length, "focal_length", MIN_FOCAL_LENGTH)
        return cls(focal_length, focal_length, columns / 2, rows / 2)

    @classmethod
    def from_fov(cls, degrees: float, shape: tuple[int, int], axis: str = "horizontal") -> Perspective:
        """Return a centred camera with square pixels from its field of view.

        Parameters
        ----------
        degrees
            Angle between the rays through the middles of two opposite sides, or through two opposite corners.
        shape
            Rows and columns of the image.
        axis
            ``"horizontal"`` (left to right), ``"vertical"``, as in game engines, ``"diagonal"``, as for lenses, or
            ``"longer"``, the longer side, as in Blender.
        """
        rows, columns = checked_image_shape(shape)
        extents = {
            "horizontal": columns,
            "vertical": rows,
            "diagonal": math.hypot(rows, columns),
            "longer": max(rows, columns),
        }
        extent = extents[checked_choice(axis, extents, "axis")]
        expected = f"a field of view between 0 and 180 degrees, from {MIN_FOV:g} to {180 - MIN_FOV:g}"
        angle = checked_positive(degrees, "degrees", expected)
        if not MIN_FOV <= angle <= 180 - MIN_FOV:
            raise NormalMeshError(f"degrees must be {expected}, not {angle!r}")
        return cls.centred(extent / 2 / math.tan(math.radians(angle) / 2), (rows, columns))

    @classmethod
    def from_exif(cls, path: str | PathLike[str], shape: tuple[int, int] | None = None) -> Perspective:
        """Return a centred camera with square pixels from the focal length in the EXIF data of a photograph.

        The focal length comes from the lens and the resolution of the sensor, or from the equivalent on film of 35 mm,
        which is rounded: expect errors of some percent.

        Parameters
        ----------
        path
            JPEG, TIFF or PNG file.
        shape
            Rows and columns of the map of the same view, at any resolution; default: those of the photograph.

        Raises
        ------
        NormalMeshError
            There is no focal length in the file, or the map shows only a part of the photograph.
        """
        from normalmesh.maps.cameras import exif_focal_px

        given = None if shape is None else checked_image_shape(shape)
        return cls.centred(*exif_focal_px(checked_path(path), given))

    @property
    def frame(self) -> Float:
        tau_u = [1 / self.fx, 0, 0]
        tau_v = [-self.skew / (self.fx * self.fy), -1 / self.fy, 0]
        origin = [-(self.cx - self.skew * self.cy / self.fy) / self.fx, self.cy / self.fy, -1]
        return np.array([tau_u, tau_v, origin, tau_u, tau_v], np.float64)

    def matrix(self, pixel_centre: str = "integer") -> Float:
        checked_choice(pixel_centre, PIXEL_CENTRES, "pixel_centre")
        shift = PIXEL_CENTRES[pixel_centre]
        return np.array([[self.fx, self.skew, self.cx - shift], [0, self.fy, self.cy - shift], [0, 0, 1]], np.float64)

    def shifted(self, u: float, v: float) -> Perspective:
        return replace(self, cx=self.cx - u, cy=self.cy - v)

    def resampled(self, across: float, down: float) -> Perspective:
        return Perspective(across * self.fx, down * self.fy, across * self.cx, down * self.cy, across * self.skew)

    def turned(self, quarters: int, shape: tuple[int, int]) -> Perspective:
        if quarters % 2 and self.skew:
            raise NormalMeshError(
                f"a camera with skew ({self.skew:g}) can be rotated by 180°, not by 90° or 270°: "
                "rectify the image, or leave the skew out if it is small"
            )
        rows, columns = shape
        turned = {
            0: self,
            1: Perspective(self.fy, self.fx, self.cy, columns - self.cx),
            2: replace(self, cx=columns - self.cx, cy=rows - self.cy),
            3: Perspective(self.fy, self.fx, rows - self.cy, self.cx),
        }
        return turned[quarters]

    def describe(self) -> str:
        focal = f"{self.fx:.6g}" if self.fx == self.fy else f"{self.fx:.6g} × {self.fy:.6g}"
        skew = f", skew {self.skew:.4g}" * (self.skew != 0)
        return f"perspective, focal length {focal} px, principal point ({self.cx:.6g}, {self.cy:.6g}){skew}"
