"""Limits on the size of images, checked with the header of a file before memory is allocated for the pixels."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.files.formats import unusable
from normalmesh.runtime.memory import available_memory, bytes_text

#: Default limit on the number of pixels: twice a large scan.
MAX_PIXELS = 2e9
#: Name of the environment variable for another limit.
VARIABLE = "NORMALMESH_MAX_PIXELS"

#: Maximum compression: bytes of pixels per byte of a file. Deflate reaches 1032, others some thousands for a single
#: colour. Decoders would allocate and fill all pixels of a truncated file.
MAX_COMPRESSION = 20_000
#: Size in bytes below which memory is not checked.
HARMLESS = 1 << 25

_given: ContextVar[float | None] = ContextVar("max_pixels", default=None)


@contextmanager
def limited_pixels(max_pixels: float | None) -> Iterator[None]:
    """Limit the number of pixels of files that are read within this context; None keeps the current limit."""
    before = _given.set(_given.get() if max_pixels is None else _checked(max_pixels, "max_pixels"))
    try:
        yield
    finally:
        _given.reset(before)


def pixel_limit() -> float:
    """Return the current limit: the one given, that of the environment, or :data:`MAX_PIXELS`."""
    given = _given.get()
    if given is not None:
        return given
    text = os.environ.get(VARIABLE)
    return MAX_PIXELS if not text else _checked(text, f"the environment variable {VARIABLE}")


def _checked(value: object, name: str) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not number > 0 or isinstance(value, bool):
        raise NormalMeshError(f"{name} must be a positive number of pixels, such as 5e8, not {repr_for_error(value)}")
    return number


def check_image_size(path: Path, rows: int, columns: int, pixel_bytes: int) -> None:
    """Raise if an image has more pixels than the limit, than its file can hold, or than fit into memory."""
    check_pixel_limit(path, rows, columns)
    check_file_length(path, rows, columns, pixel_bytes)
    refuse_beyond_memory(path, rows * columns * pixel_bytes)


def check_pixel_limit(path: Path, rows: int, columns: int) -> None:
    """Raise if an image has more pixels than the limit."""
    if rows * columns > (limit := pixel_limit()):
        raise unusable(
            path,
            f"claims {columns} × {rows} pixels, more than the limit of {limit:.15g}; if you trust the file, "
            f"raise max_pixels (--max-pixels, {VARIABLE})",
        )


def check_file_length(path: Path, rows: int, columns: int, pixel_bytes: int) -> None:
    """Raise if an image has more pixels than its file can hold."""
    if rows * columns * pixel_bytes > max(HARMLESS, MAX_COMPRESSION * path.stat().st_size):
        raise unusable(path, f"is too short for the {columns} × {rows} pixels that it claims; it is damaged")


def refuse_beyond_memory(path: Path, needed: int) -> None:
    """Raise if a file needs more memory than there is available."""
    if needed > HARMLESS and (available := available_memory()) is not None and needed > available:
        raise unusable(
            path,
            f"takes {bytes_text(needed)} of memory to read but {bytes_text(available)} are available; "
            "crop it, or halve its resolution",
        )
