"""Encode a small normal map in many file formats."""

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
    """Return unit normals (12, 17, 3) float64 of a paraboloid: all differ, and none is grazing."""
    v, u = np.mgrid[0:ROWS, 0:COLUMNS]
    n = np.dstack([(u - 8.2) / 9, (5.3 - v) / 8, np.ones((ROWS, COLUMNS))])
    return n / np.linalg.norm(n, axis=2, keepdims=True)


def encode(normals: np.ndarray, dtype: type) -> np.ndarray:
    """Return normals as integers: 2·value/maximum − 1, or value/maximum for signed types."""
    maximum = np.iinfo(dtype).max
    return np.rint(normals * maximum if np.iinfo(dtype).min else (normals + 1) / 2 * maximum).astype(dtype)


def with_alpha(values: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Return an image (H, W, 4) with an alpha channel (H, W)."""
    return np.dstack([values, alpha.astype(values.dtype)])


def corner_mask() -> np.ndarray:
    """Return the mask (12, 17) of a rectangle in the upper left corner."""
    mask = np.zeros((ROWS, COLUMNS), bool)
    mask[:5, :7] = True
    return mask


def assert_reads(path, tolerance, foreground=None, **options):
    """Check that a file reads as the dome within a tolerance, with the given pixels as foreground; default: all."""
    result = read_normal_map(path, **options)
    foreground = np.ones((ROWS, COLUMNS), bool) if foreground is None else foreground
    np.testing.assert_array_equal(result.mask, foreground)
    np.testing.assert_allclose(result.normals[foreground], dome()[foreground], atol=tolerance)


def write_png(path, values):
    """Write an image and return its path."""
    path.write_bytes(imagecodecs.png_encode(np.ascontiguousarray(values)))
    return path


def write_exr(path, channels, **header):
    """Write channels by name, with entries of the header, and return the path."""
    channels = {name: np.ascontiguousarray(values) for name, values in channels.items()}
    settings = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage, **header}
    OpenEXR.File(settings, channels).write(str(path))
    return path


def layer(normals, prefix="", axes="RGB", dtype=np.float32):
    """Return the components of normals as the channels of an EXR file, by name."""
    return {prefix + axis: normals[..., k].astype(dtype) for k, axis in enumerate(axes)}


def hand_made_png(width, height, depth, colour, rows, extra=b"", interlace=0):
    """Return a PNG made from raw rows, for kinds that encoders do not write."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    body = chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body
