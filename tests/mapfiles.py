"""A small normal map, and files that hold it in every way that files can."""

from __future__ import annotations

import struct
import zlib

import imagecodecs
import numpy as np
import pytest

from normalmesh import read_normal_map

OpenEXR = pytest.importorskip("OpenEXR")

ROWS, COLUMNS = 12, 17


def dome() -> np.ndarray:
    """Unit normals (12, 17, 3) float64 of a paraboloid: all directions differ, none is grazing."""
    v, u = np.mgrid[0:ROWS, 0:COLUMNS]
    n = np.dstack([(u - 8.2) / 9, (5.3 - v) / 8, np.ones((ROWS, COLUMNS))])
    return n / np.linalg.norm(n, axis=2, keepdims=True)


def encode(normals: np.ndarray, dtype: type) -> np.ndarray:
    """Normals as integers: 2·value/maximum − 1, or value/maximum for signed types."""
    maximum = np.iinfo(dtype).max
    return np.rint(normals * maximum if np.iinfo(dtype).min else (normals + 1) / 2 * maximum).astype(dtype)


def with_alpha(values: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    return np.dstack([values, alpha.astype(values.dtype)])


def corner_mask() -> np.ndarray:
    mask = np.zeros((ROWS, COLUMNS), bool)
    mask[:5, :7] = True
    return mask


def assert_reads(path, tolerance, foreground=None, **options):
    """The file reads as the dome, within a tolerance, with all of it or the given pixels as foreground."""
    result = read_normal_map(path, **options)
    foreground = np.ones((ROWS, COLUMNS), bool) if foreground is None else foreground
    np.testing.assert_array_equal(result.mask, foreground)
    np.testing.assert_allclose(result.normals[foreground], dome()[foreground], atol=tolerance)


def write_png(path, values):
    path.write_bytes(imagecodecs.png_encode(np.ascontiguousarray(values)))
    return path


def write_exr(path, channels, **header):
    channels = {name: np.ascontiguousarray(values) for name, values in channels.items()}
    settings = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage, **header}
    OpenEXR.File(settings, channels).write(str(path))
    return path


def layer(normals, prefix="", axes="RGB", dtype=np.float32):
    return {prefix + axis: normals[..., k].astype(dtype) for k, axis in enumerate(axes)}


def hand_made_png(width, height, depth, colour, rows, extra=b"", interlace=0):
    """A PNG from raw rows, for kinds that encoders do not write."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    body = chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body
