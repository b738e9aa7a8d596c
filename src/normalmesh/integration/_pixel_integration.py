"""Kernels of the integration on the pixel grid. Arrays are (H, W); pixels outside the mask have no edges.

``right[i, j]`` is the weight of the edge from pixel (i, j) to (i, j + 1), ``down[i, j]`` of that to (i + 1, j).
"""

import numpy as np
from numba import prange

from normalmesh.normals._camera import along_tangents, ray
from normalmesh.normals._normal_map import normal_at
from normalmesh.runtime.kernels import inner, kernel
from normalmesh.solvers._multigrid import STRONG, total_of

#: Half a step may change the depth behind a pinhole by this share at most; only grazing normals reach it.
_STEEPEST = 0.9


@kernel(parallel=True)
def slopes(normals, mask, frame, is_central, half_steps, mobility):
    """Per foreground pixel: what half a step changes the unknown by, and ⟨n, r⟩².

    ``half_steps`` (H, W, 4): from left edge to centre, centre to right edge, upper edge to centre, centre to lower
    edge, on the plane through the pixel. The unknown is linear there for parallel rays, a logarithm behind a pinhole.
    """
    for i in prange(mask.shape[0]):
        for j in range(mask.shape[1]):
            if not mask[i, j]:
                continue
            nx, ny, nz = normal_at(normals, i, j)
            rx, ry, rz = ray(j + 0.5, i + 0.5, frame)
            along_ray = nx * rx + ny * ry + nz * rz
            along = along_tangents(nx, ny, nz, frame)
            mobility[i, j] = along_ray * along_ray
            for k in range(2):
                half = -0.5 * along[k] / along_ray
                if is_central:
                    half = min(max(half, -_STEEPEST), _STEEPEST)
                    half_steps[i, j, 2 * k] = np.log1p(half)
                    half_steps[i, j, 2 * k + 1] = -np.log1p(-half)
                else:
                    half_steps[i, j, 2 * k] = half
                    half_steps[i, j, 2 * k + 1] = half


@kernel(parallel=True)
def weights_of(mask, mobility, right, down):
    """Weights of all edges between foreground pixels: the mean of ⟨n, r⟩² of the two."""
    rows, columns = mask.shape
    for i in prange(rows):
        for j in range(columns):
            if mask[i, j]:
                if j + 1 < columns and mask[i, j + 1]:
                    right[i, j] = np.float32(0.5 * (mobility[i, j] + mobility[i, j + 1]))
                if i + 1 < rows and mask[i + 1, j]:
                    down[i, j] = np.float32(0.5 * (mobility[i, j] + mobility[i + 1, j]))


@kernel(parallel=True)
def divergence(half_steps, right, down, b):
    """b = right side of the normal equations of Σ weight (z_q − z_p − g_pq)²."""
    rows, columns = right.shape
    for i in prange(rows):
        for j in range(columns):
            total = 0.0
            if j + 1 < columns:
                total -= right[i, j] * (half_steps[i, j, 1] + half_steps[i, j + 1, 0])
            if j > 0:
                total += right[i, j - 1] * (half_steps[i, j - 1, 1] + half_steps[i, j, 0])
            if i + 1 < rows:
                total -= down[i, j] * (half_steps[i, j, 3] + half_steps[i + 1, j, 2])
            if i > 0:
                total += down[i - 1, j] * (half_steps[i - 1, j, 3] + half_steps[i, j, 2])
            b[i, j] = total


@kernel(parallel=True)
def _least_of(right, down):
    """Per pixel: the least weight of its edges that may lie within an aggregate."""
    rows, columns = right.shape
    least = np.empty((rows, columns), np.float32)
    for i in prange(rows):
        for j in range(columns):
            most = max(right[i, j], down[i, j])
            if j > 0:
                most = max(most, right[i, j - 1])
            if i > 0:
                most = max(most, down[i - 1, j])
            least[i, j] = STRONG * most
    return least


def aggregate_pixels(mask, right, down):
    """Aggregates (H, W): parts of 2×2 blocks of pixels that strong edges join, −1 outside; and their blocks (m, 2)."""
    return _aggregated(mask, right, down, _least_of(right, down))


@kernel
def _aggregated(mask, right, down, least):
    rows, columns = mask.shape
    aggregate = np.full((rows, columns), -1, np.int32)
    cells = np.empty((rows * columns, 2), np.int32)
    count = 0
    for i in range(0, rows, 2):
        for j in range(0, columns, 2):
            a, b, c, d = (i, j), (i, j + 1), (i + 1, j), (i + 1, j + 1)
            wide, high = j + 1 < columns, i + 1 < rows
            ab = wide and mask[a] and mask[b] and right[a] >= max(least[a], least[b])
            ac = high and mask[a] and mask[c] and down[a] >= max(least[a], least[c])
            bd = wide and high and mask[b] and mask[d] and down[b] >= max(least[b], least[d])
            cd = wide and high and mask[c] and mask[d] and right[c] >= max(least[c], least[d])
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
def _neighbours(a, cell, aggregate, right, down, found, weights):
    """Aggregates that a touches and the weights between them, at most 8; their number."""
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


@kernel(parallel=True)
def coarse_graph(aggregate, cells, right, down):
    """Graph of the aggregates: indptr, indices, weights."""
    count = cells.shape[0]
    pieces = min(64, count)
    indptr = np.zeros(count + 1, np.int32)
    for piece in prange(pieces):
        found, between = np.empty(8, np.int32), np.empty(8, np.float32)
        for a in range(piece * count // pieces, (piece + 1) * count // pieces):
            indptr[a + 1] = _neighbours(a, cells[a], aggregate, right, down, found, between)
    for a in range(count):
        indptr[a + 1] += indptr[a]
    indices, weights = np.empty(indptr[count], np.int32), np.empty(indptr[count], np.float32)
    for piece in prange(pieces):
        for a in range(piece * count // pieces, (piece + 1) * count // pieces):
            low, high = indptr[a], indptr[a + 1]
            _neighbours(a, cells[a], aggregate, right, down, indices[low:high], weights[low:high])
    return indptr, indices, weights


@kernel(parallel=True, fastmath={"contract"}, error_model="numpy")
def relax(right, down, b, z, colour):
    """Gauss–Seidel on the pixels of one colour of the chequerboard, z float32."""
    rows, columns = z.shape
    for i in prange(rows):
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
            if diagonal > 0:
                z[i, j] = total / diagonal


@kernel(parallel=True, fastmath={"contract"})
def restrict_residual(right, down, b, z, aggregate, coarse):
    """coarse (m,) = sums of b − A z over the aggregates. A pair of rows holds its aggregates alone."""
    rows, columns = z.shape
    coarse[:] = 0
    for pair in prange((rows + 1) // 2):
        for i in range(2 * pair, min(2 * pair + 2, rows)):
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
                coarse[aggregate[i, j]] += total


@kernel(parallel=True)
def apply(right, down, p, product):
    """product = A p; returns ⟨p, A p⟩. Sums run along rows, then over them: the same for any number of threads."""
    rows, columns = p.shape
    sums = np.zeros(rows)
    for i in prange(rows):
        energy = 0.0
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
            product[i, j] = total
            energy += total * here
        sums[i] = energy
    return total_of(sums)


@kernel(parallel=True)
def advance(z, rest, p, product, length):
    """z += length · p, rest −= length · A p; returns ‖rest‖²."""
    sums = np.zeros(z.shape[0])
    for i in prange(z.shape[0]):
        total = 0.0
        for j in range(z.shape[1]):
            z[i, j] += length * p[i, j]
            rest[i, j] -= length * product[i, j]
            total += rest[i, j] * rest[i, j]
        sums[i] = total
    return total_of(sums)


@kernel(parallel=True)
def two_dots(rest, product, step):
    """⟨rest, step⟩ and ⟨product, step⟩."""
    sums = np.zeros((2, rest.shape[0]))
    for i in prange(rest.shape[0]):
        first, second = 0.0, 0.0
        for j in range(rest.shape[1]):
            first += rest[i, j] * step[i, j]
            second += product[i, j] * step[i, j]
        sums[0, i], sums[1, i] = first, second
    return total_of(sums[0]), total_of(sums[1])


@kernel(parallel=True)
def turn(p, step, factor):
    """p = step + factor · p."""
    for i in prange(p.shape[0]):
        for j in range(p.shape[1]):
            p[i, j] = step[i, j] + factor * p[i, j]
