"""Images in blocks of rows, so that temporary arrays stay small beside them."""

from __future__ import annotations

from collections.abc import Iterator

#: Pixels of a block: what the temporary arrays of a block need fits into the processor's caches.
BLOCK = 1 << 16


def row_blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Slices of rows of about :data:`BLOCK` pixels that make up an image (rows, columns)."""
    rows, columns = shape[:2]
    step = max(BLOCK // columns, 1)
    for first in range(0, rows, step):
        yield slice(first, min(first + step, rows))
