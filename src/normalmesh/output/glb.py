"""GLB, the binary form of glTF 2.0: a description in JSON, and concatenated arrays and images.

A surface stands in the scene of a file in metres, or one unit long, with its centre at the origin. The vertices in the
file keep the unit of the surface. The node that holds them scales and moves them, which every glTF reader applies, and
says so in its extras, so that the surface can be read back as it was.
"""

from __future__ import annotations

import io
import json
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from normalmesh.arguments import checked_bool, checked_positive
from normalmesh.array_types import Float, Integer, UInt8
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.mesh.lengths import MILLIMETRES

if TYPE_CHECKING:
    from normalmesh.mesh.surface import Surface

#: The program that files name.
GENERATOR = "normalmesh"
#: Grey and roughness of a surface without texture: matt, so that shape shows.
GREY = 0.8
ROUGHNESS = 0.8

#: Header of the file and of its first chunk: magic, version, length of all, length and type of the description.
_HEAD = struct.Struct("<4sIII4s")
_FLOAT, _UNSIGNED = 5126, 5125
_ARRAY_BUFFER, _ELEMENT_ARRAY_BUFFER = 34962, 34963
_LINEAR, _TRILINEAR, _CLAMP = 9729, 9987, 33071
_TYPES = {1: "SCALAR", 2: "VEC2", 3: "VEC3", 4: "VEC4"}

#: What can be asked for: ``"auto"``, ``"none"`` or metres per unit of the surface.
Scale: TypeAlias = Literal["auto", "none"] | float

#: The name of what the extras of a node say about its placement.
NOTES = "normalmesh"
#: Sides of a scene in metres that programs can compute with.
SHORTEST, LONGEST = 1e-15, 1e15
EXPECTED = "'auto', 'none' or a positive number"
_FORMULA = "position = POSITION + origin, in units; in the scene: scale * (position - centre)"


def surface_extras(surface: Surface) -> dict[str, Any]:
    """Return what the extras of a mesh say about its numbers: their unit, and the factor of an exaggerated relief."""
    return {"units": surface.units} | ({} if surface.strength == 1 else {"strength": surface.strength})


def glb_bytes(tree: dict[str, Any], *rest: bytes) -> bytes:
    """Return the bytes of a file from its description, and what follows it."""
    description = _padded(json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode(), b" ")
    head = _HEAD.pack(b"glTF", 2, _HEAD.size + len(description) + sum(map(len, rest)), len(description), b"JSON")
    return b"".join([head, description, *rest])


def read_description(file: BinaryIO) -> bytes:
    """Return the description in JSON with which a file begins; what follows it is left to be read."""
    length = _HEAD.unpack(file.read(_HEAD.size))[3]
    return file.read(length)


def matt_material(texture: dict[str, int] | None) -> dict[str, Any]:
    """Return a material with two sides that does not shine, grey unless it has a texture."""
    colour = {"baseColorFactor": [GREY, GREY, GREY, 1.0]} if texture is None else {"baseColorTexture": texture}
    matt = {"metallicFactor": 0.0, "roughnessFactor": ROUGHNESS, **colour}
    return {"pbrMetallicRoughness": matt, "doubleSided": True}


class GlbFile:
    """A file with one mesh, assembled step by step. Methods return indices as glTF uses them."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._views: list[dict[str, Any]] = []
        self._accessors: list[dict[str, Any]] = []
        self._images: list[dict[str, Any]] = []

    def attribute(self, values: NDArray[np.generic]) -> int:
        """Add values (N, k) at the vertices as float32, and return the index of their accessor."""
        array = np.ascontiguousarray(values, "<f4")
        bounds = {"min": array.min(axis=0).tolist(), "max": array.max(axis=0).tolist()}
        return self._accessor(array, _FLOAT, _ARRAY_BUFFER, array.shape[1], bounds)

    def faces(self, faces: Integer) -> int:
        """Add vertex indices (M, 3) of the faces, and return the index of their accessor."""
        return self._accessor(np.ascontiguousarray(faces.ravel(), "<u4"), _UNSIGNED, _ELEMENT_ARRAY_BUFFER, 1, {})

    def texture(self, image: UInt8, jpeg: bytes | None = None) -> dict[str, int]:
        """Add an image (H, W, 3 or 4), or the JPEG file of it, and return its reference for a material."""
        import imagecodecs

        content, kind = (bytes(imagecodecs.png_encode(image)), "png") if jpeg is None else (jpeg, "jpeg")
        self._images.append({"bufferView": self._view(content), "mimeType": f"image/{kind}"})
        return {"index": len(self._images) - 1}

    def contents(
        self,
        name: str,
        attributes: dict[str, int],
        faces: int,
        material: dict[str, Any],
        extras: dict[str, Any],
        node: dict[str, Any],
    ) -> bytes:
        """Return the bytes of the file; ``node`` has the properties of the node of the mesh, such as its translation.

        Textures are clamped at the border of the image.
        """
        primitive = {"attributes": attributes, "indices": faces, "material": 0}
        tree: dict[str, Any] = {
            "asset": {"version": "2.0", "generator": GENERATOR},
            "scene": 0,
            "scenes": [{"nodes": [0]}],
            "nodes": [{"name": name, "mesh": 0, **node}],
            "meshes": [{"name": name, "extras": extras, "primitives": [primitive]}],
            "materials": [{"name": name, **material}],
            "accessors": self._accessors,
            "bufferViews": self._views,
            "buffers": [{"byteLength": sum(map(len, self._chunks))}],
        }
        if self._images:
            sampler = {"magFilter": _LINEAR, "minFilter": _TRILINEAR, "wrapS": _CLAMP, "wrapT": _CLAMP}
            textures = [{"source": number, "sampler": 0} for number in range(len(self._images))]
            tree |= {"images": self._images, "textures": textures, "samplers": [sampler]}
        blob = b"".join(self._chunks)
        return glb_bytes(tree, struct.pack("<I4s", len(blob), b"BIN\0"), blob)

    def _accessor(
        self, array: NDArray[np.generic], component: int, target: int, width: int, bounds: dict[str, Any]
    ) -> int:
        view = self._view(array.tobytes())
        self._views[view]["target"] = target
        self._accessors.append(
            {"bufferView": view, "componentType": component, "type": _TYPES[width], "count": len(array), **bounds}
        )
        return len(self._accessors) - 1

    def _view(self, content: bytes) -> int:
        offset = sum(map(len, self._chunks))
        self._chunks.append(_padded(content, b"\0"))
        self._views.append({"buffer": 0, "byteOffset": offset, "byteLength": len(content)})
        return len(self._views) - 1


def _padded(content: bytes, filler: bytes) -> bytes:
    """Return the content padded to a multiple of four bytes, as glTF requires."""
    return content + filler * (-len(content) % 4)


@dataclass(frozen=True, eq=False)
class Placement:
    """A position p of the surface is at ``scale · (p − centre)`` in the scene."""

    units: str
    scale: float
    centre: Float

    @classmethod
    def of(cls, vertices: Float, units: str, scale: Scale = "auto", centred: bool = True) -> Placement:
        """Return the placement of vertices (N, 3) in a unit; see :meth:`Surface.save`."""
        checked_bool(centred, "centred")
        low, high = vertices.min(axis=0), vertices.max(axis=0)
        middle = low / 2 + high / 2 if centred else np.zeros(3)
        longest = float((high - low).max())
        if not isinstance(scale, str):
            factor = checked_positive(scale, "scale", EXPECTED)
            if longest and not SHORTEST <= factor * longest <= LONGEST:
                raise NormalMeshError(
                    f"scale is {factor:g}, with which the longest side is {factor * longest:g} m; viewers compute in "
                    f"single precision: make it {SHORTEST:g} to {LONGEST:g} m"
                )
        elif scale == "auto":
            factor = MILLIMETRES[units] / 1000 if units in MILLIMETRES else 1 / (longest or 1.0)
        elif scale == "none":
            factor = 1.0
        else:
            raise NormalMeshError(f"scale must be {EXPECTED}, not {repr_for_error(scale)}")
        return cls(units, factor, middle)

    def node(self, origin: Float | None) -> dict[str, Any]:
        """Return the properties of a node whose positions are relative to ``origin`` (3,), none: (0, 0, 0)."""
        start = np.zeros(3) if origin is None else origin
        shift = self.scale * (start - self.centre)
        notes = {
            "units": self.units,
            "origin": start.tolist(),
            "scale": self.scale,
            "centre": self.centre.tolist(),
            "formula": _FORMULA,
        }
        placed: dict[str, Any] = {"translation": shift.tolist()} if shift.any() else {}
        placed |= {"scale": [self.scale] * 3} if self.scale != 1 else {}
        return {**placed, "extras": {NOTES: notes}}


def without_placement(content: bytes) -> bytes:
    """Return a GLB file with the nodes that this program placed as they were: positions are those of the surface."""
    file = io.BytesIO(content)
    tree = json.loads(read_description(file))
    if tree.get("asset", {}).get("generator") != GENERATOR:
        return content
    for node in tree.get("nodes", []):
        notes = node.get("extras", {}).get(NOTES)
        if notes is not None:
            origin = np.array(notes["origin"], np.float64)
            if origin.shape != (3,) or not np.isfinite(origin).all():
                raise ValueError("the origin of a node is not three numbers")
            node.pop("scale", None)
            node["translation"] = origin.tolist()
    return glb_bytes(tree, file.read())
