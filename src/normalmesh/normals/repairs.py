"""Repairs of normal maps: how many pixels had to be changed, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Int
from normalmesh.errors import NormalMeshError, count_text, warn_caller
from normalmesh.normals._normal_map import BACK_FACING, INVALID, UNRESOLVED, NormalMapArrays, count_clamped
from normalmesh.normals.mask_labels import WindowLabels
from normalmesh.normals.windows import Slices

#: Share of grazing normals that is reported. The outline of a sphere has 0.8 %, that of a thin wire 3 %.
MANY = 0.05
#: The same for components and for maps with few such normals: the rim is a large share of them.
MOST, FEW = 0.2, 20


@dataclass(frozen=True)
class Repairs:
    """How many foreground pixels a :class:`NormalMap` had to repair or drop.

    Attributes
    ----------
    invalid
        NaN, infinite or (nearly) zero-length vectors of the mask: no measurements. Without a mask they are background
        and not counted.
    rescaled
        Normals whose length was off by more than 2 %: normalised (as all are).
    back_facing
        Normals turned away from the viewer: no measurements.
    grazing
        Normals between 85° and 90° from the viewing ray: clamped to 85°. Along rays that are more than 45° from the
        optical axis, which see a level surface obliquely, too, the limit is nearer to 90°.
    extended
        Pixels without a measurement that took the mean normal of their neighbours.
    excluded
        Pixels of the mask without a measurement, too far from any: left the mask. 0 without a mask.
    """

    invalid: int = 0
    rescaled: int = 0
    back_facing: int = 0
    grazing: int = 0
    extended: int = 0
    excluded: int = 0


def refuse_unusable(totals: Int, pixels: int) -> None:
    """Raise :class:`NormalMeshError` if none of the pixels of the mask holds a measurement."""
    if totals[INVALID] + totals[BACK_FACING] < pixels:
        return
    if totals[BACK_FACING]:
        raise NormalMeshError(
            "all normals point away from the viewer: z must point towards the viewer; "
            "read the map with convention='opencv' (z away), or negate the axis that is off"
        )
    raise NormalMeshError(
        f"no usable normal is left: all {pixels} in the mask are NaN, infinite or of zero length; "
        "check that file and mask belong together"
    )


def counted_repairs(totals: Int, extended: int, masked: bool) -> Repairs:
    """Return the counts; without a mask, what has no measurement is background."""
    invalid, rescaled, back_facing, grazing = (int(total) for total in totals[:UNRESOLVED])
    if not masked:
        return Repairs(0, rescaled, back_facing, grazing, extended)
    return Repairs(invalid, rescaled, back_facing, grazing, extended, invalid + back_facing - extended)


def report_repairs(repairs: Repairs, foreground: int, unresolved: int, flattened_components: Callable[[], int]) -> None:
    """Warn once about all repairs, except for clamped grazing normals if they are as few as at every outline.

    ``foreground``: pixels after the repairs; ``unresolved``: those in which depth changes too much to be resolved;
    ``flattened_components`` counts the components that consist of clamped normals to a large part.
    """
    parts = []
    if repairs.invalid:
        are = count_text(repairs.invalid, "normal is", "normals are")
        parts.append(f"{are} NaN, infinite or of (nearly) zero length")
    if repairs.back_facing:
        share = 100 * repairs.back_facing / (foreground - repairs.extended + repairs.back_facing)
        doubt = "; is the convention right?" if share > 20 else ""
        normals, point = count_text(repairs.back_facing, "normal"), "points" if repairs.back_facing == 1 else "point"
        parts.append(f"{normals} ({share:.2g} %) {point} away from the viewer{doubt}")
    if repairs.extended:
        pixels, their = count_text(repairs.extended, "pixel"), "its" if repairs.extended == 1 else "their"
        parts.append(f"{pixels} without a measurement took the mean normal of {their} neighbours")
    if repairs.excluded:
        parts.append(f"{count_text(repairs.excluded, 'pixel')} too far from any measurement left the mask")
    if repairs.rescaled:
        were = "was" if repairs.rescaled == 1 else "were"
        normals = count_text(repairs.rescaled, "normal")
        parts.append(f"{normals} {were} not of unit length and {were} normalised")
    clamped = f"{repairs.grazing} normals ({100 * repairs.grazing / foreground:.3g} %) are almost at right angles to "
    clamped += "the viewing ray and were clamped to 85°"
    # More than an outline has.
    if repairs.grazing > (MANY if repairs.grazing >= FEW else MOST) * foreground:
        parts.append(f"{clamped}: the surface is too flat there; are convention and camera right?")
    elif repairs.grazing >= FEW and (flattened := flattened_components()):
        components = count_text(flattened, "component of the mask consists", "components of the mask consist")
        parts.append(f"{clamped}: {components} of them: too flat")
    if unresolved:
        parts.append(
            f"in {count_text(unresolved, 'pixel')} depth changes by more than a quarter from the centre to a corner, "
            "and is inaccurate; is the focal length right, in pixels?"
        )
    if parts:
        warn_caller("; ".join(parts))


def flattened_components(parts: Iterable[tuple[Slices, NormalMapArrays]], columns: int) -> int:
    """Return the number of components of a mask that consist of clamped normals to a large part.

    ``parts``: windows that cover a map of some columns, row by row from the left, and their pixels.
    """
    labels, found = WindowLabels(columns), [np.zeros((0, 2), np.int64)]
    for window, arrays in parts:
        numbers, count = labels.add(window, arrays.mask)
        counts = np.zeros((count + 1, 2), np.int64)
        count_clamped(arrays, numbers, counts)
        found.append(counts[1:])
    components = labels.components()
    pixels, clamped = (np.bincount(components, column) for column in np.concatenate(found).T)
    return int(np.count_nonzero((clamped >= FEW) & (clamped > MOST * pixels)))
