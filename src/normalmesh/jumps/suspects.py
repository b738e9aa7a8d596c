"""Suspects: surfaces that are strained along lines if they are continuous, and that open there."""

from __future__ import annotations

import math

import numpy as np

from normalmesh.array_types import Float, Int
from normalmesh.decimation.near_cells import NearCells
from normalmesh.jumps.lines import LOW, LOW_NOISE, RELEASE, RELEASE_NOISE, StrainedEdges
from normalmesh.jumps.robust_solver import RobustSolver
from normalmesh.mesh.cut_mesh import boundary_vertices

#: A surface is suspect if edges that are strained by this much, in px and in units of the noise of the strain, hold so
#: much energy (px²): about 10 px of a line.
STRAINED, STRAINED_NOISE, ENERGY = 0.1, 8.0, 5.0
#: Largest ratio of the noise of the strain to that of closures, without jumps: that of correlated errors.
CORRELATED = 1.5
#: Up to this energy (px²), for each px of the side of the foreground, strained edges are tried on the first mesh,
MUCH = 0.05
#: within this distance (px),
REACH = 32.0
#: with this many one-sided solves, and must open along a line.
SOLVES = 5


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
    strained = solver.strain > max(STRAINED, STRAINED_NOISE * closed_noise(solver))
    energy = solver.energies()[strained].sum()
    if energy < ENERGY:
        return False
    return bool(energy >= MUCH * math.sqrt(solver.system.means.areas.sum())) or _opens(solver, np.flatnonzero(strained))


def _opens(solver: RobustSolver, strained: Int) -> bool:
    """Return whether strained edges open along a line if faces may choose their neighbours."""
    closed = solver.strain.copy()
    solver.movable = near_edges(solver, strained).at(solver.system.means.centroids)
    solver.one_sided(SOLVES)
    edges = strained_edges(solver, closed, closed_noise(solver))
    return bool(edges.worth(edges.strain >= LOW).any())


def strained_edges(solver: RobustSolver, closed: Float, noise: float) -> StrainedEdges:
    """Return the edges of a robust solution; ``closed`` (E,) is the strain of the continuous one."""
    low, release = thresholds(noise)
    full = solver.full_strain()
    own = np.where(solver.own, full, 0.0)
    return StrainedEdges(solver.system, full, own * LOW / low, closed * (RELEASE / release) * (low / LOW))


def near_edges(solver: RobustSolver, edges: Int) -> NearCells:
    """Return the neighbourhood of edges, of about :data:`REACH` px."""
    mesh = solver.system.means.mesh
    columns, rows = (int(each) for each in mesh.vertices.max(axis=0))
    return NearCells.of(mesh.vertices[solver.system.ends[edges]].mean(axis=1), REACH, (rows, columns))
