"""Data sets of folders with pictures or arrays: DiLiGenT, LUCES, Harvard, plain folders and RGBN.

Normals are x right, y up, z towards the viewer; for RGBN, whose original data could not be checked, that is an
assumption. Depth increases away from the camera.
"""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np

from normalmesh.array_types import Float32
from normalmesh.errors import NormalMeshError, NormalMeshWarning, path_text, shape_text
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.datasets.case_assembly import (
    CAMERAS,
    assemble,
    first_file,
    read_distances,
    read_map,
    repair_warnings_ignored,
    required_file,
)
from normalmesh.files.arrays import read_normals
from normalmesh.files.formats import file_format, unusable
from normalmesh.normals.conventions import Convention
from normalmesh.normals.diagnosis import diagnose
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.perspective import Perspective

#: Intrinsics of all objects of DiLiGenT, 612 × 512 pixels, centre of the first pixel at (0, 0), as public code uses
#: them. The data set itself does not contain them.
DILIGENT_INTRINSICS = ((3772.077471, 0.0, 305.875), (0.0, 3759.005431, 255.875), (0.0, 0.0, 1.0))
#: Files of plain folders.
NORMALS = [f"normals.{suffix}" for suffix in ("png", "exr", "tif", "tiff", "npy", "npz", "mat", "jpg")]
DEPTHS = [f"depth.{suffix}" for suffix in ("npz", "npy", "exr", "tif", "tiff", "mat")]
#: Pattern of the names of normal maps of RGBN, or of their folder, and the suffixes of pictures.
MARK = re.compile(r"[-_. ]*(normals?([-_ ]?map)?|nrm)s?[-_. ]*|[-_.]n$", re.IGNORECASE)
PICTURES = (".png", ".tif", ".tiff", ".jpg", ".jpeg", ".exr")


def find_diligent(root: Path) -> dict[str, Path]:
    """Return the folders of the objects of DiLiGenT by name."""
    return {path.parent.name.removesuffix("PNG"): path.parent for path in sorted(root.glob("*PNG/Normal_gt.mat"))}


def read_diligent(name: str, place: Path, camera: str) -> Case:
    """Read an object of DiLiGenT: one view, with scanned normals (Shi et al. 2016).

    The data set itself has no depth. The authors of bilateral normal integration (Cao et al. 2022) published depth maps
    of nine objects, in mm, as ``diligent_depth_GT``; that folder may be next to ``pmsData`` or in it.
    """
    intrinsics = _stored_camera(place) or Perspective.from_matrix(DILIGENT_INTRINSICS)
    normals, mask = required_file(place, "Normal_gt.mat"), required_file(place, "mask.png")
    normal_map = read_map(normals, mask, camera, intrinsics, "Normal_gt")
    folders = (place.name, "diligent_depth_GT", "../diligent_depth_GT")
    depth = first_file(place.parent, [f"{place.name}/depth_gt.mat", *(f"{each}/{name}_gt.mat" for each in folders)])
    distances = None if depth is None else read_distances(depth, normal_map)
    return assemble(name, normal_map, distances, intrinsics, units="mm")


def find_luces(root: Path) -> dict[str, Path]:
    """Return the folders of the objects of LUCES by name."""
    return {path.parent.name: path.parent for path in sorted(root.glob("*/led_params.txt"))}


def read_luces(name: str, place: Path, camera: str) -> Case:
    """Read an object of LUCES: close to the camera, with scanned normals and depth in mm (Mecca et al. 2021)."""
    setup = required_file(place, "led_params.txt")
    intrinsics, size = _read_setup(setup)
    normal_map = read_map(required_file(place, "normals.png"), required_file(place, "mask.png"), camera, intrinsics)
    # The header of the file and the code that writes it disagree on the order of the two sides.
    if sorted(size) != sorted(normal_map.shape):
        raise unusable(setup, f"is for {shape_text(size)} pixels but normals are {shape_text(normal_map.shape)}")
    distances = read_distances(required_file(place, "zgt.npz"), normal_map, "zgt")
    return assemble(name, normal_map, distances, intrinsics, units="mm")


def _read_setup(path: Path) -> tuple[Perspective, tuple[int, int]]:
    """Read the camera, and the two sides of the image in pixels, from the second line of ``led_params.txt``.

    It has the number of images, the two sides, the focal length and the principal point in pixels, and the mean
    distance. The principal point is assumed to be that of images with the centre of the first pixel at (0, 0).
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        _, side, other, focal, x, y = map(float, lines[1].split()[:6])
        K = [[focal, 0.0, x], [0.0, focal, y], [0.0, 0.0, 1.0]]
        return Perspective.from_matrix(K, pixel_centre="integer"), (round(side), round(other))
    except NormalMeshError as error:
        raise unusable(path, str(error)) from error
    except (IndexError, ValueError, OverflowError) as error:
        raise unusable(path, "line 2 must read: N_img nrows ncols f x0 y0 mean_distance, all numbers") from error


def find_harvard(root: Path) -> dict[str, Path]:
    """Return the files of the seven objects of Harvard by name."""
    return {path.parent.name: path for path in sorted(root.glob("*/result.mat"))}


def read_harvard(name: str, place: Path, camera: str) -> Case:
    """Read an object of Harvard, whose measured normals also serve as ground truth, for an orthographic camera.

    Normals are floats: x right, y up, z towards the viewer, the *bottom* row first, NaN outside.
    """
    if (kind := file_format(place)) != "MAT":
        raise unusable(place, f"expected a MAT file of version 5 to 7, not {kind}; in Matlab, save(..., '-v7')")
    stored, _ = read_normals(place, "MAT", None)
    if stored.dtype.kind != "f":
        raise unusable(place, f"normals must be floats, not {stored.dtype}")
    normals = np.asarray(stored[::-1], np.float32)
    try:
        return Case(name, _harvard_map(place, normals))
    except NormalMeshError as error:
        raise unusable(place, str(error)) from error


def _harvard_map(path: Path, normals: Float32) -> NormalMap:
    """Return the normal map of normals (H, W, 3), NaN or zero outside; warn if the data contradict the axes."""
    mask = np.asarray(np.isfinite(normals).all(axis=2) & normals.any(axis=2))
    if diagnose(normals).strongly_excludes(Convention.parse("opengl")):
        warnings.warn(
            f"{path_text(path)}: the data contradict x right, y up, z towards the viewer, bottom row first",
            NormalMeshWarning,
            stacklevel=4,
        )
    with repair_warnings_ignored():
        return NormalMap(normals, mask)


def find_folders(root: Path) -> dict[str, Path]:
    """Return the folders that hold a normal map by name: the folder itself, or those in it."""
    folders = [root] if first_file(root, NORMALS) else sorted(path for path in root.iterdir() if path.is_dir())
    return {folder.resolve().name: folder for folder in folders if first_file(folder, NORMALS)}


def cameras_of_folder(place: Path) -> tuple[str, ...]:
    """Return the cameras of a plain folder: perspective only with ``K.txt``."""
    return CAMERAS if (place / "K.txt").is_file() else ("orthographic",)


def read_folder(name: str, place: Path, camera: str) -> Case:
    """Read a plain folder.

    With ``K.txt``, the camera is perspective, pixel centres are at integers, and depth is along the optical axis.
    Without it, the camera is orthographic, and depth is in pixels up to a constant.
    """
    intrinsics = _stored_camera(place)
    normal_map = read_map(required_file(place, *NORMALS), first_file(place, ["mask.png"]), camera, intrinsics)
    depth = first_file(place, DEPTHS)
    distances = None if depth is None else read_distances(depth, normal_map)
    units = _stated_units(place / "meta.json") or ("px" if intrinsics is None else "units")
    return assemble(name, normal_map, distances, intrinsics, units=units)


def _stored_camera(place: Path) -> Perspective | None:
    """Return the camera of ``K.txt``, if there is one."""
    path = place / "K.txt"
    return Perspective.from_file(path) if path.is_file() else None


def _stated_units(path: Path) -> str | None:
    """Return the unit of the depth if the file states it."""
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise NormalMeshError(f"{path_text(path)}: is not valid JSON: {error}") from error
    return str(content["units"]) if isinstance(content, dict) and "units" in content else None


def find_rgbn(root: Path) -> dict[str, Path]:
    """Return every picture with "normal" in its name, or in the name of its folder."""
    pictures = [path for pattern in ("*", "*/*") for path in root.glob(pattern) if path.suffix.lower() in PICTURES]
    places: dict[str, Path] = {}
    for path in sorted(pictures):
        if (name := _rgbn_name(path, root)) is not None:
            places.setdefault(name, path)
    return dict(sorted(places.items()))


def read_rgbn(name: str, place: Path, camera: str) -> Case:
    """Read a picture of RGBN, with a normal at each pixel (Toler-Franklin et al. 2007), without ground truth."""
    mask = first_file(place.parent, [f"{name}{join}mask.png" for join in "-_."] + ["mask.png"])
    return assemble(name, read_map(place, mask, camera, None), None)


def _rgbn_name(path: Path, root: Path) -> str | None:
    """Return the name of the case, or None if the picture is not a normal map."""
    folder = "" if path.parent == root else path.parent.name
    if MARK.search(path.stem):
        return MARK.sub("", path.stem) or folder or None
    return path.stem if folder and MARK.fullmatch(folder) else None
