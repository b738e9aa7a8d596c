"""Where a decimation stops: at a number of vertices, a cost, or a share of vertices saved."""

from __future__ import annotations

import numbers

from normalmesh.arguments import checked_int, checked_positive
from normalmesh.errors import NormalMeshError, repr_for_error

#: Where to stop, one of these says.
RULES = ("vertices", "threshold", "compression")

#: Vertices are numbered in 32 bits.
MOST_VERTICES = 2**31 - 1

#: Vertices for each foreground pixel that are expected where a threshold leaves them open.
EXPECTED_SHARE = 0.05


def expected_vertices(
    foreground: int, vertices: int | None = None, threshold: float | None = None, compression: float | None = None
) -> int:
    """Vertices that the one rule given leads to on so many foreground pixels; a guess for a threshold."""
    target = vertex_target(foreground, vertices, threshold, compression)
    # A pixel has four corners.
    return max(round(EXPECTED_SHARE * foreground), 3) if target is None else min(target, 4 * foreground)


def vertex_target(
    foreground: int, vertices: int | None, threshold: float | None, compression: float | None
) -> int | None:
    """Vertices that the one rule given asks for on so many foreground pixels; None for a threshold."""
    given = (vertices, threshold, compression)
    named = [name for name, value in zip(RULES, given, strict=True) if value is not None]
    if len(named) != 1:
        raise NormalMeshError(
            f"give exactly one of vertices, threshold and compression, not {' and '.join(named) or 'none'}"
        )
    if threshold is not None:
        checked_positive(threshold, "threshold")
        return None
    if compression is not None:
        if not (isinstance(compression, numbers.Real) and 0 < compression < 1):
            raise NormalMeshError(
                f"compression must lie between 0 and 1, such as 0.98 for 98 %, not {repr_for_error(compression)}"
            )
        return max(round((1 - compression) * foreground), 3)
    return checked_int(vertices, 3, "vertices", MOST_VERTICES)
