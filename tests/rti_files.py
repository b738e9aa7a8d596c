"""Relightable images made from photographs, as the published formats describe them."""

import struct

import imagecodecs
import numpy as np


def dome(count=60, lowest=15):
    """Unit directions (count, 3) of the lamps of a dome, from ``lowest`` degrees above the object to its zenith."""
    place = np.arange(count) + 0.5
    z = 1 - (1 - np.sin(np.radians(lowest))) * place / count
    turn, radius = place * np.pi * (3 - np.sqrt(5)), np.sqrt(1 - z * z)
    return np.stack([radius * np.cos(turn), radius * np.sin(turn), z], axis=1)


def photographed(normals, lights, colour=(1.0, 1.0, 1.0)):
    """Photographs (K, H, W, 3) of a matt surface with its attached shadows, white 1."""
    return np.maximum(np.einsum("hwc,kc->khw", normals.astype(float), lights), 0)[..., None] * np.asarray(colour)


def _fit(basis, images):
    """Coefficients (H, W, C, T) of the least squares fit to images (K, H, W, C)."""
    return np.einsum("tk,khwc->hwct", np.linalg.pinv(basis), images)


def ptm_planes(images, lights):
    """Return coefficients (H, W, C, 6) as bytes, rows from the bottom to the top, with scale and bias."""
    u, v = lights[:, 0], lights[:, 1]
    found = _fit(np.stack([u**2, v**2, u * v, u, v, 0 * u + 1], axis=1), 255 * images)[::-1]
    low, high = found.min(axis=(0, 1, 2)), found.max(axis=(0, 1, 2))
    # Bias is an integer from 0 to 255: where all coefficients have one sign, the range is extended to zero.
    low, high = np.minimum(low, 0), np.maximum(high, 1e-6)
    scale = (high - low) / 254
    bias = np.round(-low / scale)
    return np.clip(np.round(found / scale + bias), 0, 255).astype(np.uint8), scale, bias


def write_ptm(path, images, lights, kind="LRGB", newline="\n"):
    """Write photographs (K, H, W, 3) as PTM_1.2; of LRGB formats, the colour is that of the mean photograph."""
    luminance = "LRGB" in kind
    colour = np.zeros((0,), np.uint8)
    if luminance:
        mean = images.mean(axis=0)
        colour = np.round(255 * mean / np.maximum(mean.max(axis=2, keepdims=True), 1e-9)).astype(np.uint8)[::-1]
        images = images.max(axis=3, keepdims=True)
    stored, scale, bias = ptm_planes(images, lights)
    rows, columns = stored.shape[:2]
    head = ["PTM_1.2", f"PTM_FORMAT_{kind}", f"{columns}", f"{rows}"]
    head += [" ".join(f"{each:.9g}" for each in scale) + " ", " ".join(f"{each:.0f}" for each in bias) + " "]
    if kind.startswith("JPEG"):
        planes = np.concatenate([stored.reshape(rows, columns, -1)] + ([colour] if luminance else []), axis=2)
        lines, body = _compressed(np.moveaxis(planes, 2, 0))
        head += lines
    else:
        body = np.moveaxis(stored, 2, 0).tobytes() + colour.tobytes()
    path.write_bytes((newline.join(head) + newline).encode() + body)
    return path


def _compressed(planes):
    """Planes as JPEG images: the second one as the inverse of the first, with a correction of one pixel."""
    count = len(planes)
    order, reference, flags, sizes, side = list(range(count)), [-1] * count, [0] * count, [], [0] * count
    streams = []
    for index, plane in enumerate(planes):
        extra = b""
        if index == 1:
            first = imagecodecs.jpeg8_decode(streams[0])
            plane = (plane.astype(int) - (255 - first.astype(int)) + 128).astype(np.uint8)
            reference[1], flags[1] = 0, 1
            extra = struct.pack(">IB", 7, planes[1].flat[7])
            side[1] = len(extra)
        streams.append(imagecodecs.jpeg8_encode(np.ascontiguousarray(plane), level=99))
        sizes.append(len(streams[-1]))
        streams[-1] = streams[-1] if index != 1 else streams[-1] + extra
    rows = [[99], flags, [0] * count, [0] * count, order, reference, sizes, side]
    return [" ".join(map(str, row)) for row in rows], b"".join(streams)


def write_hsh(path, images, lights, terms=9):
    """Write photographs (K, H, W, 3) as #HSH1.2, rows from the top to the bottom."""
    cos, turn = lights[:, 2], np.arctan2(lights[:, 1], lights[:, 0])
    sin = np.sqrt(cos - cos**2)
    basis = [0 * cos + 1 / np.sqrt(2), np.sqrt(6) * np.cos(turn) * sin, np.sqrt(3 / 2) * (2 * cos - 1)]
    basis += [np.sqrt(6) * np.sin(turn) * sin]
    basis += [np.sqrt(30) * np.cos(2 * turn) * (cos**2 - cos), np.sqrt(30) * np.cos(turn) * (2 * cos - 1) * sin]
    basis += [np.sqrt(5 / 2) * (1 - 6 * cos + 6 * cos**2), np.sqrt(30) * np.sin(turn) * (2 * cos - 1) * sin]
    basis += [np.sqrt(30) * np.sin(2 * turn) * (cos**2 - cos)]
    found = _fit(np.stack(basis[:terms], axis=1) / np.sqrt(np.pi), images)
    low, high = found.min(axis=(0, 1, 2)), found.max(axis=(0, 1, 2))
    stored = np.round(255 * (found - low) / np.maximum(high - low, 1e-9)).astype(np.uint8)
    rows, columns = stored.shape[:2]
    head = f"#HSH1.2\r\n# a comment\r\n3\r\n{columns} {rows} 3\r\n{terms} 2 1\r\n"
    floats = np.concatenate([high - low, low]).astype("<f4")
    path.write_bytes(head.encode() + floats.tobytes() + stored.tobytes())
    return path
