"""Photographs of one scene under different lights, from files or arrays, and which light belongs to each file."""

from __future__ import annotations

import glob
import re
import unicodedata
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_array, checked_path
from normalmesh.errors import NormalMeshError, path_text, shape_text, warn_caller
from normalmesh.files.formats import file_format, unknown_format, unusable
from normalmesh.files.images import IMAGE_FORMATS, IMAGES, read_image
from normalmesh.runtime.memory_budget import require_memory

#: Bytes for each pixel, besides the photographs, of photometric stereo with colours.
RESULT_BYTES = 76
#: Suffixes of the photographs in a folder.
SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".tga", ".bmp", ".webp")
#: Suffixes of relightable images.
RELIGHTABLE = (".ptm", ".rti")


@dataclass(frozen=True)
class Photograph:
    """A photograph (H, W, 1 or 3) as stored, and the largest value that its integers can hold; None for floats."""

    values: NDArray[np.generic]
    maximum: int | None


def photographs(images: ArrayLike | Sequence[str | PathLike[str]]) -> list[Photograph]:
    """Return all photographs, or raise :class:`NormalMeshError` unless they have one size and number of channels."""
    if are_files(images):
        paths = [checked_path(path, "images") for path in images]  # type: ignore[union-attr]
        taken = [_read(paths[0])]
        # The first tells how much memory all of them need.
        (rows, columns), size = taken[0].values.shape[:2], taken[0].values.nbytes
        needed = (len(paths) - 1) * size + RESULT_BYTES * rows * columns
        require_memory(needed, f"photometric stereo of {len(paths)} images", "crop them, or halve their resolution")
        taken += map(_read, paths[1:])
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


def natural_key(name: str | PathLike[str]) -> tuple[tuple[int, int, str], ...]:
    """Return a key that sorts names as people do: numbers by their value, and letters whatever their case."""
    parts = re.split(r"(\d+)", fspath(name).casefold())
    return tuple((1, int(part), part) if place % 2 else (0, 0, part) for place, part in enumerate(parts))


def found_files(given: str | PathLike[str]) -> list[Path]:
    """Return the images of a folder, or the files that a pattern such as ``photos/*.png`` matches, in natural order."""
    if not str(given):
        raise NormalMeshError("images is an empty text; give files, a folder or a pattern such as 'photos/*.png'")
    path = Path(given)
    if path.is_dir():
        # macOS leaves hidden files on other disks, which have the suffixes of the photographs but hold none.
        files = [file for file in path.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file()]
        files = [file for file in files if not file.name.startswith(".")]
        what = "holds no images"
    elif glob.has_magic(str(path)) and not path.exists():
        files = [Path(file) for file in glob.glob(str(path), recursive=True)]
        what = "matches no image"
    elif not path.exists():
        raise NormalMeshError(f"{path_text(given)}: there is no such file or folder")
    elif path.suffix.lower() in RELIGHTABLE:
        raise NormalMeshError(
            f"{path_text(given)} is made of photographs and needs no lights: read it as a normal map, such as with "
            "normalmesh reconstruct"
        )
    else:
        raise NormalMeshError(
            f"images must be an array, a list of files, a folder or a pattern such as 'photos/*.png', not the single "
            f"file {path_text(given)}"
        )
    if not files:
        raise NormalMeshError(f"{path_text(given)} {what}")
    return sorted(files, key=natural_key)


def with_lights(
    files: Sequence[str | PathLike[str]], names: Sequence[str], source: str, chosen: bool
) -> tuple[list[str | PathLike[str]], list[int]] | None:
    """Return the photographs that have one of the named lights, and its place, or None if no name matches.

    Names may have other folders, in the notation of any system, and other suffixes: photographs are developed from raw
    files. Files that differ only in their suffix are told apart by it. ``chosen`` says that the caller has listed the
    files, all of which must have a light then. ``source`` names the file of lights.
    """
    whole = {_base(name): place for place, name in enumerate(names)}
    stems = {_stem(name): place for place, name in reversed(list(enumerate(names)))}
    bases = [_base(fspath(file)) for file in files]
    found = [whole.get(base, stems.get(_stem(base))) for base in bases]
    if all(place is None for place in found):
        return None
    if (twice := _repeated([_base(name) for name in names])) is not None:
        raise NormalMeshError(f"{source} has several lights for {names[twice]!r}; leave one line for each photograph")
    missing = [file for file, place in zip(files, found, strict=True) if place is None]
    if missing and chosen:
        raise NormalMeshError(
            f"{source} has no light for {len(missing)} of {len(files)} photographs, such as {path_text(missing[0])}; "
            "leave them out, or add a line for each"
        )
    kept = [(file, place) for file, place in zip(files, found, strict=True) if place is not None]
    places = [place for _, place in kept]
    if (again := _repeated(places)) is not None:
        shared = places[again]
        alike = ", ".join(path_text(file) for file, place in kept if place == shared)
        raise NormalMeshError(f"{source}: the light of {names[shared]!r} belongs to several photographs: {alike}")
    if unused := len(names) - len(places):
        warn_caller(f"{source}: {unused} of {len(names)} lights have no photograph, and were left out")
    return [file for file, _ in kept], places


def _repeated(values: Sequence[Hashable]) -> int | None:
    """Return the place of a value that occurs before, if there is one."""
    return next((place for place, value in enumerate(values) if value in values[:place]), None)


def _base(name: str) -> str:
    # macOS decomposes letters with accents in the names of files.
    return unicodedata.normalize("NFC", re.split(r"[\\/]", name)[-1]).casefold()


def _stem(name: str) -> str:
    return re.sub(r"\.[^.]+$", "", _base(name))
