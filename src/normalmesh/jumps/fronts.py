"""Fronts: what the pixels on both sides of the edges of a jump mesh say about jumps there.

Where one part of a surface hides another one, normals differ across the line, and those of the part in front lean
towards it: a round surface turns away from the viewer before it ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from normalmesh.array_types import Bool, Float
from normalmesh.facets.facets import FacetSystem
from normalmesh.jumps.jump_pixels import JumpPixels

#: Pixels that are compared are so far (px) from an edge, at these shares of its length.
APART, SHARES = 1.0, (0.1, 0.3, 0.5, 0.7, 0.9)
#: Power of the lean that counts. A sharp edge may lean away from the line that it makes, and what is behind towards it:
#: only sides that are nearly grazing are outlines.
STEEPNESS = 4
#: Mean lean from which on the side that leans is in front: that of 45° on one side.
LEAN = 0.25
#: Rounds in which leans are averaged with those of the next edges along a line.
ROUNDS = 6


@dataclass(frozen=True, eq=False)
class Fronts:
    """Contrast and lean at the edges of a facet system.

    Attributes
    ----------
    system : FacetSystem
    contrast : (E,)
        Mean length of the difference of the normals on both sides; 2 where none is known.
    lean : (E,)
        By how much more the second face leans towards the edge than the first one, from −1 to 1.
    """

    system: FacetSystem
    contrast: Float
    lean: Float

    @classmethod
    def of(cls, system: FacetSystem, pixels: JumpPixels) -> Fronts:
        """Compare the pixels on both sides of each edge."""
        start, end = (system.means.mesh.vertices[side] for side in system.ends.T)
        across = _across(system)
        places = [start + share * (end - start) + side * APART * across for share in SHARES for side in (-1, 1)]
        rows = np.floor(np.concatenate(places)[:, ::-1]).astype(np.int32)
        normals = pixels.normals_at(rows).reshape(len(SHARES), 2, len(across), 3).astype(np.float64)
        first, second = normals[:, 0], normals[:, 1]
        known = first.any(axis=-1) & second.any(axis=-1)
        count = np.maximum(known.sum(axis=0), 1)
        contrast = (known * np.linalg.norm(second - first, axis=-1)).sum(axis=0) / count
        # Normals have y up, edges v down.
        towards = across * [1.0, -1.0]
        leans = [
            np.maximum(side * (each[..., :2] * towards).sum(axis=-1), 0) for side, each in ((1, first), (-1, second))
        ]
        lean = (known * (leans[1] ** STEEPNESS - leans[0] ** STEEPNESS)).sum(axis=0) / count
        return cls(system, np.where(known.any(axis=0), contrast, 2.0), lean)

    def signs(self, is_open: Bool) -> Float:
        """Return the signs (E,) of the misfits of open (E,) edges at which what is in front is in front, 0 if unknown.

        Leans are averaged along the lines of open edges.
        """
        chosen = np.flatnonzero(is_open)
        ends, lengths, across = self.system.ends[chosen], self.system.lengths[chosen], self._across[chosen]
        count = len(self.system.means.mesh.vertices)
        total = np.maximum(np.bincount(ends.ravel(), np.repeat(lengths, 2), count), 1e-9)
        arrows = self.lean[chosen, None] * across
        for _ in range(ROUNDS):
            sums = [np.bincount(ends.ravel(), np.repeat(lengths * each, 2), count) / total for each in arrows.T]
            arrows = np.stack(sums, axis=1)[ends].mean(axis=1)
        leans = (arrows * across).sum(axis=1)
        signs = np.zeros(len(self.lean))
        signs[chosen] = np.where(np.abs(leans) > LEAN, np.sign(leans), 0.0) * self.system.means.camera.towards_viewer
        return signs

    @cached_property
    def _across(self) -> Float:
        return _across(self.system)


def _across(system: FacetSystem) -> Float:
    """Return unit vectors (E, 2) across edges, from the first face of each to the second one."""
    start, end = (system.means.mesh.vertices[side] for side in system.ends.T)
    along = (end - start) / np.maximum(np.hypot(*(end - start).T), 1e-9)[:, None]
    across = np.stack([-along[:, 1], along[:, 0]], axis=1)
    first, second = (system.means.centroids[side] for side in system.pairs.T)
    forward: Float = np.sign(((second - first) * across).sum(axis=1))
    oriented: Float = across * forward[:, None]
    return oriented
