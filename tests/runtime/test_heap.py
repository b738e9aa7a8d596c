"""Test heaps inside kernels against heapq."""

import heapq

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from normalmesh.runtime._heap import drop_first, push


@given(st.lists(st.one_of(st.none(), st.tuples(st.integers(0, 5), st.integers(0, 5))), max_size=40))
def test_entries_leave_by_key_then_item(steps):
    """Each step adds an entry, or takes the first one out."""
    keys, items, size, expected = np.empty(len(steps)), np.empty(len(steps), np.int64), 0, []
    for step in steps:
        if step is not None:
            size = push(keys, items, size, float(step[0]), step[1])
            heapq.heappush(expected, step)
        elif expected:
            assert (keys[0], items[0]) == heapq.heappop(expected)
            size = drop_first(keys, items, size)
        assert size == len(expected)
