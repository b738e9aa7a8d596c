"""DiLiGenT-MV: five objects in twenty views each, with a scanned mesh (Li et al. 2020)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import rq

from normalmesh.array_types import Float
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.datasets.case_assembly import assemble, read_map, required_file
from normalmesh.files.formats import file_format, reading, unusable
from normalmesh.files.matlab import list_variables, read_variable
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.perspective import Perspective

if TYPE_CHECKING:
    from normalmesh.evaluation.rendering.triangle_model import TriangleModel

#: From x right, y down, z forward to x right, y up, z towards the viewer.
FROM_COMPUTER_VISION = np.diag([1.0, -1.0, -1.0])

#: Largest difference between entries of a calibrated rotation and those of an exact one.
ROTATION_TOLERANCE = 0.02
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


@dataclass(frozen=True, eq=False)
class Pose:
    """A camera in the world: a point X of the world is ``rotation @ X + translation`` in the camera frame.

    The camera frame is x right, y up, z towards the viewer.
    """

    camera: Perspective
    rotation: Float  # (3, 3)
    translation: Float  # (3,)

    @classmethod
    def from_calibration(cls, K: ArrayLike, R: ArrayLike, T: ArrayLike) -> Pose:
        """Return the pose of a camera given as x right, y down, z forward, pixel centres at integers.

        A pixel is ``K (R X + T)`` up to scale. If R is not exactly a rotation, the deviation is moved into K, so that
        lengths and pixel positions are unchanged.
        """
        K, R, T = np.asarray(K, np.float64)[:3, :3], np.asarray(R, np.float64), np.ravel(np.asarray(T, np.float64))
        if K.shape != (3, 3) or R.shape != (3, 3) or T.shape != (3,):
            raise NormalMeshError(
                f"K and R must be 3×3 and T 3 numbers, not {shape_text(K.shape)}, {shape_text(R.shape)} and "
                f"{shape_text(T.shape)}"
            )
        if not (np.isfinite(K).all() and np.isfinite(R).all() and np.isfinite(T).all()):
            raise NormalMeshError("K, R and T must be finite")
        intrinsics, rotation = rq(K @ R)
        signs = np.where(np.diag(intrinsics) < 0, -1.0, 1.0)
        intrinsics, rotation = intrinsics * signs, signs[:, None] * rotation
        if np.abs(rotation - R).max() > ROTATION_TOLERANCE:
            raise NormalMeshError(f"R is not a rotation: {R.round(3).tolist()}")
        translation = np.linalg.solve(intrinsics, K @ T)
        camera = Perspective.from_matrix(intrinsics / intrinsics[2, 2], pixel_centre="integer")
        return cls(camera, FROM_COMPUTER_VISION @ rotation, FROM_COMPUTER_VISION @ translation)

    def place(self, points: ArrayLike) -> Float:
        """Convert points (..., 3) of the world to the camera frame."""
        return np.asarray(points, np.float64) @ self.rotation.T + self.translation
