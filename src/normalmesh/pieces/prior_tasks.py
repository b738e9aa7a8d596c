"""Tasks of priors in pieces: what the points in a tile belong to, their faces, and the terms of the faces of a tile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float, Int32
from normalmesh.engine.array_file import Arrays
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.plane_surface import PlaneSurface
from normalmesh.integration.prior import nearest_pixels
from normalmesh.integration.prior_faces import faces_at
from normalmesh.integration.prior_terms import FacePoints, face_terms
from normalmesh.mesh.raster import pixel_faces
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.component_maps import window_camera
from normalmesh.pieces.clean_map import CleanMap
from normalmesh.pieces.map_windows import Window, window_around
from normalmesh.pieces.mask_components import MaskComponents
from normalmesh.pieces.tile_faces import TileMesh

#: Distance (px) around a tile in which the pixels nearest to its points lie.
AROUND = 4


@dataclass(frozen=True, eq=False)
class NearFaces:
    """The faces of a mesh that may own pixels of a tile.

    Attributes
    ----------
    vertices : (n, 2)
        Positions in the image.
    faces : (m, 3) int32
    home : (m,) int32
        The label that each face lies on.
    apart : (L + 1,) bool
        Labels that the mesh tells apart.
    """

    vertices: Float
    faces: Int32
    home: Int32
    apart: Bool

    def owners(self, tile: Window, screen: Float, label: Int32) -> Int32:
        """Return the face (K,) for each point (K, 2) in a tile, −1 for none."""
        if len(self.faces) == 0:
            return np.full(len(screen), -1, np.int32)
        mesh = ScreenMesh(self.vertices - tile.corner, self.faces)
        return faces_at(mesh, self.home, self.apart, screen - tile.corner, label, tile.shape)


@dataclass(frozen=True, eq=False)
class DepthWindow:
    """A window of a depth map.

    Attributes
    ----------
    depths : (h, w)
        NaN where they are unknown.
    weight
        Weight of a pixel.
    home : (m,) int32
        The label that each face of a tile and around it lies on.
    apart : (L + 1,) bool
        Labels that the mesh tells apart.
    """

    depths: NDArray[Any]
    weight: float
    home: Int32
    apart: Bool


def point_labels(clean: CleanMap, tile: Window, screen: Float) -> Arrays:
    """Return the ``labels`` (K,) of the pixels on or next to which points (K, 2) lie, 0 for points off the mask."""
    area = tile.grown(AROUND, Window.whole(clean.shape))
    pixels = nearest_pixels(screen - area.corner, clean.mask_window(area.rows, area.columns))
    labels = clean.components.labels(area).ravel()
    return {"labels": np.where(pixels >= 0, labels[pixels], 0)}


def label_pairs(clean: CleanMap, parts: MaskComponents, tile: Window) -> Arrays:
    """Return all ``pairs`` (P, 2) of the labels of a component of the mask and of a part of it, in a tile."""
    both = [each.labels(tile).ravel() for each in (clean.components, parts)]
    pairs = np.unique(np.stack(both, axis=1), axis=0)
    return {"pairs": pairs[pairs[:, 1] > 0]}


def point_faces(tile: Window, near: NearFaces, screen: Float, label: Int32) -> Arrays:
    """Return the ``faces`` (K,), among those near a tile, of points (K, 2) in it, −1 for none."""
    return {"faces": near.owners(tile, screen, label)}


def depth_faces(clean: CleanMap, tile: Window, near: NearFaces, depths: NDArray[Any]) -> Arrays:
    """Return those ``faces`` near a tile that own pixels whose depth is known; ``depths`` (h, w) are those of the tile.

    Of pixels that no face of their label owns, return ``screen`` (K, 2), ``depth`` and ``label`` (K,).
    """
    screen, depth, label = _known_pixels(clean, tile, depths)
    faces = near.owners(tile, screen, label)
    lost = faces < 0
    return {"faces": np.unique(faces[~lost]), "screen": screen[lost], "depth": depth[lost], "label": label[lost]}


def tile_terms(
    clean: CleanMap,
    part: TileMesh,
    equations: Mapping[str, Any],
    offsets: Float,
    points: FacePoints,
    pixels: DepthWindow | None,
) -> Arrays:
    """Return the terms of a prior on the faces of a tile.

    Parameters
    ----------
    clean, part
    equations
        Result of :func:`.tile_equations`.
    offsets
        (m,) offsets of all faces of the part without a prior.
    points
        Points on faces of the tile, which are numbered within the part.
    pixels
        The depth map in the window around the part.

    Returns
    -------
    The ``faces`` (K,) of the whole mesh that terms are about, their ``values`` and ``weights``, and their rows over
    the faces of the whole mesh in the CSR format: ``pointers``, ``columns``, ``numbers``.
    """
    area = window_around(part.vertices, clean.shape)
    camera = window_camera(clean.camera, area.left, area.top)
    system = PlaneSurface(FaceMeans(part.screen(area), camera, np.array(equations["table"])))
    points = points._replace(feet=points.feet - area.corner)
    if pixels is not None:
        points = _joined(points, _own_pixels(clean, area, system.means.mesh, part.own, pixels))
    terms = face_terms(system, offsets, points)
    return {
        "faces": part.numbers[terms.faces],
        "values": terms.values,
        "weights": terms.weights,
        "pointers": terms.rows.indptr.astype(np.int64),
        "columns": part.numbers[terms.rows.indices].astype(np.int32),
        "numbers": terms.rows.data,
    }


def _own_pixels(clean: CleanMap, area: Window, mesh: ScreenMesh, own: int, pixels: DepthWindow) -> FacePoints:
    """Return the pixels of a depth map on those faces of a mesh that come first, relative to a window."""
    screen, depth, label = _known_pixels(clean, area, pixels.depths)
    feet = screen - area.corner
    column, row = np.floor(feet).astype(np.int64).T
    faces = pixel_faces(mesh, area.shape)[row, column]
    here = (faces >= 0) & (faces < own)
    here &= (pixels.home[faces] == label) | ~pixels.apart[label]
    count = np.count_nonzero(here)
    unknown, weights = clean.camera.unknown_of_depth(depth[here]), np.full(count, pixels.weight)
    return FacePoints(faces[here], feet[here], np.zeros((count, 2)), unknown, weights)


def _known_pixels(clean: CleanMap, area: Window, depths: NDArray[Any]) -> tuple[Float, Float, Int32]:
    """Return centres (K, 2), depths and labels (K,) of the pixels of a window whose depth is known."""
    labels = clean.components.labels(area)
    row, column = np.nonzero(np.isfinite(depths) & (labels > 0))
    screen: Float = np.stack([column + 0.5, row + 0.5], axis=1) + area.corner
    return screen, depths[row, column].astype(np.float64), labels[row, column]


def _joined(one: FacePoints, other: FacePoints) -> FacePoints:
    return FacePoints(*(np.concatenate(both) for both in zip(one, other, strict=True)))
