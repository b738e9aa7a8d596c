"""Kernel of :mod:`normalmesh.decimation.near_cells`."""

from normalmesh.runtime.kernels import kernel


@kernel
def mark_cells(points, size, reach, cells):
    """Set ``cells`` (R, C) of ``size`` px, False before, within ``reach`` cells of those that hold points (K, 2)."""
    rows, columns = cells.shape
    for k in range(points.shape[0]):
        i, j = int(points[k, 1]) // size, int(points[k, 0]) // size
        for y in range(max(i - reach, 0), min(i + reach + 1, rows)):
            for x in range(max(j - reach, 0), min(j + reach + 1, columns)):
                if (y - i) ** 2 + (x - j) ** 2 <= reach * reach:
                    cells[y, x] = True
