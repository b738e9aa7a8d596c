"""Writing solids to files for printing: 3MF, which holds the unit, or one of the formats of meshes."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from normalmesh.arguments import checked_path
from normalmesh.errors import NormalMeshError, path_text
from normalmesh.files.atomic import check_targets, write_atomically
from normalmesh.output.mesh_formats import MESH_FORMATS, WRITTEN_SUFFIXES, exact_trimesh
from normalmesh.output.three_mf import THREE_MF, encode_3mf

if TYPE_CHECKING:
    from normalmesh.mesh.solid import Solid

#: Suffixes of the files of solids.
SOLID_SUFFIXES = (THREE_MF, *WRITTEN_SUFFIXES)


def write_solid(solid: Solid, path: str | PathLike[str]) -> None:
    """Write a solid in the format of the path's suffix; see :meth:`Solid.save`."""
    path = checked_path(path)
    check_solid_suffix(path)
    mesh_format = MESH_FORMATS[path.suffix.lower()]
    check_targets([path, *mesh_format.companions(path, False)], [])
    if path.suffix.lower() == THREE_MF:
        write_atomically({path: encode_3mf(solid)})
        return
    write_atomically(mesh_format.encode_mesh(exact_trimesh(solid), path))


def check_solid_suffix(path: Path) -> None:
    """Raise :class:`NormalMeshError` unless a solid can be written in the format of a path's suffix."""
    if path.suffix.lower() not in SOLID_SUFFIXES:
        raise NormalMeshError(
            f"cannot write a solid to {path_text(path)}: the suffix must be one of {', '.join(SOLID_SUFFIXES)}"
        )
