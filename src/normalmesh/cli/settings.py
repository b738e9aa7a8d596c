"""Settings: the options of ``normalmesh reconstruct`` that apply to all inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

import normalmesh as nm
from normalmesh.cli.console import Console
from normalmesh.cli.interruption import cleanups
from normalmesh.cli.map_reading import MapReading
from normalmesh.cli.option_tables import TILE, option_name, reject_several
from normalmesh.decimation.mask_counts import MaskCounts
from normalmesh.decimation.stopping import DEFAULT_COMPRESSION, StoppingRule
from normalmesh.engine.work_folder import holds_results, remove_work
from normalmesh.errors import NormalMeshError, count_text, path_text
from normalmesh.maps.maps_on_disk import MapOnDisk
from normalmesh.mesh.lengths import MILLIMETRES, Length
from normalmesh.mesh.relief import check_parallel
from normalmesh.mesh.surface import Surface
from normalmesh.normals.camera import Camera
from normalmesh.normals.normal_map import NormalMap
from normalmesh.output.glb import Scale
from normalmesh.output.tileset import TILESET
from normalmesh.reconstruction.estimates import Estimate
from normalmesh.reconstruction.tiling import TiledEstimate, Tiling, checked_tile
from normalmesh.runtime.memory import bytes_text
from normalmesh.runtime.memory_budget import limited_memory
from normalmesh.runtime.monitor import OnProgress
from normalmesh.runtime.progress_bar import duration_text
from normalmesh.runtime.threads import MAX_THREADS

#: Options that choose the resolution, of which at most one may be given.
RESOLUTION_OPTIONS = ("vertices", "threshold", "compression", "max_angle", "max_error", "lod")
#: Unit of length of a surface whose scale is not known.
UNKNOWN_UNITS = "units"
#: Options that need the whole map in memory.
NOT_IN_TILES = ("preview", "report")
#: Options of --tiles.
TILING_OPTIONS = ("tile_size", "scheduler", "workers", "work", "keep_work")
#: Suffix of the work folder beside an output.
WORK = ".work"
NEEDS_PERSPECTIVE = "--distance requires a perspective camera: add --camera, --focal-px or --fov"


@dataclass(frozen=True)
class Settings(MapReading):
    """The options as given. Fields are named after the options; None means not given. Each input has its own mask."""

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
    tiles: bool = False
    tile_size: int | None = None
    scheduler: str | None = None
    workers: int | None = None
    work: str | None = None
    keep_work: bool = False
    tile: str | None = None
    gaps: str | None = None

    def __post_init__(self) -> None:
        reject_several(**self.rule)
        reject_several(scheduler=self.scheduler, workers=self.workers)
        super().__post_init__()
        for conflict in self._conflicts():
            raise click.UsageError(conflict)

    def _conflicts(self) -> Iterator[str]:
        """Yield what options contradict each other, before anything is read."""
        for name in () if self.tiles else TILING_OPTIONS:
            if getattr(self, name) not in (None, False):
                yield f"{option_name(name)} is an option of --tiles: add that"
        if self.width is not None and self.solid is None:
            yield "--width is an option of --solid: add that"
        if self.flatten is not None and self.tile is not None:
            yield "--flatten would part the copies that --tile joins, which have no mean slope: give only one of them"
        yield from self._camera_conflicts(self.is_perspective)
        # The unit of a map that stays on disk may be in its file.
        width_is_length = self.width is not None and self.width.unit in MILLIMETRES
        is_known = self.tiles or self.units == "mm" or width_is_length
        if self.solid is not None and self.solid.unit in MILLIMETRES and not is_known:
            yield (
                f"--solid {self.solid} needs the size of the surface: add --pixel-size MM (or --distance MM of a "
                "perspective camera), or the width of the print, such as --width 80mm"
            )
        for name in NOT_IN_TILES if self.tiles else ():
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
        return UNKNOWN_UNITS if self.is_perspective else "px"

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
    def is_within(self) -> bool:
        """Whether a tolerance is given, which takes a reconstruction that tries several numbers of vertices."""
        return self.max_angle is not None or self.max_error is not None

    def estimate(
        self, shape: tuple[int, int], foreground: int, counted: Callable[[], MaskCounts]
    ) -> Estimate | TiledEstimate:
        """Return what a reconstruction takes; in memory, its mask is ``counted`` in detail."""
        if self.tiles:
            side = checked_tile(self.tile_side, "--tile-size")
            # The content decides on the vertices that a tolerance takes.
            rule = {"vertices": self.levels(foreground)[0]} if self.lod else {} if self.is_within else self.rule
            return TiledEstimate(shape, foreground, StoppingRule(**rule).expected_vertices(foreground), side)
        counts, cuts = counted(), not self.continuous
        if self.lod is not None:
            return Estimate.levels(counts, self.levels(counts.foreground), cuts=cuts)
        if self.is_within:
            return Estimate.within(counts, self.max_error is not None, cuts=cuts)
        return Estimate.of(counts, StoppingRule(**self.rule), cuts=cuts)

    def needs_text(self, estimate: Estimate | TiledEstimate) -> str:
        """Return the memory, the disk and the time of an estimate as text."""
        if isinstance(estimate, Estimate):
            return needs_text(estimate)
        disk, leader, worker = map(bytes_text, (estimate.disk, estimate.leader_memory, estimate.worker_memory))
        if self.scheduler is not None:
            return (
                f"about {leader} of memory here and {worker} for each thread of a worker, {disk} on disk and, on one "
                f"core, {duration_text(estimate.seconds(1))}"
            )
        cores = self.threads or MAX_THREADS
        with limited_memory(self.memory_limit):
            count = min(cores, estimate.fitting_workers()) if self.workers is None else self.workers
        each = f"{leader} and {count} × {worker}" if count else f"{leader} and {worker}"
        return (
            f"about {bytes_text(estimate.memory(count))} of memory ({each}), {disk} on disk and, on "
            f"{count_text(cores, 'core')}, {duration_text(estimate.seconds(cores))}"
        )

    def levels(self, foreground: int) -> list[int]:
        """Return the vertices of the levels of detail for a number of foreground pixels, finest first."""
        shares = self.lod or ()
        counts = [level if isinstance(level, int) else max(round(level * foreground), 3) for level in shares]
        return sorted(counts, reverse=True)

    def surfaces(
        self, normal_map: NormalMap | MapOnDisk, output: Path, prior: Any, jumps: Any, progress: OnProgress
    ) -> list[Surface]:
        """Reconstruct the surface of a normal map, or one surface per level of detail, for an output."""
        gaps, tiling = self.gaps or "auto", None
        if self.tiles:  # the work folder is kept until the outputs are written
            tiling = Tiling(self.tile_side, self.scheduler, self.workers, self.work_folder(output), keep_work=True)
        options: dict[str, Any] = {
            "discontinuities": False if self.continuous else "auto",
            # Beside a solid, a surface has its walls.
            "gaps": "walls" if gaps == "auto" and self.solid is not None else gaps,
            "threads": self.threads,
            "memory_limit": self.memory_limit,
            "progress": progress,
            "prior": prior,
            "jumps": jumps,
            "units": self.units_of(normal_map),
            "tileable": self.tile or False,
            "tiles": tiling,
            **self._chosen("distance", "min_certainty"),
        }
        if self.lod is not None:
            return nm.reconstruct_levels(normal_map, self.levels(normal_map.foreground), **options)
        if self.is_within:
            return [nm.reconstruct_within(normal_map, **self.rule, **options)]
        return [nm.reconstruct(normal_map, **self.rule, **options)]

    @property
    def tile_side(self) -> int:
        """The side of a tile in pixels."""
        return TILE if self.tile_size is None else self.tile_size

    def work_folder(self, output: Path) -> Path:
        """Return the work folder for an output."""
        if self.work is not None:
            return Path(self.work)
        beside = output.parent if output.name == TILESET else output
        return beside.with_name(beside.name + WORK)

    @contextmanager
    def work_kept(self, output: Path, console: Console) -> Iterator[None]:
        """Remove the work folder of tiles at the end, unless it is to be kept; after an error or a signal, name it."""
        if not self.tiles:
            yield
            return
        folder = self.work_folder(output)
        is_new = not folder.exists()

        def tell() -> None:
            if holds_results(folder):
                console.alert(f"normalmesh: work is kept in {path_text(folder)}; the same command goes on from there")

        cleanups.append(tell)
        try:
            yield
        except Exception:
            tell()
            if is_new and not holds_results(folder):
                remove_work(folder)
            raise
        finally:
            cleanups.remove(tell)
        if not self.keep_work:
            remove_work(folder)


def needs_text(estimate: Estimate) -> str:
    """Return the bytes in addition to the normal map, and the seconds on one core, as text."""
    return f"about {bytes_text(estimate.memory)} of memory and, on one core, {duration_text(estimate.seconds)}"
