"""Suspects: surfaces that are strained along lines if they are continuous, and that open there."""

from __future__ import annotations

import math

import numpy as np

from normalmesh.array_types import Float, Int, Integer
from normalmesh.decimation.near_cells import NearCells
from normalmesh.jumps.lines import LOW, LOW_NOISE, RELEASE, RELEASE_NOISE
from normalmesh.jumps.robust_solver import RobustSolver
from normalmesh.mesh.components import components
from normalmesh.mesh.cut_mesh import boundary_vertices

#: A surface is suspect if edges of the continuous one, connected over MIN_LENGTH px, are strained by this much: in px,
#: and in units of the noise of the strain.
STRAINED, STRAINED_NOISE = 0.25, 8.0
#: Largest ratio of the noise of the strain to that of closures, without jumps: that of correlated errors.
CORRELATED = 1.5
MIN_LENGTH = 6.0
#: Strained edges up to this length, for each px of the side of the foreground, are tried on the first mesh,
FEW = 0.5
#: within this distance (px),
REACH = 32.0
#: with this many one-sided solves,
SOLVES = 5
#: and must open by these shares of what makes a line (strain, energy), and by this multiple of the strain somewhere.
OPEN_STRAIN, OPEN_RELEASE, OPEN_TOP = 0.5, 0.25, 2.0


def strain_noise(values: Float) -> float:
    """Return the noise of absolute values (E,) such as the strain of edges: 1.48 × median, or 0 without any."""
    return 1.4826 * float(np.median(values)) if len(values) else 0.0


def closed_noise(solver: RobustSolver) -> float:
    """Return the noise of the strain of a continuous surface, which jumps do not raise.

    A continuous surface spreads the strain of jumps all over itself, so the median of its strain can be too large. The
    *closure* of a vertex, the sum of the steps of the edges around it, does not depend on the solution, and is raised
    only by the jumps that pass through the vertex. Independent errors e of the steps make closures of √6 e; a third of
    their variance remains in the solution, as there are three edges and two faces for each vertex.
    """
    system, mesh = solver.system, solver.system.means.mesh
    count = len(mesh.vertices)
    cosine = np.ones(count)
    np.minimum.at(cosine, mesh.faces, np.maximum(system.means.cosines, 1e-3)[:, None])
    sums = [np.bincount(system.ends[:, side], system.steps, count) for side in range(2)]
    closure = np.abs(sums[0] - sums[1]) * cosine / system.means.camera.pixel_length
    by_closure = strain_noise(closure[~boundary_vertices(mesh)]) / math.sqrt(18)
    return min(strain_noise(solver.strain), CORRELATED * by_closure)


def thresholds(noise: float) -> tuple[float, float]:
    """Return the least strain (px) of lines, and the least energy (px²) that they release per px, from the noise."""
    return max(LOW, LOW_NOISE * noise), max(RELEASE, (RELEASE_NOISE * noise) ** 2)


def is_suspect(solver: RobustSolver) -> bool:
    """Return whether a solved continuous surface may have jumps.

    The solver keeps the continuous solution, except near strained edges, which it may have opened.
    """
    system = solver.system
    limit = max(STRAINED, STRAINED_NOISE * closed_noise(solver))
    strained = np.flatnonzero(solver.strain > limit)
    line, length = _chains(solver, strained)
    strained = strained[length[line] >= MIN_LENGTH]
    if len(strained) == 0:
        return False
    is_much = system.lengths[strained].sum() >= FEW * math.sqrt(system.means.areas.sum())
    return bool(is_much) or _opens(solver, strained)


def _opens(solver: RobustSolver, strained: Int) -> bool:
    """Return whether strained edges open if faces may choose their neighbours."""
    system, closed = solver.system, solver.strain.copy()
    solver.movable = near_edges(solver, strained).at(system.means.centroids)
    own = solver.own
    solver.one_sided(SOLVES)
    full = solver.full_strain()
    low, release = thresholds(closed_noise(solver))
    open_edges = np.flatnonzero((full >= OPEN_STRAIN * low) & own)
    line, length = _chains(solver, open_edges)
    released = np.bincount(line, (system.lengths * full * closed)[open_edges], len(length))
    top = np.zeros(len(length))
    np.maximum.at(top, line, full[open_edges])
    opens = (length >= MIN_LENGTH) & (released >= OPEN_RELEASE * release * length) & (top >= OPEN_TOP * low)
    return bool(opens.any())


def _chains(solver: RobustSolver, edges: Int) -> tuple[Integer, Float]:
    """Return the line (K,) of connected edges that each of the edges belongs to, and the lengths of the lines in px."""
    ends = solver.system.ends[edges]
    line = components(ends, len(solver.system.means.mesh.vertices))[ends[:, 0]]
    lengths: Float = np.bincount(line, solver.system.lengths[edges]).astype(np.float64)
    return line, lengths


def near_edges(solver: RobustSolver, edges: Int) -> NearCells:
    """Return the neighbourhood of edges, of about :data:`REACH` px."""
    mesh = solver.system.means.mesh
    columns, rows = (int(each) for each in mesh.vertices.max(axis=0))
    return NearCells.of(mesh.vertices[solver.system.ends[edges]].mean(axis=1), REACH, (rows, columns))
