"""The focal length that a photograph's EXIF data tell, as far as a camera needs it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from normalmesh.errors import NormalMeshError
from normalmesh.files.formats import file_format, mapped, unusable
from normalmesh.files.images import IMAGE_FORMATS, jpeg_exif, only_image, opened_tiff, png_exif, read_image_size

#: EXIF tags, with the names that tifffile gives them.
DIRECTORY = 0x8769
FOCAL_LENGTH, EQUIVALENT = (0x920A, "FocalLength"), (0xA405, "FocalLengthIn35mmFilm")
RESOLUTION, RESOLUTION_UNIT = (0xA20E, "FocalPlaneXResolution"), (0xA210, "FocalPlaneResolutionUnit")
COLUMNS, ROWS = (0xA002, "PixelXDimension"), (0xA003, "PixelYDimension")
#: Millimetres in the units of resolutions: inch, centimetre, millimetre, micrometre.
UNIT_LENGTHS = {2: 25.4, 3: 10.0, 4: 1.0, 5: 0.001}
#: Diagonal of a frame of 35 mm film in mm, to which equivalent focal lengths refer.
FILM_DIAGONAL = math.hypot(36, 24)
#: Largest ratio of the focal lengths by the sensor and by the equivalent. Programs that make photographs smaller often
#: keep the sensor's resolution in pixels of the original; in-camera formats change the equivalent by less.
CONTRADICTION = 1.3
#: Largest difference of the aspect ratios of a photograph and of a map of the same view, relative.
SAME_ASPECT = 0.01


@dataclass(frozen=True)
class ExifLens:
    """What EXIF data tell about the lens.

    Attributes
    ----------
    focal_length
        In mm, if known.
    equivalent
        Focal length in mm of the same field of view on film of 35 mm, if known.
    pixels_per_mm
        Resolution on the sensor of an image of ``shape``, if known.
    shape
        Rows and columns of the photograph as it was taken.
    """

    focal_length: float | None
    equivalent: float | None
    pixels_per_mm: float | None
    shape: tuple[int, int]

    @property
    def is_enough(self) -> bool:
        """Whether the focal length in pixels follows."""
        return self.equivalent is not None or (self.focal_length is not None and self.pixels_per_mm is not None)

    def focal_px(self, shape: tuple[int, int]) -> float:
        """Return the focal length in pixels for the same view with other rows and columns.

        The resolution of the sensor is preferred: equivalents are rounded to a millimetre, which is up to 2 %. If both
        contradict each other, the equivalent counts.
        """
        (short, long), (stored_short, stored_long) = sorted(shape), sorted(self.shape)
        if abs(long * stored_short - short * stored_long) > SAME_ASPECT * long * stored_short:
            raise NormalMeshError(
                f"the photograph had {self.shape[1]} × {self.shape[0]} pixels, but the map has {shape[1]} × {shape[0]}:"
                " it is cropped, and the EXIF focal length does not tell by how much; give the focal length in pixels"
            )
        if not self.is_enough:
            known = "nothing" if self.focal_length is None else f"only {self.focal_length:g} mm, not the sensor's size"
            raise NormalMeshError(f"EXIF data tell {known}; give the focal length in pixels, or the field of view")
        by_sensor = (self.focal_length or 0) * (self.pixels_per_mm or 0) * long / stored_long
        if self.equivalent is None:
            return by_sensor
        by_equivalent = self.equivalent * math.hypot(*shape) / FILM_DIAGONAL
        agree = by_equivalent / CONTRADICTION < by_sensor < by_equivalent * CONTRADICTION
        return by_sensor if agree else by_equivalent

    def __str__(self) -> str:
        lens = "" if self.focal_length is None else f"{self.focal_length:g} mm"
        same = "" if self.equivalent is None else f"{self.equivalent:g} mm on 35 mm film"
        return ", ".join(filter(None, (lens, same)))


def read_exif_lens(path: Path) -> ExifLens | None:
    """Return what the EXIF data of a PNG, JPEG or TIFF tell about the lens; None if that is not its focal length."""
    name = file_format(path)
    if name not in IMAGE_FORMATS:
        return None
    shape = read_image_size(path, name)
    try:
        tags = _tags(path, name)
    except Exception:  # whatever damaged data make a decoder raise
        return None
    focal_length, equivalent = _positive(tags, FOCAL_LENGTH), _positive(tags, EQUIVALENT)
    if focal_length is None and equivalent is None:
        return None
    resolution, unit = _positive(tags, RESOLUTION), UNIT_LENGTHS.get(int(_positive(tags, RESOLUTION_UNIT) or 2))
    rows, columns = _positive(tags, ROWS), _positive(tags, COLUMNS)
    if rows is not None and columns is not None:
        shape = int(rows), int(columns)
    pixels_per_mm = None if resolution is None or unit is None else resolution / unit
    return ExifLens(focal_length, equivalent, pixels_per_mm, shape)


def exif_focal_px(path: Path, shape: tuple[int, int] | None) -> tuple[float, tuple[int, int]]:
    """Return the focal length in pixels that a photograph tells for an image, by default itself, and that shape."""
    name = file_format(path)
    if name not in IMAGE_FORMATS:
        raise unusable(path, f"EXIF data are read from {', '.join(IMAGE_FORMATS)}; give the focal length in pixels")
    lens = read_exif_lens(path)
    if lens is None:
        raise unusable(path, "there is no focal length in its EXIF data; give it in pixels, or the field of view")
    shape = read_image_size(path, name) if shape is None else shape
    try:
        return lens.focal_px(shape), shape
    except NormalMeshError as error:
        raise unusable(path, str(error)) from error


def _tags(path: Path, name: str) -> Mapping[Any, Any]:
    """Return the EXIF tags of a file by number, or of a TIFF by name."""
    if name == "TIFF":
        with opened_tiff(path) as file:
            tag = only_image(path, file).keyframe.tags.get(DIRECTORY)
            return tag.value if tag is not None and isinstance(tag.value, Mapping) else {}
    from PIL.Image import Exif

    with mapped(path) as contents:
        data = bytes(png_exif(contents) if name == "PNG" else jpeg_exif(contents))
    exif = Exif()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of damaged data
        exif.load(data)
        return exif.get_ifd(DIRECTORY)


def _positive(tags: Mapping[Any, Any], keys: tuple[int, str]) -> float | None:
    """Return a positive number of EXIF data; None if it is missing, or zero, which means unknown."""
    value = next((tags[key] for key in keys if key in tags), None)
    try:
        # Rational numbers of TIFF are pairs.
        number = float(value[0]) / float(value[1]) if isinstance(value, tuple) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, ZeroDivisionError, IndexError):
        return None
    return number if math.isfinite(number) and number > 0 else None
