"""Refinement: with depths known, flips and moves that lower the angle between the normals of pixels and faces."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from normalmesh.decimation.quadrics import GRAIN
from normalmesh.integration import _refinement, _refinement_flips
from normalmesh.integration._patch import CHUNK
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.threads import in_parallel

#: How far vertices look in each round, as a share of their mean edge length; later rounds repeat the last ones.
REACH = (0.2, 0.12, 0.2, 0.1, 0.15, 0.08)


def refine(
    mesh: ClosedMesh,
    unknown: NDArray[np.float64],
    strain: NDArray[np.float64],
    normal_map: NormalMap,
    turn: int,
    noise: float = 0.0,
) -> tuple[int, int]:
    """One round: flip edges, then move inner vertices; the numbers of both.

    All but the map is changed in place; no face is inverted, cut edges are not flipped, boundary and locked vertices
    stay, and so do those of more than 64 faces. Afterwards the mesh should be integrated anew.

    Parameters
    ----------
    unknown, strain
        (3M,) at the corners of the real faces: the value there, and the strain of the edge across.
    normal_map
        Judges the faces; without noise as far as possible.
    turn
        Number of the round, from 0.
    noise
        Deviation in degrees that the normals had before it was averaged away: gains that it may have caused do not
        count.
    """
    looking = (
        math.radians(noise),
        normal_map.normals,
        normal_map.mask,
        normal_map.camera.frame,
        normal_map.camera.is_central,
    )
    angles, flipped, gains = np.empty(mesh.real_faces), np.empty(3 * mesh.real_faces), np.empty(3 * mesh.real_faces)
    state = (mesh.vertices, unknown, strain, mesh.faces, mesh.real_faces, mesh.opposite)
    in_parallel(
        _refinement_flips.judge_faces, len(angles), *state, mesh.flags, *looking[1:], angles, flipped, grain=CHUNK
    )
    judged = (mesh.flags, looking[0], angles, flipped)
    in_parallel(_refinement_flips.gains_of_flips, len(gains), state[0], *state[2:], *judged, gains, grain=GRAIN)
    candidates = np.flatnonzero(gains > 0)
    order = candidates[np.argsort(-gains[candidates], kind="stable")]
    flips = _refinement_flips.flip_in_order(order, mesh.arrays, unknown, strain, *looking)

    colour = colours(mesh)
    moves = 0
    for shade in range(int(colour.max()) + 1):
        chosen = np.flatnonzero((colour == shade) & (mesh.flags == 0))
        moved = np.zeros(len(chosen), np.bool_)
        in_parallel(
            _refinement.move_vertices,
            -(-len(chosen) // CHUNK),
            chosen,
            REACH[turn % len(REACH)],
            0.5 * (turn % 2),
            mesh.vertices,
            unknown,
            strain,
            mesh.faces,
            mesh.opposite,
            mesh.corner_of,
            *looking,
            moved,
            grain=1,
        )
        moves += int(np.count_nonzero(moved))
    return flips, moves


def colours(mesh: ClosedMesh) -> NDArray[np.int32]:
    """A colour (N,) for each vertex, different from all its neighbours'."""
    colour, taken = np.full(len(mesh.vertices), -1, np.int32), np.full(4096, -1)
    _refinement.fill_colours(mesh.faces, mesh.opposite, mesh.corner_of, colour, taken)
    return colour
