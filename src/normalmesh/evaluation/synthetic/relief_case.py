"""Cases from reliefs over the image, whose depth and normals agree exactly; size and camera of synthetic cases."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral

import numpy as np

from normalmesh.arguments import checked_image_shape
from normalmesh.array_types import Bool, Float, Float32
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.evaluation.cases import Case
from normalmesh.normals.camera import Camera, checked_camera
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.orthographic import Orthographic
from normalmesh.normals.perspective import Perspective
from normalmesh.runtime.row_blocks import row_blocks

#: Focal length of ``"perspective"`` as a fraction of the longer side of the image: a field of view of 37°.
FOCAL = 1.5

#: Height in pixels towards the viewer, and its slopes to the right and upwards.
Relief = tuple[Float, Float, Float]
#: A function from screen positions (..., 2) to the relief (...) there.
ReliefFunction = Callable[[Float], Relief]


def checked_shape(size: int | tuple[int, int]) -> tuple[int, int]:
    """Return rows and columns, given both or the side of a square; raise if they are invalid."""
    if isinstance(size, tuple | list):
        return checked_image_shape(size, "size")
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        raise NormalMeshError(
            f"size must be a positive whole number of pixels, or (rows, columns), not {repr_for_error(size)}"
        )
    return checked_image_shape((size, size), "size")


def chosen_camera(camera: Camera | str, shape: tuple[int, int]) -> Camera:
    """Return the given camera, or the one with the given name.

    ``"orthographic"`` has pixels of side 1. ``"perspective"`` has a field of view of 37° along the longer side, and its
    principal point in the centre of the image.
    """
    expected = "'orthographic', 'perspective', Orthographic(...) or Perspective(...)"
    if not isinstance(camera, str):
        return checked_camera(camera, expected)
    if camera == "orthographic":
        return Orthographic()
    if camera == "perspective":
        return Perspective.centred(FOCAL * max(shape), shape)
    raise NormalMeshError(f"camera must be {expected}, not {repr_for_error(camera)}")


def pixel_centres(rows: slice, columns: int) -> Float:
    """Return the screen positions (rows, columns, 2) of the pixel centres: u right, v down."""
    u, v = np.arange(columns) + 0.5, np.arange(rows.start, rows.stop) + 0.5
    return np.stack(np.meshgrid(u, v), axis=-1)


def lift(
    name: str,
    relief: ReliefFunction,
    shape: tuple[int, int],
    camera: Camera | str = "orthographic",
    mask: Bool | None = None,
) -> Case:
    """Return the case of a relief seen by a camera, with exact depth and normals.

    Background is where heights are not finite, and outside the ``mask`` (H, W). For an orthographic camera of pixel
    size s, the height is s·h. For a perspective camera of focal length f, the depth is f − h pixels along each ray, so
    that the relief is based on a plane whose pixels have the side 1. There are no occlusions, and the normals follow
    from the depth by the chain rule.
    """
    camera = chosen_camera(camera, shape)
    depth, normals = np.full(shape, np.nan), np.zeros((*shape, 3), np.float32)
    for rows in row_blocks(shape):
        screen = pixel_centres(rows, shape[1])
        heights, *slopes = relief(screen)
        inside = np.isfinite(heights) if mask is None else mask[rows] & np.isfinite(heights)
        depth[rows][inside], normals[rows][inside] = _seen(
            camera, screen[inside], heights[inside], slopes[0][inside], slopes[1][inside]
        )
    return exact_case(name, depth, normals, camera)


def exact_case(name: str, depth: Float, normals: Float32, camera: Camera, units: str = "px") -> Case:
    """Return the case of depth (H, W) and unit normals (H, W, 3), which are NaN and zero outside.

    The normal map clamps normals beyond 85° from the viewing ray; the case keeps the exact ones.
    """
    normal_map = NormalMap(normals, np.isfinite(depth), camera)
    clamped = normal_map.repairs.grazing or normal_map.repairs.back_facing
    return Case(name, normal_map, depth, normals if clamped else normal_map.normals, units)


def _seen(camera: Camera, screen: Float, heights: Float, right: Float, up: Float) -> tuple[Float, Float]:
    """Return depths (K,) and unit normals (K, 3) at screen positions (K, 2) with these heights and slopes."""
    # Depth increases along the ray, height towards the viewer.
    side = camera.towards_viewer * camera.reference_pixel
    depth = camera.reference_depth + side * heights
    if camera.is_central and np.any(depth <= 0):
        raise NormalMeshError(
            f"the relief is {heights.max():.4g} px high and reaches the camera, whose focal length is "
            f"{camera.reference_depth:.4g} px; reduce the height or use a longer focal length"
        )
    unknown, change = camera.unknown_of_depth(depth), camera.depth_per_unknown(depth)
    along_u, along_v = side * right / change, -side * up / change
    rays = camera.rays(screen[:, 0], screen[:, 1])
    tangents = [slope[:, None] * rays + tau for slope, tau in zip((along_u, along_v), camera.tangents, strict=True)]
    # u points right and v down, so that the cross product of their tangents points away from the viewer.
    normals = np.cross(tangents[1], tangents[0])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return camera.depth(camera.points(screen, unknown)), normals
