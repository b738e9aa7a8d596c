"""Errors of a surface against a terrain, a band of rows at a time, near the seams of tiles and elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from benchmarks.scaling.terrain import Terrain
from normalmesh import Surface
from normalmesh.evaluation.metrics import angles_between

Float = NDArray[np.float64]

#: Rows of a band, and columns of the windows in which its truth is made.
BAND, COLUMNS = 64, 2048
#: Distance (px) from a seam up to which errors count as near it.
NEAR = 8
#: Types of numbers in PLY files.
PLY_TYPES = {"float": "<f4", "double": "<f8", "uchar": "u1", "int": "<i4", "uint": "<u4"}


@dataclass(frozen=True)
class Errors:
    """Errors of a surface: of normals in degrees, of heights in pixels after alignment by a constant.

    Attributes
    ----------
    vertices, pixels
        Vertices of the surface, and pixels that count: foreground that the surface covers.
    uncovered
        Share of the foreground that the surface does not cover.
    mae, rmse
        Over all pixels.
    clear_mae, clear_rmse
        Over pixels away from jumps.
    seam_mae, seam_rmse
        Error near seams ÷ error elsewhere, both away from jumps; NaN without seams.
    """

    vertices: int
    pixels: int
    uncovered: float
    mae: float
    rmse: float
    clear_mae: float
    clear_rmse: float
    seam_mae: float
    seam_rmse: float


def errors_of(surface: Surface, terrain: Terrain, tile: int | None = None) -> Errors:
    """Compare a surface with the truth; ``tile`` is the side of the tiles whose seams count."""
    at_seam = _at_seams(terrain.side, tile)
    sums = np.zeros((3, 4))
    foreground = 0
    level: float | None = None
    for top, band in bands(surface):
        depth, normals = band.depth_map(), band.normal_map()
        parts = [(slice(top, top + len(depth)), columns) for columns in _column_slices(terrain.side)]
        if level is None:
            # Squares of small numbers round less: the level of one band is near that of all.
            level = float(np.nanmean(_differences(terrain, depth, parts[0])))
        work = [(terrain, depth, normals, part, at_seam, level) for part in parts]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for found, count in pool.map(_sums, work):
                sums += found
                foreground += count
    return _errors(sums, foreground, len(surface.vertices))


def _errors(sums: Float, foreground: int, vertices: int) -> Errors:
    """Return errors from the sums (3, 4) of pixels elsewhere, near seams, and at jumps."""
    mean = sums[:, 2].sum() / sums[:, 0].sum()
    elsewhere, seams, away, everywhere = (
        _means(each, mean) for each in (*sums[:2], sums[:2].sum(axis=0), sums.sum(axis=0))
    )
    count = int(sums[:, 0].sum())
    ratios = (seams[k] / elsewhere[k] for k in range(2))
    return Errors(vertices, count, 1 - count / foreground, *everywhere, *away, *ratios)


def _means(sums: Float, mean: float) -> tuple[float, float]:
    """Return MAE and RMSE from sums (4,): count, angles, height differences, and their squares; NaN if none counts."""
    count, angles, first, second = sums
    if count == 0:
        return np.nan, np.nan
    return float(angles / count), float(np.sqrt(second / count - 2 * mean * first / count + mean**2))


def _sums(
    given: tuple[Terrain, Float, NDArray[np.float32], tuple[slice, slice], NDArray[np.bool_], float],
) -> tuple[Float, int]:
    """Return the sums (3, 4) of a window, see `_errors`, and its number of foreground pixels."""
    terrain, depth, normals, (rows, columns), at_seam, level = given
    ground = terrain.ground(rows, columns)
    difference = terrain.depth_to_heights(depth[:, columns]) - ground.heights - level
    counts = ground.mask & np.isfinite(difference)
    place = np.where(ground.clear, at_seam[rows, None] | at_seam[None, columns], 2)[counts]
    angles = angles_between(normals[:, columns][counts], terrain.normals(ground, rows, columns)[counts])
    difference = difference[counts]
    weights = (np.ones(len(place)), angles, difference, difference**2)
    sums = np.stack([np.bincount(place, values, minlength=3) for values in weights], axis=1)
    return sums, int(ground.mask.sum())


def _differences(terrain: Terrain, depth: Float, window: tuple[slice, slice]) -> Float:
    return terrain.depth_to_heights(depth[:, window[1]]) - terrain.ground(*window).heights


def _at_seams(side: int, tile: int | None) -> NDArray[np.bool_]:
    """Return which rows, or columns, (side,) of pixel centres are near a seam."""
    places = np.arange(side) + 0.5
    seams = np.arange(tile, side, tile) if tile else np.empty(0)
    return (np.abs(places[:, None] - seams) < NEAR).any(axis=1)


def _column_slices(side: int) -> Iterator[slice]:
    for left in range(0, side, COLUMNS):
        yield slice(left, min(left + COLUMNS, side))


def bands(surface: Surface) -> Iterator[tuple[int, Surface]]:
    """Yield bands of rows from top to bottom: their first row, and the part of the surface that reaches into them."""
    rows, columns = surface.shape
    band = (np.clip(surface.screen[:, 1], 0, rows - 0.5) // BAND).astype(np.int32)
    first, last = (reduce([band[surface.faces[:, k]] for k in range(3)]) for reduce in _EXTREMES)
    by_first = np.argsort(first, kind="stable").astype(np.int32)
    starts = np.searchsorted(first, np.arange(-(-rows // BAND) + 1), sorter=by_first)
    reaching = np.empty(0, np.int32)
    for number, top in enumerate(range(0, rows, BAND)):
        reaching = np.concatenate([reaching[last[reaching] >= number], by_first[starts[number] : starts[number + 1]]])
        shape = min(BAND, rows - top), columns
        if len(reaching) > 0:
            yield top, _part(surface, np.sort(reaching), top, shape)


_EXTREMES = (np.minimum.reduce, np.maximum.reduce)


def _part(surface: Surface, members: NDArray[np.int32], top: int, shape: tuple[int, int]) -> Surface:
    """Return some faces of a surface, seen in the image whose first row is ``top``."""
    vertices, faces = np.unique(surface.faces[members], return_inverse=True)
    return Surface(
        surface.vertices[vertices],
        faces.reshape(-1, 3),
        surface.screen[vertices] - [0.0, top],
        surface.camera,
        shape,
        components=np.zeros(len(vertices), np.int32),
    )


def read_surface(path: Path, terrain: Terrain) -> Surface:
    """Return the surface of a binary PLY file as normalmesh writes it, with little memory beside it."""
    with open(path, "rb") as file:
        vertex_type, vertex_count, face_count = _ply_header(file)
        vertices = np.fromfile(file, vertex_type, vertex_count)
        faces = np.fromfile(file, np.dtype([("count", "u1"), ("corners", "<i4", 3)]), face_count)
    points = np.stack([vertices[axis].astype(np.float64) for axis in "xyz"], axis=1)
    camera = terrain.camera
    # A point is u τ_u + v τ_v + z r₀, or, behind a pinhole, a multiple of u τ_u + v τ_v + r₀.
    axes = np.column_stack([*camera.tangents, camera.rays(0.0, 0.0)])
    places = points @ np.linalg.inv(axes).T
    screen = places[:, :2] / places[:, 2:] if camera.is_central else places[:, :2]
    components = np.zeros(len(points), np.int32)
    return Surface(points, faces["corners"], screen, camera, terrain.shape, components=components)


def _ply_header(file: BinaryIO) -> tuple[np.dtype, int, int]:
    """Read the header of a PLY file of triangles; return the type of a vertex, and the numbers of both."""
    counts: dict[str, int] = {}
    fields: list[tuple[str, str]] = []
    while (words := file.readline().decode("ascii").split()) != ["end_header"]:
        if words[0] == "element":
            counts[words[1]] = int(words[2])
        elif words[0] == "property" and list(counts) == ["vertex"]:
            fields.append((words[2], PLY_TYPES[words[1]]))
    return np.dtype(fields), counts["vertex"], counts["face"]
