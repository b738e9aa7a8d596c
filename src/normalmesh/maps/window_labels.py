"""Connected regions of a mask that is seen window by window: labels of windows, joined where they touch."""

from __future__ import annotations

import numpy as np

from normalmesh.array_types import Bool, Int, Int32
from normalmesh.maps.windowed_arrays import Window


def labelled(pixels: Bool, diagonal: bool) -> tuple[Int, int]:
    """Return the number (h, w) of the region of each pixel, from 1 on, 0 elsewhere, and how many there are.

    Pixels that touch at a corner only belong to one region if ``diagonal``.
    """
    from scipy import ndimage

    labels, count = ndimage.label(pixels, ndimage.generate_binary_structure(2, 2 if diagonal else 1))
    return labels.astype(np.int64), count


class WindowLabels:
    """Labels of windows, which are added row by row from the left, and which of them touch."""

    def __init__(self, columns: int, diagonal: bool):
        self.count = 0
        self._diagonal = diagonal
        self._pairs: list[Int] = []
        # Labels of the last row of the windows above and of these windows, with a pixel more on both sides.
        self._above, self._below = np.zeros(columns + 2, np.int64), np.zeros(columns + 2, np.int64)
        self._left = np.zeros(0, np.int64)

    def add(self, window: Window, labels: Int | None, count: int = 0) -> None:
        """Add the labels (h, w) of a window, from 1 to ``count``, 0 elsewhere; None: it has none."""
        rows, columns = window
        if columns.start == 0:
            self._above, self._below = self._below, np.zeros_like(self._below)
            self._left = np.zeros(rows.stop - rows.start, np.int64)
        if labels is None:
            self._left = np.zeros(rows.stop - rows.start, np.int64)
            return
        labels = np.where(labels > 0, labels + self.count, 0)
        self.count += count
        left, width = np.pad(self._left, 1), columns.stop - columns.start
        for shift in range(3) if self._diagonal else (1,):
            first = columns.start + shift
            self._note(labels[0], self._above[first : first + width])
            self._note(labels[:, 0], left[shift : shift + len(labels)])
        self._below[columns.start + 1 : columns.stop + 1] = labels[-1]
        self._left = labels[:, -1]

    def regions(self) -> Int32:
        """Return the number (N,) of the region, from 0 on, of the labels of all windows, one after another."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        pairs = np.concatenate([*self._pairs, np.zeros((0, 2), np.int64)]) - 1
        links = coo_array((np.ones(len(pairs), np.bool_), pairs.T), shape=(self.count, self.count))
        regions: Int32 = connected_components(links, directed=False)[1]
        return regions

    def _note(self, one: Int, other: Int) -> None:
        both = (one > 0) & (other > 0)
        if both.any():
            self._pairs.append(np.unique(np.stack([one[both], other[both]], axis=1), axis=0))
