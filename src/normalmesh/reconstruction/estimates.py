"""Estimates of the memory and the time that a reconstruction takes."""

from __future__ import annotations

from numbers import Real

from normalmesh.arguments import checked_choice, checked_int
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.runtime.memory import available_memory, bytes_text

#: Bytes above the normal map, measured by ``python -m benchmarks.memory``: for each pixel of the image; by the start of
#: the decimation, for each of the rectangle around the foreground or each of the foreground; and for each vertex of the
#: result. Some depend on nothing.
IMAGE_BYTES = 1.5
RECTANGLE_BYTES, FOREGROUND_BYTES = 20, 180
VERTEX_BYTES = 3600
BASE_BYTES = 16 << 20
#: Seconds on one core of a server: per foreground pixel of the decimation and of the integration, and per vertex of the
#: result.
DECIMATION_SECONDS, INTEGRATION_SECONDS, VERTEX_SECONDS = 0.7e-6, 0.2e-6, 6.5e-5


def estimate_memory(pixels: int, foreground: int, vertices: int, start: str = "adaptive") -> int:
    """Bytes that :func:`reconstruct` needs at its peak, above the normal map itself.

    Parameters
    ----------
    pixels, foreground
        Of the image, and of its mask.
    vertices
        Aimed at.
    start
        Of :func:`decimate`.
    """
    given = {"pixels": pixels, "foreground": foreground, "vertices": vertices}
    pixels, foreground, vertices = (checked_int(count, 0, name, 2**60) for name, count in given.items())
    checked_choice(start, ("adaptive", "pixels"), "start")
    meshing = FOREGROUND_BYTES * foreground
    if start == "adaptive":
        # The rectangle may be the whole image; where it is far larger than the foreground all pixels are the start.
        meshing = min(RECTANGLE_BYTES * pixels, meshing)
    return round(BASE_BYTES + IMAGE_BYTES * pixels + meshing + VERTEX_BYTES * vertices)


def check_memory(needed: int, limit: float | None = None) -> None:
    """Raise where so many bytes exceed the limit; by default, what is available."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, Real) or not limit > 0):
        raise NormalMeshError(
            f"memory_limit must be a positive number of bytes, or math.inf, not {repr_for_error(limit)}"
        )
    available = available_memory() if limit is None else limit
    if available is None or needed <= available:
        return
    there = "are available" if limit is None else "are allowed (memory_limit)"
    raise NormalMeshError(
        f"the reconstruction needs about {bytes_text(needed)} of memory but {bytes_text(available)} {there}; "
        "mask or crop what you do not need, halve the resolution, reconstruct in tiles, or ask for fewer vertices "
        "if there are many; a larger memory_limit (--memory-limit) lets it try"
    )


def estimate_seconds(foreground: int, vertices: int) -> tuple[float, float]:
    """Return rough estimates of the seconds of the decimation and of the integration on one core."""
    return DECIMATION_SECONDS * foreground, INTEGRATION_SECONDS * foreground + VERTEX_SECONDS * vertices
