"""Workspace: memory that consecutive computations share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Workspace:
    """A buffer that is reused by one computation after another: touching fresh memory may take longer than arithmetic.

    It serves one computation at a time, the last one that asked for a buffer.
    """

    def __init__(self) -> None:
        self._buffer = np.empty(0)

    def release(self) -> None:
        """Give the memory back."""
        self._buffer = np.empty(0)

    def reserve(self, count: int, kind: type[np.floating[Any]] = np.float64) -> NDArray[Any]:
        """Return an uninitialised buffer of `count` numbers, float64 or float32."""
        doubles = -(-count * np.dtype(kind).itemsize // 8)
        if self._buffer.size < doubles:
            # The old memory is released first. A reserve for larger systems costs nothing as long as it is not touched.
            self.release()
            self._buffer = np.empty(doubles + doubles // 4)
        return self._buffer.view(kind)[:count]
