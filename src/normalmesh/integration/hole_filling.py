"""Filling holes of a normal map: slopes that are harmonic inside them."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike
from scipy import ndimage
from scipy.sparse import coo_matrix, csr_matrix

from normalmesh.arguments import checked_int
from normalmesh.array_types import Bool, Float
from normalmesh.errors import NormalMeshWarning
from normalmesh.normals.gradients import normals_of_slopes, slopes_of
from normalmesh.normals.normal_map import NormalMap, checked_mask
from normalmesh.runtime.memory_budget import require_memory
from normalmesh.solvers.sparse_system import PreparedSystem

#: Bytes for each pixel of the map: slopes, and the map that has them.
PIXEL_BYTES = 90
#: Steps to the four neighbours of a pixel: down and right.
NEIGHBOURS = ((-1, 0), (1, 0), (0, -1), (0, 1))


def filled_map(normal_map: NormalMap, mask: ArrayLike | None, largest: int | None) -> NormalMap:
    """Return a map with normals in holes of its mask, see :meth:`NormalMap.filled`."""
    largest = normal_map.mask.size if largest is None else checked_int(largest, 1, "largest")
    wanted = None if mask is None else checked_mask(mask, normal_map.shape)
    holes = _holes(normal_map.mask, wanted, largest)
    if not holes.any():
        return normal_map
    require_memory(PIXEL_BYTES * holes.size, "filling holes of the map", "crop it before")
    slopes = slopes_of(normal_map.normals, normal_map.camera)
    matrix, sums = _equations(holes, normal_map.mask, slopes)
    rows, columns = np.nonzero(holes)
    system = PreparedSystem(matrix, coordinates=np.stack([columns, rows], axis=1).astype(np.float64))
    for axis in range(2):
        slopes[rows, columns, axis] = system.solve(sums[axis]).x
    found = NormalMap.derived(normals_of_slopes(slopes, normal_map.camera), holes, normal_map.camera)
    normals = np.where(holes[..., None], found.normals, normal_map.normals)
    return NormalMap.cleaned(normals, normal_map.mask | holes, normal_map.camera)


def _holes(mask: Bool, wanted: Bool | None, largest: int) -> Bool:
    """Return the pixels (H, W) to fill: regions of up to ``largest`` pixels that the foreground can be continued to."""
    # Background that is connected across corners only is connected, or a diagonal line would enclose it.
    joined = np.ones((3, 3), bool) if wanted is None else None
    labels, count = ndimage.label(~mask if wanted is None else wanted & ~mask, structure=joined)
    if wanted is None:
        border = np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]])
        kept = np.ones(count + 1, bool)
        kept[border] = False
    else:
        kept = np.zeros(count + 1, bool)
        kept[labels[ndimage.binary_dilation(mask)]] = True
        apart = np.count_nonzero(~kept[labels] & (labels > 0))
        if apart:
            warnings.warn(
                f"{apart} pixels of the mask are not connected to any normal and stay background",
                NormalMeshWarning,
                stacklevel=4,
            )
    kept &= np.bincount(labels.ravel(), minlength=count + 1) <= largest
    kept[0] = False
    return kept[labels]


def _equations(holes: Bool, mask: Bool, slopes: Float) -> tuple[csr_matrix, Float]:
    """Return the matrix (n, n) and right-hand sides (2, n) of: each slope of a hole is the mean of its neighbours.

    Neighbours that are neither foreground nor to be filled do not count.
    """
    count = np.count_nonzero(holes)
    number = np.full((holes.shape[0] + 2, holes.shape[1] + 2), -1, np.int64)
    number[1:-1, 1:-1][holes] = np.arange(count)
    known = np.pad(mask, 1)
    padded = np.pad(slopes, ((1, 1), (1, 1), (0, 0)))
    rows, columns = (places + 1 for places in np.nonzero(holes))
    own, diagonal, sums = np.arange(count), np.zeros(count), np.zeros((2, count))
    entries = []
    for down, right in NEIGHBOURS:
        other = number[rows + down, columns + right]
        fixed = known[rows + down, columns + right]
        sums[:, fixed] += padded[rows + down, columns + right][fixed].T
        entries.append((own[other >= 0], other[other >= 0]))
        diagonal += fixed + (other >= 0)
    first, second = (np.concatenate([own, *each]) for each in zip(*entries, strict=True))
    values = np.concatenate([diagonal, np.full(len(first) - count, -1.0)])
    return coo_matrix((values, (first, second)), (count, count)).tocsr(), sums
