"""The first solve of a mesh: it is cut where the depth jumps, and its equations are assembled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from normalmesh.array_types import Float, Integer
from normalmesh.decimation.decimated_mesh import DecimatedMesh
from normalmesh.decimation.start_mesh import REMEDY
from normalmesh.errors import NormalMeshError
from normalmesh.integration.cotangent import CotangentSystem
from normalmesh.integration.height_noise import component_noises
from normalmesh.integration.integrated_mesh import IntegratedMesh
from normalmesh.integration.integration_options import IntegrationOptions
from normalmesh.integration.levelling import levelled
from normalmesh.integration.mesh_solver import MeshSolver
from normalmesh.integration.pixel_jumps import pixel_parts
from normalmesh.integration.prior import Prior
from normalmesh.integration.solved_mesh import JUMPS_WORK, SOLVE_WORK
from normalmesh.jumps.finding import jumps_of
from normalmesh.jumps.seams import seams_of
from normalmesh.mesh.cut_mesh import CutMesh
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.noise import MapNoise
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.memory_budget import require_memory
from normalmesh.runtime.monitor import Monitor

#: Bytes for each inner edge of a mesh: of its facet system, the factor of that, and its refinement.
INTEGRATION_BYTES = 480


def solve(
    mesh: ScreenMesh,
    normal_map: NormalMap,
    clean: NormalMap,
    noise: MapNoise,
    options: IntegrationOptions,
    jumps: Jumps | None,
    monitor: Monitor,
) -> IntegratedMesh:
    """Cut a mesh along jumps, which are found if they are not known, and solve it for the first time."""
    if not isinstance(mesh, DecimatedMesh):
        _check_mesh(mesh)
    prior = None if options.prior is None else Prior.of(options.prior, options.prior_weight, normal_map)
    repeats = getattr(mesh, "repeats", None)
    with monitor.stage("jumps", JUMPS_WORK):
        if jumps is None:
            jumps = jumps_of(clean, options.discontinuities, options.min_certainty) if options.cuts else Jumps()
        if isinstance(mesh, DecimatedMesh) and mesh.lines is not None:
            # Lines that were dropped are bridged: both sides stay where the jump places them.
            jumps = replace(jumps, lines=mesh.lines)
        cut = CutMesh.along(mesh, seams_of(mesh, jumps, clean))
        if repeats is not None:
            clean, jumps, repeats = levelled(clean, repeats, jumps)
        whole = mesh if repeats is None else repeats.wrap(mesh)
        cut = replace(cut, component=whole.components[cut.origin])
        if prior is not None and jumps.lines:
            prior = prior.apart(pixel_parts(normal_map.mask, jumps.lines))
    _require_memory(cut.mesh)
    solver = MeshSolver(clean, _vertex_system(options), jumps.placement, prior, repeats)
    with monitor.stage("solve", SOLVE_WORK):
        noises = component_noises(noise, whole, whole.components, partial(_labels_at, normal_map))
        return IntegratedMesh(mesh, cut, solver, noises, monitor, normal_map, jumps, noise.rounding)


def _vertex_system(options: IntegrationOptions) -> Callable[..., CotangentSystem] | None:
    """Return what makes the system of the vertices, or None if that of the faces is asked for."""
    if options.formulation != "vertices":
        return None
    return partial(CotangentSystem.of, parameters=options.parameters, metric=options.metric, clamp=options.clamp)


def _labels_at(normal_map: NormalMap, points: Float) -> Integer:
    """Return the component of the mask, from 1 on, at points (K, 2), or at the nearest pixels of the image."""
    labels, _ = normal_map.component_labels
    rows, columns = normal_map.shape
    column, row = np.floor(points).astype(np.int64).T
    found: Integer = labels[np.clip(row, 0, rows - 1), np.clip(column, 0, columns - 1)]
    return found


def _require_memory(mesh: ScreenMesh) -> None:
    """Raise an error if a mesh is too large to be integrated."""
    edges = int(np.count_nonzero(mesh.opposite >= 0)) // 2
    task = f"the integration of {len(mesh.vertices)} vertices"
    require_memory(INTEGRATION_BYTES * edges, task, REMEDY)


def _check_mesh(mesh: ScreenMesh) -> None:
    """Raise an error for a mesh that cannot be integrated."""
    faults = [fault for fault in mesh.check().problems if "without a face" not in fault]
    if faults or len(mesh.faces) == 0:
        raise NormalMeshError(f"the mesh cannot be integrated: {', '.join(faults) or 'it has no faces'}")
