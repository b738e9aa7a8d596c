"""Reading camera matrices from text, NPY, JSON, and YAML as OpenCV and ROS write it."""

from __future__ import annotations

import json
import re
from os import PathLike
from pathlib import Path

import numpy as np

from normalmesh.array_types import Float
from normalmesh.errors import shape_text
from normalmesh.files.arrays import read_npy
from normalmesh.files.formats import file_format, read_text, unusable
from normalmesh.files.images import IMAGE_FORMATS

#: Common names of the matrix, in order of preference.
MATRIX_NAMES = ("camera_matrix", "K", "cameraMatrix", "M1", "intrinsics", "intrinsic_matrix")

#: A matrix of OpenCV's FileStorage, or the same without tags as in ROS: name, rows, columns, numbers.
YAML_MATRIX = re.compile(
    # Possessive quantifiers do not backtrack, which would take forever on long files of blanks.
    r"""^[ \t]*+([\w.-]++)[ \t]*+:\s*+(?:!!opencv-matrix\s++)?
        rows:\s*+(\d++)\s++cols:\s*+(\d++)\s++(?:dt:\s*+\S++\s++)?data:\s*+\[([^][]*+)\]""",
    re.MULTILINE | re.VERBOSE,
)


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
        return _from_json(path, text)
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


def _from_json(path: Path, text: str) -> Float:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:  # numbers of JSON may exceed those of Python
        raise unusable(path, f"is not valid JSON: {error}") from error
    return _checked(path, _json_matrix(path, content))


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
