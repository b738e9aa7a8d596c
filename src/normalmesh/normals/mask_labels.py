"""Components of a mask, labelled in bands of rows on several threads, or in windows, and joined where these touch."""

from __future__ import annotations

import numpy as np

from normalmesh.array_types import Bool, Int, Int32
from normalmesh.normals.windows import Slices
from normalmesh.runtime.threads import in_parallel

#: Rows of a band.
BAND = 128


def component_labels(mask: Bool) -> tuple[Int32, int]:
    """Return the 4-connected component (H, W) of each pixel, from 1 on, 0 outside the mask, and their number.

    Components are numbered in the order of their first pixels, row by row.
    """
    labels = np.empty(mask.shape, np.int32)
    counts = np.zeros(-(-len(mask) // BAND), np.int64)
    in_parallel(_label_bands, len(counts), mask, labels, counts, grain=1)
    starts = np.concatenate([[0], counts.cumsum()])
    numbers = joined(_pairs(labels, starts), int(starts[-1]))
    in_parallel(_number_bands, len(counts), labels, starts, numbers, grain=1)
    return labels, int(numbers.max(initial=0))


class WindowLabels:
    """The 4-connected components of a mask that is seen window by window, row by row from the left.

    ``count``: number of labels of all windows so far.
    """

    def __init__(self, columns: int):
        self.count = 0
        self._pairs = [np.zeros((2, 0), np.int64)]
        # Labels of all windows, from 1 on: of the last row above these windows and of them, and of the last column.
        self._above, self._below = np.zeros(columns, np.int64), np.zeros(columns, np.int64)
        self._left = np.zeros(0, np.int64)

    def add(self, window: Slices, mask: Bool) -> tuple[Int32, int]:
        """Return the labels (h, w) of the mask of the next window, from 1 on, and how many there are."""
        labels, count = component_labels(mask)
        columns = window[1]
        if columns.start == 0:
            self._above, self._below = self._below, np.zeros_like(self._below)
            self._left = np.zeros(len(mask), np.int64)
        first, last, left, right = (
            np.where(side > 0, side.astype(np.int64) + self.count, 0)
            for side in (labels[0], labels[-1], labels[:, 0], labels[:, -1])
        )
        self._note(first, self._above[columns])
        self._note(left, self._left)
        self._below[columns], self._left = last, right
        self.count += count
        return labels, count

    def components(self) -> Int32:
        """Return the components (N,), from 1 on, of the labels of all windows, one after another."""
        return joined(np.concatenate(self._pairs, axis=1), self.count)

    def _note(self, one: Int, other: Int) -> None:
        both = (one > 0) & (other > 0)
        self._pairs.append(np.unique(np.stack([one[both], other[both]]) - 1, axis=1))


def _label_bands(first: int, last: int, mask: Bool, labels: Int32, counts: Int) -> None:
    """Label the bands first … last − 1, each from 1 on, and count their labels: a range kernel."""
    from scipy import ndimage

    for band in range(first, last):
        rows = slice(band * BAND, (band + 1) * BAND)
        counts[band] = ndimage.label(mask[rows], output=labels[rows])


def _pairs(labels: Int32, starts: Int) -> Int:
    """Return the labels (2, K) that touch across bands, from 0 on; those of band b begin with ``starts[b]``."""
    pairs = [np.zeros((2, 0), np.int64)]
    for band in range(1, len(starts) - 1):
        above, below = labels[band * BAND - 1 : band * BAND + 1].astype(np.int64)
        both = (above > 0) & (below > 0)
        # A pair of labels touches along many pixels, most of which are neighbours.
        both[1:] &= (above[1:] != above[:-1]) | (below[1:] != below[:-1])
        pairs.append(np.stack([above[both] + starts[band - 1], below[both] + starts[band]]) - 1)
    return np.concatenate(pairs, axis=1)


def joined(pairs: Int, count: int) -> Int32:
    """Return the components (count,) of labels that are joined in pairs (2, K), from 1 on, in the order of labels."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    if count == 0:
        return np.zeros(0, np.int32)
    graph = coo_matrix((np.ones(pairs.shape[1], np.bool_), tuple(pairs)), (count, count))
    components: Int32 = connected_components(graph, directed=False)[1] + np.int32(1)
    return components


def _number_bands(first: int, last: int, labels: Int32, starts: Int, numbers: Int32) -> None:
    """Replace the labels of the bands first … last − 1 by the numbers of their components: a range kernel."""
    for band in range(first, last):
        number = np.concatenate([[0], numbers[starts[band] : starts[band + 1]]])
        if not np.array_equal(number, np.arange(len(number))):
            rows = slice(band * BAND, (band + 1) * BAND)
            labels[rows] = number[labels[rows]]
