"""Make surfaces to write as 3D Tiles, and read what was written."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from normalmesh import Orthographic, ScreenMesh, Surface
from surfaces import wave_height

#: Where arrays of glTF with one, two and three numbers an element are stored as float32 or uint32.
TYPES = {5126: "<f4", 5125: "<u4"}
WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3}


def wavy_surface(mask, camera=None, scale=4.0, seed=0):
    """Return a surface with vertices near the corners of the pixels of a mask, ``scale`` px apart."""
    start = ScreenMesh.from_mask(mask)
    shift = np.random.default_rng(seed).uniform(-0.2, 0.2, start.vertices.shape)
    screen = scale * (start.vertices + shift)
    screen -= screen.min(axis=0)
    height, _, _ = wave_height(screen[:, 0], screen[:, 1])
    camera = Orthographic() if camera is None else camera
    unknown = np.log(500 - 5 * height) if camera.is_central else 3 * height
    rows, columns = np.ceil(screen.max(axis=0)).astype(int)[::-1] + 1
    return Surface.from_unknown(ScreenMesh(screen, start.faces), unknown, camera, (int(rows), int(columns)), "mm")


@dataclass(eq=False)
class WrittenTile:
    """A tile as it was written; positions, normals and boxes are in the axes of the surface."""

    entry: dict
    tree: dict
    positions: np.ndarray
    normals: np.ndarray
    coordinates: np.ndarray
    faces: np.ndarray
    children: list[WrittenTile]

    @property
    def box(self):
        numbers = np.array(self.entry["boundingVolume"]["box"])
        half = np.abs(numbers[3:].reshape(3, 3)).sum(axis=0)
        return numbers[:3] - half, numbers[:3] + half

    def all_tiles(self):
        return [self, *(tile for child in self.children for tile in child.all_tiles())]


def read_tileset(folder: Path) -> tuple[dict, WrittenTile]:
    """Return the description of a tileset, and its root."""
    description = json.loads((folder / "tileset.json").read_text())
    return description, _read_tile(folder, description["root"])


def _read_tile(folder: Path, entry: dict) -> WrittenTile:
    content = (folder / entry["content"]["uri"]).read_bytes()
    length = struct.unpack_from("<I", content, 12)[0]
    tree, blob = json.loads(content[20 : 20 + length]), content[28 + length :]

    def array(index):
        accessor = tree["accessors"][index]
        view, width = tree["bufferViews"][accessor["bufferView"]], WIDTHS[accessor["type"]]
        count = accessor["count"] * width
        return np.frombuffer(blob, TYPES[accessor["componentType"]], count, view["byteOffset"]).reshape(-1, width)

    (primitive,) = tree["meshes"][0]["primitives"]
    attributes = {name: array(index) for name, index in primitive["attributes"].items()}
    origin = np.array(tree["nodes"][0]["translation"])
    return WrittenTile(
        entry,
        tree,
        z_up(attributes["POSITION"].astype(float) + origin),
        z_up(attributes["NORMAL"].astype(float)),
        attributes["TEXCOORD_0"],
        array(primitive["indices"]).reshape(-1, 3).astype(int),
        [_read_tile(folder, child) for child in entry.get("children", [])],
    )


def z_up(vectors):
    """Turn vectors (N, 3) from glTF, with y up, to 3D Tiles, with z up, as the specification says."""
    return np.stack([vectors[:, 0], -vectors[:, 2], vectors[:, 1]], axis=1)


def random_cut(tile, rng):
    """Return tiles of several levels that together show the surface: each one, or all of its children, or more."""
    if not tile.children or rng.random() < 0.3:
        return [tile]
    return [each for child in tile.children for each in random_cut(child, rng)]


def joined(tiles):
    """Return positions (N, 3) and faces (M, 3) of several tiles, with vertices at exactly the same place made one."""
    starts = np.cumsum([0, *(len(tile.positions) for tile in tiles)])
    positions, number = np.unique(np.concatenate([tile.positions for tile in tiles]), axis=0, return_inverse=True)
    faces = np.concatenate([tile.faces + start for tile, start in zip(tiles, starts, strict=False)])
    return positions, number.ravel()[faces]


def outer_vertices(faces):
    """Return the vertices on edges with one face."""
    edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    found, count = np.unique(edges, axis=0, return_counts=True)
    assert count.max() <= 2
    return np.unique(found[count == 1])
