"""Options of the integration on a mesh, with their defaults and checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from numpy.typing import ArrayLike

from normalmesh.arguments import checked_choice, checked_int
from normalmesh.decimation.decimation_options import MAX_ROUNDS
from normalmesh.errors import NormalMeshError
from normalmesh.integration.cotangent import check_system
from normalmesh.jumps.finding import checked_discontinuities, checked_min_certainty
from normalmesh.mesh.surface_arrays import check_units
from normalmesh.mesh.walls import GAPS
from normalmesh.normals.camera import checked_distance
from normalmesh.normals.noise import MapNoise, Noise, checked_noise

FORMULATIONS = ("facets", "vertices")


class IntegrationKeywords(TypedDict, total=False):
    """The options of :class:`IntegrationOptions` as keyword arguments."""

    formulation: str
    parameters: str
    metric: str
    clamp: tuple[float, float] | None
    discontinuities: bool | str
    gaps: str
    min_certainty: float
    noise: float | Noise | MapNoise | None
    refine: int
    prior: ArrayLike | None
    prior_weight: float | None
    distance: float
    units: str


@dataclass(frozen=True, eq=False)
class IntegrationOptions:
    """How to integrate; :func:`normalmesh.integrate` describes the options.

    Raises
    ------
    NormalMeshError
        An option is out of its range. The prior is checked later, against the normal map.
    """

    formulation: str = "facets"
    parameters: str = "gradient"
    metric: str = "screen"
    clamp: tuple[float, float] | None = None
    discontinuities: bool | str = "auto"
    gaps: str = "auto"
    min_certainty: float = 0.0
    noise: float | Noise | MapNoise | None = None
    refine: int = 4
    prior: ArrayLike | None = None
    prior_weight: float | None = None
    distance: float = 1.0
    units: str = "px"

    def __post_init__(self) -> None:
        checked_choice(self.formulation, FORMULATIONS, "formulation")
        check_system(self.parameters, self.metric, self.clamp)
        object.__setattr__(self, "discontinuities", checked_discontinuities(self.discontinuities))
        object.__setattr__(self, "min_certainty", checked_min_certainty(self.min_certainty))
        if self.discontinuities is True and self.formulation != "facets":
            raise NormalMeshError('discontinuities need formulation="facets"')
        checked_choice(self.gaps, GAPS, "gaps")
        if self.noise is not None:
            object.__setattr__(self, "noise", checked_noise(self.noise))
        checked_int(self.refine, 0, "refine", MAX_ROUNDS)
        object.__setattr__(self, "distance", checked_distance(self.distance))
        check_units(self.units)

    @property
    def cuts(self) -> bool:
        """Whether the mesh may be cut where the depth jumps."""
        return self.formulation == "facets" and self.discontinuities is not False
