"""Elements: the terms of a quadratic form over the faces of a mesh, and their division among tiles.

An element belongs to the highest of the tiles of its faces. A face is a *separator* if it occurs in an element of a
higher tile than its own. The unknowns of a tile are its own faces and the separators of lower tiles in its elements;
its *border* are all separators among them, its *interior* all others, which occur in no other tile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, identity

from normalmesh.array_types import Float, Int32, Integer
from normalmesh.mesh.components import components
from normalmesh.solvers.gauge import Gauge


@dataclass(frozen=True, eq=False)
class Elements:
    """The terms ``Σ w (x_f' − x_f − t)² + Σ w (row · x − v)²`` over M faces."""

    pairs: Integer  # (E, 2): faces f, f' of each edge
    weights: Float  # (E,): w of each edge
    steps: Float  # (E,): t of each edge
    rows: csr_matrix  # (K, M): single faces that are held, or faces that edges connect; no row sums to zero
    row_weights: Float  # (K,): w of each row
    row_values: Float  # (K,): v of each row

    @classmethod
    def of_edges(cls, pairs: Integer, weights: Float, steps: Float, count: int) -> Elements:
        """Return the elements of edges alone, over ``count`` faces."""
        return cls(pairs, weights, steps, csr_matrix((0, count)), np.empty(0), np.empty(0))

    def holding(self, weights: Float, values: Float) -> Elements:
        """Return the elements of these edges, and of faces that are held at values (M,) with weights (M,)."""
        held = np.flatnonzero(weights)
        rows = identity(len(weights), format="csr")[held]
        return replace(self, rows=rows, row_weights=weights[held], row_values=values[held])

    def diagonal(self) -> Float:
        """Return the diagonal (M,) of the matrix."""
        first, second = (np.bincount(faces, self.weights, self.rows.shape[1]) for faces in self.pairs.T)
        rows: Float = self.rows.power(2).T @ self.row_weights
        return first + second + rows

    def gauge(self) -> Gauge:
        """Return the connected components, of which those that nothing but edges determine are floating."""
        rows = self.rows
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        same = row[1:] == row[:-1]
        within = np.stack([rows.indices[:-1][same], rows.indices[1:][same]], axis=1)
        joined = self.weights != 0
        pairs = self.pairs if joined.all() else self.pairs[joined]
        component = components(np.concatenate([pairs, within]) if len(within) else pairs, rows.shape[1])
        floating = np.ones(int(component.max()) + 1, np.bool_)
        floating[component[rows.indices]] = False
        return Gauge(component, floating)


class TileSystem(NamedTuple):
    """The elements of a tile over its n faces, for the tasks of :mod:`.elimination_tasks`."""

    inside: int  # number of interior faces, which come first; the border follows
    coordinates: Float  # (n, 2): positions of the faces
    pairs: Int32
    weights: Float
    steps: Float
    rows: csr_matrix
    row_weights: Float
    row_values: Float
    afloat: Integer  # (n,): component of faces of floating components that lie in the interior, −1 for all others

    @property
    def size(self) -> int:
        """Number of faces."""
        return len(self.coordinates)


class Partition(Mapping[int, TileSystem]):
    """The systems of all tiles that have faces, which are made when they are asked for, and not kept.

    ``tile`` (M,) is the tile of each face, ``coordinates`` (M, 2) its position, ``gauge`` components and free constants
    of the whole system. Faces that are ``separators`` (S,) ascend, as do the ``borders`` of tiles, which are indices
    into them; ``diagonal`` (S,) is that of the matrix there.
    """

    def __init__(self, elements: Elements, tile: Integer, coordinates: Float, gauge: Gauge | None = None) -> None:
        self._elements, self._tile, self._coordinates = elements, tile, coordinates
        self.gauge = gauge or elements.gauge()
        rows, (first, second) = elements.rows, elements.pairs.T
        edge_tile = np.maximum(tile[first], tile[second])
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        row_tile = np.full(rows.shape[0], -1, tile.dtype)
        np.maximum.at(row_tile, row, tile[rows.indices])
        self._shared = np.zeros(len(tile), np.bool_)
        for faces, owner in ((first, edge_tile), (second, edge_tile), (rows.indices, row_tile[row])):
            self._shared[faces[tile[faces] < owner]] = True
        self.separators = np.flatnonzero(self._shared)
        self.diagonal = elements.diagonal()[self.separators]
        count = int(tile.max()) + 1
        self._faces, self._edges, self._rows = (_Groups(each, count) for each in (tile, edge_tile, row_tile))
        self._place = np.empty(len(tile), np.int32)
        self._tiles = np.flatnonzero(np.bincount(tile))
        self._afloat = self.gauge.floating.copy()
        self._afloat[self.gauge.component[self.separators]] = False
        self.borders = {t: np.searchsorted(self.separators, self._border(t)) for t in self}

    def __iter__(self) -> Iterator[int]:
        return (int(t) for t in self._tiles)

    def __len__(self) -> int:
        return len(self._tiles)

    def faces(self, tile: int) -> Integer:
        """Return the faces of a tile's system: its interior, then its border."""
        return np.concatenate([self.interior(tile), self.separators[self.borders[tile]]])

    def interior(self, tile: int) -> Integer:
        """Return the interior faces of a tile, ascending."""
        own = self._faces[tile]
        return own[~self._shared[own]]

    def local(self, tile: int, values: Float) -> Float:
        """Return those of the values (M,) that belong to a tile's own faces, as a vector over its system."""
        faces = self.faces(tile)
        return np.where(self._tile[faces] == tile, values[faces], 0.0)

    def __getitem__(self, tile: int) -> TileSystem:
        elements, faces = self._elements, self.faces(tile)
        edges, rows = self._edges[tile], self._rows[tile]
        self._place[faces] = np.arange(len(faces))
        chosen, component = elements.rows[rows], self.gauge.component[faces]
        return TileSystem(
            len(self.interior(tile)),
            self._coordinates[faces],
            self._place[elements.pairs[edges]],
            elements.weights[edges],
            elements.steps[edges],
            csr_matrix((chosen.data, self._place[chosen.indices], chosen.indptr), (len(rows), len(faces))),
            elements.row_weights[rows],
            elements.row_values[rows],
            np.where(self._afloat[component], component, -1),
        )

    def _border(self, tile: int) -> Integer:
        """Return the border faces of a tile, ascending."""
        own = self._faces[tile]
        edges, rows = self._elements.pairs[self._edges[tile]], self._elements.rows[self._rows[tile]].indices
        met = np.concatenate([edges.ravel(), rows])
        return np.union1d(own[self._shared[own]], met[self._tile[met] != tile])


class _Groups:
    """Items by the number of their group (n,); those below zero belong to none."""

    def __init__(self, group: Integer, count: int) -> None:
        self._order = np.argsort(group, kind="stable").astype(np.int32)
        self._begin = np.searchsorted(group, np.arange(count + 1), sorter=self._order)

    def __getitem__(self, group: int) -> Integer:
        return self._order[self._begin[group] : self._begin[group + 1]]
