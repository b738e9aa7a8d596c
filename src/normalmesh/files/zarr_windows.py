"""Windows of Zarr arrays, and of the full resolution of OME-Zarr images."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.errors import NormalMeshError, path_text, shape_text
from normalmesh.files.arrays import chosen_normals, is_mask_name
from normalmesh.files.formats import reading, unusable
from normalmesh.files.size_limits import check_pixel_limit
from normalmesh.files.windowed_arrays import WindowedArray, integer_maximum, with_channel_axis

#: Files that a folder of Zarr has, of version 3 and 2.
SIGNS = ("zarr.json", ".zarray", ".zgroup")


def is_zarr(path: Path) -> bool:
    """Return whether a path is a folder with a Zarr array or group; raise if it is another folder."""
    try:
        if not path.is_dir():
            return False
        if any((path / sign).is_file() for sign in SIGNS):
            return True
    except (OSError, ValueError):
        return False
    raise unusable(path, f"is a folder, but no Zarr array or group: it has none of {', '.join(SIGNS)}")


class ZarrWindows(WindowedArray):
    """An array of a Zarr folder, of version 2 or 3: that of a name in a group, or the folder itself if it is empty.

    ``axes``: which axis of the array holds rows, columns and channels; others have the length 1.
    """

    colour = "array"

    def __init__(self, path: Path, name: str, axes: tuple[int, int, int | None]):
        self.path, self._name, self._axes = path, name, axes
        with reading(path, "Zarr"):
            node = _opened(path)
            self._array = node[name] if name else node
            rows, columns, channels = axes
            shape = self._array.shape
            self.shape = (shape[rows], shape[columns], 1 if channels is None else shape[channels])
            stored = np.dtype(self._array.dtype)
            if stored.kind not in "biuf":
                raise unusable(path, f"holds {stored}, not numbers")
            if 0 in shape or self.shape[2] > 4:
                raise unusable(path, f"must have the shape (rows, columns, 3), not {shape_text(shape)}")
            self.dtype, self.maximum = stored.newbyteorder("="), integer_maximum(stored)
            check_pixel_limit(path, *self.size)
            # Shards hold many chunks, which are read on their own.
            height, width = self._array.chunks[rows], self._array.chunks[columns]
            self.chunks = (min(height, self.shape[0]), min(width, self.shape[1]))

    @classmethod
    def of_normals(cls, path: Path, variable: str | None = None) -> ZarrWindows:
        """Open the array of a folder, the full resolution of an OME-Zarr image, or the normals of a group."""
        with reading(path, "Zarr"):
            node = _opened(path)
            if variable is None and (image := cls._image(path, node)):
                return image
            if _is_array(node):
                raise unusable(path, f"is a single array: variable={variable!r} cannot be chosen from it")
            arrays = dict(node.arrays())
            name = chosen_normals(path, {name: tuple(array.shape) for name, array in arrays.items()}, variable)
            return cls(path, name, _plain_axes(path, arrays[name]))

    @classmethod
    def of_mask(cls, path: Path) -> ZarrWindows:
        """Open the array of a folder, the full resolution of an OME-Zarr image, or the mask of a group."""
        with reading(path, "Zarr"):
            node = _opened(path)
            if image := cls._image(path, node):
                return image
            planes = [name for name, array in node.arrays() if array.ndim == 2]
            chosen = [name for name in planes if is_mask_name(name)] or planes
            if len(chosen) != 1:
                raise unusable(path, f"expected one array (rows, columns), or one named mask; found {len(planes)}")
            return cls(path, chosen[0], (0, 1, None))

    @classmethod
    def _image(cls, path: Path, node: Any) -> ZarrWindows | None:
        """Return the image of a folder that holds a single one; None if it is a group of arrays."""
        if _is_array(node):
            return cls(path, "", _plain_axes(path, node))
        attributes = node.attrs.asdict()
        # OME-Zarr of version 0.5 or before.
        if scales := attributes.get("ome", attributes).get("multiscales"):
            name = str(scales[0]["datasets"][0]["path"])
            return cls(path, name, _named_axes(path, scales[0], node[name]))
        return None

    def own_mask(self) -> ZarrWindows | None:
        """Return the array named ``mask`` of the same group, if there is one."""
        if not self._name:
            return None
        with reading(self.path, "Zarr"):
            name = next((name for name, _ in _opened(self.path).arrays() if is_mask_name(name)), None)
        return None if name is None else ZarrWindows(self.path, name, (0, 1, None))

    def read(self, rows: slice, columns: slice) -> NDArray[np.generic]:
        sides = zip(self._axes, (rows, columns, slice(None)), strict=True)
        windows = {axis: side for axis, side in sides if axis is not None}
        with reading(self.path, "Zarr"):
            part = np.asarray(self._array[tuple(windows.get(axis, 0) for axis in range(self._array.ndim))])
        stored = sorted(windows)
        part = np.transpose(part, [stored.index(axis) for axis in windows])
        return with_channel_axis(np.ascontiguousarray(part, self.dtype))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path, self._name, self._axes)


def _is_array(node: Any) -> bool:
    return hasattr(node, "shape")


def _opened(path: Path) -> Any:
    try:
        import zarr
    except ImportError as error:
        raise NormalMeshError(f"{path_text(path)}: reading Zarr needs zarr; pip install normalmesh[zarr]") from error
    return zarr.open(str(path), mode="r")


def _named_axes(path: Path, scales: Mapping[str, Any], array: Any) -> tuple[int, int, int | None]:
    """Return rows, columns and channels among the axes of an OME-Zarr image; before version 0.4 they may be letters."""
    default = "tczyx"[-array.ndim :]
    names = [axis if isinstance(axis, str) else axis["name"] for axis in scales.get("axes", default)]
    if len(names) != array.ndim or "y" not in names or "x" not in names:
        raise unusable(path, f"its axes {', '.join(names)} are not those of an image with rows y and columns x")
    more = [name for name, length in zip(names, array.shape, strict=True) if name not in "cyx" and length > 1]
    if more:
        raise unusable(path, f"holds more than one image, along {', '.join(more)}; save the one to be read on its own")
    channels = names.index("c") if "c" in names else None
    return names.index("y"), names.index("x"), channels


def _plain_axes(path: Path, array: Any) -> tuple[int, int, int | None]:
    """Return rows, columns and channels of an array that does not name its axes: channels are last, or else first."""
    shape = tuple(array.shape)
    if len(shape) == 2:
        return 0, 1, None
    if len(shape) == 3 and shape[2] in (3, 4):
        return 0, 1, 2
    if len(shape) == 3 and shape[0] in (3, 4):
        return 1, 2, 0
    raise unusable(
        path, f"normals must have the shape (rows, columns, 3) or (3, rows, columns), not {shape_text(shape)}"
    )
