"""A mesh with values at its vertices, compressed for embedding in a page.

Vertices are sorted along a space-filling curve and faces by their vertices, so that neighbours in an array are
neighbours on the surface. The differences between neighbours, whose high bytes are nearly all zero, are stored as byte
planes (all low bytes first) and deflated.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Float, Int, Int32, Integer
from normalmesh.output.tile_tree import morton_codes

#: Largest quantised coordinate along each side of the bounding box.
MAX_COORDINATE = 65535
#: Byte for an unknown value at a vertex; known values are 0 … 254.
UNKNOWN = 255


@dataclass(frozen=True, eq=False)
class Geometry:
    """A mesh to be displayed.

    ``values`` (N,) of each shading are from 0 to 1, NaN where unknown; texture ``coordinates`` (N, 2) from 0 to 1, with
    the origin at the bottom left; ``cuts`` (K, 2) the vertices of the edges along which the mesh is cut.
    """

    vertices: Float
    faces: Int32
    values: dict[str, Float] = field(default_factory=dict)
    coordinates: Float | None = None
    cuts: Int32 | None = None

    @property
    def is_closed(self) -> bool:
        """Whether the faces are those of a solid: each edge has two."""
        starts, ends = self.faces, np.roll(self.faces, -1, axis=1)
        edges = np.minimum(starts, ends).astype(np.int64) * len(self.vertices) + np.maximum(starts, ends)
        return bool((np.unique(edges, return_counts=True)[1] == 2).all())

    def thinned(self, max_faces: int) -> Geometry:
        """Return a geometry of at most so many faces: vertices in the same cell of a grid become one, their mean."""
        if len(self.faces) <= max_faces:
            return self
        low, high = self.vertices.min(axis=0), self.vertices.max(axis=0)
        # A surface of two long sides has about two faces for each cell.
        long, second = np.sort(high - low)[:0:-1]
        cell = float(np.sqrt(2 * long * max(second, 1e-6 * long) / max_faces)) or 1.0
        while True:
            cells = np.floor((self.vertices - low) / cell).astype(np.int64)
            sizes = cells.max(axis=0) + 1
            keys = (cells[:, 0] * sizes[1] + cells[:, 1]) * sizes[2] + cells[:, 2]
            place = np.unique(keys, return_inverse=True)[1].reshape(-1)
            faces = place[self.faces].astype(np.int64)
            flat = (faces == np.roll(faces, 1, axis=1)).any(axis=1)
            faces = np.unique(_rotated(faces[~flat]), axis=0)
            if len(faces) <= max_faces:
                return self._merged(place, faces)
            cell *= 1.25

    def _merged(self, place: Integer, faces: Integer) -> Geometry:
        """Return the geometry whose vertices are the means of those that have the same ``place`` (N,)."""
        cuts = None if self.cuts is None else place[self.cuts]
        vertices = np.stack([_means(place, column) for column in self.vertices.T], axis=1)
        values = {name: _means(place, values) for name, values in self.values.items()}
        coordinates = self.coordinates
        if coordinates is not None:
            coordinates = np.stack([_means(place, column) for column in coordinates.T], axis=1)
        cuts = None if cuts is None else cuts[cuts[:, 0] != cuts[:, 1]].astype(np.int32)
        return Geometry(vertices, faces.astype(np.int32), values, coordinates, cuts)

    def packed(self) -> tuple[str, dict[str, Any]]:
        """Return the compressed arrays in Base64, and the layout from which the viewer decodes them."""
        low = self.vertices.min(axis=0)
        size = self.vertices.max(axis=0) - low
        positions = _quantised((self.vertices - low) / np.where(size > 0, size, 1))
        order = np.argsort(morton_codes(positions[:, 0], positions[:, 1]), kind="stable")
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        arrays: dict[str, NDArray[Any]] = {
            "position": _differences(positions[order]),
            "index": _face_steps(number[self.faces]),
        }
        if self.coordinates is not None:
            arrays["uv"] = _differences(_quantised(self.coordinates)[order])
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


def _means(place: Integer, values: Float) -> Float:
    """Return the means of the values (N,) with the same place, without those that are NaN."""
    known = ~np.isnan(values)
    counts = np.bincount(place, known)
    sums = np.bincount(place, np.where(known, values, 0))
    means: Float = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
    return means


def _rotated(faces: Int) -> Int:
    """Return faces (M, 3) that start at their vertex of smallest index."""
    first = faces.argmin(axis=1)[:, None]
    return np.take_along_axis(faces, (first + np.arange(3)) % 3, axis=1)


def _quantised(fractions: Float) -> NDArray[np.uint16]:
    return np.round(np.clip(fractions, 0, 1) * MAX_COORDINATE).astype(np.uint16)


def _differences(positions: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return the difference of each row to the previous one, modulo 2¹⁶, zigzag-encoded (sign in the lowest bit)."""
    steps = np.diff(positions, axis=0, prepend=np.zeros((1, positions.shape[1]), np.uint16)).view(np.int16)
    return ((steps << 1) ^ (steps >> 15)).view(np.uint16)


def _face_steps(faces: Int) -> NDArray[np.uint32]:
    """Return the faces (M, 3) as differences.

    Each face starts at its vertex of smallest index, and faces are sorted by it. The first column is the difference to
    the first vertex of the previous face, the others are differences to the first vertex of the same face.
    """
    faces = _rotated(faces)
    faces = faces[np.lexsort((faces[:, 1], faces[:, 0]))]
    steps = faces - faces[:, :1]
    steps[:, 0] = np.diff(faces[:, 0], prepend=0)
    return steps.astype(np.uint32)


def _byte_planes(array: NDArray[Any]) -> bytes:
    """Return the bytes of an array column by column, in each column all lowest bytes first, then the second ones, …"""
    columns = array.reshape(len(array), -1).T
    little = np.ascontiguousarray(columns.astype(array.dtype.newbyteorder("<")))
    return little.view(np.uint8).reshape(*columns.shape, array.itemsize).swapaxes(1, 2).tobytes()
