"""Repeats: the directions in which a map repeats, and meshes whose opposite sides are one and the same line.

A map that repeats lies on a cylinder or a torus: what leaves it on the right enters it on the left. Its mesh stays in
the plane; the edges of its right side are joined to those of its left side, and the vertices there are twins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from normalmesh.arguments import checked_choice
from normalmesh.array_types import Bool, Float, Int, Int32
from normalmesh.mesh.components import components
from normalmesh.mesh.cut_mesh import edge_ends
from normalmesh.mesh.screen_mesh import ScreenMesh

#: The directions in which a map may repeat.
DIRECTIONS = ("x", "y", "xy")
#: Mean slope, in degrees, from which on a map is questioned: rounding to 8 bits causes up to 0.3°.
MAX_TILT = 1.0


@dataclass(frozen=True, eq=False)
class RepeatingMesh(ScreenMesh):
    """A mesh of a map that repeats, joined across its sides."""

    joined: Int32  # (3M,) the corner across each edge, also beyond a side; −1 at the boundary that is left
    twins: Int32  # (T, 2) vertices on opposite sides that are the same

    @property
    def opposite(self) -> Int32:
        """The corner (3M,) on the other side of the edge across from each corner, −1 at the boundary."""
        return self.joined

    @cached_property
    def components(self) -> Int32:
        """Connected component (N,) of each vertex, numbered in the order of their first vertices."""
        return components(np.concatenate([self.faces, self.twins[:, [0, 1, 1]]]), len(self.vertices))

    @cached_property
    def first_twins(self) -> Int32:
        """The first vertex (N,) that each vertex is the same as."""
        labels = components(self.twins, len(self.vertices))
        return np.unique(labels, return_index=True)[1][labels].astype(np.int32)


@dataclass(frozen=True)
class SidePair:
    """A stretch of two opposite sides of a map with foreground on both, in px."""

    axis: int  # 0 for the left and the right side, 1 for the top and the bottom
    first: int  # the ends along them
    last: int
    far: int  # position of the right side or the bottom


@dataclass(frozen=True)
class Repeats:
    """The directions in which a map repeats.

    Attributes
    ----------
    x, y : bool
        Whether it repeats to the right and to the left, and upwards and downwards.
    shape
        Rows and columns of the map: the periods in px.
    mean_slope : (2,)
        Mean slope along x (right) and y (up) that was taken away: a surface that repeats has none.
    """

    x: bool
    y: bool
    shape: tuple[int, int]
    mean_slope: tuple[float, float] = (0.0, 0.0)

    @property
    def excess(self) -> str | None:
        """A sentence about a mean slope that is too large, or None."""
        if self.tilt <= MAX_TILT:
            return None
        return (
            f"the normals have a mean slope of {self.tilt:.1f}°, which a surface that repeats cannot have: it is "
            "removed; if heights look wrong, check that the map repeats, its convention, and that flat is 128, 128, 255"
        )

    @classmethod
    def of(cls, tileable: bool | str, shape: tuple[int, int]) -> Repeats | None:
        """Return the directions that :func:`normalmesh.reconstruct` takes as ``tileable``; None if there are none."""
        names = checked_tileable(tileable)
        return cls("x" in names, "y" in names, shape) if names else None

    @property
    def tilt(self) -> float:
        """The mean slope that was taken away, in degrees."""
        return math.degrees(math.atan(math.hypot(*self.mean_slope)))

    @property
    def axes(self) -> list[tuple[int, int]]:
        """The axis, 0 for x and 1 for y, and the period in px of each direction."""
        rows, columns = self.shape
        return [(0, columns)] * self.x + [(1, rows)] * self.y

    def side_pairs(self, mask_window: Callable[[slice, slice], Bool]) -> list[SidePair]:
        """Return the stretches of opposite sides at which the foreground goes on beyond them."""
        pairs = []
        for axis, far in self.axes:
            along = slice(0, self.shape[axis])
            sides = [slice(0, 1), slice(far - 1, far)]
            near, opposite = (mask_window(*((along, at) if axis == 0 else (at, along))).ravel() for at in sides)
            steps = np.flatnonzero(np.diff(np.r_[False, near & opposite, False]))
            pairs += [SidePair(axis, first, last, far) for first, last in steps.reshape(-1, 2).tolist()]
        return pairs

    def side_ends(self, mask_window: Callable[[slice, slice], Bool]) -> Int:
        """Return the pixel corners (K, 2), as u and v, at the ends of these stretches."""
        ends = [
            (where, along) if pair.axis == 0 else (along, where)
            for pair in self.side_pairs(mask_window)
            for where in (0, pair.far)
            for along in (pair.first, pair.last)
        ]
        return np.array(ends, np.int64).reshape(-1, 2)

    def wrap(self, mesh: ScreenMesh) -> RepeatingMesh:
        """Return a mesh with the edges of opposite sides joined that have the same place."""
        joined = mesh.find_opposite().copy()
        outer = np.flatnonzero(joined < 0)
        ends = edge_ends(mesh, outer)
        places = mesh.vertices[ends]
        twins = [np.empty((0, 2), np.int32)]
        for axis, far in self.axes:
            near_edges, far_edges = (np.flatnonzero((places[..., axis] == at).all(axis=1)) for at in (0, far))
            along = places[..., 1 - axis]
            # The sides are followed in opposite directions.
            near_keys = along[near_edges] @ [1, 1j]
            far_keys = along[far_edges] @ [1j, 1]
            # Several walls that meet at a side have edges at the same place.
            _, first, second = np.intersect1d(near_keys, far_keys, return_indices=True)
            one, two = near_edges[first], far_edges[second]
            joined[outer[one]], joined[outer[two]] = outer[two], outer[one]
            twins += [np.stack([ends[one, k], ends[two, 1 - k]], axis=1) for k in (0, 1)]
        return RepeatingMesh(mesh.vertices, mesh.faces, joined, np.concatenate(twins))

    def folded(self, screen: Float) -> Float:
        """Return positions (K, 2) folded in the middle, so that places beside opposite sides are close together."""
        folded = screen.copy()
        for axis, far in self.axes:
            folded[:, axis] = np.abs(screen[:, axis] - far / 2)
        return folded

    def shortest(self, way: Float) -> Float:
        """Return the shortest of the ways (2,) from a point to all copies of another, given one of them."""
        short = way.copy()
        for axis, far in self.axes:
            short[axis] -= far * np.round(short[axis] / far)
        return short

    def __str__(self) -> str:
        names = [name for name, repeats in (("x", self.x), ("y", self.y)) if repeats]
        return f"in {' and '.join(names)}, mean slope of {self.tilt:.2f}° removed"


def checked_tileable(tileable: bool | str) -> str:
    """Return the directions in which a map repeats, ``""`` for none; True is both."""
    if isinstance(tileable, bool | np.bool_):
        return "xy" if tileable else ""
    return checked_choice(tileable, DIRECTIONS, "tileable")


def wrapped(repeats: Repeats | None) -> tuple[bool, bool]:
    """Return whether a map goes on at the opposite side in rows, and in columns."""
    return (False, False) if repeats is None else (repeats.y, repeats.x)
