"""Measure the looks of a surface slowly, from the definitions, by loops over faces, edges and pixels."""

import itertools
import math

import numpy as np

from naive_metrics import angle
from normalmesh import pixel_faces


def looks(surface, normal_map):
    """Return the figures by name, without the height."""
    return {
        **cuts(surface, normal_map.mask),
        **faces(surface, normal_map),
        **coverage(surface, normal_map),
        "ghosts": ghosts(surface, normal_map),
        "gaps": gaps(surface),
        "rim": rim(surface, normal_map.mask),
    }


def rim(surface, mask):
    """Return the mean distance in px, in space, of points of the outline from the middle of those 2 px aside."""
    (boundary, _), cut = boundary_edges(surface), set(cut_edges(surface, mask))
    following, camera, distances = dict(boundary), surface.camera, []
    while following:
        # A loop may begin anywhere; with the edge of the first corner it gives the same points.
        loop = [min(following, key=lambda a: corner_across(surface, a, following[a]))]
        while loop[-1] in following:
            loop.append(following.pop(loop[-1]))
        places = [surface.screen[vertex] for vertex in loop]
        length = sum(math.dist(p, q) for p, q in itertools.pairwise(places))
        depths = camera.depth(surface.vertices[loop])
        pixel = np.mean(camera.pixel_length * camera.depth_per_unknown(depths))

        def at(along, loop=loop, places=places, length=length):
            """Return the point at a place of the loop, and its edge."""
            along %= length
            for k in range(len(places) - 1):
                side = math.dist(places[k], places[k + 1])
                if along < side:
                    break
                along -= side
            a, b = surface.vertices[loop[k]], surface.vertices[loop[k + 1]]
            return a + along / side * (b - a), (loop[k], loop[k + 1])

        for along in range(math.ceil(length) if length > 16 else 0):
            around = [at(along + step) for step in (-2, -1, 0, 1, 2)]
            if not any(edge in cut for _, edge in around):
                middle = (around[0][0] + around[4][0]) / 2
                distances.append(math.dist(around[2][0], middle) / pixel)
    return float(np.mean(distances))


def corner_across(surface, a, b):
    """Return the corner across from an edge: its face, and the place in it."""
    for f, corners in enumerate(surface.faces.tolist()):
        if a in corners and b in corners:
            return 3 * f + next(k for k in range(3) if corners[k] not in (a, b))
    raise ValueError


def cuts(surface, mask):
    """Return length, teeth and turning of boundary edges that lie on another one or have an end inside the mask."""
    place = [tuple(point) for point in surface.screen.tolist()]
    cut = cut_edges(surface, mask)
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


def boundary_edges(surface):
    """Return the boundary edges as pairs of vertices, and the pairs of places between which they lie."""
    sides = {(f[k], f[k - 2]) for f in surface.faces.tolist() for k in range(3)}
    boundary = [(a, b) for a, b in sides if (b, a) not in sides]
    return boundary, [frozenset(tuple(surface.screen[vertex].tolist()) for vertex in edge) for edge in boundary]


def cut_edges(surface, mask):
    """Return the boundary edges that lie on another one or have an end inside the mask."""
    boundary, lines = boundary_edges(surface)
    return [
        edge
        for edge, line in zip(boundary, lines, strict=True)
        if lines.count(line) > 1 or not all(near_background(surface.screen[vertex], mask) for vertex in edge)
    ]


def ghosts(surface, normal_map):
    """Return the share of faces that are off by more than 30°, as far as their pixels are smooth."""
    owners, mask = pixel_faces(surface.mesh, normal_map.shape), normal_map.mask
    height, width = mask.shape
    rough = {(i, j) for i in range(height) for j in range(width) if mask[i, j] and has_contrast(i, j, normal_map)}
    for edge in cut_edges(surface, mask):
        a, b = surface.screen[list(edge)]
        for share in np.linspace(0, 1, int(2 * math.dist(a, b)) + 2):
            u, v = a + share * (b - a)
            rough.add((min(max(math.floor(v), 0), height - 1), min(max(math.floor(u), 0), width - 1)))
    total = ghost = 0.0
    for f, corners in enumerate(surface.faces):
        a, b, c = surface.vertices[corners]
        normal = np.cross(b - a, c - a)
        own = np.argwhere((owners == f) & mask)
        total += np.linalg.norm(normal)
        if len(own) and angle(normal, normal_map.normals[tuple(own.T)].astype(float).sum(axis=0)) > 30:
            smooth = [all(max(abs(i - p), abs(j - q)) > 3 for p, q in rough) for i, j in own]
            ghost += np.linalg.norm(normal) * np.mean(smooth)
    return 100 * ghost / total


def has_contrast(i, j, normal_map):
    """Return whether mean normals of 3 × 3 pixels turn by more than 15° between the pixels on both sides of a pixel."""
    mask = normal_map.mask
    for down, right in ((1, 0), (0, 1)):
        ends = [(i - down, j - right), (i + down, j + right)]
        if all(0 <= p < mask.shape[0] and 0 <= q < mask.shape[1] and mask[p, q] for p, q in ends):
            sums = []
            for p, q in ends:
                part = slice(max(p - 1, 0), p + 2), slice(max(q - 1, 0), q + 2)
                sums.append(normal_map.normals[part][mask[part]].astype(float).sum(axis=0))
            if angle(*sums) > 15:
                return True
    return False


def gaps(surface):
    """Return the area between edges at the same place, seen from 30° beside, over that of the surface from the front.

    It is a polygon of two triangles, seen from one side of it.
    """
    boundary, lines = boundary_edges(surface)
    seen = 0.0
    for k, line in enumerate(lines):
        if line in lines[:k]:
            (a, b), (c, d) = surface.vertices[list(boundary[lines.index(line)])], surface.vertices[list(boundary[k])]
            gap = np.cross(b - a, c - a) / 2 + np.cross(c - a, d - a) / 2
            for beside in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                seen += max(gap[:2] @ beside, 0) * math.sin(math.radians(30)) / 4
    corners = surface.vertices[surface.faces]
    return 100 * seen / sum(abs(np.cross(b - a, c - a)[2]) / 2 for a, b, c in corners)


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
