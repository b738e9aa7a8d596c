"""Normals as they are stored: in files of any format; arrays, tensors and Pillow images are taken as files of them."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_array, checked_path
from normalmesh.errors import NormalMeshError, repr_for_error, shape_text
from normalmesh.files.arrays import read_array_size, read_normals
from normalmesh.files.exr import read_exr, read_exr_size
from normalmesh.files.formats import file_format, unknown_format, unusable
from normalmesh.files.height_png import is_height_png
from normalmesh.files.images import IMAGE_FORMATS, read_image, read_image_size
from normalmesh.files.masks import PackedMask, mask_of_array, open_mask
from normalmesh.files.tiff_windows import TiffWindows
from normalmesh.files.windowed_arrays import ArrayInMemory, NpyWindows, WindowedArray
from normalmesh.files.zarr_windows import ZarrWindows, is_zarr
from normalmesh.normals.normal_map import checked_mask
from normalmesh.photometric.rti import read_rti_normals
from normalmesh.photometric.rti_model import RTI_FORMATS, read_rti_size

#: Formats of normal maps.
READABLE = "PNG, JPEG, TIFF, TGA, BMP, WebP, EXR, NPY, NPZ, MAT, PTM or RTI"
#: Formats that can be read in windows.
WINDOWED = "TIFF (best tiled), Zarr or NPY"
#: What stands for a mask: an array, the path of a file, or None for what the file of the normals holds.
MaskLike: TypeAlias = str | PathLike[str] | ArrayLike | None
#: What messages call normals that are in no file.
NAME = Path("normal_map")
#: What to do with arrays, by their number of axes.
HINTS = {
    2: "; from_heights makes a map of heights, and read_normal_map takes a mask as mask=",
    4: "; give one map of the batch at a time",
}
EXPECTED = "a NormalMap, the path of a file, an array (rows, columns, 3) or a Pillow image"


def read_array(path: Path, variable: str | None = None, in_memory: bool = True) -> WindowedArray:
    """Return the normals as stored in a file of any format, read whole; those of an NPY file stay on disk.

    If they are not to be ``in_memory``, those of all files and folders stay there, or an error says what to do.
    """
    if not in_memory and is_zarr(path):
        return checked_normals(ZarrWindows.of_normals(path, variable))
    name = file_format(path)
    if variable is not None and name in (*IMAGE_FORMATS, *RTI_FORMATS, "NPY"):
        raise unusable(path, f"a {name} file holds one image: variable={variable!r} cannot be chosen from it")
    if name == "NPY":
        array: WindowedArray = NpyWindows(path)
    elif name == "TIFF" and not in_memory:
        array = TiffWindows(path).check_pieces()
    elif name not in (*IMAGE_FORMATS, *RTI_FORMATS, "EXR", "NPZ", "MAT"):
        raise unknown_format(path, name, READABLE if in_memory else WINDOWED)
    elif not in_memory:
        raise unusable(
            path,
            f"is a {name} file, which cannot be read in windows; convert it to a tiled TIFF, such as with "
            "'vips copy in.png out.tif[tile,compression=deflate,bigtiff]', or read it whole with read_normal_map",
        )
    elif name in IMAGE_FORMATS:
        array = read_image(path, name)
    elif name == "EXR":
        array = ArrayInMemory(path, read_exr(path, variable))
    elif name in RTI_FORMATS:
        array = ArrayInMemory(path, read_rti_normals(path))
    else:
        values, mask = read_normals(path, str(name), variable)
        array = ArrayInMemory(path, values, mask=mask)
    return checked_normals(array)


def checked_normals(array: WindowedArray) -> WindowedArray:
    """Return an array that may hold normals, or raise :class:`NormalMeshError`."""
    path, channels = array.path, array.shape[2]
    if array.colour == "grey" and is_height_png(path):
        raise unusable(path, "holds heights, not normals: normalmesh view shows them, from_heights gives their normals")
    if array.colour == "array" and channels not in (3, 4):
        shape = array.size if channels == 1 else array.shape
        heights = "; from_heights makes a map of heights" if channels == 1 else ""
        raise unusable(path, f"normals must have the shape (rows, columns, 3), not {shape_text(shape)}{heights}")
    if array.colour not in ("RGB", "array") or channels not in (3, 4):
        heights = ", or give it to from_heights if it holds heights" if array.colour == "grey" else ""
        raise unusable(path, f"is a {array.colour} image; a normal map needs three channels: save it as RGB{heights}")
    return array


def array_of(given: object, variable: str | None) -> WindowedArray:
    if variable is not None:
        raise NormalMeshError(f"variable={variable!r} chooses from a file, but normal_map is an array: give that one")
    return checked_normals(ArrayInMemory(NAME, given_array(given)))


def read_size(path: Path) -> tuple[int, int]:
    """Return rows and columns of the normals in a file of any format, from its header."""
    name = file_format(path)
    if name in IMAGE_FORMATS:
        return read_image_size(path, name)
    if name == "EXR":
        return read_exr_size(path)
    if name in ("NPZ", "MAT"):
        return read_array_size(path, name)
    if name in RTI_FORMATS:
        return read_rti_size(path, str(name))
    return read_array(path).size  # of an array that is mapped into memory; or an error


def chosen_mask(array: WindowedArray, mask: MaskLike, in_memory: bool) -> PackedMask | None:
    """Return the mask given as an array or a file, else the one that the file of the normals holds, or None."""
    if isinstance(mask, str | PathLike):
        return mask_of_array(open_mask(checked_path(mask, "mask"), not in_memory), array.size)
    if mask is not None:
        return PackedMask.of(checked_mask(mask, array.size))
    held = array.own_mask()
    return None if held is None else mask_of_array(held, array.size)


def given_array(given: Any) -> NDArray[Any]:
    """Return the values (H, W, 3 or 4) of an array, a tensor or an image, or raise :class:`NormalMeshError`.

    Tensors may be on a device, part of a graph, and of the shape (3, H, W).
    """
    # Whether it is a Pillow image is found without importing Pillow for others.
    if any(kind.__module__ == "PIL.Image" for kind in type(given).__mro__):
        if given.mode in ("RGB", "RGBA"):
            return np.asarray(given)
        raise NormalMeshError(
            f"normal_map is a Pillow image of mode {given.mode}; a normal map needs three channels, mode RGB or RGBA"
        )
    if hasattr(given, "window") and hasattr(given, "mask_window"):
        raise NormalMeshError("normal_map stays on disk: give it to reconstruct_tiled, or read it by read_normal_map")
    if given is None or isinstance(given, int | float | bytes | dict | set):
        raise NormalMeshError(f"normal_map must be {EXPECTED}, not {repr_for_error(given)}")
    array = checked_array(given, "normal_map", EXPECTED, kinds=None)
    if array.dtype.kind not in "fiu":
        raise NormalMeshError(f"normal_map must be {EXPECTED}, not {array.dtype} {shape_text(array.shape)}")
    if array.ndim == 3 and array.shape[0] == 3 and array.shape[2] not in (3, 4):
        array = np.moveaxis(array, 0, 2)
    if array.ndim == 3 and array.shape[2] in (3, 4) and array.size > 0:
        return array
    hint = HINTS.get(array.ndim, "")
    if array.ndim == 4 and len(array) == 1:
        hint = "; give the only map of the batch, as normal_map[0]"
    raise NormalMeshError(f"normal_map must have the shape (rows, columns, 3), not {shape_text(array.shape)}{hint}")
