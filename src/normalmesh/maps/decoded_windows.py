"""Windows of vectors: of a map that stays on disk, decoded whenever they are read, or of one that is held in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float32, UInt8
from normalmesh.files.packed_masks import MaskPacker, PackedMask
from normalmesh.files.windowed_arrays import WindowedArray
from normalmesh.maps._background import BACKGROUND
from normalmesh.maps.decoding import Decoder
from normalmesh.normals.conventions import Convention
from normalmesh.normals.windows import Slices, whole_window
from normalmesh.runtime.row_blocks import row_blocks

#: The convention that leaves channels as they are.
OPENGL = Convention.parse("opengl")


@dataclass(frozen=True, eq=False)
class DecodedWindows:
    """Windows of vectors of a map on disk, and what the whole map tells about how to decode them.

    Attributes
    ----------
    array
        The stored values.
    decoder
        How they become vectors.
    mask
        The given mask; None if there is none.
    found
        The background that :mod:`.background` finds by the colour of the border; None if there is none.
    convention
        What the channels hold; opengl leaves them as they are.
    """

    array: WindowedArray
    decoder: Decoder
    mask: PackedMask | None
    found: PackedMask | None = None
    convention: Convention = OPENGL

    @property
    def path(self) -> Path:
        """The file, for messages."""
        return self.array.path

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.array.size

    def passes(self) -> Iterator[Slices]:
        """Yield windows that cover the map."""
        return self.array.passes()

    def read(self, window: Slices) -> tuple[Float32, Bool]:
        """Return vectors (h, w, 3), zero where there is none, and foreground (h, w)."""
        mask, found = (None if each is None else each.window(*window) for each in (self.mask, self.found))
        return self.decoded(self.array.read(*window), mask, found)

    def raw(self, window: Slices) -> tuple[Float32, Bool]:
        """Return vectors (h, w, 3) as they are in the background, too, and foreground (h, w)."""
        mask = None if self.mask is None else self.mask.window(*window)
        return self.raw_values(self.array.read(*window), mask)

    def to_clean(self, window: Slices) -> tuple[Float32, Bool]:
        """Return vectors (h, w, 3), zero where there is none, and the given mask (h, w)."""
        vectors, _ = self.read(window)
        given = np.ones(vectors.shape[:2], np.bool_) if self.mask is None else self.mask.window(*window)
        return vectors, given

    def decoded(self, values: NDArray[np.generic], mask: Bool | None, found: Bool | None) -> tuple[Float32, Bool]:
        """Return vectors and foreground of stored values (h, w, 3 or 4) of any pixels."""
        vectors, foreground = self.raw_values(values, mask)
        if found is not None:
            foreground &= ~found
        vectors[~foreground] = 0
        if self.convention != OPENGL:
            vectors = self.convention.to_project(vectors).astype(np.float32, copy=False)
        return vectors, foreground

    def raw_values(self, values: NDArray[np.generic], mask: Bool | None = None) -> tuple[Float32, Bool]:
        """Return vectors as they are in the background, too, and foreground of stored values of any pixels."""
        vectors = np.empty((*values.shape[:2], 3), np.float32)
        foreground = np.ones(values.shape[:2], np.bool_) if mask is None else mask.copy()
        self.decoder.decode(values, vectors, foreground, mask is not None)
        return vectors, foreground

    def without(self, state: UInt8 | None) -> DecodedWindows:
        """Return the same windows without the background, as :func:`.find_background` returns it."""
        if state is None:
            return self
        packer = MaskPacker(self.shape)
        for rows in row_blocks(self.shape):
            packer.put((rows, slice(0, self.shape[1])), state[rows] >= BACKGROUND)
        return replace(self, found=packer.done())


@dataclass(frozen=True, eq=False)
class HeldWindows:
    """Windows of vectors (H, W, 3) and foreground (H, W) in memory: the only pass is all of them."""

    path: Path
    vectors: Float32
    foreground: Bool

    @classmethod
    def of(cls, array: WindowedArray, decoder: Decoder, mask: Bool | None) -> HeldWindows:
        """Decode all of an array."""
        vectors = np.empty((*array.size, 3), np.float32)
        foreground = np.ones(array.size, np.bool_) if mask is None else mask.copy()
        for window in array.passes():
            decoder.decode(array.read(*window), vectors[window], foreground[window], mask is not None)
        return cls(array.path, vectors, foreground)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.foreground.shape
        return rows, columns

    def passes(self) -> Iterator[Slices]:
        """Yield the only window."""
        yield whole_window(self.shape)

    def read(self, window: Slices) -> tuple[Float32, Bool]:
        """Return vectors (h, w, 3), zero where there is none once :meth:`without` was called, and foreground (h, w)."""
        return self.vectors[window], self.foreground[window]

    raw = read

    def without(self, state: UInt8 | None) -> HeldWindows:
        """Take the background, as :func:`.find_background` returns it, out of the foreground, in place."""
        for rows in row_blocks(self.shape):
            if state is not None:
                self.foreground[rows] &= state[rows] < BACKGROUND
            self.vectors[rows][~self.foreground[rows]] = 0
        return self

    def turn(self, convention: Convention) -> None:
        """Turn the file's channels into the project's frame, in place: a copy would be a third of all memory."""
        if convention != OPENGL:
            for rows in row_blocks(self.shape):
                self.vectors[rows] = convention.to_project(self.vectors[rows])


#: Vectors of a map, on disk or in memory.
VectorWindows = DecodedWindows | HeldWindows
