"""The summary of one reconstruction, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from normalmesh.cli.printing import PrintedTable, field_text, json_text
from normalmesh.errors import count_text, path_text
from normalmesh.evaluation.metrics import mean_angle
from normalmesh.integration.uncertainty import UncertaintySummary, part_text
from normalmesh.maps.maps_on_disk import MapOnDisk
from normalmesh.mesh.flattening import relief_tilt
from normalmesh.mesh.solid import Solid
from normalmesh.mesh.surface import Surface
from normalmesh.normals.noise import is_inconsistency
from normalmesh.normals.normal_map import NormalMap

#: Figures of each surface.
LEVEL = ("vertices", "requested", "faces", "compression", "mae", "coverage", "uncertainty")
#: What JSON holds, in this order.
CONTENT = (
    *("input", "outputs", "size", "foreground", *LEVEL, "levels", "jumps", "walls", "tolerance", "repeats"),
    *("strength", "tilt", "flattening", "solid", "seconds", "warnings", "error"),
)
#: Figures in JSON, and the attributes that they are.
FLATTENING = {"shape": "shape", "tilt_degrees": "tilt", "direction_degrees": "direction", "bow": "bow"}
FLATTENING |= {name: name for name in ("width", "units", "coefficients", "centre")}
UNCERTAINTY = {"median": "median", "high": "high", "noise": "by_noise", "mesh": "by_mesh"}
UNCERTAINTY |= {"noise_degrees": "noise", "units": "units"}

#: Columns for the names of inputs in a table.
LONGEST_NAME = 32


class RunSummary:
    """The summary of one reconstruction, filled step by step: figures for JSON, and texts by label for one input."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.outputs: list[Path] = []
        self.seconds: dict[str, float] = {}
        self.warnings: list[str] = []
        self.error: str | None = None
        self.figures: dict[str, Any] = {**dict.fromkeys(CONTENT), "levels": [], "strength": 1.0}
        self.fields: dict[str, str] = {}

    def add_normal_map(self, normal_map: NormalMap | MapOnDisk, strength: float | None) -> None:
        """Record the size of the normal map, and the factor of its relief in all files."""
        rows, columns = normal_map.shape
        self.figures |= {"size": (columns, rows), "foreground": normal_map.foreground, "strength": strength or 1.0}

    def add_surfaces(self, surfaces: Sequence[Surface]) -> None:
        """Record jumps, walls and tolerance of the finest surface, and the seconds by stage."""
        first = surfaces[0]
        found, tolerance = first.discontinuities, getattr(first.decimation, "tolerance", None)
        if found is not None:
            certainty = min((line.certainty for line in found.lines), default=None)
            self.figures["jumps"] = {"lines": len(found.lines), "length": found.length, "certainty": certainty}
            self.figures["walls"] = {"faces": len(first.walls), "length": found.length if len(first.walls) else 0.0}
        if tolerance is not None:
            self.figures["tolerance"] = {**asdict(tolerance), "met": tolerance.met}
        self.figures["repeats"] = None if first.repeats is None else str(first.repeats)
        # All levels come from one decimation, whose seconds the coarsest one holds in full.
        self.seconds |= getattr(surfaces[-1].decimation, "seconds", {})
        for surface in surfaces:
            for stage, seconds in surface.integration.seconds.items() if surface.integration else ():
                self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    def add_figures(
        self, measured: Sequence[Surface], written: Sequence[Surface], normal_map: NormalMap | MapOnDisk
    ) -> None:
        """Record the figures of surfaces as they were measured, and the uncertainty of the heights that are written."""
        levels = [_figures(before, after, normal_map) for before, after in zip(measured, written, strict=True)]
        self.figures |= {"levels": levels, **levels[0]}
        counts, wanted = (", ".join(str(level[name]) for level in levels) for name in ("vertices", "requested"))
        asked = "" if wanted == counts or levels[0]["requested"] is None else f", {wanted} asked for"
        self.fields["vertices"] = f"{counts} for {count_text(normal_map.foreground, 'pixel')}{asked}"
        if any(level["mae"] is not None for level in levels):
            self.fields["angle"] = f"{', '.join(map(_angle, levels))} to the normals (mean)"
        if any(level["coverage"] is not None for level in levels):
            covered, spilled = (_shares(name, levels) for name in ("covered", "spilled"))
            self.fields["coverage"] = f"{covered} of the foreground, {spilled} outside it"
        if all(level["uncertainty"] is not None for level in levels):
            self.fields["heights"] = _deviations(levels, normal_map)
        if (tilt := relief_tilt(written[0])) is not None:
            self.figures["tilt"] = {"degrees": tilt.tilt, "direction_degrees": tilt.direction}
            self.fields["tilted"] = f"by {str(tilt).partition('tilt ')[2]}; --flatten plane takes it away"
        if (found := measured[0].discontinuities) is not None:
            hint = "; --jumps FILE shows them, --continuous switches them off" if found.lines else ""
            self.fields["jumps"] = f"{found}{hint}"
            if walls := len(measured[0].walls):
                self.fields["walls"] = f"{count_text(walls, 'face')} closing {found.length:.0f} px of jumps"
        if self.figures["repeats"] is not None:
            self.fields["repeats"] = self.figures["repeats"]
        if (strength := self.figures["strength"]) != 1:
            self.fields["strength"] = f"heights multiplied by {strength:g} in all files: no measurement"

    def add_solid(self, surface: Surface, solids: Sequence[Solid]) -> None:
        """Record what was taken away from the heights, and the finest solid."""
        self.figures["flattening"] = _picked(surface.flattening, **FLATTENING)
        if surface.flattening is not None:
            self.fields["flattened"] = str(surface.flattening)
        for solid in solids[:1]:
            figures = {name: getattr(solid, name) for name in ("extent", "volume", "units", "scale")}
            figures |= {"pieces": len(solid.volumes), "vertices": len(solid.vertices), "faces": len(solid.faces)}
            self.figures["solid"] = figures
            self.fields["solid"] = f"{solid}; watertight"

    def as_json(self) -> str:
        """Return one line of JSON, with the figures of the finest surface and those of all levels."""
        files = {"input": str(self.source), "outputs": [str(path) for path in self.outputs]}
        seconds = {stage: round(seconds, 4) for stage, seconds in self.seconds.items()}
        return json_text(self.figures | files | {"seconds": seconds, "warnings": self.warnings, "error": self.error})

    def lines(self) -> list[str]:
        """Return the text for a single input."""
        wrote = [field_text("wrote", path_text(path)) for path in self.outputs]
        return [*(field_text(label, text) for label, text in self.fields.items()), *wrote]

    def cells(self) -> list[str]:
        """Return the row of one of several inputs in the table of `table_of`."""
        levels = self.figures["levels"]
        return [
            path_text(self.source),
            ", ".join(str(level["vertices"]) for level in levels),
            ", ".join(map(_angle, levels)),
            f"{self.seconds['total']:.1f}",
            ", ".join(path_text(path.name) for path in self.outputs),
        ]


def table_of(
    sources: Sequence[Path],
    titles: Sequence[str] = ("vertices", "angle", "seconds", "wrote"),
    widths: Sequence[int] = (-8, -7, -7),
) -> PrintedTable:
    """Return a table with a row for each of several inputs; that of their summaries by default."""
    longest = max(len(path_text(source)) for source in sources)
    return PrintedTable(["input", *titles], [min(longest, LONGEST_NAME), *widths])


def _angle(level: dict[str, Any]) -> str:
    """Return the mean angle of a level as text; empty if it was not measured, as of maps that stay on disk."""
    return "" if level["mae"] is None else f"{level['mae']:.2f}°"


def _shares(name: str, levels: Sequence[dict[str, Any]]) -> str:
    """Return shares of the coverage of levels as text."""
    return ", ".join(f"{100 * level['coverage'][name]:.2f} %" for level in levels)


def _deviations(levels: Sequence[dict[str, Any]], normal_map: NormalMap | MapOnDisk) -> str:
    """Return the standard deviations of the heights of levels as text."""
    found = [level["uncertainty"] for level in levels]
    medians, by_noise, by_mesh = (
        ", ".join(part_text(each[key], each["median"]) for each in found) for key in ("median", "noise", "mesh")
    )
    degrees, cause = found[0]["noise_degrees"], "noise of {:.2f}° on the normals"
    if is_inconsistency(degrees, normal_map.repairs, normal_map.foreground):
        cause = "an inconsistency of the normals of {:.2f}°"
    noise = f"± {by_noise} by {cause.format(degrees)}"
    units = found[0]["units"]
    return f"± {medians} {units} (median standard deviation): {noise}, ± {by_mesh} by the mesh"


def _figures(surface: Surface, written: Surface, normal_map: NormalMap | MapOnDisk) -> dict[str, Any]:
    vertices, coverage = len(surface.vertices), surface.coverage
    return {
        "vertices": vertices,
        "requested": getattr(surface.decimation, "target", None),
        "faces": len(surface.faces),
        "compression": 1 - vertices / normal_map.foreground,
        "mae": mean_angle(surface, normal_map) if isinstance(normal_map, NormalMap) else None,
        "coverage": None
        if coverage is None
        else {
            "covered": 1 - coverage.uncovered_share,
            "spilled": coverage.spilled_share,
            "lost_components": coverage.lost_components,
        },
        "uncertainty": _picked(UncertaintySummary.of(written), **UNCERTAINTY),
    }


def _picked(record: object | None, **attributes: str) -> dict[str, Any] | None:
    """Return attributes of a record by their names in JSON; None if there is no record."""
    return None if record is None else {name: getattr(record, attribute) for name, attribute in attributes.items()}
