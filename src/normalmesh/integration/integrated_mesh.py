"""IntegratedMesh: a mesh in one piece that is solved, with all that its surface is made of."""

from __future__ import annotations

from normalmesh.array_types import Float, Int32
from normalmesh.decimation.decimated_mesh import DecimatedMesh
from normalmesh.integration.height_noise import height_noise_of, noise_of_faces, noises_of_parts
from normalmesh.integration.levelling import without_slope
from normalmesh.integration.mesh_deviation import face_variances
from normalmesh.integration.mesh_solver import MeshSolver
from normalmesh.integration.solved_mesh import SolvedMesh
from normalmesh.integration.uncertainty import with_rounding
from normalmesh.mesh.coverage import Coverage
from normalmesh.mesh.cut_mesh import CutMesh
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.origin import Decimation, HeightNoise, Remeshing
from normalmesh.mesh.repeats import Repeats
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.camera import Camera
from normalmesh.normals.noise import Noise
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.monitor import Monitor


class IntegratedMesh(SolvedMesh):
    """A solved mesh with all that its surface is made of.

    Parameters
    ----------
    mesh, cut, solver, monitor
        As for :class:`SolvedMesh`.
    noises
        (C, 2) degrees and correlation of the noise of each component.
    normal_map
        The normals, with their noise.
    jumps
        The jumps, as the solver places them.
    rounding
        Noise of heights by rounding.
    """

    def __init__(
        self,
        mesh: ScreenMesh,
        cut: CutMesh,
        solver: MeshSolver,
        noises: Float,
        monitor: Monitor,
        normal_map: NormalMap,
        jumps: Jumps,
        rounding: Noise,
    ) -> None:
        super().__init__(mesh, cut, solver, noises[:, 0], _target(mesh, cut), monitor)
        self.measured, self.jumps, self._noises = normal_map, jumps, with_rounding(noises, rounding)
        self._report = getattr(mesh, "report", None)

    @property
    def image(self) -> tuple[Camera, tuple[int, int]]:
        """Camera, rows and columns of the map."""
        return self.measured.camera, self.measured.shape

    @property
    def repeats(self) -> Repeats | None:
        """Directions in which the surface repeats."""
        return self.solver.repeats

    @property
    def levels(self) -> Float | None:
        """What has to be added to the unknown of each component (C,) that a prior fixes; None without a prior."""
        return self.solver.levels

    def screen(self) -> ScreenMesh:
        """Return the mesh on the screen."""
        return self.mesh.to_screen()

    def fixed_faces(self, mesh: ScreenMesh) -> Int32 | None:
        """Return the faces (K,) of the mesh that a prior fixes; None without a prior."""
        self.solver.find_fixed(mesh)
        return self.solver.fixed

    def coverage(self, mesh: ScreenMesh) -> Coverage:
        """Return how the mesh agrees with the foreground."""
        return Coverage.of(mesh, self.measured.mask)

    def height_noise(self, mesh: ScreenMesh, unknown: Float) -> HeightNoise:
        """Return what the uncertainty of heights depends on."""
        normals, solver, twins = self.measured, self.solver, None
        if self.repeats is not None:
            normals = without_slope(normals, self.repeats.mean_slope)
            twins = self.repeats.wrap(mesh).first_twins
        part_noises = noises_of_parts(mesh, self.component, self._noises)
        variances = face_variances(mesh, unknown, normals, noise_of_faces(mesh, part_noises))
        held = None
        if solver.prior is not None and solver.points is not None:
            held = *solver.points, solver.prior.weights
        formulation = "facets" if solver.vertex_system is None else "vertices"
        return height_noise_of(mesh, part_noises, variances, formulation, held, twins)

    def seconds(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return wall and CPU seconds of the integration by stage."""
        return self.monitor.seconds, self.monitor.cpu_seconds

    def decimation(self) -> Decimation | Remeshing | None:
        """Return the report on how the mesh was made, if that is known."""
        return self._report


def _target(mesh: ScreenMesh, cut: CutMesh) -> int | None:
    """Return the number of vertices that the surface should have, or None if each component keeps its own number."""
    if isinstance(mesh, DecimatedMesh) and mesh.report.target is not None and mesh.report.target_met:
        return max(mesh.report.target, len(cut.origin))
    return None
