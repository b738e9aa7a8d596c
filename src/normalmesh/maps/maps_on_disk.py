"""MapOnDisk: a normal map that stays on disk and hands out windows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from normalmesh.arguments import checked_instance, checked_path
from normalmesh.array_types import Bool, Float32
from normalmesh.errors import NormalMeshError, path_text, shape_text
from normalmesh.files.formats import unusable
from normalmesh.files.georeference import GeoReference
from normalmesh.files.masks import MaskPacker, PackedMask
from normalmesh.files.size_limits import refuse_beyond_memory
from normalmesh.files.windowed_arrays import NpyWindows, WindowedArray
from normalmesh.maps.decoding import DecodedWindows
from normalmesh.maps.map_decoding import DecodedMap
from normalmesh.normals._normal_map import NormalMapArrays
from normalmesh.normals.camera import Camera
from normalmesh.normals.cleaning import Cleaning, CleanWindows
from normalmesh.normals.component_maps import window_camera
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.repairs import Repairs, flattened_components, report_repairs
from normalmesh.normals.windows import Rectangle, Slices, checked_window
from normalmesh.runtime.temporary_files import new_file, temporary_path

if TYPE_CHECKING:
    from normalmesh.normals.conventions import Convention

#: Name of the file that :meth:`MapOnDisk.of` writes.
NORMALS_FILE = "normals.npy"


@dataclass(frozen=True, eq=False)
class MapOnDisk:
    """A normal map that stays on disk. Make one by :meth:`NormalMap.open`, or by :meth:`of` from a map in memory.

    It pickles as paths and facts, without pixels, and may be used by several threads.

    Attributes
    ----------
    path : Path
        The file or folder.
    shape : (int, int)
        Rows and columns.
    camera : Camera
    repairs : Repairs
        What had to be changed, counted in foreground pixels of the whole map.
    foreground : int
        Number of foreground pixels.
    georeference : GeoReference or None
        Where a GeoTIFF lies on the ground.
    units : str
        Unit of lengths: that of a GeoTIFF whose pixel size the camera has; else ``"px"``, or ``"units"`` if it is not
        known or the camera is perspective.
    """

    path: Path
    camera: Camera
    repairs: Repairs
    foreground: int
    georeference: GeoReference | None = field(repr=False)
    units: str
    _array: WindowedArray = field(repr=False)
    _source: CleanWindows | None = field(repr=False)  # None: the array holds clean normals
    _mask: PackedMask = field(repr=False)
    _rectangle: Rectangle = field(repr=False)

    @classmethod
    def of(cls, normal_map: NormalMap, folder: str | PathLike[str]) -> MapOnDisk:
        """Write a map in memory to a folder, as an NPY file, and open it; its windows are bit for bit the same."""
        normal_map = checked_instance(normal_map, NormalMap, "normal_map")
        path = checked_path(folder, "folder")
        try:
            path.mkdir(parents=True, exist_ok=True)
            with temporary_path(path) as new:
                with new_file(new) as file:
                    np.save(file, normal_map.normals)
                os.replace(new, path / NORMALS_FILE)
        except OSError as error:
            raise unusable(path, f"the folder cannot be written: {error.strerror or error}") from error
        return cls(
            path,
            normal_map.camera,
            normal_map.repairs,
            normal_map.foreground,
            None,
            normal_map.camera.default_units,
            NpyWindows(path / NORMALS_FILE),
            None,
            PackedMask.of(normal_map.mask),
            normal_map.rectangle(),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._mask.shape

    def rectangle(self) -> Rectangle:
        """Return the smallest rectangle (top, left, height, width) that holds the foreground."""
        return self._rectangle

    def window(self, rows: slice, columns: slice) -> NormalMap | None:
        """Read a window as a map of its own; None if no pixel of it is foreground.

        Its camera is that of the window, whose first pixel is (``rows.start``, ``columns.start``).
        """
        window = checked_window(rows, columns, self.shape)
        mask = self._mask.window(*window)
        if not mask.any():
            return None
        camera = window_camera(self.camera, window[1].start, window[0].start)
        return NormalMap.cleaned(self._normals(window, mask), mask, camera)

    def mask_window(self, rows: slice, columns: slice) -> Bool:
        """Return the mask (h, w) of a window; no pixels are read."""
        return self._mask.window(*checked_window(rows, columns, self.shape))

    def read(self) -> NormalMap:
        """Read all of it as a map in memory."""
        rows, columns = self.shape
        refuse_beyond_memory(self.path, 13 * rows * columns)
        normals = np.zeros((rows, columns, 3), np.float32)
        for window in self._array.passes():
            mask = self._mask.window(*window)
            if mask.any():
                normals[window] = self._normals(window, mask)
        return NormalMap.cleaned(normals, self._mask.whole(), self.camera, self.repairs)

    def _normals(self, window: Slices, mask: Bool) -> Float32:
        """Return the normals (h, w, 3) of a window with its mask, zero outside."""
        if self._source is None:
            return self._array.read(*window).astype(np.float32, copy=False)
        arrays, counts = self._source.measured(window)
        normals = arrays.normals
        if self.repairs.extended and np.any(mask & ~normals.any(axis=2)):
            normals = np.ascontiguousarray(self._source.extended(window, arrays, counts).normals)
        normals[~mask] = 0
        return normals

    def _parts(self) -> Iterator[tuple[Slices, NormalMapArrays]]:
        """Yield windows that cover the map, and their pixels."""
        for window in self._array.passes():
            mask = self._mask.window(*window)
            normals = self._normals(window, mask) if mask.any() else np.empty((*mask.shape, 3), np.float32)
            camera = window_camera(self.camera, window[1].start, window[0].start)
            yield window, NormalMapArrays(normals, mask, camera.arrays)

    def __repr__(self) -> str:
        return (
            f"MapOnDisk({path_text(self.path)!r}, {shape_text(self.shape)}, {self.foreground} foreground pixels, "
            f"{self.camera})"
        )


def opened_map(decoded: DecodedMap, camera: Camera, convention: Convention, units: str) -> MapOnDisk:
    """Find foreground and repairs of a map in a pass over all windows, and warn about them."""
    vectors = decoded.windows
    assert isinstance(vectors, DecodedWindows)
    vectors = replace(vectors, convention=convention)
    given = vectors.mask
    source = CleanWindows(vectors.to_clean, vectors.shape, camera, decoded.typical_length(), given is not None)
    cleaning, packer = Cleaning(source), MaskPacker(source.shape)
    for window in vectors.passes():
        packer.put(window, cleaning.add(window)[1])
    try:
        repairs, leaving = cleaning.finish()
    except NormalMeshError as error:
        raise unusable(vectors.path, str(error)) from error
    packer.clear(leaving)
    packed = packer.done()
    opened = MapOnDisk(
        vectors.path,
        camera,
        repairs,
        packer.count,
        vectors.array.georeference,
        units,
        vectors.array,
        source,
        # A mask that stayed as it was is pickled once.
        given if given is not None and given.bands == packed.bands else packed,
        packer.rectangle(),
    )
    columns = source.shape[1]
    report_repairs(repairs, packer.count, cleaning.unresolved, lambda: flattened_components(opened._parts(), columns))
    return opened
