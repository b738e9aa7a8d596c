"""Normals, mask, intrinsics and depth as networks such as MoGe-2 give them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.arguments import checked_path, without_tensor
from normalmesh.array_types import Bool, Float, Float32
from normalmesh.errors import NormalMeshError, repr_for_error, shape_text
from normalmesh.files.arrays import read_npz_arrays
from normalmesh.maps.cameras import camera_from
from normalmesh.mesh.jumps import Jumps
from normalmesh.normals.camera import Camera
from normalmesh.normals.conventions import Convention
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.orthographic import Orthographic
from normalmesh.normals.perspective import Perspective
from normalmesh.reconstruction.fitted_prior import FittedPrior, fit_prior

#: Names of what a network gives, each in order of preference.
NAMES = {
    "normal": ("normal", "normals", "prediction_normal"),
    "mask": ("mask",),
    "intrinsics": ("intrinsics", "K", "camera_matrix"),
    "depth": ("depth", "metric_depth"),
    "points": ("points",),
}
#: Principal points up to this number, in both directions, are shares of the image.
NORMALISED = 2.0


@dataclass(frozen=True, eq=False, repr=False)
class NetworkOutput:
    """What a network sees in an image.

    Attributes
    ----------
    normal_map : NormalMap
        With the network's camera.
    depth : (H, W) float64 or None
        Distance along the optical axis (orthographic: height), NaN where unknown; None if the network gives none.
    """

    normal_map: NormalMap
    depth: Float | None

    def prior(self, *, shift: bool = False, jumps: Jumps | None = None) -> FittedPrior:
        """Return the depth as a prior in agreement with the normals, see :func:`fit_prior`.

        ``nm.reconstruct(output.normal_map, prior=output.prior())``: details follow the normals, and the
        distances of parts, and what normals leave uncertain over long ways, follow the depth.
        """
        if self.depth is None:
            raise NormalMeshError("the network gave no depth: its output holds neither depth nor points")
        return fit_prior(self.depth, self.normal_map, shift=shift, jumps=jumps)

    def __repr__(self) -> str:
        return f"NetworkOutput({self.normal_map}, {'without' if self.depth is None else 'with'} depth)"


def from_network(
    output: Mapping[str, Any] | str | PathLike[str],
    *,
    camera: Camera | str | PathLike[str] | None = None,
    convention: str | Convention = "opencv",
    pixel_centre: str = "integer",
) -> NetworkOutput:
    """Return the normal map and the depth that a network such as MoGe-2 found in an image.

    Parameters
    ----------
    output
        Arrays or tensors on any device, by name, of one image, with or without a batch dimension; or an NPZ file of
        them. ``normal`` (H, W, 3) or (3, H, W) is required. ``mask`` (H, W): floats from ½ on are foreground.
        ``intrinsics`` (3, 3): normalised, that is, fx and cx are divided by the columns and fy and cy by the rows, or
        in pixels. ``depth`` (H, W), or ``points`` (H, W, 3), whose last coordinate is the depth.
    camera
        Instead of the intrinsics: a camera, or a file with its matrix. Default: the intrinsics, else, if there is no
        depth, :class:`Orthographic`.
    convention
        Axes of the normals: by default x right, y down, z away from the viewer.
    pixel_centre
        Where a matrix in pixels puts the centre of the first pixel, as for :meth:`Perspective.from_matrix`. For
        normalised intrinsics, the corner of the image is (0, 0).

    Returns
    -------
    NetworkOutput
        The normal map with its camera, and the depth.

    Raises
    ------
    NormalMeshError
        No normals, several images, arrays of different sizes, or a depth without a camera.

    Examples
    --------
    >>> found = nm.from_network(model.infer(image))  # doctest: +SKIP
    >>> surface = nm.reconstruct(found.normal_map, compression=0.98, prior=found.prior())  # doctest: +SKIP
    """
    arrays = _arrays(output)
    normals = _normals(arrays, Convention.parse(convention))
    rows, columns = normals.shape[:2]
    depth, mask = _depth(arrays, (rows, columns)), _image(arrays, "mask", (rows, columns))
    view = _camera(arrays, camera, (rows, columns), pixel_centre, depth is not None)
    if depth is not None:
        depth = -view.towards_viewer * depth
    if mask is None:
        known: Bool = np.isfinite(normals[..., 2] if depth is None else depth)
    else:
        known = mask >= 0.5
    return NetworkOutput(NormalMap(normals, known, view), depth)


def _arrays(output: Mapping[str, Any] | str | PathLike[str]) -> dict[str, NDArray[Any]]:
    """Return the arrays that are there, by the keys of :data:`NAMES`."""
    if isinstance(output, str | PathLike):
        wanted = [name for names in NAMES.values() for name in names]
        output = read_npz_arrays(checked_path(output, "output"), wanted)
    if not isinstance(output, Mapping):
        raise NormalMeshError(f"output must be a dictionary of arrays or an NPZ file, not {repr_for_error(output)}")
    found = {key: next((name for name in names if output.get(name) is not None), None) for key, names in NAMES.items()}
    if found["normal"] is None:
        listed = ", ".join(map(str, output)) or "nothing"
        raise NormalMeshError(
            f"output holds no {' or '.join(NAMES['normal'])}, but {listed}; use a model that gives normals, such as "
            "moge-2-vitl-normal"
        )
    return {key: _array(output[name], name) for key, name in found.items() if name is not None}


def _array(value: Any, name: str) -> NDArray[Any]:
    """Return an array or a tensor as an array."""
    try:
        array = np.asarray(without_tensor(value))
    except (TypeError, ValueError) as error:
        raise NormalMeshError(f"{name} must be an array of numbers, not {repr_for_error(value)}") from error
    if array.dtype.kind not in "bfiu":
        raise NormalMeshError(f"{name} must be an array of numbers, not {repr_for_error(value)}")
    return array.astype(np.float64) if array.dtype.kind == "f" and array.dtype.itemsize < 4 else array


def _without_batch(array: NDArray[Any], dimensions: int, name: str, shape: str) -> NDArray[Any]:
    """Return an array of the given number of dimensions: others before them must have length one."""
    while array.ndim > dimensions and array.shape[0] == 1:
        array = array[0]
    if array.ndim != dimensions:
        several = "; choose one image of the batch" if array.ndim == dimensions + 1 else ""
        raise NormalMeshError(f"{name} must have the shape {shape}, not {shape_text(array.shape)}{several}")
    return array


def _normals(arrays: dict[str, NDArray[Any]], axes: Convention) -> Float32:
    """Return the normals (H, W, 3) in the project's frame."""
    normals = _without_batch(arrays["normal"], 3, "normal", "(rows, columns, 3) or (3, rows, columns)")
    if normals.shape[2] != 3 and normals.shape[0] == 3:
        normals = np.moveaxis(normals, 0, -1)
    if normals.shape[2] != 3 or normals.dtype.kind != "f":
        raise NormalMeshError(
            "normal must be floats of the shape (rows, columns, 3) or (3, rows, columns), not "
            f"{normals.dtype} {shape_text(normals.shape)}"
        )
    return axes.to_project(normals.astype(np.float32)).astype(np.float32)


def _image(arrays: dict[str, NDArray[Any]], name: str, shape: tuple[int, int]) -> Float | None:
    """Return an array (H, W) as floats, or None if there is none."""
    if name not in arrays:
        return None
    array = arrays[name]
    # A channel dimension, as in (1, 1, rows, columns) or (rows, columns, 1), is not needed.
    array = array[..., 0] if array.ndim > 2 and array.shape[-1] == 1 and array.shape[-3:-1] == shape else array
    image = _without_batch(array, 2, name, "(rows, columns)")
    if image.shape != shape:
        raise NormalMeshError(f"{name} is {shape_text(image.shape)} but normals are {shape_text(shape)}")
    return image.astype(np.float64)


def _depth(arrays: dict[str, NDArray[Any]], shape: tuple[int, int]) -> Float | None:
    """Return the distances (H, W) along the optical axis, NaN where unknown, or None if there are none."""
    depth = _image(arrays, "depth", shape)
    if depth is None and "points" in arrays:
        points = _without_batch(arrays["points"], 3, "points", "(rows, columns, 3)")
        depth = _image({"points": points[..., -1]}, "points", shape)
    if depth is not None:
        # Affine-invariant distances may be negative.
        depth[~np.isfinite(depth) | (depth == 0)] = np.nan
    return depth


def _camera(
    arrays: dict[str, NDArray[Any]],
    camera: Camera | str | PathLike[str] | None,
    shape: tuple[int, int],
    pixel_centre: str,
    has_depth: bool,
) -> Camera:
    if camera is not None:
        return camera_from(camera)
    if "intrinsics" not in arrays:
        if has_depth:
            raise NormalMeshError(
                "output holds a depth but no intrinsics: give the camera, such as camera=nm.Perspective.centred(...)"
            )
        return Orthographic()
    matrix = _without_batch(arrays["intrinsics"], 2, "intrinsics", "(3, 3)").astype(np.float64)
    if matrix.shape == (3, 3) and np.abs(matrix[:2, 2]).max() <= NORMALISED:
        matrix[0] *= shape[1]
        matrix[1] *= shape[0]
        pixel_centre = "half"
    try:
        return Perspective.from_matrix(matrix, pixel_centre)
    except NormalMeshError as error:
        raise NormalMeshError(f"intrinsics: {error}") from error
