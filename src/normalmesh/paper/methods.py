"""The methods that benchmarks compare: functions of a case and a number of vertices that return a surface."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from normalmesh.array_types import Float
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.isotropic.isotropic import remesh_isotropic
from normalmesh.evaluation.metrics import Evaluation, evaluate
from normalmesh.integration.mesh_integration import integrate
from normalmesh.integration.pixel_integration import integrate_pixels
from normalmesh.mesh.surface import Surface
from normalmesh.paper.sources import Source
from normalmesh.paper.tables import Row
from normalmesh.reconstruction.pipeline import reconstruct
from normalmesh.reconstruction.presets import PRESETS

#: The options of the preset ``"paper"`` as keyword arguments.
PAPER_DECIMATION: dict[str, Any] = vars(PRESETS["paper"].decimation)
PAPER_INTEGRATION: dict[str, Any] = vars(PRESETS["paper"].integration)

#: A function that returns a surface or a depth map.
Maker: TypeAlias = Callable[[], Surface | Float]

#: The integrator of Heep & Zell 2024: as in the paper, but with one normal per face.
OLDER_INTEGRATION: dict[str, Any] = {**PAPER_INTEGRATION, "parameters": "constant"}


def isotropic(case: Case, vertices: int) -> Surface:
    """Reconstruct with isotropic remeshing and the older integrator, the method that the paper compares with."""
    mesh = remesh_isotropic(case.normal_map, vertices=vertices)
    return integrate(mesh, case.normal_map, **OLDER_INTEGRATION)


def paper(case: Case, vertices: int) -> Surface:
    """Reconstruct with the paper's method as published."""
    return reconstruct(case.normal_map, vertices=vertices, preset="paper")


def default(case: Case, vertices: int) -> Surface:
    """Reconstruct with the defaults of normalmesh."""
    return reconstruct(case.normal_map, vertices=vertices)


#: Name in tables → method.
METHODS: dict[str, Callable[[Case, int], Surface]] = {
    "isotropic": isotropic,
    "paper": paper,
    "ours": default,
}


#: Figures of a row.
COLUMNS = ("vertices", "compression", "rmse", "made", "mae", "covered", "units")


def maker(method: str, case: Case, share: float) -> Maker:
    """Return what runs a method, or ``"pixels"``: continuous integration on the pixel grid, the paper's reference."""
    if method == "pixels":
        return partial(integrate_pixels, case.normal_map)
    return partial(METHODS[method], case, vertex_count(case, share))


def vertex_count(case: Case, fraction: float) -> int:
    """Return the number of vertices that is this fraction of the foreground pixels."""
    return max(round(fraction * case.normal_map.foreground), 4)


def row_of(name: str, found: Evaluation) -> Row:
    """Return the figures of an evaluation as a row."""
    return {"method": name, **{column: getattr(found, column) for column in COLUMNS}}


def timed_row(name: str, case: Case, make: Maker) -> Row:
    """Run a method, and return its figures and its seconds as a row."""
    start = time.perf_counter()
    result = make()
    seconds = time.perf_counter() - start
    return {**row_of(name, evaluate(result, case)), "seconds": seconds}


def pixels_rows(source: Source) -> list[Row]:
    """Return the row of continuous integration on the pixel grid."""
    case = source.load()
    return [timed_row("pixels", case, maker("pixels", case, 1.0))]
