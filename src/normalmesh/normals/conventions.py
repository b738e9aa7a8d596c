"""Conventions: the axes of the channels of a normal map.

The project's frame is x right, y up, z towards the viewer. A convention names the axis of that frame that each channel
of a file holds: ``"+x-y+z"`` means that the first channel is x, the second is y negated, the third is z.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from normalmesh.arguments import checked_array
from normalmesh.array_types import Floating
from normalmesh.errors import NormalMeshError, path_text, repr_for_error, shape_text, warn_caller

if TYPE_CHECKING:
    from normalmesh.normals.diagnosis import Diagnosis

#: Names of common conventions and their axes.
NAMED = {
    "opengl": "+x+y+z",  # y up: Blender, Unity, glTF, most photometric stereo
    "directx": "+x-y+z",  # y down: Unreal, many texture libraries
    "opencv": "+x-y-z",  # y down, z away from the viewer: camera coordinates of computer vision
}


@dataclass(frozen=True)
class Convention:
    """What the three channels of a file hold; make one by ``Convention.parse("directx")`` or ``parse("+x-y+z")``.

    Attributes
    ----------
    axes
        Canonical text: a sign and an axis for each channel.
    """

    axes: str

    def __post_init__(self) -> None:
        axes = self.axes if isinstance(self.axes, str) else ""
        if not re.fullmatch(r"([+-][xyz]){3}", axes) or sorted(axes[1::2]) != ["x", "y", "z"]:
            raise NormalMeshError(
                f"unknown convention {repr_for_error(self.axes)}; use {', '.join(NAMED)}, auto, or a sign and an axis "
                "for each channel, such as '+x-y+z'"
            )

    @classmethod
    def parse(cls, text: str | Convention) -> Convention:
        """Return the convention of a name (``opengl``, ``directx``, ``opencv``) or of axes (``+x-y+z``)."""
        if isinstance(text, Convention):
            return text
        if not isinstance(text, str):
            return cls(text)
        name = text.strip().lower()
        return cls(NAMED.get(name, name))

    @property
    def order(self) -> tuple[int, int, int]:
        """For each channel, the axis (0, 1, 2 = x, y, z) that it holds."""
        first, second, third = ("xyz".index(axis) for axis in self.axes[1::2])
        return first, second, third

    @property
    def signs(self) -> tuple[float, float, float]:
        """For each channel, the sign with which it holds its axis."""
        first, second, third = (float(sign + "1") for sign in self.axes[0::2])
        return first, second, third

    @property
    def name(self) -> str:
        """The common name if there is one, else the axes."""
        return next((name for name, axes in NAMED.items() if axes == self.axes), self.axes)

    def to_project(self, channels: Floating) -> Floating:
        """Convert channels (..., 3) as stored to normals (..., 3) in the project's frame."""
        return self._moved(channels, "channels", range(3), self.order)

    def from_project(self, normals: Floating) -> Floating:
        """Convert normals (..., 3) in the project's frame to channels (..., 3) to be stored."""
        return self._moved(normals, "normals", self.order, range(3))

    def _moved(self, values: Floating, name: str, sources: Sequence[int], targets: Sequence[int]) -> Floating:
        array = checked_array(values, name, "an array of floats", "f")
        if array.ndim == 0 or array.shape[-1] != 3:
            raise NormalMeshError(f"{name} must have the shape (..., 3), not {shape_text(array.shape)}")
        moved = np.empty_like(array)
        for source, target, sign in zip(sources, targets, self.signs, strict=True):
            np.multiply(array[..., source], sign, out=moved[..., target], casting="unsafe")
        return moved


def checked_convention(convention: str | Convention) -> Convention | None:
    """Return the convention that is stated; None if the data are to decide."""
    automatic = isinstance(convention, str) and convention.strip().lower() == "auto"
    return None if automatic else Convention.parse(convention)


def chosen_convention(path: Path, diagnosis: Diagnosis, stated: Convention | None) -> Convention:
    """Return the stated convention, with a warning if the data contradict it; else the likely one."""
    likely = likely_convention(diagnosis)
    if stated is None:
        if diagnosis.axes is None:
            warn_caller(
                f"{path_text(path)}: the data do not determine the convention; {likely.name} was assumed. "
                "State it as convention=…"
            )
        return likely
    if diagnosis.strongly_excludes(stated):
        warn_caller(
            f"{path_text(path)}: the data contradict the convention {stated.name}; {likely.name} fits. "
            f"Read it with convention={likely.name!r} or 'auto'"
        )
    return stated


def likely_convention(diagnosis: Diagnosis) -> Convention:
    """Return the convention that the data show; if several remain, the most common of them."""
    if diagnosis.axes is not None:
        return Convention.parse(diagnosis.axes)
    left = [Convention.parse(candidate) for candidate in diagnosis.candidates]
    common = [Convention.parse(name) for name in NAMED]
    return next((convention for convention in common if convention in left), (left or common)[0])
