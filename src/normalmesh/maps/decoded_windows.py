"""Windows of vectors: of a map that stays on disk, decoded whenever they are read, or of one that is held in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float32, UInt8
from normalmesh.files.masks import MaskPacker, PackedMask
from normalmesh.files.windowed_arrays import WindowedArray
from normalmesh.maps._background import BACKGROUND
from normalmesh.maps.decoding import Decoder
from normalmesh.normals.conventions import Convention
from normalmesh.normals.windows import Slices, whole_window
from normalmesh.runtime.row_blocks import row_blocks

#: The convention that leaves channels as they are.
OPENGL = Convention.parse("opengl")
#: Vectors (h, w, 3) and foreground (h, w) of a window.
VectorsAndForeground = tuple[Float32, Bool]


@dataclass(frozen=True, eq=False)
class DecodedWindows:
    """Windows of vectors of a map on disk, and what the whole map tells about how to decode them."""

    array: WindowedArray
    decoder: Decoder
    mask: PackedMask | None  # as given
    background: PackedMask | None = None  # what :func:`.find_background` finds
    convention: Convention = OPENGL

    @property
    def path(self) -> Path:
        return self.array.path

    @property
    def shape(self) -> tuple[int, int]:
        return self.array.size

    def passes(self) -> Iterator[Slices]:
        """Yield windows that cover the map."""
        return self.array.passes()

    def read(self, window: Slices) -> VectorsAndForeground:
        """Return the pixels of a window; vectors are zero where there is none."""
        masks = (None if each is None else each.window(*window) for each in (self.mask, self.background))
        return self.decoded(self.array.read(*window), *masks)

    def raw(self, window: Slices) -> VectorsAndForeground:
        """Return the pixels of a window, with vectors as they are in the background, too."""
        mask = None if self.mask is None else self.mask.window(*window)
        return self.decoder.vectors(self.array.read(*window), mask)

    def to_clean(self, window: Slices) -> VectorsAndForeground:
        """Return vectors, zero where there is none, and the given mask."""
        vectors, _ = self.read(window)
        return vectors, np.ones(vectors.shape[:2], np.bool_) if self.mask is None else self.mask.window(*window)

    def decoded(self, values: NDArray[Any], mask: Bool | None, background: Bool | None) -> VectorsAndForeground:
        """Return vectors and foreground of stored values (h, w, 3 or 4) of any pixels."""
        vectors, foreground = self.decoder.vectors(values, mask)
        if background is not None:
            foreground &= ~background
        vectors[~foreground] = 0
        if self.convention != OPENGL:
            vectors = self.convention.to_project(vectors).astype(np.float32, copy=False)
        return vectors, foreground

    def without(self, state: UInt8 | None) -> DecodedWindows:
        """Return the same windows without the background, as :func:`.find_background` returns it."""
        if state is None:
            return self
        packer = MaskPacker(self.shape)
        for rows in row_blocks(self.shape):
            packer.put((rows, slice(0, self.shape[1])), state[rows] >= BACKGROUND)
        return replace(self, background=packer.done())


@dataclass(frozen=True, eq=False)
class HeldWindows:
    """Windows of vectors (H, W, 3) and foreground (H, W) in memory: the only pass is all of them."""

    path: Path
    vectors: Float32
    foreground: Bool

    @classmethod
    def of(cls, array: WindowedArray, decoder: Decoder, mask: PackedMask | None) -> HeldWindows:
        """Decode all of an array."""
        vectors = np.empty((*array.size, 3), np.float32)
        foreground = np.ones(array.size, np.bool_) if mask is None else mask.whole()
        for window in array.passes():
            decoder.decode(array.read(*window), vectors[window], foreground[window], mask is not None)
        return cls(array.path, vectors, foreground)

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.foreground.shape
        return rows, columns

    def passes(self) -> Iterator[Slices]:
        """Yield the only window."""
        yield whole_window(self.shape)

    def read(self, window: Slices) -> VectorsAndForeground:
        """Return the pixels of a window; vectors are zero where there is none once :meth:`without` was called."""
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
