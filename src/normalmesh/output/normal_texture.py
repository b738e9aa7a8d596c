"""Normal textures of GLB files: the normals of a map in the tangent frames of a coarse surface."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from normalmesh.array_types import Float32, UInt8
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.mesh import _surface
from normalmesh.runtime.threads import in_parallel

if TYPE_CHECKING:
    from normalmesh.mesh.surface import Surface
    from normalmesh.normals.normal_map import NormalMap

#: Longest side of a texture in a GLB file; graphics cards and browsers refuse longer ones.
MAX_TEXTURE_SIDE = 8192
#: Texels by which the texture reaches over the outline, so that coarser mip levels do not mix in background.
MARGIN = 8
#: The normal (0, 0, 1) in a normal texture.
FLAT = (128, 128, 255)

#: Tangents, bitangents and normals, (N, 3) each, at the vertices.
Frames: TypeAlias = tuple[Float32, Float32, Float32]


def tangent_frames(surface: Surface) -> Frames:
    """Return tangents, bitangents and normals, (N, 3) each, at the vertices: right, up and out as the image shows them.

    The tangent is the direction of J(n)'s first column, n × (τ_u × r): along u on the surface, orthogonal to the
    normal. The bitangent is N × T, glTF's handedness +1.
    """
    camera, normals = surface.camera, surface.vertex_normals
    along_u, _ = camera.tangents
    to_viewer = camera.towards_viewer * camera.rays(surface.screen[:, 0], surface.screen[:, 1])
    tangents = np.cross(normals, np.cross(along_u, to_viewer))
    # Exactly grazing above or below: every direction on the surface is seen end-on, but τ_u lies in it.
    tangents[~tangents.any(axis=1)] = along_u
    tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
    bitangents = np.cross(normals, tangents)
    return tangents.astype(np.float32), bitangents.astype(np.float32), normals.astype(np.float32)


def normal_texture(surface: Surface, normals: NormalMap, frames: Frames) -> UInt8:
    """Return the map's normals in the surface's tangent frames as (H', W', 3) uint8, +x right, +y up, +z out.

    Viewers (three.js, Khronos' sample viewer) interpolate T, B and N over a face, normalise each and shade with
    ``x T + y B + z N``. The texel holds the x, y, z for which this is the map's normal.
    """
    rows, columns = surface.shape
    if abs(normals.shape[0] * columns - normals.shape[1] * rows) > max(rows, columns):
        raise NormalMeshError(
            f"normals are {shape_text(normals.shape)} but the surface is of an image of {shape_text(surface.shape)}: "
            "they must show the same image"
        )
    mesh, owners = surface.owners(reduced_shape(normals.shape))
    depth = np.ascontiguousarray(surface.camera.depth_per_unknown(surface.camera.depth(surface.vertices)))
    texture = np.empty((*owners.shape, 3), np.uint8)
    texture[:] = FLAT
    covered = np.zeros(owners.shape, np.bool_)
    textured = _surface.TexturedMesh(mesh.vertices, mesh.faces, depth, *frames)
    in_parallel(_surface.bake_normals, len(owners), owners, textured, normals.normals, texture, covered, grain=64)
    for _ in range(MARGIN):
        grown = np.empty_like(covered)
        in_parallel(_surface.dilate, len(covered), texture, covered, grown, grain=256)
        covered = grown
    return texture


def reduced_shape(shape: tuple[int, int]) -> tuple[int, int]:
    """Return rows and columns scaled so that neither is above :data:`MAX_TEXTURE_SIDE`."""
    scale = min(1.0, MAX_TEXTURE_SIDE / max(shape))
    return max(round(shape[0] * scale), 1), max(round(shape[1] * scale), 1)
