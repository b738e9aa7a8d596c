"""Isotropic remeshing: triangles that are equilateral on the surface, as small as curvature asks for. A baseline.

The method of Heep and Zell, *An Adaptive Screen-Space Meshing Approach for Normal Integration*, ECCV 2024.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normalmesh.closedmesh import ClosedMesh
from normalmesh.decimation import Progress
from normalmesh.errors import NormalMeshError, positive_number, whole_number
from normalmesh.evaluation import _isotropic
from normalmesh.evaluation.curvature import curvature
from normalmesh.flip import flip
from normalmesh.move import move
from normalmesh.normalmap import NormalMap
from normalmesh.quadrics import FaceRecords, Pixels
from normalmesh.screenmesh import ScreenMesh
from normalmesh.stopwatch import Stopwatch

#: λ so large that shape no longer counts: flips are Delaunay on the surface, moves lead to the centroid of the faces.
EVEN = 1e6
#: Share of the way to the centroid by which a vertex moves in a round.
STEP = 1.0
#: Sweeps of splits or collapses in a round, at most: each can halve or double edges.
MOST_SWEEPS = 100
#: A mesh that lost this share of its vertices is made compact, and its faces are sampled afresh.
STALE = 0.1
#: The search for a vertex count ends this close to it, or after so many meshes.
TOLERANCE = 0.01
MOST_TRIALS = 6
#: Errors (px) that the search considers.
LEAST_ERROR, LARGEST_ERROR = 2.0**-20, 2.0**20
#: About so many pixels are looked at to predict a vertex count.
SAMPLED = 2**20


@dataclass(frozen=True)
class RemeshingRound:
    """One round: what was done, and how many vertices were left."""

    vertices: int
    splits: int
    collapses: int
    flips: int
    moves: int


@dataclass(frozen=True)
class Remeshing:
    """What a remeshing did.

    Attributes
    ----------
    error
        ε (px) of the mesh, given or found. With it the same mesh comes out.
    rounds
        Of the mesh that was kept.
    target
        Vertices asked for; None where an error was given.
    target_met
        Whether the number of vertices is within 1 % of it.
    meshes
        How many errors were tried.
    seconds
        Wall time of the stages ``start`` (curvature, first coarsening), ``split``, ``collapse``, ``flip`` and ``move``,
        over all meshes.
    """

    error: float
    rounds: tuple[RemeshingRound, ...]
    target: int | None
    target_met: bool
    meshes: int
    seconds: dict[str, float]

    @property
    def splits(self) -> int:
        return sum(each.splits for each in self.rounds)

    @property
    def collapses(self) -> int:
        return sum(each.collapses for each in self.rounds)

    @property
    def flips(self) -> int:
        return sum(each.flips for each in self.rounds)

    @property
    def moves(self) -> int:
        return sum(each.moves for each in self.rounds)


@dataclass(frozen=True, eq=False, repr=False)
class IsotropicMesh(ScreenMesh):
    """A mesh that :func:`remesh_isotropic` made."""

    report: Remeshing


def remesh_isotropic(
    normal_map: NormalMap,
    *,
    error: float | None = None,
    vertices: int | None = None,
    rounds: int = 10,
    progress: Progress | None = None,
) -> IsotropicMesh:
    """Replace the pixel grid by triangles that are nearly equilateral on the surface, small where it is curved.

    Edges are to have the length h = √(6ε/κ − 3ε²) on the surface, between 1 and 100 px: that of an equilateral triangle
    in a sphere of the largest curvature κ there, which is off the sphere by ε. Each round splits edges longer than
    4/3 h, collapses those shorter than 4/5 h, flips edges until they are Delaunay on the surface, and moves vertices to
    the centroid of their faces. Exactly one of ``error`` and ``vertices`` is given.

    Parameters
    ----------
    normal_map
        Any mask: all components and holes are kept.
    error
        ε in pixels.
    vertices
        Number of vertices, at least 3: ε is searched for. Met within 1 %, unless the limits of h or the outline forbid.
    rounds
        Ten in the paper.
    progress
        Called with the share done and the name of the stage.

    Returns
    -------
    IsotropicMesh
        Manifold, with no inverted face; every pixel centre lies in at most one face; boundary vertices lie within a
        pixel of the mask's outline. The same for any number of threads.

    Notes
    -----
    The length of an edge is measured with J of the mean normal of its two faces. h at a vertex is the length of the mean
    density h⁻² over its faces, so that vertices are as many as the pixels ask for together; at an edge the smaller one
    of its ends counts. Where ε exceeds the radius 1/κ the formula's largest value √3/κ is kept.
    """
    if (error is None) == (vertices is None):
        raise NormalMeshError(f"give exactly one of error and vertices, not {'none' if error is None else 'both'}")
    remesher = _Remesher(normal_map, whole_number(rounds, 1, "rounds"), progress)
    if error is not None:
        meshes = [remesher.remesh(positive_number(error, "error"))]
        target = None
    else:
        target = whole_number(vertices, 3, "vertices")
        meshes = remesher.search(target)
    best = min(meshes, key=lambda each: abs(each.count - (target or 0)))
    met = target is None or abs(best.count - target) <= TOLERANCE * target
    report = Remeshing(best.error, best.rounds, target, met, len(meshes), remesher.clock.seconds)
    if progress is not None:
        progress(1.0, "done")
    return IsotropicMesh(best.mesh.vertices, best.mesh.faces, report)


@dataclass(frozen=True, eq=False)
class _Trial:
    """The mesh of one error (px)."""

    error: float
    mesh: ScreenMesh
    rounds: tuple[RemeshingRound, ...]

    @property
    def count(self) -> int:
        return len(self.mesh.vertices)


class _Remesher:
    """Meshes of one normal map for any error."""

    def __init__(self, normal_map: NormalMap, rounds: int, progress: Progress | None) -> None:
        self.rounds = rounds
        self.progress = progress
        self.clock = Stopwatch("start", "split", "collapse", "flip", "move")
        with self.clock.stage("start"):
            self.curvature = curvature(normal_map)
        self.pixels = Pixels(normal_map, EVEN)
        #: A mesh from which to begin, coarsened by an error that is a power of two.
        self.begin: tuple[float, ClosedMesh] | None = None

    def remesh(self, error: float) -> _Trial:
        """Ten rounds. The result depends on nothing but the error."""
        with self.clock.stage("start"):
            mesh = self._coarsened(2.0 ** math.floor(math.log2(error) - 1))
        history = []
        for k in range(self.rounds):
            with self.clock.stage("split"):
                splits = self._split(mesh, error)
            with self.clock.stage("collapse"):
                collapses = self._collapse(mesh, error)
            flips, moves = self._align(mesh, last=k == self.rounds - 1)
            history.append(RemeshingRound(len(mesh.vertices), splits, collapses, flips, moves))
            if self.progress is not None:
                self.progress((k + 1) / self.rounds, "remesh")
        return _Trial(error, mesh.to_screen(), tuple(history))

    def search(self, target: int) -> list[_Trial]:
        """Meshes of errors that lead to so many vertices: the secant method on the logarithms of both."""
        trials: list[_Trial] = []
        error = self._predict(target)
        while len(trials) < MOST_TRIALS:
            trials.append(self.remesh(error))
            if abs(trials[-1].count - target) <= TOLERANCE * target:
                break
            error = _next_error(trials, target)
            if any(error == each.error for each in trials):
                break
        return trials

    def _predict(self, target: int) -> float:
        """The error (px) at which equilateral triangles of the target lengths have so many vertices; by bisection."""
        normal_map = self.pixels.normal_map
        step = max(1, normal_map.mask.size // SAMPLED)
        low, high = math.log(LEAST_ERROR), math.log(LARGEST_ERROR)
        for _ in range(16):
            middle = 0.5 * (low + high)
            expected = _isotropic.expected_vertices(
                normal_map.normals, self.curvature, normal_map.mask, step, *self.pixels.camera, math.exp(middle)
            )
            low, high = (middle, high) if expected > target else (low, middle)
        return math.exp(0.5 * (low + high))

    def _coarsened(self, error: float) -> ClosedMesh:
        """The start mesh after collapses by an error that is smaller than that of the mesh to come.

        Meshes of similar errors begin with the same one, so that the search need not begin with the pixels each time.
        """
        if self.begin is None or self.begin[0] != error:
            self.begin = None
            normal_map = self.pixels.normal_map
            mesh = ClosedMesh.from_screen(ScreenMesh.from_mask(normal_map.mask), normal_map.shape)
            self._collapse(mesh, error)
            self.begin = error, mesh
        return self.begin[1].copy()

    def _samples(self, mesh: ClosedMesh, error: float) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Samples (F, 4) of the faces and densities (N,) of the vertices."""
        samples = np.empty((len(mesh.faces), 4), np.float32)
        densities = np.empty(len(mesh.vertices), np.float32)
        normal_map = self.pixels.normal_map
        _isotropic.sample_faces(
            mesh.vertices,
            mesh.faces,
            mesh.real_faces,
            normal_map.normals,
            self.curvature,
            normal_map.mask,
            *self.pixels.camera,
            error,
            samples,
        )
        _isotropic.vertex_densities(mesh.opposite, mesh.corner_of, samples, densities)
        return samples, densities

    def _split(self, mesh: ClosedMesh, error: float) -> int:
        """Split edges until none is too long; how many were."""
        total = 0
        outline = mesh.outline
        for _ in range(MOST_SWEEPS):
            samples, densities = self._samples(mesh, error)
            stretches = np.empty(3 * mesh.real_faces, np.float32)
            _isotropic.stretches_of_long_edges(
                mesh.vertices,
                mesh.faces,
                mesh.real_faces,
                mesh.opposite,
                samples,
                densities,
                *self.pixels.camera,
                stretches,
            )
            order = np.flatnonzero(stretches)
            if len(order) == 0:
                break
            order = order[np.argsort(-stretches[order], kind="stable")]
            at_boundary = int(np.count_nonzero(mesh.opposite[order] >= 3 * mesh.real_faces))
            before = mesh.real_faces
            vertex, face, ghost_face = mesh.make_room(len(order) - at_boundary, at_boundary)
            room = np.zeros((mesh.real_faces - before, 4), np.float32)
            samples = np.concatenate([samples[:before], room, samples[before:], room[:at_boundary]])
            densities = np.concatenate([densities, np.zeros(len(order), np.float32)])
            splits = _isotropic.split_in_order(
                order,
                mesh.vertices,
                mesh.faces,
                mesh.real_faces,
                mesh.opposite,
                mesh.corner_of,
                mesh.ghost,
                mesh.flags,
                mesh.outline_of,
                outline.next_point,
                outline.smooth,
                self.pixels.normal_map.mask,
                mesh.covered,
                samples,
                densities,
                *self.pixels.camera,
                vertex,
                face,
                ghost_face,
            )
            mesh.compact()
            total += splits
            if splits == 0:
                break
        return total

    def _collapse(self, mesh: ClosedMesh, error: float) -> int:
        """Collapse edges until none is left that is too short and may; how many were."""
        total = 0
        outline = mesh.outline
        states = np.full(len(mesh.vertices), _isotropic.ACTIVE, np.uint8)
        stale = len(mesh.vertices) + 1
        for _ in range(MOST_SWEEPS):
            if stale > STALE * len(mesh.vertices):
                kept = mesh.corner_of[:-1] >= 0
                if not kept.all():
                    mesh.compact()
                    states = states[kept]
                samples, densities = self._samples(mesh, error)
                mark = np.zeros(mesh.ghost + 1, np.int32)
                stale = token = 0
            collapses, token = _isotropic.collapse_sweep(
                *mesh.topology,
                mesh.flags,
                mesh.outline_of,
                outline.next_point,
                outline.smooth,
                self.pixels.normal_map.mask,
                mesh.covered,
                samples,
                densities,
                *self.pixels.camera,
                mark,
                token,
                states,
            )
            total += collapses
            stale += collapses
            if collapses == 0:
                break
        mesh.compact()
        return total

    def _align(self, mesh: ClosedMesh, last: bool) -> tuple[int, int]:
        """Flip edges until they are Delaunay on the surface, then move vertices; the numbers of both."""
        with self.clock.stage("flip"):
            records = FaceRecords(mesh)
            records.renew(mesh, self.pixels)
            flips = flip(mesh, self.pixels, records)
        with self.clock.stage("move"):
            moves = move(mesh, self.pixels, records, STEP)
        if last:
            with self.clock.stage("flip"):
                records.renew(mesh, self.pixels)
                flips += flip(mesh, self.pixels, records)
        return flips, moves


def _next_error(trials: list[_Trial], target: int) -> float:
    """Where the line through the two meshes nearest to the target meets it; with one mesh, count ∝ 1/ε."""
    nearest = sorted(trials, key=lambda each: abs(math.log(each.count / target)))[:2]
    excess = [math.log(each.count / target) for each in nearest]
    slope = -1.0
    if len(nearest) == 2 and nearest[0].count != nearest[1].count:
        slope = (excess[0] - excess[1]) / math.log(nearest[0].error / nearest[1].error)
    # Counts are not smooth: an implausible slope is an accident.
    step = -excess[0] / min(max(slope, -2.0), -0.2)
    return min(max(nearest[0].error * math.exp(step), LEAST_ERROR), LARGEST_ERROR)
