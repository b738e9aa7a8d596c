"""Lengths with a unit, such as ``3mm``, and what they are in the unit of a surface."""

from __future__ import annotations

import re
from dataclasses import dataclass

from normalmesh.arguments import checked_positive
from normalmesh.errors import NormalMeshError, repr_for_error

#: Millimetres in one of each unit, by all its names.
MILLIMETRES = {
    "nm": 1e-6,
    # The micro sign and the Greek letter look alike.
    **dict.fromkeys(("µm", "μm", "um", "micrometre", "micrometres", "micrometer", "micron", "microns"), 0.001),
    **dict.fromkeys(("mm", "millimetre", "millimetres", "millimeter", "millimeters"), 1.0),
    **dict.fromkeys(("cm", "centimetre", "centimetres", "centimeter", "centimeters"), 10.0),
    "dm": 100.0,
    **dict.fromkeys(("m", "metre", "metres", "meter", "meters"), 1000.0),
    **dict.fromkeys(("km", "kilometre", "kilometres", "kilometer", "kilometers"), 1e6),
    **dict.fromkeys(("in", "inch", "inches"), 25.4),
    **dict.fromkeys(("ft", "foot", "feet"), 304.8),
    "US ft": 1_200_000 / 3937,
    "mi": 1_609_344.0,
}
#: Unit of positions on the screen.
PIXELS = "px"
#: Shortest and longest length, in any unit, that solids are computed with.
SHORTEST, LONGEST = 1e-6, 1e9


@dataclass(frozen=True)
class Length:
    """A positive length; without a unit, it is in that of the surface."""

    value: float
    unit: str | None = None

    @classmethod
    def parse(cls, given: object, name: str) -> Length:
        """Return a length from a number or a text such as ``3mm``, ``0.2 cm``, ``12px`` or ``5``."""
        expected = "a positive length, such as 3mm, 0.2cm, 12px, or a number in the unit of the surface"
        if isinstance(given, Length):
            return given
        if not isinstance(given, str):
            return cls(_checked_length(given, name, expected))
        parts = re.fullmatch(r"(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+)\s*([^\W\d_]*)", given.strip(), re.IGNORECASE)
        if parts is None:
            raise NormalMeshError(f"{name} must be {expected}, not {repr_for_error(given)}")
        unit = parts[2].lower() or None
        if unit not in (None, PIXELS, *MILLIMETRES):
            raise NormalMeshError(f"{name} has the unit {parts[2]!r}; known are px, µm, mm, cm, m and in")
        return cls(_checked_length(float(parts[1]), name, expected), unit)

    def in_unit(self, unit: str, pixel: float | None, name: str) -> float:
        """Return the length in a unit of length, in which a pixel has the side ``pixel``, if that is known."""
        if self.unit in (None, unit):
            return self.value
        if self.unit == PIXELS:
            if pixel is None:
                raise NormalMeshError(
                    f"{name} of {self} needs pixels of one size, which a perspective camera does not have: "
                    f"give it in the unit of the surface, {unit!r}"
                )
            return self.value * pixel
        if self.unit not in MILLIMETRES or unit not in MILLIMETRES:
            raise NormalMeshError(
                f"{name} of {self} needs a surface of known size, but its unit is {unit!r}: state the size of a pixel "
                "(--pixel-size, Orthographic(pixel_size) with units='mm'), the distance of a perspective camera "
                "(--distance), or the width of the print (--width)"
            )
        return self.value * MILLIMETRES[self.unit] / MILLIMETRES[unit]

    def __str__(self) -> str:
        return f"{self.value:g}{self.unit or ''}"


def _checked_length(value: object, name: str, expected: str) -> float:
    """Return a length within the bounds, or raise an error."""
    number = checked_positive(value, name, expected)
    if not SHORTEST <= number <= LONGEST:
        raise NormalMeshError(f"{name} must lie between {SHORTEST:g} and {LONGEST:g}, not {number:g}")
    return number
