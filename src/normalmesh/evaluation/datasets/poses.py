"""Pose: a calibrated camera with its position and orientation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import rq

from normalmesh.array_types import Float
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.normals.perspective import Perspective

#: From x right, y down, z forward to x right, y up, z towards the viewer.
FROM_COMPUTER_VISION = np.diag([1.0, -1.0, -1.0])

#: Largest difference between entries of a calibrated rotation and those of an exact one.
ROTATION_TOLERANCE = 0.02


@dataclass(frozen=True, eq=False)
class Pose:
    """A camera in the world: a point X of the world is ``rotation @ X + translation`` in the camera frame.

    Attributes
    ----------
    camera : Perspective
    rotation : (3, 3)
    translation : (3,)
        The camera frame is x right, y up, z towards the viewer.
    """

    camera: Perspective
    rotation: Float
    translation: Float

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
