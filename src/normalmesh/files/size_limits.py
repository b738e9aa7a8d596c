"""How large an image may be: asked of the header of its file, before memory is taken for the pixels."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from normalmesh.errors import NormalMeshError
from normalmesh.files.formats import unusable
from normalmesh.runtime.memory import available_memory, bytes_text

#: Pixels of the largest image that is read unless a limit is given: twice a large scan.
MAX_PIXELS = 2e9
#: The environment variable that says another limit.
VARIABLE = "NORMALMESH_MAX_PIXELS"

#: Bytes of pixels for a byte of a file, at most: deflate gets to 1032, others to some thousands for a single colour.
#: Decoders fill in what is missing of a damaged file, and all of its memory.
MOST_COMPRESSION = 20_000
#: Bytes that are not worth a question.
HARMLESS = 1 << 25

_given: ContextVar[float | None] = ContextVar("max_pixels", default=None)


@contextmanager
def pixels_limited(max_pixels: float | None) -> Iterator[None]:
    """Files that are read within may hold so many pixels; None leaves the limit as it is."""
    before = _given.set(_given.get() if max_pixels is None else _checked(max_pixels, "max_pixels"))
    try:
        yield
    finally:
        _given.reset(before)


def most_pixels() -> float:
    """The limit that holds: the one given, that of the environment, or :data:`MAX_PIXELS`."""
    given = _given.get()
    if given is not None:
        return given
    text = os.environ.get(VARIABLE)
    return MAX_PIXELS if not text else _checked(text, f"the environment variable {VARIABLE}")


def _checked(value: object, name: str) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not number > 0 or isinstance(value, bool):
        raise NormalMeshError(f"{name} must be a positive number of pixels, such as 5e8, not {value!r}")
    return number


def check_image_size(path: Path, rows: int, columns: int, pixel_bytes: int) -> None:
    """Raise where an image has more pixels than the limit allows, its file can hold, or there is memory for."""
    if rows * columns > (limit := most_pixels()):
        raise unusable(
            path,
            f"claims {columns} × {rows} pixels, more than the limit of {limit:.15g}; if you trust the file, "
            f"raise max_pixels (--max-pixels, {VARIABLE})",
        )
    needed = rows * columns * pixel_bytes
    if needed > max(HARMLESS, MOST_COMPRESSION * path.stat().st_size):
        raise unusable(path, f"is too short for the {columns} × {rows} pixels that it claims; it is damaged")
    refuse_beyond_memory(path, needed)


def refuse_beyond_memory(path: Path, needed: int) -> None:
    """Raise where fewer bytes are available than a file takes in memory."""
    if needed > HARMLESS and (available := available_memory()) is not None and needed > available:
        raise unusable(
            path,
            f"takes {bytes_text(needed)} of memory to read but {bytes_text(available)} are available; "
            "crop it, or halve its resolution",
        )
