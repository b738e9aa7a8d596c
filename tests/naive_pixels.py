"""Compute slowly, straight from the definitions, what the kernels on the pixel grid compute."""

from __future__ import annotations

import numpy as np
from scipy.spatial import distance_matrix


def pixel_depths(normals, mask, camera):
    """Return the unknown at the foreground pixels by dense least squares over pairs of neighbours.

    Each component has zero mean. The step between two neighbours goes along the planes of both, half the way each.
    """
    pixels = [tuple(p) for p in np.argwhere(mask)]
    number = {p: k for k, p in enumerate(pixels)}
    rows, steps = [], []
    tangents = camera.tangents
    for i, j in pixels:
        for axis, q in ((0, (i, j + 1)), (1, (i + 1, j))):
            if q not in number:
                continue
            weight, step = 0.0, 0.0
            for (y, x), towards in (((i, j), 1), (q, -1)):
                n = np.asarray(normals[y, x], np.float64)
                along_ray = n @ camera.rays(x + 0.5, y + 0.5)
                half = (0.5, 0.0) if axis == 0 else (0.0, 0.5)
                middle = n @ camera.rays(x + 0.5 + towards * half[0], y + 0.5 + towards * half[1])
                weight += along_ray**2 / 2
                if middle == along_ray:
                    step += -0.5 * (n @ tangents[axis]) / along_ray
                else:
                    step += towards * np.log(along_ray / middle)
            row = np.zeros(len(pixels))
            row[number[q]], row[number[i, j]] = np.sqrt(weight), -np.sqrt(weight)
            rows.append(row)
            steps.append(np.sqrt(weight) * step)
    if not rows:
        return np.zeros(len(pixels))
    return np.linalg.lstsq(np.array(rows), np.array(steps), rcond=1e-12)[0]


def _grid_neighbours(mask, p):
    """Return the foreground pixels beside, above and below pixel p."""
    around = [(p[0], p[1] + 1), (p[0], p[1] - 1), (p[0] + 1, p[1]), (p[0] - 1, p[1])]
    return [q for q in around if 0 <= q[0] < mask.shape[0] and 0 <= q[1] < mask.shape[1] and mask[q]]


def strong_parts(mask, right, down, strong):
    """Return the parts of 2×2 blocks that strong edges connect.

    An edge is strong if its weight is at least a fraction ``strong`` of the largest one at either end.
    """

    def weight(p, q):
        return right[min(p, q)] if p[0] == q[0] else down[min(p, q)]

    def strongest(p):
        return max(weight(p, q) for q in _grid_neighbours(mask, p))

    parts = {p: frozenset([p]) for p in map(tuple, np.argwhere(mask))}
    for p in list(parts):
        for q in _grid_neighbours(mask, p):
            same_block = p[0] // 2 == q[0] // 2 and p[1] // 2 == q[1] // 2
            if same_block and weight(p, q) >= strong * max(strongest(p), strongest(q)):
                both = parts[p] | parts[q]
                parts.update(dict.fromkeys(both, both))
    return set(parts.values())


def bilateral(normals, mask, radius, width, spread):
    """Return unit means (H, W, 3) of normals over a square window, with Gaussian weights.

    The weights decrease with the distance on the screen (deviation ``width``, px) and of the normals (``spread``).
    They form a matrix over all pairs of foreground pixels.
    """
    places, given = np.argwhere(mask), normals[mask].astype(np.float64)
    window = distance_matrix(places, places, p=np.inf) <= radius
    exponents = (distance_matrix(places, places) / width) ** 2 + (distance_matrix(given, given) / spread) ** 2
    means = (window * np.exp(-exponents / 2)) @ given
    smooth = np.zeros(normals.shape)
    smooth[mask] = means / np.linalg.norm(means, axis=1, keepdims=True)
    return smooth


def slopes(normal_map, row, column):
    """Return the slopes of a pixel along u and v, in pixels, and cos² of the tilt of its normal to the ray."""
    camera = normal_map.camera
    n, ray = normal_map.normals[row, column].astype(np.float64), camera.rays(column + 0.5, row + 0.5)
    p, q = (-(n @ tangent) / (n @ ray) / camera.pixel_length for tangent in camera.tangents)
    return p, q, (n @ ray) ** 2 / (ray @ ray)


def loop_gaps(normal_map, side):
    """Return closure errors around all square loops of foreground pixels, and the least and mean cos² of their corners.

    The slopes are integrated by the trapezoidal rule along each side of ``side`` pixels.
    """
    mask, gaps = normal_map.mask, []
    corners = [(0, 0), (0, side), (side, side), (side, 0)]
    for top, left in np.ndindex(mask.shape[0] - side, mask.shape[1] - side):
        if not mask[top : top + side + 1, left : left + side + 1].all():
            continue
        gap = 0.0
        for (i, j), (k, m) in zip(corners, corners[1:] + corners[:1], strict=True):
            for step in range(side):
                for end in (step, step + 1):
                    row, column = top + i + (k - i) // side * end, left + j + (m - j) // side * end
                    p, q, _ = slopes(normal_map, row, column)
                    gap += (p * (m - j) + q * (k - i)) / side / 2
        flatness = [slopes(normal_map, top + i, left + j)[2] for i, j in corners]
        gaps.append((abs(gap), min(flatness), np.mean(flatness)))
    return np.array(gaps).T


def closure_variance(side, blur):
    """Return the variance of the closure error around a loop for noise of unit variance that a Gaussian has blurred."""
    corners = [(0, 0), (0, side), (side, side), (side, 0)]
    terms = []
    for (i, j), (k, m) in zip(corners, corners[1:] + corners[:1], strict=True):
        for step in range(side):
            for end in (step, step + 1):
                at = (i + (k - i) * end / side, j + (m - j) * end / side)
                terms += [(0, at, (m - j) / side / 2), (1, at, (k - i) / side / 2)]
    total = 0.0
    for slope, at, weight in terms:
        for other, there, factor in terms:
            if slope == other:
                squared = (at[0] - there[0]) ** 2 + (at[1] - there[1]) ** 2
                total += weight * factor * (np.exp(-squared / (4 * blur**2)) if blur > 0 else float(squared == 0))
    return total
