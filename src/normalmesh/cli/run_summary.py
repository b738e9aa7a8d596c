"""The summary of one reconstruction, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from normalmesh.cli.print_options import print_figures, print_lines
from normalmesh.cli.printing import PrintedTable, field_text, json_text
from normalmesh.errors import count_text, path_text

if TYPE_CHECKING:
    from normalmesh.maps.maps_on_disk import MapOnDisk
    from normalmesh.mesh.solid import Solid
    from normalmesh.mesh.surface import Surface
    from normalmesh.normals.normal_map import NormalMap

#: Figures of each surface.
LEVEL = ("vertices", "requested", "faces", "compression", "mae", "coverage", "uncertainty")

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
        uncertainty of heights of each surface, finest first. Angle and uncertainty are None for maps that stay on disk.
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
    print_figures
        What was taken away from the heights, and the finest solid.
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
    print_figures: dict[str, Any] = field(default_factory=lambda: {"flattening": None, "solid": None})
    print_lines: list[str] = field(default_factory=list)
    strength: float = 1.0
    tolerance: dict[str, Any] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    error: str | None = None

    def add_normal_map(self, normal_map: NormalMap | MapOnDisk) -> None:
        """Record the size of the normal map."""
        rows, columns = normal_map.shape
        self.size, self.foreground = (columns, rows), normal_map.foreground

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

    def add_print(self, surface: Surface, solids: Sequence[Solid]) -> None:
        """Record what was taken away from the heights, and the finest solid."""
        self.print_figures, self.print_lines = print_figures(surface, solids), print_lines(surface, solids)

    def as_json(self) -> str:
        """Return one line of JSON, with the figures of the finest surface and those of all levels."""
        first = self.levels[0] if self.levels else dict.fromkeys(LEVEL)
        content = asdict(self)
        content["input"] = str(content.pop("source"))
        content["outputs"] = [str(path) for path in self.outputs]
        del content["jumps_text"]
        order = ["input", "outputs", "size", "foreground", *LEVEL, "levels", "jumps", "walls", "tolerance", "repeats"]
        order += ["strength", *self.print_figures]
        content |= {**first, **self.print_figures}
        content["seconds"] = {stage: round(seconds, 4) for stage, seconds in self.seconds.items()}
        return json_text({name: content[name] for name in (*order, "seconds", "warnings", "error")})

    def lines(self) -> list[str]:
        """Return the text for a single input."""
        counts = ", ".join(str(level["vertices"]) for level in self.levels)
        wanted = ", ".join(str(level["requested"]) for level in self.levels)
        asked = "" if wanted == counts or self.levels[0]["requested"] is None else f", {wanted} asked for"
        lines = [field_text("vertices", f"{counts} for {count_text(self.foreground or 0, 'pixel')}{asked}")]
        if any(level["mae"] is not None for level in self.levels):
            angles = ", ".join(map(_angle, self.levels))
            lines.append(field_text("angle", f"{angles} to the normals (mean)"))
        if any(level["coverage"] is not None for level in self.levels):
            covered, spilled = (_shares(name, self.levels) for name in ("covered", "spilled"))
            lines.append(field_text("coverage", f"{covered} of the foreground, {spilled} outside it"))
        if self.levels and all(level["uncertainty"] is not None for level in self.levels):
            lines.append(field_text("heights", _deviations(self.levels)))
        if self.jumps_text is not None:
            hint = (
                "; --jumps FILE shows them, --continuous switches them off"
                if self.jumps and self.jumps["lines"]
                else ""
            )
            lines.append(field_text("jumps", f"{self.jumps_text}{hint}"))
        if self.walls and self.walls["faces"]:
            faces = count_text(self.walls["faces"], "face")
            lines.append(field_text("walls", f"{faces} closing {self.walls['length']:.0f} px of jumps"))
        if self.repeats is not None:
            lines.append(field_text("repeats", self.repeats))
        if self.strength != 1:
            lines.append(
                field_text("strength", f"heights multiplied by {self.strength:g} in all files: no measurement")
            )
        return [*lines, *self.print_lines, *(field_text("wrote", path_text(path)) for path in self.outputs)]

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
    from normalmesh.integration.uncertainty import part_text

    found = [level["uncertainty"] for level in levels]
    medians, by_noise, by_mesh = (
        ", ".join(part_text(each[key], each["median"]) for each in found) for key in ("median", "noise", "mesh")
    )
    noise = f"± {by_noise} by noise of {found[0]['noise_degrees']:.2f}° on the normals"
    units = found[0]["units"]
    return f"± {medians} {units} (median standard deviation): {noise}, ± {by_mesh} by the mesh"


def _figures(surface: Surface, written: Surface, normal_map: NormalMap | MapOnDisk) -> dict[str, Any]:
    from normalmesh.evaluation.metrics import mean_angle
    from normalmesh.integration.uncertainty import UncertaintySummary
    from normalmesh.normals.normal_map import NormalMap

    vertices, coverage, uncertainty = len(surface.vertices), surface.coverage, UncertaintySummary.of(written)
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
        "uncertainty": None
        if uncertainty is None
        else {
            "median": uncertainty.median,
            "high": uncertainty.high,
            "noise": uncertainty.by_noise,
            "mesh": uncertainty.by_mesh,
            "noise_degrees": uncertainty.noise,
            "units": uncertainty.units,
        },
    }
