"""Settings of ``normalmesh reconstruct`` that apply to all inputs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from normalmesh.cli.camera_options import CameraChoice, reject_several
from normalmesh.cli.print_options import reject_print_conflicts

if TYPE_CHECKING:
    from normalmesh.cli.tile_options import Tiling
    from normalmesh.decimation.mask_counts import MaskCounts
    from normalmesh.maps.alpha import Alpha
    from normalmesh.maps.maps_on_disk import MapOnDisk
    from normalmesh.mesh.lengths import Length
    from normalmesh.mesh.surface import Surface
    from normalmesh.normals.normal_map import NormalMap
    from normalmesh.output.glb_placement import Scale
    from normalmesh.pieces.tiled_estimate import TiledEstimate
    from normalmesh.reconstruction.estimates import Estimate
    from normalmesh.runtime.monitor import OnProgress

#: Options that choose the resolution, of which at most one may be given.
RESOLUTION_OPTIONS = ("vertices", "threshold", "compression", "max_angle", "max_error", "lod")
#: Unit of length of a surface whose scale is not known.
UNKNOWN_UNITS = "units"
#: Options that need the whole map in memory.
NOT_IN_TILES = ("max_angle", "max_error", "lod", "preview", "report", "tile")


@dataclass(frozen=True)
class Settings:
    """The options as given. Fields are named after the options; None means not given."""

    convention: str
    alpha: Alpha
    camera: str | None
    focal_px: float | None
    fov: float | None
    pixel_size: float | None
    distance: float | None
    compression: float | None
    vertices: int | None
    threshold: float | None
    max_angle: float | None
    max_error: float | None
    lod: tuple[float | int, ...] | None
    continuous: bool
    min_certainty: float | None
    threads: int | None
    memory_limit: float | None
    preview: bool
    report: bool
    flatten: str | None
    solid: Length | None
    width: Length | None
    scale: Scale | None = None
    no_centre: bool = False
    strength: float | None = None
    tiling: Tiling | None = None
    tile: str | None = None

    def __post_init__(self) -> None:
        reject_several(self.rule)
        reject_print_conflicts(self)
        for name in NOT_IN_TILES if self.tiling is not None else ():
            if getattr(self, name) not in (None, False):
                raise click.UsageError(
                    f"--{name.replace('_', '-')} needs the whole map in memory: leave it out, or --tiles"
                )

    def _chosen(self, *names: str) -> dict[str, Any]:
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    @property
    def rule(self) -> dict[str, Any]:
        """The stopping rule: its name and value."""
        from normalmesh.decimation.stopping import DEFAULT_COMPRESSION

        return self._chosen(*RESOLUTION_OPTIONS) or {"compression": DEFAULT_COMPRESSION}

    @property
    def units(self) -> str:
        """The unit of length of the surfaces: mm if the scale is given, px of an orthographic map, else unknown."""
        if self.pixel_size is not None or self.distance is not None:
            return "mm"
        return UNKNOWN_UNITS if self.view.is_perspective else "px"

    def units_of(self, normal_map: NormalMap | MapOnDisk) -> str:
        """Return the unit of length of the surface of a map, whose file may hold its camera or its unit."""
        from normalmesh.maps.maps_on_disk import MapOnDisk

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
    def view(self) -> CameraChoice:
        """The camera that the options choose."""
        return CameraChoice(self.camera, self.focal_px, self.fov, self.pixel_size)

    def estimate(self, counts: MaskCounts) -> Estimate:
        """Return what a reconstruction of a mask takes."""
        from normalmesh.decimation.stopping import StoppingRule
        from normalmesh.reconstruction.estimates import Estimate

        cuts = not self.continuous
        if self.lod is not None:
            return Estimate.levels(counts, self.levels(counts.foreground), cuts=cuts)
        if self.max_angle is not None or self.max_error is not None:
            return Estimate.within(counts, self.max_error is not None, cuts=cuts)
        return Estimate.of(counts, StoppingRule(**self.rule), cuts=cuts)

    def tiled_estimate(self, shape: tuple[int, int], foreground: int) -> TiledEstimate:
        """Return what a reconstruction in tiles takes."""
        from normalmesh.decimation.stopping import StoppingRule
        from normalmesh.pieces.tiled_estimate import TiledEstimate
        from normalmesh.reconstruction.tiling import checked_tile

        assert self.tiling is not None
        side = checked_tile(self.tiling.side, "--tile-size")
        return TiledEstimate(shape, foreground, StoppingRule(**self.rule).expected_vertices(foreground), side)

    def needs_text(self, normal_map: NormalMap | MapOnDisk) -> str:
        """Return what a reconstruction of a map takes, as text."""
        from normalmesh.cli.resource_estimate import needs_text
        from normalmesh.decimation.mask_counts import MaskCounts

        if self.tiling is None:
            return needs_text(self.estimate(MaskCounts.of(normal_map.mask_window(slice(None), slice(None)))))
        estimate = self.tiled_estimate(normal_map.shape, normal_map.foreground)
        return self.tiling.needs_text(estimate, self.memory_limit, self.threads)

    def levels(self, foreground: int) -> list[int]:
        """Return the vertices of the levels of detail for a number of foreground pixels, finest first."""
        shares = self.lod or ()
        counts = [level if isinstance(level, int) else max(round(level * foreground), 3) for level in shares]
        return sorted(counts, reverse=True)

    def surfaces(
        self, normal_map: NormalMap | MapOnDisk, output: Path, prior: Any, jumps: Any, progress: OnProgress
    ) -> list[Surface]:
        """Reconstruct the surface of a normal map, or one surface per level of detail, for an output."""
        import normalmesh as nm

        options: dict[str, Any] = {
            "discontinuities": False if self.continuous else "auto",
            "threads": self.threads,
            "memory_limit": self.memory_limit,
            "progress": progress,
            "prior": prior,
            "jumps": jumps,
            "units": self.units_of(normal_map),
            **self._chosen("distance", "min_certainty"),
        }
        if self.tiling is not None:
            return [nm.reconstruct_tiled(normal_map, **self.rule, **options, **self.tiling.arguments(output))]
        assert isinstance(normal_map, nm.NormalMap)
        options["tileable"] = self.tile or False
        if self.lod is not None:
            return nm.reconstruct_levels(normal_map, self.levels(normal_map.foreground), **options)
        if self.max_angle is not None or self.max_error is not None:
            return [nm.reconstruct_within(normal_map, **self.rule, **options)]
        return [nm.reconstruct(normal_map, **self.rule, **options)]
