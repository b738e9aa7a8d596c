"""Arrays that are read window by window, of normals or masks: on disk, or in memory as one window."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.errors import shape_text
from normalmesh.files.arrays import npy_header
from normalmesh.files.formats import file_format, reading, unusable
from normalmesh.files.georeference import GeoReference
from normalmesh.files.size_limits import check_pixel_limit
from normalmesh.normals.windows import Slices

#: Number of pixels of the windows in which all of an array is read.
PASS_PIXELS = 1 << 21


class WindowedArray(ABC):
    """An array (rows, columns, channels). On disk, it pickles as its path, and may be read by several threads."""

    path: Path  # file or folder, for messages
    shape: tuple[int, int, int]
    dtype: np.dtype[np.generic]  # of the values that :meth:`read` returns
    chunks: tuple[int, int]  # rows and columns of stored pieces: windows of whole ones are read fastest
    maximum: int | None  # the largest value that the bit depth can hold; None for floats and wide integers
    colour: str  # "RGB", "grey", "palette", "CMYK", …; "array" if the format does not say it
    georeference: GeoReference | None = None  # where a GeoTIFF lies on the ground

    @abstractmethod
    def read(self, rows: slice, columns: slice) -> NDArray[Any]:
        """Return the values (h, w, channels) of a window inside the image."""

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.shape[:2]

    def own_mask(self) -> WindowedArray | None:
        """Return the mask that the file holds besides these values, if it holds one."""
        return None

    def passes(self) -> Iterator[Slices]:
        """Yield windows of whole chunks, of about :data:`PASS_PIXELS`, that cover it row by row from the left."""
        (rows, columns), (height, width) = self.size, self.chunks
        if width >= columns:
            width, height = columns, _multiple(height, PASS_PIXELS // columns)
        else:
            side = math.isqrt(PASS_PIXELS)
            height, width = _multiple(height, side), _multiple(width, side)
        for top in range(0, rows, height):
            for left in range(0, columns, width):
                yield slice(top, min(top + height, rows)), slice(left, min(left + width, columns))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}, {shape_text(self.shape)} {self.dtype})"


class ArrayInMemory(WindowedArray):
    """Values (rows, columns, channels) in memory, which are one window: an image as it was stored, or an array.

    Of an image with an even number of channels, the last one is alpha. The range of integers is that of their type
    unless ``maximum`` says it. ``mask`` (rows, columns): that of the file, if it has one.
    """

    def __init__(
        self,
        path: Path,
        values: NDArray[Any],
        maximum: int | None = None,
        colour: str = "array",
        *,
        mask: NDArray[Any] | None = None,
        nodata: int | None = None,
    ):
        self.path, self.colour, self._mask = path, colour, mask
        self.shape, self.values = channels_last(path, values.shape), with_channel_axis(values)
        self.chunks, self.dtype = self.size, values.dtype
        self.maximum = integer_maximum(values.dtype) if maximum is None else maximum
        #: The integer that stands for a missing value; missing floats are NaN already.
        self.nodata = nodata

    @property
    def alpha(self) -> NDArray[Any] | None:
        """Opacity (H, W) of an image, in the unit of the values, if there is any."""
        return self.values[..., -1] if self.shape[2] in (2, 4) else None

    def own_mask(self) -> ArrayInMemory | None:
        return None if self._mask is None else ArrayInMemory(self.path, self._mask)

    def read(self, rows: slice, columns: slice) -> NDArray[Any]:
        return self.values[rows, columns]


class MappedArray:
    """Values in a file, one after another. The file is mapped for each window, so that what was read leaves memory."""

    def __init__(self, path: Path, dtype: np.dtype[np.generic], shape: tuple[int, ...], offset: int, order: str = "C"):
        self.path, self.dtype, self.shape, self.offset, self.order = path, dtype, shape, offset, order

    def read(self, index: tuple[slice | int, ...]) -> NDArray[Any]:
        """Return a copy of a part, in the byte order of the machine."""
        mapped = np.memmap(self.path, self.dtype, "r", self.offset, self.shape, self.order)  # type: ignore[call-overload]
        part: NDArray[Any] = np.array(mapped[index], self.dtype.newbyteorder("="))
        return part


class NpyWindows(WindowedArray):
    """An NPY file with an array (rows, columns) or (rows, columns, channels)."""

    colour = "array"

    def __init__(self, path: Path):
        self.path = path
        with reading(path, "NPY"), path.open("rb") as file:
            shape, dtype, fortran = npy_header(file)
            offset = file.tell()
            if dtype.kind not in "biufc":
                raise ValueError(f"it holds {dtype}, not numbers")
            self.shape = channels_last(path, shape)
            check_pixel_limit(path, *self.size)
            if path.stat().st_size < offset + math.prod(shape) * dtype.itemsize:
                raise ValueError(f"it is too short for {shape_text(shape)} {dtype}")
        self._values = MappedArray(path, dtype, shape, offset, "F" if fortran else "C")
        self.has_channels = len(shape) == 3
        self.dtype, self.maximum = dtype.newbyteorder("="), integer_maximum(dtype)
        self.chunks = (self.size[0], 1) if fortran else (1, self.size[1])

    def read(self, rows: slice, columns: slice) -> NDArray[Any]:
        with reading(self.path, "NPY"):
            part = self._values.read((rows, columns))
        return np.ascontiguousarray(part).reshape(*part.shape[:2], self.shape[2])

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path,)


def can_be_opened(path: Path) -> bool:
    """Return whether a file or folder is of a format that can be read in windows."""
    return path.is_dir() or file_format(path) in ("TIFF", "NPY")


def channels_last(path: Path, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return rows, columns and channels of an array without or with an axis of channels, or raise an error."""
    rows, columns, channels = (*shape, 1)[:3] if len(shape) in (2, 3) else (0, 0, 0)
    if not (rows and columns and 1 <= channels <= 4):
        raise unusable(
            path, f"normals must have the shape (rows, columns, 3), not {shape_text(shape)}; masks (rows, columns)"
        )
    return rows, columns, channels


def integer_maximum(dtype: np.dtype[np.generic]) -> int | None:
    """Return the largest value of integers of up to 16 bits; the range of wider ones is seldom used."""
    if dtype.kind in "ui" and dtype.itemsize <= 2:
        return int(2 ** (8 * dtype.itemsize - (dtype.kind == "i")) - 1)
    return None


def _multiple(unit: int, length: int) -> int:
    return unit * max(length // unit, 1)


def with_channel_axis(values: NDArray[Any]) -> NDArray[Any]:
    """Return (H, W) as (H, W, 1), and other shapes unchanged."""
    return values[..., None] if values.ndim == 2 else values
