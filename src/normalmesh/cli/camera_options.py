"""Image size and camera as options of a command."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from normalmesh.normals.camera import Camera

#: Cameras that can be given by name instead of a file.
NAMED_CAMERAS = ("orthographic", "perspective")


def image_size(value: str) -> tuple[int, int]:
    """Parse an image size in pixels, ``512`` (square) or ``640x480`` (columns × rows), to (rows, columns)."""
    parts = re.fullmatch(r"(\d+)(?:\s*[x×]\s*(\d+))?", value.strip().lower())
    if parts is None or int(parts[1]) == 0 or int(parts[2] or 1) == 0:
        raise click.BadParameter(f"{value!r} is not a size such as 512 or 640x480 (columns x rows)")
    return int(parts[2] or parts[1]), int(parts[1])


def camera_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options ``--camera`` and ``--focal-px`` to a command."""
    for option in (
        click.option(
            "--focal-px",
            type=click.FloatRange(0, min_open=True),
            help="Focal length in pixels of a perspective camera centred on the image, instead of --camera.",
        ),
        click.option(
            "--camera",
            metavar="FILE|NAME",
            help="File with the 3×3 camera matrix, orthographic (default), or perspective (37° field of view).",
        ),
    ):
        command = option(command)
    return command


def reject_two_cameras(camera: str | None, focal_px: float | None) -> None:
    """Raise a usage error if both options are given."""
    if camera is not None and focal_px is not None:
        raise click.UsageError("give only one of --camera, --focal-px")


def selected_camera(camera: str | None, focal_px: float | None, shape: tuple[int, int]) -> Camera:
    """Return the camera that the options select, for an image of shape (rows, columns)."""
    from normalmesh.evaluation.synthetic.image_geometry import chosen_camera
    from normalmesh.normals.perspective import Perspective

    if focal_px is not None:
        return Perspective.centred(focal_px, shape)
    if camera is None or (camera in NAMED_CAMERAS and not Path(camera).exists()):
        return chosen_camera(camera or "orthographic", shape)
    return Perspective.from_file(camera)


def camera_as_dict(camera: Camera) -> dict[str, Any]:
    """Return the kind and the parameters of a camera, for JSON."""
    return {"kind": type(camera).__name__.lower(), **vars(camera)}
