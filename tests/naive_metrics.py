"""Compute the error measures slowly, by loops over pixels."""

import math

import numpy as np


def angle(a, b):
    """Return the angle in degrees between two vectors, from sum and difference of their unit vectors (Kahan)."""
    a, b = (np.asarray(vector, float) / np.linalg.norm(np.asarray(vector, float)) for vector in (a, b))
    return math.degrees(2 * math.atan2(np.linalg.norm(a - b), np.linalg.norm(a + b)))


def components(mask):
    """Return the index of the 4-connected component of each pixel, −1 outside the mask, by flood fill."""
    number = np.full(mask.shape, -1)
    count = 0
    for start in zip(*np.nonzero(mask), strict=True):
        if number[start] >= 0:
            continue
        number[start] = count
        todo = [start]
        while todo:
            row, column = todo.pop()
            for near in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
                inside = 0 <= near[0] < mask.shape[0] and 0 <= near[1] < mask.shape[1]
                if inside and mask[near] and number[near] < 0:
                    number[near] = count
                    todo.append(near)
        count += 1
    return number


def rmse_and_made(found, truth, mask, is_height):
    """Return root mean square and mean absolute error, each component aligned by its own constant or scale."""
    number = components(mask)
    squares, absolutes = [], []
    for k in range(number.max() + 1):
        pairs = [
            (found[p], truth[p])
            for p in zip(*np.nonzero(number == k), strict=True)
            if math.isfinite(found[p]) and math.isfinite(truth[p])
        ]
        if not pairs:
            continue
        if is_height:
            differences = [f - t for f, t in pairs]
            mean, median = sum(differences) / len(pairs), float(np.median(differences))
            squares += [(d - mean) ** 2 for d in differences]
            absolutes += [abs(d - median) for d in differences]
        else:
            scale = sum(f * t for f, t in pairs) / sum(f * f for f, _ in pairs)
            ratio = float(np.median([t / f for f, t in pairs]))
            squares += [(scale * f - t) ** 2 for f, t in pairs]
            absolutes += [abs(ratio * f - t) for f, t in pairs]
    return math.sqrt(sum(squares) / len(squares)), sum(absolutes) / len(absolutes)


def mean_angle(normals, truth, counted):
    """Return the mean angle in degrees over the counted pixels where both normals are known."""
    angles = [
        angle(normals[p], truth[p])
        for p in zip(*np.nonzero(counted), strict=True)
        if np.any(normals[p]) and np.any(truth[p])
    ]
    return sum(angles) / len(angles)


def motion(found, truth, has_scale):
    """Return scale, rotation and translation that move points to the truth best, by Horn's quaternions (1987)."""
    p, q = found - found.mean(axis=0), truth - truth.mean(axis=0)
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = sum(np.outer(a, b) for a, b in zip(p, q, strict=True))
    matrix = [
        [xx + yy + zz, yz - zy, zx - xz, xy - yx],
        [yz - zy, xx - yy - zz, xy + yx, zx + xz],
        [zx - xz, xy + yx, yy - xx - zz, yz + zy],
        [xy - yx, zx + xz, yz + zy, zz - xx - yy],
    ]
    w, x, y, z = np.linalg.eigh(matrix)[1][:, -1]
    rotation = np.array(
        [
            [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
        ]
    )
    scale = sum(b @ rotation @ a for a, b in zip(p, q, strict=True)) / sum(a @ a for a in p) if has_scale else 1.0
    return scale, rotation, truth.mean(axis=0) - scale * rotation @ found.mean(axis=0)
