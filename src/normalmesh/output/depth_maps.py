"""Reading depth maps: one number for each pixel."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from normalmesh.arguments import checked_path
from normalmesh.array_types import Float
from normalmesh.errors import shape_text
from normalmesh.files.arrays import read_depth_array, read_npy
from normalmesh.files.exr import read_exr_channel
from normalmesh.files.formats import file_format, unknown_format, unusable
from normalmesh.files.height_png import stored_range, warn_of_strength
from normalmesh.files.images import IMAGE_FORMATS, read_image
from normalmesh.files.size_limits import limited_pixels, refuse_beyond_memory


def read_depth_map(path: str | PathLike[str], variable: str | None = None, *, max_pixels: float | None = None) -> Float:
    """Read depths (H, W) as stored, NaN where they are unknown: not finite, or zero in an image of integers.

    The number that a TIFF declares to stand for missing values (GDAL) is unknown, too. A PNG whose text, or the JSON
    file beside it, gives the range of its heights (:func:`read_height_range`) is read in the unit of that range.

    Parameters
    ----------
    path
        NPY, NPZ, MAT (version 5 to 7), EXR, or a grey TIFF or PNG.
    variable
        Which array of an NPZ or MAT file, or which channel of an EXR file.
    max_pixels
        As in :func:`normalmesh.read_normal_map`.

    Raises
    ------
    NormalMeshError
        The file cannot be read or does not hold one number a pixel.
    """
    path = checked_path(path)
    name = file_format(path)
    with limited_pixels(max_pixels):
        stored, missing = _read_stored(path, name, variable)
        found = stored_range(path)
    if stored.ndim != 2 or stored.dtype.kind not in "iuf" or stored.size == 0:
        raise unusable(path, f"depths must be numbers (rows, columns), not {stored.dtype} {shape_text(stored.shape)}")
    refuse_beyond_memory(path, 8 * stored.size)
    if found is not None:
        warn_of_strength(path, found.strength)
        return found.lengths(stored, 2 ** (8 * stored.dtype.itemsize) - 1)
    depth = stored.astype(np.float64)
    depth[~np.isfinite(depth)] = np.nan
    if missing:
        depth[np.isin(stored, missing)] = np.nan
    return depth


def _read_stored(path: Path, name: str | None, variable: str | None) -> tuple[NDArray[np.generic], list[int]]:
    """Return the numbers in a file of the given format, and those that stand for a missing depth."""
    if name in ("NPZ", "MAT"):
        return read_depth_array(path, name, variable), []
    if name == "EXR":
        return read_exr_channel(path, variable), []
    if variable is not None and name in (*IMAGE_FORMATS, "NPY"):
        raise unusable(path, f"a {name} file holds one image: variable={variable!r} cannot be chosen from it")
    if name == "NPY":
        return read_npy(path), []
    if name in ("PNG", "TIFF"):
        image = read_image(path, name)
        if image.values.shape[2] != 1 or image.colour != "grey":
            raise unusable(path, f"is a {image.colour} image; a depth map has one grey channel")
        missing = [0] if image.nodata is None else [0, image.nodata]
        return image.values[..., 0], missing if image.maximum is not None else []
    raise unknown_format(path, name, "an NPY, NPZ, MAT, EXR, TIFF or PNG file with depths")
