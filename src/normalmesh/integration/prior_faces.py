"""The faces that the points of a prior act on: those of the component of the mask that each point lies on.

A decimated mesh does not cover every pixel of the mask, and may cover some of another component. A point whose pixel
belongs to no face of its component acts on the nearest place of the outline of that component.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Bool, Float, Int, Int32, Integer
from normalmesh.mesh.cut_mesh import edge_ends
from normalmesh.mesh.raster import pixel_faces
from normalmesh.mesh.screen_mesh import ScreenMesh

#: Maximum distance (px) of a point of the foreground from the outline of its component's mesh.
MAX_OUTLINE_DISTANCE = 4.0
#: Distance (px) between samples of outlines.
SPACING = 0.5
#: Share of the pixels of a part beside jumps from which on the mesh has that part, too.
MIN_SHARE = 0.5
#: Faces with less area (px²) have no plane.
LEAST_PLANE_AREA = 1e-6

_LEVELS = 4  # of the lattice of samples in a face
_SAMPLED = 64  # parts of fewer faces are located by all samples, others by the centroids of their faces


class PointFaces(NamedTuple):
    """Faces of points, and where on them."""

    faces: Int32  # (K,): −1 for points out of reach
    feet: Float  # (K, 2): the points where their face covers their pixel, otherwise the nearest places of the outline


def told_apart(mesh: ScreenMesh, home: Int32, pixels: Int, whole: Bool) -> Bool:
    """Return which labels (L + 1,) the mesh has faces of, from the label (M,) of its faces.

    ``pixels`` (L + 1,) are their numbers of pixels. Labels that are not ``whole`` (L + 1,) components are parts on
    either side of jumps, which the mesh need not have.
    """
    area = np.bincount(home, mesh.areas, len(whole))
    return np.where(whole, area > 0, area > MIN_SHARE * pixels)


def faces_at(
    mesh: ScreenMesh, home: Int32, apart: Bool, screen: Float, label: Integer, shape: tuple[int, int]
) -> Int32:
    """Return the faces (K,) of their label that own the pixels of points (K, 2), −1 for none.

    Where the mesh does not tell labels apart, a point stays on the face of its pixel.
    """
    column, row = np.floor(screen).astype(np.int64).T
    inside = (column >= 0) & (row >= 0) & (column < shape[1]) & (row < shape[0])
    faces = np.full(len(screen), -1, np.int32)
    faces[inside] = pixel_faces(mesh, shape)[row[inside], column[inside]]
    faces[apart[label] & (home[faces] != label)] = -1
    return faces


def placed_points(
    mesh: ScreenMesh, home: Int32, apart: Bool, faces: Int32, screen: Float, label: Integer
) -> PointFaces:
    """Return the faces of points, also of those (K,) without one (−1) that the outline of their label is near to."""
    faces, feet, lost = faces.copy(), screen.copy(), np.flatnonzero((faces < 0) & apart[label])
    if len(lost):
        faces[lost], feet[lost] = on_outline(mesh, home, screen[lost], label[lost])
    return PointFaces(faces, feet)


def face_labels(mesh: ScreenMesh, labels: Integer) -> Int32:
    """Return the component (M,) of a mask, labelled (H, W) from 1, that the part of the mesh of each face lies on.

    It is the component on which most of the area of the part lies; 0 if it lies on none.
    """
    count = int(labels.max())
    if count == 1:
        return np.ones(len(mesh.faces), np.int32)
    points, face = samples_of_faces(mesh)
    column, row = np.floor(points).astype(np.int64).T
    row, column = np.clip(row, 0, labels.shape[0] - 1), np.clip(column, 0, labels.shape[1] - 1)
    return elected_labels(mesh, face, labels[row, column], count)


def samples_of_faces(mesh: ScreenMesh) -> tuple[Float, Int]:
    """Return points (S, 2) by which to find the labels of the faces, and the face (S,) of each."""
    part = mesh.components[mesh.faces[:, 0]]
    small = np.flatnonzero(np.bincount(part)[part] < _SAMPLED)
    corners = mesh.vertices[mesh.faces]
    points = np.concatenate([corners.mean(axis=1), (_lattice() @ corners[small]).reshape(-1, 2)])
    return points, np.concatenate([np.arange(len(part)), np.repeat(small, len(_lattice()))])


def elected_labels(mesh: ScreenMesh, face: Int, found: Integer, count: int) -> Int32:
    """Return the label (M,) of the part of each face that most of its samples (S,) have found, of ``count`` labels."""
    part = mesh.components[mesh.faces[:, 0]]
    pairs, number = np.unique(part[face] * np.int64(count + 1) + found, return_inverse=True)
    votes = np.where(pairs % (count + 1) > 0, np.bincount(number, mesh.areas[face]), -1.0)
    # The last one in ascending order has the most votes.
    order = np.lexsort((votes, pairs // (count + 1)))
    home = np.zeros(int(part.max()) + 1, np.int32)
    home[(pairs // (count + 1))[order]] = (pairs % (count + 1))[order]
    return home[part]


def _lattice() -> Float:
    """Return points (S, 3) inside of a face in barycentric coordinates."""
    steps = [(i, j, _LEVELS - 1 - i - j) for i in range(_LEVELS) for j in range(_LEVELS - i)]
    return (np.array(steps) + 1 / 3) / _LEVELS


def on_outline(mesh: ScreenMesh, home: Int32, points: Float, label: Integer) -> tuple[Int32, Float]:
    """Return the face (K,), −1 beyond the maximum distance, and the place (K, 2), nearest to points on the outlines."""
    from scipy.spatial import cKDTree

    corners = np.flatnonzero(mesh.opposite < 0)
    corners = corners[(mesh.areas[corners // 3] > LEAST_PLANE_AREA) & np.isin(home[corners // 3], label)]
    start, end = mesh.vertices[edge_ends(mesh, corners)].transpose(1, 0, 2)
    pieces = np.ceil(np.linalg.norm(end - start, axis=1) / SPACING).astype(np.int64) + 1
    edge = np.repeat(np.arange(len(corners)), pieces)
    along = (np.arange(len(edge)) - (np.cumsum(pieces) - pieces)[edge]) / (pieces[edge] - 1).clip(1)
    samples = start[edge] + along[:, None] * (end - start)[edge]
    # Components are layers farther apart than the reach.
    layer = 2 * (MAX_OUTLINE_DISTANCE + SPACING)
    tree = cKDTree(np.column_stack([samples, layer * home[corners // 3][edge]]))
    distance, nearest = tree.query(np.column_stack([points, layer * label]), distance_upper_bound=MAX_OUTLINE_DISTANCE)
    found = np.flatnonzero(np.isfinite(distance))
    faces, feet = np.full(len(points), -1, np.int32), points.copy()
    edge = edge[nearest[found]]
    step = (end - start)[edge]
    share = ((points[found] - start[edge]) * step).sum(axis=1) / np.maximum((step**2).sum(axis=1), 1e-300)
    faces[found] = corners[edge] // 3
    feet[found] = start[edge] + np.clip(share, 0, 1)[:, None] * step
    return faces, feet
