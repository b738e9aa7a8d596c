"""Looks: figures for what is seen in a picture of a surface, such as teeth, spikes and cracks, without ground truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import ndimage

from normalmesh.arguments import checked_array, checked_instance
from normalmesh.array_types import Bool, Float, Int, Int32, Integer
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.mesh.cut_mesh import edge_ends
from normalmesh.mesh.screen_mesh import ScreenMesh, following
from normalmesh.mesh.surface import Surface, face_crosses
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.normal_map_like import NormalMapLike, as_normal_map

#: Angle between a face and its pixels from which the face is bad, in degrees.
BAD = 45.0
#: Turning angle of a cut from which its vertex is a tip, where the cut turns back, in degrees.
TIP = 165.0
#: Aspect of a face on the screen from which it is a needle.
NEEDLE = 100.0
#: Vertices of the outline have a background pixel at most this far from their own, in pixels.
OUTLINE = 8
#: Parts of a pixel to which positions are rounded to find the two sides of a cut: mesh files have single precision.
PARTS = 64
#: Angle (degrees) by which mean normals of 3 × 3 pixels turn over 2 px from which a map has contrast.
CONTRAST = 15.0
#: Places at most this far (px), in both directions, from contrast or from a cut are not smooth.
NEAR = 3
#: Angle (degrees) beside the view from which gaps are seen.
BESIDE = 30.0


@dataclass(frozen=True)
class Looks:
    """How a surface looks. No figure needs ground truth; all but ``height`` are better the lower they are.

    A *cut* is a boundary of the surface that is not on the outline of the mask. It has two sides, and counts once. A
    face is *off* by the angle between its normal and the mean normal of the pixels whose centres it owns. Shares of
    area are percentages of the area of the surface in space.

    Attributes
    ----------
    teeth
        Mean turning angle in degrees at the inner vertices of cuts, without tips (> 165°) and places where several cuts
        meet; NaN if there are none.
    turning
        Sum of the same angles over the length of the cuts, in degrees per pixel; NaN without cuts. Vertices on a
        straight line lower ``teeth``, but not this.
    cut_length
        Length of the cuts on the screen in pixels.
    bad_area
        Share of the faces that are off by more than 45° or own no foreground pixel.
    off_30, off_60
        Shares of the faces that own pixels and are off by more than 30° and 60°.
    inverted
        Number of faces that are seen from behind.
    needles
        Number of faces whose longest edge is more than 100 times as long as their height above it, on the screen.
    largest_aspect
        Largest ratio of longest edge and height; infinite if a face is degenerate.
    uncovered
        Percentage of the foreground pixels whose centres are in no face.
    spill
        Background pixels whose centres are in a face, as a percentage of the foreground.
    ghosts
        Share of the faces that are off by more than 30° at pixels where the map is smooth: in no part of it within 3 px
        do normals, averaged over 3 × 3 pixels, turn by more than 15° over 2 px, nor is there a cut. Of a face that is
        there in part, that part counts.
    gaps
        Area between the two sides of cuts as it is seen from 30° beside the view: the mean over left, right, above and
        below, each of which sees some of it, as a percentage of the area of the surface in view.
    height
        Range of the heights (perspective: of the logarithms of the distances) of the vertices over that of the pixels
        given; None if none were given.
    """

    teeth: float
    turning: float
    cut_length: float
    bad_area: float
    off_30: float
    off_60: float
    inverted: int
    needles: int
    largest_aspect: float
    uncovered: float
    spill: float
    ghosts: float
    gaps: float
    height: float | None = None

    @property
    def cracks(self) -> float:
        """The same as ``cut_length``, for maps without jumps such as reliefs: every cut is a crack there."""
        return self.cut_length


def measure_looks(surface: Surface, normal_map: NormalMapLike, pixels: ArrayLike | None = None) -> Looks:
    """Measure how a surface looks: teeth along cuts, faces that do not follow their pixels, needles and heights.

    Parameters
    ----------
    surface
        The surface.
    normal_map
        The normal map that it was reconstructed from.
    pixels
        Depth (H, W) of the pixels to compare heights with, such as
        ``integrate_pixels(normal_map, discontinuities=True)``; NaN outside.

    Returns
    -------
    Looks
        Figures that are better the lower they are, except ``height``.

    Raises
    ------
    NormalMeshError
        The sizes of surface, normal map and pixels differ, or distances of pixels are not positive.
    """
    normal_map = as_normal_map(normal_map)
    shape = normal_map.shape
    if checked_instance(surface, Surface, "surface").shape != shape:
        raise NormalMeshError(
            f"the surface has {shape_text(surface.shape)} pixels but the normal_map has {shape_text(shape)}"
        )
    height = None if pixels is None else _height(surface, pixels)
    return looks_of(surface, surface.owners()[1], normal_map, height)


def looks_of(surface: Surface, owners: Int32, normal_map: NormalMap, height: float | None = None) -> Looks:
    """Return the looks of a surface whose faces own the pixels as ``owners`` (H, W) says, −1 for no face."""
    mesh, count = surface.mesh, len(surface.faces)
    owned = owners >= 0
    seen = owned & normal_map.mask
    pixels, given = np.bincount(owners[seen], minlength=count), normal_map.normals[seen]
    sums = np.stack([np.bincount(owners[seen], given[:, k], count) for k in range(3)], axis=1)
    uncovered, spilled = (int(np.count_nonzero(each)) for each in (normal_map.mask & ~owned, owned & ~normal_map.mask))
    border = _Border.of(mesh, normal_map.mask)
    teeth, turning, cut_length = _cuts(mesh, border)
    smooth = seen & ~_rough(normal_map, mesh.vertices[border.ends[border.cut]])
    share_smooth = np.bincount(owners[smooth], minlength=count) / np.maximum(pixels, 1)
    normals = face_crosses(surface.vertices, surface.faces)
    areas = np.linalg.norm(normals, axis=1)
    cosines = np.einsum("ij,ij->i", normals, sums)
    lengths = areas * np.linalg.norm(sums, axis=1)

    def share(degrees: float, without_pixels: bool = False, parts: Float | float = 1.0) -> float:
        off = (cosines < np.cos(np.radians(degrees)) * lengths) | ((pixels == 0) & without_pixels)
        return float(100 * (parts * areas)[off].sum() / areas.sum()) if areas.any() else 0.0

    aspects, foreground = _aspects(mesh), normal_map.foreground
    return Looks(
        teeth=teeth,
        turning=turning,
        cut_length=cut_length,
        bad_area=share(BAD, without_pixels=True),
        off_30=share(30),
        off_60=share(60),
        inverted=int(np.count_nonzero(mesh.areas < 0)),
        needles=int(np.count_nonzero(aspects > NEEDLE)),
        largest_aspect=float(aspects.max()),
        uncovered=100 * uncovered / foreground,
        spill=100 * spilled / foreground,
        ghosts=share(30, parts=share_smooth),
        gaps=_gaps(surface, border, float(np.abs(normals[:, 2]).sum() / 2)),
        height=height,
    )


def _aspects(mesh: ScreenMesh) -> Float:
    """Return the longest edge of each face over its height above it (M,), infinite for degenerate faces."""
    corners = mesh.vertices[mesh.faces]
    squares = ((corners - np.roll(corners, 1, axis=1)) ** 2).sum(axis=2).max(axis=1)
    twice = 2 * np.abs(mesh.areas)
    return np.divide(squares, twice, out=np.full(len(squares), np.inf), where=twice > 0)


class _Border(NamedTuple):
    """The boundary edges of a mesh: the corners (K,) across from them, their ends (K, 2), and which are cuts.

    ``places`` (K, 2) are numbers of the places of the ends, ``line`` (K,) of that of the edge: the same for both sides
    of a cut. ``shared`` (K,) says whether an edge lies on another one.
    """

    corners: Int
    ends: Integer
    places: Int
    line: Int
    shared: Bool
    cut: Bool

    @classmethod
    def of(cls, mesh: ScreenMesh, mask: Bool) -> _Border:
        corners = np.flatnonzero(mesh.opposite < 0)
        ends = edge_ends(mesh, corners)
        places = _places(mesh.vertices[ends])
        line, shared = _coincide(places)
        cut = shared | ~_near_background(mesh.vertices[ends], mask).all(axis=1)
        return cls(corners, ends, places, line, shared, cut)


def _rough(normal_map: NormalMap, cuts: Float) -> Bool:
    """Return the pixels (H, W) near contrast of the normals, or near cuts (K, 2, 2), given by their ends u, v."""
    mask = normal_map.mask
    sums = ndimage.uniform_filter(np.where(mask[..., None], normal_map.normals, 0), (3, 3, 0), mode="constant")
    means = sums / np.maximum(np.linalg.norm(sums, axis=-1, keepdims=True), 1e-9)
    rough = np.zeros(mask.shape, np.bool_)
    for turned, turned_mask, turned_rough in ((means, mask, rough), (means.swapaxes(0, 1), mask.T, rough.T)):
        cosines = (turned[2:] * turned[:-2]).sum(axis=-1)
        known = turned_mask[2:] & turned_mask[1:-1] & turned_mask[:-2]
        turned_rough[1:-1] |= known & (cosines < np.cos(np.radians(CONTRAST)))
    # Points along cuts, at most half a pixel apart.
    for start, end in cuts:
        along = np.linspace(start, end, int(2 * np.hypot(*(end - start))) + 2)
        columns, rows = np.clip(np.floor(along), 0, np.array(mask.shape[::-1]) - 1).astype(np.int64).T
        rough[rows, columns] = True
    near: Bool = ndimage.maximum_filter(rough, 2 * NEAR + 1, mode="constant")
    return near


def _gaps(surface: Surface, border: _Border, area: float) -> float:
    """Return the area between the sides of cuts, as :class:`Looks` describes it, of a surface with an area in view."""
    order = np.argsort(border.line[border.shared], kind="stable")
    shared = np.flatnonzero(border.shared)[order]
    first = np.flatnonzero(border.line[shared[:-1]] == border.line[shared[1:]])
    (a, b), (c, d) = (surface.vertices[border.ends[shared[k]]].swapaxes(0, 1) for k in (first, first + 1))
    # Sides run in opposite directions. A gap is seen from one of two opposite directions only.
    across = np.abs(np.cross(c - a, d - b)[:, :2]).sum() / 2
    return float(100 * np.sin(np.radians(BESIDE)) * across / 4 / area) if area else 0.0


def _cuts(mesh: ScreenMesh, edges: _Border) -> tuple[float, float, float]:
    """Return teeth, turning and length of the cuts of a mesh."""
    border, ends, places, cut = edges.corners, edges.ends, edges.places, edges.cut.copy()
    steps = (mesh.vertices[ends[:, 1]] - mesh.vertices[ends[:, 0]]) @ np.array([1, 1j])
    length = float(np.abs(steps[cut]).sum())
    cut &= steps != 0
    after = np.searchsorted(border, _next_on_boundary(mesh, border))
    # Where several cuts meet, they branch off rather than turn.
    passes = np.bincount(places[cut, 0], minlength=places.max(initial=0) + 1)
    both = cut & cut[after] & (passes[places[:, 1]] <= 2)
    turns = np.degrees(np.abs(np.angle(steps[after[both]] / steps[both])))
    turns = turns[turns <= TIP]
    # Each side of a cut has its length.
    return (
        float(turns.mean()) if len(turns) else np.nan,
        float(turns.sum() / length) if length else np.nan,
        length / 2,
    )


def _places(edges: Float) -> Int:
    """Return numbers (K, 2) of the places of the ends of edges (K, 2, 2), the same for the same place."""
    parts = np.rint(PARTS * edges)
    return np.unique(parts[..., 0] + 1j * parts[..., 1], return_inverse=True)[1].reshape(-1, 2)


def _coincide(places: Int) -> tuple[Int, Bool]:
    """Return numbers (K,) of edges, given by the places (K, 2) of their ends, and which of them lie on another one."""
    low, high = places.min(axis=1, initial=len(places) * 2), places.max(axis=1, initial=0)
    _, which, counts = np.unique(low * 2 * len(places) + high, return_inverse=True, return_counts=True)
    return which.reshape(-1), counts[which.reshape(-1)] > 1


def _near_background(points: Float, mask: Bool) -> Bool:
    """Return which points (..., 2), given as u, v, have a background pixel at most OUTLINE from their own pixel."""
    near = ndimage.maximum_filter(~np.pad(mask, OUTLINE + 1), 2 * OUTLINE + 1)
    last = np.array(near.shape[::-1]) - 1
    columns, rows = np.moveaxis(np.clip(np.floor(points) + OUTLINE + 1, 0, last).astype(np.int64), -1, 0)
    found: Bool = near[rows, columns]
    return found


def _next_on_boundary(mesh: ScreenMesh, corners: Integer) -> Integer:
    """Return the corners (K,) across from the boundary edges that start where those across from ``corners`` (K,) end.

    They are found by turning around the end from face to face.
    """
    walk = following(corners)
    inner = np.flatnonzero(mesh.opposite[walk] >= 0)
    while len(inner):
        walk[inner] = following(mesh.opposite[walk[inner]])
        inner = inner[mesh.opposite[walk[inner]] >= 0]
    return walk


def _height(surface: Surface, pixels: ArrayLike) -> float:
    """Return the range of the heights of a surface over that of pixels (H, W)."""
    depth = checked_array(pixels, "pixels").astype(np.float64)
    if depth.shape != surface.shape:
        raise NormalMeshError(f"pixels is {shape_text(depth.shape)} but the surface is {shape_text(surface.shape)}")
    depth = depth[np.isfinite(depth)]
    camera = surface.camera
    camera.check_depths(depth, "pixels")
    ranges = [np.ptp(camera.unknown_of_depth(each)) for each in (camera.depth(surface.vertices), depth) if len(each)]
    if len(ranges) < 2:
        raise NormalMeshError("pixels has no finite depth")
    return float(ranges[0] / ranges[1]) if ranges[1] else np.nan
