"""MapOnDisk: a normal map that stays on disk and hands out windows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from normalmesh.arguments import checked_instance, checked_path
from normalmesh.array_types import Bool, Float32
from normalmesh.errors import NormalMeshError, path_text, repr_for_error, shape_text
from normalmesh.files.formats import unusable
from normalmesh.files.size_limits import limited_pixels, refuse_beyond_memory
from normalmesh.maps.alpha import Alpha, checked_alpha
from normalmesh.maps.geotiff_reading import camera_of
from normalmesh.maps.map_facts import find_source
from normalmesh.maps.normal_maps import camera_from
from normalmesh.maps.packed_masks import PackedMask
from normalmesh.maps.tiff_windows import TiffWindows
from normalmesh.maps.window_labels import WindowLabels, labelled
from normalmesh.maps.windowed_arrays import NpyWindows, Window, WindowedArray, open_array, pass_windows
from normalmesh.maps.windowed_cleaning import CleanWindows, find_clean_facts
from normalmesh.maps.windowed_masks import mask_of_array, mask_of_file
from normalmesh.maps.zarr_windows import ZarrWindows
from normalmesh.normals._normal_map import NormalMapArrays, count_clamped
from normalmesh.normals.camera import Camera
from normalmesh.normals.component_maps import window_camera
from normalmesh.normals.conventions import Convention
from normalmesh.normals.georeference import GeoReference
from normalmesh.normals.normal_map import NormalMap, checked_mask
from normalmesh.normals.principal_point import question_camera
from normalmesh.normals.repairs import Repairs, counted_repairs, is_flattened, report_repairs
from normalmesh.normals.windows import Rectangle, centre_of, checked_window, padded_window
from normalmesh.runtime.temporary_files import new_file, temporary_path

#: Name of the file that :meth:`MapOnDisk.of` writes.
NORMALS_FILE = "normals.npy"
#: Unit of lengths where a file tells the size of a pixel, but not in which unit.
UNKNOWN_UNITS = "units"


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
    _source: CleanWindows | NpyWindows = field(repr=False)
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
        whole = self._mask.window(slice(0, rows), slice(0, columns))
        for window in self._pass_windows():
            normals[window] = self._normals(window, whole[window])
        return NormalMap.cleaned(normals, whole, self.camera, self.repairs)

    def _normals(self, window: Window, mask: Bool) -> Float32:
        """Return the normals (h, w, 3) of a window with its mask, zero outside."""
        if isinstance(self._source, NpyWindows):
            return self._source.read(*window).astype(np.float32, copy=False)
        arrays, _ = self._source.measured(window)
        normals = arrays.normals
        if self.repairs.extended and np.any(mask & ~normals.any(axis=2)):
            around = padded_window(window, self._source.reach.hole, self.shape)
            arrays, _ = self._source.extended(around)
            normals = np.ascontiguousarray(arrays.normals[centre_of(window, around)])
        normals[~mask] = 0
        return normals

    def _pass_windows(self) -> Iterator[Window]:
        array = self._source if isinstance(self._source, NpyWindows) else self._source.windows.array
        return pass_windows(array)

    def _flattened_components(self) -> int:
        """Return the number of components of the mask that consist of clamped normals to a large part."""
        labels, found = WindowLabels(self.shape[1], diagonal=False), [np.zeros((0, 2), np.int64)]
        for rows, columns in self._pass_windows():
            mask = self._mask.window(rows, columns)
            if not mask.any():
                labels.add((rows, columns), None)
                continue
            numbers, count = labelled(mask, diagonal=False)
            labels.add((rows, columns), numbers, count)
            counts = np.zeros((count + 1, 2), np.int64)
            camera = window_camera(self.camera, columns.start, rows.start)
            arrays = NormalMapArrays(self._normals((rows, columns), mask), mask, camera.arrays)
            count_clamped(arrays, numbers.astype(np.int32), counts)
            found.append(counts[1:])
        regions, counts = labels.regions(), np.concatenate(found)
        pixels, clamped = (np.bincount(regions, column) for column in counts.T)
        return int(np.count_nonzero(is_flattened(pixels, clamped)))

    def __repr__(self) -> str:
        return (
            f"MapOnDisk({path_text(self.path)!r}, {shape_text(self.shape)}, {self.foreground} foreground pixels, "
            f"{self.camera})"
        )


def open_map(
    path: str | PathLike[str],
    mask: str | PathLike[str] | ArrayLike | None,
    camera: Camera | str | PathLike[str] | Callable[[tuple[int, int]], Camera] | None,
    convention: str | Convention,
    *,
    alpha: Alpha,
    variable: str | None,
    max_pixels: float | None,
) -> MapOnDisk:
    """Open a normal map on disk: see :meth:`NormalMap.open`."""
    path = checked_path(path)
    if variable is not None and not isinstance(variable, str):
        raise NormalMeshError(f"variable must be the name of an array, not {repr_for_error(variable)}")
    alpha = checked_alpha(alpha)
    automatic = isinstance(convention, str) and convention.strip().lower() == "auto"
    stated = None if automatic else Convention.parse(convention)
    ready = None if callable(camera) or camera is None else camera_from(camera)
    with limited_pixels(max_pixels):
        array = _checked_array(open_array(path, variable))
        georeference = array.georeference if isinstance(array, TiffWindows) else None
        units = None
        if callable(camera):
            ready = camera_from(camera(array.size))
        elif ready is None and georeference is not None:
            ready, units = camera_of(path, georeference), georeference.units or UNKNOWN_UNITS
        ready = ready or camera_from(None)
        question_camera(ready, array.size)
        source = find_source(array, _given_mask(array, mask), ready, stated, alpha)
    return _opened(path, source, georeference, units or ready.default_units)


def _opened(path: Path, source: CleanWindows, georeference: GeoReference | None, units: str) -> MapOnDisk:
    """Find foreground and repairs, and warn about them."""
    try:
        facts = find_clean_facts(source)
    except NormalMeshError as error:
        raise error if path_text(path) in str(error) else unusable(path, str(error)) from error
    given = source.windows.mask
    repairs = counted_repairs(facts.totals, facts.extended, given is not None)
    # A mask that stayed as it was is pickled once.
    mask = given if given is not None and given.bands == facts.mask.bands else facts.mask
    opened = MapOnDisk(
        path,
        source.camera,
        repairs,
        facts.foreground,
        georeference,
        units,
        source,
        mask,
        facts.rectangle,
    )
    report_repairs(repairs, facts.foreground, int(facts.totals[-1]), opened._flattened_components)
    return opened


def _checked_array(array: WindowedArray) -> WindowedArray:
    """Return an array of normals, or raise :class:`NormalMeshError`."""
    if array.colour not in ("RGB", "array"):
        raise unusable(array.path, f"is a {array.colour} image; a normal map needs three channels: save it as RGB")
    if array.shape[2] not in (3, 4):
        raise unusable(array.path, f"normals must have the shape (rows, columns, 3), not {shape_text(array.shape)}")
    return array


def _given_mask(array: WindowedArray, mask: str | PathLike[str] | ArrayLike | None) -> PackedMask | None:
    """Return the mask given as an array or a file, else that of a Zarr group, or None."""
    if isinstance(mask, str | PathLike):
        return mask_of_file(checked_path(mask, "mask"), array.size)
    if mask is not None:
        return PackedMask.of(checked_mask(mask, array.size))
    own = array.own_mask() if isinstance(array, ZarrWindows) else None
    return None if own is None else mask_of_array(own, array.size)
