"""Writing a surface as 3D Tiles 1.1: a quadtree of GLB tiles with levels of detail, for surfaces too large for a file.

A tile without children holds faces of the surface as they are; any other one holds what thinning leaves of its
children. All vertices on the border between two tiles of the same depth are kept in both, and so in all tiles above
them that have this border: the border is the same, number by number, in tiles of all levels, and there are no cracks
between them. It costs few vertices: of a surface with N vertices, the border of a tile at depth d has at most about
6·√N / 2^d, and the root has none. Vertices of walls stay in all tiles, so that cuts are closed at all levels.

3D Tiles have z up: x, y and z are those of the surface, so that relief lies in the horizontal plane, as on a map with
its north at the top. The glTF of a tile has y up, as always, and viewers turn it.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from normalmesh.array_types import Float, Int32, UInt8
from normalmesh.decimation.thinning import Part
from normalmesh.errors import NormalMeshError, path_text
from normalmesh.files.atomic import check_target, folder_written_aside, write_new
from normalmesh.files.clashes import reject_inputs
from normalmesh.files.precision import PIXEL_SHARE, surface_tolerance
from normalmesh.mesh.surface import vertex_normals
from normalmesh.mesh.walls import parted, with_walls
from normalmesh.output.glb import GENERATOR, GlbFile, matt_material, surface_extras
from normalmesh.output.tile_tree import MAX_FACES, Tile, TileTree
from normalmesh.runtime.threads import in_parallel

if TYPE_CHECKING:
    from PIL.Image import Image

    from normalmesh.mesh.surface import Surface


#: The file that lists the tiles, and the folder of their contents.
TILESET, CONTENTS = "tileset.json", "tiles"
#: Bits of a position in single precision.
BITS = 24
#: Largest side of the texture of a tile, with and without tiles below it that show more.
COARSE_SIDE, FINE_SIDE = 1024, 8192
#: Quality of JPEG files: nothing can be seen of the compression.
QUALITY = 92


def check_tileset_target(folder: Path) -> None:
    """Raise an error if a tileset cannot be written to a folder: it may be new, empty, or a tileset of this program."""
    if not folder.is_dir():
        if folder.exists():
            raise NormalMeshError(f"cannot write 3D Tiles to {path_text(folder)}: it is no folder")
        check_target(folder)
        return
    if Path.cwd().is_relative_to(folder.resolve()):
        raise NormalMeshError(
            f"cannot write 3D Tiles to {path_text(folder)}, which is the current folder or around it: it would be "
            "replaced; name a folder in it"
        )
    names = {entry.name for entry in folder.iterdir()}
    if names and not (names <= {TILESET, CONTENTS} and _is_ours(folder / TILESET)):
        raise NormalMeshError(
            f"cannot write 3D Tiles to {path_text(folder)}: the folder has other files in it, which would be lost; "
            "give a new folder, or the name of a mesh file in this one"
        )
    check_target(folder.parent / f"{folder.name}.normalmesh")


def is_tileset_folder(folder: Path) -> bool:
    """Check whether a folder is a tileset that this program has written."""
    return _is_ours(folder / TILESET)


def _is_ours(path: Path) -> bool:
    try:
        return bool(json.loads(path.read_bytes())["asset"]["generator"] == GENERATOR)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def write_tileset(surface: Surface, folder: Path, image: Image | None = None, max_faces: int = MAX_FACES) -> None:
    """Write a surface as 3D Tiles to a folder, which appears when it is complete; one of this program is replaced.

    Each tile has its part of the texture. Those without children have at most ``max_faces`` faces.
    """
    check_tileset_target(folder)
    reject_inputs([folder / TILESET])
    tree = TileTree.of_surface(surface, max_faces)
    with folder_written_aside(folder) as new:
        (new / CONTENTS).mkdir()
        texture = None if image is None else _TileTexture(image, surface)
        writer = _Writer(surface, tree, new, texture, _grid(surface), *_normals(surface))
        root = writer.write_all()
        # If nothing is shown, all of the surface is missing.
        whole = 2 * math.hypot(*(root["boundingVolume"]["box"][k] for k in (3, 7, 11)))
        asset = {"version": "1.1", "generator": GENERATOR, "extras": surface_extras(surface)}
        description = {"asset": asset, "geometricError": whole, "root": {"refine": "REPLACE", **root}}
        write_new(new / TILESET, json.dumps(description, separators=(",", ":")).encode())


def _normals(surface: Surface) -> tuple[Float, Float]:
    """Return normals (N, 3) of vertices as corners of faces, and as corners of walls, where they are any."""
    shown, count = with_walls(surface), len(surface.vertices)
    normals = shown.vertex_normals
    of_walls = normals[:count].copy()
    of_walls[np.unique(surface.walls)] = normals[count:]
    return normals[:count], of_walls


def _grid(surface: Surface) -> float:
    """Return the step, a power of two, to which positions are rounded: all tiles then hold the same numbers exactly."""
    half = float(np.ptp(surface.vertices, axis=0).max()) / 2
    return 2.0 ** (math.frexp(half)[1] - BITS) if half > 0 else 1.0


@dataclass(frozen=True, eq=False)
class _Level:
    """What the tile above needs of a tile: its part of the surface and its entry in the description."""

    part: Part | None
    entry: dict[str, Any]
    low: Float
    high: Float


class _TileTexture:
    """A texture from which tiles take their parts."""

    def __init__(self, image: Image, surface: Surface) -> None:
        self._image = image
        pixel = surface_tolerance(surface) / PIXEL_SHARE
        self._texel = pixel * max(surface.shape[1] / image.width, surface.shape[0] / image.height)

    def crop(self, coordinates: Float, is_coarse: bool) -> tuple[tuple[UInt8, bytes | None], Float, float]:
        """Return the part of the image that a tile needs, its texture coordinates, and the size of lost details.

        Coordinates (N, 2) are from (0, 0) at the top left of the image, or of the part (H, W, 3 or 4), to (1, 1) at the
        bottom right. ``is_coarse``: tiles below show more. A part without alpha has its JPEG file with it. The size is
        the side of a texel in the unit of the surface, 0 if it is that of the image.
        """
        import imagecodecs
        from PIL.Image import Resampling

        size = np.array(self._image.size)
        low = np.clip(np.floor(coordinates.min(axis=0) * size).astype(int) - 1, 0, size - 1)
        high = np.clip(np.ceil(coordinates.max(axis=0) * size).astype(int) + 1, low + 1, size)
        part = self._image.crop((*low.tolist(), *high.tolist()))
        scale = max(part.size) / (COARSE_SIDE if is_coarse else FINE_SIDE)
        if scale > 1:
            part = part.resize([max(round(side / scale), 1) for side in part.size], Resampling.BOX)
        pixels = np.ascontiguousarray(part)
        jpeg = bytes(imagecodecs.jpeg8_encode(pixels, level=QUALITY)) if pixels.shape[2] == 3 else None
        return (pixels, jpeg), (coordinates * size - low) / (high - low), self._texel * scale if scale > 1 else 0.0


@dataclass(frozen=True, eq=False)
class _Writer:
    """Writes the tiles of a surface into a folder, deepest first."""

    surface: Surface
    tree: TileTree
    folder: Path
    texture: _TileTexture | None
    grid: float
    normals: Float
    wall_normals: Float

    def write_all(self) -> dict[str, Any]:
        """Write all tiles, and return the description of the root."""
        tiles = list(self.tree.root.all_tiles())
        levels: dict[Tile, _Level] = {}

        def work(row: list[Tile], first: int, last: int) -> None:
            for tile in row[first:last]:
                levels[tile] = self._write(tile, [levels.pop(child) for child in tile.children])

        for depth in range(max(tile.depth for tile in tiles), -1, -1):
            row = [tile for tile in tiles if tile.depth == depth]
            in_parallel(partial(work, row), len(row), grain=1)
        return levels[self.tree.root].entry

    def _write(self, tile: Tile, children: list[_Level]) -> _Level:
        """Write a tile once its children are written."""
        part = self._thinned(tile, children) if children else None
        faces, walls = self.tree.faces(tile, self.surface) if part is None else (part.faces, part.walls)
        content, error = self._content(tile, faces, walls)
        name = f"{CONTENTS}/{tile.name}.glb"
        write_new(self.folder / name, content)
        if part is None:
            positions = self._rounded(self.surface.vertices[np.unique(np.concatenate([faces, walls]))])
            low, high, error = positions.min(axis=0), positions.max(axis=0), 0.0
        else:
            low = np.min([level.low for level in children], axis=0)
            high = np.max([level.high for level in children], axis=0)
            error = max(error, part.error, *(level.entry["geometricError"] for level in children))
        entry: dict[str, Any] = {
            "boundingVolume": {"box": _box(low, high)},
            "geometricError": error,
            "content": {"uri": name},
        }
        if children:
            entry["children"] = [level.entry for level in children]
        return _Level(part, entry, low, high)

    def _thinned(self, tile: Tile, children: list[_Level]) -> Part:
        """Return what thinning leaves of the children of a tile."""
        surface, tree = self.surface, self.tree
        parts = [
            level.part or Part.of_faces(surface, *tree.faces(child, surface), partial(tree.shared, child))
            for child, level in zip(tile.children, children, strict=True)
        ]
        return Part.joined(parts).thinned(surface, partial(tree.shared, tile))

    def _rounded(self, vertices: Float) -> Float:
        rounded: Float = np.round(vertices / self.grid) * self.grid
        return rounded

    def _content(self, tile: Tile, faces: Int32, walls: Int32) -> tuple[bytes, float]:
        """Return the GLB file of a tile, and the size of its texels."""
        surface = self.surface
        own, corners = np.unique(faces, return_inverse=True)
        local, vertices = parted(corners.reshape(-1, 3).astype(np.int32), walls, own)
        positions = self._rounded(surface.vertices[vertices])
        origin = self._rounded(positions.min(axis=0) / 2 + positions.max(axis=0) / 2)
        normals = vertex_normals(surface.vertices[vertices], local, local)
        # Tiles of all levels are lit alike along their border, and walls everywhere.
        same = np.flatnonzero(self.tree.shared(tile, own) | ~normals[: len(own)].any(axis=1))
        normals[same] = self.normals[own[same]]
        normals[len(own) :] = self.wall_normals[vertices[len(own) :]]
        file, error = GlbFile(), 0.0
        coordinates = surface.screen[vertices] / surface.shape[::-1]
        texture = None
        if self.texture is not None:
            image, coordinates, error = self.texture.crop(coordinates, is_coarse=bool(tile.children))
            texture = file.texture(*image)
        arrays = {"POSITION": _y_up(positions - origin), "NORMAL": _y_up(normals), "TEXCOORD_0": coordinates}
        attributes = {name: file.attribute(values) for name, values in arrays.items()}
        material, extras = matt_material(texture), surface_extras(surface)
        node = {"translation": _y_up(origin).tolist()}
        return file.contents(tile.name, attributes, file.faces(local), material, extras, node), error


def _y_up(vectors: Float) -> Float:
    """Turn vectors (..., 3) with z up into those of glTF, with y up."""
    return np.stack([vectors[..., 0], vectors[..., 2], -vectors[..., 1]], axis=-1)


def _box(low: Float, high: Float) -> list[float]:
    """Return centre and half axes of a box."""
    axes = np.diag((high - low) / 2)
    return [float(number) for number in (*(low / 2 + high / 2), *axes.ravel())]
