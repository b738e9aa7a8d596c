"""How a command reads normal maps: the options of the camera, and the other `reading_options`, by their parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from normalmesh.cli.option_tables import reject_several
from normalmesh.errors import NormalMeshError

if TYPE_CHECKING:
    from normalmesh.maps.alpha import Alpha
    from normalmesh.normals.camera import Camera
    from normalmesh.normals.normal_map import NormalMap

#: Cameras that can be given by name instead of a file: the last one is that of the EXIF data of the map itself.
ORTHOGRAPHIC, EXIF = "orthographic", "exif"
NAMED_CAMERAS = (ORTHOGRAPHIC, "perspective", EXIF)


@dataclass(frozen=True)
class CameraChoice:
    """The options of the camera as given, of which at most one may be; ``pixel_size`` is for orthographic ones."""

    camera: str | None = None
    focal_px: float | None = None
    fov: float | None = None
    pixel_size: float | None = None

    def __post_init__(self) -> None:
        reject_several(**self._choices)

    @property
    def _choices(self) -> dict[str, object]:
        return {each.name: getattr(self, each.name) for each in fields(CameraChoice)}

    @property
    def has_camera(self) -> bool:
        """Whether any option of the camera is given."""
        return any(value is not None for value in self._choices.values())

    @property
    def is_perspective(self) -> bool:
        """Whether the options ask for a perspective camera."""
        return self.has_camera and self.pixel_size is None and not self._is_named(ORTHOGRAPHIC)

    def camera_argument(self, source: Path) -> Camera | Callable[[tuple[int, int]], Camera] | None:
        """Return the argument ``camera`` of `read_normal_map` for the file of a map; None if no option is given.

        A camera that does not depend on the size of the image is made at once, so that its errors come first.
        """
        if not self.has_camera:
            return None
        depends = self.focal_px is not None or self.fov is not None or (self.is_perspective and not self._is_matrix())
        return (lambda shape: self.camera_for(shape, source)) if depends else self.camera_for((1, 1), source)

    def camera_for(self, shape: tuple[int, int], source: Path | None = None) -> Camera:
        """Return the camera for an image of rows and columns; ``source`` is the file of a map."""
        from normalmesh.evaluation.synthetic.relief_case import chosen_camera
        from normalmesh.normals.orthographic import Orthographic
        from normalmesh.normals.perspective import Perspective

        if self.pixel_size is not None:
            return Orthographic(self.pixel_size)
        if self.focal_px is not None:
            return Perspective.centred(self.focal_px, shape)
        if self.fov is not None:
            return Perspective.from_fov(self.fov, shape)
        if self._is_named(EXIF):
            if source is None:
                raise NormalMeshError("--camera exif needs a map with EXIF data: give a photograph, --camera photo.jpg")
            return Perspective.from_exif(source, shape)
        if self.camera is None or self._is_named(*NAMED_CAMERAS):
            return chosen_camera(self.camera or ORTHOGRAPHIC, shape)
        return Perspective.from_file(self.camera) if self._is_matrix() else Perspective.from_exif(self.camera, shape)

    def questioned_camera(self, shape: tuple[int, int], source: Path | None = None) -> Camera:
        """Return the camera, with a warning if its principal point does not seem to belong to the image."""
        from normalmesh.maps.cameras import question_camera

        camera = self.camera_for(shape, source)
        question_camera(camera, shape)
        return camera

    def _is_named(self, *names: str) -> bool:
        """Check whether the camera is given by one of these names, and not by a file of that name."""
        return self.camera in names and not Path(str(self.camera)).exists()

    def _is_matrix(self) -> bool:
        """Check whether the camera is a file, and not a photograph."""
        from normalmesh.files.formats import file_format
        from normalmesh.files.images import IMAGE_FORMATS

        return not self._is_named(*NAMED_CAMERAS) and file_format(Path(str(self.camera))) not in IMAGE_FORMATS


def camera_as_dict(camera: Camera) -> dict[str, Any]:
    """Return the kind and the parameters of a camera, for JSON."""
    return {"kind": type(camera).__name__.lower(), **vars(camera)}


@dataclass(frozen=True)
class MapReading(CameraChoice):
    """All options with which a command reads a map, as given."""

    convention: str = "opengl"
    alpha: Alpha = "auto"
    mask: str | Path | None = None

    def or_stored(self, heights: Path) -> MapReading:
        """Return the options with the pixel size that a PNG of heights holds, if it does and no camera is given."""
        from normalmesh.files.height_png import read_height_range

        found = None if self.has_camera or not heights.is_file() else read_height_range(heights)
        return self if found is None else replace(self, pixel_size=found.pixel_size)

    def normal_map(self, file: Path) -> NormalMap:
        """Read the normal map of a file."""
        from normalmesh.maps.normal_maps import read_normal_map

        return read_normal_map(file, self.mask, self.camera_argument(file), self.convention, alpha=self.alpha)
