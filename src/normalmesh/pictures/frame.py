"""Frame: the part of an image that is drawn, coordinates in a picture of it, and fields over it."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from normalmesh.array_types import Bool, Float, Float32, Floating, Int32
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.evaluation.metrics import angles_between
from normalmesh.mesh.raster import pixel_faces
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.mesh.surface import Surface
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.row_blocks import row_blocks

T = TypeVar("T", bound=np.generic)

#: Standard deviation of the smoothing of densities, in mean vertex distances, and its minimum in pixels of the picture.
SMOOTHING, MIN_SMOOTHING = 1.2, 2.0


@dataclass(frozen=True)
class Frame:
    """A rectangle of image pixels."""

    left: int
    top: int
    columns: int
    rows: int

    @classmethod
    def around(cls, mask: Bool) -> Frame:
        """Return the bounding box of the foreground with a narrow margin."""
        rows, columns = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
        margin = max(rows[-1] - rows[0], columns[-1] - columns[0]) // 100 + 1
        top, left = max(rows[0] - margin, 0), max(columns[0] - margin, 0)
        bottom, right = min(rows[-1] + margin + 1, len(mask)), min(columns[-1] + margin + 1, mask.shape[1])
        return cls(int(left), int(top), int(right - left), int(bottom - top))

    @classmethod
    def whole(cls, shape: tuple[int, int]) -> Frame:
        """Return the frame of a whole image of rows and columns."""
        return cls(0, 0, shape[1], shape[0])

    @property
    def window(self) -> tuple[slice, slice]:
        """The slices of rows and columns of the frame in an image."""
        return slice(self.top, self.top + self.rows), slice(self.left, self.left + self.columns)

    @property
    def corners(self) -> Float:
        """The corners (4, 2) as u and v, in order around the frame."""
        right, bottom = self.left + self.columns, self.top + self.rows
        return np.array([[self.left, self.top], [right, self.top], [right, bottom], [self.left, bottom]], np.float64)

    def size_within(self, width: int, height: int) -> tuple[int, int]:
        """Return columns and rows of the largest picture of the frame that fits into a box."""
        scale = min(width / self.columns, height / self.rows)
        return max(round(self.columns * scale), 1), max(round(self.rows * scale), 1)

    def places(self, screen: Float, size: tuple[int, int]) -> Float:
        """Convert screen positions (..., 2) to positions in a picture of the frame of size (columns, rows)."""
        return (screen - [self.left, self.top]) * [size[0] / self.columns, size[1] / self.rows]

    def samples(self, limit: float) -> Samples:
        """Return a regular grid of at most about ``limit`` pixels of the frame."""
        return Samples(self, max(ceil(sqrt(self.columns * self.rows / limit)), 1))


@dataclass(frozen=True)
class Samples:
    """Every ``stride``-th pixel of a frame along rows and columns."""

    frame: Frame
    stride: int

    def of(self, image: NDArray[T]) -> NDArray[T]:
        """Return a view of an image (H, W, ...) at the samples."""
        frame, first = self.frame, self._first
        rows = slice(frame.top + first[1], frame.top + frame.rows, self.stride)
        return image[rows, frame.left + first[0] : frame.left + frame.columns : self.stride]

    def owners(self, surface: Surface) -> Int32:
        """Return the face at the centre of each sample, or −1."""
        corner = np.add([self.frame.left, self.frame.top], self._first)
        mesh = ScreenMesh((surface.screen - corner - 0.5) / self.stride + 0.5, surface.faces)
        lengths = (self.frame.rows - self._first[1], self.frame.columns - self._first[0])
        return pixel_faces(mesh, (ceil(lengths[0] / self.stride), ceil(lengths[1] / self.stride)))

    @property
    def _first(self) -> tuple[int, int]:
        """Column and row of the first sample in the frame."""
        return min(self.stride // 2, self.frame.columns - 1), min(self.stride // 2, self.frame.rows - 1)


def vertex_density(surface: Surface, frame: Frame, size: tuple[int, int], owners: Int32) -> Float:
    """Return the smoothed number of vertices per 100 image pixels, in a picture of size (columns, rows); NaN outside.

    ``owners`` (H, W) are the faces at the samples of the frame, −1 outside.
    """
    columns, rows = size
    covered = resized((owners >= 0).astype(np.float32), size)
    u, v = np.floor(frame.places(surface.screen, size)).astype(np.int64).T
    at = np.clip(v, 0, rows - 1) * columns + np.clip(u, 0, columns - 1)
    counts = np.bincount(at, minlength=rows * columns).reshape(rows, columns).astype(np.float64)
    spacing = np.sqrt(max(covered.sum(), 1.0) / len(surface.vertices))
    width = max(SMOOTHING * spacing, MIN_SMOOTHING)
    area = frame.columns * frame.rows / (columns * rows)
    # Smoothing moves weight across the outline; dividing by the smoothed mask compensates for it.
    density = gaussian_filter(counts, width) / np.maximum(gaussian_filter(covered, width), 1e-3)
    return np.where(covered >= 0.5, 100 * density / area, np.nan)


def density_range(density: Float) -> tuple[float, float]:
    """Return the limits of a logarithmic colour scale for densities (H, W)."""
    known = density[density > 0]
    low, high = np.quantile(known, [0.03, 0.99]) if len(known) else (1.0, 1.0)
    middle, spread = np.sqrt(low * high), np.clip(np.sqrt(high / low), 1.7, 30)
    return float(middle / spread), float(middle * spread)


def check_same_shape(surface: Surface, normal_map: NormalMap) -> None:
    """Raise if the normal map and the image of the surface have different shapes."""
    if surface.shape != normal_map.shape:
        raise NormalMeshError(
            f"the surface has {shape_text(surface.shape)} pixels but the normal map has "
            f"{shape_text(normal_map.shape)}; give the map that the surface was reconstructed from"
        )


def angular_errors(surface: Surface, normal_map: NormalMap, samples: Samples, owners: Int32) -> Float32:
    """Return the angles (H, W) in degrees between face and pixel normals at the samples; NaN where one is unknown."""
    normals, faces = samples.of(normal_map.normals), surface.face_normals
    angles = np.empty(owners.shape, np.float32)
    for rows in row_blocks(owners.shape):
        angles[rows] = angles_between(faces[owners[rows]], normals[rows])
    angles[owners < 0] = np.nan
    return angles


def resized(values: Floating, size: tuple[int, int]) -> Float:
    """Resample values (H, W) to size (columns, rows): means of the known values, NaN where most are unknown."""
    known = np.isfinite(values)
    weight = _resized(known.astype(np.float32), size)
    total = _resized(np.where(known, values, 0).astype(np.float32), size)
    return np.where(weight >= 0.5, total / np.maximum(weight, 1e-6), np.nan)


def _resized(values: Float32, size: tuple[int, int]) -> Float:
    from PIL import Image as Canvas

    return np.asarray(Canvas.fromarray(values).resize(size, Canvas.Resampling.BOX), np.float64)
