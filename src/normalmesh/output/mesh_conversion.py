"""Conversion of mesh files from one format to another."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from normalmesh.files.atomic import write_atomically
from normalmesh.files.formats import reading
from normalmesh.output.mesh_formats import MESH_FORMATS, written_format
from normalmesh.output.mesh_reading import KIND, read_parts

if TYPE_CHECKING:
    from trimesh import Trimesh

#: Options with which trimesh neither merges nor sorts anything.
AS_STORED: dict[str, Any] = {"process": False, "maintain_order": True, "fix_texture": False}


def convert_mesh(source: Path, target: Path) -> Trimesh:
    """Write the mesh of a file in the format of the target's suffix, and return the mesh.

    Vertices keep their number and order, except to and from STL, which has none. The parts of a scene become one
    mesh. Textures, their coordinates, and colours are kept where both formats have them; colours of vertices come
    without texture coordinates.
    """
    mesh_format = written_format(target)
    mesh = read_mesh(source)
    # Colours and texture coordinates that do not fit the vertices show only now.
    with reading(source, KIND):
        files = mesh_format.encode_mesh(mesh, target)
    write_atomically(files)
    return mesh


def read_mesh(path: Path) -> Trimesh:
    """Return the mesh of a file, with its parts in their places."""
    import trimesh

    parts = read_parts(path, **AS_STORED)
    with reading(path, KIND):
        mesh: Trimesh = parts[0] if len(parts) == 1 else cast("Trimesh", trimesh.util.concatenate(parts))
        colours = mesh.vertex_attributes.pop("color", None)
        if colours is not None:  # of a PLY file, which may have coordinates into a texture, but never the texture
            mesh.visual = trimesh.visual.ColorVisuals(mesh, vertex_colors=colours)
        if not MESH_FORMATS[path.suffix.lower()].shares_vertices:
            mesh.merge_vertices(digits_vertex=_decimals(mesh))
    return mesh


def _decimals(mesh: Trimesh) -> int:
    """Return to how many decimals positions are compared: 8, more for a small mesh, or as many as 64 bits hold."""
    extent, largest = float(np.ptp(mesh.vertices, axis=0).max()), float(np.abs(mesh.vertices).max())
    wanted = 8 - math.floor(math.log10(min(extent, 1.0) or 1.0))
    return min(wanted, math.floor(math.log10(2**62 / (largest or 1.0))))
