"""Reading 3D Tiles of this program back as one mesh, as fine as a number of faces allows."""

from __future__ import annotations

import heapq
import json
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from normalmesh.array_types import Float, Int32
from normalmesh.files.clashes import note_input
from normalmesh.files.formats import reading, unusable
from normalmesh.output.glb import read_description
from normalmesh.output.mesh_reading import read_parts
from normalmesh.output.tileset import TILESET, is_tileset_folder

KIND = "3D Tiles"


def read_tileset(folder: Path, max_faces: float) -> tuple[Float, Int32, bool]:
    """Return vertices (N, 3) and faces (M, 3) of a folder of 3D Tiles, and whether they are all that it has.

    Tiles with the largest errors are replaced by those below them, as long as there are at most ``max_faces`` faces.
    Coordinates are those of the surface. Vertices on the borders between tiles are in each of them.
    """
    if not is_tileset_folder(folder):
        raise unusable(folder, f"is no folder of 3D Tiles that normalmesh wrote: it has no such {TILESET}")
    note_input(folder / TILESET)
    with reading(folder, KIND):
        root = json.loads((folder / TILESET).read_bytes())["root"]
        tiles, complete = _refined(folder, root, max_faces)
        parts = [part for tile in tiles for part in read_parts(_content(folder, tile), process=False)]
        starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
        vertices = np.concatenate([part.vertices for part in parts])
        faces = np.concatenate([part.faces + start for part, start in zip(parts, starts, strict=False)])
    # The glTF of a tile has y up, 3D Tiles have z up.
    return np.stack([vertices[:, 0], -vertices[:, 2], vertices[:, 1]], axis=1), faces.astype(np.int32), complete


def _refined(folder: Path, root: dict[str, Any], max_faces: float) -> tuple[list[dict[str, Any]], bool]:
    """Return the tiles to show instead of the root, and whether none of them has children."""
    number = count()
    total = _face_count(folder, root)
    waiting, done = [(-float(root["geometricError"]), next(number), root)], []
    while waiting:
        tile = heapq.heappop(waiting)[2]
        children = tile.get("children", [])
        change = sum(_face_count(folder, child) for child in children) - _face_count(folder, tile)
        if not children or total + change > max_faces:
            done.append(tile)
            continue
        total += change
        for child in children:
            heapq.heappush(waiting, (-float(child["geometricError"]), next(number), child))
    return done, not any(tile.get("children") for tile in done)


def _content(folder: Path, tile: dict[str, Any]) -> Path:
    """Return the file of a tile, which must be in the folder."""
    path = Path(folder, str(tile["content"]["uri"])).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ValueError(f"the tile {path.name} lies outside the folder")
    return path


def _face_count(folder: Path, tile: dict[str, Any]) -> int:
    """Return the number of faces of a tile, from the description in its file."""
    with _content(folder, tile).open("rb") as file:
        tree = json.loads(read_description(file))
    return int(tree["accessors"][tree["meshes"][0]["primitives"][0]["indices"]]["count"]) // 3
