"""Find the files of normals, mask, camera and depth, and assemble a case from them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from normalmesh.array_types import Float
from normalmesh.errors import NormalMeshError, NormalMeshWarning, path_text, shape_text
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.metrics import angles_between, normals_of_depth
from normalmesh.files.formats import unusable
from normalmesh.maps.normal_maps import read_normal_map
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.orthographic import Orthographic
from normalmesh.normals.perspective import Perspective
from normalmesh.output.heights import read_depth_map

CAMERAS = ("perspective", "orthographic")
#: Median angle in degrees between the normals and those of the depth, beyond which they do not match.
MAX_MEDIAN_ANGLE = 30.0


class MissingFileError(NormalMeshError):
    """A case lacks a file."""


def first_file(folder: Path, names: Iterable[str]) -> Path | None:
    """Return the first of these files that exists, or None."""
    return next((folder / name for name in names if (folder / name).is_file()), None)


def required_file(folder: Path, *names: str) -> Path:
    """Return the first of these files that exists, or raise an error."""
    if (path := first_file(folder, names)) is not None:
        return path
    others = f" (nor {', '.join(names[1:])})" if names[1:] else ""
    raise MissingFileError(f"{path_text(folder / names[0])}: there is no such file{others}")


@contextmanager
def repair_warnings_ignored() -> Iterator[None]:
    """Ignore warnings about repaired normals, which occur at every outline. ``NormalMap.repairs`` counts them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*(left the mask|were normalised|clamped to 85°)", NormalMeshWarning)
        yield


def read_map(
    normals: Path, mask: Path | None, camera: str, intrinsics: Perspective | None, variable: str | None = None
) -> NormalMap:
    """Read a normal map with x right, y up, z towards the viewer, for a ``"perspective"`` or ``"orthographic"`` camera.

    Warn if the data clearly contradict these axes.
    """
    model = intrinsics if intrinsics is not None and camera == "perspective" else Orthographic()
    with repair_warnings_ignored():
        return read_normal_map(normals, mask, model, variable=variable)


def read_distances(path: Path, normal_map: NormalMap, variable: str | None = None) -> Float:
    """Read a depth map (H, W) that increases away from the camera; NaN where it is unknown and outside the mask."""
    distances = read_depth_map(path, variable)
    if distances.shape != normal_map.shape:
        raise unusable(
            path,
            f"depth is {shape_text(distances.shape)} but normals are {shape_text(normal_map.shape)}; "
            "they must belong to the same image",
        )
    distances[~normal_map.mask] = np.nan
    return distances


def assemble(
    name: str,
    normal_map: NormalMap,
    distances: Float | None,
    intrinsics: Perspective | None = None,
    *,
    units: str = "px",
    group: str = "",
) -> Case:
    """Return the case of a normal map and its true depth (H, W), which increases away from the camera.

    Distances are along the optical axis if ``intrinsics``, the perspective camera that took the pictures, are given,
    else up to a constant. An orthographic case of such pictures gets the pixel size at the mean depth.
    """
    if distances is None:
        return Case(name, normal_map, group=group)
    if intrinsics is not None:
        distances = np.where(distances > 0, distances, np.nan)
    _warn_of_disagreement(name, normal_map, distances, intrinsics)
    if intrinsics is not None and normal_map.camera.pixel_side is not None:
        pixel_size = float(np.nanmean(distances) / np.sqrt(intrinsics.fx * intrinsics.fy))
        with repair_warnings_ignored():
            normal_map = NormalMap(normal_map.normals, normal_map.mask, Orthographic(pixel_size))
    return Case(name, normal_map, -normal_map.camera.towards_viewer * distances, units=units, group=group)


def _warn_of_disagreement(name: str, normal_map: NormalMap, distances: Float, intrinsics: Perspective | None) -> None:
    """Warn if the normals of the depth differ from the normals: wrong axes, a wrong calibration or mixed-up files."""
    top, left, *_ = rectangle = normal_map.rectangle()
    part, camera = rectangle.window, Orthographic() if intrinsics is None else intrinsics.shifted(left, top)
    depth = -camera.towards_viewer * distances[part]
    angles = angles_between(normals_of_depth(depth, camera), normal_map.normals[part])
    angles = angles[np.isfinite(angles)]
    if angles.size and (median := float(np.median(angles))) > MAX_MEDIAN_ANGLE:
        warnings.warn(
            f"{name}: the median angle between normals and true depth is {median:.0f}°; their axes, the camera or the "
            "files are not as expected for this data set",
            NormalMeshWarning,
            stacklevel=4,
        )
