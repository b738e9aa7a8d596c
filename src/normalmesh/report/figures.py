"""The figures of a report: names and values in tables, and warnings."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

from normalmesh import __version__
from normalmesh.errors import count_text
from normalmesh.evaluation.looks import Looks, measure_looks
from normalmesh.integration.uncertainty import UncertaintySummary
from normalmesh.mesh.relief import measured_surface
from normalmesh.mesh.surface import Surface
from normalmesh.normals.conventions import Convention
from normalmesh.normals.diagnosis import Diagnosis
from normalmesh.normals.normal_map import NormalMap
from normalmesh.reconstruction.shortfalls import shortfalls
from normalmesh.report.shadings import AngularErrors

if TYPE_CHECKING:
    from normalmesh.array_types import Float, Int32

#: Which angles a report of a surface that was flattened or exaggerated has.
BEFORE = "angles to the normals are those before it"
#: Rows of a table: name and value.
Rows = list[tuple[str, str]]
#: Rows of a table: name, value and a line that explains the value.
ExplainedRows = list[tuple[str, str, str]]


@dataclass(frozen=True)
class Figures:
    """The figures of a report: headline, details, seconds by stage, warnings, convention and looks."""

    headline: Rows
    details: Rows
    stages: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    convention: str = ""
    looks: ExplainedRows = field(default_factory=list)

    @classmethod
    def of_mesh(cls, vertices: Float, faces: Int32, warnings: Iterable[object] = ()) -> Figures:
        """Return the figures of a mesh without a normal map."""
        headline = [("Vertices", count(len(vertices))), ("Faces", count(len(faces)))]
        return cls(headline, [("Extent", _extent(vertices))], warnings=tuple(map(str, warnings)))

    @classmethod
    def of_surface(
        cls,
        surface: Surface,
        normal_map: NormalMap | None,
        errors: AngularErrors | None,
        diagnosis: Diagnosis | None,
        warnings: Iterable[object],
        uncertainty: UncertaintySummary | None = None,
    ) -> Figures:
        """Return the figures of a reconstructed surface, as far as its normal map and report are known."""
        headline = [("Vertices", count(len(surface.vertices))), ("Faces", count(len(surface.faces)))]
        rows, columns = surface.shape
        details = [("Image size", f"{columns} × {rows} pixels")]
        if normal_map is not None:
            headline.append(("Compression", f"{100 * (1 - len(surface.vertices) / normal_map.foreground):.2f} %"))
            details += about_map(normal_map)
        if errors is not None and np.isfinite(errors.mean):
            headline.append(("Mean angular error", f"{errors.mean:.2f}°"))
            details.append(("Angular error", f"median {errors.median:.2f}°, 95 % below {errors.high:.2f}°"))
        if uncertainty is not None:
            headline.append(("Height uncertainty", f"± {uncertainty.median:.2g} {uncertainty.units}"))
            details.append(("Height uncertainty", str(uncertainty)))
        if surface.discontinuities is not None:
            headline.append(("Jumps", count(len(surface.discontinuities.lines))))
            details.append(("Jumps", str(surface.discontinuities)))
        if len(surface.walls):
            details.append(("Walls", f"{count(len(surface.walls))} faces"))
        if surface.coverage is not None:
            details.append(("Coverage", str(surface.coverage)))
        details += _about_surface(surface)
        stages = _stages(surface)
        if stages:
            headline.append(("Time", f"{sum(stages.values()):.2f} s"))
        texts = (*map(str, warnings), *_own_warnings(surface, diagnosis))
        looks: ExplainedRows = []
        # Faces that are smaller than pixels, as those of a grid of heights, have no pixels to be compared with.
        if normal_map is not None and len(surface.faces) < normal_map.foreground:
            looks = _about_looks(measure_looks(measured_surface(surface), normal_map))
        convention = "" if diagnosis is None else str(diagnosis)
        return cls(headline, details, stages, tuple(dict.fromkeys(texts)), convention, looks)


def versions() -> Rows:
    """Return the versions of the packages that a run depends on."""
    packages = [(name, version(name)) for name in ("numpy", "numba")]
    return [("normalmesh", __version__), *packages, ("Python", platform.python_version())]


def count(number: int | np.integer) -> str:
    """Format a number with narrow spaces between groups of three digits."""
    return f"{number:,}".replace(",", "\u202f")


def about_map(normal_map: NormalMap) -> Rows:
    """Return the foreground of a map, and what was repaired in it."""
    repairs, share = normal_map.repairs, 100 * normal_map.foreground / normal_map.mask.size
    rows = [("Foreground", f"{count(normal_map.foreground)} pixels ({share:.1f} %)")]
    repaired = {
        "invalid": repairs.invalid,
        "rescaled": repairs.rescaled,
        "back-facing": repairs.back_facing,
        "grazing": repairs.grazing,
        "extended from neighbours": repairs.extended,
        "excluded": repairs.excluded,
    }
    text = ", ".join(f"{count(number)} {name}" for name, number in repaired.items() if number)
    return [*rows, ("Normals repaired", text or "none")]


def _about_surface(surface: Surface) -> Rows:
    rows = [
        ("Camera", surface.camera.describe()),
        ("Components", count(int(surface.components.max()) + 1)),
        ("Extent", _extent(surface.vertices, surface.units)),
    ]
    if surface.repeats is not None:
        rows.append(("Repeats", str(surface.repeats)))
    if surface.flattening is not None:
        rows.append(("Taken away by flattening", f"{surface.flattening}; {BEFORE}"))
    if surface.strength != 1:
        rows.append(("Strength", f"heights multiplied by {surface.strength:g}: no measurement; {BEFORE}"))
    if surface.decimation is not None:
        target = surface.decimation.target
        asked = "" if target is None else f", {count(target)} vertices asked for"
        rows.append(("Decimation", count_text(len(surface.decimation.rounds), "round") + asked))
    if surface.integration is not None:
        report = surface.integration
        flips, moves = (sum(each[k] for each in report.refinements) for k in (0, 1))
        rows += [
            ("Noise of the normals", f"{report.noise:.2f}°"),
            ("Solver", f"{report.method}, error {report.error:.1e} px"),
            (
                "Refinement",
                f"{count_text(len(report.refinements), 'round')}, {count(flips)} flips, {count(moves)} moves",
            ),
        ]
    return rows


def _about_looks(looks: Looks) -> ExplainedRows:
    teeth = f"{looks.teeth:.1f}°, {looks.turning:.1f}° per px" if np.isfinite(looks.teeth) else "none"
    off = f"{looks.off_30:.2f} % by more than 30°, {looks.off_60:.2f} % by more than 60°"
    return [
        ("Cuts", f"{looks.cut_length:.0f} px", "length of the cuts at depth jumps; in a relief, they are cracks"),
        ("Teeth", teeth, "mean angle by which cuts turn at a vertex, without tips; above 25° teeth are visible"),
        ("Bad area", f"{looks.bad_area:.2f} %", "area of faces more than 45° off their pixels, or without any"),
        ("Area off its pixels", off, "area of faces whose normals differ from the mean of their pixels"),
        ("Ghosts", f"{looks.ghosts:.2f} %", "area of faces more than 30° off where the map is smooth, away from cuts"),
        ("Gaps", f"{looks.gaps:.2f} %", "area between the sides of cuts, seen from 30° beside the view"),
        ("Needles", count(looks.needles), "faces more than 100 times as long as high"),
        ("Largest aspect", f"{looks.largest_aspect:.0f}", "longest edge of a face over its height above it"),
        ("Inverted faces", count(looks.inverted), "faces seen from behind"),
        ("Uncovered", f"{looks.uncovered:.2f} %", "foreground pixels whose centres are in no face"),
        ("Spill", f"{looks.spill:.2f} %", "background pixels whose centres are in a face, relative to the foreground"),
    ]


def _extent(vertices: Float, units: str = "") -> str:
    return " × ".join(f"{length:.4g}" for length in np.ptp(vertices, axis=0)) + f" {units}".rstrip()


def _stages(surface: Surface) -> dict[str, float]:
    """Return the seconds by stage, in the order of the pipeline."""
    stages: dict[str, float] = {}
    for name, work in (("decimation", surface.decimation), ("integration", surface.integration)):
        if work is not None:
            stages |= {f"{name}: {stage}": seconds for stage, seconds in work.seconds.items()}
    return stages


def _own_warnings(surface: Surface, diagnosis: Diagnosis | None) -> list[str]:
    found = []
    if diagnosis is not None and diagnosis.world_space:
        found.append(diagnosis.summary().splitlines()[0])
    elif diagnosis is not None and diagnosis.strongly_excludes(Convention("+x+y+z")):
        fitting = " or ".join(diagnosis.candidates)
        found.append(
            "The data contradict the convention that the normals were read with: relative to that, "
            f"{fitting} fits. Read them with another convention."
        )
    found += shortfalls(surface)
    undetermined = 0 if surface.discontinuities is None else np.count_nonzero(surface.discontinuities.undetermined)
    if undetermined:
        parts = count_text(int(undetermined), "part")
        found.append(f"The depth of {parts} relative to the rest is a guess; add a control point there (prior).")
    return found
