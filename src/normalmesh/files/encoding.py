"""Encoding normals, depths, masks and pictures as image files and arrays."""

from __future__ import annotations

import io
import tempfile
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float32, Floating, UInt8
from normalmesh.errors import NormalMeshError, path_text, repr_for_error
from normalmesh.files.precision import depth_tolerance, rounding, warn_of_rounding
from normalmesh.runtime.row_blocks import row_blocks
from normalmesh.runtime.temporary_files import steps, temporary_path

#: Formats of normals by suffix: the possible bits of a channel, the usual number first.
NORMAL_BITS = {".png": (16, 8), ".exr": (32, 16), ".tif": (32, 16, 8), ".tiff": (32, 16, 8), ".npy": (32,)}
#: Suffixes of TIFF files, and of files of normals and of depths that can be written.
TIFF_SUFFIXES = (".tif", ".tiff")
NORMALS_SUFFIXES = tuple(NORMAL_BITS)
DEPTH_SUFFIXES = (".exr", *TIFF_SUFFIXES, ".npy", ".png")


def encode_normals(path: Path, normals: Floating, mask: Bool, bits: int | None = None) -> bytes:
    """Encode the channels (H, W, 3) of a normal map in the format of the path's suffix.

    PNG: 16 or 8 bit with the mask as alpha. EXR and TIFF: floats of 32 bit with alpha, or fewer bits. NPY: float32,
    zero outside the mask. ``bits`` is one of :data:`NORMAL_BITS`, by default the first one of the format.
    """
    suffix = checked_suffix(path, NORMALS_SUFFIXES, "normals")
    bits = checked_bits(path, bits, NORMAL_BITS[suffix])
    channels = np.where(mask[..., None], normals, 0).astype(np.float32)
    if suffix == ".npy":
        return encode_npy(channels)
    if suffix == ".exr" or bits == 32:
        stored = np.dstack([channels, mask]).astype(np.float32 if bits == 32 else np.float16)
        planes = dict(zip("RGBA", np.moveaxis(stored, 2, 0), strict=True))
        return _exr(path, planes) if suffix == ".exr" else _tiff(stored)
    return (encode_png if suffix == ".png" else _tiff)(_integers(channels, mask, bits))


def checked_bits(path: Path, bits: object, possible: tuple[int, ...]) -> int:
    """Return the bits of a channel, by default the first ones possible, or raise :class:`NormalMeshError`."""
    if bits is None:
        return possible[0]
    if not isinstance(bits, Integral) or int(bits) not in possible:
        listed = " or ".join(map(str, possible))
        raise NormalMeshError(
            f"cannot write {path_text(path)}: bits of this format must be {listed}, not {repr_for_error(bits)}"
        )
    return int(bits)


def encode_depth(path: Path, depth: Floating) -> bytes:
    """Encode a depth map (H, W), NaN where there is none, in the format of the path's suffix: TIFF, NPY or EXR.

    Numbers are float32, or float64 in TIFF and NPY where float32 would round away the relief.
    """
    suffix = checked_suffix(path, DEPTH_SUFFIXES[:-1], "depths")
    error = rounding(depth)
    is_rounded = error > depth_tolerance(depth)
    if suffix == ".exr":
        if is_rounded:
            warn_of_rounding(path, "depths", error, "write NPY or TIFF")
        return _exr(path, {"Z": depth.astype(np.float32)})
    return (encode_npy if suffix == ".npy" else _tiff)(depth.astype(np.float64 if is_rounded else np.float32))


def encode_mask(path: Path, mask: Bool) -> bytes:
    """Encode a mask (H, W) as a grey PNG: foreground white."""
    checked_suffix(path, (".png",), "masks")
    return encode_png(255 * mask.astype(np.uint8))


def encode_picture(path: Path, image: UInt8) -> bytes:
    """Encode a picture (H, W, 3) as PNG."""
    checked_suffix(path, (".png",), "pictures")
    return encode_png(image)


def checked_suffix(path: Path, suffixes: tuple[str, ...], what: str) -> str:
    """Return the suffix of a file to be written, in lower case, or raise an error that lists the possible ones."""
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        raise NormalMeshError(
            f"cannot write {path_text(path)}: the suffix of {what} must be one of {', '.join(suffixes)}"
        )
    return suffix


def encode_png(image: NDArray[np.unsignedinteger]) -> bytes:
    """Encode an image (H, W) or (H, W, C) as PNG, whatever its file is called."""
    import imagecodecs

    return bytes(imagecodecs.png_encode(np.ascontiguousarray(image)))


def encode_npy(array: Floating) -> bytes:
    """Encode an array as NPY."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _integers(normals: Float32, mask: Bool, bits: int) -> NDArray[np.unsignedinteger]:
    """Return normals (H, W, 3) and mask as channels (H, W, 4) of unsigned integers."""
    most = 2**bits - 1
    channels = np.empty((*mask.shape, 4), np.uint8 if bits == 8 else np.uint16)
    for rows in row_blocks(mask.shape):
        channels[rows, :, :3] = np.round((normals[rows].astype(np.float64) + 1) / 2 * most)
        channels[rows, :, 3] = most * mask[rows]
    return channels


def _tiff(array: NDArray[Any]) -> bytes:
    """Encode an image (H, W), or (H, W, 4) with alpha."""
    import tifffile

    file, colours = io.BytesIO(), array.ndim == 3
    photometric, alpha = ("rgb", ["unassalpha"]) if colours else ("minisblack", None)
    tifffile.imwrite(file, array, photometric=photometric, compression="zlib", extrasamples=alpha)
    return file.getvalue()


def _exr(path: Path, channels: dict[str, Floating]) -> bytes:
    try:
        import OpenEXR
    except ImportError as error:
        raise NormalMeshError(f"{path_text(path)}: writing EXR needs OpenEXR; pip install normalmesh[exr]") from error

    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    pixels = {name: np.ascontiguousarray(values) for name, values in channels.items()}
    # OpenEXR writes to named files only.
    with temporary_path(Path(tempfile.gettempdir()), ".exr") as file:
        with steps:
            file.touch(mode=0o600, exist_ok=False)
        OpenEXR.File(header, pixels).write(str(file))
        return file.read_bytes()
