"""Render depth and normals of a triangle model by ray casting with Embree."""

from __future__ import annotations

import math
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from normalmesh.arguments import checked_array, checked_bool, checked_finite
from normalmesh.array_types import Float, Int32
from normalmesh.errors import NormalMeshError, repr_for_error, shape_text
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.rendering import _rendering
from normalmesh.evaluation.rendering.triangle_model import TriangleModel
from normalmesh.evaluation.synthetic.relief_case import checked_shape, chosen_camera, exact_case, pixel_centres
from normalmesh.mesh.surface_arrays import check_units
from normalmesh.normals.camera import Camera
from normalmesh.output.mesh_reading import used_vertices
from normalmesh.runtime.memory_budget import require_memory
from normalmesh.runtime.row_blocks import row_blocks
from normalmesh.runtime.threads import in_parallel

if TYPE_CHECKING:
    from embreex.rtcore_scene import EmbreeScene

    from normalmesh.evaluation.rendering.triangle_model import Model


#: Smallest number of image rows that a thread processes in one block.
ROWS = 64
#: Bytes of a hit and a depth.
PIXEL_BYTES = 12


def render_normal_map(
    model: Model,
    size: int | tuple[int, int],
    camera: Camera | str = "orthographic",
    *,
    smooth: bool = True,
    pose: ArrayLike | None = None,
    name: str | None = None,
    margin: float = 0.05,
    units: str | None = None,
) -> Case:
    """Render depth and normals of a triangle model, with one ray through the centre of each pixel.

    Depth is that of the flat faces, in double precision. Faces are visible from both sides: normals of back faces are
    flipped towards the viewer. The peak memory is 34 bytes per pixel in addition to the model.

    Parameters
    ----------
    model
        A PLY, OBJ, STL, GLB, glTF or OFF file, a ``trimesh.Trimesh``, or (vertices, faces). The transformations of a
        scene are applied.
    size
        Side of a square image, or (rows, columns), in pixels.
    camera
        ``"orthographic"`` (pixels of side 1), ``"perspective"`` (a field of view of 37° along the longer side), or a
        camera.
    smooth
        True: interpolate vertex normals (smooth shading), or use the face normal where the result would face away.
        Vertex normals are taken from the file if it has any. Otherwise they are averaged over the adjacent faces, which
        rounds sharp creases: for models with creases and few faces, use False. False: use face normals.
    pose
        Transformation from the model to space (x right, y up, z towards the viewer; a perspective camera is at the
        origin and looks along −z): a rotation (3, 3) or a matrix (4, 4), either with an optional uniform scale.
        Default: no rotation.
    name
        Name of the case; default: that of the file, or ``"model"``.
    margin
        Margin at each side of the image when the model is fitted, as a fraction of the side.
    units
        Unit of the depth; default: ``"px"`` if the model is fitted to pixels, else ``"units"``, those of the model.

    Returns
    -------
    Case
        Depth and normals. The model is scaled and translated to fill the image. The depth of the centre of its bounding
        box becomes 0 (orthographic) or the focal length in pixels (perspective), where a pixel has the side 1. If
        ``pose`` is 4×4 *and* ``camera`` is a camera object, nothing is fitted, and depth is metric.

    Raises
    ------
    NormalMeshError
        If the model cannot be read, has no faces or is not visible, if size or pose are wrong, or if Embree is not
        installed.
    """
    shape = checked_shape(size)
    checked_bool(smooth, "smooth")
    if units is not None:
        check_units(units)
    if name is not None and not isinstance(name, str):
        raise NormalMeshError(f"name must be text, not {repr_for_error(name)}")
    matrix, is_placed = _checked_pose(pose)
    is_placed = is_placed and not isinstance(camera, str)
    camera = chosen_camera(camera, shape)
    triangles = TriangleModel.of(model).moved(matrix)
    if not is_placed:
        triangles = triangles.moved(_fit(triangles.vertices, camera, shape, margin))
    hits, depth = cast(triangles.vertices, triangles.faces, camera, shape)
    if hits.max() < 0:
        raise NormalMeshError(_nothing_visible(triangles.vertices, camera, shape))
    normals = np.empty((*shape, 3), np.float32)
    vertex_normals = triangles.normals if smooth else np.empty((0, 3))
    mesh = (hits, triangles.vertices, triangles.faces, vertex_normals)
    in_parallel(_rendering.fill_hit_normals, len(hits), *mesh, camera.arrays, normals, grain=ROWS)
    del mesh
    del hits
    if units is None:
        units = "units" if is_placed or camera.reference_pixel != 1.0 else "px"
    if name is None:
        name = Path(model).stem if isinstance(model, str | PathLike) else "model"
    return exact_case(name, depth, normals, camera, units)


def cast(vertices: ArrayLike, faces: ArrayLike, camera: Camera, shape: tuple[int, int]) -> tuple[Int32, Float]:
    """Return the first face (H, W) on the ray through each pixel centre or −1, seen from either side, and its depth.

    Embree finds the face in single precision: closer to an edge than about 1e-7 of the size of the model, it may find
    the neighbour. The depth (H, W), as in :meth:`Surface.depth_map`, is that of the plane of the face in double
    precision, clamped to the depths of its corners. Vertices (N, 3) are in the camera frame: orthographic,
    ``(s·u, −s·v, height)``; perspective, the camera is at the origin and looks along −z. Faces (M, 3) may extend behind
    the camera.
    """
    points, corners = np.ascontiguousarray(vertices, np.float64), np.ascontiguousarray(faces)
    used = points[used_vertices("the mesh", points, corners)]
    corners = corners.astype(np.int32, copy=False)
    shape = checked_shape(shape)
    require_memory(PIXEL_BYTES * math.prod(shape), f"an image of {shape_text(shape)} pixels", "choose a smaller size")
    # Single precision is most accurate near the origin. The centre of projection of a central camera is fixed, though.
    middle = np.zeros(3) if camera.is_central else (used.min(axis=0) + used.max(axis=0)) / 2
    scale = 1 / max(float(np.abs(used - middle).max()), np.finfo(np.float64).tiny)
    scene = _scene((points - middle) * scale, corners)
    hits, depth = np.empty(shape, np.int32), np.empty(shape)
    for rows in row_blocks(shape):
        u, v = np.moveaxis(pixel_centres(rows, shape[1]).reshape(-1, 2), -1, 0)
        origins = (camera.ray_starts(u, v) - middle) * scale
        directions = -camera.towards_viewer * camera.rays(u, v)
        if not camera.is_central:
            # Parallel rays start in front of the model, which is between −1 and 1.
            origins += (2.0 - origins[:, 2:]) / directions[:, 2:] * directions
        found = scene.run(origins.astype(np.float32), directions.astype(np.float32))
        hits[rows] = found.reshape(-1, shape[1])
    in_parallel(_rendering.fill_hit_depths, len(hits), hits, points, corners, camera.arrays, depth, grain=ROWS)
    return hits, depth


def share_outside(vertices: Float, camera: Camera, shape: tuple[int, int]) -> float:
    """Return the share of vertices (N, 3) that are outside the image by more than a pixel, or behind the camera."""
    u, v = camera.screen(vertices).T  # NaN behind the camera
    rows, columns = shape
    return 1 - float(np.mean((u > -1) & (u < columns + 1) & (v > -1) & (v < rows + 1)))


def _scene(vertices: Float, faces: Int32) -> EmbreeScene:
    """Return a scene of one mesh in robust mode, in which no ray passes between two adjacent faces."""
    try:
        from embreex.mesh_construction import TriangleMesh
        from embreex.rtcore_scene import EmbreeScene
    except ImportError as error:
        raise NormalMeshError("rendering requires Embree; pip install 'normalmesh[render]'") from error
    scene = EmbreeScene(robust=True)
    TriangleMesh(scene, vertices.astype(np.float32), faces)
    return scene


def _checked_pose(pose: ArrayLike | None) -> tuple[Float, bool]:
    """Return the pose as a matrix (4, 4), and whether it was given as one; raise if it is invalid."""
    if pose is None:
        return np.eye(4), False
    given = checked_array(pose, "pose").astype(np.float64)
    if given.shape not in ((3, 3), (4, 4)) or not np.all(np.isfinite(given)):
        raise NormalMeshError(f"pose must be a finite 3×3 or 4×4 matrix, not {shape_text(given.shape)}")
    matrix = np.eye(4)
    matrix[: len(given), : len(given)] = given
    if not np.array_equal(matrix[3], [0, 0, 0, 1]):
        raise NormalMeshError(f"the last row of pose must be 0 0 0 1, not {matrix[3]}; is it transposed?")
    linear = matrix[:3, :3]
    product = linear @ linear.T
    squared = np.trace(product) / 3
    if np.abs(product - squared * np.eye(3)).max() > 1e-3 * squared or np.linalg.det(linear) <= 0:
        raise NormalMeshError(
            f"pose must be a rotation, without reflection, optionally with a uniform scale, not {linear.tolist()}"
        )
    return matrix, len(given) == 4


def _fit(vertices: Float, camera: Camera, shape: tuple[int, int], margin: float) -> Float:
    """Return the scale and translation (4, 4) that fit vertices into the image."""
    if not 0 <= checked_finite(margin, "margin", "a fraction of the image from 0 to below 0.5") < 0.5:
        raise NormalMeshError(
            f"margin must be a fraction of the image from 0 to below 0.5, not {repr_for_error(margin)}"
        )
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    extent = float((high - low).max())
    if extent == 0:
        raise NormalMeshError("the model has no extent: all of its vertices are at the same position")
    middle = (low + high) / 2
    points = vertices - middle
    centre = np.array([shape[1] / 2, shape[0] / 2])
    to_screen = np.linalg.inv(np.stack(camera.tangents, axis=1)[:2])
    half_size = centre * (1 - 2 * margin)
    ray = camera.rays(*centre)
    offsets = np.abs((points[:, :2] - camera.towards_viewer * points[:, 2:] * ray[:2]) @ to_screen.T) / half_size
    if camera.is_central:
        # If the centre is at the distance D, a point is offset / (D − z) pixels from the centre of the image.
        distance = max((points[:, 2] + offsets.max(axis=1)).max(), points[:, 2].max() + 0.25 * extent)
        scale = camera.reference_depth / distance
    else:
        scale = 1 / max(offsets.max(), np.finfo(np.float64).tiny)
    target = camera.ray_starts(*centre) + camera.reference_depth * ray
    matrix = np.diag([scale, scale, scale, 1.0])
    matrix[:3, 3] = target - scale * middle
    return matrix


def _nothing_visible(vertices: Float, camera: Camera, shape: tuple[int, int]) -> str:
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    if camera.is_central and low[2] >= 0:
        return (
            f"the model is behind the camera: z runs from {low[2]:.4g} to {high[2]:.4g}, "
            "but the camera looks along −z; negate y and z of a pose whose z points away from the viewer"
        )
    span = ", ".join(f"{axis} {a:.4g} … {b:.4g}" for axis, a, b in zip("xyz", low, high, strict=True))
    return f"the model is outside the image of {shape_text(shape)} pixels: it covers {span}; check pose and camera"
