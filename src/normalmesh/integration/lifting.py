"""Lifting: from the unknown at the vertices of a mesh to a surface with the records that travel with it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Protocol, SupportsFloat

from normalmesh.array_types import Float, Int32, Integer
from normalmesh.errors import NormalMeshError, NormalMeshWarning
from normalmesh.integration.depth_levels import mean_levels, with_prior_levels
from normalmesh.integration.discontinuities import find_discontinuities
from normalmesh.integration.integration_options import IntegrationOptions
from normalmesh.mesh.coverage import Coverage
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.origin import Decimation, HeightNoise, Integration, Remeshing
from normalmesh.mesh.repeats import Repeats
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.mesh.surface import Surface
from normalmesh.mesh.walls import has_walls, walls_of
from normalmesh.normals.camera import Camera
from normalmesh.normals.noise import MapNoise

#: Error of the solver (px) from which on it is reported.
VISIBLE_ERROR = 0.01
#: Largest share of the surface that a prior may bend without a warning.
MAX_BENT = 0.01


class LiftedMesh(Protocol):
    """A mesh, in one piece or in many, with the unknown at its vertices: what a surface is made of.

    Attributes
    ----------
    unknown : (N,)
        Height, or logarithm of the depth.
    component : (N,) int32
        Component of each vertex before the mesh was cut.
    rounds
        Numbers of flips and moves in the rounds of refinement.
    """

    @property
    def unknown(self) -> Float: ...

    @property
    def component(self) -> Int32: ...

    @property
    def rounds(self) -> Sequence[tuple[int, int]]: ...

    @property
    def image(self) -> tuple[Camera, tuple[int, int]]:
        """Camera, rows and columns of the map."""
        ...

    @property
    def jumps(self) -> Jumps: ...

    @property
    def repeats(self) -> Repeats | None: ...

    @property
    def levels(self) -> Float | None:
        """What has to be added to the unknown of each component (C,) that a prior fixes; None without a prior."""
        ...

    @property
    def solver(self) -> SolverReport: ...

    def screen(self) -> ScreenMesh:
        """Return the mesh on the screen."""
        ...

    def fixed_faces(self, mesh: ScreenMesh) -> Int32 | None:
        """Return the faces (K,) of the mesh that a prior fixes; None without a prior."""
        ...

    def coverage(self, mesh: ScreenMesh) -> Coverage:
        """Return how the mesh agrees with the foreground."""
        ...

    def height_noise(self, mesh: ScreenMesh, unknown: Float) -> HeightNoise:
        """Return what the uncertainty of heights depends on."""
        ...

    def seconds(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return wall and CPU seconds of the integration by stage."""
        ...

    def decimation(self) -> Decimation | Remeshing | None:
        """Return the report on how the mesh was made, if that is known."""
        ...


class SolverReport(Protocol):
    """How well the equations were solved; see :class:`.MeshSolver`."""

    @property
    def method(self) -> str: ...

    @property
    def error(self) -> SupportsFloat: ...

    @property
    def bent(self) -> SupportsFloat: ...


def lift(solved: LiftedMesh, options: IntegrationOptions, noise: MapNoise) -> Surface:
    """Return the surface of a mesh that is solved and refined, at its documented level."""
    solver, final, (camera, shape) = solved.solver, solved.screen(), solved.image
    warn_of_doubts(float(solver.error), float(solver.bent))
    fixed = solved.fixed_faces(final)
    unknown = solved.unknown - _gauge(solved, final, fixed, options.distance)[solved.component]
    check_range(unknown, camera)
    found = None
    if options.cuts:
        found = find_discontinuities(solved.jumps, final, unknown, camera, solved.component, fixed)
    coverage, repeats, walls = solved.coverage(final), solved.repeats, None
    if options.cuts and has_walls(options.gaps, camera, coverage.foreground / math.prod(shape), repeats):
        walls = walls_of(final, camera.towards_viewer * unknown)
    heights = solved.height_noise(final, unknown)
    return Surface.from_unknown(
        final,
        unknown,
        camera,
        shape,
        options.units,
        integration=Integration(
            noise.usual.degrees, solver.method, float(solver.error), tuple(solved.rounds), *solved.seconds(), heights
        ),
        decimation=solved.decimation(),
        discontinuities=found,
        coverage=coverage,
        repeats=repeats,
        walls=walls,
    )


def _gauge(solved: LiftedMesh, mesh: ScreenMesh, fixed: Integer | None, distance: float) -> Float:
    """Return the shift (C,) of the unknown of each component that gives it its documented mean.

    A component that a prior fixes gets its level back.
    """
    shift = mean_levels(solved.unknown, solved.component, mesh, solved.image[0], distance)
    if fixed is None or solved.levels is None:
        return shift
    return with_prior_levels(shift, solved.levels, solved.component[mesh.faces[fixed, 0]])


def check_range(unknown: Float, camera: Camera) -> None:
    """Raise an error if points would not be finite: a contradictory prior can lead to any depth."""
    if not abs(unknown).max() < camera.max_unknown:
        raise NormalMeshError(
            "the depths would exceed the range of numbers: the points of the prior contradict each other, or the "
            "normals; check their depths and units, or lower prior_weight"
        )


def warn_of_doubts(error: float, bent: float) -> None:
    """Warn if equations could not be solved exactly, or if a prior bends the surface against the normals."""
    doubts = []
    if error > VISIBLE_ERROR:
        doubts.append(
            f"the depths may be off by {error:.2g} px, because the equations could not be solved more exactly; "
            "if there is a prior, check whether its points contradict each other, or lower prior_weight"
        )
    if bent > MAX_BENT:
        doubts.append(
            f"the prior changes the slope of {100 * bent:.2g} % of a component by more than a half, against the "
            "normals; check its depths and units, lower prior_weight, or ask for more vertices than there are points"
        )
    for doubt in doubts:
        warnings.warn(doubt, NormalMeshWarning, stacklevel=5)
