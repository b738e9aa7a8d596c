"""How a command reads normal maps: the options of the camera, and the other `reading_options`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
        reject_several([name for name, value in vars(self).items() if value is not None])

    @property
    def is_given(self) -> bool:
        """Whether any option is given."""
        return any(value is not None for value in vars(self).values())

    @property
    def is_perspective(self) -> bool:
        """Whether the options ask for a perspective camera."""
        return self.is_given and self.pixel_size is None and not self._is_named(ORTHOGRAPHIC)

    def or_stored(self, heights: Path) -> CameraChoice:
        """Return the pixel size that a PNG of heights holds, if it does and no option is given; else the options."""
        from normalmesh.files.height_png import read_height_range

        found = None if self.is_given or not heights.is_file() else read_height_range(heights)
        return self if found is None or found.pixel_size is None else CameraChoice(pixel_size=found.pixel_size)

    def argument(self, source: Path) -> Camera | Callable[[tuple[int, int]], Camera] | None:
        """Return the argument ``camera`` of `read_normal_map` for the file of a map; None if no option is given.

        A camera that does not depend on the size of the image is made at once, so that its errors come first.
        """
        if not self.is_given:
            return None
        depends = self.focal_px is not None or self.fov is not None or (self.is_perspective and not self._is_matrix())
        return (lambda shape: self.of(shape, source)) if depends else self.of((1, 1), source)

    def of(self, shape: tuple[int, int], source: Path | None = None) -> Camera:
        """Return the camera for an image of rows and columns; ``source`` is the file of a map."""
        from normalmesh.evaluation.synthetic.image_geometry import chosen_camera
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

    def questioned(self, shape: tuple[int, int], source: Path | None = None) -> Camera:
        """Return the camera, with a warning if its principal point does not seem to belong to the image."""
        from normalmesh.maps.cameras import question_camera

        camera = self.of(shape, source)
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
class MapReading:
    """The options as given, by the names of their parameters."""

    convention: str = "opengl"
    alpha: Alpha = "auto"
    camera: str | None = None
    focal_px: float | None = None
    fov: float | None = None
    mask: str | Path | None = None

    def view(self, pixel_size: float | None = None) -> CameraChoice:
        """Return the camera that the options choose, one of which may be the size of a pixel."""
        return CameraChoice(self.camera, self.focal_px, self.fov, pixel_size)

    def normal_map(self, file: Path, view: CameraChoice) -> NormalMap:
        """Read the normal map of a file, with a camera that may also come from other options."""
        from normalmesh.maps.normal_maps import read_normal_map

        return read_normal_map(file, self.mask, view.argument(file), self.convention, alpha=self.alpha)
