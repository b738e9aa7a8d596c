"""The stages of a tiled reconstruction: the same as in memory, each in pieces."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from normalmesh.array_types import Float
from normalmesh.decimation.rounds import RESERVE, needs_of_shape
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.engine.runner import Runner
from normalmesh.integration.depth_levels import mean_levels, with_prior_levels
from normalmesh.integration.discontinuities import find_discontinuities
from normalmesh.integration.integration_options import IntegrationOptions
from normalmesh.integration.mesh_integration import (
    MIN_CHANGE,
    ROUNDS_AFTER_CUTS,
    ROUNDS_PER_SOLVE,
    check_range,
    warn_of_doubts,
)
from normalmesh.mesh.coverage import Coverage
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.origin import Decimation, Integration, Round
from normalmesh.mesh.surface import Surface
from normalmesh.normals.noise import MapNoise, checked_noise
from normalmesh.pieces.clean_map import CleanMap
from normalmesh.pieces.integration_tasks import Refinement, components_at, tile_coverage
from normalmesh.pieces.map_windows import Run, WindowedMap, renamed
from normalmesh.pieces.mask_components import MaskComponents, find_components
from normalmesh.pieces.tile_grid import TileGrid
from normalmesh.pieces.tile_jumps import tiled_jumps, tiled_jumps_along
from normalmesh.pieces.tile_noise import find_noise
from normalmesh.pieces.tile_points import at_points
from normalmesh.pieces.tiled_decimation import decimate_in_pieces
from normalmesh.pieces.tiled_integration import PieceSolver
from normalmesh.pieces.tiled_prior import TiledPrior
from normalmesh.pieces.whole_mesh import WholeMesh

if TYPE_CHECKING:
    from normalmesh.reconstruction.pipeline import Preset


#: What the names of the stages of the decimation begin with.
DECIMATION = "decimate"


def reconstruct_in_pieces(
    normal_map: WindowedMap,
    rule: StoppingRule,
    options: Preset,
    engine: Runner,
    tile_side: int,
    jumps: Jumps | ArrayLike | Sequence[ArrayLike] | None = None,
) -> Surface:
    """Reconstruct a surface with options that have been checked."""
    components = find_components(normal_map, engine.run, tile_side)
    noise = _noise(normal_map, components, options.integration, engine.run, tile_side)
    clean = CleanMap(normal_map, components, noise)
    search = renamed(engine.run, "search")
    find_jumps = partial(_jumps, clean, options.integration, jumps, search, tile_side)
    known = engine.kept("jumps", find_jumps, Jumps.from_arrays)
    grid = TileGrid(components.rectangle, tile_side)
    foreground = int(components.areas.sum())
    prior = None
    if options.integration.prior is not None:
        prior = TiledPrior.of(options.integration, clean, grid, known, renamed(engine.run, "prior"))

    def decimated() -> WholeMesh:
        run = renamed(engine.run, DECIMATION)
        return decimate_in_pieces(clean, grid, rule, options.decimation, run, known.lines).cut()

    mesh = engine.kept("decimated", decimated, WholeMesh.from_arrays)
    asked = rule.target(foreground)
    vertices = len(mesh.vertices)
    solver = PieceSolver(clean, grid, _degrees(mesh, clean, grid, noise, engine.run), known.placement, prior)
    mesh = _integrated(mesh, solver, options.integration.refine, asked, engine)
    warn_of_doubts(float(mesh.error), float(mesh.bent))
    report = _report(mesh, vertices, asked, known, engine)
    return _surface(mesh, solver, options.integration, known, report, noise, engine)


def _noise(
    normal_map: WindowedMap, components: MaskComponents, options: IntegrationOptions, run: Run, side: int
) -> MapNoise:
    """Return the noise of the normals, as given or estimated."""
    if options.noise is None:
        return find_noise(normal_map, components, run, side)
    noise = checked_noise(options.noise)
    return noise if isinstance(noise, MapNoise) else MapNoise((noise,), (int(components.areas.sum()),))


def _jumps(
    clean: CleanMap,
    options: IntegrationOptions,
    given: Jumps | ArrayLike | Sequence[ArrayLike] | None,
    run: Run,
    side: int,
) -> Jumps:
    """Return the jumps, given or found."""
    if not options.cuts:
        return Jumps()
    if isinstance(given, Jumps):
        return given
    if given is not None:
        return tiled_jumps_along(given, clean, run, side)
    return tiled_jumps(clean, options.discontinuities, run, side)


def _degrees(mesh: WholeMesh, clean: CleanMap, grid: TileGrid, noise: MapNoise, run: Run) -> Float:
    """Return the noise (C,) in degrees of each component of a mesh: that of the mask under its largest face."""
    screen = mesh.screen()
    degrees = np.full(int(mesh.component.max()) + 1, noise.usual.degrees)
    if len(noise.components) == 1:
        return degrees
    component = mesh.component[mesh.faces[:, 0]]
    by_area = np.argsort(screen.areas, kind="stable")
    largest = np.empty(len(degrees), np.int64)
    # If several values are assigned to one place, the last one is kept.
    largest[component[by_area]] = by_area
    points = mesh.vertices[mesh.faces[largest]].mean(axis=1)
    found = at_points(clean, grid, points, "labels", components_at, "components", run)
    known = np.array([each.degrees for each in noise.components])
    return np.where(found >= 0, known[found], degrees)


def _report(mesh: WholeMesh, decimated: int, target: int | None, jumps: Jumps, engine: Runner) -> Decimation:
    """Return the report on the decimation of all pieces, after which the mesh had so many vertices."""
    collapses, flips, moves = (int(count) for count in mesh.done[:3])
    total = Round(decimated, collapses, flips, moves, float(mesh.done[3]))
    seconds, cpu_seconds = (_part(each, decimation=True) for each in (engine.seconds, engine.cpu_seconds))
    reason = "" if target is None else _why_missed(mesh, target, bool(jumps.lines))
    return Decimation((total,), target, not reason, seconds, cpu_seconds, int(mesh.dropped_lines), reason)


def _why_missed(mesh: WholeMesh, target: int, is_cut: bool) -> str:
    """Explain why a mesh does not have the number of vertices that was asked for; empty if it has."""
    if len(mesh.vertices) == target:
        return ""
    if len(mesh.vertices) < target:
        return "the foreground has no use for more"
    reasons = ["lines along which depth jumps are kept"] if is_cut else needs_of_shape(mesh.screen())
    return "; ".join([*reasons, "tiles keep vertices along their seams: larger tiles come closer"])


def _part(seconds: Mapping[str, float], decimation: bool) -> dict[str, float]:
    """Return the seconds of the stages of the decimation, or of all others."""
    return {name: each for name, each in seconds.items() if name.startswith(f"{DECIMATION}-") == decimation}


def _integrated(mesh: WholeMesh, solver: PieceSolver, max_rounds: int, target: int | None, engine: Runner) -> WholeMesh:
    """Solve and refine a mesh, as :func:`.integrate` does."""
    cuts = solver.placement is not None

    def refined(turns: range, mesh: WholeMesh, run: Run) -> None:
        changes = solver.refine(mesh, Refinement(turns, tidies=cuts), run)
        mesh.rounds = np.concatenate([mesh.rounds, changes])

    def detached(mesh: WholeMesh, run: Run) -> None:
        solver.detach(mesh, run)
        if target is not None:
            solver.refine(mesh, Refinement(), run, target - math.ceil(RESERVE * target))

    def solved(name: str, mesh: WholeMesh, change: Callable[[WholeMesh, Run], None] | None = None) -> WholeMesh:
        """Return the mesh after a change and a solve."""

        def make() -> WholeMesh:
            run = renamed(engine.run, name)
            if change is not None:
                change(mesh, run)
            solver.solve(mesh, run)
            return mesh

        return engine.kept(name, make, WholeMesh.from_arrays)

    def in_rounds(mesh: WholeMesh, numbers: range) -> WholeMesh:
        for start in numbers[::ROUNDS_PER_SOLVE]:
            turns = range(start, min(start + ROUNDS_PER_SOLVE, numbers.stop))
            mesh = solved(f"refine-{start}", mesh, partial(refined, turns))
            if mesh.rounds[-1].sum() < MIN_CHANGE * len(mesh.vertices):
                break
        return mesh

    mesh = in_rounds(solved("solve", mesh), range(max_rounds))
    if max_rounds and cuts:
        mesh = in_rounds(solved("detach", mesh, detached), range(max_rounds, max_rounds + ROUNDS_AFTER_CUTS))
    if max_rounds:
        solver.refine(mesh, Refinement(tidies=True), renamed(engine.run, "tidy"), target)
    return mesh


def _surface(
    mesh: WholeMesh,
    solver: PieceSolver,
    options: IntegrationOptions,
    jumps: Jumps,
    report: Decimation,
    noise: MapNoise,
    engine: Runner,
) -> Surface:
    """Return the surface of a mesh whose unknown is known."""
    clean, camera, final = solver.clean, solver.clean.camera, mesh.screen()
    shift, fixed = mean_levels(mesh.unknown, mesh.component, final, camera, options.distance), None
    if solver.prior is not None:
        fixed = solver.prior.on_faces(final, renamed(engine.run, "fixed")).touched.astype(np.int32)
        shift = with_prior_levels(shift, mesh.levels, mesh.component[final.faces[fixed, 0]])
    unknown = mesh.unknown - shift[mesh.component]
    check_range(unknown, camera)
    found = find_discontinuities(jumps, final, unknown, camera, mesh.component, fixed) if options.cuts else None
    rounds = tuple((int(flips), int(moves)) for flips, moves in mesh.rounds)
    seconds, cpu_seconds = (_part(each, decimation=False) for each in (engine.seconds, engine.cpu_seconds))
    integration = Integration(noise.usual.degrees, "elimination", float(mesh.error), rounds, seconds, cpu_seconds)
    return Surface.from_unknown(
        final,
        unknown,
        camera,
        clean.shape,
        options.units,
        integration=integration,
        decimation=report,
        discontinuities=found,
        coverage=_coverage(mesh, clean, solver.grid, engine.run),
    )


def _coverage(mesh: WholeMesh, clean: CleanMap, grid: TileGrid, run: Run) -> Coverage:
    """Return how the mesh agrees with the foreground."""
    areas, foreground = clean.components.areas, int(clean.components.areas.sum())
    row, column = np.divmod(mesh.flipped, clean.shape[1])
    tile = grid.tile_of(np.stack([column, row], axis=1).astype(np.float64))
    keys = list(grid.tile_keys())
    found = run(
        "coverage",
        tile_coverage,
        {int(each): (clean, grid.tile(keys[each]), mesh.flipped[tile == each]) for each in np.unique(tile)},
    )
    uncovered = np.zeros(len(areas), np.int64)
    for each in found.values():
        uncovered += np.bincount(each["components"], minlength=len(areas))
    spilled = sum(int(each["spilled"]) for each in found.values())
    return Coverage(foreground, int(uncovered.sum()), spilled, int(np.count_nonzero(uncovered == areas)))
