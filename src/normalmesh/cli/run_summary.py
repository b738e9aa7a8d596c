"""The summary of one reconstruction, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from normalmesh.cli.printing import PrintedTable, field_text, json_text
from normalmesh.errors import count_text, path_text
from normalmesh.evaluation.metrics import mean_angle
from normalmesh.integration.uncertainty import UncertaintySummary, part_text
from normalmesh.maps.maps_on_disk import MapOnDisk
from normalmesh.mesh.solid import Solid
from normalmesh.mesh.surface import Surface
from normalmesh.normals.normal_map import NormalMap

#: Figures of each surface.
LEVEL = ("vertices", "requested", "faces", "compression", "mae", "coverage", "uncertainty")
#: What JSON holds, in this order.
CONTENT = (
    *("input", "outputs", "size", "foreground", *LEVEL, "levels", "jumps", "walls", "tolerance", "repeats"),
    *("strength", "flattening", "solid", "seconds", "warnings", "error"),
)
#: Figures in JSON, and the attributes that they are.
FLATTENING = {"shape": "shape", "tilt_degrees": "tilt", "direction_degrees": "direction", "bow": "bow"}
FLATTENING |= {name: name for name in ("width", "units", "coefficients", "centre")}
UNCERTAINTY = {"median": "median", "high": "high", "noise": "by_noise", "mesh": "by_mesh"}
UNCERTAINTY |= {"noise_degrees": "noise", "units": "units"}

#: Columns for the names of inputs in a table.
LONGEST_NAME = 32


@dataclass
class RunSummary:
    """The summary of one reconstruction, filled step by step.

    Attributes
    ----------
    size
        Columns and rows.
    levels
        Vertices, the number of them that was asked for, faces, compression, mean angle to the normals, coverage and
        uncertainty of heights of each surface, finest first. The angle is None for maps that stay on disk.
    strength
        Factor of the heights in all files; angles to the normals are of the surface before, uncertainties after.
    jumps
        Number of lines along which the finest surface jumps, length of its cuts in pixels, and certainty of the least
        certain line; None if jumps were not searched for.
    walls
        Number of faces of the walls of the finest surface, and length in pixels of the cuts that they close; None if
        jumps were not searched for.
    repeats
        Directions in which the surface repeats, and the mean slope removed, as text; None if it does not.
    flattening, solid
        Figures of what was taken away from the heights, and of the finest solid; None if there is none.
    shape_lines
        Both as text.
    tolerance
        The bounds on angle or error that were given, what was reached, and whether they are met; None without bounds.
    """

    source: Path
    outputs: list[Path] = field(default_factory=list)
    size: tuple[int, int] | None = None
    foreground: int | None = None
    levels: list[dict[str, Any]] = field(default_factory=list)
    jumps: dict[str, Any] | None = None
    jumps_text: str | None = None
    walls: dict[str, Any] | None = None
    repeats: str | None = None
    strength: float = 1.0
    flattening: dict[str, Any] | None = None
    solid: dict[str, Any] | None = None
    shape_lines: list[str] = field(default_factory=list)
    tolerance: dict[str, Any] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    error: str | None = None

    def add_normal_map(self, normal_map: NormalMap | MapOnDisk, strength: float | None) -> None:
        """Record the size of the normal map, and the factor of its relief."""
        rows, columns = normal_map.shape
        self.size, self.foreground, self.strength = (columns, rows), normal_map.foreground, strength or 1.0

    def add_figures(
        self, measured: Sequence[Surface], written: Sequence[Surface], normal_map: NormalMap | MapOnDisk
    ) -> None:
        """Record the figures of surfaces as they were measured, and the uncertainty of the heights that are written."""
        self.levels = [_figures(before, after, normal_map) for before, after in zip(measured, written, strict=True)]

    def add_surfaces(self, surfaces: Sequence[Surface]) -> None:
        """Record the jumps of the finest surface, and the seconds by stage."""
        self.repeats = None if surfaces[0].repeats is None else str(surfaces[0].repeats)
        found, walls = surfaces[0].discontinuities, len(surfaces[0].walls)
        if found is not None:
            self.walls = {"faces": walls, "length": found.length if walls else 0.0}
            certainty = min((line.certainty for line in found.lines), default=None)
            self.jumps = {"lines": len(found.lines), "length": found.length, "certainty": certainty}
            self.jumps_text = str(found)
        tolerance = getattr(surfaces[0].decimation, "tolerance", None)
        if tolerance is not None:
            self.tolerance = {**asdict(tolerance), "met": tolerance.met}
        # All levels come from one decimation, whose seconds the coarsest one holds in full.
        self.seconds |= getattr(surfaces[-1].decimation, "seconds", {})
        for surface in surfaces:
            for stage, seconds in surface.integration.seconds.items() if surface.integration else ():
                self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    def add_solid(self, surface: Surface, solids: Sequence[Solid]) -> None:
        """Record what was taken away from the heights, and the finest solid."""
        self.flattening = _picked(surface.flattening, **FLATTENING)
        if surface.flattening is not None:
            self.shape_lines.append(field_text("flattened", str(surface.flattening)))
        if solids:
            solid = solids[0]
            self.solid = {name: getattr(solid, name) for name in ("extent", "volume", "units", "scale")}
            self.solid |= {"pieces": len(solid.volumes), "vertices": len(solid.vertices), "faces": len(solid.faces)}
            self.shape_lines.append(field_text("solid", f"{solid}; watertight"))

    def as_json(self) -> str:
        """Return one line of JSON, with the figures of the finest surface and those of all levels."""
        first = self.levels[0] if self.levels else dict.fromkeys(LEVEL)
        content = {"input": str(self.source), **asdict(self), **first}
        content["outputs"] = [str(path) for path in self.outputs]
        content["seconds"] = {stage: round(seconds, 4) for stage, seconds in self.seconds.items()}
        return json_text({name: content[name] for name in CONTENT})

    def lines(self) -> list[str]:
        """Return the text for a single input."""
        counts = ", ".join(str(level["vertices"]) for level in self.levels)
        wanted = ", ".join(str(level["requested"]) for level in self.levels)
        asked = "" if wanted == counts or self.levels[0]["requested"] is None else f", {wanted} asked for"
        fields = {"vertices": f"{counts} for {count_text(self.foreground or 0, 'pixel')}{asked}"}
        if any(level["mae"] is not None for level in self.levels):
            fields["angle"] = f"{', '.join(map(_angle, self.levels))} to the normals (mean)"
        if any(level["coverage"] is not None for level in self.levels):
            covered, spilled = (_shares(name, self.levels) for name in ("covered", "spilled"))
            fields["coverage"] = f"{covered} of the foreground, {spilled} outside it"
        if self.levels and all(level["uncertainty"] is not None for level in self.levels):
            fields["heights"] = _deviations(self.levels)
        if self.jumps_text is not None:
            hint = "; --jumps FILE shows them, --continuous switches them off" * bool(
                self.jumps and self.jumps["lines"]
            )
            fields["jumps"] = f"{self.jumps_text}{hint}"
        if self.walls and self.walls["faces"]:
            faces = count_text(self.walls["faces"], "face")
            fields["walls"] = f"{faces} closing {self.walls['length']:.0f} px of jumps"
        if self.repeats is not None:
            fields["repeats"] = self.repeats
        if self.strength != 1:
            fields["strength"] = f"heights multiplied by {self.strength:g} in all files: no measurement"
        lines = [field_text(label, text) for label, text in fields.items()]
        return [*lines, *self.shape_lines, *(field_text("wrote", path_text(path)) for path in self.outputs)]

    def cells(self) -> list[str]:
        """Return the row of one of several inputs in the table of `table_of`."""
        return [
            path_text(self.source),
            ", ".join(str(level["vertices"]) for level in self.levels),
            ", ".join(map(_angle, self.levels)),
            f"{self.seconds['total']:.1f}",
            ", ".join(path_text(path.name) for path in self.outputs),
        ]


def table_of(sources: Sequence[Path]) -> PrintedTable:
    """Return the table of the summaries of several inputs."""
    longest = max(len(path_text(source)) for source in sources)
    return PrintedTable(["input", "vertices", "angle", "seconds", "wrote"], [min(longest, LONGEST_NAME), -8, -7, -7])


def _angle(level: dict[str, Any]) -> str:
    """Return the mean angle of a level as text; empty if it was not measured, as of maps that stay on disk."""
    return "" if level["mae"] is None else f"{level['mae']:.2f}°"


def _shares(name: str, levels: Sequence[dict[str, Any]]) -> str:
    """Return shares of the coverage of levels as text."""
    return ", ".join(f"{100 * level['coverage'][name]:.2f} %" for level in levels)


def _deviations(levels: Sequence[dict[str, Any]]) -> str:
    """Return the standard deviations of the heights of levels as text."""
    found = [level["uncertainty"] for level in levels]
    medians, by_noise, by_mesh = (
        ", ".join(part_text(each[key], each["median"]) for each in found) for key in ("median", "noise", "mesh")
    )
    noise = f"± {by_noise} by noise of {found[0]['noise_degrees']:.2f}° on the normals"
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
