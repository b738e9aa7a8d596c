"""Geometry: a mesh and its values at the vertices, packed small enough for a page.

Vertices go along a space-filling curve and faces in the order of their vertices, so that neighbours in an array are
neighbours on the surface. What is stored is then the difference to the neighbour, whose high bytes are nearly all zero,
byte by byte (all low bytes first), deflated.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Positions in a box are counted from 0 to this along each of its sides.
FINEST = 65535
#: A value at a vertex that is not known; known ones are 0 … 254.
UNKNOWN = 255


@dataclass(frozen=True, eq=False)
class Geometry:
    """A mesh to be shown.

    Attributes
    ----------
    vertices, faces
        (N, 3) positions, and (M, 3) vertices.
    values
        By name: (N,) from 0 to 1, the colours of a shading; NaN where unknown.
    coordinates
        (N, 2) from 0 to 1 of a picture, from its bottom left.
    cuts
        (K, 2) ends of the edges along which the mesh is cut.
    """

    vertices: NDArray[np.float64]
    faces: NDArray[np.int32]
    values: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    coordinates: NDArray[np.float64] | None = None
    cuts: NDArray[np.int32] | None = None

    def packed(self) -> tuple[str, dict[str, Any]]:
        """The arrays in Base64, and where in them each one lies, for the viewer."""
        low = self.vertices.min(axis=0)
        size = self.vertices.max(axis=0) - low
        places = _counted((self.vertices - low) / np.where(size > 0, size, 1))
        order = np.argsort(_along_curve(places), kind="stable")
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        arrays: dict[str, NDArray] = {"position": _differences(places[order]), "index": _face_steps(number[self.faces])}
        if self.coordinates is not None:
            arrays["uv"] = _differences(_counted(self.coordinates)[order])
        if self.cuts is not None and len(self.cuts):
            arrays["cuts"] = number[self.cuts].astype(np.uint32)
        for name, values in self.values.items():
            known = np.round(np.clip(np.nan_to_num(values), 0, 1) * (UNKNOWN - 1))
            arrays[name] = np.where(np.isnan(values), UNKNOWN, known).astype(np.uint8)[order]
        layout, parts, start = {}, [], 0
        for name, array in arrays.items():
            content = _byte_planes(array)
            layout[name] = {"start": start, "bytes": array.itemsize, "shape": array.shape}
            start += len(content)
            parts.append(content)
        packed = base64.b64encode(zlib.compress(b"".join(parts), 6)).decode()
        return packed, {"arrays": layout, "low": low.tolist(), "size": size.tolist()}


def _counted(shares: NDArray[np.float64]) -> NDArray[np.uint16]:
    return np.round(np.clip(shares, 0, 1) * FINEST).astype(np.uint16)


def _along_curve(places: NDArray[np.uint16]) -> NDArray[np.uint64]:
    """Place (N,) on a Morton curve through the plane of x and y: their bits in turns."""
    bits = places[:, :2].astype(np.uint64)
    for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
        bits = (bits | (bits << np.uint64(shift))) & np.uint64(mask)
    return bits[:, 0] | (bits[:, 1] << np.uint64(1))


def _differences(places: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Each row less the one before, modulo 2¹⁶, with the sign in the lowest bit."""
    steps = np.diff(places, axis=0, prepend=np.zeros((1, places.shape[1]), np.uint16)).view(np.int16)
    return ((steps << 1) ^ (steps >> 15)).view(np.uint16)


def _face_steps(faces: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Faces (M, 3), each from its first vertex on, in the order of these: step to it from the last face, then on."""
    first = faces.argmin(axis=1)[:, None]
    faces = np.take_along_axis(faces, (first + np.arange(3)) % 3, axis=1)
    faces = faces[np.lexsort((faces[:, 1], faces[:, 0]))]
    steps = faces - faces[:, :1]
    steps[:, 0] = np.diff(faces[:, 0], prepend=0)
    return steps.astype(np.uint32)


def _byte_planes(array: NDArray) -> bytes:
    """Column after column, in each all lowest bytes, then all second ones, …"""
    columns = array.reshape(len(array), -1).T
    little = np.ascontiguousarray(columns.astype(array.dtype.newbyteorder("<")))
    return little.view(np.uint8).reshape(*columns.shape, array.itemsize).swapaxes(1, 2).tobytes()
