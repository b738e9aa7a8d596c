"""DiLiGenT-MV: five objects in twenty views each, with a scanned mesh (Li et al. 2020)."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from normalmesh.array_types import Float
from normalmesh.errors import NormalMeshError
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.datasets.case_assembly import assemble, read_map
from normalmesh.evaluation.datasets.dataset import required_file
from normalmesh.evaluation.datasets.poses import Pose
from normalmesh.files.formats import file_format, reading, unusable
from normalmesh.files.matlab import list_variables, read_variable
from normalmesh.normals.normal_map import NormalMap

if TYPE_CHECKING:
    from normalmesh.evaluation.rendering.triangle_model import TriangleModel

#: Smallest fraction of the foreground that a matching mesh covers.
MIN_COVERAGE = 0.5


def find(root: Path) -> dict[str, Path]:
    """Return the folders of all views by object and view."""
    views = sorted(path for path in root.glob("*/view_*") if re.fullmatch(r"view_\d+", path.name) and path.is_dir())
    return {f"{view.parent.name.removesuffix('PNG')}/{view.name}": view for view in views}


def read(name: str, place: Path, camera: str) -> Case:
    """Read a view. Normals are in the camera frame: x right, y up, z towards the viewer. Depth of the mesh is in mm.

    ``Calib_Results.mat`` is written by Bouguet's toolbox: a point X of the mesh is projected to ``KK (Rc_i X + Tc_i)``,
    x right, y down, z forward, the centre of the first pixel at (0, 0). Lens distortion (``kc``) is ignored: the ground
    truth is assumed to be free of it.
    """
    model = place.parent
    pose = _read_pose(required_file(model, "Calib_Results.mat"), int(place.name.removeprefix("view_")))
    normals, mask = required_file(place, "Normal_gt.mat"), required_file(place, "mask.png")
    normal_map = read_map(normals, mask, camera, pose.camera, "Normal_gt")
    distances = _distances(required_file(model, "mesh_Gt.ply", "mesh_gt.ply"), pose, normal_map)
    return assemble(name, normal_map, distances, pose.camera, units="mm", group=name.partition("/")[0])


def _read_pose(path: Path, view: int) -> Pose:
    """Read the pose of a view, numbered from one."""
    if (kind := file_format(path)) != "MAT":
        raise unusable(path, f"expected a MAT file of version 5 to 7, not {kind}; in Matlab, save(..., '-v7')")
    names = ("KK", f"Rc_{view}", f"Tc_{view}")
    with reading(path, "MAT"):
        stored = list_variables(path)
        found = {name: read_variable(path, stored[name]) for name in names if name in stored}
    if missing := [name for name in names if name not in found]:
        raise unusable(path, f"the calibration of view {view} is missing: there is no variable {', '.join(missing)}")
    try:
        return Pose.from_calibration(*(found[name] for name in names))
    except NormalMeshError as error:
        raise unusable(path, f"{', '.join(names)}: {error}") from error


@lru_cache(maxsize=1)
def _read_mesh(path: Path) -> TriangleModel:
    """Read a mesh file. The last mesh is cached, because twenty views share it."""
    from normalmesh.evaluation.rendering.triangle_model import TriangleModel

    return TriangleModel.of(path)


def _distances(path: Path, pose: Pose, normal_map: NormalMap) -> Float:
    """Return the depth (H, W) of the mesh along the optical axis; NaN outside the mask and where there is no face."""
    from normalmesh.evaluation.rendering.rendering import cast

    mesh = _read_mesh(path)
    hits, depth = cast(pose.place(mesh.vertices), mesh.faces, pose.camera, normal_map.shape)
    seen = (hits >= 0) & normal_map.mask
    if seen.sum() < MIN_COVERAGE * normal_map.foreground:
        raise unusable(
            path,
            f"the mesh covers {seen.sum()} of {normal_map.foreground} pixels of the mask; check that mesh, calibration "
            "and mask match",
        )
    return np.where(seen, depth, np.nan)
