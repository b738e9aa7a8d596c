"""Blocks of image rows, which keep temporary arrays small."""

from __future__ import annotations

from collections.abc import Iterator

#: Number of pixels of a block. Its temporary arrays fit into the caches of the processor.
BLOCK = 1 << 16


def row_blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Yield slices of rows, of about :data:`BLOCK` pixels each, that cover an image (rows, columns)."""
    rows, columns = shape[:2]
    step = max(BLOCK // columns, 1)
    for first in range(0, rows, step):
        yield slice(first, min(first + step, rows))
