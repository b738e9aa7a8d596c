"""The orthographic camera."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from normalmesh.arguments import checked_positive
from normalmesh.array_types import Float
from normalmesh.errors import NormalMeshError
from normalmesh.normals.camera import MIN_LENGTH, ParallelCamera, check_magnitude, checked_screen_and_unknown


@dataclass(frozen=True)
class Orthographic(ParallelCamera):
    """An orthographic camera: parallel rays. The unknown is the height z; a point is ``(s·u, −s·v, z)``.

    Parameters
    ----------
    pixel_size
        Side s of a pixel in the unit of the surface.
    """

    pixel_size: float = 1.0

    def __post_init__(self) -> None:
        size = checked_positive(self.pixel_size, "pixel_size")
        check_magnitude(size, "pixel_size", MIN_LENGTH)
        object.__setattr__(self, "pixel_size", size)

    @property
    def frame(self) -> Float:
        s = self.pixel_size
        return np.array([[s, 0, 0], [0, -s, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]], np.float64)

    def points(self, screen: ArrayLike, unknown: ArrayLike) -> Float:
        u, v, height = checked_screen_and_unknown(screen, unknown)
        return np.stack([self.pixel_size * u, -self.pixel_size * v, height], axis=-1)

    def shifted(self, u: float, v: float) -> Orthographic:
        return self

    def resampled(self, across: float, down: float) -> Orthographic:
        if across != down:
            raise NormalMeshError(
                f"pixels of an orthographic camera are square, so that {across:g} times the columns and {down:g} times "
                "the rows are not possible; give one factor, or a shape of the same proportions"
            )
        return Orthographic(self.pixel_size / across)

    def turned(self, quarters: int, shape: tuple[int, int]) -> Orthographic:
        return self

    def describe(self) -> str:
        return "orthographic" + f", pixels of side {self.pixel_size:g}" * (self.pixel_size != 1)
