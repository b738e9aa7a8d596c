"""Measure the looks of a surface slowly, from the definitions, by loops over faces, edges and pixels."""

import math

import numpy as np

from naive_metrics import angle
from normalmesh import pixel_faces


def looks(surface, normal_map):
    """Return the figures by name, without the height."""
    return {**cuts(surface, normal_map.mask), **faces(surface, normal_map), **coverage(surface, normal_map)}


def cuts(surface, mask):
    """Return length, teeth and turning of boundary edges that lie on another one or have an end inside the mask."""
    sides = {(f[k], f[k - 2]) for f in surface.faces.tolist() for k in range(3)}
    boundary = [(a, b) for a, b in sides if (b, a) not in sides]
    place = [tuple(point) for point in surface.screen.tolist()]
    lines = [frozenset((place[a], place[b])) for a, b in boundary]
    cut = [
        edge
        for edge, line in zip(boundary, lines, strict=True)
        if lines.count(line) > 1 or not all(near_background(place[vertex], mask) for vertex in edge)
    ]
    length = sum(math.dist(place[a], place[b]) for a, b in cut) / 2
    following = dict(cut)
    turns = []
    starts = [place[a] for a, _ in cut]
    for a, b in cut:
        # Where several cuts meet, they branch off.
        if b in following and starts.count(place[b]) <= 2:
            before, after = (np.subtract(place[q], place[p]) for p, q in ((a, b), (b, following[b])))
            turns.append(angle(before, after))
    turns = [turn for turn in turns if turn <= 165]
    return {
        "cut_length": length,
        "teeth": sum(turns) / len(turns) if turns else math.nan,
        "turning": sum(turns) / 2 / length if length else math.nan,
    }


def near_background(point, mask):
    """Return whether one of the 17 × 17 pixels around the pixel of a point is background or outside the image."""
    row, column = math.floor(point[1]), math.floor(point[0])
    around = [(i, j) for i in range(row - 8, row + 9) for j in range(column - 8, column + 9)]
    return not all(0 <= i < mask.shape[0] and 0 <= j < mask.shape[1] and mask[i, j] for i, j in around)


def faces(surface, normal_map):
    """Return the shares of faces that are off, and counts of thin and inverted ones."""
    owners = pixel_faces(surface.mesh, normal_map.shape)
    total, shares, aspects, inverted = 0.0, {"bad_area": 0.0, "off_30": 0.0, "off_60": 0.0}, [], 0
    for f, corners in enumerate(surface.faces):
        a, b, c = surface.vertices[corners]
        normal = np.cross(b - a, c - a)
        area = np.linalg.norm(normal) / 2
        total += area
        pixels = normal_map.normals[(owners == f) & normal_map.mask].astype(float)
        off = angle(normal, pixels.sum(axis=0)) if len(pixels) else None
        shares["bad_area"] += area * (off is None or off > 45)
        shares["off_30"] += area * (off is not None and off > 30)
        shares["off_60"] += area * (off is not None and off > 60)
        p, q, r = surface.screen[corners]
        # Rows increase downwards: faces that the viewer sees have negative areas.
        twice = (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])
        inverted += twice > 0
        longest = max(math.dist(*pair) for pair in ((p, q), (q, r), (r, p)))
        aspects.append(longest / (abs(twice) / longest))
    return {
        **{name: 100 * share / total for name, share in shares.items()},
        "inverted": inverted,
        "needles": sum(aspect > 100 for aspect in aspects),
        "largest_aspect": max(aspects),
    }


def coverage(surface, normal_map):
    """Return the shares of uncovered foreground and of covered background."""
    owners = pixel_faces(surface.mesh, normal_map.shape)
    foreground = normal_map.mask.sum()
    return {
        "uncovered": 100 * (normal_map.mask & (owners < 0)).sum() / foreground,
        "spill": 100 * (~normal_map.mask & (owners >= 0)).sum() / foreground,
    }
