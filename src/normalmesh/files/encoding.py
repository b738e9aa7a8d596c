"""From normals, depths and masks on the pixels to the bytes of image files."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from normalmesh.errors import NormalMeshError
from normalmesh.runtime.temporary_files import steps, temporary_path

#: Suffixes of files that hold normals, and of those that hold depths.
NORMALS_SUFFIXES = (".png", ".exr", ".tif", ".tiff", ".npy")
DEPTH_SUFFIXES = (".exr", ".tif", ".tiff", ".npy")


def encode_normals(path: Path, normals: NDArray[np.floating], mask: NDArray[np.bool_]) -> bytes:
    """A normal map (H, W, 3) in the format of the path's suffix, convention opengl.

    PNG: 16 bit with the mask as alpha. EXR: float32 with alpha. TIFF and NPY: float32, zero outside the mask.
    """
    suffix = checked_suffix(path, NORMALS_SUFFIXES, "normals")
    inside = np.where(mask[..., None], normals, 0).astype(np.float32)
    if suffix == ".png":
        return encode_png(
            np.dstack([np.round((inside.astype(np.float64) + 1) / 2 * 65535), 65535 * mask]).astype(np.uint16)
        )
    if suffix == ".exr":
        channels = dict(zip("RGB", np.moveaxis(inside, -1, 0), strict=True))
        return _exr(path, {**channels, "A": mask.astype(np.float32)})
    return _tiff(inside) if suffix != ".npy" else _npy(inside)


def encode_depth(path: Path, depth: NDArray[np.floating]) -> bytes:
    """A depth map (H, W), NaN where there is none, as float32 in the format of the path's suffix: EXR, TIFF or NPY."""
    suffix = checked_suffix(path, DEPTH_SUFFIXES, "depths")
    values = depth.astype(np.float32)
    if suffix == ".exr":
        return _exr(path, {"Z": values})
    return _tiff(values) if suffix != ".npy" else _npy(values)


def encode_mask(path: Path, mask: NDArray[np.bool_]) -> bytes:
    """A mask (H, W) as a grey PNG: foreground white."""
    checked_suffix(path, (".png",), "masks")
    return encode_png(255 * mask.astype(np.uint8))


def encode_picture(path: Path, image: NDArray[np.uint8]) -> bytes:
    """A picture (H, W, 3) as PNG."""
    checked_suffix(path, (".png",), "pictures")
    return encode_png(image)


def checked_suffix(path: Path, suffixes: tuple[str, ...], what: str) -> str:
    """The suffix of a file to be written, in lower case, or an error that lists the possible ones."""
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        raise NormalMeshError(f"cannot write {path}: the suffix of {what} must be one of {', '.join(suffixes)}")
    return suffix


def encode_png(image: NDArray[np.unsignedinteger]) -> bytes:
    """An image (H, W) or (H, W, C) as PNG, whatever its file is called."""
    import imagecodecs

    return bytes(imagecodecs.png_encode(np.ascontiguousarray(image)))


def _npy(array: NDArray[np.float32]) -> bytes:
    return _written(lambda file: np.save(file, array))


def _tiff(array: NDArray[np.float32]) -> bytes:
    import tifffile

    photometric = "rgb" if array.ndim == 3 else "minisblack"
    return _written(lambda file: tifffile.imwrite(file, array, photometric=photometric, compression="zlib"))


def _written(write: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _exr(path: Path, channels: dict[str, NDArray[np.float32]]) -> bytes:
    try:
        import OpenEXR
    except ImportError as error:
        raise NormalMeshError(f"{path}: writing EXR needs OpenEXR; pip install normalmesh[exr]") from error

    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    pixels = {name: np.ascontiguousarray(values) for name, values in channels.items()}
    # OpenEXR writes to named files only.
    with temporary_path(Path(tempfile.gettempdir()), ".exr") as file:
        with steps:
            file.touch(mode=0o600, exist_ok=False)
        OpenEXR.File(header, pixels).write(str(file))
        return file.read_bytes()
