"""Settings of ``normalmesh reconstruct`` that hold for all inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from normalmesh.mesh.surface import Surface
    from normalmesh.normals.camera import Camera
    from normalmesh.normals.normal_map import NormalMap
    from normalmesh.runtime.monitor import OnProgress

DEFAULT_COMPRESSION = 0.98
#: Options of which one may be given.
RULES = ("vertices", "threshold", "compression", "max_angle", "max_error", "lod")


@dataclass(frozen=True)
class Settings:
    """Options as they were given; fields have their names, and None is none."""

    convention: str
    camera: str | None
    focal_px: float | None
    pixel_size: float | None
    distance: float | None
    compression: float | None
    vertices: int | None
    threshold: float | None
    max_angle: float | None
    max_error: float | None
    lod: tuple[float | int, ...] | None
    continuous: bool
    threads: int | None
    memory_limit: float | None
    preview: bool
    report: bool

    def __post_init__(self) -> None:
        _refuse_several(self.rule)
        _refuse_several(self._chosen("camera", "focal_px", "pixel_size"))
        if self.distance is not None and self.camera is None and self.focal_px is None:
            raise click.UsageError("--distance is that of a perspective camera: give --camera or --focal-px, too")

    def _chosen(self, *names: str) -> dict[str, Any]:
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    @property
    def rule(self) -> dict[str, Any]:
        """The stopping rule, by its name."""
        return self._chosen(*RULES) or {"compression": DEFAULT_COMPRESSION}

    @property
    def units(self) -> str:
        return "px" if self.pixel_size is None and self.distance is None else "mm"

    @property
    def given(self) -> dict[str, Any]:
        """What was set, for people who read how a surface was made."""
        named = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in RULES}
        there = {name: value for name, value in named.items() if value not in (None, False)}
        return {**self.rule, **there, "units": self.units}

    def camera_of(self) -> Camera | str | Callable[[tuple[int, int]], Camera] | None:
        """What reading a normal map takes for a camera."""
        from normalmesh.normals.camera import Orthographic, Perspective

        if self.focal_px is not None:
            focal_length = self.focal_px
            return lambda shape: Perspective.centred(focal_length, shape)
        return self.camera if self.pixel_size is None else Orthographic(self.pixel_size)

    def aimed_at(self, foreground: int) -> tuple[int, bool]:
        """Vertices of the finest mesh on so many pixels, and whether that is a mere guess."""
        from normalmesh.decimation.stopping import StoppingRule

        if self.lod is not None:
            return self.levels(foreground)[0], False
        guessed = not self.rule.keys() & {"vertices", "compression"}
        rule = {"threshold": 1.0} if guessed else self.rule
        return StoppingRule(**rule).expected_vertices(foreground), guessed

    def levels(self, foreground: int) -> list[int]:
        """Vertices of the levels of detail on so many pixels, finest first."""
        shares = self.lod or ()
        counts = [level if isinstance(level, int) else max(round(level * foreground), 3) for level in shares]
        return sorted(counts, reverse=True)

    def surfaces(self, normal_map: NormalMap, prior: Any, progress: OnProgress) -> list[Surface]:
        """The surface of a normal map, or those of its levels."""
        import normalmesh as nm

        options: dict[str, Any] = {
            "discontinuities": not self.continuous,
            "threads": self.threads,
            "memory_limit": self.memory_limit,
            "progress": progress,
            "prior": prior,
            "units": self.units,
            **self._chosen("distance"),
        }
        if self.lod is not None:
            return nm.reconstruct_levels(normal_map, self.levels(normal_map.foreground), **options)
        if self.max_angle is not None or self.max_error is not None:
            return [nm.reconstruct_within(normal_map, **self.rule, **options)]
        return [nm.reconstruct(normal_map, **self.rule, **options)]


def _refuse_several(given: dict[str, Any]) -> None:
    if len(given) > 1:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise click.UsageError(f"give only one of {names}")
