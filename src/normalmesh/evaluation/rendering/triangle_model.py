"""TriangleModel: a triangle mesh to render, from a file or from memory."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from normalmesh.arguments import checked_path
from normalmesh.array_types import Float, Int32
from normalmesh.errors import NormalMeshError, path_text
from normalmesh.output.mesh_reading import read_parts, used_vertices

if TYPE_CHECKING:
    import trimesh

    #: A file, a trimesh mesh, or vertices and faces.
    Model = str | PathLike[str] | trimesh.Trimesh | tuple[ArrayLike, ArrayLike]


@dataclass(frozen=True, eq=False)
class TriangleModel:
    """A triangle mesh in space."""

    vertices: Float  # (N, 3) each belongs to a face
    faces: Int32  # (M, 3)
    normals: Float  # (N, 3) unit normals of the vertices

    @classmethod
    def of(cls, model: Model) -> TriangleModel:
        """Return the model of a file, a trimesh mesh, or (vertices, faces).

        The transformations of a scene are applied. Normals are those of the file or of the trimesh mesh. If there are
        none, vertices at the same position are merged, because STL repeats them for each face, and the normal of a
        vertex is the mean of the adjacent face normals, weighted by angle.
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

    def moved(self, matrix: Float) -> TriangleModel:
        """Return the model transformed by a similarity (4, 4): rotation, uniform scale, translation."""
        linear, shift = matrix[:3, :3], matrix[:3, 3]
        # The determinant of a very small or large scale would be out of range.
        rotation = linear / np.abs(linear).max()
        rotation /= np.cbrt(np.linalg.det(rotation))
        return TriangleModel(self.vertices @ linear.T + shift, self.faces, self.normals @ rotation.T)


def _read(path: Path) -> TriangleModel:
    from trimesh.util import append_faces

    parts = read_parts(path, include_cache=True, process=False)
    vertices, faces = append_faces([part.vertices for part in parts], [part.faces for part in parts])
    # No normals have been computed yet: those in the cache are from the file.
    if all("vertex_normals" in part._cache for part in parts):
        normals = np.concatenate([part.vertex_normals for part in parts])
        lengths = np.linalg.norm(normals, axis=1, keepdims=True)
        return _checked(path_text(path), vertices, faces, normals / np.where(lengths > 0, lengths, 1))
    return _merged(path_text(path), vertices, faces)


def _merged(name: str, vertices: ArrayLike, faces: ArrayLike) -> TriangleModel:
    """Merge vertices that agree to nine digits, and return the model with its vertex normals."""
    import trimesh

    model = _checked(name, vertices, faces, np.zeros(np.shape(vertices)))
    # trimesh compares absolute lengths: scale the model to unit size at the origin, where nine digits count as equal.
    origin, extent = model.vertices[0], float(np.ptp(model.vertices, axis=0).max()) or 1.0
    mesh = trimesh.Trimesh((model.vertices - origin) / extent, model.faces, process=False)
    mesh.merge_vertices(digits_vertex=9)
    return _checked(name, mesh.vertices * extent + origin, mesh.faces, mesh.vertex_normals)


def _checked(name: str, vertices: ArrayLike, faces: ArrayLike, normals: ArrayLike) -> TriangleModel:
    """Return the model without unused vertices; raise if it is invalid."""
    points, corners, directions = np.asarray(vertices, np.float64), np.asarray(faces), np.asarray(normals, np.float64)
    used = used_vertices(name, points, corners)
    if not used.all():
        points, directions, corners = points[used], directions[used], (np.cumsum(used) - 1)[corners]
    return TriangleModel(
        np.ascontiguousarray(points), np.ascontiguousarray(corners, np.int32), np.ascontiguousarray(directions)
    )
