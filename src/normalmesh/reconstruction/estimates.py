"""Estimates of the memory and the time that a reconstruction takes."""

from __future__ import annotations

from numbers import Real

from normalmesh.arguments import checked_choice, checked_int
from normalmesh.decimation.decimation_options import STARTS
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.runtime.memory import available_memory, bytes_text

# Bytes beside the normal map, measured by ``python -m benchmarks.memory``.
#: Per pixel of the image.
IMAGE_BYTES = 1.5
#: Per pixel of the bounding box of the foreground, with an adaptive start mesh.
RECTANGLE_BYTES = 20
#: Per foreground pixel, with a start mesh of all pixels.
FOREGROUND_BYTES = 180
#: Per vertex of the result.
VERTEX_BYTES = 3600
#: Independent of the size.
BASE_BYTES = 16 << 20
#: Seconds on one core of a server: per foreground pixel of the decimation and of the integration, and per vertex of the
#: result.
DECIMATION_SECONDS, INTEGRATION_SECONDS, VERTEX_SECONDS = 0.7e-6, 0.2e-6, 6.5e-5


def estimate_memory(pixels: int, foreground: int, vertices: int, start: str = "adaptive") -> int:
    """Estimate the memory that :func:`reconstruct` needs beside the normal map.

    Parameters
    ----------
    pixels, foreground
        Number of pixels of the image, and of its foreground.
    vertices
        Number of vertices of the surface.
    start
        The start mesh, see :func:`decimate`.

    Returns
    -------
    int
        An upper bound of the peak, in bytes.
    """
    given = {"pixels": pixels, "foreground": foreground, "vertices": vertices}
    pixels, foreground, vertices = (checked_int(count, 0, name, 2**60) for name, count in given.items())
    checked_choice(start, STARTS, "start")
    start_bytes: float = FOREGROUND_BYTES * foreground
    if start == "adaptive":
        # The bounding box may be the whole image. If it is far larger than the foreground, all pixels are the start.
        start_bytes = min(RECTANGLE_BYTES * pixels, start_bytes)
    return round(BASE_BYTES + IMAGE_BYTES * pixels + start_bytes + VERTEX_BYTES * vertices)


def check_memory(needed: int, limit: float | None = None) -> None:
    """Raise an error if ``needed`` bytes exceed the limit, by default the available memory."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, Real) or not limit > 0):
        raise NormalMeshError(
            f"memory_limit must be a positive number of bytes, or math.inf, not {repr_for_error(limit)}"
        )
    available = available_memory() if limit is None else limit
    if available is None or needed <= available:
        return
    which = "are available" if limit is None else "are allowed (memory_limit)"
    raise NormalMeshError(
        f"the reconstruction needs about {bytes_text(needed)} of memory but {bytes_text(available)} {which}; "
        "mask or crop what you do not need, halve the resolution, reconstruct in tiles, or ask for fewer vertices "
        "if there are many; a larger memory_limit (--memory-limit) lets it try"
    )


def estimate_seconds(foreground: int, vertices: int) -> tuple[float, float]:
    """Return rough estimates of the seconds of the decimation and of the integration on one core."""
    return DECIMATION_SECONDS * foreground, INTEGRATION_SECONDS * foreground + VERTEX_SECONDS * vertices
