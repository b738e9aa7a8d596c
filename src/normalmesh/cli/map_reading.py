"""How a command reads normal maps: the options that `reading_options` adds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from normalmesh.cli.camera_options import CameraChoice

if TYPE_CHECKING:
    from normalmesh.maps.alpha import Alpha
    from normalmesh.normals.normal_map import NormalMap


@dataclass(frozen=True)
class MapReading:
    """The options as given, by the names of their parameters."""

    mask: str | None = None
    alpha: Alpha = "auto"
    camera: str | None = None
    focal_px: float | None = None
    fov: float | None = None
    convention: str = "opengl"

    def view(self, pixel_size: float | None = None) -> CameraChoice:
        """Return the camera that the options choose, one of which may be the size of a pixel."""
        return CameraChoice(self.camera, self.focal_px, self.fov, pixel_size)

    def normal_map(self, file: Path, view: CameraChoice) -> NormalMap:
        """Read the normal map of a file, with a camera that may also come from other options."""
        from normalmesh.maps.normal_maps import read_normal_map

        return read_normal_map(file, self.mask, view.argument(file), self.convention, alpha=self.alpha)
