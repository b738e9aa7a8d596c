"""Questions about the principal point of a camera that does not seem to belong to its image."""

from __future__ import annotations

import math

from normalmesh.errors import warn_caller
from normalmesh.normals.camera import Camera

#: A principal point is questioned if it is this much nearer to the middle of the turned image than to that of the
#: image, and so far from the latter, as a share of the longer side.
NEARER, OFF_CENTRE = 0.25, 0.05


def principal_point_question(camera: Camera, shape: tuple[int, int]) -> str | None:
    """Return a question about the principal point of a camera for an image of rows and columns; None if it is fine."""
    matrix = camera.matrix("half")
    if matrix is None:
        return None
    (rows, columns), (cx, cy) = shape, matrix[:2, 2].tolist()
    off_centre = math.hypot(cx - columns / 2, cy - rows / 2)
    if off_centre > OFF_CENTRE * max(shape) and math.hypot(cx - rows / 2, cy - columns / 2) < NEARER * off_centre:
        return (
            f"the principal point ({cx:g}, {cy:g}) is the middle of {rows} × {columns} pixels, but the image has "
            f"{columns} × {rows}: are cx and cy swapped? cx counts columns, to the right, and cy rows, down"
        )
    if not (0 <= cx <= columns and 0 <= cy <= rows):
        return (
            f"the principal point ({cx:g}, {cy:g}) lies outside the image of {columns} × {rows} pixels. That is right "
            "if the image is a crop of a larger one; else the camera matrix is that of another image or size: scale it"
        )
    return None


def question_camera(camera: Camera, shape: tuple[int, int]) -> None:
    """Warn of a principal point that does not seem to belong to an image."""
    if question := principal_point_question(camera, shape):
        warn_caller(question)
