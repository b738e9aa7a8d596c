"""From where something is seen: size of an image and camera, as options of a command."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from normalmesh.normals.camera import Camera

#: Cameras that need no file.
NAMED_CAMERAS = ("orthographic", "perspective")


class ImageSize(click.ParamType):
    """Pixels of an image: ``512`` for a square, ``640x480`` for columns and rows. Becomes (rows, columns)."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        parts = re.fullmatch(r"(\d+)(?:\s*[x×]\s*(\d+))?", str(value).strip().lower())
        if parts is None or int(parts[1]) == 0 or int(parts[2] or 1) == 0:
            self.fail(f"{value!r} is not a size such as 512, or 640x480 (columns and rows)", param, ctx)
        return int(parts[2] or parts[1]), int(parts[1])


def viewing(command: Callable[..., Any]) -> Callable[..., Any]:
    """How something is looked at: ``camera`` and ``focal_px``."""
    for option in (
        click.option(
            "--focal-px",
            type=click.FloatRange(0, min_open=True),
            help="Focal length of a pinhole in the image's middle, instead of --camera.",
        ),
        click.option(
            "--camera",
            metavar="FILE|NAME",
            help="File with the 3×3 matrix of a pinhole; or orthographic, the default, or perspective (37° wide).",
        ),
    ):
        command = option(command)
    return command


def refuse_two_cameras(camera: str | None, focal_px: float | None) -> None:
    if camera is not None and focal_px is not None:
        raise click.UsageError("give only one of --camera, --focal-px")


def chosen_view(camera: str | None, focal_px: float | None, shape: tuple[int, int]) -> Camera:
    """The camera that the options name, for an image of so many rows and columns."""
    from normalmesh.evaluation.synthetic.screens import chosen_camera
    from normalmesh.normals.camera import Perspective

    if focal_px is not None:
        return Perspective.centred(focal_px, shape)
    if camera is None or (camera in NAMED_CAMERAS and not Path(camera).exists()):
        return chosen_camera(camera or "orthographic", shape)
    return Perspective.from_file(camera)


def camera_figures(camera: Camera) -> dict[str, Any]:
    """A camera for programs: its kind, and its numbers."""
    return {"kind": type(camera).__name__.lower(), **vars(camera)}
