"""Writing solids to files for printing: 3MF, which holds the unit, or one of the formats of meshes."""

from __future__ import annotations

import io
import zipfile
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from normalmesh.arguments import checked_path
from normalmesh.errors import NormalMeshError, path_text
from normalmesh.files.atomic import check_targets, write_atomically
from normalmesh.files.mesh_formats import MESH_FORMATS, WRITTEN_SUFFIXES
from normalmesh.mesh.lengths import MILLIMETRES

if TYPE_CHECKING:
    from normalmesh.mesh.solid import Solid

#: Suffix of the format of 3D printing, in which only solids are written.
THREE_MF = ".3mf"
#: Suffixes of the files of solids.
SOLID_SUFFIXES = (THREE_MF, *WRITTEN_SUFFIXES)
#: Units of 3MF by their length in millimetres.
UNITS_3MF = {0.001: "micron", 1.0: "millimeter", 10.0: "centimeter", 25.4: "inch", 304.8: "foot", 1000.0: "meter"}

CONTENT_TYPES = """<?xml version="1.0" encoding="UTF-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="model" ContentType="application/vnd.ms-package.3dmanufacturing-3dmodel+xml"/>
</Types>
"""
RELATIONSHIPS = """<?xml version="1.0" encoding="UTF-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
<Relationship Target="/3D/3dmodel.model" Id="rel0" Type="http://schemas.microsoft.com/3dmanufacturing/2013/01/3dmodel"/>
</Relationships>
"""
MODEL = """<?xml version="1.0" encoding="UTF-8"?>
<model unit="{unit}" xml:lang="en-US" xmlns="http://schemas.microsoft.com/3dmanufacturing/core/2015/02">
<resources><object id="1" type="model"><mesh>
<vertices>
{vertices}
</vertices>
<triangles>
{triangles}
</triangles>
</mesh></object></resources>
<build><item objectid="1"/></build>
</model>
"""


def write_solid(solid: Solid, path: str | PathLike[str]) -> None:
    """Write a solid in the format of the path's suffix; see :meth:`Solid.save`."""
    path = checked_path(path)
    check_solid_suffix(path)
    mesh_format = MESH_FORMATS.get(path.suffix.lower())
    check_targets([path, *([] if mesh_format is None else mesh_format.companions(path, False))], [])
    if mesh_format is None:
        write_atomically({path: encode_3mf(solid)})
        return
    from trimesh import Trimesh

    mesh = Trimesh(solid.vertices, solid.faces, process=False, validate=False)
    if solid.units in MILLIMETRES:
        mesh.units = solid.units
    write_atomically(mesh_format.encode_mesh(mesh, path))


def check_solid_suffix(path: Path) -> None:
    """Raise :class:`NormalMeshError` unless a solid can be written in the format of a path's suffix."""
    if path.suffix.lower() not in SOLID_SUFFIXES:
        raise NormalMeshError(
            f"cannot write a solid to {path_text(path)}: the suffix must be one of {', '.join(SOLID_SUFFIXES)}"
        )


def encode_3mf(solid: Solid) -> bytes:
    """Encode a solid by the core specification of 3MF: a ZIP file with one model.

    Its unit is that of the solid. 3MF has no pixels, which become millimetres, nor some lengths, which are converted.
    """
    length = MILLIMETRES.get(solid.units, 1.0)
    unit, factor = (UNITS_3MF[length], 1.0) if length in UNITS_3MF else (UNITS_3MF[1.0], length)
    positions = (factor * solid.vertices).tolist()
    vertices = "\n".join(f'<vertex x="{x:.9g}" y="{y:.9g}" z="{z:.9g}"/>' for x, y, z in positions)
    triangles = "\n".join(f'<triangle v1="{a}" v2="{b}" v3="{c}"/>' for a, b, c in solid.faces.tolist())
    parts = {
        "[Content_Types].xml": CONTENT_TYPES,
        "_rels/.rels": RELATIONSHIPS,
        "3D/3dmodel.model": MODEL.format(unit=unit, vertices=vertices, triangles=triangles),
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as package:
        for name, text in parts.items():
            # With a fixed time, so that the same solid gives the same file.
            about = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            about.compress_type = zipfile.ZIP_DEFLATED
            package.writestr(about, text)
    return file.getvalue()
