"""Solid: a closed mesh for printing, made of a surface by walls and a flat base."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike

import numpy as np

from normalmesh.array_types import Float, Int32
from normalmesh.errors import NormalMeshError, count_text
from normalmesh.mesh.components import components
from normalmesh.mesh.lengths import PIXELS, Length
from normalmesh.mesh.screen_mesh import corner_table, count_fans
from normalmesh.mesh.solid_columns import Columns
from normalmesh.mesh.surface import Surface


@dataclass(frozen=True, eq=False)
class Solid:
    """A closed triangle mesh, which stands with its flat base on z = 0, centred on x = y = 0. Immutable.

    Every edge has two faces of the same orientation, every vertex one fan of faces, and every component a positive
    volume: it is checked when a solid is made. Make one with :meth:`Surface.solid`.

    Attributes
    ----------
    vertices
        (N, 3) float64: x right, y up in the image, z from the base towards the viewer, in ``units``.
    faces
        (M, 3) int32 vertex indices, counter-clockwise as seen from outside.
    units
        Unit of the vertices, such as ``"mm"``.
    scale
        Length in the solid of one unit of the surface; differs from 1 if a width was asked for.

    Raises
    ------
    NormalMeshError
        The mesh is not closed; the message counts the faults.
    """

    vertices: Float
    faces: Int32
    units: str = "px"
    scale: float = 1.0

    def __post_init__(self) -> None:
        for name, dtype in (("vertices", np.float64), ("faces", np.int32)):
            array = np.array(getattr(self, name), dtype, order="C")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if faults := _faults(self.vertices, self.faces):
            raise NormalMeshError(f"the solid is not closed: {', '.join(faults)}")

    @cached_property
    def volumes(self) -> Float:
        """Volume (C,) of each connected component, in cubic ``units``."""
        return _volumes(self.vertices, self.faces)

    @property
    def volume(self) -> float:
        """Volume in cubic ``units``."""
        return float(self.volumes.sum())

    @property
    def extent(self) -> tuple[float, float, float]:
        """Width, depth and height in ``units``."""
        width, depth, height = np.ptp(self.vertices, axis=0).tolist()
        return width, depth, height

    def save(self, path: str | PathLike[str]) -> None:
        """Write the solid as STL, 3MF, PLY, OBJ or GLB, by the suffix of ``path``.

        If the unit is a length, 3MF holds it, and GLB stands in metres as for :meth:`Surface.save`; most programs take
        the numbers of the others as millimetres.

        Raises
        ------
        NormalMeshError
            The suffix is unknown, or the path cannot be written; an old file stays.
        """
        from normalmesh.output.mesh_writing import write_solid

        write_solid(self, path)

    def __str__(self) -> str:
        size = " × ".join(f"{length:.4g}" for length in self.extent)
        pieces = count_text(len(self.volumes), "piece", "separate pieces")
        return f"{size} {self.units}, volume {self.volume:.4g} {self.units}³, {pieces}"

    def __repr__(self) -> str:
        return f"Solid({len(self.vertices)} vertices, {len(self.faces)} faces, {self})"


def solid_of(surface: Surface, thickness: object, width: object = None) -> Solid:
    """Close a surface by walls and a base; see :meth:`Surface.solid`."""
    below = Length.parse(thickness, "thickness")
    wanted = None if width is None else Length.parse(width, "width")
    columns, camera = Columns.of(surface), surface.camera
    pixel = camera.pixel_side
    units, scale = surface.units, 1.0
    if wanted is not None:
        if wanted.unit in (None, PIXELS):
            wanted = Length(wanted.in_unit(units, pixel, "width"), units)
        units = str(wanted.unit)
        scale = _scale(surface, columns, wanted.value, below, units)
    thick = below.in_unit(units, None if pixel is None else scale * pixel, "thickness") / scale
    base = camera.towards_viewer * camera.unknown_of_depth(np.array([_base_depth(surface, thick)]))
    screen, levels, faces = columns.closed(float(base[0]))
    vertices = scale * camera.points(screen, camera.towards_viewer * levels)
    lowest, highest = vertices.min(axis=0), vertices.max(axis=0)
    origin = [(lowest[0] + highest[0]) / 2, (lowest[1] + highest[1]) / 2, lowest[2]]
    return Solid(vertices - origin, faces, units, scale)


def _base_depth(surface: Surface, thickness: float) -> float:
    """Return the depth of a base that lies so far behind the lowest point, in the unit of the surface."""
    sign = surface.camera.towards_viewer
    return float(sign * ((sign * surface.camera.depth(surface.vertices)).min() - thickness))


def _scale(surface: Surface, columns: Columns, width: float, thickness: Length, units: str) -> float:
    """Return the length in ``units`` of one unit of the surface, with which the solid is so wide.

    Behind a pinhole the base is wider than the surface, the more so the thicker it is.
    """
    camera = surface.camera
    x = camera.points(columns.screen[columns.column], camera.towards_viewer * columns.level)[:, 0]
    largest = width / float(np.ptp(x))
    if camera.pixel_side is not None:
        return largest
    thick, rays = thickness.in_unit(units, None, "thickness"), camera.rays(*columns.screen.T)[:, 0]
    # The width of the solid grows with the scale: bisect.
    low, high = 0.0, largest
    for _ in range(60):
        scale = (low + high) / 2
        base = rays * (_base_depth(surface, 0.0) * scale + thick)
        extent = np.ptp(np.concatenate([scale * x, base]))
        low, high = (scale, high) if extent < width else (low, scale)
    if low == 0.0:
        raise NormalMeshError(
            f"a base of {thickness} that widens along the rays of the camera is wider than {width:g} {units}: "
            "ask for a thinner base or a wider print"
        )
    return low


def _faults(vertices: Float, faces: Int32) -> list[str]:
    """Return what keeps a mesh from being the boundary of a body, in words; empty if nothing does."""
    opposite, crowded, misoriented = corner_table(faces, len(vertices))
    fans = count_fans(faces, opposite, len(vertices))
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    counts = {
        "open edges": np.count_nonzero(opposite < 0) - crowded - 2 * misoriented,
        "edges with more than two faces": crowded,
        "edges with two faces of opposite orientation": misoriented,
        "vertices with more than one fan of faces": np.count_nonzero(fans > 1),
        "vertices without a face": np.count_nonzero(fans == 0),
        "faces without area": np.count_nonzero(~(areas > 0)),
        "components without a positive volume": np.count_nonzero(~(_volumes(vertices, faces) > 0)),
    }
    return [f"{count} {name}" for name, count in counts.items() if count]


def _volumes(vertices: Float, faces: Int32) -> Float:
    """Return the signed volume (C,) of each component: the sum of the tetrahedra over a point inside its bounds."""
    a, b, c = (vertices[faces[:, k]] - vertices.mean(axis=0) for k in range(3))
    labels = components(faces, len(vertices))
    sixfold = np.einsum("ij,ij->i", a, np.cross(b, c))
    return np.bincount(labels[faces[:, 0]], sixfold).astype(np.float64) / 6
