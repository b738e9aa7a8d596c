"""TriangleModel: a triangle mesh to look at, from a file or from memory."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_path
from normalmesh.errors import NormalMeshError
from normalmesh.files.mesh_reading import read_parts, used_vertices

if TYPE_CHECKING:
    import trimesh

    #: A file, a mesh, or vertices and faces.
    Model = str | PathLike[str] | trimesh.Trimesh | tuple[ArrayLike, ArrayLike]


@dataclass(frozen=True, eq=False)
class TriangleModel:
    """Triangles in space.

    Parameters
    ----------
    vertices
        (N, 3), every one of them in some face.
    faces
        (M, 3) vertex indices.
    normals
        (N, 3) unit normals of the vertices.
    """

    vertices: NDArray[np.float64]
    faces: NDArray[np.int32]
    normals: NDArray[np.float64]

    @classmethod
    def of(cls, model: Model) -> TriangleModel:
        """The model in a file, a mesh of trimesh, or one of (vertices, faces).

        The parts of a scene are put in their places. Normals are those of the file, or those that a mesh of trimesh
        names its own. Else vertices at one place are merged, as STL repeats them for each face, and a vertex gets the
        mean of the normals around it, weighted by angle.
        """
        import trimesh

        if isinstance(model, str | PathLike):
            return _read(checked_path(model, "model"))
        if isinstance(model, trimesh.Trimesh):
            return _checked("the model", model.vertices, model.faces, model.vertex_normals)
        try:
            vertices, faces = model
            points, corners = np.asarray(vertices, np.float64), np.asarray(faces)
        except (TypeError, ValueError) as error:
            raise NormalMeshError(
                f"model must be a file, a trimesh.Trimesh or (vertices, faces), not {type(model).__name__}"
            ) from error
        return _merged("the model", points, corners)

    def moved(self, matrix: NDArray[np.float64]) -> TriangleModel:
        """The model under a similarity (4, 4): rotation, uniform scale, translation."""
        linear, shift = matrix[:3, :3], matrix[:3, 3]
        rotation = linear / np.cbrt(np.linalg.det(linear))
        return TriangleModel(self.vertices @ linear.T + shift, self.faces, self.normals @ rotation.T)


def _read(path: Path) -> TriangleModel:
    parts = read_parts(path, include_cache=True, process=False)
    # Nothing has asked a part for its normals yet: those in the cache are the file's.
    if all("vertex_normals" in part._cache for part in parts):
        normals = np.concatenate([part.vertex_normals for part in parts])
        lengths = np.linalg.norm(normals, axis=1, keepdims=True)
        return _checked(str(path), *_joined(parts), normals / np.where(lengths > 0, lengths, 1))
    return _merged(str(path), *_joined(parts))


def _joined(parts: list[trimesh.Trimesh]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Vertices and faces of all parts."""
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    return (
        np.concatenate([part.vertices for part in parts]),
        np.concatenate([part.faces + start for part, start in zip(parts, starts, strict=False)]),
    )


def _merged(name: str, vertices: NDArray[np.float64], faces: NDArray[np.generic]) -> TriangleModel:
    """The model with vertices at the same place, to nine digits, merged, and the normals that follow."""
    import trimesh

    model = _checked(name, vertices, faces, np.zeros_like(vertices))
    # trimesh counts in absolute lengths; in a model of size one, at the origin, nine digits are as good as equal.
    origin, extent = model.vertices[0], float(np.ptp(model.vertices, axis=0).max()) or 1.0
    mesh = trimesh.Trimesh((model.vertices - origin) / extent, model.faces, process=False)
    mesh.merge_vertices(digits_vertex=9)
    return _checked(name, mesh.vertices * extent + origin, mesh.faces, mesh.vertex_normals)


def _checked(name: str, vertices: ArrayLike, faces: ArrayLike, normals: ArrayLike) -> TriangleModel:
    """A model without the vertices that no face names, or an error."""
    points, corners, directions = np.asarray(vertices, np.float64), np.asarray(faces), np.asarray(normals, np.float64)
    used = used_vertices(name, points, corners)
    if not used.all():
        points, directions, corners = points[used], directions[used], (np.cumsum(used) - 1)[corners]
    return TriangleModel(
        np.ascontiguousarray(points), np.ascontiguousarray(corners, np.int32), np.ascontiguousarray(directions)
    )
