"""Workspace: memory that consecutive computations share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Workspace:
    """A buffer that is reused by one computation after another: touching fresh memory may take longer than arithmetic.

    It serves one computation at a time, the last one that asked for a buffer.
    """

    def __init__(self) -> None:
        self._buffer = np.empty(0)

    def reserve(self, count: int) -> NDArray[np.float64]:
        """Return an uninitialised buffer of `count` float64."""
        if self._buffer.size < count:
            # The old memory is released first. A reserve for larger systems costs nothing as long as it is not touched.
            self._buffer = np.empty(0)
            self._buffer = np.empty(count + count // 4)
        return self._buffer[:count]
