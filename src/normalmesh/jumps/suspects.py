"""Suspects: the components of a mesh in which the continuous surface is strained along lines, and the strain opens."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from normalmesh.decimation.near_cells import NearCells
from normalmesh.jumps.lines import LOW, LOW_NOISE, RELEASE, RELEASE_NOISE
from normalmesh.jumps.robust_solver import RobustSolver
from normalmesh.mesh.components import components
from normalmesh.mesh.cut_mesh import boundary_vertices

Float = NDArray[np.float64]
Bool = NDArray[np.bool_]
Int = NDArray[np.int64]

#: A component is suspect if edges of the continuous surface, connected over MIN_LENGTH px, are strained by this much:
#: in px, and in units of the noise of the strain.
STRAINED, STRAINED_NOISE = 0.25, 8.0
#: Largest ratio of the noise of the strain to that of closures, without jumps: that of correlated errors.
CORRELATED = 1.5
MIN_LENGTH = 6.0
#: Suspect edges up to this length, for each px of the side of their component, are tried on the first mesh,
FEW = 0.5
#: within this distance (px),
REACH = 32.0
#: with this many one-sided solves,
SOLVES = 5
#: and must open by these shares of what makes a line (strain, energy), and by this multiple of the strain somewhere.
OPEN_STRAIN, OPEN_RELEASE, OPEN_TOP = 0.5, 0.25, 2.0


def strain_noise(strain: Float, component: NDArray[np.integer], count: int) -> Float:
    """Return the noise (C,) of values such as the strain (E,) of edges in each component (E,): 1.48 × median, or 0."""
    order = np.lexsort((strain, component))
    edges = np.bincount(component, minlength=count)
    noise, some = np.zeros(count), edges > 0
    noise[some] = 1.4826 * strain[order[(np.cumsum(edges) - edges + edges // 2)[some]]]
    return noise


def closed_noise(solver: RobustSolver) -> Float:
    """Return the noise (C,) of the strain of a continuous surface in each component, which jumps do not raise.

    A continuous surface spreads the strain of jumps all over itself, so the median of its strain can be too large. The
    *closure* of a vertex, the sum of the steps of the edges around it, does not depend on the solution, and is raised
    only by the jumps that pass through the vertex. Independent errors e of the steps make closures of √6 e; a third of
    their variance remains in the solution, as there are three edges and two faces for each vertex.
    """
    system, mesh = solver.system, solver.system.means.mesh
    count, parts = len(mesh.vertices), int(system.component.max()) + 1
    cosine = np.ones(count)
    np.minimum.at(cosine, mesh.faces, np.maximum(system.means.cosines, 1e-3)[:, None])
    sums = [np.bincount(system.ends[:, side], system.steps, count) for side in range(2)]
    closure = np.abs(sums[0] - sums[1]) * cosine / system.means.camera.pixel_length
    inner = ~boundary_vertices(mesh)
    by_closure = strain_noise(closure[inner], mesh.components[inner], parts) / math.sqrt(18)
    by_strain = strain_noise(solver.strain, solver.component_of_edge, parts)
    return np.minimum(by_strain, CORRELATED * by_closure)


def thresholds(noise: Float) -> tuple[Float, Float]:
    """Return the least strain (px) of lines, and the least energy (px²) that they release per px, from the noise."""
    return np.maximum(LOW, LOW_NOISE * noise), np.maximum(RELEASE, (RELEASE_NOISE * noise) ** 2)


def find_suspects(solver: RobustSolver) -> tuple[Bool, Int]:
    """Return the suspect components (C,) of a solved continuous surface, and their strained edges.

    The solver keeps the continuous solution, except near the suspects, which it may have opened.
    """
    system, component = solver.system, solver.component_of_edge
    count = int(system.component.max()) + 1
    suspect = np.zeros(count, np.bool_)
    limit = np.maximum(STRAINED, STRAINED_NOISE * closed_noise(solver))
    strained = np.flatnonzero(solver.strain > limit[component])
    line, length = _chains(solver, strained)
    strained = strained[length[line] >= MIN_LENGTH]
    suspect[component[strained]] = True
    total = np.bincount(component[strained], system.lengths[strained], count)
    few = suspect & (total < FEW * np.sqrt(np.bincount(system.component, system.means.areas, count)))
    if few.any():
        suspect &= ~few | _opens(solver, strained[few[component[strained]]], few)
    return suspect, strained[suspect[component[strained]]]


def _opens(solver: RobustSolver, strained: Int, few: Bool) -> Bool:
    """Return the components (C,) whose strained edges open if faces may choose their neighbours."""
    system, component, closed = solver.system, solver.component_of_edge, solver.strain.copy()
    solver.movable = near_edges(solver, strained).at(system.means.centroids) & few[system.component]
    own = solver.own
    solver.one_sided(SOLVES)
    full = solver.full_strain()
    low, release = (each[component] for each in thresholds(strain_noise(solver.strain, component, len(few))))
    open_edges = np.flatnonzero((full >= OPEN_STRAIN * low) & own)
    line, length = _chains(solver, open_edges)
    released = np.bincount(line, (system.lengths * full * closed)[open_edges], len(length)) / np.maximum(length, 1e-9)
    top = np.zeros(len(length))
    np.maximum.at(top, line, full[open_edges])
    good = (length[line] >= MIN_LENGTH) & (released[line] >= OPEN_RELEASE * release[open_edges])
    good &= top[line] >= OPEN_TOP * low[open_edges]
    opens = np.zeros(len(few), np.bool_)
    opens[component[open_edges[good]]] = True
    return opens


def _chains(solver: RobustSolver, edges: Int) -> tuple[NDArray[np.integer], Float]:
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
