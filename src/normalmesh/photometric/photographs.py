"""Photographs of one scene under different lights, from files or arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_array, checked_path
from normalmesh.errors import NormalMeshError, path_text, shape_text
from normalmesh.files.formats import file_format, unknown_format, unusable
from normalmesh.files.images import IMAGE_FORMATS, IMAGES, read_image
from normalmesh.runtime.memory_budget import require_memory

#: Bytes for each pixel, besides the photographs, of photometric stereo with colours.
RESULT_BYTES = 76


@dataclass(frozen=True)
class Photograph:
    """A photograph as it was stored.

    Attributes
    ----------
    values
        (H, W, 1 or 3) integers or floats.
    maximum
        The largest value that the integers can hold; None for floats.
    """

    values: NDArray[np.generic]
    maximum: int | None


def photographs(images: ArrayLike | Sequence[str | PathLike[str]]) -> list[Photograph]:
    """Return all photographs, or raise :class:`NormalMeshError` unless they have one size and number of channels."""
    if are_files(images):
        paths = [checked_path(path, "images") for path in images]  # type: ignore[union-attr]
        taken = _read_all(paths)
        names = [path_text(path) for path in paths]
    else:
        taken = [_from_array(image) for image in _stack(images)]  # type: ignore[arg-type]
        names = [f"image {k}" for k in range(len(taken))]
    if not taken:
        raise NormalMeshError("there are no images; give at least three, each under another light")
    for name, photograph in zip(names, taken, strict=True):
        if (photograph.maximum is None) != (taken[0].maximum is None):
            raise NormalMeshError(
                f"{name} holds {photograph.values.dtype} but {names[0]} {taken[0].values.dtype}, whose ranges differ; "
                "give all images as floats, or as integers of 8 or 16 bits"
            )
        if photograph.values.shape != taken[0].values.shape:
            raise NormalMeshError(
                f"{name} is {shape_text(photograph.values.shape)} but {names[0]} is "
                f"{shape_text(taken[0].values.shape)}; they must show one scene at one size"
            )
    return taken


def are_files(images: ArrayLike | Sequence[str | PathLike[str]]) -> bool:
    """Return whether images are given as a list of files."""
    return isinstance(images, list | tuple) and any(isinstance(image, str | PathLike) for image in images)


def _stack(images: ArrayLike) -> NDArray[np.generic] | list[NDArray[np.generic]]:
    """Return the arrays one by one: a list of arrays is not copied into a single one."""
    if isinstance(images, list | tuple):
        return [checked_array(image, "images") for image in images]
    array = checked_array(images, "images")
    if array.ndim not in (3, 4):
        raise NormalMeshError(
            f"images must have the shape (images, rows, columns) or (images, rows, columns, 3), "
            f"not {shape_text(array.shape)}"
        )
    return array


def _from_array(values: NDArray[np.generic]) -> Photograph:
    if values.ndim not in (2, 3) or values.dtype.kind not in "fui" or values.size == 0:
        raise NormalMeshError(
            f"an image must be numbers of the shape (rows, columns) or (rows, columns, 3), "
            f"not {values.dtype} {shape_text(values.shape)}"
        )
    # The range of wider integers is seldom used: their maximum is unknown.
    narrow = values.dtype.kind == "u" and values.dtype.itemsize <= 2
    maximum = int(np.iinfo(values.dtype).max) if narrow else None  # type: ignore[type-var]
    return Photograph(_colours(values if values.ndim == 3 else values[..., None]), maximum)


def _read_all(paths: Sequence[Path]) -> list[Photograph]:
    """Read photographs of one size. The first tells how much memory all of them need."""
    first = _read(paths[0])
    rows, columns = first.values.shape[:2]
    needed = (len(paths) - 1) * first.values.nbytes + RESULT_BYTES * rows * columns
    require_memory(needed, f"photometric stereo of {len(paths)} images", "crop them, or halve their resolution")
    return [first, *map(_read, paths[1:])]


def _read(path: Path) -> Photograph:
    name = file_format(path)
    if name not in IMAGE_FORMATS:
        raise unknown_format(path, name, f"a photograph as {IMAGES} file")
    image = read_image(path, name)
    if image.colour not in ("RGB", "grey"):
        raise unusable(path, f"is a {image.colour} image; save it as grey or RGB")
    return Photograph(_colours(image.values), image.maximum)


def _colours(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return one or three channels, without alpha."""
    channels = values.shape[2]
    if channels not in (1, 2, 3, 4):
        raise NormalMeshError(f"an image must have one channel or three, not {channels}")
    return values[..., : 3 if channels >= 3 else 1]
