"""The summary of one reconstruction, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from normalmesh.cli.printing import PrintedTable
from normalmesh.errors import count_text, path_text

if TYPE_CHECKING:
    from normalmesh.files.maps_on_disk import MapOnDisk
    from normalmesh.mesh.surface import Surface
    from normalmesh.normals.normal_map import NormalMap

#: Figures of each surface.
LEVEL = ("vertices", "requested", "faces", "compression", "mae", "coverage")

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
        Vertices, the number of them that was asked for, faces, compression, mean angle to the normals and coverage of
        each surface, finest first. The angle is None for a map that stays on disk.
    jumps
        Number of lines along which the finest surface jumps, length of its cuts in pixels, and certainty of the least
        certain line; None if jumps were not searched for.
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
    tolerance: dict[str, Any] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    error: str | None = None

    def add_normal_map(self, normal_map: NormalMap | MapOnDisk) -> None:
        """Record the size of the normal map."""
        rows, columns = normal_map.shape
        self.size, self.foreground = (columns, rows), normal_map.foreground

    def add_figures(self, surfaces: Sequence[Surface], normal_map: NormalMap | MapOnDisk) -> None:
        """Measure the surfaces, and record the figures."""
        self.levels = [_figures(surface, normal_map) for surface in surfaces]

    def add_surfaces(self, surfaces: Sequence[Surface]) -> None:
        """Record the jumps of the finest surface, and the seconds by stage."""
        found = surfaces[0].discontinuities
        if found is not None:
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

    def as_json(self) -> str:
        """Return one line of JSON, with the figures of the finest surface and those of all levels."""
        first = self.levels[0] if self.levels else dict.fromkeys(LEVEL)
        content = asdict(self)
        content["input"] = str(content.pop("source"))
        content["outputs"] = [str(path) for path in self.outputs]
        del content["jumps_text"]
        order = ("input", "outputs", "size", "foreground", *LEVEL, "levels", "jumps", "tolerance")
        content |= first
        content["seconds"] = {stage: round(seconds, 4) for stage, seconds in self.seconds.items()}
        return json.dumps({name: content[name] for name in (*order, "seconds", "warnings", "error")})

    def lines(self) -> list[str]:
        """Return the text for a single input."""
        counts = ", ".join(str(level["vertices"]) for level in self.levels)
        wanted = ", ".join(str(level["requested"]) for level in self.levels)
        asked = "" if wanted == counts or self.levels[0]["requested"] is None else f", {wanted} asked for"
        lines = [f"vertices     {counts} for {count_text(self.foreground or 0, 'pixel')}{asked}"]
        if any(level["mae"] is not None for level in self.levels):
            angles = ", ".join(map(_angle, self.levels))
            lines.append(f"angle        {angles} to the normals (mean)")
        if any(level["coverage"] is not None for level in self.levels):
            covered, spilled = (_shares(name, self.levels) for name in ("covered", "spilled"))
            lines.append(f"coverage     {covered} of the foreground, {spilled} outside it")
        if self.jumps_text is not None:
            hint = (
                "; --jumps FILE shows them, --continuous switches them off"
                if self.jumps and self.jumps["lines"]
                else ""
            )
            lines.append(f"jumps        {self.jumps_text}{hint}")
        return [*lines, *(f"wrote        {path_text(path)}" for path in self.outputs)]

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


def _figures(surface: Surface, normal_map: NormalMap | MapOnDisk) -> dict[str, Any]:
    from normalmesh.evaluation.metrics import mean_angle
    from normalmesh.normals.normal_map import NormalMap

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
    }
