"""Isotropic remeshing: triangles that are equilateral on the surface, with sizes from its curvature. A baseline.

It is the method of Heep and Zell, *An Adaptive Screen-Space Meshing Approach for Normal Integration*, ECCV 2024.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np

from normalmesh.arguments import checked_instance, checked_int, checked_positive
from normalmesh.decimation.decimation_options import MAX_ROUNDS
from normalmesh.decimation.flip import flip
from normalmesh.decimation.move import move
from normalmesh.decimation.quadrics import FaceRecords, Pixels
from normalmesh.decimation.stopping import MAX_VERTICES
from normalmesh.errors import NormalMeshError, ShortfallWarning
from normalmesh.evaluation.isotropic import _isotropic
from normalmesh.evaluation.isotropic.edge_lengths import EdgeLengths, curvature, expected_vertices
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.mesh.origin import Remeshing, Round
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.normal_map_like import NormalMapLike, as_normal_map
from normalmesh.runtime.monitor import Monitor, OnProgress, Progress
from normalmesh.runtime.progress_bar import progress_shown
from normalmesh.runtime.threads import limited_threads

#: Regularisation λ so large that the normals no longer matter: flips are then Delaunay on the surface, and moves lead
#: to the centroid of the faces.
EVEN = 1e6
#: Share of the way to the centroid by which a vertex moves in a round.
STEP = 0.5
#: Vertices, as a share of the pixels, of the mesh from which coarser ones are made.
HEAD_START = 0.125
#: Maximum number of sweeps of splits or collapses; each can halve or double edges.
MAX_SWEEPS = 100
#: A mesh that lost this share of its vertices is made compact, and its faces are sampled again.
STALE = 0.1
#: Relative difference from the target at which the search for a vertex count ends,
COUNT_TOLERANCE = 0.01
#: Vertices beyond that before a warning.
COUNT_MARGIN = 10
#: and its maximum number of meshes.
MAX_TRIALS = 6
#: Range of errors (px) of the search.
MIN_ERROR, MAX_ERROR = 2.0**-20, 2.0**20
#: Vertices of a mesh, as a multiple of those of equilateral triangles of the target lengths; fitted.
EXCESS = 1.2


@dataclass(frozen=True, eq=False, repr=False)
class IsotropicMesh(ScreenMesh):
    """A mesh made by :func:`remesh_isotropic`."""

    report: Remeshing

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_instance(self.report, Remeshing, "report")


def remesh_isotropic(
    normal_map: NormalMapLike,
    *,
    error: float | None = None,
    vertices: int | None = None,
    rounds: int = 10,
    threads: int | None = None,
    progress: Progress = None,
) -> IsotropicMesh:
    """Replace the pixel grid by triangles that are nearly equilateral on the surface, and smaller if it is curved.

    The target length of edges on the surface is h = √(6ε/κ − 3ε²), between 1 and 100 px: an equilateral triangle of
    this size, with its vertices on a sphere of the largest curvature κ there, is off the sphere by ε. Each round splits
    edges longer than 4/3 h, collapses those shorter than 4/5 h, flips edges until they are Delaunay on the surface, and
    moves vertices to the centroid of their faces. Give exactly one of ``error`` and ``vertices``.

    Parameters
    ----------
    normal_map
        As for :func:`reconstruct`. All components and holes of its mask are kept.
    error
        ε in pixels.
    vertices
        Number of vertices, at least 3, for which ε is searched. It is met within 1 %, unless the limits of h or the
        outline prevent it, which a warning reports.
    rounds
        Number of rounds, ten in the paper.
    threads
        As for :func:`reconstruct`; the mesh does not depend on it.
    progress
        True: show a progress bar, in a terminal or a notebook. A function: it is called repeatedly with a
        :class:`Step`; an exception that it raises ends the work.

    Returns
    -------
    IsotropicMesh
        The mesh is manifold and has no inverted face. Every pixel centre lies in at most one face. Boundary vertices
        lie within a pixel of the mask's outline.

    Notes
    -----
    An edge is measured with J of the mean normal of its two faces. The target lengths of pixels are averaged over the
    faces of a vertex as densities h⁻², which preserves the total number of vertices; at an edge the smaller target
    length of its ends is used. If ε exceeds the radius 1/κ, the formula would let triangles shrink again. Then
    h = √(3ε/κ), which is the same at the radius and lets any count be reached. Edges of up to two pixels on the screen
    are not split. Besides the map, about 160 bytes are needed for each foreground pixel.
    """
    normal_map = as_normal_map(normal_map)
    if (error is None) == (vertices is None):
        raise NormalMeshError(f"give exactly one of error and vertices, not {'none' if error is None else 'both'}")
    target = None if vertices is None else checked_int(vertices, 3, "vertices", MAX_VERTICES)
    error = None if error is None else checked_positive(error, "error")
    with limited_threads(threads), progress_shown(progress) as on_progress:
        remesher = _Remesher(normal_map, checked_int(rounds, 1, "rounds", MAX_ROUNDS), on_progress)
        meshes = [remesher.remesh(error)] if error is not None else remesher.search(target or 0)
        best = min(meshes, key=lambda each: abs(each.count - (target or 0)))
        remesher.monitor.finish(best.count)
    met = target is None or abs(best.count - target) <= COUNT_TOLERANCE * target
    report = Remeshing(best.error, best.rounds, target, met, len(meshes), remesher.monitor.seconds)
    if target is not None and abs(best.count - target) > COUNT_TOLERANCE * target + COUNT_MARGIN:
        warnings.warn(
            f"the isotropic mesh has {best.count} vertices instead of {target}: the outline, and edges of 1 to 100 px "
            "on the surface, allow no closer count",
            ShortfallWarning,
            stacklevel=2,
        )
    return IsotropicMesh(best.mesh.vertices, best.mesh.faces, report)


@dataclass(frozen=True, eq=False)
class _Trial:
    """The mesh for one error (px)."""

    error: float
    mesh: ScreenMesh
    rounds: tuple[Round, ...]

    @property
    def count(self) -> int:
        """Number of vertices."""
        return len(self.mesh.vertices)


class _Remesher:
    """Remesher of one normal map, for any error."""

    def __init__(self, normal_map: NormalMap, rounds: int, progress: OnProgress | None) -> None:
        self.rounds = rounds
        self.monitor = Monitor(progress, stages=("start", "split", "collapse", "flip", "move"))
        self.monitor.name = "remesh"
        self.pixels = Pixels(normal_map, EVEN)
        with self.monitor.timed("start"):
            self.curvature = curvature(normal_map)
            self.head_start = self.predict(HEAD_START * normal_map.foreground)
        self.begin: ClosedMesh | None = None

    def predict(self, target: float) -> float:
        """Return the error (px) at which ``target`` vertices are expected, found by bisection."""
        low, high = math.log(MIN_ERROR), math.log(MAX_ERROR)
        for _ in range(16):
            middle = 0.5 * (low + high)
            expected = EXCESS * expected_vertices(self.pixels, self.curvature, math.exp(middle))
            low, high = (middle, high) if expected > target else (low, middle)
        return math.exp(0.5 * (low + high))

    def remesh(self, error: float, done: float = 0.0, share: float = 1.0) -> _Trial:
        """Run all rounds for an error (px).

        ``done`` is the share of the work before, ``share`` that of this mesh. The mesh depends only on the error.
        """
        with self.monitor.timed("start"):
            mesh = self._begin(error)
        lengths = EdgeLengths(self.pixels, self.curvature, error)
        history = []
        for k in range(self.rounds):
            with self.monitor.timed("split"):
                splits = split(mesh, lengths)
            with self.monitor.timed("collapse"):
                collapses = collapse(mesh, lengths)
            flips, moves = self._align(mesh, last=k == self.rounds - 1)
            history.append(Round(len(mesh.vertices), collapses, flips, moves, splits=splits))
            self.monitor.reach(done + share * (k + 1) / self.rounds, len(mesh.vertices))
        return _Trial(error, mesh.to_screen(), tuple(history))

    def search(self, target: int) -> list[_Trial]:
        """Search the error that leads to ``target`` vertices by the secant method on the logarithms of both."""
        trials: list[_Trial] = []
        error = self.predict(target)
        while len(trials) < MAX_TRIALS:
            trials.append(self.remesh(error, len(trials) / MAX_TRIALS, 1 / MAX_TRIALS))
            if abs(trials[-1].count - target) <= COUNT_TOLERANCE * target:
                break
            error = _next_error(trials, target)
            if any(error == each.error for each in trials):
                break
        return trials

    def _begin(self, error: float) -> ClosedMesh:
        """Return the mesh to begin with: that of the pixels, or one that is surely finer than the result.

        The latter is made only once, so that a search does not begin with the pixels each time.
        """
        if error < 2 * self.head_start:
            return self._pixel_mesh()
        if self.begin is None:
            mesh = self._pixel_mesh()
            collapse(mesh, EdgeLengths(self.pixels, self.curvature, self.head_start))
            self.begin = mesh
        return self.begin.copy()

    def _pixel_mesh(self) -> ClosedMesh:
        normal_map = self.pixels.normal_map
        return ClosedMesh.from_screen(ScreenMesh.from_mask(normal_map.mask), normal_map.shape, smooth_rim=False)

    def _align(self, mesh: ClosedMesh, last: bool) -> tuple[int, int]:
        """Flip edges until they are Delaunay on the surface, then move vertices; return the numbers of both."""
        with self.monitor.timed("flip"):
            records = FaceRecords(mesh)
            records.renew(mesh, self.pixels)
            flips = flip(mesh, self.pixels, records)
        with self.monitor.timed("move"):
            moves = move(mesh, self.pixels, records, STEP)
        if last:
            with self.monitor.timed("flip"):
                records.renew(mesh, self.pixels)
                flips += flip(mesh, self.pixels, records)
        return flips, moves


def split(mesh: ClosedMesh, lengths: EdgeLengths) -> int:
    """Split edges longer than 4/3 of their target length at their midpoints, longest first, until none is left.

    Edges of up to two pixels on the screen, and boundary edges whose midpoint is not at the outline, are not split.
    Return the number of splits.
    """
    lengths.sample(mesh)
    total = 0
    for _ in range(MAX_SWEEPS):
        order = lengths.long_edges(mesh)
        if len(order) == 0:
            break
        first = lengths.reserve_for_splits(mesh, len(order))
        splits = _isotropic.split_in_order(
            order, mesh.arrays, mesh.outline, lengths.pixels.normal_map.mask, lengths.arrays, first
        )
        lengths.compact(mesh)
        total += splits
        if splits == 0:
            break
    return total


def collapse(mesh: ClosedMesh, lengths: EdgeLengths) -> int:
    """Collapse edges shorter than 4/5 of their target length, until none is left that may; return their number.

    An edge may not collapse if the mesh would become invalid, if the boundary would leave the outline, or if an edge
    would have to be split again. Sweeps over the vertices collapse the shortest edge at each, so that the mesh coarsens
    evenly. The mesh is compact afterwards.
    """
    total = 0
    states = np.full(len(mesh.vertices), _isotropic.ACTIVE, np.uint8)
    stale, token = len(mesh.vertices), 0
    mark = np.zeros(mesh.ghost + 1, np.int32)
    for _ in range(MAX_SWEEPS):
        if stale > STALE * len(mesh.vertices):
            if total > 0:
                states = states[mesh.corner_of[:-1] >= 0]
                mesh.compact()
            lengths.sample(mesh)
            mark = np.zeros(mesh.ghost + 1, np.int32)
            stale = token = 0
        collapses, token = _isotropic.collapse_sweep(
            mesh.arrays, mesh.outline, lengths.pixels.normal_map.mask, lengths.arrays, mark, token, states
        )
        total += collapses
        stale += collapses
        if collapses == 0:
            break
    mesh.compact()
    return total


def _next_error(trials: list[_Trial], target: int) -> float:
    """Return the error at which the line through the two meshes nearest to the target, in logarithms, meets it.

    With one mesh, the count is taken to be proportional to 1/ε.
    """
    nearest = sorted(trials, key=lambda each: abs(math.log(each.count / target)))[:2]
    excess = [math.log(each.count / target) for each in nearest]
    slope = -1.0
    if len(nearest) == 2 and nearest[0].count != nearest[1].count:
        slope = (excess[0] - excess[1]) / math.log(nearest[0].error / nearest[1].error)
    # Counts are not a smooth function of the error, so implausible slopes are limited.
    step = -excess[0] / min(max(slope, -2.0), -0.2)
    return min(max(nearest[0].error * math.exp(step), MIN_ERROR), MAX_ERROR)
