"""Frame: the part of an image that is drawn, and coordinates in a picture of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float, Int32
from normalmesh.mesh.raster import pixel_faces
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.mesh.surface import Surface

T = TypeVar("T", bound=np.generic)


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
