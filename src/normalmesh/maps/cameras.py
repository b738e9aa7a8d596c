"""Reading cameras: matrices from text, NPY, JSON and YAML, as OpenCV and ROS write it; focal lengths from EXIF data.

A camera whose principal point does not seem to belong to its image is questioned.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from normalmesh.arguments import checked_path
from normalmesh.array_types import Float
from normalmesh.errors import NormalMeshError, shape_text, warn_caller
from normalmesh.files.arrays import CAMERA_MATRIX, PIXEL_SIZE, read_npy, read_npz_arrays
from normalmesh.files.formats import file_format, read_text, unusable
from normalmesh.files.images import IMAGE_FORMATS, read_exif, read_image_size
from normalmesh.files.tiff_windows import only_image, opened_tiff
from normalmesh.normals.camera import Camera, checked_camera
from normalmesh.normals.orthographic import Orthographic
from normalmesh.normals.perspective import Perspective

#: Common names of the matrix, in order of preference.
MATRIX_NAMES = ("camera_matrix", "K", "cameraMatrix", "M1", "intrinsics", "intrinsic_matrix")

#: Shapes of the arrays of an NPZ file that hold a camera.
CAMERA_SHAPES = {CAMERA_MATRIX: (3, 3), PIXEL_SIZE: ()}
#: A matrix of OpenCV's FileStorage, or the same without tags as in ROS: name, rows, columns, numbers.
YAML_MATRIX = re.compile(
    # Possessive quantifiers do not backtrack, which would take forever on long files of blanks.
    r"""^[ \t]*+([\w.-]++)[ \t]*+:\s*+(?:!!opencv-matrix\s++)?
        rows:\s*+(\d++)\s++cols:\s*+(\d++)\s++(?:dt:\s*+\S++\s++)?data:\s*+\[([^][]*+)\]""",
    re.MULTILINE | re.VERBOSE,
)

#: EXIF tags, with the names that tifffile gives them.
DIRECTORY = 0x8769
FOCAL_LENGTH, EQUIVALENT = (0x920A, "FocalLength"), (0xA405, "FocalLengthIn35mmFilm")
RESOLUTION, RESOLUTION_UNIT = (0xA20E, "FocalPlaneXResolution"), (0xA210, "FocalPlaneResolutionUnit")
COLUMNS, ROWS = (0xA002, "PixelXDimension"), (0xA003, "PixelYDimension")
#: Millimetres in the units of resolutions: inch, centimetre, millimetre, micrometre.
UNIT_LENGTHS = {2: 25.4, 3: 10.0, 4: 1.0, 5: 0.001}
#: Diagonal of a frame of 35 mm film in mm, to which equivalent focal lengths refer.
FILM_DIAGONAL = math.hypot(36, 24)
#: What stands for a camera: one, a file with its matrix, what makes one from rows and columns, or None for the default.
CameraLike: TypeAlias = "Camera | str | PathLike[str] | Callable[[tuple[int, int]], Camera] | None"
#: Largest ratio of the focal lengths by the sensor and by the equivalent. Programs that make photographs smaller often
#: keep the sensor's resolution in pixels of the original; in-camera formats change the equivalent by less.
CONTRADICTION = 1.3
#: Largest difference of the aspect ratios of a photograph and of a map of the same view, relative.
SAME_ASPECT = 0.01
#: A principal point is questioned if it is this much nearer to the middle of the turned image than to that of the
#: image, and so far from the latter, as a share of the longer side.
NEARER, OFF_CENTRE = 0.25, 0.05


def read_camera_matrix(path: str | PathLike[str]) -> Float:
    """Return the matrix (3, 3) of intrinsics in a file.

    Text holds nine numbers, separated by blanks, commas, semicolons or brackets, with ``#`` before comments. JSON
    holds a 3×3 list, or an object with one under ``K``, ``camera_matrix`` or ``intrinsics``, or fx, fy, cx, cy and
    optionally skew. YAML holds matrices of rows, cols and data.
    """
    path = Path(path)
    if (name := file_format(path)) in IMAGE_FORMATS:
        raise unusable(
            path, f"is a {name} image, not a camera matrix; Perspective.from_exif reads a focal length of it"
        )
    if name == "NPY":
        matrix = read_npy(path)
        if matrix.size != 9:
            raise unusable(path, f"the camera matrix must be 3×3, not {shape_text(matrix.shape)}")
        return _checked(path, matrix)
    text = read_text(path, "a camera matrix as text, NPY, JSON or YAML")
    start = text.lstrip()[:5]
    if start.startswith("<?xml"):
        raise unusable(path, "XML is not read; save the camera matrix as text, JSON or YAML")
    if start.startswith("%YAML") or YAML_MATRIX.search(text):
        return _from_yaml(path, text)
    if start.startswith("{") or path.suffix.lower() == ".json":
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:  # numbers of JSON may exceed those of Python
            raise unusable(path, f"is not valid JSON: {error}") from error
        return _checked(path, _json_matrix(path, content))
    return _checked(path, _numbers(path, text))


def _checked(path: Path, matrix: object) -> Float:
    """Return nine finite numbers as a 3×3 matrix, or raise :class:`NormalMeshError`."""
    try:
        array = np.array(matrix, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise unusable(path, "the camera matrix must be 3×3 numbers") from None
    if array.shape not in ((3, 3), (9,)):
        raise unusable(path, f"the camera matrix must be 3×3, not {shape_text(array.shape)}")
    if not np.all(np.isfinite(array)):
        raise unusable(path, "the camera matrix holds NaN or infinite numbers")
    return array.reshape(3, 3)


def _numbers(path: Path, text: str) -> list[float]:
    """Return the nine numbers of a text, row by row."""
    words = re.split(r"[\s,;\[\]]+", re.sub(r"#.*", "", text))
    numbers = []
    for word in filter(None, words):
        try:
            numbers.append(float(word))
        except ValueError:
            raise unusable(path, f"{word[:30]!r} is not a number of a camera matrix") from None
    if len(numbers) != 9:
        raise unusable(path, f"a camera matrix has 9 numbers, 3 in each row; found {len(numbers)}")
    return numbers


def _json_matrix(path: Path, content: object) -> object:
    """Return the matrix in a JSON value: a list, one of the known keys, or focal lengths and principal point."""
    if not isinstance(content, dict):
        return content
    for name in MATRIX_NAMES:
        if name in content:
            return _json_matrix(path, content[name])
    if missing := [name for name in ("fx", "fy", "cx", "cy") if name not in content]:
        raise unusable(
            path,
            f"expected one of {', '.join(MATRIX_NAMES)}, or fx, fy, cx and cy ({', '.join(missing)} missing); "
            f"found {', '.join(content) or 'nothing'}",
        )
    return [[content["fx"], content.get("skew", 0), content["cx"]], [0, content["fy"], content["cy"]], [0, 0, 1]]


def _from_yaml(path: Path, text: str) -> Float:
    matrices = {name: numbers for name, rows, columns, numbers in YAML_MATRIX.findall(text) if rows == columns == "3"}
    if not matrices:
        raise unusable(path, "there is no 3×3 matrix in this YAML; expected camera_matrix with rows, cols and data")
    name = next((name for name in MATRIX_NAMES if name in matrices), None)
    if name is None and len(matrices) > 1:
        raise unusable(
            path, f"several matrices are 3×3 ({', '.join(matrices)}); rename the camera's to {MATRIX_NAMES[0]}"
        )
    return _checked(path, _numbers(path, matrices[name or next(iter(matrices))]))


@dataclass(frozen=True)
class ExifLens:
    """What EXIF data tell about the lens; None is unknown."""

    focal_length: float | None  # in mm
    equivalent: float | None  # in mm, for the same field of view on film of 35 mm
    pixels_per_mm: float | None  # resolution on the sensor of an image of ``shape``
    shape: tuple[int, int]  # rows and columns of the photograph as it was taken

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
        if self.equivalent is None and (self.focal_length is None or self.pixels_per_mm is None):
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of damaged data
        return read_exif(path, name).get_ifd(DIRECTORY)


def _positive(tags: Mapping[Any, Any], keys: tuple[int, str]) -> float | None:
    """Return a positive number of EXIF data; None if it is missing, or zero, which means unknown."""
    value = next((tags[key] for key in keys if key in tags), None)
    try:
        # Rational numbers of TIFF are pairs.
        number = float(value[0]) / float(value[1]) if isinstance(value, tuple) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, ZeroDivisionError, IndexError):
        return None
    return number if math.isfinite(number) and number > 0 else None


def camera_from(camera: Camera | str | PathLike[str] | None) -> Camera:
    """Return the camera given, the one of a matrix file, or by default :class:`Orthographic`."""
    if camera is None:
        return Orthographic()
    if isinstance(camera, str | PathLike):
        return Perspective.from_file(checked_path(camera, "camera"))
    return checked_camera(camera, "Orthographic(...), Perspective(...) or a file")


def held_camera(path: Path) -> Camera | None:
    """Return the camera that an NPZ file holds besides its normals, or None."""
    if file_format(path) != "NPZ":
        return None
    arrays = read_npz_arrays(path, CAMERA_SHAPES)
    held = {name: array for name, array in arrays.items() if array.shape == CAMERA_SHAPES[name]}
    try:
        if CAMERA_MATRIX in held:
            return Perspective.from_matrix(held[CAMERA_MATRIX])
        return Orthographic(held[PIXEL_SIZE].item()) if PIXEL_SIZE in held else None
    except NormalMeshError as error:
        raise unusable(path, str(error)) from error


def principal_point_question(camera: Camera, shape: tuple[int, int]) -> str | None:
    """Return a question about the principal point of a camera for an image of rows and columns; None if it is fine."""
    matrix = camera.matrix("half")
    if matrix is None:
        return None
    (rows, columns), (cx, cy) = shape, matrix[:2, 2].tolist()
    off_centre = math.hypot(cx - columns / 2, cy - rows / 2)
    if off_centre > OFF_CENTRE * max(shape) and math.hypot(cx - rows / 2, cy - columns / 2) < NEARER * off_centre:
        return (
            f"the principal point ({cx:g}, {cy:g}) is the middle of {rows} × {columns} pixels, but the image has "
            f"{columns} × {rows}: are cx and cy swapped? cx counts columns, to the right, and cy rows, down"
        )
    if not (0 <= cx <= columns and 0 <= cy <= rows):
        return (
            f"the principal point ({cx:g}, {cy:g}) lies outside the image of {columns} × {rows} pixels. That is right "
            "if the image is a crop of a larger one; else the camera matrix is that of another image or size: scale it"
        )
    return None


def question_camera(camera: Camera, shape: tuple[int, int]) -> None:
    """Warn of a principal point that does not seem to belong to an image."""
    if question := principal_point_question(camera, shape):
        warn_caller(question)
