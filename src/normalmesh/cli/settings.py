"""Settings: the options of ``normalmesh reconstruct`` that apply to all inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

import normalmesh as nm
from normalmesh.cli.map_reading import CameraChoice, MapReading
from normalmesh.cli.option_tables import option_name, reject_several
from normalmesh.cli.tile_settings import Tiling
from normalmesh.decimation.mask_counts import MaskCounts
from normalmesh.decimation.stopping import DEFAULT_COMPRESSION, StoppingRule
from normalmesh.errors import NormalMeshError
from normalmesh.maps.maps_on_disk import MapOnDisk
from normalmesh.mesh.lengths import MILLIMETRES, Length
from normalmesh.mesh.relief import check_parallel
from normalmesh.mesh.surface import Surface
from normalmesh.normals.camera import Camera
from normalmesh.normals.normal_map import NormalMap
from normalmesh.output.glb import Scale
from normalmesh.reconstruction.estimates import Estimate
from normalmesh.reconstruction.tiled_estimate import TiledEstimate
from normalmesh.reconstruction.tiling import checked_tile
from normalmesh.runtime.monitor import OnProgress

#: Options that choose the resolution, of which at most one may be given.
RESOLUTION_OPTIONS = ("vertices", "threshold", "compression", "max_angle", "max_error", "lod")
#: Unit of length of a surface whose scale is not known.
UNKNOWN_UNITS = "units"
#: Options that need the whole map in memory.
NOT_IN_TILES = ("preview", "report")
NEEDS_PERSPECTIVE = "--distance requires a perspective camera: add --camera, --focal-px or --fov"


@dataclass(frozen=True)
class Settings(MapReading):
    """The options as given. Fields are named after the options; None means not given. Each input has its own mask."""

    pixel_size: float | None = None
    distance: float | None = None
    compression: float | None = None
    vertices: int | None = None
    threshold: float | None = None
    max_angle: float | None = None
    max_error: float | None = None
    lod: tuple[float | int, ...] | None = None
    continuous: bool = False
    min_certainty: float | None = None
    threads: int | None = None
    memory_limit: float | None = None
    preview: bool = False
    report: bool = False
    flatten: str | None = None
    solid: Length | None = None
    width: Length | None = None
    scale: Scale | None = None
    no_centre: bool = False
    strength: float | None = None
    tiling: Tiling | None = None
    tile: str | None = None
    gaps: str | None = None

    def __post_init__(self) -> None:
        reject_several(self.rule)
        for conflict in self._conflicts():
            raise click.UsageError(conflict)

    def _conflicts(self) -> Iterator[str]:
        """Yield what options contradict each other, before anything is read."""
        if self.width is not None and self.solid is None:
            yield "--width is an option of --solid: add that"
        if self.flatten is not None and self.tile is not None:
            yield "--flatten would part the copies that --tile joins, which have no mean slope: give only one of them"
        yield from self._camera_conflicts(self.camera_choice.is_perspective)
        # The unit of a map that stays on disk may be in its file.
        width_is_length = self.width is not None and self.width.unit in MILLIMETRES
        is_known = self.tiling is not None or self.units == "mm" or width_is_length
        if self.solid is not None and self.solid.unit in MILLIMETRES and not is_known:
            yield (
                f"--solid {self.solid} needs the size of the surface: add --pixel-size MM (or --distance MM of a "
                "perspective camera), or the width of the print, such as --width 80mm"
            )
        for name in NOT_IN_TILES if self.tiling is not None else ():
            if getattr(self, name) not in (None, False):
                yield f"{option_name(name)} needs the whole map in memory: leave it out, or --tiles"

    def _camera_conflicts(self, is_perspective: bool) -> Iterator[str]:
        """Yield what options contradict a kind of camera."""
        if is_perspective and self.flatten is not None:
            yield "--flatten requires an orthographic camera: leave it out, or the options of the camera"
        if is_perspective and self.solid is not None and self.distance is None and self.width is None:
            yield (
                "the size of a surface behind a perspective camera is unknown: add --distance MM, or the width of the "
                "print, such as --width 80mm"
            )

    def check_camera(self, camera: Camera) -> None:
        """Raise an error for options that contradict the camera, which the file of a map may hold."""
        if self.strength is not None:
            check_parallel(camera)
        for conflict in self._camera_conflicts(camera.gauge == "scale"):
            raise NormalMeshError(conflict)
        if self.distance is not None and camera.gauge == "offset":
            raise NormalMeshError(NEEDS_PERSPECTIVE)

    def _chosen(self, *names: str) -> dict[str, Any]:
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    @property
    def rule(self) -> dict[str, Any]:
        """The stopping rule: its name and value."""
        return self._chosen(*RESOLUTION_OPTIONS) or {"compression": DEFAULT_COMPRESSION}

    @property
    def units(self) -> str:
        """The unit of length of the surfaces: mm if the scale is given, px of an orthographic map, else unknown."""
        if self.pixel_size is not None or self.distance is not None:
            return "mm"
        return UNKNOWN_UNITS if self.camera_choice.is_perspective else "px"

    def units_of(self, normal_map: NormalMap | MapOnDisk) -> str:
        """Return the unit of length of the surface of a map, whose file may hold its camera or its unit."""
        if isinstance(normal_map, MapOnDisk) and normal_map.georeference:
            return normal_map.units
        return self.units if normal_map.camera.pixel_side == 1 or self.units != "px" else UNKNOWN_UNITS

    @property
    def given(self) -> dict[str, Any]:
        """The options given, and the defaults that matter, for reports."""
        named = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in RESOLUTION_OPTIONS}
        there = {name: value for name, value in named.items() if value not in (None, False)}
        return {**self.rule, **there, "units": self.units}

    @property
    def camera_choice(self) -> CameraChoice:
        """The camera that the options choose."""
        return self.view(self.pixel_size)

    @property
    def is_within(self) -> bool:
        """Whether a tolerance is given, which takes a reconstruction that tries several numbers of vertices."""
        return self.max_angle is not None or self.max_error is not None

    @property
    def closed_gaps(self) -> str:
        """What becomes of the gaps at jumps: beside a solid, a surface has its walls."""
        gaps = self.gaps or "auto"
        return "walls" if gaps == "auto" and self.solid is not None else gaps

    def estimate(self, counts: MaskCounts) -> Estimate:
        """Return what a reconstruction of a mask takes."""
        cuts = not self.continuous
        if self.lod is not None:
            return Estimate.levels(counts, self.levels(counts.foreground), cuts=cuts)
        if self.is_within:
            return Estimate.within(counts, self.max_error is not None, cuts=cuts)
        return Estimate.of(counts, StoppingRule(**self.rule), cuts=cuts)

    def tiled_estimate(self, shape: tuple[int, int], foreground: int) -> TiledEstimate:
        """Return what a reconstruction in tiles takes."""
        assert self.tiling is not None
        side = checked_tile(self.tiling.side, "--tile-size")
        return TiledEstimate(shape, foreground, self._expected_vertices(foreground), side)

    def _expected_vertices(self, foreground: int) -> int:
        """Return the vertices to expect of the finest surface; those of a tolerance are the content's."""
        if self.lod is not None:
            return self.levels(foreground)[0]
        return StoppingRule(**({} if self.is_within else self.rule)).expected_vertices(foreground)

    def levels(self, foreground: int) -> list[int]:
        """Return the vertices of the levels of detail for a number of foreground pixels, finest first."""
        shares = self.lod or ()
        counts = [level if isinstance(level, int) else max(round(level * foreground), 3) for level in shares]
        return sorted(counts, reverse=True)

    def surfaces(
        self, normal_map: NormalMap | MapOnDisk, output: Path, prior: Any, jumps: Any, progress: OnProgress
    ) -> list[Surface]:
        """Reconstruct the surface of a normal map, or one surface per level of detail, for an output."""
        options: dict[str, Any] = {
            "discontinuities": False if self.continuous else "auto",
            "gaps": self.closed_gaps,
            "threads": self.threads,
            "memory_limit": self.memory_limit,
            "progress": progress,
            "prior": prior,
            "jumps": jumps,
            "units": self.units_of(normal_map),
            **self._chosen("distance", "min_certainty"),
        }
        options |= {"tileable": self.tile or False, "tiles": self.tiling and self.tiling.at(output)}
        if self.lod is not None:
            return nm.reconstruct_levels(normal_map, self.levels(normal_map.foreground), **options)
        if self.is_within:
            return [nm.reconstruct_within(normal_map, **self.rule, **options)]
        return [nm.reconstruct(normal_map, **self.rule, **options)]
