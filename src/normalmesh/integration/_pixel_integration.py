"""Kernels of the integration on the pixel grid. Arrays are (H, W); pixels outside the mask have no edges.

Most are range kernels over rows of pixels.
"""

from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Float32
from normalmesh.normals._camera import half_rises, products
from normalmesh.normals._normal_map import normal_at
from normalmesh.runtime.kernels import inner, kernel

#: Columns of the half steps of a pixel: from its left side to its centre, on to its right side, and likewise down.
FROM_LEFT, TO_RIGHT, FROM_TOP, TO_BOTTOM = range(4)


class EdgeWeights(NamedTuple):
    """The weights of edges between adjacent pixels, and of what holds pixels at a given value.

    Attributes
    ----------
    right : (H, W) float32
        Of the edge from pixel (i, j) to (i, j + 1).
    down : (H, W) float32
        Of the edge from pixel (i, j) to (i + 1, j).
    hold : (H, W) float32
        Of the value of pixel (i, j); (0, 0) if no pixel is held.
    """

    right: Float32
    down: Float32
    hold: Float32


@kernel
def pixel_slopes(first, last, normals, mask, camera, half_steps, mobility):
    """Fill the change of the unknown in half a step, and ⟨n, r⟩², of foreground pixels.

    ``half_steps`` (H, W, 4) are those on the plane through the pixel.
    """
    for i in range(first, last):
        for j in range(mask.shape[1]):
            if not mask[i, j]:
                continue
            nx, ny, nz = normal_at(normals, i, j)
            along_u, along_v, along_ray = products(nx, ny, nz, j + 0.5, i + 0.5, camera)
            mobility[i, j] = along_ray * along_ray
            half_steps[i, j, FROM_LEFT], half_steps[i, j, TO_RIGHT] = half_rises(-0.5 * along_u / along_ray, camera)
            half_steps[i, j, FROM_TOP], half_steps[i, j, TO_BOTTOM] = half_rises(-0.5 * along_v / along_ray, camera)


@kernel
def aggregate_blocks(mask, edges, strong):
    """Return aggregates (H, W), parts of 2×2 blocks of pixels that strong edges connect, and their blocks (m, 2).

    Pixels outside the mask have no aggregate (−1).
    """
    right, down = edges.right, edges.down
    rows, columns = mask.shape
    aggregate = np.full((rows, columns), -1, np.int32)
    cells = np.empty((rows * columns, 2), np.int32)
    count = 0
    for i in range(0, rows, 2):
        for j in range(0, columns, 2):
            a, b, c, d = (i, j), (i, j + 1), (i + 1, j), (i + 1, j + 1)
            wide, high = j + 1 < columns, i + 1 < rows
            ab = wide and mask[a] and mask[b] and right[a] >= max(strong[a], strong[b])
            ac = high and mask[a] and mask[c] and down[a] >= max(strong[a], strong[c])
            bd = wide and high and mask[b] and mask[d] and down[b] >= max(strong[b], strong[d])
            cd = wide and high and mask[c] and mask[d] and right[c] >= max(strong[c], strong[d])
            before = count
            if mask[a]:
                aggregate[a] = count
                count += 1
            if wide and mask[b]:
                joined = ab or (ac and cd and bd)
                aggregate[b] = aggregate[a] if joined else count
                count += not joined
            if high and mask[c]:
                joined = ac or (bd and cd)
                aggregate[c] = (aggregate[a] if ac else aggregate[b]) if joined else count
                count += not joined
            if wide and high and mask[d]:
                joined = bd or cd
                aggregate[d] = (aggregate[b] if bd else aggregate[c]) if joined else count
                count += not joined
            for k in range(before, count):
                cells[k] = i // 2, j // 2
    return aggregate, cells[:count].copy()


@inner
def _neighbours(a, cell, aggregate, edges, found, weights):
    """Fill the aggregates that a touches, at most 8, and the weights between them; return their number."""
    right, down = edges.right, edges.down
    rows, columns = aggregate.shape
    count = 0
    for k in range(4):
        i, j = 2 * cell[0] + k // 2, 2 * cell[1] + k % 2
        if i >= rows or j >= columns or aggregate[i, j] != a:
            continue
        for side in range(4):
            if side == 0 and j + 1 < columns:
                b, weight = aggregate[i, j + 1], right[i, j]
            elif side == 1 and j > 0:
                b, weight = aggregate[i, j - 1], right[i, j - 1]
            elif side == 2 and i + 1 < rows:
                b, weight = aggregate[i + 1, j], down[i, j]
            elif side == 3 and i > 0:
                b, weight = aggregate[i - 1, j], down[i - 1, j]
            else:
                continue
            if b < 0 or b == a:
                continue
            slot = 0
            while slot < count and found[slot] != b:
                slot += 1
            if slot == count:
                found[slot], weights[slot] = b, 0
                count += 1
            weights[slot] += weight
    return count


@kernel
def count_neighbours(first, last, aggregate, cells, edges, counts):
    """Fill the number of neighbours (m,) of each aggregate."""
    found, between = np.empty(8, np.int32), np.empty(8, np.float32)
    for a in range(first, last):
        counts[a] = _neighbours(a, cells[a], aggregate, edges, found, between)


@kernel
def fill_neighbours(first, last, aggregate, cells, edges, graph):
    """Fill the indices and weights of the graph (indptr, indices, weights) of the aggregates."""
    indptr, indices, weights = graph
    for a in range(first, last):
        low, high = indptr[a], indptr[a + 1]
        _neighbours(a, cells[a], aggregate, edges, indices[low:high], weights[low:high])


@kernel
def relax(first, last, edges, b, z, colour):
    """Apply Gauss–Seidel to the pixels of one colour of the chequerboard; z is float32."""
    right, down, hold = edges
    rows, columns = z.shape
    for i in range(first, last):
        for j in range((i + colour) % 2, columns, 2):
            total, diagonal = np.float32(b[i, j]), np.float32(0)
            if j + 1 < columns:
                total += right[i, j] * z[i, j + 1]
                diagonal += right[i, j]
            if j > 0:
                total += right[i, j - 1] * z[i, j - 1]
                diagonal += right[i, j - 1]
            if i + 1 < rows:
                total += down[i, j] * z[i + 1, j]
                diagonal += down[i, j]
            if i > 0:
                total += down[i - 1, j] * z[i - 1, j]
                diagonal += down[i - 1, j]
            if hold.size > 0:
                diagonal += hold[i, j]
            if diagonal > 0:
                z[i, j] = total / diagonal


@kernel
def restrict_grid_residual(first, last, edges, b, z, aggregate, coarse):
    """Add b − A z to ``coarse`` (m,), by aggregate, for pairs of rows: each pair has its own aggregates."""
    right, down, hold = edges
    rows, columns = z.shape
    for i in range(2 * first, min(2 * last, rows)):
        for j in range(columns):
            if aggregate[i, j] < 0:
                continue
            total, here = np.float32(b[i, j]), z[i, j]
            if j + 1 < columns:
                total += right[i, j] * (z[i, j + 1] - here)
            if j > 0:
                total += right[i, j - 1] * (z[i, j - 1] - here)
            if i + 1 < rows:
                total += down[i, j] * (z[i + 1, j] - here)
            if i > 0:
                total += down[i - 1, j] * (z[i - 1, j] - here)
            if hold.size > 0:
                total -= hold[i, j] * here
            coarse[aggregate[i, j]] += total


@kernel
def multiply_grid(first, last, edges, p, product):
    """Fill ``product`` (H, W) with A p."""
    right, down, hold = edges
    rows, columns = p.shape
    for i in range(first, last):
        for j in range(columns):
            here, total = p[i, j], 0.0
            if j + 1 < columns:
                total += right[i, j] * (here - p[i, j + 1])
            if j > 0:
                total += right[i, j - 1] * (here - p[i, j - 1])
            if i + 1 < rows:
                total += down[i, j] * (here - p[i + 1, j])
            if i > 0:
                total += down[i - 1, j] * (here - p[i - 1, j])
            if hold.size > 0:
                total += hold[i, j] * here
            product[i, j] = total
