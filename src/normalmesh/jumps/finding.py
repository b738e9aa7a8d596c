"""Find the jumps of a normal map: on an adaptive mesh, before decimation.

1. The continuous surface is solved on a first, coarse mesh. Without strained edges that open there is no jump.
2. Near strained edges the mesh becomes as fine as the pixels. On this *jump mesh*, weights become robust: faces first
   choose neighbours at their own depth (one-sided weights), then edges lose weight with their strain (Cauchy weights).
3. Centre lines of strained edges that release enough energy are moved onto pixel sides.

Every rule is applied to each component of the mask on its own.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from normalmesh.arguments import checked_instance
from normalmesh.decimation.hierarchy import Hierarchy
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.jumps.lines import LOW, RELEASE, StrainedEdges, choose_lines
from normalmesh.jumps.robust_solver import TWISTED, RobustSolver
from normalmesh.jumps.snapping import Snapper, long_enough
from normalmesh.jumps.suspects import find_suspects, near_edges, strain_noise, thresholds
from normalmesh.mesh.chains import Chains
from normalmesh.mesh.cut_mesh import boundary_vertices, edge_middles
from normalmesh.mesh.jumps import JumpLine, Jumps, Placement
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.noise import checked_noise, estimate_noise, without_noise
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.workspace import Workspace

Float = NDArray[np.float64]
Bool = NDArray[np.bool_]

#: Vertices off the outline of the first mesh, and of the jump mesh near strained edges, for each px of √foreground.
FIRST_VERTICES, JUMP_VERTICES = 10, 25
#: Strain of the first mesh from which on the jump mesh is fine: in px, and in units of the noise of the strain.
NEAR, NEAR_NOISE = 0.1, 3.0
#: Maximum number of one-sided solves, and those after which settled edges are looked at again.
ONE_SIDED, RECHECKS = 20, (6, 13)
#: Number of Cauchy solves, and of last ones in which the twist counts as strain; their width (px), at least.
CAUCHY, LAST, WIDTH = 5, 2, 0.025
#: Noise of the strain (px) from which on edges that are not cut hold in the end; cut ones keep a share of their weight.
NOISY, LOOSE = 0.02, 1e-4
#: Samples along each side of a pixel, for the mean gradients of small faces.
SAMPLES = 2


def find_jumps(normal_map: NormalMap, *, discontinuities: bool | str = "auto", noise: float | None = None) -> Jumps:
    """Find the lines along which the depth of a normal map jumps, and where they place the parts of its surface.

    Parameters
    ----------
    normal_map
    discontinuities
        ``"auto"`` leaves early if a first look finds no sign of a jump, ``True`` always looks closely.
    noise
        Standard deviation of the noise of the normals in degrees; estimated by default.

    Returns
    -------
    Jumps
        For :func:`decimate` and :func:`integrate`. :func:`reconstruct` does all of this.
    """
    checked_instance(normal_map, NormalMap, "normal_map")
    chosen = checked_discontinuities(discontinuities)
    if chosen is False:
        raise NormalMeshError('discontinuities must be "auto" or True, not False')
    known = estimate_noise(normal_map) if noise is None else checked_noise(noise)
    return jumps_of(without_noise(normal_map, known), chosen)


def checked_discontinuities(value: object) -> bool | str:
    """Return whether to look for jumps, or raise an error."""
    if isinstance(value, str) and value == "auto":
        return value
    if not isinstance(value, bool | np.bool_):
        raise NormalMeshError(f'discontinuities must be "auto", True or False, not {repr_for_error(value)}')
    return bool(value)


def jumps_of(normal_map: NormalMap, discontinuities: bool | str, hierarchy: Hierarchy | None = None) -> Jumps:
    """Find the jumps of a denoised map, with its hierarchy if that is known; none for ``discontinuities=False``."""
    if discontinuities is False:
        return Jumps()
    return find_jumps_with(normal_map, hierarchy or Hierarchy.of(normal_map), always=discontinuities is True)


def find_jumps_with(normal_map: NormalMap, hierarchy: Hierarchy, always: bool = False) -> Jumps:
    """Find the jumps of a denoised map with its hierarchy; with ``always``, without an early exit."""
    workspace, side = Workspace(), math.sqrt(normal_map.foreground)
    coarse = hierarchy.level(round(FIRST_VERTICES * side))
    first = _solver(hierarchy.mesh(coarse), normal_map, workspace)
    first.solve_all()
    closed = first.strain.copy()
    component, count = first.component_of_edge, int(first.system.component.max()) + 1
    suspect = np.ones(count, np.bool_) if always else find_suspects(first)[0]
    if not suspect.any():
        return Jumps()
    noise = strain_noise(closed, component, count)
    strained = np.hypot(closed, np.where(first.twist > TWISTED, first.twist, 0.0))
    fine = np.flatnonzero((strained > np.maximum(NEAR, NEAR_NOISE * noise)[component]) & suspect[component])
    mesh = hierarchy.mixed_mesh(near_edges(first, fine), hierarchy.level(round(JUMP_VERTICES * side)), coarse)
    solver = _solver(mesh, normal_map, workspace)
    # Components are numbered alike if they are in the order of their first sides on the outline.
    ranks, old_ranks = (_component_ranks(each.system.means.mesh) for each in (solver, first))
    chosen = np.empty(count, np.bool_)
    chosen[old_ranks] = suspect
    solver.movable = chosen[ranks][solver.system.component]
    return _jumps(solver, normal_map)


def _solver(mesh: ScreenMesh, normal_map: NormalMap, workspace: Workspace) -> RobustSolver:
    return RobustSolver(FacetSystem.of(FaceMeans.of(mesh, normal_map, SAMPLES)), workspace)


def _jumps(solver: RobustSolver, normal_map: NormalMap) -> Jumps:
    """Find jumps on the jump mesh, among its movable faces."""
    solver.solve_all()
    closed, component = solver.strain.copy(), solver.component_of_edge
    solver.one_sided(ONE_SIDED, RECHECKS)
    noise = strain_noise(solver.strain, component, int(solver.system.component.max()) + 1)
    low, release = (each[component] for each in thresholds(noise))
    widths = np.maximum(WIDTH, noise)[component]
    solver.cauchy(widths, CAUCHY)
    solver.cauchy(widths, LAST, low)
    full = solver.full_strain()
    own = np.where(solver.own, full, 0.0)
    edges = StrainedEdges(solver.system, full, own * LOW / low, closed * (RELEASE / release) * (low / LOW))
    cut = choose_lines(edges)
    noisy = (noise > NOISY)[solver.system.component] & solver.movable
    if noisy.any():
        solver.hold(cut, LOOSE, noisy)
    lines, components = _lines(edges, cut, normal_map)
    placement = _placement(solver, components) if lines else None
    return Jumps(tuple(lines), placement, float(noise.max()))


def _lines(edges: StrainedEdges, cut: Bool, normal_map: NormalMap) -> tuple[list[JumpLine], set[int]]:
    """Return the lines of the cut edges (E,) on pixel sides, and the components of the mesh that they belong to."""
    if not cut.any():
        return [], set()
    system, chosen = edges.system, np.flatnonzero(cut)
    mesh = system.means.mesh
    chains = Chains.of(system.ends[chosen], boundary_vertices(mesh))
    chain_of_edge = chains.chain_of_edge
    length = np.bincount(chain_of_edge, system.lengths[chosen])
    height = np.bincount(chain_of_edge, (system.lengths * edges.pixels)[chosen]) / length
    certainty = np.bincount(chain_of_edge, edges.release[chosen]) / (RELEASE * length)
    snapper, corners = Snapper(normal_map), np.rint(mesh.vertices).astype(np.int64)
    lines = [
        (JumpLine(path, float(height[chain]), float(certainty[chain])), int(system.component[system.pairs[edge, 0]]))
        for chain, edge in enumerate(chosen[chains.edges[chains.starts[:-1] + 1]])
        for path in snapper.paths(corners[chains[chain]])
        if snapper.is_clear(path)
    ]
    kept = [line for line, enough in zip(lines, long_enough([line.path for line, _ in lines]), strict=True) if enough]
    return [line for line, _ in kept], {component for _, component in kept}


def _placement(solver: RobustSolver, components: set[int]) -> Placement:
    """Return the planes of a solved jump mesh; those of the given components hold."""
    means = solver.system.means
    holds = np.isin(solver.system.component, list(components))
    return Placement(
        means.mesh, means.centroids.copy(), means.gradients.copy(), means.areas.copy(), solver.offsets, holds
    )


def _component_ranks(mesh: ScreenMesh) -> NDArray[np.int64]:
    """Return the rank (C,) of each component of a mesh by the first side of its outline, from top to bottom."""
    outer = np.flatnonzero(mesh.opposite < 0)
    component = mesh.components[mesh.faces[outer // 3, 0]]
    u, v = edge_middles(mesh, outer).T
    order = np.lexsort((u, v))
    _, first = np.unique(component[order], return_index=True)
    ranks = np.empty(len(first), np.int64)
    ranks[np.argsort(first)] = np.arange(len(first))
    return ranks
