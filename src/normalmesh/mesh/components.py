"""Connected components, of whatever is joined in pairs or triples: vertices by faces, faces by edges, unknowns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from normalmesh.mesh._topology import component_labels


def components(groups: NDArray[np.integer], count: int) -> NDArray[np.int32]:
    """Component (count,) of each item, where those in a row of ``groups`` (M, K) are joined.

    Components are numbered in the order of their first items.
    """
    groups = np.ascontiguousarray(groups, np.int32).view()
    # One kind of array, so that the kernel is compiled once.
    groups.flags.writeable = False
    labels = np.empty(count, np.int32)
    component_labels(groups, labels)
    return labels
