"""Find the jumps of a normal map: on an adaptive mesh, before decimation.

1. The continuous surface is solved on a first, coarse mesh. Without strained edges that open there is no jump.
2. Near strained edges the mesh becomes as fine as the pixels. On this *jump mesh*, weights become robust: faces first
   choose neighbours at their own depth (one-sided weights), then edges lose weight with their strain (Cauchy weights).
   Edges across which the normals hardly differ keep theirs.
3. Centre lines of strained edges that release enough energy are moved onto pixel sides.
4. The surface is placed: solved with open lines, where parts in front stay in front, and all smooth places closed.

Each component of the mask is looked at on its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from normalmesh.arguments import checked_finite
from normalmesh.array_types import Bool, Float
from normalmesh.decimation.hierarchy import Hierarchy
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.jumps.attaching import attached
from normalmesh.jumps.fronts import Fronts
from normalmesh.jumps.given_lines import edges_on_paths, given_paths
from normalmesh.jumps.jump_pixels import JumpPixels, PixelsInMemory
from normalmesh.jumps.lines import RELEASE
from normalmesh.jumps.robust_solver import LOOSE, TWISTED, RobustSolver
from normalmesh.jumps.snapping import WIDTH
from normalmesh.jumps.suspects import closed_noise, is_suspect, near_edges, thresholds
from normalmesh.jumps.tears import EVEN, NOISY, RINGS, Tears, gate_of, robust_shares
from normalmesh.mesh.jumps import JumpLine, Jumps, Placement
from normalmesh.normals.component_maps import ComponentMap, component_maps
from normalmesh.normals.noise import noise_of, without_noise
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.normal_map_like import NormalMapLike, as_normal_map
from normalmesh.runtime.memory_budget import require_memory
from normalmesh.runtime.threads import limited_threads
from normalmesh.runtime.workspace import Workspace

#: Pixels of a component from which on it is looked at.
MIN_COMPONENT = 256
#: Vertices off the outline of the first mesh, and of the jump mesh near strained edges, for each px of √foreground.
FIRST_VERTICES, JUMP_VERTICES = 10, 25
#: Strain of the first mesh from which on the jump mesh is fine: in px, and in units of the noise of the strain.
NEAR, NEAR_NOISE = 0.1, 3.0
#: Share of the energy of the closed surface below which given lines are all of them: nothing parts beside them. True
#: lines of scenes leave 0.004 to 0.014, the lines that are found in measured maps 0.1 to 0.5.
EXPLAINED = 0.05
#: Share of their weight with which faces of a placement hold others where a line may have been moved across them. It
#: keeps shards between lines in place.
BESIDE = 0.01
#: Share of its rectangle that a relief fills, at least; objects stand before a background.
RELIEF = 0.98
#: Bytes for each inner edge of a mesh that is solved: once, and robustly.
SOLVE_BYTES, ROBUST_BYTES = 650, 800
#: What to do about a search that does not fit into memory.
REMEDY = "mask what you do not need, or do without it: discontinuities=False (--continuous)"


def find_jumps(
    normal_map: NormalMapLike,
    lines: ArrayLike | Sequence[ArrayLike] | None = None,
    *,
    discontinuities: bool | str = "auto",
    min_certainty: float = 0.0,
    noise: float | None = None,
    threads: int | None = None,
) -> Jumps:
    """Find the lines along which the depth of a normal map jumps, and where they place the parts of its surface.

    Parameters
    ----------
    normal_map
        As for :func:`reconstruct`.
    lines
        The lines, if you know where they are: an edge image (H, W), nonzero on pixels beside a jump, or a list of
        polylines (K, 2) as u, v in px. They are moved by up to 2 px to where the normals differ most. The surface is
        continuous everywhere else.
    discontinuities
        ``"auto"`` leaves early if a first look finds no sign of a jump, ``True`` always looks closely.
    min_certainty
        Lines that are less certain are left closed. Here certainty c is c / (1 + c), from 0 to 1: above 0.5, opening a
        line releases more energy than lines must release on average.
    noise
        Standard deviation of the noise of the normals in degrees; estimated by default.
    threads
        As for :func:`reconstruct`; the result does not depend on it.

    Returns
    -------
    Jumps
        For :func:`decimate` and :func:`integrate`. :func:`reconstruct` does all of this.
    """
    normal_map = as_normal_map(normal_map)
    chosen = checked_discontinuities(discontinuities)
    if chosen is False:
        raise NormalMeshError('discontinuities must be "auto" or True, not False')
    least = checked_min_certainty(min_certainty)
    with limited_threads(threads):
        smooth = without_noise(normal_map, noise_of(normal_map, noise))
        return jumps_of(smooth, chosen, least) if lines is None else jumps_along(lines, PixelsInMemory(smooth))


def checked_discontinuities(value: object) -> bool | str:
    """Return whether to look for jumps, or raise an error."""
    if isinstance(value, str) and value == "auto":
        return value
    if not isinstance(value, bool | np.bool_):
        raise NormalMeshError(f'discontinuities must be "auto", True or False, not {repr_for_error(value)}')
    return bool(value)


def checked_min_certainty(value: object) -> float:
    """Return the least certainty of lines, from 0 to 1, or raise an error."""
    least = checked_finite(value, "min_certainty", "a number from 0 to 1")
    if not 0 <= least <= 1:
        raise NormalMeshError(f"min_certainty must be a number from 0 to 1, not {repr_for_error(value)}")
    return least


def jumps_along(lines: ArrayLike | Sequence[ArrayLike], pixels: JumpPixels) -> Jumps:
    """Return jumps along given lines, an edge image or polylines: the surface is continuous everywhere else."""
    paths = given_paths(lines, pixels)
    full = pixels.along(paths)
    level = full.level(round(JUMP_VERTICES * math.sqrt(full.foreground)))
    solver = _solver(full.means(level), Workspace(), ROBUST_BYTES)
    solver.solve_all()
    closed, system, fronts = solver.strain.copy(), solver.system, Fronts.of(solver.system, full)
    energy = solver.energies().sum()
    on_paths = edges_on_paths(paths, system)
    cut = np.zeros(len(closed), np.bool_)
    cut[np.concatenate(on_paths)] = True
    may_part = _may_part(solver, fronts, closed_noise(solver), cut)
    solver.open(cut)
    strain = solver.full_strain()
    if solver.energies()[~cut].sum() < EXPLAINED * energy:
        may_part[:] = False
    found = []
    for path, edges in zip(paths, on_paths, strict=True):
        height = float(strain[edges].mean()) if len(edges) else 0.0
        released = float((strain * closed)[edges].mean()) if len(edges) else 0.0
        found.append(JumpLine(path, height, released / RELEASE))
    solver.limit(np.where(may_part, 0.0, 1.0), np.where(cut, LOOSE, 1.0))
    noise, _, shares = robust_shares(solver, closed)
    touched = np.zeros(int(system.component.max()) + 1, np.bool_)
    touched[system.component[system.pairs[cut, 0]]] = True
    shares = np.where(cut, 0.0, np.where(may_part, shares, 1.0))
    return Jumps(tuple(found), _placed(solver, shares, fronts, noise).part(np.flatnonzero(touched[system.component])))


def jumps_of(
    normal_map: NormalMap, discontinuities: bool | str, min_certainty: float = 0.0, hierarchy: Hierarchy | None = None
) -> Jumps:
    """Find the jumps of a denoised map, with its hierarchy if that is known; none for ``discontinuities=False``.

    Components of the mask are looked at one by one, so that none depends on the others.
    """
    if discontinuities is False or normal_map.foreground < MIN_COMPONENT:
        return Jumps()
    always = discontinuities is True
    return Jumps.joined(
        jumps_of_component(each, always, min_certainty, hierarchy if each.normal_map is normal_map else None)
        for each in component_maps(normal_map, MIN_COMPONENT)
    )


def jumps_of_component(
    component: ComponentMap, always: bool, min_certainty: float, hierarchy: Hierarchy | None = None
) -> Jumps:
    """Find the jumps of a component of a denoised map, as they lie in that map."""
    found = jumps_of_pixels(PixelsInMemory.of(component.normal_map, hierarchy), always, min_certainty)
    return found.shifted(component.left, component.top)


def jumps_of_pixels(pixels: JumpPixels, always: bool, min_certainty: float) -> Jumps:
    """Find the jumps of denoised pixels of one component; with ``always``, without an early exit."""
    workspace, side = Workspace(), math.sqrt(pixels.foreground)
    fine_level, coarse_level = (pixels.level(round(vertices * side)) for vertices in (JUMP_VERTICES, FIRST_VERTICES))
    first = _solver(pixels.means(coarse_level), workspace, SOLVE_BYTES)
    first.solve_all()
    closed, noise = first.strain.copy(), closed_noise(first)
    if not always and not is_suspect(first):
        return Jumps()
    strained = np.hypot(closed, np.where(first.twist > TWISTED, first.twist, 0.0))
    fine = np.flatnonzero(strained > max(NEAR, NEAR_NOISE * noise))
    near = near_edges(first, fine)
    # Its memory is needed for the next system.
    del first, closed, strained
    return _jumps(
        _solver(pixels.mixed_means(near, fine_level, coarse_level), workspace, ROBUST_BYTES), pixels, min_certainty
    )


def _solver(means: FaceMeans, workspace: Workspace, edge_bytes: float) -> RobustSolver:
    """Return the solver of a mesh, or raise an error if it would not fit into memory, with so many bytes per edge."""
    edges = int(np.count_nonzero(means.mesh.opposite >= 0)) // 2
    require_memory(edge_bytes * edges, f"the search for jumps on a mesh of {len(means.mesh.faces)} faces", REMEDY)
    return RobustSolver(FacetSystem.of(means), workspace)


def _jumps(solver: RobustSolver, pixels: JumpPixels, min_certainty: float) -> Jumps:
    """Find jumps on the jump mesh."""
    solver.solve_all()
    fronts = Fronts.of(solver.system, pixels)
    energies = solver.energies()
    found = _best(solver, fronts, pixels).certain(min_certainty)
    if found.noise >= NOISY and pixels.filled >= RELIEF and not solver.system.means.camera.is_central:
        found = found.supported(energies)
    lines = found.long_lines()
    if not lines:
        return Jumps()
    cut = np.zeros(len(found.shares), np.bool_)
    cut[np.concatenate([line.edges for line in lines])] = True
    shares = np.where(cut, 0.0, np.where(_may_part(solver, fronts, found.noise, cut), found.shares, 1.0))
    placement = _placed(solver, shares, fronts, found.noise)
    # Lines were moved onto pixel sides: beside them, faces may be on the wrong side.
    distance, _ = cKDTree(np.concatenate([line.path for line in lines])).query(placement.centroids)
    placement = replace(placement, areas=placement.areas * np.where(distance > WIDTH, 1.0, BESIDE))
    return Jumps(tuple(JumpLine(line.path, line.height, line.certainty) for line in lines), placement, found.noise)


def _may_part(solver: RobustSolver, fronts: Fronts, noise: float, cut: Bool) -> Bool:
    """Return the edges (E,) whose faces need not meet: those beside cut (E,) edges, and in sharp folds."""
    is_sharp = (fronts.contrast >= 0.5 * gate_of(noise)) & (noise < NOISY)
    may_part: Bool = is_sharp | solver.within(cut, RINGS)
    return may_part


def _best(solver: RobustSolver, fronts: Fronts, pixels: JumpPixels) -> Tears:
    """Return where a robust solution tears a continuous surface open.

    Contrast tells best where a surface may tear: edges across which normals hardly differ hold. If they are strained
    along a line for that, in a clean map, the solution in which all edges may open is tried as well, because depth also
    jumps between parallel surfaces; the one that costs less is taken.
    """
    closed = solver.strain.copy()
    solver.keep(np.clip(2 - 2 * fronts.contrast / gate_of(closed_noise(solver)), 0, 1))
    kept = Tears.of(solver, closed, fronts, pixels)
    if not kept.held or kept.noise >= NOISY:
        return kept
    solver.keep(np.zeros(len(closed)))
    free = Tears.of(solver, closed, fronts, pixels)
    return free if free.cost() < kept.cost() else kept


def _placed(solver: RobustSolver, shares: Float, fronts: Fronts, noise: float) -> Placement:
    """Return the planes of the faces of a jump mesh whose edges keep shares (E,) of their weight.

    Parts that float are attached where they can be, and what is behind stays behind.
    """
    solver.hold(shares)
    is_open = shares == 0
    joined = attached(solver, is_open, EVEN * thresholds(noise)[0])
    if (joined != is_open).any():
        solver.hold(np.where(joined, shares, np.where(is_open, 1.0, shares)))
    solver.push_back(fronts.signs(joined))
    means = solver.system.means
    return Placement(means.mesh, means.centroids, means.gradients, means.areas, solver.offsets)
