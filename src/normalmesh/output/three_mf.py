"""3MF, the format of 3D printing: a ZIP file with a model in XML. Solids are written in it, and meshes read."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from normalmesh.mesh.lengths import MILLIMETRES

if TYPE_CHECKING:
    from normalmesh.mesh.solid import Solid

#: Suffix of the files.
THREE_MF = ".3mf"
#: Place of the model in the package, and the namespace of its elements.
MODEL_PATH, CORE = "3D/3dmodel.model", "{http://schemas.microsoft.com/3dmanufacturing/core/2015/02}"
#: Largest model that is read, in bytes of text.
MAX_MODEL = 1 << 31
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
        MODEL_PATH: MODEL.format(unit=unit, vertices=vertices, triangles=triangles),
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as package:
        for name, text in parts.items():
            # With a fixed time, so that the same solid gives the same file.
            about = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            about.compress_type = zipfile.ZIP_DEFLATED
            package.writestr(about, text)
    return file.getvalue()


def off_of_3mf(content: bytes) -> bytes:
    """Return the mesh of a 3MF file, in its unit, as OFF text; raise ValueError unless it is one mesh in its place."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as package:
            about = package.getinfo(MODEL_PATH)
            if about.file_size > MAX_MODEL:
                raise ValueError(f"its model has {about.file_size} bytes, which is too much")
            model = ElementTree.fromstring(package.read(about))
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"no model of 3MF can be read: {error}") from error
    meshes = model.findall(f"{CORE}resources/{CORE}object/{CORE}mesh")
    moved = [item for item in model.findall(f"{CORE}build/{CORE}item") if item.get("transform")]
    if len(meshes) != 1 or moved:
        raise ValueError("only one mesh that is not moved can be read from 3MF; convert it to STL")
    vertices = [[each.get(axis, "") for axis in "xyz"] for each in meshes[0].iter(f"{CORE}vertex")]
    faces = [[each.get(corner, "") for corner in ("v1", "v2", "v3")] for each in meshes[0].iter(f"{CORE}triangle")]
    lines = [*map(" ".join, vertices), *(f"3 {' '.join(each)}" for each in faces)]
    return "\n".join(["OFF", f"{len(vertices)} {len(faces)} 0", *lines]).encode()
