"""Types of arrays by what they hold; docstrings say their shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bool = NDArray[np.bool_]
Float = NDArray[np.float64]
Float32 = NDArray[np.float32]
Floating = NDArray[np.floating[Any]]
Int = NDArray[np.int64]
Int32 = NDArray[np.int32]
Integer = NDArray[np.integer[Any]]
UInt8 = NDArray[np.uint8]
