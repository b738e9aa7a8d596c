"""Tidying: remove bad faces, which stand askew or own no pixel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Float, Int
from normalmesh.integration import _tidying
from normalmesh.integration._patch import CHUNK
from normalmesh.integration._tidying import BAD_ANGLE, MIN_BAD, TidyArrays
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.threads import in_parallel

#: Sweeps over the bad faces, at most. A change beside a bad face may make another one possible.
MAX_SWEEPS = 4


@dataclass(frozen=True, eq=False)
class Tidied:
    """A tidied mesh, and what was done.

    Attributes
    ----------
    mesh : ClosedMesh
        The mesh, compact.
    unknown : (N',) float64
        The unknown at its vertices, which have kept it.
    kept : (N',) int64
        Number of each vertex before.
    flips, collapses : int
        Numbers of edges flipped and of inner vertices collapsed into a neighbour.
    costs : (M',) float64
        Cost of each of its faces.
    """

    mesh: ClosedMesh
    unknown: Float
    kept: Int
    flips: int
    collapses: int
    costs: Float

    @property
    def changes(self) -> int:
        """Number of changes; without any, the mesh is the one given."""
        return self.flips + self.collapses


def tidy(mesh: ClosedMesh, unknown: Float, normal_map: NormalMap, bad_angle: float = BAD_ANGLE) -> Tidied:
    """Remove bad faces, worst first, by flips of their edges or collapses of their inner vertices.

    A face is bad if it owns no pixel, is longer than 50 times its width, or if its normal in space is more than 30° off
    the mean normal of its pixels, unless these scatter as far around their mean, as across a crease. Each change lowers
    the sum of all angles between pixels and their faces, plus the angle that a bad face is off, at least 30°, for each
    pixel's worth of its area; it inverts no face and makes no needle. Boundary and locked vertices stay. Every
    foreground pixel keeps a face. Afterwards the mesh should be integrated again.

    Parameters
    ----------
    mesh
        Changed in place; no longer valid if vertices go.
    unknown
        (N,) height, or logarithm of the depth, at the vertices.
    normal_map
        The normals that faces should fit, denoised as far as possible.
    bad_angle
        Angle (radians) that replaces the 30°.
    """
    state = judged(mesh, unknown, normal_map, bad_angle)
    flips = collapses = 0
    for _ in range(MAX_SWEEPS):
        order = _worst_first(state.bad)
        flipped, collapsed = _tidying.tidy_bad_faces(order, state) if len(order) else (0, 0)
        flips, collapses = flips + flipped, collapses + collapsed
        if flipped + collapsed == 0:
            break
    costs = state.costs[mesh.faces[: mesh.real_faces, 0] >= 0]
    kept = mesh.compact() if collapses else np.arange(len(unknown))
    return Tidied(mesh, unknown[kept], kept, flips, collapses, costs)


def judged(mesh: ClosedMesh, unknown: Float, normal_map: NormalMap, bad_angle: float = BAD_ANGLE) -> TidyArrays:
    """Return the mesh with cost and bad area of each face. The mesh must be compact."""
    count = mesh.real_faces
    state = TidyArrays(mesh.arrays, unknown, normal_map.arrays, bad_angle, np.empty(count), np.empty(count))
    in_parallel(_tidying.fill_costs, count, state, grain=CHUNK)
    return state


def _worst_first(bad: Float) -> Int:
    """Return the bad faces in the order of their bad areas (M,)."""
    found = np.flatnonzero(bad > MIN_BAD)
    return found[np.argsort(-bad[found], kind="stable")]
