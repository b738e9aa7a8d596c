"""Connected components of items that are joined in pairs or triples, such as vertices by faces."""

from __future__ import annotations

import numpy as np

from normalmesh.array_types import Int32, Integer
from normalmesh.mesh._topology import component_labels


def components(groups: Integer, count: int) -> Int32:
    """Return the connected component (count,) of each item; the items in a row of ``groups`` (M, K) are joined.

    Components are numbered in the order of their first items.
    """
    groups = np.ascontiguousarray(groups, np.int32).view()
    # Only one type of array, so that the kernel is compiled once.
    groups.flags.writeable = False
    labels = np.empty(count, np.int32)
    component_labels(groups, labels)
    return labels
