"""Heights and depths, one number for each pixel: read from files, and turned into normal maps."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_array, checked_path
from normalmesh.array_types import Float
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.files.arrays import read_depth_array, read_npy
from normalmesh.files.exr import read_exr_channel
from normalmesh.files.formats import file_format, unknown_format, unusable
from normalmesh.files.height_png import read_height_range, stored_range, warn_of_strength
from normalmesh.files.images import IMAGE_FORMATS, read_image
from normalmesh.files.size_limits import limited_pixels, refuse_beyond_memory
from normalmesh.maps.cameras import camera_from
from normalmesh.normals.camera import MAX_COORDINATE, Camera
from normalmesh.normals.gradients import normals_of_slopes
from normalmesh.normals.normal_map import NormalMap

#: Weights of five values in a row for the derivative at the middle one where a neighbour is unknown, the best first.
ONE_SIDED = ((0, 0, -1.5, 2, -0.5), (0.5, -2, 1.5, 0, 0), (0, 0, -1, 1, 0), (0, -1, 1, 0, 0))


def from_heights(
    heights: ArrayLike | str | PathLike[str],
    mask: ArrayLike | None = None,
    camera: Camera | str | PathLike[str] | None = None,
) -> NormalMap:
    """Return the normal map of a height map or of a perspective depth map.

    Slopes are central differences, and differences of second order at the rim of the foreground: paraboloids are exact.
    :func:`reconstruct` of the result gives the heights back, up to a constant (perspective: up to a scale).

    Parameters
    ----------
    heights
        (H, W) as :meth:`Surface.depth_map` defines them: height towards the viewer, in the unit of the pixel size
        (orthographic), or distance along the optical axis (perspective). NaN where unknown. Or a file of them: NPY,
        NPZ, MAT, EXR, or a grey TIFF or PNG, as :func:`read_depth_map` reads them.
    mask
        (H, W), nonzero = foreground; default: where heights are known, and enclosed specks of at most 16 pixels.
    camera
        A camera or a file with its matrix, as for :func:`read_normal_map`. Default: that of a PNG of
        :meth:`Surface.save_depth`, else :class:`Orthographic` with pixels of side 1. Give ``Orthographic(0.25)`` if
        heights are in mm and pixels 0.25 mm wide.

    Returns
    -------
    NormalMap
        Background where heights are unknown, or outside the mask.

    Raises
    ------
    NormalMeshError
        No heights (rows, columns), or distances that are not positive.

    Examples
    --------
    >>> z = np.hypot(*np.mgrid[-20:20, -20:20])  # heights in pixels
    >>> normal_map = nm.from_heights(z)
    """
    if isinstance(heights, str | PathLike):
        path = checked_path(heights, "heights")
        values, about = read_depth_map(path), read_height_range(path) if camera is None else None
        view = None if about is None else about.camera
    else:
        values, view = np.array(checked_array(heights, "heights"), np.float64), None
    view = camera_from(camera) if view is None else view
    if values.ndim != 2 or min(values.shape) < 2:
        raise NormalMeshError(
            f"heights must have the shape (rows, columns), 2×2 or more, not {shape_text(values.shape)}"
        )
    values[~(np.abs(values) <= MAX_COORDINATE)] = np.nan
    view.check_depths(values, "distances, which are NaN where they are unknown,")
    unknown = view.unknown_of_depth(values)
    slopes = np.stack([_slopes_along(unknown.T).T, _slopes_along(unknown)], axis=-1)
    if not np.isfinite(slopes).all(axis=-1).any():
        raise NormalMeshError(
            "heights are empty: there is no pixel with a finite height that has such neighbours in its row and column"
        )
    return NormalMap(normals_of_slopes(slopes, view), mask, view)  # type: ignore[arg-type]  # None: no mask


def _slopes_along(values: Float) -> Float:
    """Return the derivatives (H, W) of values along the first axis; NaN where no neighbour is known.

    Central where both neighbours are known; else from the next two on one side, or from the only one.
    """
    # Two rows of unknown values on either side: the neighbours of every row exist.
    rows = len(values)
    padded = np.pad(values, ((2, 2), (0, 0)), constant_values=np.nan)
    back2, back, here, ahead, ahead2 = (padded[first : first + rows] for first in range(5))
    slopes: Float = (ahead - back) / 2
    for weights in ONE_SIDED:
        missing = np.isnan(slopes)
        slopes[missing] = sum(
            weight * neighbour[missing]
            for weight, neighbour in zip(weights, (back2, back, here, ahead, ahead2), strict=True)
            if weight
        )
    # The heights on both sides of an unknown one do not make it known.
    slopes[np.isnan(values)] = np.nan
    return slopes


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
