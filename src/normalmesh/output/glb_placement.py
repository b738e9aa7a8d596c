"""How a surface stands in the scene of a GLB file: in metres, or one unit long, with its centre at the origin.

The vertices in the file keep the unit of the surface. The node that holds them scales and moves them, which every glTF
reader applies, and says so in its extras, so that the surface can be read back as it was.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from normalmesh.arguments import checked_bool, checked_positive
from normalmesh.array_types import Float
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.mesh.lengths import MILLIMETRES
from normalmesh.output.glb import GENERATOR, glb_bytes, read_description

#: What can be asked for: ``"auto"``, ``"none"`` or metres per unit of the surface.
Scale: TypeAlias = Literal["auto", "none"] | float

#: The name of what the extras of a node say about its placement.
NOTES = "normalmesh"
#: Sides of a scene in metres that programs can compute with.
SHORTEST, LONGEST = 1e-15, 1e15
EXPECTED = "'auto', 'none' or a positive number"
_FORMULA = "position = POSITION + origin, in units; in the scene: scale * (position - centre)"


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
