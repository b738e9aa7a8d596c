"""Find the jumps of a normal map: on an adaptive mesh, before decimation.

1. The continuous surface is solved on a first, coarse mesh. Without strained edges that open there is no jump.
2. Near strained edges the mesh becomes as fine as the pixels. On this *jump mesh*, weights become robust: faces first
   choose neighbours at their own depth (one-sided weights), then edges lose weight with their strain (Cauchy weights).
3. Centre lines of strained edges that release enough energy are moved onto pixel sides.

Every rule is applied to each component of the mask on its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_instance
from normalmesh.decimation.hierarchy import Hierarchy
from normalmesh.decimation.start_mesh import pixels_around
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.jumps.given_lines import edges_on_paths, given_paths
from normalmesh.jumps.lines import LOW, RELEASE, StrainedEdges, choose_lines
from normalmesh.jumps.robust_solver import TWISTED, RobustSolver
from normalmesh.jumps.snapping import SnappedLine, long_enough, snapped_lines
from normalmesh.jumps.suspects import closed_noise, find_suspects, near_edges, strain_noise, thresholds
from normalmesh.mesh.cut_mesh import edge_middles
from normalmesh.mesh.jumps import JumpLine, Jumps, Placement
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.noise import noise_of, without_noise
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.workspace import Workspace

Float = NDArray[np.float64]
Bool = NDArray[np.bool_]
Int = NDArray[np.int64]

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
#: Times at most that the robust solution is found, and the share of false lines from which on it is found again.
TURNS, FALSE_SHARE = 2, 0.3
#: Mean length of the difference of the normals on both sides of a line, at least. In measured maps, true lines have 0.3
#: to 1.5, cracks 0.05 to 0.2; in clean maps a share of it is enough.
CONTRAST, CLEAN_CONTRAST = 0.3, 1 / 3
#: Samples along each side of a pixel, for the mean gradients of small faces.
SAMPLES = 2


def find_jumps(
    normal_map: NormalMap,
    lines: ArrayLike | Sequence[ArrayLike] | None = None,
    *,
    discontinuities: bool | str = "auto",
    noise: float | None = None,
) -> Jumps:
    """Find the lines along which the depth of a normal map jumps, and where they place the parts of its surface.

    Parameters
    ----------
    normal_map
    lines
        The lines, if you know where they are: an edge image (H, W), nonzero on pixels beside a jump, or a list of
        polylines (K, 2) as u, v in px. They are moved by up to 2 px to where the normals differ most. The surface is
        continuous everywhere else.
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
    if discontinuities != "auto" and discontinuities is not True:
        raise NormalMeshError(f'discontinuities must be "auto" or True, not {repr_for_error(discontinuities)}')
    smooth = without_noise(normal_map, noise_of(normal_map, noise))
    return jumps_of(smooth, discontinuities) if lines is None else jumps_along(given_paths(lines, smooth), smooth)


def jumps_along(paths: list[Int], normal_map: NormalMap) -> Jumps:
    """Return jumps along given paths (P, 2) of pixel corners: the surface is continuous everywhere else."""
    corners = np.zeros((normal_map.shape[0] + 1, normal_map.shape[1] + 1), np.bool_)
    for path in paths:
        corners[path[:, 1], path[:, 0]] = True
    hierarchy = Hierarchy.of(normal_map, pixels_around(corners))
    level = hierarchy.level(round(JUMP_VERTICES * math.sqrt(normal_map.foreground)))
    solver = _solver(hierarchy.mesh(level), normal_map, Workspace())
    solver.solve_all()
    closed, system = solver.strain.copy(), solver.system
    on_paths = edges_on_paths(paths, system)
    cut = np.zeros(len(closed), np.bool_)
    cut[np.concatenate(on_paths)] = True
    solver.hold(cut, LOOSE, np.ones(len(system.component), np.bool_))
    full = solver.full_strain()
    lines = []
    for path, edges in zip(paths, on_paths, strict=True):
        height = float(full[edges].mean()) if len(edges) else 0.0
        released = float((full * closed)[edges].mean()) if len(edges) else 0.0
        lines.append(JumpLine(path, height, released / RELEASE))
    touched = {int(system.component[system.pairs[edge, 0]]) for edges in on_paths for edge in edges[:1]}
    return Jumps(tuple(lines), _placement(solver, touched))


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
    closed, noise = first.strain.copy(), closed_noise(first)
    component, count = first.component_of_edge, int(first.system.component.max()) + 1
    suspect = np.ones(count, np.bool_) if always else find_suspects(first)[0]
    if not suspect.any():
        return Jumps()
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
    """Find jumps on the jump mesh, among its movable faces.

    Lines without contrast are false: there the solution tears a smooth surface open. If there are many, it is found
    once more, with edges that hold around them.
    """
    solver.solve_all()
    closed = solver.strain.copy()
    for turn in range(TURNS):
        noise, edges = _strained(solver, closed)
        cut = choose_lines(edges)
        lines = snapped_lines(edges, cut, normal_map)
        false = _false_edges(lines, edges.system)
        if turn == TURNS - 1 or len(false) == 0:
            break
        solver.stiffen(false)
    noisy = (noise > NOISY)[solver.system.component] & solver.movable
    if noisy.any():
        solver.hold(cut, LOOSE, noisy)
    # In clean maps also lines between parallel surfaces, without much contrast, are jumps.
    least = CONTRAST * np.clip(noise / NOISY, CLEAN_CONTRAST, 1.0)
    clear = [line for line in lines if line.contrast >= least[line.component]]
    kept = [line for line, enough in zip(clear, long_enough([line.path for line in clear]), strict=True) if enough]
    found = tuple(JumpLine(line.path, line.height, line.certainty) for line in kept)
    placement = _placement(solver, {line.component for line in kept}) if kept else None
    return Jumps(found, placement, float(noise.max()))


def _strained(solver: RobustSolver, closed: Float) -> tuple[Float, StrainedEdges]:
    """Solve robustly; return the noise of the strain (C,), and the edges with their strain.

    ``closed`` (E,) is the strain of the continuous surface.
    """
    component = solver.component_of_edge
    solver.one_sided(ONE_SIDED, RECHECKS)
    noise = strain_noise(solver.strain, component, int(solver.system.component.max()) + 1)
    low, release = (each[component] for each in thresholds(noise))
    widths = np.maximum(WIDTH, noise)[component]
    solver.cauchy(widths, CAUCHY)
    solver.cauchy(widths, LAST, low)
    full = solver.full_strain()
    own = np.where(solver.own, full, 0.0)
    return noise, StrainedEdges(solver.system, full, own * LOW / low, closed * (RELEASE / release) * (low / LOW))


def _false_edges(lines: list[SnappedLine], system: FacetSystem) -> NDArray[np.int64]:
    """Return the edges of lines without contrast, in components where these are more than a share of all lines."""
    count = int(system.component.max()) + 1
    component = np.array([line.component for line in lines], np.int64)
    length = np.array([line.length for line in lines], np.float64)
    unclear = np.array([line.contrast < CONTRAST for line in lines], np.bool_)
    total = np.bincount(component, length, count)
    many = np.bincount(component, length * unclear, count) > FALSE_SHARE * total
    false = [line.edges for line in lines if line.contrast < CONTRAST and many[line.component]]
    return np.concatenate(false) if false else np.empty(0, np.int64)


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
