"""Refinement: flips and moves, with depths known, that lower the angle between the normals of pixels and faces."""

from __future__ import annotations

import numpy as np

from normalmesh.array_types import Float, Int, Int32
from normalmesh.integration import _refinement, _refinement_flips
from normalmesh.integration._patch import CHUNK
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.sorting import largest_first
from normalmesh.runtime.threads import GRAIN, in_parallel

#: Number of vertices that are moved one after the other.
STRETCH = 1024
#: Distance at which vertices look for better places, as a share of their mean edge length, in each round; repeated.
REACH = (0.2, 0.12, 0.2, 0.1, 0.15, 0.08)


def refine(
    mesh: ClosedMesh,
    unknown: Float,
    normal_map: NormalMap,
    turn: int,
    noise: Float | float = 0.0,
) -> tuple[Int, Int]:
    """Flip edges, then move inner vertices, once.

    No face is inverted, becomes a needle or loses all of its pixels. Boundary and locked vertices as well as those of
    more than 64 faces stay. Afterwards the mesh should be integrated again.

    Parameters
    ----------
    mesh
        Changed in place.
    unknown
        (N,) height, or logarithm of the depth, at the vertices. Changed in place.
    normal_map
        The normals that faces should fit, denoised as far as possible.
    turn
        Number of the round, from 0.
    noise
        Deviation in degrees that the normals had before denoising, (N,) around each vertex or the same everywhere.
        Gains that it may have caused do not count.

    Returns
    -------
    flips, moves : (N,) int64
        Numbers of edges flipped, each counted at one of its vertices, and of moves of each vertex.
    """
    deviation = np.full(len(unknown), np.radians(noise))
    flips = _flip(mesh, unknown, normal_map, deviation)
    search = _refinement.Search(REACH[turn % len(REACH)], 0.5 * (turn % 2), deviation)
    return flips, _move(mesh, unknown, normal_map, search)


def _flip(mesh: ClosedMesh, unknown: Float, normal_map: NormalMap, noise: Float) -> Int:
    """Flip edges, those that gain most first, and return the number of flips at each vertex."""
    count, arrays, pixels = mesh.real_faces, mesh.arrays, normal_map.arrays
    judged = _refinement_flips.JudgedFaces(np.empty(count), np.empty(count), np.empty(3 * count), np.empty(3 * count))
    gains = np.empty(3 * count)
    in_parallel(_refinement_flips.judge_faces, count, arrays, unknown, pixels, judged, grain=CHUNK)
    in_parallel(_refinement_flips.fill_angle_gains, 3 * count, arrays, noise, judged, gains, grain=GRAIN)
    order = largest_first(gains)
    flips = np.zeros(len(unknown), np.int64)
    _refinement_flips.flip_to_lower_angles(order, arrays, unknown, pixels, noise, flips)
    return flips


def _move(mesh: ClosedMesh, unknown: Float, normal_map: NormalMap, search: _refinement.Search) -> Int:
    """Move inner vertices and return the number of moves of each.

    Stretches of vertices with close numbers, which lie close together, are moved one after the other, so that the
    pixels around them stay in the cache; then vertices between two stretches, one colour after the other.
    """
    count = len(unknown)
    moves, enclosed = np.zeros(count, np.int64), np.empty(count, np.bool_)

    def move(starts: Int, vertices: Int, grain: int) -> None:
        batches = _refinement.Batches(starts, vertices)
        state = (search, mesh.arrays, unknown, normal_map.arrays, moves)
        in_parallel(_refinement.move_batches, len(starts) - 1, batches, *state, grain=grain)

    in_parallel(_refinement.find_enclosed, count, mesh.arrays, STRETCH, enclosed, grain=GRAIN)
    vertices = np.flatnonzero(enclosed)
    move(np.searchsorted(vertices, np.arange(0, count + STRETCH, STRETCH)), vertices, 1)
    between = np.flatnonzero(~enclosed & (mesh.flags == 0))
    colour = colours(mesh, between)[between]
    for shade in range(int(colour.max(initial=-1)) + 1):
        vertices = between[colour == shade]
        move(np.arange(len(vertices) + 1), vertices, CHUNK)
    return moves


def colours(mesh: ClosedMesh, chosen: Int) -> Int32:
    """Return a colour (N,) for each of the chosen vertices (K,) that differs from those of its neighbours, else −1."""
    colour, taken = np.full(len(mesh.vertices), -1, np.int32), np.full(4096, -1)
    _refinement.fill_colours(mesh.arrays, chosen, colour, taken)
    return colour
