"""Which files are photographs, in which order, and which light belongs to each, by its name."""

from __future__ import annotations

import glob
import re
import unicodedata
import warnings
from collections.abc import Hashable, Sequence
from os import PathLike, fspath
from pathlib import Path

from normalmesh.errors import NormalMeshError, NormalMeshWarning, path_text

#: Suffixes of the photographs in a folder.
SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".tga", ".bmp", ".webp")
#: Suffixes of relightable images.
RELIGHTABLE = (".ptm", ".rti")


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


def matched_lights(files: Sequence[str | PathLike[str]], names: Sequence[str]) -> list[int | None] | None:
    """Return which of the named lights belongs to each file, None for files without one; None if no name matches.

    Names may have other folders, in the notation of any system, and other suffixes: photographs are developed from raw
    files. Files that differ only in their suffix are told apart by it.
    """
    whole = {_base(name): place for place, name in enumerate(names)}
    stems = {_stem(name): place for place, name in reversed(list(enumerate(names)))}
    bases = [_base(fspath(file)) for file in files]
    found = [whole.get(base, stems.get(_stem(base))) for base in bases]
    return found if any(place is not None for place in found) else None


def with_lights(
    files: Sequence[str | PathLike[str]], names: Sequence[str], source: str, chosen: bool
) -> tuple[list[str | PathLike[str]], list[int]] | None:
    """Return the photographs that have a light, and its place, or None if no name matches.

    ``chosen`` says that the caller has listed the files, all of which must have a light then. ``source`` names the file
    of lights.
    """
    found = matched_lights(files, names)
    if found is None:
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
        warnings.warn(
            f"{source}: {unused} of {len(names)} lights have no photograph, and were left out",
            NormalMeshWarning,
            stacklevel=4,
        )
    return [file for file, _ in kept], places


def _repeated(values: Sequence[Hashable]) -> int | None:
    """Return the place of a value that occurs before, if there is one."""
    return next((place for place, value in enumerate(values) if value in values[:place]), None)


def _base(name: str) -> str:
    # macOS decomposes letters with accents in the names of files.
    return unicodedata.normalize("NFC", re.split(r"[\\/]", name)[-1]).casefold()


def _stem(name: str) -> str:
    return re.sub(r"\.[^.]+$", "", _base(name))
