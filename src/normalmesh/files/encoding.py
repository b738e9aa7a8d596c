"""Encoding normals, depths, masks and pictures as image files and arrays."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from numbers import Integral
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float32, Floating, UInt8
from normalmesh.errors import NormalMeshError, path_text, repr_for_error
from normalmesh.files.precision import depth_tolerance, rounding, warn_of_rounding
from normalmesh.runtime.row_blocks import row_blocks
from normalmesh.runtime.temporary_files import steps, temporary_path


def encode_normals(path: Path, normals: Floating, mask: Bool, bits: int | None = None) -> bytes:
    """Encode the channels (H, W, 3) of a normal map in the format of the path's suffix.

    PNG: 16 or 8 bit with the mask as alpha. EXR and TIFF: floats of 32 bit with alpha, or fewer bits. NPY: float32,
    zero outside the mask. ``bits`` is one of :data:`NORMAL_FORMATS`, by default the first one of the format.
    """
    suffix = checked_suffix(path, NORMALS_SUFFIXES, "normals")
    encode, possible = NORMAL_FORMATS[suffix]
    channels = np.where(mask[..., None], normals, 0).astype(np.float32)
    return encode(channels, mask, path, checked_bits(path, bits, possible))


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
    suffix = checked_suffix(path, tuple(_DEPTH_ENCODERS), "depths")
    error, doubles = rounding(depth), False
    if error > depth_tolerance(depth):
        doubles = suffix != ".exr"
        if not doubles:
            warn_of_rounding(path, "depths", error, "write NPY or TIFF")
    return _DEPTH_ENCODERS[suffix](depth.astype(np.float64 if doubles else np.float32), path)


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
    return _written(lambda file: np.save(file, array))


def _integers(normals: Float32, mask: Bool, bits: int) -> NDArray[np.unsignedinteger]:
    """Return normals (H, W, 3) and mask as channels (H, W, 4) of unsigned integers."""
    most = 2**bits - 1
    channels = np.empty((*mask.shape, 4), np.uint8 if bits == 8 else np.uint16)
    for rows in row_blocks(mask.shape):
        channels[rows, :, :3] = np.round((normals[rows].astype(np.float64) + 1) / 2 * most)
        channels[rows, :, 3] = most * mask[rows]
    return channels


def _normals_png(normals: Float32, mask: Bool, path: Path, bits: int) -> bytes:
    return encode_png(_integers(normals, mask, bits))


def _normals_exr(normals: Float32, mask: Bool, path: Path, bits: int) -> bytes:
    stored = np.dstack([normals, mask]).astype(np.float32 if bits == 32 else np.float16)
    return _exr(path, dict(zip("RGBA", np.moveaxis(stored, -1, 0), strict=True)))


def _normals_tiff(normals: Float32, mask: Bool, path: Path, bits: int) -> bytes:
    stored = np.dstack([normals, mask]).astype(np.float32) if bits == 32 else _integers(normals, mask, bits)
    return _tiff(stored, alpha=True)


def _normals_npy(normals: Float32, mask: Bool, path: Path, bits: int) -> bytes:
    return encode_npy(normals)


def _depth_exr(depth: Floating, path: Path) -> bytes:
    return _exr(path, {"Z": depth})


def _depth_tiff(depth: Floating, path: Path) -> bytes:
    return _tiff(depth)


def _depth_npy(depth: Floating, path: Path) -> bytes:
    return encode_npy(depth)


def _tiff(array: NDArray[np.generic], alpha: bool = False) -> bytes:
    import tifffile

    photometric = "rgb" if array.ndim == 3 else "minisblack"
    extra = ["unassalpha"] if alpha else None
    return _written(
        lambda file: tifffile.imwrite(file, array, photometric=photometric, compression="zlib", extrasamples=extra)
    )


def _written(write: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(file)
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


#: Formats of normals by suffix: how they are encoded, and the possible bits of a channel, the usual number first.
NORMAL_FORMATS: dict[str, tuple[Callable[[Float32, Bool, Path, int], bytes], tuple[int, ...]]] = {
    ".png": (_normals_png, (16, 8)),
    ".exr": (_normals_exr, (32, 16)),
    ".tif": (_normals_tiff, (32, 16, 8)),
    ".tiff": (_normals_tiff, (32, 16, 8)),
    ".npy": (_normals_npy, (32,)),
}
_DEPTH_ENCODERS: dict[str, Callable[[Floating, Path], bytes]] = {
    ".exr": _depth_exr,
    ".tif": _depth_tiff,
    ".tiff": _depth_tiff,
    ".npy": _depth_npy,
}
#: Suffixes of TIFF files, and of files of normals and of depths that can be written.
TIFF_SUFFIXES = (".tif", ".tiff")
NORMALS_SUFFIXES = tuple(NORMAL_FORMATS)
DEPTH_SUFFIXES = (*_DEPTH_ENCODERS, ".png")
